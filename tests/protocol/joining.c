/* joining.c: how nodes find each other, and what a late one starts from. */
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
        scene_until(sim, 8, parley_sim_converged, NULL, 30);
        cr_assert_eq(parley_sim_live_count(sim), 8, "not before all are up");
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

static void few_behind(struct parley_config *config, uint32_t node, void *arg)
{
    until_target(config, node, arg);
    config->behind_steps_max = 2;
}

Test(joining, a_state_is_taken_of_those_whose_steps_take_long)
{
    /* It is given at the end of one: who is late waits for it for longer than for a silent peer,
     * and who has lost its model, and finds all at exchanges first, for longer than where nobody
     * could give one. */
    uint64_t starts[4] = {0, 0, 0, 200 * SECOND};
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 4,
                                                                .seed = 3,
                                                                .parameters = 10,
                                                                .step_us = 40 * SECOND,
                                                                .start_us = starts,
                                                                .latency_us = 200,
                                                                .configure = few_behind});
    scene_run(sim, 330 * SECOND);
    cr_assert_eq(scene_view(sim, 3).ledger.joins, 1);
    parley_sim_spoil(sim, 1, NAN);
    scene_run(sim, 170 * SECOND);
    cr_assert_eq(scene_view(sim, 1).ledger.joins, 1);
    parley_sim_free(sim);
}

Test(joining, optimizer_vectors_keep_their_step_count_from_hand_to_hand)
{
    /* A late node counts on from the steps of who gave it its state, and the next one from there,
     * when those who made the first of them are dead. */
    uint64_t starts[5] = {0, 0, 0, 2 * SECOND, 4 * SECOND};
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 5,
                                                                .seed = 1,
                                                                .seeds = 5,
                                                                .parameters = 50,
                                                                .start_us = starts,
                                                                .step_us = 1000,
                                                                .latency_us = 200,
                                                                .configure = until_target});
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
                 "n3 member n2 left: ...\n"
                 "n1 member n2 left: ...\n");
    scene_agree(sim, 4, 0);
    struct parley_view view = scene_view(sim, 0);
    cr_assert_eq(view.known, 3);
    cr_assert_eq(view.held, 3);
    parley_sim_free(sim);
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
    scene_until(sim, 4, scene_all_ended, NULL, 1);
    parley_sim_free(sim);
}

Test(joining, who_are_started_anew_together_take_the_model_of_the_one_that_trained_on)
{
    /* They meet each other first, and it says hello before it has said what it does. */
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct parley_sim *sim = scene_together(&(struct parley_sim_options){
            .nodes = 4, .seed = seed, .seeds = 3, .parameters = 50, .latency_us = 5000});
        scene_train(sim, 4);
        scene_run(sim, 3 * SECOND);
        for (uint32_t i = 0; i < 3; i++)
            parley_sim_kill(sim, i, false);
        scene_run(sim, (seed - 1) * SECOND);
        for (uint32_t i = 0; i < 3; i++)
            parley_sim_start(sim, i);
        scene_run(sim, 20 * SECOND);
        scene_train(sim, 4);
        for (uint32_t i = 0; i < 3; i++)
            cr_expect_eq(scene_view(sim, i).ledger.joins, 1, "n%u, seed %d", i, (int)seed);
        scene_agree(sim, 4, 3);
        parley_sim_free(sim);
    }
}

Test(joining, who_are_started_anew_on_one_machine_hear_out_those_far_away)
{
    /* They need but one peer, and have it at once; those who trained on have not even been reached.
     */
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 4,
                                                                .seed = 1,
                                                                .seeds = 4,
                                                                .parameters = 50,
                                                                .latency_us = 200,
                                                                .configure = scene_wait_for,
                                                                .arg = (void *)(uintptr_t)1});
    for (uint32_t i = 2; i < 4; i++)
        parley_sim_latency(sim, i, 150000);
    scene_train(sim, 4);
    scene_run(sim, 3 * SECOND);
    for (uint32_t i = 0; i < 2; i++)
        parley_sim_kill(sim, i, false);
    scene_run(sim, 5 * SECOND);
    for (uint32_t i = 0; i < 2; i++)
        parley_sim_start(sim, i);
    scene_train(sim, 4);
    scene_run(sim, 5 * SECOND);
    for (uint32_t i = 0; i < 2; i++)
        cr_expect_eq(scene_view(sim, i).ledger.joins, 1, "n%u", i);
    scene_agree(sim, 4, 3);
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

static void by_strategy(struct parley_config *config, uint32_t node, void *strategy)
{
    (void)node;
    config->strategy = *(const enum parley_strategy *)strategy;
}

