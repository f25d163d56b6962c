/* picture.c: charts of loss, accuracy and drift against virtual time and against bytes. */
#include "experiment/picture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiment/band.h"
#include "experiment/chart.h"
#include "experiment/graph.h"
#include "experiment/tally.h"

enum { CHART_WIDTH = 470, CHART_HEIGHT = 260, GAP = 20, LEGEND_ROW = 20, LEGEND_MAX = 40 };

/* Who sends less than this part of what another does is a level line against bytes. */
#define SENDS_NOTHING 1e-3

/* ---- Legend ---------------------------------------------------------------------------------- */

double picture_legend(struct text *svg, const struct plan *plan, double *width)
{
    uint32_t shown = plan->groups < LEGEND_MAX ? plan->groups : LEGEND_MAX, columns;
    size_t widest = 0;
    char *labels[LEGEND_MAX] = {NULL};
    for (uint32_t g = 0; g < shown; g++) {
        labels[g] = plan_label(plan, tally_run(plan, g), false);
        if (!labels[g]) svg->failed = true;
        if (labels[g] && text_width(labels[g]) > widest) widest = text_width(labels[g]);
    }
    double label = 60 + PICTURE_CHARACTER * (double)widest;
    *width = fmax(*width, label);
    columns = (uint32_t)(*width / label);
    if (columns > shown) columns = shown;
    for (uint32_t g = 0; g < shown; g++) {
        double x = g % columns * (*width / (double)columns) + 4;
        double y = 14 + g / columns * LEGEND_ROW;
        chart_sample(svg, g, x, y);
        text_add(svg, "<text x=\"%.1f\" y=\"%.1f\">", x + 38, y);
        chart_text(svg, labels[g] ? labels[g] : "");
        text_add(svg, "</text>\n");
        free(labels[g]);
    }
    double height = (shown + columns - 1) / columns * LEGEND_ROW + 10;
    if (shown == plan->groups) return height;
    text_add(svg, "<text class=\"dim\" x=\"4\" y=\"%.1f\">and %u more</text>\n", height + 4,
             plan->groups - shown);
    return height + LEGEND_ROW;
}

/* ---- Curves ---------------------------------------------------------------------------------- */

enum series { TIME, BYTES, LOSS, ACCURACY, DRIFT, SERIES };

struct curves {
    const struct plan *plan;
    const struct sim_outcome *outcomes;
    /* Of one chart at a time. */
    struct band_run *runs; /* [plan->count]: those of a group */
    struct band *bands;    /* [plan->groups] */
    struct chart_line *lines;
};

/* At point p of a run. */
static const double *value_of(const struct curves *c, uint32_t run, enum series series, uint32_t p)
{
    const struct curve_point *point = &c->outcomes[run].curve.points[p];
    const double *const values[SERIES] = {
        [TIME] = &point->time_s,       [BYTES] = &point->bytes, [LOSS] = &point->loss,
        [ACCURACY] = &point->accuracy, [DRIFT] = &point->drift,
    };
    return values[series];
}

/* Points of a run; 0 of one that is not drawn: no axis is to reach for it. */
static uint32_t points_of(const struct curves *c, uint32_t run)
{
    return tally_counts(c->plan, c->outcomes, run) ? c->outcomes[run].curve.count : 0;
}

/* Time of training, or bytes to the end; 0 without points. */
static double last_of(const struct curves *c, uint32_t run, enum series series)
{
    uint32_t count = points_of(c, run);
    if (count == 0) return 0;
    return series == TIME ? c->outcomes[run].summary.trained_s
                          : *value_of(c, run, BYTES, count - 1);
}

static bool sends_nothing(const struct curves *c, uint32_t group)
{
    double most = 0, own = 0;
    for (uint32_t i = 0; i < c->plan->count; i++) {
        double bytes = last_of(c, i, BYTES);
        most = fmax(most, bytes);
        if (c->plan->runs[i]->group == group) own = fmax(own, bytes);
    }
    return own < most * SENDS_NOTHING;
}

/* What lies past the others' ends: a node alone takes as long as all of them together. */
static bool is_apart(const struct curves *c, uint32_t run, enum series x)
{
    const struct plan_run *of = c->plan->runs[run];
    return x == TIME ? plan_is_single(of) : sends_nothing(c, of->group);
}

