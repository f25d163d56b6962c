/* run.c: real processes: `parley run`, in turns with what it is measured by.
 *
 *   run/lane/N, run/tcp/N   samples a second of N nodes in total, where each takes part in one
 *                           exchange a step on average (it starts one every second step, and each
 *                           has two ends); limit: one node alone
 *     .../mix               exchanges a step and node that came about
 *   run/target/N            from the first exec to 97 %, of a budget of 3 passes, at a rate that
 *                           grows with the nodes; limit: one node alone
 *     .../epochs            passes over the data that it took; limit: as many nodes that average
 *                           their gradients at each step
 *   run/sleeper/4           a step of a healthy node while another one of four sleeps 30 ms in each
 *                           of its own; limit: the same three nodes without that one
 *   run/memory/1e7          bytes a parameter of one of two nodes that average, by what a larger
 *                           model takes more than a small one; limit: a node alone
 *   run/memory              what the small one's process has in memory, data and all
 *   run/64                  from the first exec until the last of 64 nodes trains
 *     .../start             bytes of the node that sends most: of probes and news of members, until
 *                           CLUSTER_NEWS_S after that; limit of these three: the same of 8 nodes
 *     .../members, sketches bytes a second of the node that sends most: of probes and news of
 *                           members while training from then on, and of sketches until all have
 *                           agreed
 *
 * The model is the 784-256-128-10 network, the batch 32. What is measured lasts seconds a time, the
 * whole some minutes.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench/cluster.h"

#define EACH_STEP "--mix-every=2"
#define MLP "--model=mlp:256,128"

enum { ROUNDS = 5, ROUNDS_LONG = 3, TRIES = 4, LANES = 2, SIZES = 3, HEALTHY = 3 };

static const uint32_t sizes[SIZES] = {2, 4, 8};

struct run {
    struct bench *bench;
    char out[300], data[SETTINGS_VALUE_BYTES_MAX + 16];
    const char *part; /* what its rows begin with */
    size_t round, rounds;
    struct cluster cluster;
};

/* time: an option more, or NULL; options: up to CLUSTER_OPTIONS_MAX - 2, and then NULL. */
static int make(struct run *run, uint32_t count, const char *time, const char *const *options)
{
    const char *all[CLUSTER_OPTIONS_MAX + 1] = {run->data, time};
    size_t before = time ? 2 : 1;
    char what[64];
    for (size_t i = 0; options[i]; i++)
        all[before + i] = options[i];
    snprintf(what, sizeof what, "%s, %" PRIu32 " nodes", run->part, count);
    bench_round(what, run->round, run->rounds);
    return cluster_run(run->bench, &run->cluster, count, all, run->out);
}

/* For so long; twice as long where that was too short to tell, as on a machine with other work. */
static int make_for(struct run *run, uint32_t count, unsigned seconds, const char *const *options,
                    int (*judge)(struct bench *, const struct cluster *))
{
    char time[32];
    for (unsigned tries = 1;; tries++, seconds *= 2) {
        snprintf(time, sizeof time, "--time=%us", seconds);
        int error = make(run, count, time, options);
        if (error) return error;
        error = judge(run->bench, &run->cluster);
        if (!error || tries == TRIES) return error;
    }
}

static int make_told(struct run *run, uint32_t count, unsigned seconds, const char *const *options)
{
    return make_for(run, count, seconds, options, cluster_told);
}

static size_t rounds_of(struct run *run, size_t rounds)
{
    run->rounds = run->bench->quick ? 1 : rounds;
    return run->rounds;
}

static unsigned seconds_of(const struct run *run)
{
    return run->bench->quick ? 1 : 3;
}

/* ---- Samples a second ------------------------------------------------------------------------ */

static double samples_per_s(const struct cluster *cluster)
{
    double sum = 0;
    for (uint32_t i = 0; i < cluster->count; i++)
        sum += BENCH_BATCH * cluster_steps(&cluster->nodes[i]);
    return sum;
}

