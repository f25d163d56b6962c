/* trainer_bench.h: a trainer of its own, with its vectors, and a table to train it on. */
#ifndef PARLEY_TESTS_TRAINER_BENCH_H
#define PARLEY_TESTS_TRAINER_BENCH_H

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "train/model.h"
#include "train/trainer.h"

#define FEATURES 6
#define CLASSES 4

/* A table of `count` samples around one centre a class. `problem` sets the centres, `seed` the
 * samples. The data set owns its arrays. */
static inline struct dataset clusters(uint32_t count, double noise, uint64_t problem, uint64_t seed)
{
    struct dataset set = {
        .count = count, .features = FEATURES, .classes = CLASSES, .label = {0, 1}};
    struct rng centre_rng = rng_init(problem, 4), rng = rng_init(seed, 5);
    double centres[CLASSES][FEATURES];

    set.values = calloc((size_t)count * FEATURES, sizeof *set.values);
    set.labels = calloc(count, sizeof *set.labels);
    set.shift = calloc(FEATURES, sizeof *set.shift);
    set.scale = calloc(FEATURES, sizeof *set.scale);
    for (int f = 0; f < FEATURES; f++) {
        set.scale[f] = 1;
        for (int c = 0; c < CLASSES; c++)
            centres[c][f] = rng_normal(&centre_rng);
    }
    for (uint32_t i = 0; i < count; i++) {
        set.labels[i] = (uint16_t)rng_below(&rng, CLASSES);
        for (int f = 0; f < FEATURES; f++)
            set.values[i * FEATURES + f] =
                (float)(centres[set.labels[i]][f] + noise * rng_normal(&rng));
    }
    return set;
}

static const struct trainer_options defaults = {.model = "softmax",
                                                .optimizer = "momentum",
                                                .schedule = "cosine",
                                                .rate = 0.05,
                                                .numbers = {.momentum = 0.9},
                                                .batch = 32,
                                                .seed = 1};

struct bench {
    struct trainer *trainer;
    struct trainer_node node;
    float *x, *m, *state[2];
    uint64_t steps;
};

static inline void bench_init(struct bench *bench, const struct trainer_options *options,
                              const struct dataset *set, uint64_t sampler_seed)
{
    uint32_t *share = malloc(set->count * sizeof *share);
    char why[256] = "";
    size_t n;

    bench->node = (struct trainer_node){0};
    cr_assert_eq(trainer_new(&bench->trainer, options, set, why, sizeof why), 0, "%s", why);
    for (uint32_t i = 0; i < set->count; i++)
        share[i] = i;
    cr_assert_eq(trainer_share(bench->trainer, &bench->node, share, set->count, NULL, sampler_seed),
                 0);
    free(share);
    n = trainer_parameters(bench->trainer);
    bench->x = malloc(n * sizeof(float));
    bench->m = malloc(2 * n * sizeof(float));
    bench->state[0] = bench->m;
    bench->state[1] = bench->m + n;
    bench->steps = 0;
    trainer_start(bench->trainer, bench->x, bench->state);
}

static inline void bench_close(struct bench *bench)
{
    free(bench->m);
    free(bench->x);
    sampler_close(&bench->node.sampler);
    trainer_free(bench->trainer);
}

static inline double step_at(struct bench *bench, const struct trainer_turn *turn)
{
    return trainer_step(bench->trainer, &bench->node, bench->x, bench->x, bench->state, turn);
}

static inline double step(struct bench *bench, double progress)
{
    struct trainer_turn turn = {.progress = progress, .steps = bench->steps++, .live = 1};

    return step_at(bench, &turn);
}

/* Sum of gradients of softmax regression over the whole set in float64. x, g: weight
 * [FEATURES][CLASSES], bias [CLASSES]. Returns the mean loss. */
static inline double reference_gradient(const struct dataset *set, const double *x, double *g)
{
    const double *bias = x + FEATURES * CLASSES;
    double loss = 0;

    memset(g, 0, (FEATURES + 1) * CLASSES * sizeof *g);
    for (uint32_t i = 0; i < set->count; i++) {
        const float *v = set->values + (size_t)i * FEATURES;
        double z[CLASSES], sum = 0;

        for (int c = 0; c < CLASSES; c++) {
            z[c] = bias[c];
            for (int f = 0; f < FEATURES; f++)
                z[c] += (double)v[f] * x[f * CLASSES + c];
            sum += exp(z[c]);
        }
        loss += log(sum) - z[set->labels[i]];
        for (int c = 0; c < CLASSES; c++) {
            double d = (exp(z[c]) / sum - (c == set->labels[i])) / set->count;

            for (int f = 0; f < FEATURES; f++)
                g[f * CLASSES + c] += (double)v[f] * d;
            g[FEATURES * CLASSES + c] += d;
        }
    }
    return loss / set->count;
}

#endif
