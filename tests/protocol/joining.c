/* joining.c: how nodes find each other, and what a late one starts from. */
#include "../../sim/world/cluster.h"
#include "scene.h"

Test(joining, eight_nodes_find_each_other_in_any_order)
{
    /* Started in random order by one common seed list, they come to one view, seed last too. */
    for (uint64_t seed = 1; seed <= 6; seed++) {
        uint64_t starts[8];
        struct rng rng = rng_init(seed, 1);
        for (int i = 0; i < 8; i++)
            starts[i] = rng_below(&rng, 3000000);
        if (seed % 2 == 0) starts[0] = 5 * SECOND;
        struct parley_sim *sim = scene(&(struct parley_sim_options){
            .nodes = 8, .seed = seed, .seeds = 1, .latency_us = 500, .start_us = starts});
        scene_run(sim, 5 * SECOND);
        scene_until(sim, 8, parley_sim_converged, NULL, 40);
        cr_assert_eq(parley_sim_live_count(sim), 8);
        scene_agree(sim, 8, 3);
        parley_sim_free(sim);
    }
}

Test(joining, a_list_that_holds_all_makes_one_cluster)
{
    /* Every node is on the list, all start at once: nobody stays apart. */
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct parley_sim *sim = scene(
            &(struct parley_sim_options){.nodes = 8, .seed = seed, .seeds = 8, .latency_us = 1000});
        scene_run(sim, 100000);
        scene_until(sim, 8, parley_sim_converged, NULL, 30);
        parley_sim_free(sim);
    }
}

struct begun {
    struct parley_sim *sim;
    uint32_t count;
};

static void on_phase(const char *line, void *arg)
{
    struct begun *begun = arg;
    const char *train = strstr(line, " phase train");
    if (!train) return;
    uint32_t node = (uint32_t)strtoul(strstr(line, " n") + 2, NULL, 10);
    struct parley_view view = scene_view(begun->sim, node);
    cr_expect_eq(view.known, 8, "n%u trains and knows of %u", node, view.known);
    begun->count++;
}

Test(joining, who_trains_knows_all_that_it_was_to_wait_for)
{
    /* Shares of the data are cut for the members a node knows as it begins. It may be told that
     * others train before it is told who they are: it must not begin with a part of them. */
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct parley_sim *sim = scene_together(&(struct parley_sim_options){
            .nodes = 8, .seed = seed, .seeds = 1, .latency_us = seed * 100});
        struct begun begun = {.sim = sim};
        parley_sim_on_line(sim, PARLEY_LOG_ERROR, on_phase, &begun);
        scene_train(sim, 8);
        cr_assert_eq(begun.count, 8);
        parley_sim_free(sim);
    }
}

struct told {
    uint32_t silent, refused;
};

static void on_seed(const char *line, void *arg)
{
    struct told *told = arg;
    told->silent +=
        strstr(line, "n1 log") &&
        strstr(line, "seed n0:7000: it says nothing (no parley node, or large packets are lost");
    told->refused += strstr(line, "n1 log") && strstr(line, "refused; next try");
}

Test(joining, a_seed_that_is_mute_or_down_is_told_of_while_the_waits_grow)
{
    /* n0 accepts and says no HELLO, as a server of another kind would; then it is not there. Waits
     * come to 30 s, and from then on nothing is news. */
    uint64_t starts[2] = {0, SECOND};
    struct parley_sim *sim =
        scene(&(struct parley_sim_options){.nodes = 2, .seed = 1, .seeds = 1, .start_us = starts});
    struct told told = {0};
    parley_sim_on_line(sim, PARLEY_LOG_WARN, on_seed, &told);
    scene_run(sim, SECOND / 2);
    parley_sim_pause(sim, 0);
    scene_run(sim, 9 * SECOND);
    cr_assert_eq(told.silent, 1);
    parley_sim_kill(sim, 0, false);
    scene_run(sim, 300 * SECOND);
    cr_expect_geq(told.refused, 5);
    cr_expect_leq(told.refused, 8);
    parley_sim_free(sim);
}

static void until_target(struct parley_config *config, uint32_t node, void *arg)
{
    (void)arg;
    config->min_peers = node < 3 ? 2 : 0;
}