/* Where the axis of all charts begins and ends: with the runs that are not apart. Who has sent
 * nothing yet has no place on a logarithmic one. */
static void find_range(const struct curves *c, struct chart *chart, enum series x)
{
    double least = INFINITY, most = 0;
    for (uint32_t i = 0; i < c->plan->count; i++) {
        uint32_t first = 0, count = points_of(c, i);
        while (chart->x_scale == AXIS_LOG && first < count && *value_of(c, i, x, first) <= 0)
            first++;
        if (first == count || is_apart(c, i, x)) continue;
        least = fmin(least, *value_of(c, i, x, first));
        most = fmax(most, *value_of(c, i, x, count - 1));
    }
    chart->x_least = isfinite(least) ? least : 0;
    chart->x_most = most;
}

/* Ends of runs that lie far apart: a linear axis would show the longest alone. */
static enum axis_scale scale_of(const struct curves *c, enum series series)
{
    double least = INFINITY, most = 0;
    for (uint32_t i = 0; i < c->plan->count; i++) {
        double last = last_of(c, i, series);
        if (last <= 0 || is_apart(c, i, series)) continue;
        least = fmin(least, last);
        most = fmax(most, last);
    }
    return most > least * AXIS_FAR_APART ? AXIS_LOG : AXIS_LINEAR;
}

/* The least drift until the last local step: the averaging after it goes on to next to nothing. */
static double least_drift(const struct curves *c)
{
    double least = INFINITY;
    for (uint32_t i = 0; i < c->plan->count; i++) {
        uint32_t count = points_of(c, i);
        for (uint32_t p = 0; p < count; p++) {
            const struct curve_point *point = &c->outcomes[i].curve.points[p];
            if (point->time_s <= c->outcomes[i].summary.trained_s && point->drift > 0)
                least = fmin(least, point->drift);
        }
    }
    return isfinite(least) ? least : 0;
}

/* The line of a group: its runs that did not fail, if there are any. */
static void add_group(struct curves *c, uint32_t group, const struct chart *chart, enum series x,
                      enum series y)
{
    struct band *band = &c->bands[group];
    uint32_t count = 0;
    for (uint32_t i = 0; i < c->plan->count; i++)
        if (c->plan->runs[i]->group == group && tally_counts(c->plan, c->outcomes, i))
            c->runs[count++] = (struct band_run){
                .x = value_of(c, i, x, 0),
                .y = value_of(c, i, y, 0),
                .count = c->outcomes[i].curve.count,
                .step = sizeof(struct curve_point) / sizeof(double),
            };
    band_fill(band, c->runs, count, chart->x_scale,
              x == TIME && chart->x_most > 0 ? chart->x_most : INFINITY);
    c->lines[group] = (struct chart_line){
        .x = band->x,
        .y = band->mean,
        .low = count > 1 ? band->low : NULL,
        .high = band->high,
        .count = band->count,
        .style = group,
        .level = x == BYTES && y != DRIFT && sends_nothing(c, group),
        .goes_on = band->goes_on,
    };
}

static void draw_one(struct text *svg, struct curves *c, enum series y, enum series x, double top)
{
    static const char *const titles[SERIES] = {
        [LOSS] = "test loss",
        [ACCURACY] = "test accuracy",
        [DRIFT] = "drift: rms distance from the mean model, relative"};
    struct chart chart = {
        .title = titles[y],
        .x_title = x == TIME ? "virtual time" : "bytes sent by all nodes",
        .x_scale = scale_of(c, x),
        .y_scale = y == ACCURACY ? AXIS_ACCURACY : AXIS_LOG,
        .x_unit = x == TIME ? AXIS_SECONDS : AXIS_BYTES,
        .y_least = y == DRIFT ? least_drift(c) : 0,
        .lines = c->lines,
        .count = c->plan->groups,
    };
    find_range(c, &chart, x);
    for (uint32_t g = 0; g < c->plan->groups; g++)
        add_group(c, g, &chart, x, y);
    chart_draw(svg, &chart, x == TIME ? 0 : CHART_WIDTH + GAP, top, CHART_WIDTH, CHART_HEIGHT);
}

/* Of labels that are numbers there is no accuracy, of a quadratic no loss either. */
static bool is_known(const struct curves *c, enum series series)
{
    for (uint32_t i = 0; i < c->plan->count; i++) {
        uint32_t count = points_of(c, i);
        for (uint32_t p = 0; p < count; p++)
            if (isfinite(*value_of(c, i, series, p))) return true;
    }
    return false;
}