static double exchanges_a_step(const struct cluster *cluster)
{
    double exchanges = 0, steps = 0;
    for (uint32_t i = 0; i < cluster->count; i++) {
        const struct cluster_node *node = &cluster->nodes[i];
        exchanges += (double)(node->to.exchanges - node->from.exchanges);
        steps += (double)(node->to.step - node->from.step);
    }
    return exchanges / steps;
}

struct rates {
    double samples[LANES][SIZES][ROUNDS], mixes[LANES][SIZES][ROUNDS], alone[ROUNDS];
};

static int measure_rates(struct run *run, struct rates *rates, size_t round, size_t count)
{
    const char *const alone[] = {MLP, NULL};
    const char *const lane[] = {MLP, EACH_STEP, NULL};
    const char *const tcp[] = {MLP, EACH_STEP, "--no-lane", NULL};
    int error = make_told(run, 1, seconds_of(run), alone);
    if (!error) rates->alone[round] = samples_per_s(&run->cluster);
    for (size_t l = 0; l < LANES; l++)
        for (size_t i = 0; !error && i < count; i++) {
            error = make_told(run, sizes[i], seconds_of(run), l ? tcp : lane);
            if (error) break;
            rates->samples[l][i][round] = samples_per_s(&run->cluster);
            rates->mixes[l][i][round] = exchanges_a_step(&run->cluster);
        }
    return error;
}

static int bench_rates(struct run *run)
{
    static const char *const kinds[LANES] = {"lane", "tcp"};
    struct rates rates;
    size_t rounds = rounds_of(run, ROUNDS), count = run->bench->quick ? 1 : SIZES;
    for (size_t r = 0; r < rounds; r++) {
        run->round = r;
        int error = measure_rates(run, &rates, r, count);
        if (error) return error;
    }
    for (size_t l = 0; l < LANES; l++)
        for (size_t i = 0; i < count; i++) {
            char name[32];
            snprintf(name, sizeof name, "run/%s/%" PRIu32, kinds[l], sizes[i]);
            bench_row(run->bench, name, "samples/s", FIGURE_MORE_IS_BETTER, rates.samples[l][i],
                      rates.alone, rounds);
            snprintf(name, sizeof name, "run/%s/%" PRIu32 "/mix", kinds[l], sizes[i]);
            bench_row(run->bench, name, "a step", FIGURE_MORE_IS_BETTER, rates.mixes[l][i], NULL,
                      rounds);
        }
    return 0;
}

/* ---- Time to an accuracy --------------------------------------------------------------------- */

static int target(struct run *run, const char *const *how, uint32_t count, double *seconds,
                  double *epochs)
{
    const char *options[CLUSTER_OPTIONS_MAX + 1] = {
        MLP,   "--target-accuracy=0.97", "--epochs=3", "--lr=0.0125", "--lr-scale=cluster", how[0],
        how[1]};
    int error = make(run, count, NULL, options);
    if (error) return error;
    *seconds = run->cluster.target_s;
    *epochs = run->cluster.epochs;
    if (isfinite(*seconds)) return 0;
    snprintf(run->bench->why, BENCH_WHY_BYTES, "%.400s: %" PRIu32 " nodes did not come to 97 %%",
             run->data, count);
    return PARLEY_EFAIL;
}

struct targets {
    double seconds[SIZES][ROUNDS], epochs[SIZES][ROUNDS], alone[ROUNDS], synchronous[SIZES][ROUNDS];
};

static int measure_targets(struct run *run, struct targets *targets, size_t round, size_t count)
{
    static const char *const gossip[] = {EACH_STEP, "--momentum-mode=local"};
    static const char *const synchronous[] = {"--strategy=allreduce", "--warmup=0"};
    double unused;
    int error = target(run, gossip, 1, &targets->alone[round], &unused);
    for (size_t i = 0; !error && i < count; i++) {
        error =
            target(run, gossip, sizes[i], &targets->seconds[i][round], &targets->epochs[i][round]);
        if (!error)
            error = target(run, synchronous, sizes[i], &unused, &targets->synchronous[i][round]);
    }
    return error;
}

