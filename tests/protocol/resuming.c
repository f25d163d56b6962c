/* resuming.c: nodes that go on from their files. */
#include "scene.h"

static void resumed_far_or_near(struct parley_config *config, uint32_t node, void *arg)
{
    (void)arg;
    config->min_peers = node < 3 ? 2 : 0;
    if (node < 3)
        config->resumed = (struct parley_resumed){10000 + 500 * node, 20000, 10000, 60000, 0};
    if (node == 3) config->resumed = (struct parley_resumed){9000, 18000, 9000, 40000, 0};
    if (node == 4) config->resumed = (struct parley_resumed){7000, 14000, 7000, 68000, 0};
}

Test(resuming, who_is_resumed_behind_the_cluster_takes_its_model)
{
    /* A cluster goes on from its files, and what it had made counts; a node whose file is older
     * puts nothing back but for the number of its steps, one that is not behind goes on with its
     * own. */
    uint64_t starts[5] = {0, 0, 0, SECOND, SECOND};
    struct parley_member own;
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 5,
                                                                .seed = 1,
                                                                .seeds = 5,
                                                                .parameters = 50,
                                                                .start_us = starts,
                                                                .latency_us = 200,
                                                                .configure = resumed_far_or_near});
    scene_run(sim, 3 * SECOND);
    for (uint32_t node = 0; node < 5; node++) {
        struct parley_view view = scene_view(sim, node);
        parley_node_member(sim->hosts[node].node, 0, &own);
        bool behind = node == 3;
        cr_expect_eq(view.ledger.joins, behind, "n%u", node);
        cr_expect_eq(own.version - view.version,
                     behind      ? 9000
                     : node == 4 ? 7000
                                 : 10000 + 500 * node,
                     "n%u", node);
        cr_expect_eq(sim->hosts[node].life.turn.steps >= 7000, true, "n%u", node);
    }
    scene_agree(sim, 5, 0);
    parley_sim_free(sim);
}

/* What each of the nodes reckons that all have used is what had been used before, and what these
 * have since, but for that share of it. Returns it. */
static uint64_t expect_reckoned(struct parley_sim *sim, uint32_t nodes, uint64_t before, double but)
{
    uint64_t used = before;
    for (uint32_t node = 0; node < nodes; node++)
        used += scene_view(sim, node).version;
    for (uint32_t node = 0; node < nodes; node++) {
        struct parley_view view = scene_view(sim, node);
        cr_expect_float_eq((double)view.samples_cluster, (double)used, but * (double)used,
                           "n%u: %llu for %llu", node, (unsigned long long)view.samples_cluster,
                           (unsigned long long)used);
    }
    return used;
}

/* All had used 50,000; of the fourth, and of earlier lives of these three, nothing is left. */
static void three_of_a_cluster_that_was_killed(struct parley_config *config, uint32_t node,
                                               void *arg)
{
    (void)arg;
    config->min_peers = 1;
    config->samples_budget = 100000;
    config->resumed = (struct parley_resumed){1000, 10000 + 1000 * node, 1000, 50000, 0};
}

Test(resuming, what_a_killed_cluster_had_used_stays_used_though_not_all_are_back)
{
    /* Else its schedule would go back. The third comes later, and adds nothing that counts. */
    uint64_t starts[] = {0, 0, 2 * SECOND}, used = 0;
    struct parley_sim *sim =
        scene(&(struct parley_sim_options){.nodes = 3,
                                           .seed = 1,
                                           .seeds = 2,
                                           .parameters = 50,
                                           .step_us = 1000,
                                           .latency_us = 200,
                                           .start_us = starts,
                                           .configure = three_of_a_cluster_that_was_killed});
    for (uint64_t second = 1; second <= 4; second++) {
        scene_run(sim, SECOND);
        used = expect_reckoned(sim, second < 3 ? 2 : 3, 50000, 0.002);
        cr_expect_float_eq(scene_view(sim, 0).progress, (double)used / 100000, 0.01);
    }
    scene_until(sim, 3, parley_sim_agreed, NULL, 60);
    cr_expect_gt(used, 55000);
    parley_sim_free(sim);
}

