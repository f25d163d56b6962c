/* effect.c: see effect.h.
 *
 * The runs of a group differ in their seed alone, and are one point: their mean, in the colour that
 * the group has everywhere, with a band from the least to the greatest. Groups that differ in the
 * setting alone are one line, which has the colour of the first. Who does not heed it is a level
 * one.
 */
#include "experiment/effect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiment/chart.h"
#include "experiment/picture.h"
#include "experiment/tally.h"

enum { CHARTS = 3, GAP = 20, CHART_HEIGHT = 240, LEGEND_ROW = 20, LEGEND_MAX = 40, VALUES_MIN = 3 };
enum { CHART_WIDTH = (PICTURE_WIDTH - (CHARTS - 1) * GAP) / CHARTS };

struct effect {
    const struct plan *plan;
    const struct sim_outcome *outcomes;
    uint32_t axis;    /* of plan->axes */
    const char *unit; /* of its values */
    double *x;        /* [groups]: the setting; NAN: it says nothing to the group */
    uint32_t *first;  /* [groups]: the first group of the same line */
    /* Of one chart at a time. */
    uint32_t *order;                  /* [groups], line after line, each from left to right */
    double *at_x, *at_y, *low, *high; /* [groups], in that order */
    struct chart_line *lines;         /* [groups] */
};

/* ---- Values and lines ------------------------------------------------------------------------ */

/* "50ms" is 50 of "ms". *unit is NULL for what begins with no number. */
static double number_of(const char *text, const char **unit)
{
    char *end;
    double value = strtod(text, &end);
    *unit = end > text && isfinite(value) ? end : NULL;
    return value;
}

/* Whether there are several numbers, all of one unit; their least and most. */
static bool is_of_numbers(struct effect *e, double *least, double *most)
{
    const struct sweep *sweep = &e->plan->base->sweeps[e->plan->axes[e->axis]];
    const char *unit;
    e->unit = NULL;
    *least = INFINITY;
    *most = -INFINITY;
    for (size_t i = 0; i < sweep->count; i++) {
        double value = number_of(sweep->values[i], &unit);
        if (!unit || (e->unit && strcmp(unit, e->unit) != 0)) return false;
        e->unit = unit;
        *least = fmin(*least, value);
        *most = fmax(*most, value);
    }
    return sweep->count >= VALUES_MIN;
}

/* Alike but for the axis. */
static bool is_of_line(const struct effect *e, uint32_t group, uint32_t other)
{
    const struct plan_run *a = tally_run(e->plan, group), *b = tally_run(e->plan, other);
    if (strcmp(a->strategy, b->strategy) != 0) return false;
    for (uint32_t i = 0; i < e->plan->axes_count - e->plan->seeds; i++) {
        const char *x = a->values[i], *y = b->values[i];
        if (i == e->axis ? !x != !y : x != y && (!x || !y || strcmp(x, y) != 0)) return false;
    }
    return true;
}

static void look_at_groups(struct effect *e)
{
    for (uint32_t g = 0; g < e->plan->groups; g++) {
        const char *unit, *value = tally_run(e->plan, g)->values[e->axis];
        e->x[g] = value ? number_of(value, &unit) : NAN;
        e->first[g] = 0;
        while (!is_of_line(e, e->first[g], g))
            e->first[g]++;
    }
}

/* ---- Charts ---------------------------------------------------------------------------------- */

/* The groups of a line behind those before, from left to right; returns how many there are. */
static uint32_t order_groups(struct effect *e, uint32_t first, uint32_t *order)
{
    uint32_t count = 0;
    for (uint32_t g = first; g < e->plan->groups; g++) {
        if (e->first[g] != first) continue;
        uint32_t at = count++;
        for (; at > 0 && e->x[order[at - 1]] > e->x[g]; at--)
            order[at] = order[at - 1];
        order[at] = g;
    }
    return count;
}

static struct chart_line line_of(struct effect *e, uint32_t begin, uint32_t count,
                                 enum tally_column column)
{
    bool level = isnan(e->x[e->order[begin]]);
    for (uint32_t at = begin; at < begin + count; at++) {
        uint32_t g = e->order[at];
        e->at_x[at] = level ? 1 : e->x[g]; /* a level line is as high anywhere */
        e->at_y[at] = tally_mean(e->plan, e->outcomes, g, column);
        tally_range(e->plan, e->outcomes, g, column, &e->low[at], &e->high[at]);
    }
    return (struct chart_line){.x = e->at_x + begin,
                               .y = e->at_y + begin,
                               .low = e->plan->seeds ? e->low + begin : NULL,
                               .high = e->high + begin,
                               .dots = e->order + begin,
                               .count = count,
                               .style = e->first[e->order[begin]],
                               .level = level};
}

/* What a node alone takes and sends is far from all others, and would flatten them. */
static bool is_drawn(const struct effect *e, uint32_t group, enum tally_column column)
{
    bool far = column == TALLY_TRAINED || column == TALLY_BYTES;
    return e->first[group] == group &&
           !(far && picture_cuts_single(e->plan) && plan_is_single(tally_run(e->plan, group)));
}

