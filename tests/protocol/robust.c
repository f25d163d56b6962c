/* robust.c: nodes that clip what they add to their models, among honest peers and liars. */
#include "scene.h"

enum { NODES = 8, PARAMETERS = 64, LIAR = 5 };

struct clipped {
    bool robust;
    uint32_t odd; /* this node is as it is without --robust */
};

static void configure(struct parley_config *config, uint32_t node, void *arg)
{
    const struct clipped *clipped = arg;
    config->min_peers = clipped->odd < 2 ? 1 : NODES - 1;
    config->robust = clipped->robust && node != clipped->odd;
}

static struct parley_sim *trained(struct clipped *clipped, uint64_t seed)
{
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = NODES,
                                                                .parameters = PARAMETERS,
                                                                .seed = seed,
                                                                .step_us = 1000,
                                                                .latency_us = 300,
                                                                .configure = configure,
                                                                .arg = clipped});
    scene_train(sim, NODES);
    return sim;
}

/* Of the honest nodes. */
static void mean_of(const struct parley_sim *sim, double mean[PARAMETERS])
{
    for (int j = 0; j < PARAMETERS; j++) {
        mean[j] = 0;
        for (uint32_t i = 0; i < NODES; i++)
            if (i != LIAR) mean[j] += (double)parley_sim_vector(sim, i)[j] / (NODES - 1);
    }
}

static double spread_of(const struct parley_sim *sim)
{
    double mean[PARAMETERS], squares = 0;
    mean_of(sim, mean);
    for (uint32_t i = 0; i < NODES; i++)
        for (int j = 0; j < PARAMETERS && i != LIAR; j++)
            squares += pow((double)parley_sim_vector(sim, i)[j] - mean[j], 2);
    return sqrt(squares / (NODES - 1));
}

static double distance(const double *a, const double *b)
{
    double squares = 0;
    for (int j = 0; j < PARAMETERS; j++)
        squares += (a[j] - b[j]) * (a[j] - b[j]);
    return sqrt(squares);
}

Test(robust, clipped_differences_leave_the_mean_where_it_was)
{
    /* Half of the differences are clipped, connections break all the time: what one end adds the
     * other takes away, in doubt or not, and models grow equal all the same. */
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct clipped clipped = {true, UINT32_MAX};
        struct parley_sim *sim = trained(&clipped, seed);
        double before = parley_sim_spread(sim);
        scene_break(sim, NODES, 100, seed);
        scene_until(sim, NODES, parley_sim_quiet, NULL, 20);
        cr_assert_leq(parley_sim_mass_error(sim), 1e-6, "%g", parley_sim_mass_error(sim));
        cr_assert_lt(parley_sim_spread(sim), 1e-2 * before);
        scene_agree(sim, NODES, 0);
        parley_sim_free(sim);
    }
}

static void configure_star(struct parley_config *config, uint32_t node, void *nodes)
{
    (void)node;
    config->min_peers = *(const uint32_t *)nodes - 1;
    config->topology = PARLEY_TOPOLOGY_STAR;
    config->robust = true;
}

Test(robust, who_never_begins_an_exchange_averages)
{
    /* Steps of one length: of two nodes the same begins each time, or goes on as offers cross. */
    for (uint32_t nodes = 2; nodes <= 4; nodes++)
        for (uint64_t seed = 1; seed <= 5; seed++) {
            struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = nodes,
                                                                        .step_us = 1000,
                                                                        .seed = seed,
                                                                        .configure = configure_star,
                                                                        .arg = &nodes});
            scene_train(sim, nodes);
            double before = parley_sim_spread(sim);
            scene_run(sim, SECOND);
            double part = parley_sim_spread(sim) / before;
            cr_assert_lt(part, 1e-2, "%u nodes, seed %llu: %g", nodes, (unsigned long long)seed,
                         part);
            parley_sim_free(sim);
        }
}