bool picture_cuts_single(const struct plan *plan)
{
    for (uint32_t i = 0; i < plan->count; i++)
        if (plan_is_single(plan->runs[i])) return true;
    return false;
}

double picture_curves(struct text *svg, const struct plan *plan, const struct sim_outcome *outcomes,
                      double top)
{
    struct curves c = {.plan = plan, .outcomes = outcomes};
    c.runs = calloc(plan->count, sizeof *c.runs);
    c.bands = calloc(plan->groups, sizeof *c.bands);
    c.lines = calloc(plan->groups, sizeof *c.lines);
    double height = 0;
    if (!c.runs || !c.bands || !c.lines) svg->failed = true;
    for (int series = LOSS; !svg->failed && series < SERIES; series++) {
        if (!is_known(&c, (enum series)series)) continue;
        for (int x = TIME; x <= BYTES; x++)
            draw_one(svg, &c, (enum series)series, (enum series)x, top + height);
        height += CHART_HEIGHT + GAP;
    }
    free(c.runs);
    free(c.bands);
    free(c.lines);
    return height;
}

/* ---- Topologies ------------------------------------------------------------------------------ */

enum { GRAPHS_MAX = 6, GRAPHS_A_ROW = 3 };

static bool same_graph(const struct settings *a, const struct settings *b)
{
    const char *one = a->values[OPTION_ID_FAULT].text, *two = b->values[OPTION_ID_FAULT].text;
    return a->nodes == b->nodes && strcmp(a->topology, b->topology) == 0 &&
           strcmp(one ? one : "", two ? two : "") == 0;
}

/* Titles tell nodes and topology; only the faults are left to tell two graphs apart. */
static const char *label_of(const struct plan *plan, const struct settings *settings)
{
    const char *faults = settings->values[OPTION_ID_FAULT].text;
    if (plan->base->sweeps[OPTION_ID_FAULT].count < 2) return NULL;
    return faults ? faults : "no faults";
}

/* The runs to be drawn, one a graph, and whether there are more than are drawn. */
static uint32_t choose_graphs(const struct plan *plan, const struct sim_outcome *outcomes,
                              uint32_t drawn[GRAPHS_MAX], bool *more)
{
    uint32_t count = 0;
    *more = false;
    for (uint32_t i = 0; i < plan->count && !*more; i++) {
        const struct settings *settings = &plan->runs[i]->settings;
        bool seen = settings->nodes < 2 || !outcomes[i].summary.strategy;
        for (uint32_t g = 0; g < count; g++)
            seen = seen || same_graph(settings, &plan->runs[drawn[g]]->settings);
        *more = !seen && count == GRAPHS_MAX;
        if (!seen && !*more) drawn[count++] = i;
    }
    return count;
}

double picture_topologies(struct text *svg, const struct plan *plan,
                          const struct sim_outcome *outcomes, const struct source_reader *reader,
                          double top)
{
    uint32_t drawn[GRAPHS_MAX];
    bool more, first = plan->contenders.count > 1 || plan->seeds;
    uint32_t count = choose_graphs(plan, outcomes, drawn, &more);
    for (uint32_t g = 0; g < count; g++) {
        const struct settings *settings = &plan->runs[drawn[g]]->settings;
        double left = g % GRAPHS_A_ROW * (PICTURE_WIDTH / (double)GRAPHS_A_ROW) + 10;
        if (graph_draw(svg, settings, &outcomes[drawn[g]], reader, label_of(plan, settings), left,
                       top + g / GRAPHS_A_ROW * (GRAPH_HEIGHT + GAP)) != 0)
            svg->failed = true;
    }
    double height = (count + GRAPHS_A_ROW - 1) / GRAPHS_A_ROW * (GRAPH_HEIGHT + GAP);
    if (count == 0 || (!first && !more)) return height;
    text_add(svg, "<text class=\"dim\" x=\"4\" y=\"%.1f\">%s%s%s</text>\n", top + height,
             first ? "Drawn is the first of the runs that have the topology, nodes and faults"
                   : "Drawn are topologies",
             plan->seeds ? ", with the first seed" : "",
             more ? "; of more than 6 such topologies the first 6." : ".");
    return height + LEGEND_ROW;
}