struct without_first {
    enum parley_strategy strategy;
    bool together; /* they start, all */
};

static void all_but_the_first_of_a_cluster_that_was_killed(struct parley_config *config,
                                                           uint32_t node, void *arg)
{
    const struct without_first *without = arg;
    three_of_a_cluster_that_was_killed(config, node, arg);
    config->min_peers = without->together ? 2 : 0;
    config->strategy = without->strategy; /* all take the model that one of them has kept */
    config->resumed.steps *= node > 0;    /* 0: n0 has lost its file */
}

Test(resuming, what_a_killed_cluster_had_used_stays_used_though_one_without_a_file_trains_first)
{
    const struct without_first casts[] = {
        {PARLEY_STRATEGY_PS_ASP, false},    {PARLEY_STRATEGY_PS_ASP, true},
        {PARLEY_STRATEGY_ALLREDUCE, false}, {PARLEY_STRATEGY_ALLREDUCE, true},
        {PARLEY_STRATEGY_LOCAL_SGD, false}, {PARLEY_STRATEGY_LOCAL_SGD, true},
    };
    for (size_t c = 0; c < sizeof casts / sizeof *casts; c++) {
        uint64_t starts[] = {0, SECOND / 2, SECOND}, used = 0;
        struct without_first cast = casts[c];
        struct parley_sim *sim = scene(&(struct parley_sim_options){
            .nodes = 3,
            .seed = 1,
            .parameters = 50,
            .step_us = 1000,
            .latency_us = 200,
            .start_us = cast.together ? NULL : starts,
            .configure = all_but_the_first_of_a_cluster_that_was_killed,
            .arg = &cast});
        scene_run(sim, SECOND / 4);
        cr_assert(cast.together || scene_view(sim, 0).version > 0);
        scene_run(sim, SECOND);
        for (int second = 0; second < 2; second++) {
            scene_run(sim, SECOND);
            used = expect_reckoned(sim, 3, 50000, 0.01);
        }
        cr_expect_gt(used, 51000, "%d: %d", (int)c, (int)used);
        parley_sim_free(sim);
    }
}

/* As if it had been started with its file of 300 steps, which was written as it was killed. */
static void third_resumes(struct parley_config *config, uint32_t node, void *arg)
{
    const enum parley_strategy *strategy = arg;
    config->min_peers = 2;
    config->steps_budget = 800;
    config->strategy = *strategy;
    if (node == 3) {
        config->name = "n2";
        config->resumed = (struct parley_resumed){300, 300, 300, 900, 0};
    }
}

Test(resuming, who_comes_back_and_takes_the_model_of_the_others_has_made_its_steps_of_the_budget)
{
    /* It made them all again, and all waited for it. */
    enum parley_strategy strategies[] = {PARLEY_STRATEGY_GOSSIP,   PARLEY_STRATEGY_PUSH_SUM,
                                         PARLEY_STRATEGY_NOLOCO,   PARLEY_STRATEGY_GOSSIP_SYNC,
                                         PARLEY_STRATEGY_CHOCO,    PARLEY_STRATEGY_LOCAL_SGD,
                                         PARLEY_STRATEGY_ALLREDUCE};
    const uint64_t starts[] = {0, 0, 0, PARLEY_SIM_NEVER};
    for (size_t k = 0; k < sizeof strategies / sizeof *strategies; k++) {
        struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 4,
                                                                    .seed = 2,
                                                                    .rate = 0.01,
                                                                    .latency_us = 200,
                                                                    .start_us = starts,
                                                                    .configure = third_resumes,
                                                                    .arg = &strategies[k]});
        scene_train(sim, 3);
        while (scene_view(sim, 2).version < 320)
            scene_run(sim, 10000);
        parley_sim_kill(sim, 2, false);
        scene_run(sim, SECOND);
        parley_sim_start(sim, 3);
        scene_until(sim, 4, parley_sim_agreed, NULL, 60);
        struct parley_view view = scene_view(sim, 3);
        cr_expect_eq(view.steps, 800, "%d: %d", (int)k, (int)view.steps);
        cr_expect_leq(view.version, 500, "%d: %d", (int)k, (int)view.version);
        parley_sim_free(sim);
    }
}

