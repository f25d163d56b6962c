/* averaging.c: exchanges between live nodes: what they conserve, and how fast they mix. */
#include "scene.h"

Test(averaging, two_nodes_average_and_agree_bit_for_bit)
{
    /* The agreed model is the mean of the two first ones, and equal on both. */
    struct parley_sim *sim = scene_together(&(struct parley_sim_options){.nodes = 2, .seed = 1});
    double mean[64], agreed;
    scene_train(sim, 2);
    parley_sim_mean(sim, mean);
    scene_run(sim, 1 * SECOND);
    scene_agree(sim, 2, 0);
    for (int j = 0; j < 64; j++) {
        agreed = parley_sim_agreed_vector(sim, 0)[j];
        cr_assert_lt(fabs(agreed - mean[j]), 1e-4, "%d: %g instead of %g", j, agreed, mean[j]);
    }
    parley_sim_free(sim);
}

Test(averaging, a_node_alone_agrees_with_itself)
{
    /* n = 1 trains and ends without anybody to talk to. */
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 1, .seed = 3});
    scene_train(sim, 1);
    scene_run(sim, 1 * SECOND);
    scene_agree(sim, 1, 0);
    parley_sim_free(sim);
}

Test(averaging, models_grow_equal_while_training_goes_on)
{
    /* Without a gradient, exchanges alone bring the spread of 8 nodes down a thousandfold. */
    struct parley_sim *sim =
        scene_together(&(struct parley_sim_options){.nodes = 8, .seed = 2, .latency_us = 100});
    scene_train(sim, 8);
    double before = parley_sim_spread(sim);
    scene_run(sim, 2 * SECOND);
    cr_assert_lt(parley_sim_spread(sim), 1e-3 * before);
    parley_sim_free(sim);
}

Test(averaging, an_exchange_that_takes_hundreds_of_steps_counts)
{
    /* Lines so long that 400 steps go by from the offer to the decision: the models still meet. */
    struct parley_sim *sim = scene_together(
        &(struct parley_sim_options){.nodes = 4, .seed = 6, .step_us = 1000, .latency_us = 100});
    scene_train(sim, 4);
    for (uint32_t i = 0; i < 4; i++)
        parley_sim_latency(sim, i, 50000);
    scene_run(sim, 1 * SECOND);
    double before = parley_sim_spread(sim);
    scene_run(sim, 20 * SECOND);
    cr_assert_lt(parley_sim_spread(sim), 1e-3 * before);
    cr_assert_leq(parley_sim_mass_error(sim), 1e-6);
    parley_sim_free(sim);
}

Test(averaging, random_cuts_leave_the_mean_where_it_was)
{
    /* With connections cut all the time, what one side adds the other takes away: at rest the mean
     * has moved by rounding only. */
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct parley_sim *sim = scene_together(
            &(struct parley_sim_options){.nodes = 8, .seed = seed, .latency_us = 300});
        scene_cut(sim, 8, 400, seed);
        uint64_t aborted = 0, dropped = 0;
        for (uint32_t i = 0; i < 8; i++) {
            struct parley_view view = scene_view(sim, i);
            aborted += view.ledger.aborted;
            dropped += view.ledger.dropped;
        }
        cr_assert_gt(aborted, 0, "the cuts have hit nothing");
        cr_assert_eq(dropped, 0);
        parley_sim_free(sim);
    }
}

struct answers {
    uint64_t offered_us[16][16]; /* 0: none open */
    uint32_t at_once, late;
};

static void see_answers(struct parley_sim *sim, const struct parley_sim_frame *frame, void *arg)
{
    struct answers *answers = arg;
    if (frame->type == WIRE_OFFER && frame->arriving)
        answers->offered_us[frame->from][frame->to] = parley_sim_now(sim);
    if ((frame->type != WIRE_BUSY && frame->type != WIRE_REFUSE) || frame->arriving) return;
    if (answers->offered_us[frame->to][frame->from] == parley_sim_now(sim))
        answers->at_once++;
    else
        answers->late++;
}

Test(averaging, a_busy_neighbour_says_so_at_once)
{
    /* However many ask one node, each BUSY leaves in the very moment the OFFER comes. */
    struct answers answers = {0};
    struct parley_sim *sim =
        scene_together(&(struct parley_sim_options){.nodes = 12, .seed = 5, .latency_us = 2000});
    parley_sim_on_frame(sim, see_answers, &answers);
    scene_train(sim, 12);
    scene_run(sim, 2 * SECOND);
    cr_assert_gt(answers.at_once, 10);
    cr_assert_eq(answers.late, 0);
    parley_sim_free(sim);
}

Test(averaging, crossed_offers_do_not_block)
{
    /* Two nodes that always offer to each other at the same moment still commit, without end. */
    struct parley_sim *sim =
        scene_together(&(struct parley_sim_options){.nodes = 2, .seed = 4, .latency_us = 1500});
    scene_train(sim, 2);
    for (int part = 0; part < 5; part++) {
        struct parley_view before[2], after[2];
        for (uint32_t i = 0; i < 2; i++)
            before[i] = scene_view(sim, i);
        scene_run(sim, 1 * SECOND);
        for (uint32_t i = 0; i < 2; i++)
            after[i] = scene_view(sim, i);
        cr_assert_gt(after[0].ledger.committed + after[1].ledger.committed,
                     before[0].ledger.committed + before[1].ledger.committed + 10);
    }
    scene_agree(sim, 2, 1);
    parley_sim_free(sim);
}

