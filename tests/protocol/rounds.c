/* rounds.c: gossip-sync: what its rounds conserve, how fast they mix, and what deaths do to them.
 */
#include "core/strategy/rounds.h"
#include "../../sim/swarm/watch.h"
#include "core/topology/topology.h"
#include "storm.h"
#include "strike.h"

enum { PARAMETERS = 64, ROUND_US = 100000 };

struct cluster {
    uint32_t nodes;
    enum parley_topology topology;
    uint32_t degree;
    uint64_t time_us;              /* budget; 0: none */
    enum parley_strategy strategy; /* 0: gossip-sync */
    uint32_t mix_every;            /* 0: each step */
};

static void configure(struct parley_config *config, uint32_t node, void *arg)
{
    const struct cluster *cluster = arg;
    (void)node;
    config->strategy = cluster->strategy ? cluster->strategy : PARLEY_STRATEGY_GOSSIP_SYNC;
    config->topology = cluster->topology;
    config->topology_degree = cluster->degree;
    config->min_peers = cluster->nodes - 1;
    config->time_budget_us = cluster->time_us;
    if (cluster->mix_every) config->mix_every = cluster->mix_every;
}

static struct parley_sim *begin(struct cluster *cluster, uint64_t seed, uint64_t step_us,
                                uint64_t latency_us, double rate)
{
    return scene(&(struct parley_sim_options){.nodes = cluster->nodes,
                                              .seed = seed,
                                              .step_us = step_us,
                                              .latency_us = latency_us,
                                              .rate = rate,
                                              .configure = configure,
                                              .arg = cluster});
}

/* The models' part along cos and sin(2 pi k place / n), the slowest of rounds on a ring and on the
 * exponential graph; `line` has the nodes in the order of their names. */
static void wave_of(const struct parley_sim *sim, const struct cluster *cluster, uint32_t k,
                    double wave[2][PARAMETERS])
{
    memset(wave, 0, 2 * sizeof *wave);
    for (uint32_t i = 0; i < cluster->nodes; i++) /* up to n9 they are in order */
        for (int j = 0; j < PARAMETERS; j++) {
            double angle = 2 * acos(-1) * (double)(k * i) / cluster->nodes;
            wave[0][j] += cos(angle) * (double)parley_sim_vector(sim, i)[j];
            wave[1][j] += sin(angle) * (double)parley_sim_vector(sim, i)[j];
        }
}

/* What a round leaves of wave k: the eigenvalue of W. */
static double wave_value(const struct cluster *cluster, uint32_t k)
{
    const struct topology t = {.kind = cluster->topology, .n = cluster->nodes};
    double value = 1;
    for (uint32_t b = 1; b < t.n; b++)
        value -= topology_weight(&t, 0, 0, b) * (1 - cos(2 * acos(-1) * (double)(k * b) / t.n));
    return value;
}

Test(rounds, a_round_leaves_of_each_wave_what_the_eigenvalue_says)
{
    /* Proves that rounds are x <- W x with Metropolis weights: on ring and exponential graph each
     * wave shrinks by its eigenvalue, so the slowest by the spectral gap, to a thousandth. */
    struct cluster clusters[] = {{.nodes = 8, .topology = PARLEY_TOPOLOGY_RING},
                                 {.nodes = 9, .topology = PARLEY_TOPOLOGY_EXPONENTIAL}};
    for (int c = 0; c < 2; c++)
        for (uint32_t k = 1; k <= 2; k++) {
            enum { ROUNDS = 4 };
            static double before[2][PARAMETERS], after[2][PARAMETERS];
            struct parley_sim *sim = begin(&clusters[c], 1, ROUND_US, 0, 0);
            scene_train(sim, clusters[c].nodes);
            scene_run(sim, 3 * ROUND_US / 2);
            wave_of(sim, &clusters[c], k, before);
            scene_run(sim, ROUNDS * ROUND_US);
            wave_of(sim, &clusters[c], k, after);
            double left = 0, whole = 0;
            for (int j = 0; j < PARAMETERS; j++)
                for (int shift = 0; shift < 2; shift++) {
                    left += before[shift][j] * after[shift][j];
                    whole += before[shift][j] * before[shift][j];
                }
            double expected = pow(wave_value(&clusters[c], k), ROUNDS);
            cr_assert_lt(fabs(left / whole - expected), 1e-3 * fabs(expected) + 1e-5,
                         "%g of wave %u left, not %g", left / whole, k, expected);
            cr_assert_leq(parley_sim_mass_error(sim), 1e-6);
            parley_sim_free(sim);
        }
}