static void third_resumes_with_all_made(struct parley_config *config, uint32_t node, void *arg)
{
    (void)arg;
    config->min_peers = 2;
    config->mix_every = 16;
    config->steps_budget = 1000;
    if (node == 3) {
        config->name = "n2";
        config->resumed = (struct parley_resumed){1000, 1000, 1000, 1500, 10 * SECOND};
    }
}

Test(resuming, who_comes_back_with_all_steps_made_exchanges_at_the_pace_of_before)
{
    /* Two slower ones are at work yet. It asked them each millisecond; its pace is 160 ms. */
    const uint64_t starts[] = {0, 0, 0, PARLEY_SIM_NEVER};
    struct parley_sim *sim =
        scene(&(struct parley_sim_options){.nodes = 4,
                                           .seed = 2,
                                           .rate = 0.01,
                                           .step_us = 10000,
                                           .latency_us = 200,
                                           .start_us = starts,
                                           .configure = third_resumes_with_all_made});
    scene_train(sim, 3);
    parley_sim_slow(sim, 0, 4);
    parley_sim_slow(sim, 1, 4);
    while (scene_view(sim, 2).version < 1000)
        scene_run(sim, 10000);
    parley_sim_kill(sim, 2, false);
    scene_run(sim, SECOND);
    parley_sim_start(sim, 3);
    scene_run(sim, 2 * SECOND);
    cr_assert_eq(scene_view(sim, 3).ledger.joins, 1);
    uint64_t before = scene_view(sim, 3).ledger.applied;
    scene_run(sim, 5 * SECOND);
    uint64_t applied = scene_view(sim, 3).ledger.applied - before;
    cr_expect(applied > 10 && applied < 60, "%d", (int)applied);
    scene_until(sim, 4, parley_sim_agreed, NULL, 60);
    parley_sim_free(sim);
}

static void last_has_finished_a_run(struct parley_config *config, uint32_t node, void *arg)
{
    (void)arg;
    config->samples_budget = 100000;
    if (node == 3) config->resumed = (struct parley_resumed){25000, 25000, 25000, 100000, 0};
}

Test(resuming, who_brings_a_file_to_nodes_that_have_begun_without_ends_no_training)
{
    /* Their models are averaged with its: of what all had used whom its file tells of only its own
     * counts. Else they would end at once, with models of beginners. */
    uint64_t starts[] = {0, 0, 0, 2 * SECOND};
    struct parley_sim *sim =
        scene(&(struct parley_sim_options){.nodes = 4,
                                           .seed = 1,
                                           .parameters = 50,
                                           .step_us = 1000,
                                           .latency_us = 200,
                                           .start_us = starts,
                                           .configure = last_has_finished_a_run});
    scene_run(sim, 5 * SECOND);
    expect_reckoned(sim, 4, 25000, 0.002);
    for (uint32_t node = 0; node < 4; node++)
        cr_expect_eq(scene_phase(sim, node), PARLEY_PHASE_TRAIN, "n%u", node);
    parley_sim_free(sim);
}

static void twenty_of_a_cluster_that_was_killed(struct parley_config *config, uint32_t node,
                                                void *arg)
{
    (void)node;
    (void)arg;
    config->min_peers = 19;
    config->samples_budget = 600000;
    config->resumed = (struct parley_resumed){1000, 10000, 1000, 400000, 0};
}

Test(resuming, what_a_killed_cluster_had_used_is_known_to_the_first_of_many_that_goes_on)
{
    /* Among many each reckons by itself, from what it knew as it began: its file, if no other. */
    struct parley_sim *sim =
        scene(&(struct parley_sim_options){.nodes = 20,
                                           .seed = 1,
                                           .seeds = 2,
                                           .parameters = 50,
                                           .step_us = 1000,
                                           .latency_us = 200,
                                           .configure = twenty_of_a_cluster_that_was_killed});
    scene_run(sim, 2 * SECOND);
    cr_expect_gt(expect_reckoned(sim, 20, 400000, 0.002), 430000);
    parley_sim_free(sim);
}

