/* lone.c: one node alone, by the public API.
 *
 *   - the library says which version it is
 *   - no line comes past log_level, whoever has written it
 *   - a model whose place is from the working folder is written there, wherever that is by then
 *   - a stop without a cause takes none back
 *   - what is reported without a step counts: its samples, and a loss that is not finite
 *   - the result is the trainer's only once it has seen the end
 *
 * Plain main(), so that it runs under ThreadSanitizer.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <uv.h>

#include "check.h"
#include "parley/parley.h"

enum { FLOATS = 10, STEPS = 3 };

static float x[FLOATS];
static unsigned lines[PARLEY_LOG_DEBUG + 1]; /* by level */

static struct parley_options plain(void)
{
    struct parley_options options;
    parley_options_defaults(&options);
    options.config.name = "n0";
    options.config.parameters = FLOATS;
    options.config.steps_budget = STEPS;
    options.vectors[0] = x;
    return options;
}

static struct parley *start(const struct parley_options *options)
{
    char why[256];
    struct parley *p;
    if (!parley_open(&p, options, why, sizeof why)) return p;
    fprintf(stderr, "%s\n", why);
    exit(1);
}

/* To its end; steps take no time. */
static struct parley_result train(struct parley *p)
{
    struct parley_result result;
    struct parley_turn turn;
    const struct parley_step step = {.steps = 1, .samples = 1};
    const struct parley_step *made = NULL;
    while (parley_boundary(p, made, &turn) == PARLEY_GO)
        made = &step;
    parley_result(p, &result);
    return result;
}

/* ---- Lines ----------------------------------------------------------------------------------- */

static void count_lines(void *context, struct parley *p, const struct parley_update *update)
{
    (void)context;
    (void)p;
    if (update->type == PARLEY_UPDATE_LOG) lines[update->log.level]++;
}

/* A folder in the place of the record is what the files' thread warns of. */
static void warn_as_asked(void)
{
    char folder[] = "/tmp/parley-lone-XXXXXX", out[64], record[96];
    if (!mkdtemp(folder)) exit(1);
    snprintf(out, sizeof out, "%s/model", folder);
    snprintf(record, sizeof record, "%s.agreement.json", out);
    for (int level = PARLEY_LOG_WARN; level >= PARLEY_LOG_ERROR; level--) {
        memset(lines, 0, sizeof lines);
        if (mkdir(record, 0700)) exit(1);
        struct parley_options options = plain();
        options.out = out;
        options.config.log_level = level;
        options.on_update = count_lines;
        struct parley *p = start(&options);
        check(train(p).agreed, "a model without a record is agreed on, too");
        parley_close(p);
        check(lines[PARLEY_LOG_WARN] == (level == PARLEY_LOG_WARN), "warnings that are asked for");
        check(lines[PARLEY_LOG_INFO] == 0, "no line past the level");
        check(!unlink(out) && !rmdir(record), "the model is there, and no record");
    }
    check(!rmdir(folder), "and nothing else");
}

/* ---- Files ----------------------------------------------------------------------------------- */

static void write_from(const char *folder, const char *out)
{
    char record[64];
    struct parley_options options = plain();
    if (chdir(folder)) exit(1);
    snprintf(record, sizeof record, "%s.agreement.json", out);
    options.out = out;
    struct parley *p = start(&options);
    if (chdir("other")) exit(1);
    check(train(p).agreed, "the model is agreed on");
    parley_close(p);
    check(access("model", F_OK) != 0, "no file where the program is by now");
    if (chdir("..")) exit(1);
    check(!unlink(out), "the model is where the program was");
    check(!unlink(record), "and its record");
}

static void write_where_it_was(void)
{
    char folder[] = "/tmp/parley-lone-XXXXXX", from[4096];
    if (!getcwd(from, sizeof from) || !mkdtemp(folder) || chdir(folder) || mkdir("other", 0700) ||
        mkdir("in", 0700))
        exit(1);
    write_from(folder, "model");
    write_from(folder, "in/model");
    check(!rmdir("other") && !rmdir("in") && !rmdir(folder), "and nothing else");
    if (chdir(from)) exit(1);
}

/* ---- Stops ----------------------------------------------------------------------------------- */

/* On the loop's own thread, which can obey neither before both are given. */
static void stop_and_not(void *context, struct parley *p, const struct parley_update *update)
{
    bool *done = context;
    if (*done || update->type == PARLEY_UPDATE_LOG) return;
    *done = true;
    parley_stop(p, PARLEY_STOP_TARGET);
    parley_stop(p, PARLEY_STOP_NONE);
}

static void stop_for_a_cause(void)
{
    bool done = false;
    struct parley_options options = plain();
    options.config.steps_budget = 100000; /* where it does not stop, it ends all the same */
    options.on_update = stop_and_not;
    options.context = &done;
    struct parley *p = start(&options);
    struct parley_result result = train(p);
    check(done && result.agreed && result.view.stop == PARLEY_STOP_TARGET, "the stop holds");
    parley_close(p);
}

/* ---- Reports without a step ------------------------------------------------------------------ */

/* Each step is made of three reports. */
static void count_parts_of_steps(void)
{
    struct parley_options options = plain();
    struct parley *p = start(&options);
    struct parley_step step = {0};
    struct parley_result result;
    struct parley_turn turn;
    for (unsigned part = 0; parley_boundary(p, &step, &turn) == PARLEY_GO; part++)
        step = (struct parley_step){.steps = part % 3 == 2, .samples = 10};
    parley_result(p, &result);
    check(result.view.version == STEPS, "the steps are made");
    check(result.view.samples_cluster == 30 * STEPS, "and all samples count");
    parley_close(p);
}

/* One that was never heard of would let this go on and on. */
static void lose_without_a_step(void)
{
    struct parley_options options = plain();
    struct parley *p = start(&options);
    struct parley_step step = {0};
    struct parley_turn turn;
    int code;
    while ((code = parley_boundary(p, &step, &turn)) == PARLEY_GO)
        step = (struct parley_step){.steps = 0, .samples = 1, .loss = (double)NAN};
    check(code == PARLEY_EDIVERGED, "a loss that is not finite ends it");
    parley_close(p);
}

/* ---- Results --------------------------------------------------------------------------------- */

static void on_end(void *context, struct parley *p, const struct parley_update *update)
{
    (void)p;
    if (update->type == PARLEY_UPDATE_FINISHED) uv_sem_post(context);
}

/* As after an error of the trainer's own: it has not come to the next boundary. */
static void look_too_early(void)
{
    uv_sem_t ended;
    struct parley_result result;
    struct parley_options options = plain();
    uv_sem_init(&ended, 0);
    options.on_update = on_end;
    options.context = &ended;
    struct parley *p = start(&options);
    parley_leave(p);
    uv_sem_wait(&ended);
    parley_result(p, &result);
    check(result.view.phase == 0 && result.view.known == 0, "there is no result before the end");
    result = train(p);
    check(result.view.phase == PARLEY_PHASE_LEFT && !result.agreed, "then there is");
    parley_close(p);
    uv_sem_destroy(&ended);
}

int main(void)
{
    check(!strcmp(parley_version(), PARLEY_VERSION), "it is the version that was built");
    warn_as_asked();
    write_where_it_was();
    stop_for_a_cause();
    count_parts_of_steps();
    lose_without_a_step();
    look_too_early();
    return failures ? 1 : 0;
}