static bool all_have_mixed_once(struct parley_sim *sim, void *arg)
{
    const struct cluster *cluster = arg;
    for (uint32_t i = 0; i < cluster->nodes; i++)
        if (rounds_of(sim->hosts[i].node)->round < 1) return false;
    return true;
}

Test(rounds, the_first_is_with_all_neighbours)
{
    /* Proves that who is about to train, as far as has been heard, takes part: on the complete
     * graph one round makes all equal. The first six were with the seeds alone. */
    struct cluster cluster = {.nodes = 8, .topology = PARLEY_TOPOLOGY_COMPLETE};
    struct parley_sim *sim = begin(&cluster, 4, 1000, 20000, 0);
    scene_run(sim, 1000); /* all have met nobody yet */
    double before = parley_sim_spread(sim);
    scene_train(sim, 8);
    scene_until(sim, 8, all_have_mixed_once, &cluster, 10);
    scene_run(sim, 2000);
    cr_assert_lt(parley_sim_spread(sim), 1e-5 * before, "%g of it is left",
                 parley_sim_spread(sim) / before);
    parley_sim_free(sim);
}

Test(rounds, of_a_base_graph_bring_all_to_the_mean_in_finite_time)
{
    /* Proves that the weights of each round are those of the graph: after its rounds 7 nodes are
     * equal but for rounding. */
    struct cluster cluster = {.nodes = 7, .topology = PARLEY_TOPOLOGY_BASE, .degree = 1};
    struct parley_sim *sim = begin(&cluster, 2, ROUND_US, 0, 0);
    scene_train(sim, 7);
    double before = parley_sim_spread(sim);
    scene_run(sim, (2 * topology_base_rounds(7, 1) + 1) * ROUND_US);
    cr_assert_lt(parley_sim_spread(sim), 1e-5 * before);
    parley_sim_free(sim);
}

Test(rounds, of_a_base_graph_leave_nobody_out_over_long_lines)
{
    /* Proves that who hears of others' later rounds, with whom it is not to meet yet, makes its own
     * ones all the same: it went on to theirs, and those that it was to meet waited for seconds. */
    struct cluster cluster = {.nodes = 16, .topology = PARLEY_TOPOLOGY_BASE, .degree = 1};
    struct parley_sim *sim = begin(&cluster, 7, 20000, 30000, 0);
    scene_train(sim, 16);
    scene_run(sim, 2 * SECOND); /* the first rounds were made without those who came last */
    uint64_t steps = scene_made(sim, 16), applied = scene_applied(sim, 16);
    scene_run(sim, 10 * SECOND);
    steps = scene_made(sim, 16) - steps;
    applied = scene_applied(sim, 16) - applied;
    cr_assert_gt(steps, 16 * 10 * SECOND / (6 * 30000), "%llu", (unsigned long long)steps);
    cr_assert_geq(applied + 16, steps, "%llu of %llu", (unsigned long long)applied,
                  (unsigned long long)steps); /* but those under way */
    parley_sim_free(sim);
}

Test(rounds, with_many_neighbours_take_no_longer_over_long_lines)
{
    /* Proves that the models of all neighbours are on their way together: with two at a time, each
     * of which goes there and back, a round with 15 neighbours took 15 ways. */
    struct cluster cluster = {.nodes = 16, .topology = PARLEY_TOPOLOGY_COMPLETE};
    struct parley_sim *sim = begin(&cluster, 8, 1000, 30000, 0);
    scene_train(sim, 16);
    uint64_t applied = scene_applied(sim, 16);
    scene_run(sim, 10 * SECOND);
    uint64_t rounds = (scene_applied(sim, 16) - applied) / (16 * 15);
    cr_assert_gt(rounds, 10 * SECOND / (6 * 30000), "%llu", (unsigned long long)rounds);
    parley_sim_free(sim);
}