static void meets_four(struct parley_config *config, uint32_t node, void *arg)
{
    (void)node;
    (void)arg;
    config->min_peers = 4;
    config->samples_budget = 1000000;
}

Test(resuming, of_many_who_comes_late_reckons_from_what_the_one_reckons_whose_model_it_takes)
{
    /* Of others' work it has heard little, and hears more only now and then. */
    enum { NODES = 30 };
    uint64_t starts[NODES] = {0};
    for (uint32_t node = NODES / 2; node < NODES; node++)
        starts[node] = (node - NODES / 2 + 1) * SECOND / 4;
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = NODES,
                                                                .seed = 1,
                                                                .seeds = 2,
                                                                .parameters = 50,
                                                                .step_us = 1000,
                                                                .latency_us = 200,
                                                                .start_us = starts,
                                                                .configure = meets_four});
    scene_run(sim, 6 * SECOND);
    expect_reckoned(sim, NODES, 0, 0.01);
    parley_sim_free(sim);
}

static void resumed_but_for_one(struct parley_config *config, uint32_t node, void *arg)
{
    config->min_peers = 2;
    if (*(const uint64_t *)arg % 2) config->strategy = PARLEY_STRATEGY_PUSH_SUM;
    if (node != 1) config->resumed = (struct parley_resumed){10000, 20000, 10000, 40000, 0};
}

Test(resuming, who_has_lost_its_file_does_not_bring_the_first_model_to_those_who_go_on)
{
    /* All come back, in any order, and one of them with nothing: it waits for the model of
     * another. */
    for (uint64_t seed = 1; seed <= 6; seed++) {
        uint64_t starts[3] = {0};
        if (seed > 2) starts[seed % 3] = 300000;
        struct parley_sim *sim =
            scene(&(struct parley_sim_options){.nodes = 3,
                                               .seed = seed,
                                               .seeds = 3,
                                               .parameters = 50,
                                               .start_us = starts,
                                               .latency_us = 200,
                                               .configure = resumed_but_for_one,
                                               .arg = &seed});
        scene_run(sim, 3 * SECOND);
        for (uint32_t node = 0; node < 3; node++) {
            struct parley_view view = scene_view(sim, node);
            cr_expect_eq(view.ledger.joins, node == 1, "n%u of %u", node, (unsigned)seed);
            cr_expect_gt(view.version, 0, "n%u of %u", node, (unsigned)seed);
        }
        scene_agree(sim, 3, 0);
        parley_sim_free(sim);
    }
}

static void waits_for_a_third(struct parley_config *config, uint32_t node, void *arg)
{
    (void)arg;
    if (node != 0) return;
    config->min_peers = 2;
    config->resumed = (struct parley_resumed){10000, 20000, 10000, 40000, 0};
}

Test(resuming, who_has_lost_its_file_waits_for_none_who_dies)
{
    /* The one that brings a model along waits for a third node, and dies. */
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 2,
                                                                .seed = 1,
                                                                .seeds = 2,
                                                                .parameters = 50,
                                                                .latency_us = 200,
                                                                .configure = waits_for_a_third});
    scene_run(sim, 2 * SECOND);
    cr_expect_eq(scene_view(sim, 1).phase, PARLEY_PHASE_JOINING);
    parley_sim_kill(sim, 0, false);
    scene_run(sim, 3 * SECOND);
    cr_expect_eq(scene_view(sim, 1).phase, PARLEY_PHASE_TRAIN);
    parley_sim_free(sim);
}

static void resumed_at_the_end(struct parley_config *config, uint32_t node, void *nodes)
{
    config->nodes = (uint32_t)(uintptr_t)nodes;
    config->min_peers = config->nodes - 1;
    config->quorum = PARLEY_QUORUM_MAJORITY;
    config->earlier = PARLEY_EARLIER_NEVER_HELD;
    config->samples_budget = 30000;
    if (node == 0) config->resumed = (struct parley_resumed){10000, 30000, 10000, 40000, 0};
}

