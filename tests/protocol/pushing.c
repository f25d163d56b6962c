/* pushing.c: push-sum, which gives weighted parts of models away, and noloco, an outer step in
 * pairs.
 */
#include "core/state.h"
#include "storm.h"

enum { NODES = 8, PARAMETERS = 64 };

static void push(struct parley_config *config, uint32_t node, void *peers)
{
    (void)node;
    config->min_peers = *(const uint32_t *)peers;
    config->strategy = PARLEY_STRATEGY_PUSH_SUM;
}

static void meet(struct parley_config *config, uint32_t node, void *peers)
{
    (void)node;
    config->min_peers = *(const uint32_t *)peers;
    config->strategy = PARLEY_STRATEGY_NOLOCO;
    config->mix_every = 50;
}

static void meet_gently(struct parley_config *config, uint32_t node, void *peers)
{
    meet(config, node, peers);
    config->outer_rate = 0.3;
    config->outer_momentum = 0.2;
}

static void meet_for_long(struct parley_config *config, uint32_t node, void *peers)
{
    meet(config, node, peers);
    config->mix_every = 7;
    config->steps_budget = 1000;
}

static uint32_t others = NODES - 1;

/* Of the weights, and of weight times model. */
static double weigh(const struct parley_sim *sim, double sum[PARAMETERS])
{
    double weight = 0;
    memset(sum, 0, PARAMETERS * sizeof *sum);
    for (uint32_t i = 0; i < NODES; i++) {
        struct parley_view view = scene_view(sim, i);
        weight += view.weight;
        for (int j = 0; j < PARAMETERS; j++)
            sum[j] += view.weight * (double)parley_sim_vector(sim, i)[j];
    }
    return weight;
}

/* What all have together of the samples that were made, over those. */
static double parts(const struct parley_sim *sim)
{
    double part = 0, samples = 0;
    for (uint32_t i = 0; i < NODES; i++) {
        part += sim->hosts[i].node->training.part;
        samples += (double)sim->hosts[i].node->training.samples;
    }
    return part / samples;
}

Test(pushing, losses_and_cuts_take_no_weight_and_move_no_mean)
{
    /* Proves that with messages lost and connections cut all the time the weights
     * never sum to more than n, and to n, with weight times model what it was at the start, as
     * soon as nothing is on its way; that likewise no part of the samples made is lost; and that
     * models come near the true mean. */
    double before[PARAMETERS], now[PARAMETERS];
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = NODES,
                                                                .seed = 5,
                                                                .latency_us = 300,
                                                                .loss = 0.03,
                                                                .configure = push,
                                                                .arg = &others});
    struct rng rng = rng_init(5, 7);
    uint32_t quiet = 0;
    bool uneven = false;
    scene_train(sim, NODES);
    scene_until(sim, NODES, parley_sim_quiet, NULL, 5); /* nothing is on its way */
    weigh(sim, before);
    double spread = parley_sim_spread(sim);
    for (int cut = 0; cut < 300; cut++) {
        uint32_t a = rng_below(&rng, NODES), b = (a + 1 + rng_below(&rng, NODES - 1)) % NODES;
        parley_sim_disconnect(sim, a, b);
        scene_run(sim, 5000 + rng_below(&rng, 20000));
        double weight = weigh(sim, now);
        cr_assert_lt(weight, NODES + 1e-9, "%.12g", weight);
        uneven = uneven || weight < NODES - 0.01;
        if (!parley_sim_quiet(sim, NULL)) continue;
        quiet++;
        cr_assert_float_eq(weight, NODES, 1e-9, "%.12g", weight);
        cr_assert_float_eq(parts(sim), 1, 1e-9, "%.12g", parts(sim));
        for (int j = 0; j < PARAMETERS; j++)
            cr_assert_lt(fabs(now[j] - before[j]), 1e-4 * spread, "%d: %g, was %g", j, now[j],
                         before[j]);
    }
    cr_assert(quiet > 3 && uneven, "%u times quiet", quiet);
    for (uint32_t i = 0; i < NODES; i++)
        parley_sim_loss(sim, i, 0);
    scene_run(sim, 5 * SECOND);
    cr_assert_lt(parley_sim_spread(sim), 1e-3 * spread);
    for (int j = 0; j < PARAMETERS; j++)
        cr_assert_lt(fabs((double)parley_sim_vector(sim, 0)[j] - before[j] / NODES), 1e-2 * spread);
    scene_agree(sim, NODES, 0);
    parley_sim_free(sim);
}

