/* start.c: from nothing to training: `parley run -n 8` from its start until the last of its
 * nodes begins its first local step. The limit is starting as many empty programs, and waiting for
 * them.
 *
 * In the first row the data are a file of some images, so that little else than starting is timed;
 * in the second they are the built-in digits, which each node draws for itself.
 */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "cli/bench/cluster.h"

extern char **environ;

enum { NODES = 8, IMAGES = 64, REPEATS = 15, REPEATS_QUICK = 1 };

static int time_run(struct bench *bench, const char *data, double *ms)
{
    const char *const options[] = {data, "--model=softmax", "--steps=2", NULL};
    struct cluster cluster;
    char out[300];
    snprintf(out, sizeof out, "%s/model", bench->folder);
    int error = cluster_run(bench, &cluster, NODES, options, out);
    *ms = cluster.train_s * 1e3;
    return error;
}

static int time_empty(struct bench *bench, double *ms)
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
    snprintf(bench->why, BENCH_WHY_BYTES, "true: %s", strerror(code));
    return PARLEY_EFAIL;
}

static int measure(struct bench *bench, const char *name, const char *data)
{
    double values[FIGURE_REPEATS_MAX], limits[FIGURE_REPEATS_MAX];
    size_t repeats = bench->quick ? REPEATS_QUICK : REPEATS;
    int error = 0;
    for (size_t i = 0; !error && i < repeats; i++) {
        bench_round(name, i, repeats);
        error = time_run(bench, data, &values[i]);
        if (!error) error = time_empty(bench, &limits[i]);
    }
    if (!error) bench_row(bench, name, "ms", FIGURE_LESS_IS_BETTER, values, limits, repeats);
    return error;
}

int bench_start(struct bench *bench)
{
    char data[300];
    unsetenv("OPENBLAS_CORETYPE"); /* ours: what is timed shall find its kernels by itself */
    int error = bench_folder(bench);
    if (!error) error = bench_images(bench, IMAGES);
    snprintf(data, sizeof data, "--data=npy:%s", bench->folder);
    if (!error) error = measure(bench, "start/8", data);
    if (!error && !bench->quick) error = measure(bench, "start/8/digits", "--data=digits");
    return error;
}
