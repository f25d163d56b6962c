/* figures.c: see figures.h. */
#include "report/figures.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/text.h"

enum { FIGURE_BYTES_MAX = 1024 };

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Between two of the sorted values where the share falls between them. */
static double quantile(const double *sorted, size_t count, double share)
{
    double at = share * (double)(count - 1);
    size_t below = (size_t)at;
    if (below + 1 == count) return sorted[below];
    return sorted[below] + (at - (double)below) * (sorted[below + 1] - sorted[below]);
}

static double median(double sorted[FIGURE_REPEATS_MAX], const double *values, size_t count)
{
    memcpy(sorted, values, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare);
    return quantile(sorted, count, 0.5);
}

static double ratio_of(enum figure_sense sense, double value, double limit)
{
    return sense == FIGURE_MORE_IS_BETTER ? value / limit : limit / value;
}

void figure_of(struct figure *figure, const char *name, const char *unit, enum figure_sense sense,
               const double *values, const double *limits, size_t repeats)
{
    double sorted[FIGURE_REPEATS_MAX], ratios[FIGURE_REPEATS_MAX];
    assert(repeats >= 1 && repeats <= FIGURE_REPEATS_MAX);
    snprintf(figure->name, sizeof figure->name, "%s", name);
    figure->unit = unit;
    figure->repeats = repeats;
    figure->limit = figure->ratio = NAN;
    if (limits) {
        for (size_t i = 0; i < repeats; i++)
            ratios[i] = ratio_of(sense, values[i], limits[i]);
        figure->value = median(sorted, values, repeats);
        figure->limit = median(sorted, limits, repeats);
        figure->ratio = median(sorted, ratios, repeats);
    } else {
        figure->value = median(sorted, values, repeats);
    }
    figure->low = quantile(sorted, repeats, 0.25);
    figure->high = quantile(sorted, repeats, 0.75);
}

/* Three digits or more, without an exponent. */
static const char *digits(char out[32], double value)
{
    int places = value < 10 ? 3 : value < 100 ? 2 : value < 1000 ? 1 : 0;
    snprintf(out, 32, "%.*f", places, value);
    return out;
}

char *figure_text(const struct figure *f, bool first)
{
    char value[32], limit[32], low[32], high[32];
    struct text text;
    text_init(&text, FIGURE_BYTES_MAX);
    if (first)
        text_add(&text, "%-20s%10s %-13s%10s%8s   %s\n", "", "median", "", "limit", "ratio",
                 "half of all, repeats");
    text_add(&text, "%-20s%10s %-13s", f->name, digits(value, f->value), f->unit);
    if (isfinite(f->ratio))
        text_add(&text, "%10s%8.3f   %.3f to %.3f", digits(limit, f->limit), f->ratio, f->low,
                 f->high);
    else
        text_add(&text, "%10s%8s   %s to %s %s", "-", "-", digits(low, f->low),
                 digits(high, f->high), f->unit);
    text_add(&text, "  of %zu\n", f->repeats);
    return text_take(&text);
}

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

char *figure_json(const struct figure *f, bool first)
{
    struct text text;
    text_init(&text, FIGURE_BYTES_MAX);
    text_add(&text, first ? "[" : ",\n ");
    text_json(&text,
              json_pack("{s:s, s:o, s:s, s:o, s:o, s:o, s:o, s:I}", "name", f->name, "value",
                        number(f->value), "unit", f->unit, "limit", number(f->limit), "ratio",
                        number(f->ratio), "low", number(f->low), "high", number(f->high), "repeats",
                        (json_int_t)f->repeats),
              JSON_COMPACT | JSON_REAL_PRECISION(6));
    return text_take(&text);
}