/* Without a pause between two exchanges. */
static void mix_always(struct parley_config *config, uint32_t node, void *arg)
{
    (void)node;
    config->mix_every = 1;
    config->min_peers = *(uint32_t *)arg;
}

struct pair {
    int open, most;
    uint32_t made;
};

static void see_pair(struct parley_sim *sim, const struct parley_sim_frame *frame, void *arg)
{
    struct pair *pair = arg;
    (void)sim;
    if (frame->arriving) return;
    if (frame->type == WIRE_ACCEPT) pair->open++;
    if (frame->type == WIRE_APPLIED) pair->open--;
    if (frame->type == WIRE_APPLIED) pair->made++;
    if (pair->open > pair->most) pair->most = pair->open;
}

Test(averaging, two_nodes_have_one_exchange_with_each_other_at_a_time)
{
    /* Of two that overlap, each adds what the other one adds already: the models would pass each
     * other by, and with momentum farther each time. Here an exchange takes some steps. */
    uint32_t peers = 1;
    struct pair pair = {0};
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 2,
                                                                .seed = 7,
                                                                .step_us = 1000,
                                                                .latency_us = 200,
                                                                .bandwidth_bytes = 200000,
                                                                .configure = mix_always,
                                                                .arg = &peers});
    parley_sim_on_frame(sim, see_pair, &pair);
    scene_train(sim, 2);
    scene_run(sim, 2 * SECOND);
    cr_assert_gt(pair.made, 100);
    cr_assert_eq(pair.most, 1);
    scene_agree(sim, 2, 1);
    parley_sim_free(sim);
}

static void mix_rarely(struct parley_config *config, uint32_t node, void *strategy)
{
    (void)node;
    config->min_peers = 3;
    config->strategy = *(const enum parley_strategy *)strategy;
    config->mix_every = 10;
    config->steps_budget = 100;
}

Test(averaging, who_has_had_its_steps_goes_on_at_its_pace)
{
    /* Three of four are at their budget's end after a second, the last after ten. Until then they
     * average every 100 ms as before, not as fast as the line can. */
    enum parley_strategy strategies[] = {PARLEY_STRATEGY_GOSSIP, PARLEY_STRATEGY_PUSH_SUM};
    for (int s = 0; s < 2; s++) {
        struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 4,
                                                                    .seed = 1,
                                                                    .step_us = 10000,
                                                                    .configure = mix_rarely,
                                                                    .arg = &strategies[s]});
        scene_train(sim, 4);
        parley_sim_slow(sim, 3, 10);
        scene_run(sim, 3 * SECOND);
        uint64_t before = scene_view(sim, 0).ledger.started;
        scene_run(sim, 5 * SECOND);
        struct parley_view view = scene_view(sim, 0);
        uint64_t started = view.ledger.started - before;
        cr_expect(started >= 20 && started <= 55, "%llu", (unsigned long long)started);
        cr_expect_eq(view.version, 100);
        cr_expect_eq(view.phase, PARLEY_PHASE_TRAIN);
        scene_until(sim, 4, parley_sim_agreed, NULL, 60);
        parley_sim_free(sim);
    }
}

static void star_of_one_pace(struct parley_config *config, uint32_t node, void *arg)
{
    (void)node;
    (void)arg;
    config->min_peers = 7;
    config->topology = PARLEY_TOPOLOGY_STAR;
    config->mix_every = 16;
    config->steps_budget = 200;
}

Test(averaging, nobody_finds_the_middle_busy_each_time)
{
    /* Seven at one pace, an exchange each 160 ms, wait for the slow one in their middle. None of
     * them asks more often, and who asks it right after another has its turn, too. */
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct parley_sim *sim = scene(&(struct parley_sim_options){
            .nodes = 8, .seed = seed, .step_us = 10000, .configure = star_of_one_pace});
        scene_train(sim, 8);
        parley_sim_slow(sim, 0, 5);
        scene_run(sim, 3 * SECOND);
        uint64_t before[8];
        for (uint32_t node = 1; node < 8; node++)
            before[node] = scene_view(sim, node).ledger.applied;
        scene_run(sim, 6 * SECOND);
        cr_expect_eq(scene_view(sim, 0).phase, PARLEY_PHASE_TRAIN);
        for (uint32_t node = 1; node < 8; node++) {
            uint64_t applied = scene_view(sim, node).ledger.applied - before[node];
            cr_expect_geq(applied, 3, "n%u of %u: %u", node, (unsigned)seed, (unsigned)applied);
            cr_expect_leq(applied, 45, "n%u of %u: %u", node, (unsigned)seed, (unsigned)applied);
        }
        parley_sim_free(sim);
    }
}