Test(resuming, who_goes_on_from_a_file_of_the_end_does_not_end_before_the_others_are_in)
{
    /* n0 has no step to make, and its model is what all agree on. Those who have lost theirs are in
     * as it ends, and count for the majority; also over a line on which that takes 12 s. */
    for (uint64_t seed = 1; seed <= 6; seed++) {
        bool slow = seed > 3;
        uint32_t nodes = slow ? 2 : 3;
        struct parley_sim *sim =
            scene(&(struct parley_sim_options){.nodes = nodes,
                                               .parameters = slow ? 30000 : 1000,
                                               .seed = seed,
                                               .step_us = 1000,
                                               .latency_us = 1000,
                                               .bandwidth_bytes = slow ? 10000 : 0,
                                               .configure = resumed_at_the_end,
                                               .arg = (void *)(uintptr_t)nodes});
        scene_until(sim, nodes, parley_sim_agreed, NULL, slow ? 100 : 5);
        scene_same(sim, nodes);
        for (uint32_t node = 0; node < nodes; node++)
            cr_assert_lt(scene_view(sim, node).version, 10, "n%u", node);
        parley_sim_free(sim);
    }
}

static void resumed_soon_after_it_came(struct parley_config *config, uint32_t node, void *arg)
{
    (void)arg;
    config->min_peers = 1;
    if (node == 0) config->resumed = (struct parley_resumed){5, 20000, 5, 40000, 0};
}

Test(resuming, so_does_one_that_has_lost_its_file)
{
    struct parley_sim *sim =
        scene(&(struct parley_sim_options){.nodes = 2,
                                           .seed = 1,
                                           .seeds = 2,
                                           .parameters = 50,
                                           .latency_us = 200,
                                           .configure = resumed_soon_after_it_came});
    scene_run(sim, 3 * SECOND);
    cr_expect_eq(scene_view(sim, 1).ledger.joins, 1);
    parley_sim_free(sim);
}

static void waits_for_more(struct parley_config *config, uint32_t node, void *arg)
{
    waits_for_a_third(config, node, arg);
    config->min_peers = node == 0 ? 9 : 1;
}

Test(resuming, who_brings_a_model_and_never_begins_holds_nobody_up_for_long)
{
    /* It waits for more than there are, or lies. */
    struct scene_lines begun = {.text = "log begins with the first model"};
    struct parley_sim *sim = scene(&(struct parley_sim_options){
        .nodes = 4, .seed = 1, .seeds = 4, .latency_us = 200, .configure = waits_for_more});
    parley_sim_on_line(sim, PARLEY_LOG_WARN, scene_count, &begun);
    scene_run(sim, 15 * SECOND);
    cr_expect_gt(begun.count, 0, "%s", begun.text);
    cr_expect_eq(scene_view(sim, 0).phase, PARLEY_PHASE_JOINING);
    for (uint32_t node = 1; node < 4; node++)
        cr_expect_eq(scene_view(sim, node).phase, PARLEY_PHASE_TRAIN, "n%u", node);
    parley_sim_free(sim);
}

Test(resuming, who_comes_back_is_counted_once)
{
    /* The cluster knows what a node had done before it died: its file does not add that again. */
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 3,
                                                                .seed = 2,
                                                                .seeds = 3,
                                                                .parameters = 50,
                                                                .latency_us = 200,
                                                                .configure = resumed_far_or_near});
    scene_run(sim, 2 * SECOND);
    struct parley_view before = scene_view(sim, 0);
    parley_sim_kill(sim, 2, false);
    parley_sim_start(sim, 2);
    scene_run(sim, 2 * SECOND);
    struct parley_view after = scene_view(sim, 0);
    cr_assert_eq(parley_sim_live_count(sim), 3);
    cr_expect_gt(before.samples_cluster, 60000);
    cr_expect_lt(after.samples_cluster - before.samples_cluster, 15000);
    parley_sim_free(sim);
}

