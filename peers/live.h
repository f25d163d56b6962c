/* live.h: a snapshot of who lives and who is gone, for threads other than the loop's. */
#ifndef PARLEY_PEERS_LIVE_H
#define PARLEY_PEERS_LIVE_H

#include <stdint.h>

#include "parley/parley.h"

struct loop;

/* Room for members_max names, of which that of this node lives. PARLEY_ENOMEM, PARLEY_EFAIL. */
int live_init(struct loop *loop, uint32_t members_max, const char *name);
void live_close(struct loop *loop);

/* The loop's: makes it anew, as the node says, which is among those who live for good. */
void live_refresh(struct loop *loop);

/* Any thread: as parley_live(). */
uint32_t live_copy(struct loop *loop, char (*names)[PARLEY_NAME_SIZE], uint32_t max);
/* Any thread: as parley_gone(). */
uint32_t live_gone(struct loop *loop, struct parley_gone *gone, uint32_t max);

#endif
