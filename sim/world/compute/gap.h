/* gap.h: the difference of two blocks, theirs - ours, that is computed when it is used (gap.c).
 *
 * Thread rule: the loop's thread; jobs read theirs->x and ours->x.
 */
#ifndef PARLEY_SIM_GAP_H
#define PARLEY_SIM_GAP_H

#include "kernels/mix.h"
#include "world/cluster.h"

struct sim_gap {
    struct sim_job job; /* computes the figures, in the aside lane of `host` */
    struct sim_host *host;
    struct sim_block *theirs, *ours; /* held */
    uint32_t users;
    struct mix_gap figures; /* once made; the mass of a mirrored gap is the negative */
};

/* theirs - ours, held; mirrored: the gap is ours - theirs. Whatever fills the two was waited for.
 * NULL after sim_fail(). */
struct sim_gap *sim_gap_of(struct sim_host *host, struct sim_block *theirs, struct sim_block *ours,
                           bool *mirrored);
struct sim_gap *sim_gap_hold(struct sim_gap *gap);
void sim_gap_release(struct sim_gap *gap); /* NULL is none */
void sim_gap_wait(struct sim_gap *gap);    /* until the figures are made */

#endif
