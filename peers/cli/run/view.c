/* view.c: what `parley run` shows and says: the relayed lines, the live table, the summary.
 *
 * On a terminal the table, and a line for all nodes below it, are redrawn in place at the bottom,
 * and lines are put in above it; elsewhere that line comes now and then.
 */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/run/run.h"
#include "cli/shared_data.h"
#include "clock.h"
#include "report/group.h"
#include "report/human.h"
#include "report/mass.h"
#include "report/summary.h"
#include "report/table.h"
#include "report/text.h"

enum {
    DRAW_US = 100000,
    ROWS_MAX = 24,
    ROWS_BESIDE = 4 /* of the terminal: a header, "and N more", the line for all, the cursor's */
};

/* What is wider than the terminal is cut at its edge: wrapped, it would be more lines than are
 * known of when it is cleared. */
#define CUT "\033[?7l"
#define WRAP "\033[?7h"

static double run_seconds(const struct run *run)
{
    return (double)(clock_now_us() - run->start_us) / 1e6;
}

/* ---- Lines ----------------------------------------------------------------------------------- */

void run_relay(struct run *run, const char *line, size_t size)
{
    json_out_put(&run->json, line, size, false);
}

char *run_lost_line(void *context, uint64_t lines)
{
    const struct run *run = context;
    struct report_line line = {
        .event = REPORT_LOST, .t = run_seconds(run), .as.lost = {.lines = lines}};
    return report_line_text(&line);
}

void run_tell(struct run *run, struct report_line *line)
{
    line->t = run_seconds(run);
    char *text = report_line_text(line);
    if (text) json_out_put(&run->json, text, strlen(text), line->event == REPORT_SUMMARY);
    free(text);
}

void run_view_clear(struct run *run)
{
    char text[32];
    if (run->drawn == 0) return;
    snprintf(text, sizeof text, "\r\033[%uA\033[J", run->drawn);
    say_drawn(text);
    run->drawn = 0;
}

void run_say(struct run *run, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    if (run->settings->level < PARLEY_LOG_INFO) return;
    int at = snprintf(text, sizeof text, "%7.2f s  ", run_seconds(run));
    va_start(arguments, format);
    vsnprintf(text + at, sizeof text - (size_t)at, format, arguments);
    va_end(arguments);
    run_view_clear(run);
    say_line(PARLEY_LOG_INFO, text);
}

/* ---- The table ------------------------------------------------------------------------------- */

static double epoch_of(const struct run *run)
{
    double epoch = 0;
    for (uint32_t i = 0; i < run->nodes; i++)
        if (run->children[i].told.epoch > epoch) epoch = run->children[i].told.epoch;
    return epoch;
}

/* What was used of the budget before a resume the nodes alone know: the least that one of
 * them takes for it, as a fast one thinks that the others are as far. 0: one has yet to tell; NAN:
 * nobody runs. */
static double told_progress(const struct run *run)
{
    double least = NAN;
    for (uint32_t i = 0; i < run->nodes; i++) {
        const struct child *child = &run->children[i];
        if (child->running && !child_is_still(child)) least = fmin(least, child->told.progress);
    }
    return least;
}

/* Of the budget; with several, of the one that is nearest to its end. */
double run_progress(const struct run *run)
{
    const struct settings *s = run->settings;
    double progress = 0, steps = 0, count = 0;
    if (run->spent) return 1; /* though a node that stands still has not done its part */
    if (s->epochs > 0) progress = epoch_of(run) / s->epochs;
    if (s->resume) progress = fmax(progress, told_progress(run));
    for (uint32_t i = 0; s->steps > 0 && i < run->nodes; i++) {
        if (!run->children[i].running) continue;
        steps += (double)run->children[i].told.step;
        count++;
    }
    if (count > 0) progress = fmax(progress, steps / count / (double)s->steps);
    if (s->time_us > 0 && run->train_us > 0)
        progress = fmax(progress, (double)(clock_now_us() - run->train_us) / (double)s->time_us);
    return fmin(progress, 1);
}

