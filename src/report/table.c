/* table.c: columns as wide as their figures need. */
#include "report/table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/human.h"
#include "report/text.h"

enum {
    STATE = 8,
    COUNT_MIN = 5, /* of pid and step, which grow with their figures */
    LOSS = 9,
    DRIFT = 7,
    RATE = 9,
    LIVE = 4,
    GAPS = 7,
    NODE_MIN = 4,
    NODE_MAX = 14
};

#define BOLD "\x1b[1m"
#define PLAIN "\x1b[0m"

/* Finished is green, in trouble red or yellow; the rest is left alone. */
static const char *state_color(const char *state)
{
    static const char *const green[] = {"done", "locked", "held", "agreed", NULL};
    static const char *const yellow[] = {"late",    "paused", "stopped", "suspect",
                                         "joining", "left",   NULL};
    static const char *const red[] = {"dead", "killed", "failed", "diverged", NULL};
    for (int i = 0; green[i]; i++)
        if (strcmp(state, green[i]) == 0) return "\x1b[32m";
    for (int i = 0; yellow[i]; i++)
        if (strcmp(state, yellow[i]) == 0) return "\x1b[33m";
    for (int i = 0; red[i]; i++)
        if (strcmp(state, red[i]) == 0) return "\x1b[31m";
    return "\x1b[36m";
}

static double clamp(double progress)
{
    return !(progress > 0) ? 0 : progress > 1 ? 1 : progress;
}

struct layout {
    int node, pid, step, gap;
};

static void widen(int *columns, uint64_t figure)
{
    int digits = 1;
    for (; figure >= 10; figure /= 10)
        digits++;
    if (digits > *columns) *columns = digits;
}

static struct layout lay_out(const struct table *table)
{
    int columns = table->columns < 68 ? 68 : table->columns > 160 ? 160 : (int)table->columns;
    struct layout layout = {
        .node = NODE_MIN, .pid = COUNT_MIN, .step = COUNT_MIN, .gap = columns < 96 ? 1 : 2};
    for (size_t i = 0; i < table->count; i++) {
        int width = (int)text_width(table->rows[i].node);
        if (width > layout.node) layout.node = width > NODE_MAX ? NODE_MAX : width;
        widen(&layout.pid, table->rows[i].pid);
        widen(&layout.step, table->rows[i].step);
    }
    int fixed = layout.pid + STATE + layout.step + LOSS + DRIFT + RATE + LIVE + GAPS * layout.gap;
    if (fixed + layout.node > columns) layout.node = columns - fixed;
    if (layout.node < NODE_MIN) layout.node = NODE_MIN; /* figures past all use: it gets wider */
    return layout;
}

static void add_gap(struct text *text, const struct layout *layout)
{
    text_add(text, "%*s", layout->gap, "");
}

static void add_header(struct text *text, const struct layout *layout, bool color)
{
    const struct {
        const char *title;
        int columns;
    } titles[] = {{"node", layout->node},  {"pid", -layout->pid}, {"state", STATE},
                  {"step", -layout->step}, {"loss", -LOSS},       {"drift", -DRIFT},
                  {"samples/s", -RATE},    {"live", -LIVE}};
    if (color) text_add(text, BOLD);
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) {
        if (i) add_gap(text, layout);
        text_column(text, titles[i].title, titles[i].columns);
    }
    text_add(text, "%s\n", color ? PLAIN : "");
}

static void add_cell(struct text *text, const struct layout *layout, const char *value, int columns)
{
    add_gap(text, layout);
    text_column(text, value, columns);
}

static void add_row(struct text *text, const struct layout *layout, const struct table_row *row,
                    bool color)
{
    char value[HUMAN_BYTES];
    text_column(text, row->node, layout->node);
    snprintf(value, sizeof value, "%llu", (unsigned long long)row->pid);
    add_cell(text, layout, row->pid ? value : "-", -layout->pid);
    if (color) text_add(text, "%s", state_color(row->state));
    add_cell(text, layout, row->state, STATE);
    if (color) text_add(text, PLAIN);
    snprintf(value, sizeof value, "%llu", (unsigned long long)row->step);
    add_cell(text, layout, value, -layout->step);
    add_cell(text, layout, human_loss(value, row->loss), -LOSS);
    add_cell(text, layout, human_drift(value, row->drift), -DRIFT);
    add_cell(text, layout, human_rate(value, row->samples_per_s), -RATE);
    snprintf(value, sizeof value, "%llu", (unsigned long long)row->live);
    add_cell(text, layout, row->live > 0 ? value : "-", -LIVE);
    text_add(text, "\n");
}

char *table_text(const struct table *table)
{
    struct layout layout = lay_out(table);
    struct text text;
    text_init(&text, 1 << 20);
    add_header(&text, &layout, table->color);
    for (size_t i = 0; i < table->count && i < table->rows_max; i++)
        add_row(&text, &layout, &table->rows[i], table->color);
    if (table->count > table->rows_max)
        text_add(&text, "and %zu more\n", table->count - table->rows_max);
    return text_take(&text);
}

char *table_plain_text(const struct table_plain *plain)
{
    char loss[HUMAN_BYTES], drift[HUMAN_BYTES], rate[HUMAN_BYTES], t[HUMAN_BYTES];
    struct text text;
    text_init(&text, 1024);
    text_add(&text, "%s  %llu of %llu alive%s%s  epoch %.2f %d%%  loss %s  drift %s  %s/s%s",
             human_seconds(t, plain->t), (unsigned long long)plain->live,
             (unsigned long long)plain->nodes, plain->phase ? ", " : "",
             plain->phase ? plain->phase : "", isfinite(plain->epoch) ? plain->epoch : 0,
             (int)(clamp(plain->progress) * 100), human_loss(loss, plain->loss),
             human_drift(drift, plain->drift),
             human_rate(rate, plain->samples_per_s > 0 ? plain->samples_per_s : NAN),
             plain->here ? " here" : "");
    return text_take(&text);
}
