/* band.c: see band.h. */
#include "experiment/band.h"

#include <math.h>

static void add(struct band *band, double x, double mean, double low, double high)
{
    band->x[band->count] = x;
    band->mean[band->count] = mean;
    band->low[band->count] = low;
    band->high[band->count++] = high;
}

static double x_of(const struct band_run *run, uint32_t p)
{
    return run->x[p * run->step];
}

static double y_of(const struct band_run *run, uint32_t p)
{
    return run->y[p * run->step];
}

/* The x of the first and the last point; false: there is none. */
static bool ends_of(const struct band_run *run, double *first, double *last)
{
    *first = *last = NAN;
    for (uint32_t p = 0; p < run->count; p++) {
        if (!isfinite(y_of(run, p))) continue;
        if (isnan(*first)) *first = x_of(run, p);
        *last = x_of(run, p);
    }
    return !isnan(*first);
}

/* at: not before the run's first point. */
static double value_at(const struct band_run *run, double at)
{
    double before_x = NAN, before = NAN;
    for (uint32_t p = 0; p < run->count; p++) {
        double x = x_of(run, p), y = y_of(run, p);
        if (!isfinite(y)) continue;
        if (x > at)
            return isnan(before) ? y : before + (y - before) * (at - before_x) / (x - before_x);
        before_x = x;
        before = y;
    }
    return before;
}

static void copy(struct band *band, const struct band_run *run, double most)
{
    for (uint32_t p = 0; p < run->count && band->count + 1 < BAND_POINTS; p++)
        if (isfinite(y_of(run, p)) && x_of(run, p) <= most)
            add(band, x_of(run, p), y_of(run, p), y_of(run, p), y_of(run, p));
    double value = value_at(run, most);
    if (band->goes_on && band->count > 0) add(band, most, value, value, value);
}

static void add_at(struct band *band, const struct band_run *runs, uint32_t count, double x)
{
    double sum = 0, low = INFINITY, high = -INFINITY;
    uint32_t known = 0;
    for (uint32_t i = 0; i < count; i++) {
        double value = value_at(&runs[i], x);
        if (isnan(value)) continue;
        sum += value;
        low = fmin(low, value);
        high = fmax(high, value);
        known++;
    }
    add(band, x, fmin(fmax(sum / known, low), high), low, high);
}

void band_fill(struct band *band, const struct band_run *runs, uint32_t count,
               enum axis_scale scale, double most)
{
    double first, last, from = -INFINITY, to = -INFINITY;
    band->count = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!ends_of(&runs[i], &first, &last)) continue;
        from = fmax(from, first);
        to = fmax(to, last);
    }
    band->goes_on = to > most;
    to = fmin(to, most);
    if (!isfinite(from) || to < from) return;
    if (count == 1) {
        copy(band, &runs[0], most);
        return;
    }
    bool even = scale != AXIS_LOG || from <= 0;
    for (int p = 0; p < BAND_POINTS; p++) {
        double part = p / (BAND_POINTS - 1.0);
        double x = even ? from + (to - from) * part : from * pow(to / from, part);
        add_at(band, runs, count, p == BAND_POINTS - 1 ? to : x);
    }
}
