/* mix.c: the kernels of averaging beside a plain copy of the same memory, on one core.
 *
 * An exchange passes twice over vectors: the difference of the two snapshots, with all that is
 * measured of it, then adding it. Each pass reads two vectors and writes one; a copy reads one and
 * writes one. Figures are bytes read and written a second, so that the ratio says how much of the
 * memory's speed is left. Many machines read a line before a copy overwrites it, which is not
 * counted and lets a pass in place be faster than a copy: so the plainest loop is a limit, too.
 */
#include "cli/bench/bench.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/mix.h"

struct mix {
    size_t count;
    float *x, *theirs, *ours; /* [count] */
    struct mix_diff_result result;
};

static void diff(void *context)
{
    struct mix *mix = context;
    mix_diff(mix->theirs, mix->ours, mix->count, 1, &mix->result);
}

static void add(void *context)
{
    struct mix *mix = context;
    mix_add(mix->x, mix->theirs, 0.5f, mix->count);
}

static void both(void *context)
{
    diff(context);
    add(context);
}

/* As many bytes read and written as by one pass: three halves of a copy. */
static void copy(void *context)
{
    struct mix *mix = context;
    memcpy(mix->x, mix->ours, mix->count * sizeof(float));
    memcpy(mix->theirs, mix->ours, mix->count / 2 * sizeof(float));
}

static void copy_twice(void *context)
{
    copy(context);
    copy(context);
}

/* Reads two and writes one, in place, as a pass does. */
static void plain_twice(void *context)
{
    struct mix *mix = context;
    float *restrict x = mix->x;
    const float *restrict y = mix->theirs;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < mix->count; i++)
            x[i] += 0.5f * y[i];
}

static void measure(struct bench *bench, struct mix *mix)
{
    double gigabytes = (double)mix->count * 3 * sizeof(float) / 1e9;
    size_t repeats = bench->quick ? 5 : 60;
    struct bench_pair pair = {both, copy_twice, mix, 1, 2 * gigabytes};
    bench_pair(bench, "mix/1e7", "GB/s", FIGURE_MORE_IS_BETTER, &pair, repeats);
    pair = (struct bench_pair){both, plain_twice, mix, 1, 2 * gigabytes};
    bench_pair(bench, "mix/1e7/plain", "GB/s", FIGURE_MORE_IS_BETTER, &pair, repeats);
    pair = (struct bench_pair){diff, copy, mix, 1, gigabytes};
    bench_pair(bench, "mix/1e7/diff", "GB/s", FIGURE_MORE_IS_BETTER, &pair, repeats);
    pair = (struct bench_pair){add, copy, mix, 1, gigabytes};
    bench_pair(bench, "mix/1e7/add", "GB/s", FIGURE_MORE_IS_BETTER, &pair, repeats);
}

int bench_mix(struct bench *bench)
{
    struct mix mix = {.count = 10000000};
    mix.x = bench_vector(mix.count);
    mix.theirs = bench_vector(mix.count);
    mix.ours = bench_vector(mix.count);
    int error = mix.x && mix.theirs && mix.ours ? 0 : PARLEY_ENOMEM;
    if (!error) measure(bench, &mix);
    free(mix.x);
    free(mix.theirs);
    free(mix.ours);
    return error;
}