Test(joining, a_late_node_takes_the_model_before_it_trains)
{
    /* Its first boundary of training already holds what the others have come to. */
    uint64_t starts[4] = {0, 0, 0, 20 * SECOND + 1};
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 4,
                                                                .seed = 1,
                                                                .parameters = 200,
                                                                .start_us = starts,
                                                                .latency_us = 200,
                                                                .configure = until_target});
    scene_run(sim, 20 * SECOND);
    double before[200], after[200], moved = 0;
    struct parley_view view;
    parley_sim_mean(sim, before);
    for (int tries = 0; tries < 20000; tries++) {
        view = scene_view(sim, 3);
        if (view.phase == PARLEY_PHASE_TRAIN) break;
        cr_assert_eq(view.version, 0, "it trained before it had joined");
        scene_run(sim, 1000);
    }
    cr_assert_eq(view.phase, PARLEY_PHASE_TRAIN);
    cr_assert_eq(view.ledger.joins, 1);
    parley_sim_mean(sim, after);
    for (int j = 0; j < 200; j++)
        moved += (after[j] - before[j]) * (after[j] - before[j]);
    cr_assert_lt(sqrt(moved), 1e-3, "its first model came in as mass: %g", sqrt(moved));
    scene_agree(sim, 4, 0);
    parley_sim_free(sim);
}

/* Five nodes that start then, and know all of each other. */
static struct parley_sim *five(uint64_t starts[5],
                               void (*configure)(struct parley_config *, uint32_t, void *))
{
    return scene(&(struct parley_sim_options){.nodes = 5,
                                              .seed = 1,
                                              .seeds = 5,
                                              .parameters = 50,
                                              .start_us = starts,
                                              .latency_us = 200,
                                              .configure = configure});
}

Test(joining, optimizer_vectors_keep_their_step_count_from_hand_to_hand)
{
    /* A late node counts on from the steps of who gave it its state, and the next one from there,
     * when those who made the first of them are dead. */
    uint64_t starts[5] = {0, 0, 0, 2 * SECOND, 4 * SECOND};
    struct parley_sim *sim = five(starts, until_target);
    scene_run(sim, 3 * SECOND);
    uint64_t made = sim->hosts[0].life.version, late = sim->hosts[3].life.version;
    cr_assert_eq(sim->hosts[0].life.turn.steps, 0);
    cr_assert_lt(late + 1000, made);
    cr_assert_leq(made - (sim->hosts[3].life.turn.steps + late), 100);
    for (uint32_t node = 0; node < 3; node++)
        parley_sim_kill(sim, node, false);
    scene_run(sim, 3 * SECOND);
    made = sim->hosts[3].life.turn.steps + sim->hosts[3].life.version;
    late = sim->hosts[4].life.version;
    cr_assert_gt(late, 0);
    cr_assert_lt(late + 3000, made);
    cr_assert_leq(made - (sim->hosts[4].life.turn.steps + late), 100);
    cr_assert_eq(sim->hosts[4].life.turn.live, 2);
    parley_sim_free(sim);
}

Test(joining, a_restarted_node_brings_nothing_back)
{
    /* Killed and started again under its name, it takes the model of the living and is counted
     * once. */
    struct parley_sim *sim = scene_together(
        &(struct parley_sim_options){.nodes = 4, .seed = 2, .seeds = 2, .latency_us = 200});
    scene_train(sim, 4);
    scene_run(sim, 3 * SECOND);
    parley_sim_kill(sim, 3, false);
    scene_run(sim, 200000);
    parley_sim_start(sim, 3);
    scene_run(sim, 10 * SECOND);
    scene_until(sim, 4, parley_sim_converged, NULL, 30);
    struct parley_view view = scene_view(sim, 3);
    cr_assert_eq(view.ledger.joins, 1);
    view = scene_view(sim, 0);
    cr_assert_eq(view.known, 4);
    scene_agree(sim, 4, 0);
    parley_sim_free(sim);
}

Test(joining, who_is_missed_and_was_started_anew_is_not_dialled_for_ever)
{
    /* Proves that two of five decide as soon as the addresses of the three that they miss answer
     * for others: those were dialled for 30 s, as fast as they could say who they are. */
    struct parley_sim *sim = scene_together(
        &(struct parley_sim_options){.nodes = 5, .seed = 3, .seeds = 2, .latency_us = 1000});
    scene_train(sim, 5);
    scene_run(sim, 2 * SECOND);
    parley_sim_stop(sim, 0, PARLEY_STOP_OPERATOR);
    scene_run(sim, 5000);
    for (uint32_t i = 2; i < 5; i++)
        parley_sim_kill(sim, i, false);
    for (uint32_t i = 2; i < 5; i++)
        parley_sim_start(sim, i);
    uint64_t hellos = parley_sim_frames(sim, WIRE_HELLO);
    scene_until(sim, 5, parley_sim_agreed, NULL, 5);
    scene_same(sim, 5);
    hellos = parley_sim_frames(sim, WIRE_HELLO) - hellos;
    cr_assert_leq(hellos, 100, "%llu", (unsigned long long)hellos);
    parley_sim_free(sim);
}

