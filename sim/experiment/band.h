/* band.h: runs that differ in their seed alone as one line: their mean, and from the least to the
 * greatest. Thread rule: pure.
 */
#ifndef PARLEY_SIM_BAND_H
#define PARLEY_SIM_BAND_H

#include <stdbool.h>
#include <stdint.h>

#include "experiment/axis.h"

enum { BAND_POINTS = 101 };

/* x: not falling; points whose y is not finite are none. Borrowed. */
struct band_run {
    const double *x, *y; /* of the first of `count` points; of the next they are `step` further */
    uint32_t count, step;
};

struct band {
    double x[BAND_POINTS], mean[BAND_POINTS], low[BAND_POINTS], high[BAND_POINTS];
    uint32_t count; /* 0: no run has a point */
    bool goes_on;   /* a run does, past `most` */
};

/* Points of the runs lie elsewhere in each. So each run is read, on straight lines between its
 * points, at values of x that lie evenly on an axis of that scale: from where all have begun to
 * where the last ends, or to `most` if that is less. What has ended keeps its last value. One run
 * alone keeps its own points, the first BAND_POINTS of them at most. */
void band_fill(struct band *band, const struct band_run *runs, uint32_t count,
               enum axis_scale scale, double most);

#endif
