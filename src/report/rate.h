/* rate.h: samples a second, over the newest seconds: a step may take longer than it is from one
 * line to the next, and then there were none or many in between. Thread rule: pure.
 */
#ifndef PARLEY_REPORT_RATE_H
#define PARLEY_REPORT_RATE_H

#include <stdbool.h>
#include <stdint.h>

enum { RATE_WINDOW_US = 2000000 };

/* All 0 at first. */
struct rate {
    uint64_t since_us, since;   /* what is counted from, one to two windows ago, ... */
    uint64_t middle_us, middle; /* ... and what will be next */
    double value;
};

/* So many samples until now. Who does not train makes none, and begins anew when it does. */
double rate_now(struct rate *rate, uint64_t now_us, uint64_t samples, bool trains);

#endif