Test(joining, a_seed_that_is_not_there_delays_no_end)
{
    /* Its refusal is an answer. So is its silence to a node that trains: no end, not even one that
     * a sum under way delays, makes that dial it anew. */
    for (uint32_t silent = 0; silent < 2; silent++) {
        uint64_t starts[3] = {PARLEY_SIM_NEVER, 0, 0};
        enum parley_strategy strategy = silent ? PARLEY_STRATEGY_ALLREDUCE : PARLEY_STRATEGY_GOSSIP;
        struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 3,
                                                                    .seed = 1,
                                                                    .seeds = 2,
                                                                    .start_us = starts,
                                                                    .latency_us = 500,
                                                                    .configure = by_strategy,
                                                                    .arg = &strategy});
        for (uint32_t i = 1; silent && i < 3; i++)
            scene_part(sim, 0, i);
        scene_run(sim, (silent ? 20 : 2) * SECOND);
        parley_sim_stop(sim, 1, PARLEY_STOP_OPERATOR);
        scene_until(sim, 3, parley_sim_agreed, NULL, 1);
        scene_same(sim, 3);
        parley_sim_free(sim);
    }
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
    struct scene_lines lines = {.text = wanted};
    int error = 0;
    struct parley_sim *sim =
        scene(&(struct parley_sim_options){.nodes = 2, .configure = configure});
    parley_sim_on_line(sim, PARLEY_LOG_ERROR, scene_count, &lines);
    scene_run(sim, 2 * SECOND);
    cr_assert(parley_sim_finished(sim, 1, &error));
    cr_assert_eq(error, PARLEY_EMISMATCH);
    cr_assert_gt(lines.count, 0, "%s", wanted);
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

/* The last is started under the name of the second. */
static void second_twice(struct parley_config *config, uint32_t node, void *nodes)
{
    if (node == *(const uint32_t *)nodes - 1) config->name = "n1";
}

Test(joining, who_slept_until_another_had_its_name_ends)
{
    /* Proves that a node which is woken after its name has gone to another, and which nobody lets
     * in any more, does not train on alone, to end with a model of its own; nor does it look for
     * all the others first, that it still takes for alive. */
    for (uint32_t nodes = 3; nodes <= 9; nodes += 3) {
        uint64_t start_us[9] = {0};
        uint32_t last = nodes - 1;
        start_us[last] = PARLEY_SIM_NEVER;
        struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = nodes,
                                                                    .seed = 5,
                                                                    .latency_us = 200,
                                                                    .start_us = start_us,
                                                                    .configure = second_twice,
                                                                    .arg = &nodes});
        struct scene_lines broken = {.text = "closed a connection"};
        parley_sim_on_line(sim, PARLEY_LOG_WARN, scene_count, &broken);
        scene_run(sim, 2 * SECOND);
        parley_sim_pause(sim, 1);
        scene_run(sim, 10 * SECOND);
        parley_sim_start(sim, last);
        scene_run(sim, 5 * SECOND);
        cr_assert_eq(scene_phase(sim, last), PARLEY_PHASE_TRAIN);
        parley_sim_resume(sim, 1);
        scene_run(sim, 5 * SECOND);
        int error;
        cr_assert(parley_sim_finished(sim, 1, &error), "of %u", nodes);
        cr_assert_eq(error, PARLEY_ENAME_TAKEN, "%s", parley_error_name(error));
        cr_assert_eq(broken.count, 0, "what it says while its name is asked for breaks no format");
        cr_assert_eq(scene_view(sim, 0).live, nodes - 1);
        parley_sim_free(sim);
    }
}

/* n4 and n5 are started under the names of n1 and n2. */
static void two_twice(struct parley_config *config, uint32_t node, void *arg)
{
    (void)arg;
    if (node >= 4) config->name = node == 4 ? "n1" : "n2";
}

Test(joining, who_slept_with_others_until_their_names_were_taken_ends_as_they_do)
{
    /* Proves that links to each other, which outlast a sleep, do not make two that are woken a
     * cluster of their own, that uses the whole budget once more. */
    uint64_t start_us[] = {0, 0, 0, 0, PARLEY_SIM_NEVER, PARLEY_SIM_NEVER};
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 6,
                                                                .seed = 5,
                                                                .seeds = 2,
                                                                .latency_us = 200,
                                                                .start_us = start_us,
                                                                .configure = two_twice});
    scene_run(sim, 5 * SECOND);
    parley_sim_pause(sim, 1);
    parley_sim_pause(sim, 2);
    scene_run(sim, 15 * SECOND);
    parley_sim_start(sim, 4);
    parley_sim_start(sim, 5);
    scene_run(sim, 5 * SECOND);
    parley_sim_resume(sim, 1);
    parley_sim_resume(sim, 2);
    scene_run(sim, 30 * SECOND);
    for (uint32_t i = 1; i <= 2; i++) {
        int error = 0;
        cr_assert(parley_sim_finished(sim, i, &error), "n%u", i);
        cr_assert_eq(error, PARLEY_ENAME_TAKEN, "%s", parley_error_name(error));
    }
    cr_assert_eq(scene_view(sim, 0).live, 4);
    parley_sim_free(sim);
}

/* n0 to n2 are one cluster, n3 and n4 another; n5 to n7 are of the first, and have seeds in the
 * second before one in their own. */
