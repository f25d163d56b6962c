/* sim.c: local steps of all nodes a second in `parley sim`, beside the bare local steps that
 * the same cores make when each trains one such model and nothing else (that is `bench step` on all
 * cores at once). Nodes average at each step (softmax, with one list of members for all), and with
 * a larger model also every eighth and not at all.
 *
 * The larger model has MNIST's shape. Its images are noise, in files like a user's: both sides read
 * them.
 */
#include "cli/bench/bench.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/read_file.h"
#include "data/source.h"
#include "settings/simulate.h"
#include "train/trainer.h"

enum { REPEATS = 3, CORES_MAX = 256, IMAGES = 12000, OPTIONS_MAX = 3 };

struct row {
    const char *name, *model, *data;
    const char *options[OPTIONS_MAX];  /* of parley sim; the rest NULL */
    uint32_t nodes, steps, bare_steps; /* bare: of each core, before and after */
};

/* ---- Bare steps ------------------------------------------------------------------------------ */

struct core {
    pthread_t handle;
    struct trainer *trainer;
    struct trainer_node own;
    float *x, *state[2];
    uint32_t steps;
};

struct bare {
    struct source source;
    uint32_t cores;
    struct core core[CORES_MAX]; /* [cores] */
};

static int make_core(struct core *core, struct bare *bare, const char *model, struct bench *bench)
{
    int error = bench_trainer(bench, model, "momentum", 0.05, &bare->source.train, &core->trainer,
                              &core->own);
    if (error) return error;
    core->x = trainer_vectors(core->trainer, core->state);
    return core->x ? 0 : PARLEY_ENOMEM;
}

static int make_bare(struct bare *bare, const struct row *row, struct bench *bench)
{
    *bare = (struct bare){.cores = sim_cores()};
    int error =
        source_load(&bare->source, &file_reader, row->data, NULL, bench->why, BENCH_WHY_BYTES);
    if (bare->cores > CORES_MAX) bare->cores = CORES_MAX;
    for (uint32_t c = 0; !error && c < bare->cores; c++)
        error = make_core(&bare->core[c], bare, row->model, bench);
    return error;
}

static void close_bare(struct bare *bare)
{
    for (uint32_t c = 0; c < bare->cores; c++) {
        trainer_free(bare->core[c].trainer);
        sampler_close(&bare->core[c].own.sampler);
        free(bare->core[c].x);
    }
    source_close(&bare->source);
}

static void *make_steps(void *pointer)
{
    const struct trainer_turn turn = {.progress = 0.5, .live = 1};
    struct core *core = pointer;
    for (uint32_t i = 0; i < core->steps; i++)
        trainer_step(core->trainer, &core->own, core->x, core->x, core->state, &turn);
    return NULL;
}

/* Of all cores together; those that could not be started make none. */
static double bare_rate(struct bare *bare, uint32_t steps)
{
    double from = bench_now();
    uint32_t started = 1;
    for (; started < bare->cores; started++) {
        bare->core[started].steps = steps;
        if (pthread_create(&bare->core[started].handle, NULL, make_steps, &bare->core[started]))
            break;
    }
    bare->core[0].steps = steps;
    make_steps(&bare->core[0]);
    for (uint32_t c = 1; c < started; c++)
        pthread_join(bare->core[c].handle, NULL);
    return started * steps / (bench_now() - from);
}

/* ---- The simulator --------------------------------------------------------------------------- */

static void on_line(void *context, const char *line)
{
    const char *at = strstr(line, "\"node_steps_per_s\":");
    if (at) *(double *)context = strtod(strchr(at, ':') + 1, NULL);
}

/* How the run ends is no part of it: any drift will do to agree. */
static int sim_rate(struct bench *bench, const struct row *row, double *rate)
{
    char nodes[24], steps[24], model[64], data[512], options[OPTIONS_MAX][32];
    snprintf(nodes, sizeof nodes, "--nodes=%" PRIu32, row->nodes);
    snprintf(steps, sizeof steps, "--steps=%" PRIu32, row->steps);
    snprintf(model, sizeof model, "--model=%s", row->model);
    snprintf(data, sizeof data, "--data=%s", row->data);
    char *argv[9 + OPTIONS_MAX + 1] = {"parley", "sim", nodes,           steps,     model,
                                       data,     "-q",  "--tolerance=1", "--json=-"};
    for (uint32_t i = 0, last = 9; i < OPTIONS_MAX && row->options[i]; i++) {
        snprintf(options[i], sizeof options[i], "%s", row->options[i]);
        argv[last++] = options[i];
    }
    *rate = 0;
    int error = bench_program(bench, argv, on_line, rate);
    if (error || *rate > 0) return error;
    snprintf(bench->why, BENCH_WHY_BYTES, "parley sim: no node_steps_per_s in its summary");
    return PARLEY_EFAIL;
}

static int measure(struct bench *bench, const struct row *row)
{
    double values[REPEATS], limits[REPEATS];
    size_t repeats = bench->quick ? 1 : REPEATS;
    struct bare *bare = malloc(sizeof *bare);
    if (!bare) return PARLEY_ENOMEM;
    int error = make_bare(bare, row, bench);
    for (size_t i = 0; !error && i < repeats; i++) {
        bench_round(row->name, i, repeats);
        limits[i] = bare_rate(bare, row->bare_steps);
        error = sim_rate(bench, row, &values[i]);
        limits[i] = (limits[i] + bare_rate(bare, row->bare_steps)) / 2;
    }
    close_bare(bare);
    free(bare);
    if (!error)
        bench_row(bench, row->name, "node-steps/s", FIGURE_MORE_IS_BETTER, values, limits, repeats);
    return error;
}

/* ---- All of it ------------------------------------------------------------------------------- */

static int measure_all(struct bench *bench, const char *images)
{
    static const char each[] = "--mix-every=1", mlp[] = "mlp:256,128", softmax[] = "softmax";
    static const char wide[] = "--topology=exponential", list[] = "--membership=static";
    const struct row quick[] = {{"sim/10", softmax, "digits", {each}, 10, 20, 400},
                                {"sim/4/mlp", mlp, images, {each}, 4, 10, 40}};
    /* So many steps that joining, which they overlap, counts for little. */
    const struct row rows[] = {
        {"sim/100", softmax, "digits", {each, wide, list}, 100, 1000, 4000},
        {"sim/64/mlp/none", mlp, images, {"--strategy=none"}, 64, 300, 1000},
        {"sim/64/mlp/8", mlp, images, {"--mix-every=8"}, 64, 300, 1000},
        {"sim/64/mlp/1", mlp, images, {each}, 64, 200, 1000},
        {"sim/1000", softmax, "digits", {each, wide, list}, 1000, 300, 4000},
        {"sim/10000", softmax, "digits", {each, wide, list}, 10000, 30, 4000}};
    enum { QUICK = sizeof quick / sizeof *quick, ALL = sizeof rows / sizeof *rows, LONG = 2 };
    const struct row *all = bench->quick ? quick : rows;
    size_t count = bench->quick ? QUICK : bench->full ? ALL : ALL - LONG;
    int error = 0;
    for (size_t i = 0; i < count && !error; i++)
        error = measure(bench, &all[i]);
    return error;
}

int bench_sim(struct bench *bench)
{
    char spec[300];
    int error = environment_claim(sim_cores(), bench->why, BENCH_WHY_BYTES);
    if (!error) error = bench_folder(bench);
    if (!error) error = bench_images(bench, IMAGES);
    snprintf(spec, sizeof spec, "npy:%s", bench->folder);
    return error ? error : measure_all(bench, spec);
}
