/* tally.c: see tally.h. */
#include "experiment/tally.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/human.h"

enum { TABLE_BYTES_MAX = 1 << 24 };

const char *tally_title(enum tally_column column)
{
    static const char *const titles[TALLY_COLUMNS] = {
        "accuracy",  "loss",      "drift", "epochs", "training",
        "to target", "exchanges", "bytes", "in all", "agreed"};
    return titles[column];
}

const char *tally_axis_title(const struct plan *plan, uint32_t axis, char out[64])
{
    const char *name = option_info(plan->axes[axis])->name;
    bool taken = false;
    for (int c = 0; c < TALLY_COLUMNS; c++)
        taken |= strcmp(name, tally_title((enum tally_column)c)) == 0;
    snprintf(out, 64, "%s%s", taken ? "--" : "", name);
    return out;
}

bool tally_shows(const struct plan *plan, enum tally_column column)
{
    bool shows = column != TALLY_TARGET;
    for (uint32_t i = 0; i < plan->count; i++)
        shows |= plan->runs[i]->settings.accuracy > 0;
    return shows;
}

/* ---- Mean and spread ------------------------------------------------------------------------- */

struct spread {
    double mean, deviation; /* NAN without values; 0 of one value */
    uint32_t count;
};

static double value_of(const struct report_summary *s, enum tally_column column)
{
    switch (column) {
    case TALLY_ACCURACY:
        return s->test_accuracy;
    case TALLY_LOSS:
        return s->test_loss;
    case TALLY_DRIFT:
        return s->drift_trained;
    case TALLY_EPOCHS:
        return s->epochs;
    case TALLY_TRAINED:
        return s->trained_s;
    case TALLY_TARGET:
        return s->time_to_target_s;
    case TALLY_EXCHANGES:
        return (double)s->exchanges_trained;
    case TALLY_BYTES:
        return (double)s->bytes_trained;
    default:
        return (double)s->bytes_sent;
    }
}

/* Runs of a group that did not fail. */
static uint32_t well_in(const struct plan *plan, const struct sim_outcome *outcomes, uint32_t group)
{
    uint32_t well = 0;
    for (uint32_t i = 0; i < plan->count; i++)
        well += plan->runs[i]->group == group && !outcomes[i].error;
    return well;
}

bool tally_counts(const struct plan *plan, const struct sim_outcome *outcomes, uint32_t i)
{
    if (!outcomes[i].summary.strategy) return false;
    return !outcomes[i].error || well_in(plan, outcomes, plan->runs[i]->group) == 0;
}

/* Of run i, if it is of the group and counts there; else NAN. */
static double value_in(const struct plan *plan, const struct sim_outcome *outcomes, uint32_t group,
                       enum tally_column column, uint32_t i)
{
    bool counts = plan->runs[i]->group == group && tally_counts(plan, outcomes, i);
    return counts ? value_of(&outcomes[i].summary, column) : NAN;
}

static struct spread spread_of(const struct plan *plan, const struct sim_outcome *outcomes,
                               uint32_t group, enum tally_column column)
{
    struct spread spread = {.mean = NAN};
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < plan->count; i++) {
        double value = value_in(plan, outcomes, group, column, i);
        if (!isfinite(value)) continue;
        sum += value;
        spread.count++;
    }
    if (spread.count > 0) spread.mean = sum / spread.count;
    for (uint32_t i = 0; i < plan->count; i++) {
        double value = value_in(plan, outcomes, group, column, i);
        if (isfinite(value)) squares += (value - spread.mean) * (value - spread.mean);
    }
    if (spread.count > 1) spread.deviation = sqrt(squares / (spread.count - 1));
    return spread;
}

double tally_mean(const struct plan *plan, const struct sim_outcome *outcomes, uint32_t group,
                  enum tally_column column)
{
    return spread_of(plan, outcomes, group, column).mean;
}

void tally_range(const struct plan *plan, const struct sim_outcome *outcomes, uint32_t group,
                 enum tally_column column, double *least, double *most)
{
    *least = *most = NAN;
    for (uint32_t i = 0; i < plan->count; i++) {
        double value = value_in(plan, outcomes, group, column, i);
        if (!isfinite(value)) continue;
        *least = fmin(*least, value); /* of NAN and a number it is the number */
        *most = fmax(*most, value);
    }
}

static const char *agreed_cell(const struct plan *plan, const struct sim_outcome *outcomes,
                               uint32_t group, char out[64])
{
    uint64_t agreed = 0, nodes = 0;
    bool guesses = false;
    uint32_t runs = 0, well = well_in(plan, outcomes, group);
    char mark[32] = "";
    for (uint32_t i = 0; i < plan->count; i++) {
        if (plan->runs[i]->group != group) continue;
        agreed += outcomes[i].summary.agreed;
        nodes += outcomes[i].summary.nodes;
        guesses |= outcomes[i].guesses;
        runs++;
    }
    if (well < runs) snprintf(mark, sizeof mark, " !");
    if (well < runs && well > 0) snprintf(mark, sizeof mark, " ! mean of %" PRIu32, well);
    snprintf(out, 64, "%" PRIu64 " of %" PRIu64 "%s%s", agreed, nodes, guesses ? " ?" : "", mark);
    return out;
}