static void draw(struct text *svg, struct effect *e, enum tally_column column,
                 enum axis_scale x_scale, int place, double top)
{
    char title[96], x_title[96], name[64];
    tally_axis_title(e->plan, e->axis, name);
    struct chart chart = {.title = title,
                          .x_title = x_title,
                          .x_scale = x_scale,
                          .y_scale = column == TALLY_ACCURACY ? AXIS_ACCURACY : AXIS_LOG,
                          .y_unit = column == TALLY_BYTES     ? AXIS_BYTES
                                    : column == TALLY_TRAINED ? AXIS_SECONDS
                                                              : AXIS_PLAIN,
                          .lines = e->lines};
    snprintf(title, sizeof title, "%s by %s", tally_title(column), name);
    snprintf(x_title, sizeof x_title, e->unit[0] ? "%s (%s)" : "%s", name, e->unit);
    uint32_t begin = 0;
    for (uint32_t g = 0; g < e->plan->groups; g++) {
        if (!is_drawn(e, g, column)) continue;
        uint32_t count = order_groups(e, g, e->order + begin);
        e->lines[chart.count++] = line_of(e, begin, count, column);
        begin += count;
    }
    chart_draw(svg, &chart, place * (CHART_WIDTH + GAP), top, CHART_WIDTH, CHART_HEIGHT);
}

/* A row a line, as far as that helps. */
static double add_legend(struct text *svg, const struct effect *e, double top)
{
    uint32_t line = 0;
    double y = top;
    for (uint32_t g = 0; g < e->plan->groups; g++) {
        const struct plan_run *run = tally_run(e->plan, g);
        if (e->first[g] != g || line == LEGEND_MAX) continue;
        y += LEGEND_ROW;
        chart_sample(svg, g, 4, y);
        line++;
        text_add(svg, "<text x=\"42\" y=\"%.1f\">%s", y, run->strategy);
        for (uint32_t i = 0; i < e->plan->axes_count - e->plan->seeds; i++) {
            if (i == e->axis || !run->values[i]) continue;
            text_add(svg, ", %s ", option_info(e->plan->axes[i])->name);
            chart_text(svg, run->values[i]);
        }
        text_add(svg, "</text>\n");
    }
    text_add(svg, "<text class=\"dim\" x=\"4\" y=\"%.1f\">", y += LEGEND_ROW);
    text_add(svg, "A line has the colour of its first point.");
    if (e->plan->seeds)
        text_add(svg, " Means over the seeds; bands reach from the least to the greatest.");
    if (picture_cuts_single(e->plan))
        text_add(svg, " What single takes and sends stands in the table.");
    text_add(svg, "</text>\n");
    return y - top + GAP;
}

/* The first of accuracy, loss and drift that there is. */
static enum tally_column result_of(const struct effect *e)
{
    for (enum tally_column column = TALLY_ACCURACY; column < TALLY_DRIFT; column++)
        for (uint32_t g = 0; g < e->plan->groups; g++)
            if (isfinite(tally_mean(e->plan, e->outcomes, g, column))) return column;
    return TALLY_DRIFT;
}

double effect_charts(struct text *svg, const struct plan *plan, const struct sim_outcome *outcomes,
                     double top)
{
    struct effect e = {.plan = plan, .outcomes = outcomes};
    double y = top, least, most;
    e.x = calloc(plan->groups, sizeof *e.x);
    e.first = calloc(plan->groups, sizeof *e.first);
    e.order = calloc(plan->groups, sizeof *e.order);
    e.at_x = calloc(plan->groups, sizeof *e.at_x);
    e.at_y = calloc(plan->groups, sizeof *e.at_y);
    e.low = calloc(plan->groups, sizeof *e.low);
    e.high = calloc(plan->groups, sizeof *e.high);
    e.lines = calloc(plan->groups, sizeof *e.lines);
    bool whole = e.x && e.first && e.order && e.at_x && e.at_y && e.low && e.high && e.lines;
    if (!whole) svg->failed = true;
    for (; whole && e.axis < plan->axes_count - plan->seeds; e.axis++) {
        if (!is_of_numbers(&e, &least, &most)) continue;
        enum axis_scale scale =
            least > 0 && most >= least * AXIS_FAR_APART ? AXIS_LOG : AXIS_LINEAR;
        look_at_groups(&e);
        draw(svg, &e, result_of(&e), scale, 0, y);
        draw(svg, &e, TALLY_TRAINED, scale, 1, y);
        draw(svg, &e, TALLY_BYTES, scale, 2, y);
        y += CHART_HEIGHT;
        y += add_legend(svg, &e, y);
    }
    free(e.lines);
    free(e.high);
    free(e.low);
    free(e.at_y);
    free(e.at_x);
    free(e.order);
    free(e.first);
    free(e.x);
    return y - top;
}