Test(robust, halves_that_came_apart_settle)
{
    /* Odd and even names: of the three rounds in which eight settle one alone brings odd to even,
     * and each would clip that by the usual distance of the other two, which is none. */
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct clipped clipped = {true, UINT32_MAX};
        struct parley_sim *sim = trained(&clipped, seed);
        const uint32_t odd[NODES] = {0, 1, 0, 1, 0, 1, 0, 1};
        parley_sim_partition(sim, odd);
        scene_run(sim, 3 * SECOND / 2); /* too short for a death */
        cr_assert_gt(parley_sim_drift(sim), 0.1);
        parley_sim_heal(sim);
        for (uint32_t i = 0; i < NODES; i++)
            parley_sim_stop(sim, i, PARLEY_STOP_OPERATOR);
        scene_until(sim, NODES, parley_sim_agreed, NULL, 90);
        scene_same(sim, NODES);
        for (uint32_t i = 0; i < NODES; i++) {
            struct parley_view view = scene_view(sim, i);
            cr_assert(view.drift_before >= 0 && view.drift_before <= 1e-4, "n%u", i);
        }
        parley_sim_free(sim);
    }
}

static const enum parley_sim_lie lies[] = {PARLEY_SIM_SIGN, PARLEY_SIM_SCALE, PARLEY_SIM_RANDOM,
                                           PARLEY_SIM_NAN,  PARLEY_SIM_ALIE,  PARLEY_SIM_IPM};

/* How far the honest nodes' mean has moved in two seconds of lies, in initial spreads. */
static double moved_by(bool robust, enum parley_sim_lie lie, double *spread)
{
    struct clipped clipped = {robust, UINT32_MAX};
    double before[PARAMETERS], after[PARAMETERS];
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = NODES,
                                                                .parameters = PARAMETERS,
                                                                .seed = 7,
                                                                .step_us = 1000,
                                                                .latency_us = 300,
                                                                .configure = configure,
                                                                .arg = &clipped});
    parley_sim_byzantine(sim, LIAR, lie); /* before the first exchange */
    scene_train(sim, NODES);
    double start = spread_of(sim);
    mean_of(sim, before);
    scene_run(sim, 2 * SECOND);
    mean_of(sim, after);
    *spread = spread_of(sim) / start;
    parley_sim_free(sim);
    return distance(before, after) / start;
}

Test(robust, a_liar_moves_the_others_about_as_far_as_they_were_apart)
{
    /* One of eight, from the first exchange on. Random models are the worst here: the honest ones
     * begin as such, too, so at first nothing tells them apart. */
    for (size_t k = 0; k < sizeof lies / sizeof *lies; k++) {
        double spread, moved = moved_by(true, lies[k], &spread);
        cr_assert(moved < 2 && spread < 0.05, "lie %d: moved %g, spread %g", lies[k], moved,
                  spread);
    }
}

Test(robust, without_it_a_liar_keeps_the_others_from_meeting)
{
    /* That the test above has something to hold. */
    double spread;
    double moved = moved_by(false, PARLEY_SIM_RANDOM, &spread);
    cr_assert_gt(moved + spread, 0.5, "moved %g, spread %g", moved, spread);
}

/* How far the agreed model is from the honest nodes' mean at STOP, in their spread then. */
static double settled_off(uint64_t seed)
{
    struct clipped clipped = {true, UINT32_MAX};
    double before[PARAMETERS], agreed[PARAMETERS];
    struct parley_sim *sim = trained(&clipped, seed);
    parley_sim_byzantine(sim, LIAR, PARLEY_SIM_SIGN);
    scene_run(sim, 80000);
    double start = spread_of(sim);
    mean_of(sim, before);
    scene_agree(sim, NODES, 0);
    for (int j = 0; j < PARAMETERS; j++)
        agreed[j] = (double)parley_sim_agreed_vector(sim, 0)[j];
    parley_sim_free(sim);
    return distance(before, agreed) / start;
}