static const char *target_cell(const struct plan *plan, const struct sim_outcome *outcomes,
                               uint32_t group, char out[64])
{
    char text[HUMAN_BYTES];
    struct spread met = spread_of(plan, outcomes, group, TALLY_TARGET);
    uint32_t runs = well_in(plan, outcomes, group);
    for (uint32_t i = 0; runs == 0 && i < plan->count; i++)
        runs += plan->runs[i]->group == group;
    int length = snprintf(out, 64, "%s", human_seconds(text, met.mean));
    if (met.count > 0 && runs > 1)
        snprintf(out + length, 64 - (size_t)length, " (%" PRIu32 " of %" PRIu32 ")", met.count,
                 runs);
    return out;
}

bool tally_guesses(const struct plan *plan, const struct sim_outcome *outcomes)
{
    for (uint32_t i = 0; i < plan->count; i++)
        if (outcomes[i].guesses) return true;
    return false;
}

bool tally_failed(const struct plan *plan, const struct sim_outcome *outcomes)
{
    for (uint32_t i = 0; i < plan->count; i++)
        if (outcomes[i].error) return true;
    return false;
}

const char *tally_cell(const struct plan *plan, const struct sim_outcome *outcomes, uint32_t group,
                       enum tally_column column, char out[64])
{
    char text[HUMAN_BYTES], deviation[HUMAN_BYTES];
    if (column == TALLY_AGREED) return agreed_cell(plan, outcomes, group, out);
    if (column == TALLY_TARGET) return target_cell(plan, outcomes, group, out);
    struct spread spread = spread_of(plan, outcomes, group, column);
    switch (column) {
    case TALLY_ACCURACY:
    case TALLY_LOSS:
        if (spread.count > 1 && column == TALLY_LOSS)
            snprintf(out, 64, "%s ±%s", human_loss(text, spread.mean),
                     human_loss(deviation, spread.deviation));
        else if (spread.count > 1)
            snprintf(out, 64, "%.4f ±%.4f", spread.mean, spread.deviation);
        else
            snprintf(out, 64, "%s", human_loss(text, spread.mean));
        break;
    case TALLY_DRIFT:
        snprintf(out, 64, "%s", human_drift(text, spread.mean));
        break;
    case TALLY_EPOCHS:
        snprintf(out, 64, spread.count ? "%.2f" : "-", spread.mean);
        break;
    case TALLY_TRAINED:
        snprintf(out, 64, "%s", human_seconds(text, spread.mean));
        break;
    case TALLY_EXCHANGES:
        snprintf(out, 64, spread.mean > 0 ? "%.0f" : "-", spread.mean);
        break;
    default:
        snprintf(out, 64, "%s", spread.count ? human_bytes(text, (uint64_t)spread.mean) : "-");
    }
    return out;
}

const struct plan_run *tally_run(const struct plan *plan, uint32_t group)
{
    uint32_t i = 0;
    while (plan->runs[i]->group != group)
        i++;
    return plan->runs[i];
}

/* ---- The table ------------------------------------------------------------------------------- */

/* Column `c` of a group's line, or of the head: strategy, swept settings but the seed, results. */
static const char *cell(const struct plan *plan, const struct sim_outcome *outcomes, int group,
                        uint32_t c, char out[64])
{
    uint32_t axes = plan->axes_count - plan->seeds;
    const struct plan_run *run = group >= 0 ? tally_run(plan, (uint32_t)group) : NULL;
    if (c == 0) return run ? run->strategy : "strategy";
    if (c <= axes && !run) return tally_axis_title(plan, c - 1, out);
    if (c <= axes) return run->values[c - 1] ? run->values[c - 1] : "-";
    enum tally_column column = (enum tally_column)(c - 1 - axes);
    return run ? tally_cell(plan, outcomes, (uint32_t)group, column, out) : tally_title(column);
}

enum { COLUMNS_MAX = 1 + OPTION_ID_COUNT + TALLY_COLUMNS };

/* 0: the column is not shown. Names stand to the left, figures, whose width is negative, to the
 * right. */
static uint32_t lay_out(const struct plan *plan, const struct sim_outcome *outcomes,
                        int widths[COLUMNS_MAX])
{
    uint32_t axes = plan->axes_count - plan->seeds, columns = 1 + axes + TALLY_COLUMNS;
    char out[64];
    for (uint32_t c = 0; c < columns; c++) {
        size_t width = 0;
        bool shows = c <= axes || tally_shows(plan, (enum tally_column)(c - 1 - axes));
        for (int group = -1; shows && group < (int)plan->groups; group++) {
            size_t wide = text_width(cell(plan, outcomes, group, c, out));
            if (wide > width) width = wide;
        }
        widths[c] = c <= axes ? (int)width : -(int)width;
    }
    return columns;
}