static const char *state_of(const struct child *child)
{
    if (child->paused) return "paused";
    if (child->stopped) return "stopped";
    if (child->running) return child->phase;
    if (strcmp(child->phase, "left") == 0 || child->agreed.json) return child->phase;
    return child->again ? "down" : "dead";
}

/* It runs, and has told where. */
static bool is_up(const struct child *child)
{
    return child->running && !child_is_still(child) && child->listen[0];
}

/* The caller frees it. */
static char *table_of(const struct run *run)
{
    struct table_row *rows = calloc(run->nodes, sizeof *rows);
    if (!rows) return NULL;
    for (uint32_t i = 0; i < run->nodes; i++) {
        const struct child *child = &run->children[i];
        rows[i] = (struct table_row){
            .node = child->name,
            .pid = child->running ? (uint64_t)child->process.pid : 0,
            .state = state_of(child),
            .step = child->told.step,
            .loss = child->told.loss,
            .drift = child->told.drift,
            .samples_per_s = is_up(child) ? child->told.samples_per_s : NAN,
            .live = child->running ? child->told.live : 0,
        };
    }
    unsigned room = say_rows(STDERR_FILENO);
    struct table table = {
        .rows = rows,
        .count = run->nodes,
        .rows_max = room < ROWS_MAX + ROWS_BESIDE ? room - ROWS_BESIDE : ROWS_MAX,
        .columns = say_columns(STDERR_FILENO),
        .color = say_color(run->settings, STDERR_FILENO),
    };
    char *text = room > ROWS_BESIDE ? table_text(&table) : NULL;
    free(rows);
    return text;
}

/* A line for all nodes. The caller frees it. */
static char *plain_of(const struct run *run)
{
    struct table_plain plain = {
        .t = run_seconds(run),
        .nodes = run->nodes,
        .epoch = epoch_of(run),
        .drift = NAN,
        .progress = run_progress(run),
    };
    uint32_t told = 0;
    for (uint32_t i = 0; i < run->nodes; i++) {
        const struct child *child = &run->children[i];
        if (!is_up(child)) continue;
        plain.live++;
        plain.samples_per_s += child->told.samples_per_s;
        if (isfinite(child->told.drift) && !(child->told.drift < plain.drift))
            plain.drift = child->told.drift;
        if (!isfinite(child->told.loss)) continue;
        plain.loss += child->told.loss;
        told++;
    }
    plain.loss = told > 0 ? plain.loss / told : NAN;
    return table_plain_text(&plain);
}

/* Both may be NULL. */
static void draw(struct run *run, const char *table, const char *plain)
{
    run_view_clear(run);
    say_drawn(CUT);
    if (table) say_drawn(table);
    say_drawn(WRAP);
    for (const char *c = table; c && *c; c++)
        run->drawn += *c == '\n';
    if (!plain) return;
    char text[1024];
    unsigned columns = say_columns(STDERR_FILENO);
    snprintf(text, sizeof text, "%.*s", (int)text_fit(plain, columns > 1 ? columns - 1 : 1), plain);
    say_drawn(text);
    say_drawn("\n");
    run->drawn++;
}

void run_view_draw(struct run *run)
{
    uint64_t now_us = clock_now_us();
    bool in_place = say_in_place(run->settings);
    double pause_s = human_pause_s((double)(now_us - run->start_us) / 1e6);
    uint64_t wait_us = in_place ? DRAW_US : (uint64_t)(pause_s * 1e6);
    if (!settings_wants_progress(run->settings)) return;
    if (now_us < (run->spoken_us ? run->spoken_us : run->start_us) + wait_us) return;
    if (in_place && say_is_behind()) return; /* the newest, when somebody looks again */
    run->spoken_us = now_us;
    char *table = in_place ? table_of(run) : NULL, *plain = plain_of(run);
    if (in_place)
        draw(run, table, plain);
    else if (plain)
        say_line(PARLEY_LOG_INFO, plain);
    free(table);
    free(plain);
}

/* ---- The end --------------------------------------------------------------------------------- */

/* Who was here to the end, of its own will: neither killed nor gone before. */
static bool is_live(const struct child *child)
{
    bool left = !child->agreed.json && strcmp(child->phase, "left") == 0;
    return child->used && !child->term_signal && !child->killed && !left;
}

