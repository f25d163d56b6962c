/* chart.c: see chart.h. */
#include "experiment/chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COLORS = 8, DASHES = 4 };

/* Room for titles and labels around the frame. */
enum { ABOVE = 26, BELOW = 40, BEFORE = 52, BEHIND = 14, LABEL_HEIGHT = 11 };

void chart_text(struct text *svg, const char *value)
{
    for (; *value; value++) {
        if (*value == '&')
            text_add(svg, "&amp;");
        else if (*value == '<')
            text_add(svg, "&lt;");
        else if (*value == '>')
            text_add(svg, "&gt;");
        else if (*value == '"')
            text_add(svg, "&quot;");
        else
            text_add(svg, "%c", *value);
    }
}

/* ---- Style ----------------------------------------------------------------------------------- */

static const struct paint {
    const char *name, *light, *dark;
} paints[] = {
    {"back", "#fff", "#15171b"},    {"ink", "#1c1e21", "#e8eaed"}, {"dim", "#5d6470", "#9aa2ad"},
    {"rule", "#dfe2e6", "#343941"}, {"c0", "#1f6fd6", "#6ba8ff"},  {"c1", "#c8650a", "#ffa14a"},
    {"c2", "#16803f", "#5dcc87"},   {"c3", "#c62f48", "#ff7588"},  {"c4", "#7646c4", "#b89cff"},
    {"c5", "#0b8088", "#4ccfd8"},   {"c6", "#85531f", "#d5a877"},  {"c7", "#b9378a", "#f189c7"},
    {"shade", "#ebecee", "#25282d"}};

static void add_paints(struct text *css, const struct chart_paint *parts, uint32_t count, bool dark)
{
    for (uint32_t p = 0; p < count; p++) {
        uint32_t i = 0;
        while (strcmp(paints[i].name, parts[p].paint) != 0)
            i++;
        text_add(css, "%s{%s:%s}", parts[p].selector, parts[p].property,
                 dark ? paints[i].dark : paints[i].light);
    }
}

/* No var(): to many readers of SVG a colour that they don't know is black, even after one that they
 * do. The dark ones are an at-rule of their own, which such readers pass over. */
void chart_paint(struct text *css, const struct chart_paint *parts, uint32_t count)
{
    add_paints(css, parts, count, false);
    text_add(css, "\n@media(prefers-color-scheme:dark){");
    add_paints(css, parts, count, true);
    text_add(css, "}\n");
}

void chart_style(struct text *css)
{
    static const struct chart_paint parts[] = {
        {"svg", "background", "back"}, {".back", "fill", "back"},   {"text", "fill", "ink"},
        {".dim", "fill", "dim"},       {".rule", "stroke", "rule"}, {".edge", "stroke", "dim"},
        {".node", "fill", "c0"},       {".later", "fill", "c1"},    {".dead", "fill", "back"},
        {".dead", "stroke", "c3"},     {".c0", "stroke", "c0"},     {".c1", "stroke", "c1"},
        {".c2", "stroke", "c2"},       {".c3", "stroke", "c3"},     {".c4", "stroke", "c4"},
        {".c5", "stroke", "c5"},       {".c6", "stroke", "c6"},     {".c7", "stroke", "c7"},
        {".f0", "fill", "c0"},         {".f1", "fill", "c1"},       {".f2", "fill", "c2"},
        {".f3", "fill", "c3"},         {".f4", "fill", "c4"},       {".f5", "fill", "c5"},
        {".f6", "fill", "c6"},         {".f7", "fill", "c7"}};
    text_add(css, ":root{color-scheme:light dark}\n");
    chart_paint(css, parts, sizeof parts / sizeof *parts);
    text_add(css, "svg{font:12px system-ui,sans-serif}.title{font-weight:600;font-size:13px}"
                  ".end{text-anchor:end}.middle{text-anchor:middle}"
                  ".mono{font-family:ui-monospace,monospace;font-size:11px}"
                  ".rule{stroke-width:1;fill:none}.edge{stroke-width:.8;fill:none}"
                  ".line{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}"
                  ".band{opacity:.18}.dead{stroke-width:1.6}"
                  ".d1{stroke-dasharray:7 4}.d2{stroke-dasharray:1.5 4}"
                  ".d3{stroke-dasharray:9 4 1.5 4}\n");
}

/* "line c1 d1" for style 1; 32 styles differ. */
static void add_class(struct text *svg, uint32_t style)
{
    text_add(svg, "class=\"line c%u d%u\"", style % COLORS, (style + style / COLORS) % DASHES);
}

void chart_sample(struct text *svg, uint32_t style, double x, double y)
{
    text_add(svg, "<path ");
    add_class(svg, style);
    text_add(svg, " d=\"M%.1f %.1fh30\"/>", x, y - 4);
}

/* ---- Axes ------------------------------------------------------------------------------------ */