/* Nodes that have trained through a storm. */
static struct parley_sim *stormy(uint64_t seed,
                                 void (*configure)(struct parley_config *, uint32_t, void *))
{
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = NODES,
                                                                .seed = seed,
                                                                .step_us = 10000,
                                                                .latency_us = seed % 3 * 200,
                                                                .rate = 0.1,
                                                                .configure = configure,
                                                                .arg = &others});
    scene_train(sim, NODES);
    storm(sim, NODES, seed);
    return sim;
}

static void push_rarely(struct parley_config *config, uint32_t node, void *peers)
{
    push(config, node, peers);
    config->mix_every = 10;
}

Test(pushing, a_slow_node_does_not_hoard)
{
    /* It gets a part of what seven others push, and makes a step to their twenty. */
    struct parley_sim *sim = scene(&(struct parley_sim_options){
        .nodes = NODES, .seed = 1, .configure = push_rarely, .arg = &others});
    double mean = 0;
    enum { TIMES = 200 };
    scene_train(sim, NODES);
    parley_sim_slow(sim, 3, 20);
    scene_run(sim, SECOND);
    for (uint32_t i = 0; i < TIMES; i++) {
        scene_run(sim, 10000);
        mean += scene_view(sim, 3).weight / TIMES;
    }
    cr_assert(mean > 0.5 && mean < 3, "%g of %d", mean, NODES);
    scene_agree(sim, NODES, 0);
    parley_sim_free(sim);
}

Test(pushing, who_reaches_one_less_does_not_hoard)
{
    /* Two who can never link get what the others push, and push it on to those whom they reach. */
    enum { TIMES = 200, FEW = 5 };
    uint32_t four = FEW - 1;
    double mean[FEW] = {0};
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = FEW,
                                                                .seed = 1,
                                                                .seeds = FEW,
                                                                .step_us = 10000,
                                                                .latency_us = 1000,
                                                                .configure = push,
                                                                .arg = &four});
    scene_part(sim, 0, 1);
    scene_train(sim, FEW);
    scene_run(sim, 10 * SECOND); /* the first dials come to nothing */
    uint64_t before = 0, after = 0;
    for (uint32_t i = 0; i < FEW; i++)
        before += scene_view(sim, i).ledger.committed;
    for (uint32_t t = 0; t < TIMES; t++) {
        scene_run(sim, SECOND / 10);
        for (uint32_t i = 0; i < FEW; i++)
            mean[i] += scene_view(sim, i).weight / TIMES;
    }
    for (uint32_t i = 0; i < FEW; i++)
        after += scene_view(sim, i).ledger.committed;
    for (uint32_t i = 0; i < FEW; i++)
        cr_expect(mean[i] > 0.7 && mean[i] < 1.4, "n%u: %g of %d", i, mean[i], FEW);
    cr_expect_gt(after - before, 20 * 100, "%d pushes in 20 s", (int)(after - before));
    scene_agree(sim, FEW, 0);
    parley_sim_free(sim);
}

Test(pushing, nobody_waits_for_the_dead)
{
    /* Proves that deaths, pauses and returns at random times hold nobody up, that the living keep
     * their weights, and that they agree. */
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct parley_sim *sim = stormy(seed, push);
        for (uint32_t i = 0; i < NODES; i++) {
            struct parley_view view = scene_view(sim, i);
            const struct parley_node *node = sim->hosts[i].node; /* NULL: dead */
            double unit = node ? node->training.unit : 1.0 / 64;
            cr_assert(unit >= 1.0 / 64 && unit <= 1, "n%u counts in %g", i, unit);
            cr_assert(view.weight >= 0.5 * unit && view.weight < NODES, "n%u has %g", i,
                      view.weight);
        }
        storm_ends(sim, NODES, 10000);
        parley_sim_free(sim);
    }
}

Test(pushing, who_has_made_its_steps_still_meets_those_who_have_not)
{
    /* Proves that a node ten times slower, which makes the last of the budget's steps alone, goes
     * on with the outer optimizer. */
    uint32_t two = 2;
    struct parley_sim *sim = scene(&(struct parley_sim_options){
        .nodes = 3, .seed = 1, .step_us = 10000, .configure = meet_for_long, .arg = &two});
    scene_train(sim, 3);
    parley_sim_slow(sim, 2, 10);
    scene_run(sim, 12 * SECOND); /* two have made their 1000 */
    struct parley_view before = scene_view(sim, 2);
    scene_run(sim, 30 * SECOND);
    struct parley_view after = scene_view(sim, 2);
    cr_assert(before.version < 200 && after.version < 1000, "%d", (int)after.version);
    cr_assert_gt(after.ledger.applied, before.ledger.applied + 10);
    parley_sim_free(sim);
}

/* Three steps: the distance of two nodes, with nothing learned between, follows the recurrence of
 * the outer optimizer, m <- momentum m - rate e, e <- e + m, and they come every 50 local ones. */
