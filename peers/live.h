/* live.h: a snapshot of who lives, for threads other than the loop's. */
#ifndef PARLEY_PEERS_LIVE_H
#define PARLEY_PEERS_LIVE_H

#include <stdint.h>

#include "parley/config.h"

struct loop;

/* Room for members_max names. PARLEY_ENOMEM, PARLEY_EFAIL. */
int live_init(struct loop *loop, uint32_t members_max);
void live_close(struct loop *loop);

/* The loop's: brings it up to date if it is stale. */
void live_refresh(struct loop *loop);

/* Any thread: as parley_live(). */
uint32_t live_copy(struct loop *loop, char (*names)[PARLEY_NAME_SIZE], uint32_t max);

#endif
