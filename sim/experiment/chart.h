/* chart.h: lines in a frame with axes, as SVG. Colours and dashes are classes (c0 to c7, d0 to d3)
 * of the page's style, chart_style(). Thread rule: pure.
 */
#ifndef PARLEY_SIM_CHART_H
#define PARLEY_SIM_CHART_H

#include <stdbool.h>

#include "experiment/axis.h"
#include "report/text.h"

struct chart_line {
    const double *x, *y; /* [count]; points that are not finite, or whose x is not over 0 on a log
                            axis, are left out; a y of 0 lies below the bottom of one */
    const double *low, *high; /* [count]: the edges of a band behind the line; or NULL */
    const uint32_t *dots;     /* [count]: the style of a dot at each point; NULL: one at the end */
    uint32_t count;
    uint32_t style; /* lines of one style are told apart by nobody */
    bool level;     /* as high as its last point, from side to side */
    bool goes_on;   /* past its last point: no dot ends it */
};

struct chart {
    const char *title, *x_title;
    enum axis_scale x_scale, y_scale;
    enum axis_unit x_unit, y_unit;  /* y_unit: of a logarithmic axis */
    double x_least, x_most;         /* that the axis has at least; both 0: as the lines */
    double y_least;                 /* what lies below stretches no axis; 0: nothing is */
    const struct chart_line *lines; /* [count] */
    uint32_t count;
};

/* The chart with its titles in a box of width by height, its corner at (left, top). */
void chart_draw(struct text *svg, const struct chart *chart, double left, double top, double width,
                double height);

/* A sample of a line's colour and dashes, 30 wide, at the height of text whose base is at y. */
void chart_sample(struct text *svg, uint32_t style, double x, double y);

/* CSS for light and dark. */
void chart_style(struct text *css);

/* "th{color:#5d6470}": a rule in the style's colour of that name, for light and for dark. */
struct chart_paint {
    const char *selector, *property, *paint; /* paint: "back", "ink", "dim", "rule", "shade" */
};
void chart_paint(struct text *css, const struct chart_paint *parts, uint32_t count);

/* `value` with what is markup in HTML and SVG escaped. */
void chart_text(struct text *svg, const char *value);

#endif
