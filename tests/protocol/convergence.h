/* convergence.h: averaging without training, an exchange at a time, between pairs as good as drawn.
 *
 * Nodes start an exchange every 20 n steps of a length that is drawn anew, from about an
 * exponential distribution, after each: so whoever starts the next one is as good as drawn. Times
 * when two overlapped are left out of what is measured.
 */
#ifndef PARLEY_TESTS_CONVERGENCE_H
#define PARLEY_TESTS_CONVERGENCE_H

#include <stdlib.h>

#include "core/topology/topology.h"
#include "scene.h"

enum { APART_NODES_MAX = 64, APART_PARAMETERS = 64 };

struct apart {
    struct parley_sim *sim;
    enum parley_topology topology;
    uint32_t nodes;
    uint32_t node_at[APART_NODES_MAX]; /* who stands where in line: sorted by name */
    struct rng rng;
    uint64_t committed, own[APART_NODES_MAX];
    double x[APART_NODES_MAX][APART_PARAMETERS]; /* the models, by place */
};

static inline void apart_configure(struct parley_config *config, uint32_t node, void *arg)
{
    const struct apart *apart = arg;
    (void)node;
    config->min_peers = apart->nodes - 1;
    config->mix_every = 20 * apart->nodes;
    config->topology = apart->topology;
}

static inline int apart_by_name(const void *a, const void *b)
{
    char left[16], right[16];
    snprintf(left, sizeof left, "n%u", *(const uint32_t *)a);
    snprintf(right, sizeof right, "n%u", *(const uint32_t *)b);
    return strcmp(left, right);
}

static inline void apart_pace(struct apart *a, uint32_t node)
{
    parley_sim_slow(a->sim, node, 0.1 - log(1 - rng_unit(&a->rng)));
}

static inline void apart_look(struct apart *a)
{
    for (uint32_t i = 0; i < a->nodes; i++)
        for (uint32_t j = 0; j < APART_PARAMETERS; j++)
            a->x[i][j] = parley_sim_vector(a->sim, a->node_at[i])[j];
}

static inline void apart_start(struct apart *a, enum parley_topology topology, uint32_t nodes,
                               uint64_t seed)
{
    *a = (struct apart){.topology = topology, .nodes = nodes, .rng = rng_init(seed, nodes)};
    for (uint32_t i = 0; i < nodes; i++)
        a->node_at[i] = i;
    qsort(a->node_at, nodes, sizeof *a->node_at, apart_by_name);
    a->sim = scene(&(struct parley_sim_options){.nodes = nodes,
                                                .parameters = APART_PARAMETERS,
                                                .seed = seed,
                                                .step_us = 1000,
                                                .unchecked = true,
                                                .configure = apart_configure,
                                                .arg = a});
    for (uint32_t i = 0; i < nodes; i++)
        apart_pace(a, i);
    scene_train(a->sim, nodes);
    apart_look(a);
}

/* Goes on until exchanges have been made and none is under way; returns how many. */
static inline uint64_t apart_next(struct apart *a)
{
    uint64_t committed = 0;
    do {
        scene_run(a->sim, 1000);
        cr_assert_lt(parley_sim_now(a->sim), 1000 * SECOND);
        committed = 0;
        for (uint32_t i = 0; i < a->nodes; i++) {
            struct parley_view view = scene_view(a->sim, i);
            committed += view.ledger.committed;
            if (view.ledger.committed != a->own[i]) apart_pace(a, i);
            a->own[i] = view.ledger.committed;
        }
    } while (committed == a->committed || !parley_sim_quiet(a->sim, NULL));
    uint64_t made = committed - a->committed;
    a->committed = committed;
    apart_look(a);
    return made;
}

/* ---- Decay ----------------------------------------------------------------------------------- */

static inline double squared_distance(const struct apart *a)
{
    double squares = 0;
    for (uint32_t j = 0; j < APART_PARAMETERS; j++) {
        double mean = 0;
        for (uint32_t i = 0; i < a->nodes; i++)
            mean += a->x[i][j] / a->nodes;
        for (uint32_t i = 0; i < a->nodes; i++)
            squares += (a->x[i][j] - mean) * (a->x[i][j] - mean);
    }
    return squares;
}