static void make_outer_steps(void (*configure)(struct parley_config *, uint32_t, void *),
                             double rate, double momentum)
{
    uint32_t one = 1;
    struct parley_sim *sim = scene(
        &(struct parley_sim_options){.nodes = 2, .seed = 3, .configure = configure, .arg = &one});
    double e = 1, m = 0;
    scene_train(sim, 2);
    double spread = parley_sim_spread(sim);
    for (uint64_t step = 1; step <= 3; step++) {
        struct parley_view view = {0};
        m = momentum * m - rate * e;
        e += m;
        while (view.ledger.applied < step) {
            scene_run(sim, 1000);
            view = scene_view(sim, 0);
        }
        scene_run(sim, 2000);
        cr_assert(view.version >= 45 * step && view.version <= 70 * step, "step %llu at %llu",
                  (unsigned long long)step, (unsigned long long)view.version);
        cr_assert_float_eq(parley_sim_spread(sim) / spread, fabs(e), 1e-3, "%g of it, not %g",
                           parley_sim_spread(sim) / spread, fabs(e));
    }
    scene_agree(sim, 2, 0);
    parley_sim_free(sim);
}

Test(pushing, outer_steps_are_those_of_the_paper)
{
    make_outer_steps(meet, 0.7, 0.5);
    make_outer_steps(meet_gently, 0.3, 0.2);
}

static void meet_and_wait(struct parley_config *config, uint32_t node, void *peers)
{
    meet(config, node, peers);
    config->outer_momentum = 0.9;
    config->steps_budget = 200;
}

Test(pushing, who_has_had_its_steps_makes_no_outer_ones)
{
    /* Two of three are done in 0.2 s, and wait until the third is: they exchange with it alone, and
     * what its momentum moves it by, they follow half-way. */
    for (uint64_t seed = 1; seed <= 5; seed++) {
        uint32_t two = 2;
        struct parley_sim *sim = scene(&(struct parley_sim_options){
            .nodes = 3, .seed = seed, .step_us = 1000, .configure = meet_and_wait, .arg = &two});
        parley_sim_slow(sim, 2, 20);
        scene_train(sim, 3);
        scene_run(sim, SECOND / 2);
        double own = (double)parley_sim_vector(sim, 0)[0];
        double other = (double)parley_sim_vector(sim, 1)[0];
        struct parley_view before = scene_view(sim, 0), view;
        cr_assert_eq(before.version, 200);
        scene_run(sim, 3 * SECOND / 10); /* the third is not due before its 45th step */
        cr_assert_eq((double)parley_sim_vector(sim, 0)[0], own);
        cr_assert_eq((double)parley_sim_vector(sim, 1)[0], other);
        scene_run(sim, 3 * SECOND - SECOND / 10);
        view = scene_view(sim, 0);
        cr_assert_eq(view.phase, PARLEY_PHASE_TRAIN);
        cr_assert_leq(view.ledger.applied - before.ledger.applied, 4, "%llu exchanges",
                      (unsigned long long)view.ledger.applied);
        parley_sim_free(sim);
    }
}

Test(pushing, outer_steps_wait_for_nobody_who_is_dead)
{
    /* Proves the same of noloco as of push-sum above. */
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct parley_sim *sim = stormy(seed, meet);
        storm_ends(sim, NODES, 20000);
        parley_sim_free(sim);
    }
}

static void meet_at_each_step(struct parley_config *config, uint32_t node, void *peers)
{
    meet(config, node, peers);
    config->mix_every = 1;
}

static bool last_has_a_model(struct parley_sim *sim, void *arg)
{
    (void)arg;
    struct parley_view view = scene_view(sim, 3);
    return view.phase == PARLEY_PHASE_TRAIN && view.ledger.joins == 1;
}

Test(pushing, a_late_node_gets_the_state_of_those_that_are_always_at_an_outer_step)
{
    /* Over a line so long that the next exchange follows the last at once: who is asked for its
     * state, which no exchange may change meanwhile, begins none until it has been given. */
    for (uint64_t seed = 1; seed <= 8; seed++) {
        const uint64_t starts[] = {0, 0, 0, 5 * SECOND};
        uint32_t two = 2;
        struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 4,
                                                                    .seed = seed,
                                                                    .start_us = starts,
                                                                    .step_us = 2000,
                                                                    .latency_us = 75000,
                                                                    .configure = meet_at_each_step,
                                                                    .arg = &two});
        scene_run(sim, 5 * SECOND);
        scene_until(sim, 4, last_has_a_model, NULL, 5);
        parley_sim_free(sim);
    }
}
