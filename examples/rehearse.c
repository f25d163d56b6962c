/* rehearse.c: a training of your own, first with many simulated nodes and then with real ones.
 *
 *     ./rehearse 64                          64 nodes in this process, in virtual time: half-way a
 *                                            third of them is killed
 *     ./rehearse 2 0                         now for real, the first of two: prints its address,
 *     ./rehearse 2 1 127.0.0.1:40001         which the second is given, in another terminal
 *
 *     cc rehearse.c $(pkg-config --cflags --libs parley) -lm -o rehearse
 *
 * What it trains is a linear model y = w f + noise of made-up samples, of which each node has its
 * own. Both ways run work() below, and the same protocol. Real nodes print the same digest, all.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parley/parley.h"
#include "parley/sim.h"

enum { FEATURES = 16, BATCH = 8, STEPS = 2000, NODES_MAX = 1000, SECOND = 1000000 };

struct fleet {
    uint32_t nodes;
    uint64_t next[NODES_MAX]; /* of each node's samples; node i has i, i + nodes, ... */
};

/* ---- What is yours: a local step ------------------------------------------------------------- */

/* In [-1, 1): each sample and feature has a value of its own (splitmix64). */
static float draw(uint64_t sample, uint64_t feature)
{
    uint64_t z = (sample * (FEATURES + 1) + feature + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (float)((z ^ z >> 31) >> 40) / (float)(1 << 23) - 1;
}

static float truth(int feature)
{
    return (float)(feature % 5) - 2;
}

static double work(float *const *vectors, const struct parley_turn *turn, uint32_t node, void *arg)
{
    struct fleet *fleet = arg;
    float *w = vectors[0], rate = 0.02f * (float)(1 - turn->progress);
    double loss = 0;
    for (int i = 0; i < BATCH; i++) {
        uint64_t sample = node + fleet->next[node]++ * fleet->nodes;
        float f[FEATURES], gap = draw(sample, FEATURES); /* noise */
        for (int j = 0; j < FEATURES; j++) {
            f[j] = draw(sample, (uint64_t)j);
            gap += (w[j] - truth(j)) * f[j];
        }
        loss += (double)gap * (double)gap / (2 * BATCH);
        for (int j = 0; j < FEATURES; j++)
            w[j] -= rate * gap * f[j];
    }
    return loss;
}

static double error_of(const float *w)
{
    double sum = 0;
    for (int j = 0; j < FEATURES; j++)
        sum += pow((double)(w[j] - truth(j)), 2);
    return sqrt(sum);
}

/* How both ways are to average. */
static void configure(struct parley_config *config, uint32_t node, void *arg)
{
    const struct fleet *fleet = arg;
    (void)node;
    config->steps_budget = STEPS;
    config->mix_every = 4;
    config->min_peers = fleet->nodes - 1;
}

static void print(const struct parley_view *view, const float *w)
{
    printf("agreed %u of %u nodes, error %.1e, digest ", view->held, view->known, error_of(w));
    for (int i = 0; i < PARLEY_DIGEST_BYTES; i++)
        printf("%02x", view->digest[i]);
    printf("\n");
}

/* ---- In virtual time ------------------------------------------------------------------------- */

static int failed(struct parley_sim *sim, int error)
{
    const char *text = "";
    if (sim) parley_sim_error(sim, &text);
    fprintf(stderr, "rehearse: %s %s\n", parley_error_text(error), text);
    parley_sim_free(sim);
    return parley_error_status(error);
}

static int simulate(struct fleet *fleet)
{
    struct parley_sim_options options = {.nodes = fleet->nodes,
                                         .parameters = FEATURES,
                                         .step_us = 5000,
                                         .latency_us = 2000,
                                         .bandwidth_bytes = 1000000,
                                         .work = work,
                                         .samples = BATCH,
                                         .configure = configure,
                                         .arg = fleet};
    struct parley_sim *sim;
    struct parley_view view;
    enum parley_phase train = PARLEY_PHASE_TRAIN;
    int error = parley_sim_new(&sim, &options);
    if (!error) error = parley_sim_step_until(sim, parley_sim_in_phase, &train, 60 * SECOND);
    for (int second = 1; !error && second <= 9; second++) {
        error = parley_sim_run_for(sim, SECOND);
        parley_sim_view(sim, 0, &view);
        printf("%2d s: %2u nodes, drift %.1e (n0 takes it for %.1e), n0's error %.1e\n", second,
               view.live, parley_sim_drift(sim), view.drift, error_of(parley_sim_vector(sim, 0)));
        for (uint32_t i = 2; second == 5 && i < fleet->nodes; i += 3)
            parley_sim_kill(sim, i, false);
    }
    if (!error) error = parley_sim_step_until(sim, parley_sim_agreed, NULL, 600 * SECOND);
    if (error) return failed(sim, error);
    parley_sim_view(sim, 0, &view);
    print(&view, parley_sim_agreed_vector(sim, 0));
    parley_sim_free(sim);
    return 0;
}

/* ---- For real -------------------------------------------------------------------------------- */

static int deploy(struct fleet *fleet, uint32_t node, const char *const *seeds, uint32_t count)
{
    static float w[FEATURES];
    char name[16], why[256];
    struct parley_options options;
    struct parley_step step = {0};
    struct parley_turn turn;
    struct parley_result result;
    struct parley *p;
    snprintf(name, sizeof name, "n%u", node);
    parley_options_defaults(&options);
    configure(&options.config, node, fleet);
    options.config.name = name;
    options.config.parameters = FEATURES;
    options.config.batch = BATCH;
    options.config.seeds = seeds;
    options.config.seeds_count = count;
    options.vectors[0] = w;
    int code = parley_open(&p, &options, why, sizeof why);
    if (code) {
        fprintf(stderr, "rehearse: %s\n", why);
        return parley_error_status(code);
    }
    printf("listens %s\n", parley_listens(p));
    fflush(stdout);
    while ((code = parley_boundary(p, &step, &turn)) == PARLEY_GO)
        step = (struct parley_step){1, BATCH, .loss = work(options.vectors, &turn, node, fleet)};
    parley_result(p, &result);
    if (result.agreed)
        print(&result.view, w);
    else
        fprintf(stderr, "rehearse: %s\n", parley_error_text(result.error));
    parley_close(p);
    return result.agreed ? 0 : parley_error_status(result.error);
}

int main(int argc, char **argv)
{
    static struct fleet fleet;
    unsigned long nodes = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    unsigned long node = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    if (nodes < 1 || nodes > NODES_MAX || node >= nodes) {
        fprintf(stderr,
                "usage: %s NODES [NODE [HOST:PORT]...]   at most %d NODES, NODE from 0 on\n",
                argv[0], NODES_MAX);
        return 2;
    }
    fleet.nodes = (uint32_t)nodes;
    if (argc == 2) return simulate(&fleet);
    return deploy(&fleet, (uint32_t)node, (const char *const *)argv + 3, (uint32_t)argc - 3);
}