/* Those that it decided. Of who died without saying so: half of those it took part in. */
static uint64_t exchanges_of(const struct child *child)
{
    if (!child->ledger.json) return (child->exchanges_before + child->told.exchanges) / 2;
    return child->exchanges_before / 2 + child->ledger.as.ledger.committed;
}

static void add_child(const struct child *child, struct report_summary *sum)
{
    sum->steps += child->steps_before + child->told.step;
    uint64_t sent = child->bytes_before + child->told.bytes_sent;
    sum->bytes_sent += sent;
    bool trained = child->bytes_trained > 0;
    sum->bytes_trained += trained ? child->bytes_trained : sent;
    sum->exchanges_trained +=
        trained ? child->exchanges_trained : child->exchanges_before + child->told.exchanges;
    sum->exchanges += exchanges_of(child);
    if (child->ledger.json) sum->exchanges_dropped += child->ledger.as.ledger.dropped;
    if (is_live(child)) sum->live++;
}

static bool holds(const struct child *child)
{
    return child->agreed.json && is_live(child);
}

static bool alike(void *context, uint32_t a, uint32_t b)
{
    const struct child *children = context;
    const struct report_agreed *one = &children[a].agreed.as.agreed;
    const struct report_agreed *other = &children[b].agreed.as.agreed;
    return holds(&children[a]) && holds(&children[b]) && strcmp(one->digest, other->digest) == 0;
}

/* What it says of the end is the largest group's, but for the worst that anybody holds. */
static void add_agreement(const struct run *run, struct report_summary *sum)
{
    uint32_t holders = 0, first = 0;
    for (uint32_t i = 0; i < run->nodes; i++) {
        const struct report_agreed *agreed = &run->children[i].agreed.as.agreed;
        if (!holds(&run->children[i])) continue;
        holders++;
        if (agreed->known > sum->known) sum->known = agreed->known;
        sum->drift_before = fmax(sum->drift_before, agreed->drift_before);
        sum->worst_accuracy = fmin(sum->worst_accuracy, agreed->test_accuracy);
    }
    sum->agreed = group_largest(run->nodes, alike, run->children, &first);
    if (holders == 0) return;
    const struct report_agreed *agreed = &run->children[first].agreed.as.agreed;
    sum->test_accuracy = agreed->test_accuracy;
    sum->test_loss = agreed->test_loss;
    if (sum->agreed == holders) sum->digest = agreed->digest;
}

static void add_mass(const struct run *run, struct report_summary *sum)
{
    const struct report_ledger **ledgers = calloc(run->nodes, sizeof *ledgers);
    size_t count = 0;
    if (!ledgers) return;
    for (uint32_t i = 0; i < run->nodes; i++)
        if (run->children[i].ledger.json) ledgers[count++] = &run->children[i].ledger.as.ledger;
    struct mass_account account = mass_account(ledgers, count);
    sum->mass_error = account.error;
    sum->mass_dropped = account.skipped;
    free(ledgers);
}

/* The first error that a node ended with. */
static int first_error(const struct run *run)
{
    for (uint32_t i = 0; i < run->nodes; i++) {
        const struct child *child = &run->children[i];
        if (child->killed || child->term_signal || child->status == 0) continue;
        if (child->has_error) say(PARLEY_LOG_ERROR, "%s: %s", child->name, child->message);
        if (child->hint[0]) say(PARLEY_LOG_ERROR, "hint: %s", child->hint);
        return run_error_of(child);
    }
    return 0;
}

/* What went wrong last at nodes that went on. Without -q it was said when it happened. */
static void say_troubles(const struct run *run)
{
    if (run->settings->level >= PARLEY_LOG_INFO) return;
    for (uint32_t i = 0; i < run->nodes; i++) {
        const struct child *child = &run->children[i];
        if (child->has_error && (child->killed || child->term_signal || child->status == 0))
            say(PARLEY_LOG_ERROR, "%s: %s", child->name, child->message);
    }
}

