/* schedule.h: the learning rate over the cluster's progress.
 *
 * Thread rule: pure; call from any thread.
 */
#ifndef PARLEY_TRAIN_SCHEDULE_H
#define PARLEY_TRAIN_SCHEDULE_H

#include <stddef.h>

#include "parley/error.h"

enum schedule {
    SCHEDULE_CONSTANT,
    SCHEDULE_STEP,   /* a tenth from half of the budget on, a hundredth from three quarters on */
    SCHEDULE_COSINE, /* half a cosine, from 1 to 0 (Loshchilov, Hutter 2017, no restarts) */
};

/* "constant", "step", "cosine"; else PARLEY_EUSAGE with one line in why[why_size]. */
PARLEY_CHECK int schedule_parse(enum schedule *schedule, const char *name, char *why,
                                size_t why_size);

/* The factor in [0, 1] on the learning rate. progress is clamped to [0, 1]. */
double schedule_factor(enum schedule schedule, double progress);

#endif