/* It may be below the bottom: on a logarithmic axis 0 is. */
static bool stands(const struct chart *chart, double x, double y)
{
    return isfinite(x) && isfinite(y) && (chart->x_scale != AXIS_LOG || x > 0);
}

static bool shows(const struct chart *chart, double x, double y)
{
    return stands(chart, x, y) && (chart->y_scale != AXIS_LOG || y > 0);
}

static void widen(double *low, double *high, double value)
{
    if (value < *low) *low = value;
    if (value > *high) *high = value;
}

static void fit(const struct chart *chart, struct axis *x, struct axis *y)
{
    double left = INFINITY, right = -INFINITY, bottom = INFINITY, top = -INFINITY;
    for (uint32_t i = 0; i < chart->count; i++) {
        const struct chart_line *line = &chart->lines[i];
        for (uint32_t p = line->level && line->count ? line->count - 1 : 0; p < line->count; p++) {
            const double ys[] = {line->y[p], line->low ? line->low[p] : NAN,
                                 line->high ? line->high[p] : NAN};
            double at = line->level ? fabs(line->x[p]) + 1 : line->x[p];
            for (int v = 0; v < 3; v++) {
                if (!shows(chart, at, ys[v])) continue;
                if (!line->level) widen(&left, &right, at);
                if (ys[v] >= chart->y_least) widen(&bottom, &top, ys[v]);
            }
        }
    }
    if (chart->x_most > chart->x_least) {
        widen(&left, &right, chart->x_least);
        widen(&left, &right, chart->x_most);
    }
    if (chart->x_scale == AXIS_LINEAR && left > 0 && left <= right) left = 0;
    *x = axis_fit(chart->x_scale, chart->x_unit, left, right);
    *y = axis_fit(chart->y_scale, chart->y_unit, bottom, top);
}

struct frame {
    double left, top, width, height;
    struct axis x, y;
};

static double at_x(const struct frame *frame, double x)
{
    return frame->left + axis_place(&frame->x, x) * frame->width;
}

static double at_y(const struct frame *frame, double y)
{
    return frame->top + (1 - axis_place(&frame->y, y)) * frame->height;
}

static void draw_axes(struct text *svg, const struct frame *frame, const struct chart *chart)
{
    char label[AXIS_LABEL_BYTES];
    double bottom = frame->top + frame->height, label_y = INFINITY;
    for (uint32_t i = 0; i < frame->y.count; i++) {
        double y = at_y(frame, frame->y.ticks[i]);
        text_add(svg, "<path class=\"rule\" d=\"M%.1f %.1fh%.1f\"/>", frame->left, y, frame->width);
        if (label_y - y < LABEL_HEIGHT) continue; /* it would stand in the one below */
        label_y = y;
        text_add(svg, "<text class=\"dim end\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", frame->left - 6,
                 y + 4, axis_label(&frame->y, frame->y.ticks[i], label));
    }
    for (uint32_t i = 0; i < frame->x.count; i++) {
        double x = at_x(frame, frame->x.ticks[i]);
        text_add(svg, "<path class=\"rule\" d=\"M%.1f %.1fv4\"/>", x, bottom);
        text_add(svg, "<text class=\"dim middle\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", x,
                 bottom + 17, axis_label(&frame->x, frame->x.ticks[i], label));
    }
    text_add(svg, "<path class=\"rule\" d=\"M%.1f %.1fv%.1fh%.1f\"/>", frame->left, frame->top,
             frame->height, frame->width);
    text_add(svg, "<text class=\"dim middle\" x=\"%.1f\" y=\"%.1f\">%s%s%s%s</text>\n",
             frame->left + frame->width / 2, bottom + 34, chart->x_title,
             frame->x.unit_text[0] ? " (" : "", frame->x.unit_text,
             frame->x.unit_text[0] ? ")" : "");
}

/* ---- Lines ----------------------------------------------------------------------------------- */

static void draw_level(struct text *svg, const struct frame *frame, const struct chart *chart,
                       const struct chart_line *line)
{
    uint32_t last = line->count - 1;
    if (line->count == 0 || !shows(chart, fabs(line->x[last]) + 1, line->y[last])) return;
    text_add(svg, "<path ");
    add_class(svg, line->style);
    text_add(svg, " d=\"M%.1f %.1fh%.1f\"/>\n", frame->left, at_y(frame, line->y[last]),
             frame->width);
}

struct spot {
    double x, y; /* from 0 to 1 within the frame */
};

static struct spot spot_of(const struct frame *frame, double x, double y)
{
    return (struct spot){axis_reach(&frame->x, x), axis_reach(&frame->y, y)};
}

static void add_spot(struct text *svg, const struct frame *frame, char how, struct spot at)
{
    text_add(svg, "%c%.1f %.1f", how, frame->left + at.x * frame->width,
             frame->top + (1 - at.y) * frame->height);
}