static void print_summary(const struct run *run, const struct report_summary *sum)
{
    struct summary summary = {
        .line = sum,
        .nodes = sum->known > 0 ? sum->known : sum->live,
        .drift = sum->digest ? 0 : NAN,
        .test_samples = run->test_samples,
        .target = run->settings->accuracy,
        .trained_s = run->stop_us ? (double)(run->stop_us - run->start_us) / 1e6 : sum->wall_s,
        .path = sum->ok ? run->settings->out : NULL,
        .classes = run->classes,
        .rate = run->settings->rate,
    };
    say_summary(&summary);
}

/* Of the nodes that live, or of all that were there. */
static uint64_t least_passes(const struct run *run, bool live)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < run->nodes; i++) {
        const struct child *child = &run->children[i];
        if ((live ? is_live(child) : child->used) && child->told.passes < least)
            least = child->told.passes;
    }
    return least;
}

/* Of an epoch that was begun before nobody knows what was trained on then. */
static void drop_resumed(const struct run *run, struct report_summary *sum)
{
    for (uint32_t i = 0; i < run->nodes; i++)
        for (uint64_t k = 0; k < run->children[i].passes_before && k < sum->coverage_count; k++)
            sum->coverage[k] = 0;
}

static void add_coverage(const struct run *run, struct report_summary *sum)
{
    struct coverage coverage;
    if (!shared_coverage_map(run->coverage, (uint32_t)run->samples, &coverage)) return;
    sum->coverage_count = coverage_parts(&coverage, sum->epochs, sum->coverage);
    drop_resumed(run, sum);
    munmap(coverage.words, coverage_bytes(coverage.samples));
    sum->epochs_whole = coverage_whole(sum->coverage, sum->coverage_count, sum->epochs,
                                       least_passes(run, sum->live > 0),
                                       strcmp(run->settings->partition, "iid") == 0);
}

int run_view_end(struct run *run)
{
    struct report_line line = {.event = REPORT_SUMMARY};
    struct report_summary *sum = &line.as.summary;
    char *table = run->drawn > 0 ? table_of(run) : NULL;
    if (table) draw(run, table, NULL);
    free(table);
    sum->nodes = run->nodes;
    sum->strategy = run->settings->values[OPTION_ID_STRATEGY].text;
    sum->test_accuracy = sum->test_loss = sum->worst_accuracy = sum->drift_before = NAN;
    for (uint32_t i = 0; i < run->nodes; i++)
        add_child(&run->children[i], sum);
    /* Both sides counted; that of the dead may be missing in the ledgers. */
    sum->exchanges_trained /= 2;
    if (sum->exchanges_trained > sum->exchanges) sum->exchanges_trained = sum->exchanges;
    add_agreement(run, sum);
    for (uint32_t i = 0; sum->agreed == 0 && i < run->nodes; i++)
        sum->known += run->children[i].used;
    add_mass(run, sum);
    int error = run->failed ? run->failed : first_error(run);
    if (!error && (sum->agreed < sum->live || sum->agreed == 0 || !sum->digest))
        error = PARLEY_ENO_AGREEMENT;
    sum->ok = !error;
    sum->epochs = epoch_of(run);
    sum->samples = sum->steps * run->settings->batch;
    if (strcmp(run->settings->optimizer, "gd") == 0) /* whose steps are as large as the shares */
        sum->samples = (uint64_t)(sum->epochs * (double)run->samples + 0.5);
    if (run->samples > 0) add_coverage(run, sum);
    sum->wall_s = run_seconds(run);
    sum->time_to_target_s = run->target_us ? (double)(run->target_us - run->start_us) / 1e6 : NAN;
    run_tell(run, &line);
    if (run->json.fd != STDOUT_FILENO && !run->failed) print_summary(run, sum);
    if (!run->failed) say_troubles(run);
    size_t left = run_faults_left(run);
    if (!run->failed && left > 0)
        say(PARLEY_LOG_WARN, FAULTS_LEFT, left, run->settings->faults.count);
    if (error == PARLEY_ENO_AGREEMENT)
        say(PARLEY_LOG_ERROR, "%" PRIu64 " of %" PRIu64 " live nodes agreed", sum->agreed,
            sum->live);
    return error;
}