Test(joining, a_node_that_leaves_is_missed_by_nobody)
{
    /* It ends with success and the others agree without it, at once. */
    struct parley_sim *sim =
        scene_together(&(struct parley_sim_options){.nodes = 4, .seed = 6, .latency_us = 200});
    scene_train(sim, 4);
    scene_run(sim, 2 * SECOND);
    parley_sim_leave(sim, 2);
    scene_expect(sim, "phase member finished", 11,
                 "n2 phase left\n"
                 "n2 member n2 left: it is done\n"
                 "n2 finished no error\n"
                 "n0 member n2 left: ...\n"
                 "n1 member n2 left: ...\n"
                 "n3 member n2 left: ...\n");
    scene_agree(sim, 4, 0);
    struct parley_view view = scene_view(sim, 0);
    cr_assert_eq(view.known, 3);
    cr_assert_eq(view.held, 3);
    parley_sim_free(sim);
}

static bool all_have_ended(struct parley_sim *sim, void *arg)
{
    (void)arg;
    for (uint32_t i = 0; i < 4; i++)
        if (!parley_sim_finished(sim, i, NULL)) return false;
    return true;
}

Test(joining, all_may_leave_at_once)
{
    /* As when all are interrupted: none waits to hand its work to one that leaves too. */
    struct parley_sim *sim =
        scene_together(&(struct parley_sim_options){.nodes = 4, .seed = 6, .latency_us = 200});
    scene_train(sim, 4);
    scene_run(sim, 2 * SECOND);
    for (uint32_t i = 0; i < 4; i++)
        parley_sim_leave(sim, i);
    scene_until(sim, 4, all_have_ended, NULL, 1);
    parley_sim_free(sim);
}

static void resumed_far_or_near(struct parley_config *config, uint32_t node, void *arg)
{
    (void)arg;
    config->min_peers = node < 3 ? 2 : 0;
    if (node < 3)
        config->resumed = (struct parley_resumed){10000 + 500 * node, 20000, 10000, 60000, 0};
    if (node == 3) config->resumed = (struct parley_resumed){9000, 18000, 9000, 40000, 0};
    if (node == 4) config->resumed = (struct parley_resumed){7000, 14000, 7000, 68000, 0};
}

