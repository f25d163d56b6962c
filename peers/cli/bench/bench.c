/* bench.c: `parley bench WHAT`: figures, each with the machine's limit beside it.
 *
 * Happy path: the benchmark that was named adds its rows, which are printed as they come, as a
 * table or as JSON. Samples of a figure and of its limit are taken in turns: a busy machine slows
 * both.
 */
#include "cli/bench/bench.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"

double bench_now(void)
{
    return (double)uv_hrtime() / 1e9;
}

float *bench_vector(size_t count)
{
    float *made = aligned_alloc(64, (count * sizeof(float) + 63) / 64 * 64);
    for (size_t i = 0; made && i < count; i++)
        made[i] = (float)(i % 7) / 8;
    return made;
}

int bench_trainer(struct bench *bench, const char *model, const char *optimizer, double rate,
                  const struct dataset *set, struct trainer **trainer, struct trainer_node *node)
{
    const struct trainer_options options = {.model = model,
                                            .optimizer = optimizer,
                                            .schedule = "cosine",
                                            .rate = rate,
                                            .numbers = {.momentum = 0.9},
                                            .batch = BENCH_BATCH,
                                            .seed = 1};
    uint32_t *share = malloc(set->count * sizeof *share);
    int error = share ? 0 : PARLEY_ENOMEM;
    if (!error) error = trainer_new(trainer, &options, set, bench->why, BENCH_WHY_BYTES);
    for (uint32_t i = 0; !error && i < set->count; i++)
        share[i] = i;
    if (!error) error = trainer_share(*trainer, node, share, set->count, NULL, 1);
    free(share);
    return error;
}

void bench_round(const char *what, size_t round, size_t rounds)
{
    if (!isatty(STDERR_FILENO)) return;
    char line[128];
    int at = snprintf(line, sizeof line, "measuring %.80s", what);
    if (rounds > 1)
        snprintf(line + at, sizeof line - (size_t)at, ", round %zu of %zu", round + 1, rounds);
    say_standing(line);
}

static void print(struct bench *bench, char *text)
{
    if (!text)
        bench->unwritten = ENOMEM;
    else if (fputs(text, stdout) == EOF || fflush(stdout) == EOF)
        bench->unwritten = errno;
    free(text);
}

void bench_row(struct bench *bench, const char *name, const char *unit, enum figure_sense sense,
               const double *values, const double *limits, size_t repeats)
{
    struct figure figure;
    bool first = bench->count++ == 0;
    figure_of(&figure, name, unit, sense, values, limits, repeats);
    say_clear();
    print(bench, bench->json ? figure_json(&figure, first) : figure_text(&figure, first));
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
    bench_round(name, 0, 0);
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

/* The child of bench_program(): ends with its parent. */
static void become(char *const *argv, pid_t parent, const int ends[2])
{
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() == parent && dup2(ends[1], STDOUT_FILENO) >= 0) {
        close(ends[0]);
        close(ends[1]);
        execv("/proc/self/exe", argv);
    }
    _exit(127);
}

int bench_program(struct bench *bench, char *const *argv, void (*line)(void *, const char *),
                  void *context)
{
    int ends[2] = {-1, -1}, status = 0;
    char *text = NULL;
    size_t room = 0;
    pid_t parent = getpid(), child = pipe(ends) ? -1 : fork();
    if (child == 0) become(argv, parent, ends);
    if (child < 0) {
        snprintf(bench->why, BENCH_WHY_BYTES, "parley %s: %s", argv[1], strerror(errno));
        for (int e = 0; e < 2; e++)
            if (ends[e] >= 0) close(ends[e]);
        return PARLEY_EFAIL;
    }
    close(ends[1]);
    FILE *from = fdopen(ends[0], "r");
    while (from && getline(&text, &room, from) > 0) {
        text[strcspn(text, "\n")] = 0;
        line(context, text);
    }
    if (from)
        fclose(from);
    else
        close(ends[0]);
    waitpid(child, &status, 0);
    free(text);
    if (status == 0) return 0;
    snprintf(bench->why, BENCH_WHY_BYTES, "parley %s: it failed (see above)", argv[1]);
    return PARLEY_EFAIL;
}

/* The array is closed also behind the rows of a benchmark that failed later on. */
static int end(struct bench *bench, int error)
{
    say_clear();
    bench_folder_end(bench);
    if (bench->json && bench->count > 0) print(bench, strdup(FIGURES_JSON_END));
    if (error) return say_failure(error, bench->why);
    if (bench->unwritten) say(PARLEY_LOG_ERROR, "stdout: %s", strerror(bench->unwritten));
    return bench->unwritten ? 1 : 0;
}

int bench_command(const struct settings *settings)
{
    static const struct {
        const char *name;
        int (*run)(struct bench *bench);
    } all[] = {{"step", bench_step},   {"mix", bench_mix}, {"wire", bench_wire},
               {"start", bench_start}, {"run", bench_run}, {"sim", bench_sim}};
    struct bench bench = {.quick = settings->quick,
                          .full = settings->full,
                          .data = settings->data,
                          .floats = settings->floats,
                          .json = settings->json_stdout};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (strcmp(settings->operands[0], all[i].name) != 0) continue;
        return end(&bench, all[i].run(&bench));
    }
    return parley_error_status(PARLEY_EUSAGE);
}