Test(robust, a_liar_moves_those_that_settle_little_further_than_they_were_apart)
{
    /* Mean of some seeds; 2.2 by what was usual while they trained. */
    enum { SEEDS = 10 };
    double off = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        off += settled_off(seed) / SEEDS;
    cr_assert_lt(off, 1.9, "%g", off);
}

Test(robust, a_node_without_it_is_refused_by_name)
{
    struct clipped clipped = {true, 1};
    struct scene_lines refusals = {.text = "robust is set at n0 and not at n1"};
    int error = 0;
    struct parley_sim *sim =
        scene(&(struct parley_sim_options){.nodes = 2, .configure = configure, .arg = &clipped});
    parley_sim_on_line(sim, PARLEY_LOG_ERROR, scene_count, &refusals);
    scene_run(sim, 2 * SECOND);
    cr_assert(parley_sim_finished(sim, 1, &error));
    cr_assert_eq(error, PARLEY_EMISMATCH);
    cr_assert_gt(refusals.count, 0);
    parley_sim_free(sim);
}

/* ---- The agreement --------------------------------------------------------------------------- */

enum { FEW = 5, LAST = FEW - 1 };

static void configure_few(struct parley_config *config, uint32_t node, void *arg)
{
    (void)node;
    config->min_peers = FEW - 1;
    config->robust = *(const bool *)arg;
}

/* The last of five tells lies from the moment of STOP on, also as what it proposes. Returns how far
 * the agreed model is from that of n0 before, over its norm; not finite if it is not. */
static double agreed_off(bool robust, enum parley_sim_lie lie, uint64_t seed, uint32_t *distrusts)
{
    float before[PARAMETERS];
    double off = 0, norm = 0;
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = FEW,
                                                                .parameters = PARAMETERS,
                                                                .seed = seed,
                                                                .step_us = 5000,
                                                                .latency_us = 300,
                                                                .configure = configure_few,
                                                                .arg = &robust});
    scene_train(sim, FEW);
    scene_run(sim, 2 * SECOND); /* all have the same model by now, but for roundings */
    memcpy(before, parley_sim_vector(sim, 0), sizeof before);
    parley_sim_byzantine(sim, LAST, lie);
    struct scene_lines lines = {.text = "n4 is not trusted: its model is"};
    parley_sim_on_line(sim, PARLEY_LOG_WARN, scene_count, &lines);
    scene_agree(sim, FEW, 0);
    *distrusts = lines.count;
    const float *agreed = parley_sim_agreed_vector(sim, 0);
    for (int j = 0; j < PARAMETERS; j++) {
        off += pow((double)agreed[j] - (double)before[j], 2);
        norm += (double)before[j] * (double)before[j];
    }
    parley_sim_free(sim);
    return sqrt(off / norm);
}

Test(robust, a_model_that_is_far_from_most_is_not_agreed_on)
{
    /* Whenever the liar's proposal has the least score the others fetch it, look at it, say that
     * they do not trust it, and pick the next. */
    uint32_t seen = 0, distrusts;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        double off = agreed_off(true, PARLEY_SIM_SCALE, seed, &distrusts);
        cr_assert_lt(off, 1e-3, "seed %d: %g", (int)seed, off);
        cr_assert(distrusts == 0 || distrusts >= 3, "%u", distrusts);
        seen += distrusts > 0;
    }
    cr_assert_gt(seen, 0);
}

Test(robust, a_proposal_that_is_not_finite_is_never_agreed_on)
{
    /* Without --robust, too. */
    uint32_t seen = 0, distrusts;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        double off = agreed_off(false, PARLEY_SIM_NAN, seed, &distrusts);
        cr_assert(isfinite(off) && off < 1e-3, "seed %d: %g", (int)seed, off);
        seen += distrusts > 0;
    }
    cr_assert_gt(seen, 0);
}