/* The factor by which an exchange shrank the squared distance: 1 - 1/(n-1) in the mean on the
 * complete graph, whatever the models are (Boyd et al. 2006). */
static inline double distance_left(const struct apart *before, const struct apart *after)
{
    return squared_distance(after) / squared_distance(before);
}

/* The mean factor of one exchange, over 20 seeds: of each so many clusters, of each of those so
 * many exchanges or until the models are equal. */
static inline double factor_of(enum parley_topology topology, uint32_t nodes, uint32_t clusters,
                               uint32_t exchanges,
                               double (*factor)(const struct apart *, const struct apart *))
{
    static struct apart now, before;
    double sum = 0;
    uint64_t count = 0;
    for (uint64_t run = 0; run < 20 * (uint64_t)clusters; run++) {
        apart_start(&now, topology, nodes, run + 1);
        double first = parley_sim_spread(now.sim);
        for (uint32_t k = 0; k < exchanges && parley_sim_spread(now.sim) > 1e-5 * first;) {
            before = now;
            if (apart_next(&now) != 1) continue;
            sum += factor(&before, &now);
            count++;
            k++;
        }
        parley_sim_free(now.sim);
    }
    fprintf(stderr, "# %u nodes: %.5f an exchange, mean of %llu\n", nodes, sum / (double)count,
            (unsigned long long)count);
    cr_assert_gt(count, 500);
    return sum / (double)count;
}

/* The rates of decay, -ln(factor), are within 5 %. */
static inline void expect_rate(double factor, double theory)
{
    double part = log(factor) / log(theory);
    fprintf(stderr, "#   rate %.5f, in theory %.5f\n", -log(factor), -log(theory));
    cr_assert_lt(fabs(part - 1), 0.05, "%g of the rate in theory", part);
}

/* ---- Waves ----------------------------------------------------------------------------------- */

/* The eigenvalue of wave k on a graph that looks the same from everywhere, when a random neighbour
 * is met: the mean over neighbours of cos(2 pi k distance / n). */
static inline double wave_value(enum parley_topology topology, uint32_t n, uint32_t k)
{
    const struct topology graph = {.kind = topology, .n = n};
    double sum = 0;
    uint32_t degree = 0;
    for (uint32_t b = 1; b < n; b++) {
        if (!topology_linked(&graph, 0, b)) continue;
        sum += cos(2 * acos(-1) * (double)(k * b % n) / n);
        degree++;
    }
    return sum / degree;
}

/* The slowest wave's. */
static inline double wave_slowest(enum parley_topology topology, uint32_t n)
{
    double second = -1;
    for (uint32_t k = 1; k < n; k++)
        second = fmax(second, wave_value(topology, n, k));
    return second;
}

/* How much of the slowest waves of `before` is left in `after`: <p, q> / <p, p> of their
 * amplitudes. One exchange between a random pair leaves 1 - (1 - value)/n of it in the mean
 * (Boyd et al. 2006: the expectation of W, applied to its own eigenvector), which is 1 - 2 gap/n
 * with the gap of `parley topology`. */
static inline double wave_left(const struct apart *before, const struct apart *after)
{
    double second = wave_slowest(before->topology, before->nodes), left = 0, whole = 0;
    uint32_t n = before->nodes;
    for (uint32_t k = 1; k <= n / 2; k++) {
        if (wave_value(before->topology, n, k) < second - 1e-9) continue;
        for (uint32_t j = 0; j < APART_PARAMETERS; j++)
            for (int shift = 0; shift < 2; shift++) {
                double p = 0, q = 0;
                for (uint32_t i = 0; i < n; i++) {
                    double angle = 2 * acos(-1) * (double)(k * i % n) / n;
                    double u = shift ? sin(angle) : cos(angle);
                    p += u * before->x[i][j];
                    q += u * after->x[i][j];
                }
                left += p * q;
                whole += p * p;
            }
    }
    return left / whole;
}

static inline double wave_theory(enum parley_topology topology, uint32_t n)
{
    return 1 - (1 - wave_slowest(topology, n)) / n;
}

#endif