/* Narrows the part of a segment between *from and *to to what has a + part * d within 0 and 1. */
static void narrow(double a, double d, double *from, double *to)
{
    if (d == 0) {
        if (a < 0 || a > 1) *to = -1;
        return;
    }
    double one = -a / d, other = (1 - a) / d;
    *from = fmax(*from, fmin(one, other));
    *to = fmin(*to, fmax(one, other));
}

/* Adds what of the segment lies within the frame; whether its end does. */
static bool add_segment(struct text *svg, const struct frame *frame, struct spot a, struct spot b,
                        bool is_down)
{
    double from = 0, to = 1;
    narrow(a.x, b.x - a.x, &from, &to);
    narrow(a.y, b.y - a.y, &from, &to);
    if (from > to) return false;
    const struct spot begin = {a.x + from * (b.x - a.x), a.y + from * (b.y - a.y)},
                      end = {a.x + to * (b.x - a.x), a.y + to * (b.y - a.y)};
    if (!is_down) add_spot(svg, frame, 'M', begin);
    add_spot(svg, frame, 'L', end);
    return to == 1;
}

static void draw_dot(struct text *svg, const struct frame *frame, uint32_t style, struct spot at,
                     double radius)
{
    double slack = 1e-9;
    if (fmin(at.x, at.y) < -slack || fmax(at.x, at.y) > 1 + slack) return;
    text_add(svg, "<circle class=\"f%u\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"/>\n", style % COLORS,
             frame->left + at.x * frame->width, frame->top + (1 - at.y) * frame->height, radius);
}

/* Of what lies past the ends of an axis nothing is drawn. */
static void draw_line(struct text *svg, const struct frame *frame, const struct chart *chart,
                      const struct chart_line *line)
{
    struct text path;
    struct spot at = {0, 0};
    uint32_t shown = 0;
    bool is_down = false;
    text_init(&path, svg->bytes_max);
    for (uint32_t p = 0; p < line->count; p++) {
        if (!stands(chart, line->x[p], line->y[p])) continue;
        struct spot before = at;
        at = spot_of(frame, line->x[p], line->y[p]);
        if (shown++ > 0) is_down = add_segment(&path, frame, before, at, is_down);
    }
    char *bytes = text_take(&path);
    if (!bytes) svg->failed = true;
    if (bytes && bytes[0]) {
        text_add(svg, "<path ");
        add_class(svg, line->style);
        text_add(svg, " d=\"%s\"/>\n", bytes);
    }
    free(bytes);
    if (shown > 0 && !line->dots && !line->goes_on) draw_dot(svg, frame, line->style, at, 2.5);
    for (uint32_t p = 0; line->dots && p < line->count; p++)
        if (shows(chart, line->x[p], line->y[p]))
            draw_dot(svg, frame, line->dots[p], spot_of(frame, line->x[p], line->y[p]), 3.5);
}

/* Along the upper edge and back along the lower one, which on a logarithmic axis may come to the
 * bottom; a level one is as wide as its last point, from side to side. */
static void draw_band(struct text *svg, const struct frame *frame, const struct chart *chart,
                      const struct chart_line *line)
{
    uint32_t first = line->level && line->count > 0 ? line->count - 1 : 0, shown = 0;
    for (uint32_t i = 0; i < 2 * (line->count - first); i++) {
        bool back = i >= line->count - first;
        uint32_t p = back ? 2 * line->count - first - 1 - i : first + i;
        double x = line->x[p], y = back ? line->low[p] : line->high[p];
        if (!line->level && !shows(chart, x, line->high[p])) continue;
        if (shown == 0) text_add(svg, "<path class=\"band f%u\" d=\"", line->style % COLORS);
        text_add(svg, "%c%.1f %.1f", shown++ ? 'L' : 'M',
                 line->level ? frame->left + back * frame->width : at_x(frame, x), at_y(frame, y));
        if (line->level) text_add(svg, "h%.1f", back ? -frame->width : frame->width);
    }
    if (shown > 0) text_add(svg, "Z\"/>\n");
}

void chart_draw(struct text *svg, const struct chart *chart, double left, double top, double width,
                double height)
{
    struct frame frame = {.left = left + BEFORE,
                          .top = top + ABOVE,
                          .width = width - BEFORE - BEHIND,
                          .height = height - ABOVE - BELOW};
    fit(chart, &frame.x, &frame.y);
    text_add(svg, "<text class=\"title\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", frame.left, top + 14,
             chart->title);
    draw_axes(svg, &frame, chart);
    for (uint32_t i = 0; i < chart->count; i++)
        if (chart->lines[i].low) draw_band(svg, &frame, chart, &chart->lines[i]);
    for (uint32_t i = 0; i < chart->count; i++)
        (chart->lines[i].level ? draw_level : draw_line)(svg, &frame, chart, &chart->lines[i]);
}