static const enum parley_strategy first_of_all[] = {
    PARLEY_STRATEGY_GOSSIP, PARLEY_STRATEGY_LOCAL_SGD, PARLEY_STRATEGY_ALLREDUCE,
    PARLEY_STRATEGY_PS_ASP};

struct first {
    enum parley_strategy strategy;
    uint64_t latency_us;
    struct parley_resumed kept; /* all 0: it has not been killed yet */
};

static void began_the_cluster(struct parley_config *config, uint32_t node, void *arg)
{
    const struct first *first = arg;
    config->strategy = first->strategy;
    config->samples_budget = 200000;
    config->min_peers = node > 0;
    if (node == 0) config->resumed = first->kept;
}

/* The first is killed, and started by the same command, without a seed: four seconds later and
 * more. */
static struct parley_sim *first_comes_back(struct first *first, uint32_t nodes, uint64_t made,
                                           const struct parley_resumed *kept)
{
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = nodes,
                                                                .seed = 3,
                                                                .seeds = 1,
                                                                .parameters = 50,
                                                                .latency_us = first->latency_us,
                                                                .samples = 20,
                                                                .step_us = 10000,
                                                                .configure = began_the_cluster,
                                                                .arg = first});
    scene_train(sim, nodes);
    while (scene_view(sim, 1).samples_cluster < made)
        scene_run(sim, 10000);
    parley_sim_kill(sim, 0, false);
    first->kept = *kept;
    scene_run(sim, SECOND / 10);
    parley_sim_start(sim, 0);
    scene_run(sim, 4 * SECOND + 4 * first->latency_us);
    for (uint32_t i = 0; i < nodes; i++) {
        struct parley_view view = scene_view(sim, i);
        cr_expect_eq(view.phase, PARLEY_PHASE_TRAIN, "%d: n%u", (int)first->strategy, i);
        cr_expect_eq(view.live, nodes, "%d: n%u", (int)first->strategy, i);
    }
    return sim;
}

Test(resuming, who_began_a_cluster_and_comes_back_as_one_alone_is_counted_once)
{
    /* It begins before those dial it that count what its file tells of. All ended, or went on at
     * the rate of the end. */
    const struct parley_resumed kept = {1500, 30000, 1500, 120000, 0};
    for (size_t k = 0; k < sizeof first_of_all / sizeof *first_of_all; k++) {
        struct first first = {.strategy = first_of_all[k], .latency_us = 200};
        struct parley_sim *sim = first_comes_back(&first, 4, 125000, &kept);
        for (uint32_t i = 0; i < 4; i++)
            cr_expect_lt(scene_view(sim, i).samples_cluster, 190000, "%d: n%u", (int)k, i);
        struct parley_member own;
        parley_node_member(sim->hosts[0].node, 0, &own);
        cr_expect_lt(own.samples, 30000, "%d: what it tells of itself is what it has made", (int)k);
        scene_until(sim, 4, parley_sim_agreed, NULL, 60);
        parley_sim_free(sim);
    }
}

Test(resuming, who_comes_back_as_one_alone_ends_nothing_before_it_has_heard_what_is_known_of_it)
{
    /* What the other has made stands in its table, before what that knows of this node: together
     * with what this node's file tells of all that was more than the budget. Over a long line that
     * comes more than a second later. */
    const struct parley_resumed kept = {3750, 75000, 3750, 150000, 0};
    const size_t count = sizeof first_of_all / sizeof *first_of_all;
    for (size_t k = 0; k <= count; k++) {
        struct first first = {.strategy = first_of_all[k % count],
                              .latency_us = k < count ? 200 : 600000};
        struct parley_sim *sim = first_comes_back(&first, 2, 150000, &kept);
        for (uint32_t i = 0; i < 2; i++) {
            double progress = scene_view(sim, i).progress;
            cr_expect_lt(progress, 0.9, "%d: n%u: %g", (int)k, i, progress);
        }
        scene_until(sim, 2, parley_sim_agreed, NULL, 60);
        parley_sim_free(sim);
    }
}
