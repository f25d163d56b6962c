/* axis.h: the scale of a chart: its ends, its ticks, where a value stands. Thread rule: pure. */
#ifndef PARLEY_SIM_AXIS_H
#define PARLEY_SIM_AXIS_H

#include <stdint.h>

enum axis_scale {
    AXIS_LINEAR,
    AXIS_LOG,     /* values over 0 */
    AXIS_ACCURACY /* values up to 1; their error, 1 - value, on a logarithmic scale */
};

enum axis_unit { AXIS_PLAIN, AXIS_SECONDS, AXIS_BYTES };

enum { AXIS_TICKS_MAX = 14, AXIS_LABEL_BYTES = 32 };

/* Values further apart than this are drawn on a logarithmic axis: a linear one would show the
 * greatest alone. */
#define AXIS_FAR_APART 8

struct axis {
    enum axis_scale scale;
    enum axis_unit unit;
    double low, high; /* low < high */
    double ticks[AXIS_TICKS_MAX];
    uint32_t count;
    double divisor;        /* labels are value / divisor, in `unit_text` */
    const char *unit_text; /* "s", "min", "MB", ...; "" where labels have their own, or none */
};

/* An axis for values from low to high; equal or no values (low > high) get room around them.
 * Linear axes begin and end at a tick. */
struct axis axis_fit(enum axis_scale scale, enum axis_unit unit, double low, double high);

/* 0 at the low end, 1 at the high one; values past them are brought back to them. */
double axis_place(const struct axis *axis, double value);

/* The same, where values past the ends are below 0 or over 1. */
double axis_reach(const struct axis *axis, double value);

/* The text of a tick. Returns out. */
const char *axis_label(const struct axis *axis, double value, char out[AXIS_LABEL_BYTES]);

#endif