Test(rounds, with_many_neighbours_bury_nobody_behind_a_narrow_line)
{
    /* Proves that the models of all do not stand before a narrow line together: n3 was taken for
     * dead behind them, as its answers to probes stood there, too. */
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct cluster cluster = {.nodes = 8, .topology = PARLEY_TOPOLOGY_COMPLETE};
        struct scene_lines deaths = {.text = " dead: "};
        struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 8,
                                                                    .seed = seed,
                                                                    .parameters = 100000,
                                                                    .step_us = 20000,
                                                                    .latency_us = 5000,
                                                                    .bandwidth_bytes = 1250000,
                                                                    .configure = configure,
                                                                    .arg = &cluster});
        parley_sim_on_line(sim, PARLEY_LOG_ERROR, scene_count, &deaths);
        parley_sim_bandwidth(sim, 3, 125000);
        scene_train(sim, 8);
        scene_run(sim, 60 * SECOND);
        cr_assert_eq(deaths.count, 0, "%u", deaths.count);
        parley_sim_free(sim);
    }
}

/* The longest that one of those who live makes no step, in so many seconds. */
static double longest_stand_s(struct parley_sim *sim, uint32_t nodes, uint32_t seconds)
{
    uint64_t version[16] = {0}, since_us[16], longest_us = 0;
    uint64_t end_us = parley_sim_now(sim) + seconds * SECOND;
    for (uint32_t i = 0; i < nodes; i++)
        since_us[i] = parley_sim_now(sim);
    while (parley_sim_now(sim) < end_us) {
        scene_run(sim, SECOND / 20);
        for (uint32_t i = 0; i < nodes; i++) {
            uint64_t made = scene_view(sim, i).version, now_us = parley_sim_now(sim);
            if (!parley_sim_live(sim, i)) continue;
            if (made != version[i]) since_us[i] = now_us;
            if (now_us - since_us[i] > longest_us) longest_us = now_us - since_us[i];
            version[i] = made;
        }
    }
    return (double)longest_us / 1e6;
}

Test(rounds, nobody_stands_where_the_graph_was_laid_anew_while_it_waited)
{
    /* Proves that who was told to wait by one that has it for no neighbour in the round which that
     * begins, as somebody has gone, hears so soon: it stood for two seconds. */
    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct cluster cluster = {.nodes = 6, .topology = PARLEY_TOPOLOGY_BASE, .degree = 1};
        struct parley_sim *sim = begin(&cluster, seed, 3000, 500, 0.01);
        scene_train(sim, 6);
        scene_run(sim, SECOND + seed * 1700);
        parley_sim_kill(sim, (uint32_t)seed % 6, false);
        double stand_s = longest_stand_s(sim, 6, 3);
        cr_assert_lt(stand_s, 1, "seed %d: %.2f s", (int)seed, stand_s);
        parley_sim_free(sim);
    }
}

static bool a_term_is_lonely(struct parley_sim *sim, void *watch)
{
    (void)sim;
    return sim_watch_lonely(watch) > 0;
}

Test(rounds, of_equal_models_have_terms_with_two_ends_too)
{
    /* Proves of the checker that it sees a term that one end has added alone, and knows which two
     * ends belong together: n0 and n1 are equal to the bit when n2 takes their model, so that all
     * terms are 0, and n2 adds both of its own after the others had theirs. */
    const uint64_t start_us[] = {0, 0, SECOND};
    struct cluster cluster = {
        .nodes = 2, .topology = PARLEY_TOPOLOGY_COMPLETE, .time_us = 2 * SECOND};
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 3,
                                                                .seed = 1,
                                                                .start_us = start_us,
                                                                .step_us = 3000,
                                                                .latency_us = 1000,
                                                                .configure = configure,
                                                                .arg = &cluster});
    struct sim_watch *watch;
    cr_assert_eq(sim_watch_new(&watch, sim), 0);
    scene_until(sim, 2, a_term_is_lonely, watch, 1);
    scene_run(sim, SECOND);
    scene_train(sim, 3);
    cr_assert_eq(parley_sim_spread(sim) > 0, 0, "the models differ");
    scene_until(sim, 3, parley_sim_agreed, NULL, 10);
    cr_assert_eq(sim_watch_lonely(watch), 0, "%u terms have one end", sim_watch_lonely(watch));
    parley_sim_free(sim);
    sim_watch_free(watch);
}

Test(rounds, random_cuts_leave_the_mean_where_it_was)
{
    /* Proves that a link's term is taken on both sides or on none, whatever breaks when. */
    for (uint64_t seed = 1; seed <= 2; seed++) {
        struct cluster cluster = {.nodes = 8, .topology = PARLEY_TOPOLOGY_EXPONENTIAL};
        struct parley_sim *sim = begin(&cluster, seed, 5000, 300, 0);
        scene_cut(sim, 8, 200, seed);
        parley_sim_free(sim);
    }
}

