/* figures.h: measured figures beside their limits, as a table or as JSON.
 *
 * Repeats of a figure and of its limit are taken in turns, so that what disturbs the machine meets
 * both. Shown are medians, of the figure, of its limit and of the ratios of the single turns, since
 * a pause of the machine must not move them, and the quartiles of these ratios.
 * Thread rule: pure.
 */
#ifndef PARLEY_REPORT_FIGURES_H
#define PARLEY_REPORT_FIGURES_H

#include <stdbool.h>
#include <stddef.h>

enum figure_sense { FIGURE_LESS_IS_BETTER, FIGURE_MORE_IS_BETTER };

/* The limit's numbers are NAN where there is none: the row is there for scale. */
struct figure {
    char name[32];       /* "step/mlp" */
    const char *unit;    /* "us", "GB/s"; static */
    double value, limit; /* medians */
    double ratio;        /* median of the turns' own; 1 is the limit, less is worse */
    double low, high;    /* quartiles over the repeats: of the ratio, or of a value without limit */
    size_t repeats;
};

enum { FIGURE_REPEATS_MAX = 1024 };

/* values, limits: [repeats], 1 to FIGURE_REPEATS_MAX, turn by turn. limits may be NULL. */
void figure_of(struct figure *figure, const char *name, const char *unit, enum figure_sense sense,
               const double *values, const double *limits, size_t repeats);

/* Its line of the table, below the header if it is the first; the columns are as wide whatever the
 * figures are. Freed by the caller, NULL when out of memory. */
char *figure_text(const struct figure *figure, bool first);

/* Its object in an array, one a line: name, value, unit, limit and ratio (both null where there is
 * no limit), and the spread: low, high, repeats. What stands between two is told with the second;
 * FIGURES_JSON_END is to follow the last. Freed, NULL: as above. */
char *figure_json(const struct figure *figure, bool first);
#define FIGURES_JSON_END "]\n"

#endif