static void a_stale_seed(struct parley_config *config, uint32_t node, void *arg)
{
    static const char *const seeds[] = {"n0:7000", "n3:7000"};
    static const char *const stale[] = {"n3:7000", "n4:7000", "n0:7000"};
    (void)arg;
    bool second = node == 3 || node == 4, late = node > 4;
    if (second) config->cluster = "second";
    config->seeds = late ? stale : &seeds[second];
    config->seeds_count = late ? 3 : 1;
}

Test(joining, a_seed_that_is_another_cluster_s_by_now_keeps_nobody_from_the_others)
{
    /* Proves that who joins hears all its seeds before it ends, one that is still to start, too;
     * and that where none is of its kind, or can be reached, it does end. */
    const uint64_t never = PARLEY_SIM_NEVER;
    uint64_t start_us[] = {3 * SECOND, 0, 0, 0, 0, 2 * SECOND, never, never};
    struct parley_sim *sim = scene(&(struct parley_sim_options){
        .nodes = 8, .seed = 3, .latency_us = 200, .start_us = start_us, .configure = a_stale_seed});
    scene_run(sim, 10 * SECOND);
    int error = 0;
    cr_assert(!parley_sim_finished(sim, 5, &error), "%s", parley_error_name(error));
    cr_assert_eq(scene_view(sim, 0).live, 4);
    cr_assert_eq(scene_view(sim, 3).live, 2);
    for (uint32_t node = 6; node < 8; node++) {
        if (node == 6)
            parley_sim_pause(sim, 0); /* and says nothing */
        else
            parley_sim_kill(sim, 0, false);
        parley_sim_start(sim, node);
        scene_run(sim, node == 6 ? 40 * SECOND : 5 * SECOND);
        cr_assert(parley_sim_finished(sim, node, &error), "n%u", node);
        cr_assert_eq(error, PARLEY_EMISMATCH, "%s", parley_error_name(error));
    }
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

Test(joining, clusters_with_equal_names_that_one_node_joins_are_one_cluster)
{
    /* Proves that a name which two live nodes have, as no newcomer's was to be refused, neither
     * keeps a node from joining nor makes anyone come and go. */
    const uint64_t start_us[] = {0, 0, 0, 0, 0, 0, 3 * SECOND};
    struct parley_sim *sim = scene(&(struct parley_sim_options){
        .nodes = 7, .seed = 3, .latency_us = 200, .start_us = start_us, .configure = two_clusters});
    struct scene_lines comings = {.text = " member "};
    parley_sim_on_line(sim, PARLEY_LOG_INFO, scene_count, &comings);
    scene_run(sim, 10 * SECOND);
    comings.count = 0;
    scene_run(sim, 20 * SECOND);
    cr_assert_eq(comings.count, 0);
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

static void set_at_some(struct parley_config *config, uint32_t node, void *arg)
{
    static const struct parley_setting setting = {"lr", "0.1"};
    const bool *at_2 = arg;
    config->min_peers = 2;
    config->settings = &setting;
    config->settings_count = (node == 2) == *at_2;
}

Test(joining, who_has_a_setting_more_or_less_is_nobody_s_peer)
{
    /* Proves that neither side counts the other among those whom it waits for. */
    for (int i = 0; i < 2; i++) {
        bool at_2 = i == 0;
        struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 3,
                                                                    .step_us = 10000,
                                                                    .latency_us = 200,
                                                                    .configure = set_at_some,
                                                                    .arg = &at_2});
        int error = 0;
        scene_run(sim, 5 * SECOND);
        cr_assert(parley_sim_finished(sim, 2, &error));
        cr_assert_eq(error, PARLEY_EMISMATCH);
        for (uint32_t n = 0; n < 2; n++)
            cr_assert_eq(scene_view(sim, n).phase, PARLEY_PHASE_JOINING, "n%u", n);
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

Test(joining, who_gives_ones_own_address_as_its_own_is_told_of)
{
    /* Proves that a node whose dial of a peer ends at itself says so, as where two private networks
     * use the same addresses: nothing told why there was no link between the two. */
    struct scene_lines told = {.text = " n0 log n2 says that it is at n0:7000, where n0 answers"};
    struct parley_sim *sim = scene(&(struct parley_sim_options){
        .nodes = 3, .seed = 1, .seeds = 2, .step_us = 20000, .latency_us = 200});
    parley_sim_kill(sim, 2, false);
    snprintf(sim->addresses[2], sizeof sim->addresses[2], "n0:7000");
    scene_run(sim, SECOND);
    parley_sim_on_line(sim, PARLEY_LOG_DEBUG, scene_count, &told);
    parley_sim_start(sim, 2);
    scene_run(sim, SECOND);
    parley_sim_disconnect(sim, 0, 2);
    scene_run(sim, 10 * SECOND);
    cr_assert_gt(told.count, 0);
    parley_sim_free(sim);
}
