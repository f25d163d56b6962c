/* bench.c: `parley bench WHAT`: figures, each with the machine's limit beside it.
 *
 * Happy path: the benchmark that was named adds its rows, which are printed as a table or as JSON.
 * Samples of a figure and of its limit are taken in turns: a busy machine slows both.
 */
#include "bench.h"

#include <assert.h>
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

extern char **environ;

double bench_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void bench_row(struct bench *bench, const char *name, const char *unit, enum figure_sense sense,
               const double *values, const double *limits, size_t repeats)
{
    assert(bench->count < BENCH_ROWS_MAX);
    figure_of(&bench->rows[bench->count++], name, unit, sense, values, limits, repeats);
}

/* Seconds a piece, of `calls` pieces. */
static double sample(void (*work)(void *), void *context, unsigned calls)
{
    double start = bench_now();
    for (unsigned i = 0; i < calls; i++)
        work(context);
    return (bench_now() - start) / calls;
}

/* How many pieces fill a sample; the machine warms up on the way. */
static unsigned calls_for(void (*work)(void *), void *context, double us)
{
    for (unsigned calls = 1;; calls *= 2)
        if (sample(work, context, calls) * calls * 1e6 >= us) return calls;
}

void bench_pair(struct bench *bench, const char *name, const char *unit, enum figure_sense sense,
                const struct bench_pair *pair, size_t repeats)
{
    double values[FIGURE_REPEATS_MAX], limits[FIGURE_REPEATS_MAX];
    unsigned calls = calls_for(pair->work, pair->context, pair->us);
    unsigned limit_calls = calls_for(pair->limit, pair->context, pair->us);
    for (size_t i = 0; i < repeats; i++) {
        values[i] = sample(pair->work, pair->context, calls);
        limits[i] = sample(pair->limit, pair->context, limit_calls);
        if (sense == FIGURE_MORE_IS_BETTER) {
            values[i] = pair->unit / values[i];
            limits[i] = pair->unit / limits[i];
        } else {
            values[i] *= pair->unit;
            limits[i] *= pair->unit;
        }
    }
    bench_row(bench, name, unit, sense, values, limits, repeats);
}

int bench_program(struct bench *bench, char *const *argv, void (*line)(void *, const char *),
                  void *context)
{
    posix_spawn_file_actions_t actions;
    int ends[2], status = 0, code = pipe(ends) ? errno : 0;
    char *text = NULL;
    size_t room = 0;
    pid_t child;
    if (code) goto out;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    code = posix_spawn(&child, "/proc/self/exe", &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    FILE *from = fdopen(ends[0], "r");
    while (!code && from && getline(&text, &room, from) > 0) {
        text[strcspn(text, "\n")] = 0;
        line(context, text);
    }
    if (from)
        fclose(from);
    else
        close(ends[0]);
    if (!code && waitpid(child, &status, 0) < 0) code = errno;
    free(text);
out:
    if (code || status)
        snprintf(bench->why, BENCH_WHY_BYTES, "parley %s: %s", argv[1],
                 code ? strerror(code) : "it failed (see above)");
    return code || status ? PARLEY_EFAIL : 0;
}

static int print(const struct settings *settings, const struct bench *bench)
{
    char *text = settings->json_stdout ? figures_json(bench->rows, bench->count)
                                       : figures_text(bench->rows, bench->count);
    if (!text) return say_failure(PARLEY_ENOMEM, NULL);
    bool failed = fputs(text, stdout) == EOF;
    failed = fflush(stdout) == EOF || failed;
    if (failed) say_error("stdout: %s", strerror(errno));
    free(text);
    return failed ? 1 : 0;
}

int bench_command(const struct settings *settings)
{
    static const struct {
        const char *name;
        int (*run)(struct bench *bench);
    } all[] = {{"step", bench_step},
               {"mix", bench_mix},
               {"wire", bench_wire},
               {"start", bench_start},
               {"sim", bench_sim}};
    struct bench bench = {.quick = settings->quick, .full = settings->full};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (strcmp(settings->operands[0], all[i].name) != 0) continue;
        int error = all[i].run(&bench);
        return error ? say_failure(error, bench.why) : print(settings, &bench);
    }
    return parley_error_status(PARLEY_EUSAGE);
}
