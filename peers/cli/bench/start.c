/* start.c: from nothing to training: `parley run -n 8` from its start until the last of its
 * nodes begins its first local step. The limit is starting as many empty programs, and waiting for
 * them.
 *
 * In the first row the data are a file of some images, so that little else than starting is timed;
 * in the second they are the built-in digits, which each node draws for itself.
 */
#include "cli/bench/bench.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

enum { NODES = 8, IMAGES = 64, SIDE = 28, REPEATS = 15, REPEATS_QUICK = 1 };

static const char *const images[] = {"train-images-idx3-ubyte", "t10k-images-idx3-ubyte"};
static const char *const labels[] = {"train-labels-idx1-ubyte", "t10k-labels-idx1-ubyte"};

struct start {
    struct bench *bench;
    double from, trained; /* seconds; trained: of the last node */
    unsigned nodes;       /* that train */
};

/* ---- The data -------------------------------------------------------------------------------- */

static bool write_file(const struct start *start, const char *name, const uint8_t *head,
                       size_t head_size, size_t size)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", start->bench->folder, name);
    FILE *file = fopen(path, "w");
    if (!file) return false;
    fwrite(head, 1, head_size, file);
    for (size_t i = 0; i < size; i++)
        fputc((int)(i % 10), file);
    return fclose(file) == 0;
}

static int write_data(const struct start *start)
{
    bool ok = true;
    const uint8_t image_head[] = {0, 0, 8, 3, 0, 0, 0, IMAGES, 0, 0, 0, SIDE, 0, 0, 0, SIDE};
    const uint8_t label_head[] = {0, 0, 8, 1, 0, 0, 0, IMAGES};
    for (int i = 0; ok && i < 2; i++)
        ok = write_file(start, images[i], image_head, sizeof image_head, IMAGES * SIDE * SIDE) &&
             write_file(start, labels[i], label_head, sizeof label_head, IMAGES);
    if (ok) return 0;
    snprintf(start->bench->why, BENCH_WHY_BYTES, "%s: %s", start->bench->folder, strerror(errno));
    return PARLEY_EFAIL;
}

/* ---- Measuring ------------------------------------------------------------------------------- */

static void on_line(void *context, const char *line)
{
    struct start *start = context;
    if (!strstr(line, "\"event\":\"phase\"") || !strstr(line, "\"phase\":\"train\"")) return;
    if (++start->nodes == NODES) start->trained = bench_now();
}

static int time_run(struct start *start, const char *data, double *ms)
{
    char with[300], nodes[8], out[300];
    snprintf(with, sizeof with, "--data=%s", data);
    snprintf(nodes, sizeof nodes, "-n%d", NODES);
    snprintf(out, sizeof out, "--out=%s/model", start->bench->folder);
    char *argv[] = {"parley",    "run", nodes,      with, "--model=softmax",
                    "--steps=2", "-q",  "--json=-", out,  NULL};
    start->nodes = 0;
    start->from = bench_now();
    int error = bench_program(start->bench, argv, on_line, start);
    if (!error && start->nodes < NODES) {
        snprintf(start->bench->why, BENCH_WHY_BYTES, "parley run: %u of %d nodes trained",
                 start->nodes, NODES);
        error = PARLEY_EFAIL;
    }
    *ms = (start->trained - start->from) * 1e3;
    return error;
}

static int time_empty(struct start *start, double *ms)
{
    char *argv[] = {"true", NULL};
    pid_t children[NODES];
    int code = 0, started = 0;
    double from = bench_now();
    while (!code && started < NODES)
        if (!(code = posix_spawnp(&children[started], "true", NULL, NULL, argv, environ)))
            started++;
    for (int i = 0; i < started; i++)
        waitpid(children[i], NULL, 0);
    *ms = (bench_now() - from) * 1e3;
    if (!code) return 0;
    snprintf(start->bench->why, BENCH_WHY_BYTES, "true: %s", strerror(code));
    return PARLEY_EFAIL;
}

static int measure(struct start *start, const char *name, const char *data)
{
    double values[FIGURE_REPEATS_MAX], limits[FIGURE_REPEATS_MAX];
    size_t repeats = start->bench->quick ? REPEATS_QUICK : REPEATS;
    int error = 0;
    for (size_t i = 0; !error && i < repeats; i++) {
        bench_round(name, i, repeats);
        error = time_run(start, data, &values[i]);
        if (!error) error = time_empty(start, &limits[i]);
    }
    if (!error) bench_row(start->bench, name, "ms", FIGURE_LESS_IS_BETTER, values, limits, repeats);
    return error;
}

int bench_start(struct bench *bench)
{
    struct start start = {.bench = bench};
    char data[300];
    unsetenv("OPENBLAS_CORETYPE"); /* ours: what is timed shall find its kernels by itself */
    int error = bench_folder(bench);
    if (!error) error = write_data(&start);
    snprintf(data, sizeof data, "idx:%s", bench->folder);
    if (!error) error = measure(&start, "start/8", data);
    if (!error && !bench->quick) error = measure(&start, "start/8/digits", "digits");
    return error;
}
