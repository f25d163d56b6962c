/* bench_sim.c: local steps of all nodes a second in `parley sim`, an exchange a step, beside the
 * bare local steps of the same model on the same data, on as many cores as the simulator uses.
 */
#include "bench.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/digits.h"
#include "train/trainer.h"

enum { BARE_STEPS = 4000, REPEATS = 3 };

struct bare {
    struct dataset train, test;
    struct trainer *trainer;
    float *x, *state[2];
};

static int make_bare(struct bare *bare, struct bench *bench)
{
    const struct trainer_options options = {.model = "softmax",
                                            .optimizer = "momentum",
                                            .schedule = "cosine",
                                            .rate = 0.05,
                                            .numbers = {.momentum = 0.9},
                                            .batch = 32,
                                            .seed = 1};
    int error = digits_make(&bare->train, &bare->test, 1);
    uint32_t *share = error ? NULL : calloc(bare->train.count, sizeof *share);
    if (!error)
        error = trainer_new(&bare->trainer, &options, &bare->train, bench->why, BENCH_WHY_BYTES);
    if (!error && !share) error = PARLEY_ENOMEM;
    for (uint32_t i = 0; !error && i < bare->train.count; i++)
        share[i] = i;
    if (!error) error = trainer_share(bare->trainer, share, bare->train.count, 1);
    free(share);
    if (error) return error;
    bare->x = calloc(trainer_parameters(bare->trainer), sizeof *bare->x);
    bare->state[0] = calloc(trainer_parameters(bare->trainer), sizeof *bare->x);
    if (!bare->x || !bare->state[0]) return PARLEY_ENOMEM;
    trainer_start(bare->trainer, bare->x, bare->state);
    return 0;
}

static void close_bare(struct bare *bare)
{
    trainer_free(bare->trainer);
    dataset_close(&bare->train);
    dataset_close(&bare->test);
    free(bare->x);
    free(bare->state[0]);
}

static double bare_rate(struct bare *bare)
{
    const struct trainer_turn turn = {.progress = 0.5, .live = 1};
    double from = bench_now();
    for (int i = 0; i < BARE_STEPS; i++)
        trainer_step(bare->trainer, bare->x, bare->state, &turn);
    return BARE_STEPS / (bench_now() - from);
}

static void on_line(void *context, const char *line)
{
    const char *at = strstr(line, "\"node_steps_per_s\":");
    if (at) *(double *)context = strtod(strchr(at, ':') + 1, NULL);
}

static int sim_rate(struct bench *bench, uint32_t nodes, uint32_t steps, double *rate)
{
    char with[24], made[24];
    snprintf(with, sizeof with, "--nodes=%" PRIu32, nodes);
    snprintf(made, sizeof made, "--steps=%" PRIu32, steps);
    char *argv[] = {"parley", "sim", with, made, "--model=softmax", "-q", "--json=-", NULL};
    *rate = 0;
    int error = bench_program(bench, argv, on_line, rate);
    if (error || *rate > 0) return error;
    snprintf(bench->why, BENCH_WHY_BYTES, "parley sim: no node_steps_per_s in its summary");
    return PARLEY_EFAIL;
}

static int measure(struct bench *bench, struct bare *bare, const char *name, uint32_t nodes,
                   uint32_t steps)
{
    double values[REPEATS], limits[REPEATS];
    size_t repeats = bench->quick ? 1 : REPEATS;
    int error = 0;
    for (size_t i = 0; !error && i < repeats; i++) {
        limits[i] = bare_rate(bare);
        error = sim_rate(bench, nodes, steps, &values[i]);
        limits[i] = (limits[i] + bare_rate(bare)) / 2;
    }
    if (!error)
        bench_row(bench, name, "node-steps/s", FIGURE_MORE_IS_BETTER, values, limits, repeats);
    return error;
}

int bench_sim(struct bench *bench)
{
    struct bare bare = {0};
    int error = make_bare(&bare, bench);
    if (!error && bench->quick) {
        error = measure(bench, &bare, "sim/10", 10, 20);
    } else if (!error) {
        error = measure(bench, &bare, "sim/100", 100, 30);
        if (!error && bench->full) error = measure(bench, &bare, "sim/1000", 1000, 10);
        if (!error && bench->full) error = measure(bench, &bare, "sim/10000", 10000, 3);
    }
    close_bare(&bare);
    return error;
}