/* Which it frees. */
static void add_lines(struct text *text, char *lines)
{
    if (!lines) text->failed = true;
    text_add(text, "%s", lines ? lines : "");
    free(lines);
}

char *tally_table(const struct plan *plan, const struct sim_outcome *outcomes)
{
    int widths[COLUMNS_MAX];
    uint32_t columns = lay_out(plan, outcomes, widths);
    struct text text;
    char out[64];
    text_init(&text, TABLE_BYTES_MAX);
    for (int group = -1; group < (int)plan->groups; group++) {
        for (uint32_t c = 0; c < columns; c++) {
            if (widths[c] == 0) continue;
            if (c > 0) text_add(&text, "  ");
            text_column(&text, cell(plan, outcomes, group, c, out), widths[c]);
        }
        text_add(&text, "\n");
    }
    if (plan->seeds)
        text_add(&text, "mean over %s%zu seeds, ± standard deviation\n",
                 plan->count < plan->planned ? "up to " : "",
                 plan->base->sweeps[OPTION_ID_SEED].count);
    add_lines(&text, plan_rates(plan));
    add_lines(&text, plan_unheeded(plan));
    if (tally_guesses(plan, outcomes)) text_add(&text, "?  %s\n", TALLY_GUESSES);
    if (tally_failed(plan, outcomes)) text_add(&text, "!  %s\n", TALLY_FAILED);
    return text_take(&text);
}

/* ---- CSV ------------------------------------------------------------------------------------- */

enum field_kind { BOOL, COUNT, REAL, STRING };

#define F(kind, name)                                                                              \
    {                                                                                              \
#name, kind, offsetof(struct sim_outcome, summary.name)                                    \
    }

/* Behind the strategy and the values of the sweep. */
static const struct field {
    const char *name;
    enum field_kind kind;
    size_t offset;
} fields[] = {
    F(BOOL, ok),
    {"parameters", COUNT, offsetof(struct sim_outcome, parameters)},
    F(COUNT, nodes),
    F(COUNT, live),
    F(COUNT, agreed),
    F(COUNT, known),
    F(REAL, test_accuracy),
    F(REAL, worst_accuracy),
    F(REAL, own_accuracy),
    F(REAL, own_accuracy_worst),
    F(REAL, own_accuracy_sd),
    F(REAL, test_loss),
    F(REAL, drift_trained),
    F(REAL, epochs),
    F(COUNT, steps),
    F(COUNT, samples),
    F(COUNT, exchanges),
    F(COUNT, exchanges_trained),
    F(COUNT, exchanges_dropped),
    F(COUNT, bytes_sent),
    F(COUNT, bytes_trained),
    F(REAL, mass_error),
    F(REAL, mass_dropped),
    F(REAL, time_to_target_s),
    F(REAL, trained_s),
    F(REAL, agreed_s),
    F(REAL, virtual_s),
    F(STRING, lr_scale),
    F(REAL, warmup),
    F(STRING, run_hash),
    F(STRING, digest),
};

enum { FIELDS = sizeof fields / sizeof *fields };

static void add_field(struct text *text, const struct field *field,
                      const struct sim_outcome *outcome)
{
    const void *value = (const char *)outcome + field->offset;
    text_add(text, ",");
    switch (field->kind) {
    case BOOL:
        text_add(text, "%s", *(const bool *)value ? "true" : "false");
        break;
    case COUNT:
        text_add(text, "%" PRIu64, *(const uint64_t *)value);
        break;
    case REAL:
        text_real(text, *(const double *)value);
        break;
    case STRING:
        if (*(const char *const *)value) text_add(text, "%s", *(const char *const *)value);
        break;
    }
}

char *tally_csv_head(const struct plan *plan)
{
    struct text text;
    text_init(&text, TABLE_BYTES_MAX);
    text_add(&text, "strategy");
    for (uint32_t i = 0; i < plan->axes_count; i++)
        text_add(&text, ",--%s", option_info(plan->axes[i])->name);
    for (size_t i = 0; i < FIELDS; i++)
        text_add(&text, ",%s", fields[i].name);
    text_add(&text, "\n");
    return text_take(&text);
}

char *tally_csv_row(const struct plan *plan, const struct plan_run *run,
                    const struct sim_outcome *outcome)
{
    struct text text;
    text_init(&text, TABLE_BYTES_MAX);
    text_add(&text, "%s", run->strategy);
    plan_fields(&text, plan, run);
    for (size_t i = 0; i < FIELDS; i++)
        add_field(&text, &fields[i], outcome);
    text_add(&text, "\n");
    return text_take(&text);
}
