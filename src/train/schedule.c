/* schedule.c: constant, step and cosine. Failure mode: an unknown name. */
#include "train/schedule.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

int schedule_parse(enum schedule *schedule, const char *name, char *why, size_t why_size)
{
    static const char *const names[] = {"constant", "step", "cosine"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0) {
            *schedule = (enum schedule)i;
            return 0;
        }
    }
    snprintf(why, why_size, "schedule '%.64s' is unknown; valid: constant, step, cosine", name);
    return PARLEY_EUSAGE;
}

double schedule_factor(enum schedule schedule, double progress)
{
    double p = progress > 0 ? (progress < 1 ? progress : 1) : 0; /* NaN gives 0 */

    switch (schedule) {
    case SCHEDULE_STEP:
        return p < 0.5 ? 1 : p < 0.75 ? 0.1 : 0.01;
    case SCHEDULE_COSINE:
        return p < 1 ? (1 + cos(3.141592653589793 * p)) / 2 : 0;
    case SCHEDULE_CONSTANT:
        break;
    }
    return 1;
}
