/* schedule.h: the learning rate over the cluster's progress.
 *
 * Progress is that of the whole cluster, not a node's own step count: who joins late trains at the
 * rate of the others. (Of a budget of steps each node has its own: progress is what the living have
 * made of theirs, on average.) Over the first `warmup` of it the factor climbs from 0 to 1 in a
 * line (as in Goyal et al., arXiv:1706.02677, section 2.2, where it climbs from the rate of one
 * worker: here the very first step moves nothing); the schedule's own course takes what is left, q
 * in [0, 1]:
 *
 *   constant      1
 *   step          a tenth from half of it on, a hundredth from three quarters on
 *   exponential   0.01^q
 *   cosine        (1 + cos(pi q)) / 2 (Loshchilov, Hutter, ICLR 2017, section 3, no restarts)
 *   linear        1 - q
 *   inverse-sqrt  sqrt(w / (w + progress since the warm-up)), w the warm-up or else 0.01 (Vaswani
 *                 et al., NeurIPS 2017, section 5.3)
 *
 * Thread rule: pure; call from any thread.
 */
#ifndef PARLEY_TRAIN_SCHEDULE_H
#define PARLEY_TRAIN_SCHEDULE_H

#include <stddef.h>

#include "parley/error.h"

struct schedule {
    const struct schedule_shape *shape; /* constant */
    double warmup;                      /* part of the budget, in [0, 1) */
};

/* name: as above. PARLEY_EUSAGE with one line in why[why_size]. */
PARLEY_CHECK int schedule_init(struct schedule *schedule, const char *name, double warmup,
                               char *why, size_t why_size);

/* The factor in [0, 1] on the learning rate. progress is clamped to [0, 1], NaN is 0. */
double schedule_factor(const struct schedule *schedule, double progress);

#endif