static int bench_targets(struct run *run)
{
    struct targets targets;
    size_t rounds = rounds_of(run, ROUNDS), count = run->bench->quick ? 1 : SIZES;
    for (size_t r = 0; r < rounds; r++) {
        run->round = r;
        int error = measure_targets(run, &targets, r, count);
        if (error) return error;
    }
    for (size_t i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "run/target/%" PRIu32, sizes[i]);
        bench_row(run->bench, name, "s", FIGURE_LESS_IS_BETTER, targets.seconds[i], targets.alone,
                  rounds);
        strcat(name, "/epochs");
        bench_row(run->bench, name, "epochs", FIGURE_LESS_IS_BETTER, targets.epochs[i],
                  targets.synchronous[i], rounds);
    }
    return 0;
}

/* ---- One that sleeps ------------------------------------------------------------------------- */

/* A step of the first three nodes. */
static double healthy_us(const struct cluster *cluster)
{
    double sum = 0;
    for (uint32_t i = 0; i < HEALTHY; i++)
        sum += cluster_steps(&cluster->nodes[i]);
    return 1e6 * HEALTHY / sum;
}

static int bench_sleeper(struct run *run)
{
    const char *const fine[] = {MLP, EACH_STEP, NULL};
    const char *const sleeps[] = {MLP, EACH_STEP, "--fault=sleep=30ms:n3@0s", NULL};
    double values[ROUNDS], limits[ROUNDS];
    size_t rounds = rounds_of(run, ROUNDS);
    for (size_t r = 0; r < rounds; r++) {
        run->round = r;
        int error = make_told(run, HEALTHY, seconds_of(run), fine);
        if (error) return error;
        limits[r] = healthy_us(&run->cluster);
        error = make_told(run, HEALTHY + 1, seconds_of(run), sleeps);
        if (error) return error;
        values[r] = healthy_us(&run->cluster);
    }
    bench_row(run->bench, "run/sleeper/4", "us a step", FIGURE_LESS_IS_BETTER, values, limits,
              rounds);
    return 0;
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static int memory(struct run *run, uint32_t nodes, const char *model, double *bytes,
                  double *parameters)
{
    const char *const options[] = {model, EACH_STEP, NULL};
    int error = make_told(run, nodes, run->bench->quick ? 1 : 6, options);
    *bytes = 0;
    for (uint32_t i = 0; !error && i < nodes; i++)
        if (run->cluster.nodes[i].rss_bytes > *bytes) *bytes = run->cluster.nodes[i].rss_bytes;
    *parameters = (double)run->cluster.parameters;
    return error;
}

/* Bytes a parameter, where there are more of them. */
static int slope(struct run *run, uint32_t nodes, double *slope, double *base)
{
    const char *large = run->bench->quick ? "--model=mlp:1024,1024" : "--model=mlp:3072,2432";
    double bytes, parameters, small;
    int error = memory(run, nodes, "--model=softmax", base, &small);
    if (!error) error = memory(run, nodes, large, &bytes, &parameters);
    if (!error) *slope = (bytes - *base) / (parameters - small);
    return error;
}

static int bench_memory(struct run *run)
{
    double values[ROUNDS_LONG], limits[ROUNDS_LONG], base[ROUNDS_LONG], unused;
    size_t rounds = rounds_of(run, ROUNDS_LONG);
    int error = 0;
    for (size_t r = 0; !error && r < rounds; r++) {
        run->round = r;
        error = slope(run, 1, &limits[r], &unused);
        if (!error) error = slope(run, 2, &values[r], &base[r]);
        if (!error) base[r] /= 1e6;
    }
    if (error) return error;
    const char *name = run->bench->quick ? "run/memory/1e6" : "run/memory/1e7";
    bench_row(run->bench, name, "B/parameter", FIGURE_LESS_IS_BETTER, values, limits, rounds);
    bench_row(run->bench, "run/memory", "MB", FIGURE_LESS_IS_BETTER, base, NULL, rounds);
    return 0;
}

/* ---- Many nodes ------------------------------------------------------------------------------ */

struct traffic {
    double start, members, sketches; /* of the node that sent most: bytes, and bytes a second */
};

static int many(struct run *run, uint32_t nodes, struct traffic *traffic)
{
    const char *const options[] = {"--model=softmax", EACH_STEP, NULL};
    int error = make_for(run, nodes, run->bench->quick ? 5 : 10, options, cluster_calmed);
    *traffic = (struct traffic){0};
    for (uint32_t i = 0; !error && i < nodes; i++) {
        const struct cluster_node *node = &run->cluster.nodes[i];
        traffic->start = fmax(traffic->start, cluster_start(node));
        traffic->members = fmax(traffic->members, cluster_membership(node));
        traffic->sketches = fmax(traffic->sketches, cluster_sketches(node));
    }
    return error;
}

/* What the nodes send: as many of them, and few. */
struct sent {
    double start[ROUNDS_LONG], members[ROUNDS_LONG], sketches[ROUNDS_LONG];
};

static int measure_sent(struct run *run, uint32_t nodes, struct sent *sent, size_t round)
{
    struct traffic traffic;
    int error = many(run, nodes, &traffic);
    sent->start[round] = traffic.start / 1e3;
    sent->members[round] = traffic.members / 1e3;
    sent->sketches[round] = traffic.sketches / 1e3;
    return error;
}

static void row_of_many(struct run *run, uint32_t nodes, const char *what, const char *unit,
                        const double *values, const double *limits)
{
    char name[32];
    snprintf(name, sizeof name, "run/%" PRIu32 "%s", nodes, what);
    bench_row(run->bench, name, unit, FIGURE_LESS_IS_BETTER, values, limits, run->rounds);
}

static int bench_many(struct run *run)
{
    double joined[ROUNDS_LONG];
    struct sent all, few;
    size_t rounds = rounds_of(run, ROUNDS_LONG);
    uint32_t nodes = run->bench->quick ? 8 : CLUSTER_NODES_MAX;
    for (size_t r = 0; r < rounds; r++) {
        run->round = r;
        int error = measure_sent(run, run->bench->quick ? 4 : 8, &few, r);
        if (!error) error = measure_sent(run, nodes, &all, r);
        if (error) return error;
        joined[r] = run->cluster.train_s;
    }
    row_of_many(run, nodes, "", "s", joined, NULL);
    row_of_many(run, nodes, "/start", "kB", all.start, few.start);
    row_of_many(run, nodes, "/members", "kB/s", all.members, few.members);
    row_of_many(run, nodes, "/sketches", "kB/s", all.sketches, few.sketches);
    return 0;
}

/* ---- All of it ------------------------------------------------------------------------------- */

int bench_run(struct bench *bench)
{
    static const struct {
        const char *name;
        int (*measure)(struct run *run);
    } parts[] = {{"run/lane and run/tcp", bench_rates},
                 {"run/target", bench_targets},
                 {"run/sleeper", bench_sleeper},
                 {"run/memory", bench_memory},
                 {"run/64", bench_many}};
    int error = bench_folder(bench);
    if (error) return error;
    struct run *run = calloc(1, sizeof *run);
    if (!run) return PARLEY_ENOMEM;
    run->bench = bench;
    snprintf(run->data, sizeof run->data, "--data=%s", bench->data);
    snprintf(run->out, sizeof run->out, "%s/model", bench->folder);
    for (size_t i = 0; !error && i < sizeof parts / sizeof *parts; i++) {
        run->part = parts[i].name;
        error = parts[i].measure(run);
    }
    free(run);
    return error;
}