Test(rounds, the_end_may_come_in_the_middle_of_one)
{
    /* Proves that a round under way when the time is up is ended, without waiting for who begins
     * no more, and that all agree soon. */
    struct cluster cluster = {
        .nodes = 8, .topology = PARLEY_TOPOLOGY_EXPONENTIAL, .time_us = 2 * SECOND};
    struct parley_sim *sim = begin(&cluster, 4, 5000, 2000, 0.1);
    scene_train(sim, 8);
    scene_until(sim, 8, parley_sim_agreed, NULL, 10);
    scene_same(sim, 8);
    cr_assert_leq(parley_sim_mass_error(sim), 1e-6);
    parley_sim_free(sim);
}

Test(rounds, nobody_waits_for_the_dead)
{
    /* Proves that deaths, pauses and returns at random times hold nobody up for longer than it
     * takes to notice them, and that the live agree. */
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct cluster cluster = {.nodes = 8,
                                  .topology =
                                      seed % 2 ? PARLEY_TOPOLOGY_RING : PARLEY_TOPOLOGY_REGULAR,
                                  .degree = 3};
        struct parley_sim *sim = begin(&cluster, seed, 20000, seed % 3 * 200, 0.1);
        scene_train(sim, 8);
        storm(sim, 8, seed);
        storm_ends(sim, 8, 20000);
        parley_sim_free(sim);
    }
}

/* Both that go by rounds. */
static const enum parley_strategy strategies[] = {PARLEY_STRATEGY_GOSSIP_SYNC,
                                                  PARLEY_STRATEGY_CHOCO};

Test(rounds, nobody_follows_the_dead)
{
    /* Proves that two which were to take the state of the third, the only one that is rounds
     * ahead, go on with each other when it dies as it answers. */
    for (int k = 0; k < 2; k++) {
        struct cluster cluster = {.nodes = 3, .strategy = strategies[k]};
        struct strike death = {.type = WIRE_FETCHED, .number = 1};
        struct parley_sim *sim = begin(&cluster, 5, 10000, 300, 0.01);
        scene_train(sim, 3);
        parley_sim_pause(sim, 1);
        parley_sim_pause(sim, 2);
        scene_run(sim, 20 * SECOND);
        parley_sim_on_frame(sim, strike, &death);
        parley_sim_resume(sim, 1);
        parley_sim_resume(sim, 2);
        scene_run(sim, 10 * SECOND);
        cr_assert(death.done && death.from == 0 && !parley_sim_live(sim, 0));
        struct parley_view before = scene_view(sim, 1);
        scene_run(sim, 5 * SECOND);
        struct parley_view after = scene_view(sim, 1);
        cr_assert_geq(after.version, before.version + 400, "%llu steps in 5 s",
                      (unsigned long long)(after.version - before.version));
        cr_assert_geq(after.ledger.applied, before.ledger.applied + 400);
        scene_agree(sim, 3, 1);
        parley_sim_free(sim);
    }
}

Test(rounds, who_waits_for_a_slow_one_keeps_its_model)
{
    /* Proves that nobody throws its steps away because a neighbour has ended the round before it:
     * where a round is longer than the steps that one may be behind, those who were ready a little
     * later took that one's model, round by round; and so on a graph on which rounds lie apart. */
    struct cluster clusters[] = {
        {.nodes = 8, .topology = PARLEY_TOPOLOGY_RING, .mix_every = 100},
        {.nodes = 8,
         .topology = PARLEY_TOPOLOGY_RING,
         .strategy = PARLEY_STRATEGY_CHOCO,
         .mix_every = 100},
        {.nodes = 8, .topology = PARLEY_TOPOLOGY_EXPONENTIAL, .mix_every = 65},
        {.nodes = 23, .topology = PARLEY_TOPOLOGY_BASE, .degree = 1, .mix_every = 65}};
    for (size_t c = 0; c < sizeof clusters / sizeof *clusters; c++) {
        struct cluster *cluster = &clusters[c];
        struct scene_lines taken = {.text = "took model"};
        struct parley_sim *sim = begin(cluster, c + 1, 1000, 1000, 0.01);
        parley_sim_slow(sim, 3, 2);
        scene_train(sim, cluster->nodes);
        scene_run(sim, SECOND);
        parley_sim_on_line(sim, PARLEY_LOG_INFO, scene_count, &taken);
        uint64_t applied = scene_applied(sim, cluster->nodes);
        scene_run(sim, 20 * SECOND);
        cr_assert_eq(taken.count, 0, "%u models taken on graph %zu", taken.count, c);
        applied = scene_applied(sim, cluster->nodes) - applied;
        cr_assert_gt(applied, 50 * cluster->nodes, "%llu", (unsigned long long)applied);
        parley_sim_free(sim);
    }
}

