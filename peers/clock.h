/* clock.h: monotonic time, the same clock in all processes of the machine. */
#ifndef PARLEY_PEERS_CLOCK_H
#define PARLEY_PEERS_CLOCK_H

#include <stdint.h>

#include <uv.h>

static inline uint64_t clock_now_us(void)
{
    return uv_hrtime() / 1000;
}

#endif