Test(joining, who_is_resumed_behind_the_cluster_takes_its_model)
{
    /* A cluster goes on from its files, and what it had made counts; a node whose file is older
     * puts nothing back, one that is not behind goes on with its own. */
    uint64_t starts[5] = {0, 0, 0, SECOND, SECOND};
    struct parley_member own;
    struct parley_sim *sim = five(starts, resumed_far_or_near);
    scene_run(sim, 3 * SECOND);
    for (uint32_t node = 0; node < 5; node++) {
        struct parley_view view = scene_view(sim, node);
        parley_node_member(sim->hosts[node].node, 0, &own);
        bool behind = node == 3;
        cr_expect_eq(view.ledger.joins, behind, "n%u", node);
        cr_expect_eq(own.version - view.version,
                     behind      ? 0
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

Test(joining, what_a_killed_cluster_had_used_stays_used_though_not_all_are_back)
{
    /* Else its schedule would go back. The third comes later, and adds nothing that counts. */
    uint64_t starts[] = {0, 0, 2 * SECOND}, used = 0;
    struct parley_sim *sim =
        scene(&(struct parley_sim_options){.nodes = 3,
                                           .seed = 1,
                                           .seeds = 2,
                                           .parameters = 50,
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

static void all_but_the_first_of_a_cluster_that_was_killed(struct parley_config *config,
                                                           uint32_t node, void *arg)
{
    three_of_a_cluster_that_was_killed(config, node, arg);
    config->min_peers = 0;
    config->resumed.steps *= node > 0; /* 0: n0 has lost its file */
}

Test(joining, what_a_killed_cluster_had_used_stays_used_though_one_without_a_file_trains_first)
{
    uint64_t starts[] = {0, SECOND / 2, SECOND}, used = 0;
    struct parley_sim *sim = scene(
        &(struct parley_sim_options){.nodes = 3,
                                     .seed = 1,
                                     .parameters = 50,
                                     .latency_us = 200,
                                     .start_us = starts,
                                     .configure = all_but_the_first_of_a_cluster_that_was_killed});
    scene_run(sim, SECOND / 4);
    cr_assert_gt(scene_view(sim, 0).version, 0);
    scene_run(sim, SECOND);
    for (int second = 0; second < 2; second++) {
        scene_run(sim, SECOND);
        used = expect_reckoned(sim, 3, 50000, 0.002);
    }
    cr_expect_gt(used, 52000);
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

Test(joining, what_a_killed_cluster_had_used_is_known_to_the_first_of_many_that_goes_on)
{
    /* Among many each reckons by itself, from what it knew as it began: its file, if no other. */
    struct parley_sim *sim =
        scene(&(struct parley_sim_options){.nodes = 20,
                                           .seed = 1,
                                           .seeds = 2,
                                           .parameters = 50,
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

Test(joining, of_many_who_comes_late_reckons_from_what_the_one_reckons_whose_model_it_takes)
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

Test(joining, who_has_lost_its_file_does_not_bring_the_first_model_to_those_who_go_on)
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

Test(joining, who_has_lost_its_file_waits_for_none_who_dies)
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

Test(joining, who_comes_takes_the_model_of_one_that_has_come_late)
{
    /* All who were there first leave. The one that stays has few steps of its own in a model of
     * many, which is not to be averaged with the first one. */
    uint64_t starts[] = {0, 0, 6 * SECOND, 8 * SECOND};
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 4,
                                                                .seed = 1,
                                                                .seeds = 3,
                                                                .parameters = 50,
                                                                .step_us = 50000,
                                                                .latency_us = 200,
                                                                .start_us = starts});
    scene_run(sim, 7 * SECOND);
    cr_expect_eq(scene_view(sim, 2).ledger.joins, 1);
    parley_sim_leave(sim, 0);
    parley_sim_leave(sim, 1);
    scene_run(sim, 2 * SECOND);
    cr_expect_eq(scene_view(sim, 3).known, 2);
    cr_expect_lt(scene_view(sim, 2).version, 64);
    cr_expect_eq(scene_view(sim, 3).ledger.joins, 1);
    scene_agree(sim, 4, 2);
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

Test(joining, who_goes_on_from_a_file_of_the_end_does_not_end_before_the_others_are_in)
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

Test(joining, so_does_one_that_has_lost_its_file)
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

struct words {
    const char *wanted;
    bool found;
};

static void find(const char *line, void *arg)
{
    struct words *words = arg;
    words->found |= strstr(line, words->wanted) != NULL;
}

static void waits_for_more(struct parley_config *config, uint32_t node, void *arg)
{
    waits_for_a_third(config, node, arg);
    config->min_peers = node == 0 ? 9 : 1;
}

Test(joining, who_brings_a_model_and_never_begins_holds_nobody_up_for_long)
{
    /* It waits for more than there are, or lies. */
    struct words words = {.wanted = "log begins with the first model"};
    struct parley_sim *sim = scene(&(struct parley_sim_options){
        .nodes = 4, .seed = 1, .seeds = 4, .latency_us = 200, .configure = waits_for_more});
    parley_sim_on_line(sim, PARLEY_LOG_WARN, find, &words);
    scene_run(sim, 15 * SECOND);
    cr_expect(words.found, "%s", words.wanted);
    cr_expect_eq(scene_view(sim, 0).phase, PARLEY_PHASE_JOINING);
    for (uint32_t node = 1; node < 4; node++)
        cr_expect_eq(scene_view(sim, node).phase, PARLEY_PHASE_TRAIN, "n%u", node);
    parley_sim_free(sim);
}

Test(joining, who_comes_back_is_counted_once)
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

Test(joining, who_is_told_to_stop_as_it_comes_ends_with_the_others)
{
    /* Two train far away. A seed comes back and knows nobody, and a node that is let in by it has
     * been told to stop: it hears of the others before it agrees with itself. */
    uint64_t starts[4] = {2 * SECOND, 0, 0, 2 * SECOND};
    struct parley_sim *sim = scene(&(struct parley_sim_options){
        .nodes = 4, .seed = 1, .seeds = 2, .start_us = starts, .latency_us = 500});
    parley_sim_latency(sim, 1, 300000);
    parley_sim_latency(sim, 2, 300000);
    scene_run(sim, 2 * SECOND + 1);
    scene_agree(sim, 4, 3);
    parley_sim_free(sim);
}

Test(joining, who_comes_as_the_others_settle_knows_why_training_has_ended)
{
    uint64_t starts[4] = {0, 0, 0, 5 * SECOND + 1};
    struct parley_sim *sim = scene(&(struct parley_sim_options){
        .nodes = 4, .seed = 1, .start_us = starts, .latency_us = 50000, .configure = until_target});
    scene_run(sim, 5 * SECOND);
    parley_sim_stop(sim, 0, PARLEY_STOP_TARGET);
    scene_until(sim, 4, parley_sim_agreed, NULL, 30);
    struct parley_view view = scene_view(sim, 3);
    cr_assert_eq(view.version, 0, "it has trained");
    cr_assert_eq(view.stop, PARLEY_STOP_TARGET, "%s", parley_stop_name(view.stop));
    parley_sim_free(sim);
}

Test(joining, a_seed_that_is_not_there_delays_no_end)
{
    /* Its refusal is an answer. */
    uint64_t starts[3] = {PARLEY_SIM_NEVER, 0, 0};
    struct parley_sim *sim = scene(&(struct parley_sim_options){
        .nodes = 3, .seed = 1, .seeds = 2, .start_us = starts, .latency_us = 500});
    scene_run(sim, 2 * SECOND);
    parley_sim_stop(sim, 1, PARLEY_STOP_OPERATOR);
    scene_until(sim, 3, parley_sim_agreed, NULL, 1);
    scene_same(sim, 3);
    parley_sim_free(sim);
}

static void wait_for_time(struct parley_config *config, uint32_t node, void *strategy)
{
    (void)node;
    config->time_budget_us = 20 * SECOND;
    if (strategy) config->strategy = *(enum parley_strategy *)strategy;
}

Test(joining, a_budget_of_time_is_the_clusters)
{
    /* Proves that who comes late has as much of it behind it as the others, for its learning rate
     * goes by that, and that it ends with them: also where it begins before it has their state. */
    enum parley_strategy strategies[] = {PARLEY_STRATEGY_GOSSIP,    PARLEY_STRATEGY_GOSSIP_SYNC,
                                         PARLEY_STRATEGY_LOCAL_SGD, PARLEY_STRATEGY_DILOCO,
                                         PARLEY_STRATEGY_ALLREDUCE, PARLEY_STRATEGY_PS_BSP,
                                         PARLEY_STRATEGY_PS_ASP};
    for (int k = 0; k < 7; k++) {
        const uint64_t start_us[] = {0, 14 * SECOND};
        struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 2,
                                                                    .seed = 4,
                                                                    .rate = 0.01,
                                                                    .latency_us = 200,
                                                                    .start_us = start_us,
                                                                    .configure = wait_for_time,
                                                                    .arg = &strategies[k]});
        scene_run(sim, 16 * SECOND);
        struct parley_view first = scene_view(sim, 0);
        struct parley_view late = scene_view(sim, 1);
        cr_assert_eq(late.phase, PARLEY_PHASE_TRAIN);
        cr_expect_gt(first.progress, 0.7);
        cr_expect_lt(fabs(late.progress - first.progress), 0.01, "%d: %g", k, late.progress);
        scene_until(sim, 2, parley_sim_agreed, NULL, 5);
        scene_same(sim, 2);
        parley_sim_free(sim);
    }
}

struct steps {
    uint32_t nodes;
    uint64_t budget;
};

static void give_steps(struct parley_config *config, uint32_t node, void *arg)
{
    const struct steps *steps = arg;
    (void)node;
    config->min_peers = steps->nodes - 1;
    config->steps_budget = steps->budget;
}

static bool has_made_its_steps(struct parley_sim *sim, void *budget)
{
    return scene_view(sim, 0).version >= *(uint64_t *)budget;
}

Test(joining, of_a_budget_of_steps_all_are_as_far_as_the_living_are_on_average)
{
    /* Proves that a node four times slower, which makes most of its steps while the others wait for
     * it, makes them at the rate of an end; also where too many live to hear of each in time. */
    for (uint32_t nodes = 4; nodes <= 16; nodes += 12) {
        struct steps steps = {nodes, 2000};
        uint32_t slow = nodes / 4;
        struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = nodes,
                                                                    .seed = 4,
                                                                    .rate = 0.01,
                                                                    .latency_us = 200,
                                                                    .configure = give_steps,
                                                                    .arg = &steps});
        struct parley_view view;
        scene_train(sim, nodes);
        for (uint32_t i = nodes - slow; i < nodes; i++)
            parley_sim_slow(sim, i, 4);
        scene_until(sim, nodes, has_made_its_steps, &steps.budget, 4);
        scene_run(sim, SECOND); /* the slow ones hear of it */
        for (uint32_t i = 0; i < nodes; i++) {
            view = scene_view(sim, i);
            cr_expect_float_eq(view.progress, 0.75 + 0.25 * 3 / 8, 0.04, "n%u of %u: %g", i, nodes,
                               view.progress);
        }
        scene_until(sim, nodes, parley_sim_agreed, NULL, 10);
        view = scene_view(sim, nodes - 1);
        cr_expect_eq(view.version, steps.budget);
        cr_expect_eq(view.progress, 1);
        parley_sim_free(sim);
    }
}

static bool has_made_a_quarter(struct parley_sim *sim, void *budget)
{
    return scene_view(sim, 0).version >= *(uint64_t *)budget / 4;
}

Test(joining, who_is_done_is_as_far_as_it_was_when_training_ended)
{
    /* Proves that progress is no mean over those who are left, or over nobody, once nodes go. */
    struct steps steps = {3, 2000};
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 3,
                                                                .seed = 4,
                                                                .rate = 0.01,
                                                                .latency_us = 200,
                                                                .configure = give_steps,
                                                                .arg = &steps});
    scene_train(sim, 3);
    parley_sim_slow(sim, 2, 4);
    scene_until(sim, 3, has_made_a_quarter, &steps.budget, 4);
    parley_sim_stop(sim, 0, PARLEY_STOP_TARGET);
    scene_until(sim, 3, parley_sim_agreed, NULL, 10);
    scene_run(sim, SECOND);
    for (uint32_t i = 0; i < 3; i++) {
        struct parley_view view = scene_view(sim, i);
        cr_expect_float_eq(view.progress, 0.1875, 0.03, "n%u: %g", i, view.progress);
    }
    parley_sim_free(sim);
}

static void resumed_late(struct parley_config *config, uint32_t node, void *arg)
{
    wait_for_time(config, node, NULL);
    config->min_peers = 1;
    config->resumed = (struct parley_resumed){1000, 32000, 1000, 64000, 15 * SECOND};
    (void)arg;
}

Test(joining, a_budget_of_time_goes_on_where_it_was)
{
    /* Proves that nodes which go on from their files have the rest of it, and the learning rate of
     * where they were. */
    struct parley_sim *sim = scene(&(struct parley_sim_options){
        .nodes = 2, .seed = 4, .rate = 0.01, .latency_us = 200, .configure = resumed_late});
    scene_train(sim, 2);
    struct parley_view view = scene_view(sim, 0);
    cr_expect_geq(view.progress, 0.75);
    cr_expect_geq(view.trained_us, 15 * SECOND);
    scene_until(sim, 2, parley_sim_agreed, NULL, 7);
    view = scene_view(sim, 0);
    cr_expect_eq(view.stop, PARLEY_STOP_DEADLINE);
    parley_sim_free(sim);
}

Test(joining, so_is_what_a_node_has_slept_through)
{
    /* Proves that a node which is woken goes by the time of those who trained on. */
    struct parley_sim *sim = scene(&(struct parley_sim_options){
        .nodes = 3, .seed = 6, .rate = 0.01, .latency_us = 200, .configure = wait_for_time});
    scene_run(sim, 3 * SECOND);
    parley_sim_pause(sim, 1);
    scene_run(sim, 11 * SECOND);
    parley_sim_resume(sim, 1);
    scene_run(sim, 2 * SECOND);
    struct parley_view first = scene_view(sim, 0);
    struct parley_view woken = scene_view(sim, 1);
    cr_expect_gt(first.progress, 0.7);
    cr_expect_lt(fabs(woken.progress - first.progress), 0.02, "%g", woken.progress);
    scene_until(sim, 3, parley_sim_agreed, NULL, 5);
    scene_same(sim, 3);
    parley_sim_free(sim);
}

static void second_differs(struct parley_config *config, uint32_t node, void *arg)
{
    (void)arg;
    if (node == 1) config->strategy = PARLEY_STRATEGY_GOSSIP_SYNC;
}

static void boot_alike(struct parley_config *config, uint32_t node, void *arg)
{
    (void)node;
    (void)arg;
    config->boot = 7;
}

static void second_is_refused(void (*configure)(struct parley_config *, uint32_t, void *),
                              const char *wanted)
{
    struct words words = {.wanted = wanted};
    int error = 0;
    struct parley_sim *sim =
        scene(&(struct parley_sim_options){.nodes = 2, .configure = configure});
    parley_sim_on_line(sim, PARLEY_LOG_ERROR, find, &words);
    scene_run(sim, 2 * SECOND);
    cr_assert(parley_sim_finished(sim, 1, &error));
    cr_assert_eq(error, PARLEY_EMISMATCH);
    cr_assert(words.found, "%s", wanted);
    parley_sim_free(sim);
}

Test(joining, another_strategy_is_refused_by_name)
{
    second_is_refused(second_differs, "strategy is gossip at n0 and gossip-sync at n1");
}

Test(joining, a_boot_id_that_two_share_is_refused)
{
    second_is_refused(boot_alike, "n0 and n1 have one boot id");
}

/* The third is started under the name of the second. */
static void second_twice(struct parley_config *config, uint32_t node, void *arg)
{
    (void)arg;
    if (node == 2) config->name = "n1";
}

static void count_broken(const char *line, void *count)
{
    *(int *)count += strstr(line, "closed a connection") != NULL;
}

Test(joining, who_slept_until_another_had_its_name_ends)
{
    /* Proves that a node which is woken after its name has gone to another, and which nobody lets
     * in any more, does not train on alone, to end with a model of its own. */
    const uint64_t start_us[] = {0, 0, PARLEY_SIM_NEVER};
    struct parley_sim *sim = scene(&(struct parley_sim_options){
        .nodes = 3, .seed = 5, .latency_us = 200, .start_us = start_us, .configure = second_twice});
    int broken = 0;
    parley_sim_on_line(sim, PARLEY_LOG_WARN, count_broken, &broken);
    scene_run(sim, 2 * SECOND);
    parley_sim_pause(sim, 1);
    scene_run(sim, 10 * SECOND);
    parley_sim_start(sim, 2);
    scene_run(sim, 5 * SECOND);
    struct parley_view view = scene_view(sim, 2);
    cr_assert_eq(view.phase, PARLEY_PHASE_TRAIN);
    parley_sim_resume(sim, 1);
    scene_run(sim, 15 * SECOND);
    int error;
    cr_assert(parley_sim_finished(sim, 1, &error));
    cr_assert_eq(error, PARLEY_ENAME_TAKEN, "%s", parley_error_name(error));
    cr_assert_eq(broken, 0, "what it says while its name is asked for breaks no format");
    view = scene_view(sim, 0);
    cr_assert_eq(view.live, 2);
    parley_sim_free(sim);
}

/* Two clusters of three, n0 to n2 and n3 to n5, of which two pairs have equal names, and a node
 * with a seed in each. */
static void two_clusters(struct parley_config *config, uint32_t node, void *arg)
{
    static const char *const seeds[] = {"n0:7000", "n3:7000"}, *const both[] = {"n2:7000",
                                                                                "n5:7000"};
    (void)arg;
    config->seeds = node == 6 ? both : &seeds[node / 3];
    config->seeds_count = node == 6 ? 2 : 1;
    config->min_peers = node == 6 ? 1 : 2;
    config->steps_budget = 60000;
    if (node == 3) config->name = "n0";
    if (node == 4) config->name = "n1";
}

static void count_comings(const char *line, void *count)
{
    *(int *)count += strstr(line, " member ") != NULL;
}

Test(joining, clusters_with_equal_names_that_one_node_joins_are_one_cluster)
{
    /* Proves that a name which two live nodes have, as no newcomer's was to be refused, neither
     * keeps a node from joining nor makes anyone come and go. */
    const uint64_t start_us[] = {0, 0, 0, 0, 0, 0, 3 * SECOND};
    struct parley_sim *sim = scene(&(struct parley_sim_options){
        .nodes = 7, .seed = 3, .latency_us = 200, .start_us = start_us, .configure = two_clusters});
    int comings = 0;
    parley_sim_on_line(sim, PARLEY_LOG_INFO, count_comings, &comings);
    scene_run(sim, 10 * SECOND);
    comings = 0;
    scene_run(sim, 20 * SECOND);
    cr_assert_eq(comings, 0);
    for (uint32_t i = 0; i < 7; i++) {
        struct parley_view view = scene_view(sim, i);
        cr_assert_eq(view.phase, PARLEY_PHASE_TRAIN, "n%u", i);
        cr_assert_eq(view.live, 7);
        cr_assert_eq(view.known, 7);
    }
    scene_agree(sim, 7, 0);
    parley_sim_free(sim);
}

static void another_rate_at_2(struct parley_config *config, uint32_t node, void *arg)
{
    static const struct parley_setting settings[] = {{"lr", "0.05"}, {"lr", "0.1"}};
    (void)arg;
    config->min_peers = 1;
    config->settings = &settings[node == 2];
    config->settings_count = 1;
}

Test(joining, one_with_another_setting_ends_and_not_those_it_met_first)
{
    /* Proves that who is refused by a node that has met nobody yet itself goes on to its other
     * seeds, in whichever order they start; and that the one that all refuse ends. */
    for (uint64_t seed = 0; seed < 6; seed++) { /* each order once */
        uint64_t starts[3];
        for (uint32_t i = 0; i < 3; i++)
            starts[i] = (seed / 2 + (seed % 2 ? i : 3 - i)) % 3 * SECOND;
        struct parley_sim *sim =
            scene(&(struct parley_sim_options){.nodes = 3,
                                               .seed = seed,
                                               .seeds = 3,
                                               .step_us = 10000,
                                               .latency_us = 200,
                                               .start_us = starts,
                                               .configure = another_rate_at_2});
        scene_run(sim, 30 * SECOND);
        for (uint32_t i = 0; i < 3; i++) {
            int error = 0;
            bool ended = parley_sim_finished(sim, i, &error);
            cr_assert_eq(ended, i == 2, "seed %d: n%u ended with %s", (int)seed, i,
                         parley_error_name(error));
            cr_assert_eq(error, ended ? PARLEY_EMISMATCH : 0);
        }
        scene_train(sim, 2);
        parley_sim_free(sim);
    }
}

struct misplaced {
    uint32_t dead, told;
};

static void on_misplaced(const char *line, void *arg)
{
    struct misplaced *m = arg;
    m->dead += strstr(line, " dead: ") != NULL;
    m->told += strstr(line, "n2 says that it is at n0:7000, where n0 answers") != NULL;
}

Test(joining, who_gives_anothers_address_as_its_own_is_told_of_and_stays)
{
    /* Proves that a node that cannot be reached where it says it is (a wrong --advertise) is not
     * taken for dead as often as its address is dialled: it lives, and its own links carry it. */
    struct misplaced m = {0};
    struct parley_sim *sim = scene(&(struct parley_sim_options){
        .nodes = 3, .seed = 1, .seeds = 2, .step_us = 20000, .latency_us = 200});
    parley_sim_kill(sim, 2, false);
    snprintf(sim->addresses[2], sizeof sim->addresses[2], "n0:7000");
    scene_run(sim, SECOND);
    parley_sim_start(sim, 2);
    scene_run(sim, SECOND);
    parley_sim_on_line(sim, PARLEY_LOG_WARN, on_misplaced, &m);
    for (int i = 0; i < 10; i++) { /* what was linked by its own dials is dialled from elsewhere */
        parley_sim_disconnect(sim, 1, 2);
        scene_run(sim, 40 * SECOND);
    }
    cr_assert_gt(m.told, 0);
    cr_assert_eq(m.dead, 0, "%u deaths", m.dead);
    parley_sim_free(sim);
}

static void on_own_address(const char *line, void *told)
{
    *(uint32_t *)told +=
        strstr(line, " n0 log n2 says that it is at n0:7000, where n0 answers") != NULL;
}

Test(joining, who_gives_ones_own_address_as_its_own_is_told_of)
{
    /* Proves that a node whose dial of a peer ends at itself says so, as where two private networks
     * use the same addresses: nothing told why there was no link between the two. */
    uint32_t told = 0;
    struct parley_sim *sim = scene(&(struct parley_sim_options){
        .nodes = 3, .seed = 1, .seeds = 2, .step_us = 20000, .latency_us = 200});
    parley_sim_kill(sim, 2, false);
    snprintf(sim->addresses[2], sizeof sim->addresses[2], "n0:7000");
    scene_run(sim, SECOND);
    parley_sim_on_line(sim, PARLEY_LOG_DEBUG, on_own_address, &told);
    parley_sim_start(sim, 2);
    scene_run(sim, SECOND);
    parley_sim_disconnect(sim, 0, 2);
    scene_run(sim, 10 * SECOND);
    cr_assert_gt(told, 0);
    parley_sim_free(sim);
}