static void resume_but_for_the_first(struct parley_config *config, uint32_t node, void *arg)
{
    configure(config, node, arg);
    config->min_peers = 0;
    if (node > 0) config->resumed = (struct parley_resumed){5000, 5000, 5000, 15000, 0};
}

Test(rounds, who_brings_a_model_of_its_own_goes_on_with_it)
{
    /* Proves that a first node which has made hundreds of rounds alone does not give its model to
     * those who come with theirs, and better ones, and count their rounds from 0. */
    for (int k = 0; k < 2; k++) {
        const uint64_t starts[] = {0, 10 * SECOND, 10 * SECOND};
        struct cluster cluster = {.nodes = 3, .strategy = strategies[k]};
        struct parley_sim *sim =
            scene(&(struct parley_sim_options){.nodes = 3,
                                               .seed = 1,
                                               .step_us = 10000,
                                               .latency_us = 300,
                                               .rate = 0.01,
                                               .start_us = starts,
                                               .configure = resume_but_for_the_first,
                                               .arg = &cluster});
        scene_run(sim, 9 * SECOND);
        cr_assert_gt(rounds_of(sim->hosts[0].node)->round, 500);
        scene_run(sim, 10 * SECOND);
        for (uint32_t i = 0; i < 3; i++)
            cr_assert_eq(scene_view(sim, i).ledger.joins, 0, "n%u", i);
        cr_assert_gt(scene_applied(sim, 3), 500);
        scene_agree(sim, 3, 1);
        parley_sim_free(sim);
    }
}

static void resume_apart(struct parley_config *config, uint32_t node, void *arg)
{
    const uint64_t made = 1000 + 250 * node, budget = 2000;
    configure(config, node, arg);
    config->steps_budget = budget;
    config->resumed = (struct parley_resumed){made, made, made, 3 * made, 0};
}

Test(rounds, who_has_made_its_steps_in_two_lives_mixes_with_those_who_have_not)
{
    /* Proves that nodes which go on from files of different ages take as long as the one that has
     * the most steps to make: nobody is silent because its budget is not that of this life. */
    for (int k = 0; k < 2; k++) {
        struct cluster cluster = {.nodes = 3, .strategy = strategies[k]};
        struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 3,
                                                                    .seed = 1,
                                                                    .step_us = 10000,
                                                                    .latency_us = 300,
                                                                    .rate = 0.01,
                                                                    .configure = resume_apart,
                                                                    .arg = &cluster});
        scene_train(sim, 3);
        scene_until(sim, 3, parley_sim_agreed, NULL, 12); /* 1,000 steps of 10 ms */
        scene_same(sim, 3);
        struct parley_view view = scene_view(sim, 0);
        cr_assert_eq(view.version, 1000);
        cr_assert_geq(view.ledger.applied, 1000);
        parley_sim_free(sim);
    }
}

Test(rounds, two_that_cannot_reach_each_other_do_not_hold_up_each_round)
{
    /* Proves that a link which can't be made, as between two behind NAT, is waited for once, not in
     * each round: 10 s each, by all. Both ends leave it out, and the mean holds. */
    for (int choco = 0; choco < 2; choco++) {
        struct cluster cluster = {.nodes = 4,
                                  .topology = PARLEY_TOPOLOGY_COMPLETE,
                                  .strategy = choco ? PARLEY_STRATEGY_CHOCO : 0,
                                  .time_us = 90 * SECOND};
        struct parley_sim *sim = begin(&cluster, 1, 5000, 20000, 0);
        scene_train(sim, 4);
        scene_part(sim, 0, 2);
        scene_run(sim, 40 * SECOND);
        struct parley_view before, after;
        parley_sim_view(sim, 1, &before);
        scene_run(sim, 10 * SECOND);
        parley_sim_view(sim, 1, &after);
        cr_assert_geq(after.version, before.version + 50, "%llu steps in 10 s",
                      (unsigned long long)(after.version - before.version));
        parley_sim_heal(sim);
        scene_until(sim, 4, parley_sim_agreed, NULL, 120);
        cr_assert_leq(parley_sim_mass_error(sim), 1e-6);
        parley_sim_free(sim);
    }
}
