/* experiment.c: see experiment.h.
 *
 *   plan -> data, each set once -> files that are to be written -> runs -> table, report
 */
#include "experiment/experiment.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/remarks.h"
#include "experiment/page.h"
#include "experiment/plan.h"
#include "experiment/points.h"
#include "experiment/processes.h"
#include "experiment/repeat.h"
#include "experiment/tally.h"
#include "report/human.h"
#include "run/output.h"
#include "run/run.h"
#include "run/talk.h"
#include "settings/simulate.h"
#include "world/compute/pages.h"

struct data_set {
    const char *data, *test; /* as in --data and --test; borrowed */
    struct source source;
};

struct experiment {
    const struct settings *settings;
    const struct source_reader *reader; /* borrowed */
    struct plan plan;
    struct data_set *sets; /* [sets_count]; owned */
    uint32_t sets_count;
    uint32_t *set_of;             /* [plan.count] */
    struct sim_outcome *outcomes; /* [plan.count], with the fates behind them: shared memory */
    size_t outcomes_bytes;
    unsigned how; /* enum sim_run_how */
    FILE *json, *csv, *curves;
    double start_s;
    int error;   /* the first */
    int stopped; /* the signal that stopped the runs, or 0 */
};

/* ---- Set-up ---------------------------------------------------------------------------------- */

static bool same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* A batch is drawn from all over the set. */
static void lay_out(struct dataset *set)
{
    size_t values = (size_t)set->count * set->features;
    sim_pages_collapse(set->bytes, values);
    sim_pages_collapse(set->values, values * sizeof *set->values);
}

static int load_data(struct experiment *e)
{
    char why[SETTINGS_WHY_BYTES] = "";
    struct remarks remarks;
    e->set_of = calloc(e->plan.count, sizeof *e->set_of);
    e->sets = calloc(e->plan.count, sizeof *e->sets);
    if (!e->set_of || !e->sets) return sim_blame(PARLEY_ENOMEM, "");
    for (uint32_t i = 0; i < e->plan.count; i++) {
        const struct settings *s = &e->plan.runs[i]->settings;
        uint32_t set = 0;
        while (set < e->sets_count &&
               !(same(e->sets[set].data, s->data) && same(e->sets[set].test, s->test)))
            set++;
        e->set_of[i] = set;
        if (set < e->sets_count) continue;
        struct data_set *fresh = &e->sets[e->sets_count++];
        fresh->data = s->data;
        fresh->test = s->test;
        int error = source_load(&fresh->source, e->reader, s->data, s->test, why, sizeof why);
        if (error) return sim_blame(error, why);
        remarks_of(&remarks, &fresh->source);
        for (uint32_t r = 0; r < remarks.count; r++)
            sim_say(PARLEY_LOG_WARN, "sim: %s", remarks.text[r]);
        lay_out(&fresh->source.train);
    }
    return 0;
}

/* Writes and frees. */
static int put(FILE *file, char *text)
{
    if (text) fputs(text, file);
    fflush(file);
    free(text);
    return text ? 0 : sim_blame(PARLEY_ENOMEM, "");
}

/* A file that can't be written is better known before hours of runs than after. */
static int open_files(struct experiment *e)
{
    const struct settings *s = e->settings;
    int error = e->plan.count > 1 ? sim_output_open(&e->json, "json", s->json) : 0;
    if (!error) error = sim_output_open(&e->csv, "csv", s->csv);
    if (!error) error = sim_output_open(&e->curves, "curves", s->curves);
    if (!error && s->report) error = page_check(s->report);
    if (!error && e->csv) error = put(e->csv, tally_csv_head(&e->plan));
    if (!error && e->curves) error = put(e->curves, points_csv_head(&e->plan));
    return error;
}

/* For the outcomes, where the processes of the runs can write them. */
static int make_room(struct experiment *e)
{
    size_t nodes = 0;
    for (uint32_t i = 0; i < e->plan.count; i++)
        nodes += sim_run_nodes(&e->plan.runs[i]->settings);
    e->outcomes_bytes = e->plan.count * sizeof *e->outcomes + nodes;
    e->outcomes = processes_share(e->outcomes_bytes);
    if (!e->outcomes) return sim_blame(PARLEY_ENOMEM, "");
    uint8_t *fates = (uint8_t *)(e->outcomes + e->plan.count);
    for (uint32_t i = 0; i < e->plan.count; i++) {
        e->outcomes[i].fates = fates;
        fates += sim_run_nodes(&e->plan.runs[i]->settings);
    }
    return 0;
}

static int prepare(struct experiment *e)
{
    char why[SETTINGS_WHY_BYTES] = "";
    int error = plan_init(&e->plan, e->settings, why);
    if (error) return sim_blame(error, why);
    error = make_room(e);
    if (!error) error = open_files(e);
    if (!error) error = load_data(e);
    if (e->plan.count > 1) e->how |= SIM_RUN_SILENT;
    if (e->settings->report || e->curves) e->how |= SIM_RUN_CURVE;
    return error;
}

/* ---- What is said of a run ------------------------------------------------------------------- */

static int say_summary(const struct experiment *e, uint32_t i)
{
    int error = 0;
    const struct sim_outcome *outcome = &e->outcomes[i];
    struct report_line line = {
        .event = REPORT_SUMMARY, .t = outcome->summary.virtual_s, .as.summary = outcome->summary};
    if (!e->json || !outcome->summary.strategy) return 0;
    line.as.summary.strategy = e->plan.runs[i]->strategy;
    char *swept = plan_json(&e->plan, e->plan.runs[i], &error);
    line.as.summary.swept = swept;
    int written = put(e->json, report_line_text(&line));
    free(swept);
    return error ? error : written;
}

static void say_people(const struct experiment *e, uint32_t i)
{
    const struct sim_outcome *outcome = &e->outcomes[i];
    char *label = plan_label(&e->plan, e->plan.runs[i], true);
    if (outcome->error) {
        char *line = repeat_line(&e->plan.runs[i]->settings);
        sim_say(PARLEY_LOG_ERROR, "sim: %s: %s; to repeat it: %s", label ? label : "?",
                parley_error_text(outcome->error), line ? line : "?");
        free(line);
    } else {
        const struct report_summary *summary = &outcome->summary;
        char result[40], drift[HUMAN_BYTES];
        if (isfinite(summary->test_accuracy))
            snprintf(result, sizeof result, "accuracy %.4f", summary->test_accuracy);
        else if (isfinite(summary->test_loss))
            snprintf(result, sizeof result, "loss %.4g", summary->test_loss);
        else
            snprintf(result, sizeof result, "drift %s", human_drift(drift, summary->drift_trained));
        sim_show("%8.1f s  run %" PRIu32 " of %" PRIu32 ": %s: %s", sim_report_wall() - e->start_s,
                 i + 1, e->plan.count, label ? label : "?", result);
    }
    free(label);
}

static int say(const struct experiment *e, uint32_t i)
{
    int error = say_summary(e, i);
    /* A run alone that was not judged has been refused, with a word. */
    bool judged = e->outcomes[i].summary.strategy != NULL;
    if (e->plan.count > 1 || (e->outcomes[i].error && judged)) say_people(e, i);
    if (!error && e->csv && judged)
        error = put(e->csv, tally_csv_row(&e->plan, e->plan.runs[i], &e->outcomes[i]));
    if (!error && e->curves && judged)
        error = put(e->curves, points_csv_rows(&e->plan, i, &e->outcomes[i]));
    return error;
}

/* ---- The runs -------------------------------------------------------------------------------- */

static void make(void *arg, uint32_t i)
{
    struct experiment *e = arg;
    const struct source *data = &e->sets[e->set_of[i]].source;
    sim_run(&e->plan.runs[i]->settings, data, e->reader, e->how, &e->outcomes[i]);
}

static void ended(void *arg, uint32_t i, bool died)
{
    struct experiment *e = arg;
    e->plan.runs[i]->made = true;
    if (died) e->outcomes[i].error = PARLEY_EFAIL;
    int said = say(e, i);
    if (!e->error) e->error = e->outcomes[i].error ? e->outcomes[i].error : said;
}

/* Threads that runs do not need for being side by side are theirs to compute with. */
static int run_all(struct experiment *e)
{
    const struct processes_job job = {make, ended, e};
    uint32_t threads = sim_threads(e->settings);
    for (uint32_t i = 0; e->plan.count > 1 && i < e->plan.count; i++)
        e->plan.runs[i]->settings.threads = threads > e->plan.count ? threads / e->plan.count : 1;
    if (e->plan.count > 1)
        sim_show("%8.1f s  %" PRIu32 " runs, %" PRIu32 " at a time", sim_report_wall() - e->start_s,
                 e->plan.count, threads < e->plan.count ? threads : e->plan.count);
    int error = sim_blame(processes_run(&job, e->plan.count, threads, &e->stopped), "");
    return error ? error : e->error;
}

/* ---- The end --------------------------------------------------------------------------------- */

/* Leaves the runs that a signal did not break off, and tells how many there are. */
static void drop_unmade(struct experiment *e)
{
    uint32_t made = 0;
    for (uint32_t i = 0; i < e->plan.count; i++) {
        if (!e->plan.runs[i]->made) continue;
        struct sim_outcome *outcome = &e->outcomes[made++];
        *outcome = e->outcomes[i];
        if (outcome->summary.digest) outcome->summary.digest = outcome->digest;
        if (outcome->summary.run_hash) outcome->summary.run_hash = outcome->hash;
    }
    plan_drop_unmade(&e->plan);
    sim_say(PARLEY_LOG_ERROR, "sim: stopped after %" PRIu32 " of %" PRIu32 " runs", e->plan.count,
            e->plan.planned);
}

static int conclude(struct experiment *e)
{
    int error = 0;
    if (e->stopped) drop_unmade(e);
    if (e->plan.count == 0) return 0;
    if (e->plan.planned > 1 && !sim_output_takes_stdout(e->settings))
        error = put(stdout, tally_table(&e->plan, e->outcomes));
    if (error) return error;
    return e->settings->report ? page_write(e->settings->report, &e->plan, e->outcomes, e->reader)
                               : 0;
}

static int close_all(struct experiment *e)
{
    const struct settings *s = e->settings;
    const struct {
        FILE *file;
        const char *option, *path;
    } files[] = {
        {e->json, "json", s->json}, {e->csv, "csv", s->csv}, {e->curves, "curves", s->curves}};
    int error = 0;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        int closed = sim_output_close(files[i].file, files[i].option, files[i].path);
        if (!error) error = closed;
    }
    for (uint32_t i = 0; i < e->sets_count; i++)
        source_close(&e->sets[i].source);
    free(e->sets);
    free(e->set_of);
    processes_unshare(e->outcomes, e->outcomes_bytes);
    plan_close(&e->plan);
    return error;
}

int sim_experiment(const struct settings *settings, const struct source_reader *reader)
{
    struct experiment e = {.settings = settings, .reader = reader, .start_s = sim_report_wall()};
    int error = prepare(&e);
    if (!error) {
        error = run_all(&e);
        int concluded = conclude(&e);
        if (!error) error = concluded;
    }
    int closed = close_all(&e);
    if (e.stopped) processes_stop(e.stopped);
    return error ? error : closed;
}
