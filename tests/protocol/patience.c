/* A cluster waits without spinning, and does not wait for ever. */
#include "scene.h"

enum { NODES = 4 };

/* Events at one instant of virtual time, at most. */
static uint64_t busiest_instant(struct parley_sim *sim, uint64_t us)
{
    uint64_t end_us = parley_sim_now(sim) + us, at_us = 0, here = 0, most = 0;
    while (parley_sim_now(sim) < end_us && parley_sim_step(sim)) {
        here = parley_sim_now(sim) == at_us ? here + 1 : 1;
        at_us = parley_sim_now(sim);
        if (here > most) most = here;
    }
    const char *why;
    cr_assert_eq(parley_sim_error(sim, &why), 0, "%s", why);
    return most;
}

Test(patience, time_goes_on_in_every_phase)
{
    /* Proves that from join to the end, with a death and a sleeper, no instant holds more events
     * than a cluster of four can cause by saying what it has to say. */
    struct parley_sim *sim = scene_together(&(struct parley_sim_options){
        .nodes = NODES, .parameters = 1000, .latency_us = 200, .operation_us = 50, .seed = 5});
    uint64_t most = busiest_instant(sim, 3 * SECOND);
    parley_sim_kill(sim, 3, true);
    uint64_t got = busiest_instant(sim, 12 * SECOND);
    if (got > most) most = got;
    parley_sim_pause(sim, 2);
    got = busiest_instant(sim, 5 * SECOND);
    if (got > most) most = got;
    parley_sim_resume(sim, 2);
    scene_run(sim, 1000); /* what had waited for it comes at one instant */
    parley_sim_stop(sim, 0, PARLEY_STOP_OPERATOR);
    got = busiest_instant(sim, 60 * SECOND);
    if (got > most) most = got;
    cr_assert(parley_sim_agreed(sim, NULL));
    cr_assert_lt(most, 200, "%llu events at one instant", (unsigned long long)most);
    parley_sim_free(sim);
}

Test(patience, two_halves_that_took_each_other_for_dead_agree_in_the_end)
{
    /* Proves that a partition during the agreement, healed before either half may decide alone,
     * leaves nobody waiting for ever: all nodes are LATE then, and one of them goes on. */
    for (uint64_t seed = 1; seed <= 3; seed++) {
        uint32_t halves[NODES] = {0, 0, 1, 1};
        struct parley_sim *sim =
            scene_together(&(struct parley_sim_options){.nodes = NODES,
                                                        .latency_us = 200,
                                                        .operation_us = 20 * SECOND,
                                                        .seed = seed,
                                                        .seeds = NODES});
        scene_train(sim, NODES);
        parley_sim_stop(sim, 0, PARLEY_STOP_OPERATOR);
        scene_run(sim, SECOND);
        parley_sim_partition(sim, halves);
        for (uint32_t a = 0; a < 2; a++)
            for (uint32_t b = 2; b < NODES; b++)
                parley_sim_disconnect(sim, a, b);
        scene_run(sim, 20 * SECOND);
        parley_sim_heal(sim);
        scene_until(sim, NODES, parley_sim_agreed, NULL, 900);
        scene_same(sim, NODES);
        parley_sim_free(sim);
    }
}

static bool the_hub_trains(struct parley_sim *sim, void *arg)
{
    (void)arg;
    struct parley_view view = scene_view(sim, 0);
    return view.phase == PARLEY_PHASE_TRAIN;
}

Test(patience, a_stop_before_the_others_are_known_to_train_holds_nobody_up)
{
    /* Proves that a node which is stopped while the news of the others' training are still on their
     * way, and so proposes unmeasured, is neither waited for by their drift nor wins. */
    struct parley_sim *sim = scene_together(&(struct parley_sim_options){
        .nodes = NODES, .parameters = 1000, .latency_us = 20000, .seed = 3});
    scene_until(sim, NODES, the_hub_trains, NULL, 10);
    parley_sim_stop(sim, 0, PARLEY_STOP_OPERATOR);
    scene_until(sim, NODES, parley_sim_agreed, NULL, 20);
    parley_sim_free(sim);
}

Test(patience, nobody_is_taken_for_dead_where_each_way_comes_to_last_400_ms)
{
    /* Proves that a suspicion leaves time to answer, and that who is heard is not called silent:
     * links are made anew meanwhile, each of which takes two seconds until it carries an answer. */
    enum { EIGHT = 8 };
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct parley_sim *sim = scene_together(
            &(struct parley_sim_options){.nodes = EIGHT, .latency_us = 200, .seed = seed});
        scene_train(sim, EIGHT);
        for (uint32_t i = 0; i < EIGHT; i++)
            parley_sim_latency(sim, i, 200000); /* at both ends of each way */
        for (uint32_t tenth = 0; tenth < 300; tenth++) {
            if (tenth % 50 == 0) parley_sim_disconnect(sim, tenth / 50, tenth / 50 + 1);
            scene_run(sim, SECOND / 10);
            for (uint32_t i = 0; i < EIGHT; i++) {
                struct parley_view view = scene_view(sim, i);
                cr_assert_eq(view.live, EIGHT, "seed %llu: n%u sees %u at %.1f s",
                             (unsigned long long)seed, i, view.live,
                             (double)parley_sim_now(sim) / 1e6);
            }
        }
        parley_sim_free(sim);
    }
}

static uint64_t applied_by(struct parley_sim *sim, uint32_t node)
{
    return scene_view(sim, node).ledger.applied;
}

static void averages_in_pairs(struct parley_config *config, uint32_t node, void *arg)
{
    (void)node;
    config->strategy = *(const enum parley_strategy *)arg;
    config->min_peers = 5;
    if (config->strategy == PARLEY_STRATEGY_NOLOCO) config->mix_every = 20;
}

/* Of six nodes, the fourth of which is stopped, how many apply nothing for a second. */
static uint32_t without_exchange(struct parley_sim *sim)
{
    uint64_t before[6];
    uint32_t count = 0;
    for (uint32_t i = 0; i < 6; i++)
        before[i] = applied_by(sim, i);
    scene_run(sim, SECOND);
    for (uint32_t i = 0; i < 6; i++)
        count += i != 3 && applied_by(sim, i) == before[i];
    return count;
}

Test(patience, who_is_stopped_keeps_nobody_from_averaging_with_the_others)
{
    /* Each of them soon had asked it. They averaged no more until it was dead, and those that only
     * heard of its death until they dialled it, two seconds later still. */
    const enum parley_strategy strategies[] = {PARLEY_STRATEGY_GOSSIP, PARLEY_STRATEGY_PUSH_SUM,
                                               PARLEY_STRATEGY_NOLOCO};
    for (uint64_t k = 0; k < 12; k++) {
        enum parley_strategy strategy = strategies[k % 3];
        uint32_t none;
        struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 6,
                                                                    .seed = k,
                                                                    .step_us = 5000,
                                                                    .latency_us = 200,
                                                                    .configure = averages_in_pairs,
                                                                    .arg = &strategy});
        for (uint32_t i = 0; k % 2 && i < 6; i++)
            parley_sim_latency(sim, i, i * 5000);
        scene_train(sim, 6);
        scene_run(sim, 3 * SECOND);
        parley_sim_pause(sim, 3);
        scene_run(sim, 600000);
        /* With two it may have been in the middle of an exchange. */
        for (int second = 0; scene_view(sim, 0).live == 6; second++) {
            none = without_exchange(sim);
            cr_expect_leq(none, 2, "%d: %u in second %d", (int)k, none, second);
            cr_assert_lt(second, 10);
        }
        scene_run(sim, SECOND / 2);
        none = without_exchange(sim);
        cr_expect_eq(none, 0, "%d: %u once it is dead", (int)k, none);
        uint64_t before = applied_by(sim, 3);
        parley_sim_resume(sim, 3);
        scene_run(sim, 3 * SECOND);
        cr_expect_gt(applied_by(sim, 3), before, "%d", (int)k);
        scene_agree(sim, 6, 0);
        parley_sim_free(sim);
    }
}

Test(patience, who_has_answered_one_that_is_stopped_then_turns_to_others)
{
    /* Proves that what a suspect has asked for and does not go on with is let go, too: it held its
     * responder until it was dead. A model takes 40 ms here, so it is mostly in the middle of one.
     */
    enum parley_strategy strategy = PARLEY_STRATEGY_PUSH_SUM;
    uint32_t none = 0;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 6,
                                                                    .seed = seed,
                                                                    .step_us = 5000,
                                                                    .latency_us = 200,
                                                                    .parameters = 50000,
                                                                    .unchecked = true,
                                                                    .bandwidth_bytes = 5000000,
                                                                    .configure = averages_in_pairs,
                                                                    .arg = &strategy});
        scene_train(sim, 6);
        scene_run(sim, 3 * SECOND + seed * 777);
        parley_sim_pause(sim, 3);
        scene_run(sim, 2600000); /* it is suspected, by who asked it and by who heard of that */
        none += without_exchange(sim);
        parley_sim_resume(sim, 3);
        scene_agree(sim, 6, 0);
        parley_sim_free(sim);
    }
    cr_assert_eq(none, 0, "%u", none);
}

static void averages_rarely(struct parley_config *config, uint32_t node, void *arg)
{
    (void)node;
    (void)arg;
    config->min_peers = 23;
    config->mix_every = 10;
}

/* Exchanges of 24 nodes in the minute after they have met. */
static uint64_t made_over(uint64_t latency_us)
{
    uint64_t applied = 0;
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 24,
                                                                .seed = 1,
                                                                .step_us = SECOND / 2,
                                                                .latency_us = latency_us,
                                                                .configure = averages_rarely});
    scene_train(sim, 24);
    scene_run(sim, 60 * SECOND);
    for (uint32_t i = 0; i < 24; i++)
        applied += applied_by(sim, i);
    scene_agree(sim, 24, 0);
    parley_sim_free(sim);
    return applied;
}

Test(patience, how_long_answers_take_is_learned_from_all_and_not_from_each_anew)
{
    /* Over the long line each comes 0.6 s after its offer, which is longer than who is silent is
     * waited for at first. A seventh of the exchanges was made. */
    uint64_t near = made_over(5000), far = made_over(300000);
    cr_assert_gt(near, 200);
    cr_assert_gt(10 * far, 9 * near, "%llu of %llu", (unsigned long long)far,
                 (unsigned long long)near);
}

static void with_four_seconds_to_settle(struct parley_config *config, uint32_t node, void *arg)
{
    (void)node;
    (void)arg;
    config->min_peers = 2;
    config->settle_timeout_us = 4 * SECOND;
}

static bool first_two_settle(struct parley_sim *sim, void *arg)
{
    (void)arg;
    struct parley_view view[2];
    for (uint32_t i = 0; i < 2; i++)
        view[i] = scene_view(sim, i);
    return view[0].phase == PARLEY_PHASE_SETTLE && view[1].phase == PARLEY_PHASE_SETTLE;
}

static bool somebody_proposes(struct parley_sim *sim, void *arg)
{
    (void)arg;
    for (uint32_t i = 0; i < 3; i++) {
        struct parley_view view = scene_view(sim, i);
        if (view.phase >= PARLEY_PHASE_PROPOSED) return true;
    }
    return false;
}

Test(patience, begins_anew_with_whoever_comes_to_settle_later)
{
    /* Proves that all have the whole time for mixing: n2 slept while the others began, and when
     * their four seconds are over more is needed. Nobody proposes before, above the tolerance, and
     * says so, and leaves those who go on with a distance that they can't mend. */
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct scene_lines logs = {.text = " log "};
        struct parley_sim *sim =
            scene(&(struct parley_sim_options){.nodes = 3,
                                               .operation_us = SECOND / 10,
                                               .latency_us = 1000,
                                               .seed = seed,
                                               .configure = with_four_seconds_to_settle});
        scene_train(sim, 3);
        parley_sim_on_line(sim, PARLEY_LOG_WARN, scene_count, &logs);
        parley_sim_pause(sim, 2);
        scene_run(sim, SECOND / 100);
        parley_sim_stop(sim, 0, PARLEY_STOP_OPERATOR);
        scene_until(sim, 3, first_two_settle, NULL, 1);
        uint64_t settled_us = parley_sim_now(sim);
        scene_run(sim, 3 * SECOND + 3 * SECOND / 4);
        parley_sim_resume(sim, 2);
        scene_until(sim, 3, somebody_proposes, NULL, 10);
        cr_assert_gt(parley_sim_now(sim), settled_us + 4 * SECOND + SECOND / 10);
        scene_until(sim, 3, parley_sim_agreed, NULL, 10);
        cr_assert_eq(logs.count, 0, "seed %d: somebody gave up", (int)seed);
        parley_sim_free(sim);
    }
}

static void with_no_time_to_settle(struct parley_config *config, uint32_t node, void *arg)
{
    (void)node;
    (void)arg;
    config->min_peers = 3;
    config->settle_timeout_us = 0;
}

Test(patience, of_an_agreement_does_not_end_with_the_time_to_settle)
{
    /* What comes after settling takes what it takes, however short that may be: 100 ms each way,
     * where all are there; a minute, where half of them are silent and have to be looked for. */
    for (uint32_t silent = 0; silent <= 2; silent += 2) {
        struct parley_sim *sim = scene(&(struct parley_sim_options){
            .nodes = 4, .latency_us = SECOND / 10, .seed = 5, .configure = with_no_time_to_settle});
        scene_train(sim, 4);
        scene_run(sim, SECOND);
        for (uint32_t i = 0; i < silent; i++)
            parley_sim_pause(sim, 3 - i);
        scene_run(sim, 20 * SECOND);
        scene_agree(sim, 4, 0);
        parley_sim_free(sim);
    }
}

Test(patience, a_link_that_lets_nothing_through_one_way_does_not_keep_a_node_from_the_others)
{
    /* n1 hears nothing of n0, which hears it. Chunks for n1 would hold n0's slots, and each next
     * exchange of the two would hold them for ten seconds more. */
    struct parley_sim *sim =
        scene_together(&(struct parley_sim_options){.nodes = NODES,
                                                    .parameters = 20000,
                                                    .seed = 3,
                                                    .bandwidth_bytes = 10000000,
                                                    .step_us = 5000,
                                                    .latency_us = 500});
    scene_train(sim, NODES);
    scene_run(sim, SECOND);
    parley_sim_block(sim, 0, 1);
    scene_run(sim, 11 * SECOND); /* so long no progress is waited for */
    uint64_t before[NODES];
    for (uint32_t i = 0; i < NODES; i++)
        before[i] = applied_by(sim, i);
    scene_run(sim, 20 * SECOND);
    for (uint32_t i = 0; i < 2; i++)
        cr_expect_gt(3 * (applied_by(sim, i) - before[i]), applied_by(sim, 3) - before[3],
                     "n%u applied %llu, n3 %llu", i,
                     (unsigned long long)(applied_by(sim, i) - before[i]),
                     (unsigned long long)(applied_by(sim, 3) - before[3]));
    parley_sim_heal(sim);
    scene_agree(sim, NODES, 0);
    parley_sim_free(sim);
}

static uint32_t held,
    begun_anew; /* somebody holds the picked model; then how often that was in vain */

static void watch_holders(const char *line, void *arg)
{
    (void)arg;
    if (strstr(line, "phase settle")) held = 0;
    if (strstr(line, "phase held")) held++;
    if (held && strstr(line, "nothing moved")) begun_anew++;
}

Test(patience, nobody_is_suspected_where_a_model_has_the_line_for_16_s)
{
    /* Proves that 1 MiB of a model does not wait before a line of 1 Mbit, and every probe behind
     * it: two senders kept their receiver from hearing others for 16 s, which TCP does not. It was
     * 93 suspicions. */
    struct scene_lines suspicions = {.text = " suspect: "};
    struct parley_sim *sim = scene_together(&(struct parley_sim_options){.nodes = 8,
                                                                         .parameters = 500000,
                                                                         .unchecked = true,
                                                                         .seed = 5,
                                                                         .latency_us = 20000,
                                                                         .bandwidth_bytes = 125000,
                                                                         .step_us = SECOND});
    scene_train(sim, 8);
    parley_sim_on_line(sim, PARLEY_LOG_ERROR, scene_count, &suspicions);
    scene_run(sim, 200 * SECOND);
    cr_assert_eq(suspicions.count, 0, "%u", suspicions.count);
    parley_sim_free(sim);
}

/* seen: per cent of a model that were here at a time. */
static bool agree_in_sight(struct parley_sim *sim, void *seen)
{
    for (uint32_t i = 0; i < 2; i++) {
        struct parley_view view = scene_view(sim, i);
        cr_assert_leq(view.incoming, 1);
        if (view.incoming >= 0) ((bool *)seen)[(int)(100 * view.incoming)] = true;
    }
    return parley_sim_agreed(sim, NULL);
}

Test(patience, a_model_that_takes_minutes_to_fetch_is_waited_for)
{
    /* Proves that who holds the picked model hears how it comes in elsewhere: its fetch is not
     * begun anew, and nobody gives up while it moves, be it beyond five times the time to settle.
     */
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 2,
                                                                .parameters = 500000,
                                                                .seed = 1,
                                                                .latency_us = 500,
                                                                .bandwidth_bytes = 10000,
                                                                .step_us = 500000,
                                                                .rate = 0.01});
    scene_train(sim, 2);
    scene_run(sim, 30 * SECOND);
    parley_sim_stop(sim, 0, PARLEY_STOP_OPERATOR);
    parley_sim_on_line(sim, PARLEY_LOG_INFO, watch_holders, NULL);
    uint64_t since_us = parley_sim_now(sim);
    bool seen[101] = {false};
    uint32_t between = 0;
    scene_until(sim, 2, agree_in_sight, seen, 2000);
    for (int percent = 10; percent < 90; percent++)
        between += seen[percent];
    cr_assert_gt(between, 5, "%u", between);
    cr_assert_lt(scene_view(sim, 0).incoming, 0);
    cr_assert_eq(begun_anew, 0);
    cr_assert_gt(parley_sim_now(sim), since_us + 300 * SECOND);
    cr_assert_eq(parley_sim_live_count(sim), 2, "somebody gave up");
    parley_sim_free(sim);
}

Test(patience, settling_has_the_time_that_its_first_sweep_takes_over_the_line)
{
    /* Proves that nobody gives up in the middle of it and picks a model that is hardly averaged:
     * two models in a row take eight seconds, and the time to settle is four. */
    struct scene_lines logs = {.text = " log "};
    struct parley_sim *sim =
        scene(&(struct parley_sim_options){.nodes = 4,
                                           .parameters = 20000,
                                           .seed = 1,
                                           .latency_us = 20000,
                                           .bandwidth_bytes = 20000,
                                           .step_us = SECOND / 2,
                                           .configure = with_four_seconds_to_settle});
    scene_train(sim, 4);
    scene_run(sim, 20 * SECOND);
    parley_sim_on_line(sim, PARLEY_LOG_WARN, scene_count, &logs);
    parley_sim_stop(sim, 0, PARLEY_STOP_OPERATOR);
    scene_until(sim, 4, parley_sim_agreed, NULL, 60);
    cr_assert_eq(logs.count, 0, "somebody gave up");
    parley_sim_free(sim);
}

Test(patience, a_wait_for_ever_ends_when_what_it_waits_for_has_come)
{
    /* Proves that PARLEY_SIM_NEVER is a limit like any other, and not one that is over already. */
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 3, .seed = 1});
    scene_train(sim, 3);
    scene_run(sim, SECOND);
    parley_sim_stop(sim, 0, PARLEY_STOP_OPERATOR);
    cr_assert_eq(parley_sim_step_until(sim, parley_sim_agreed, NULL, PARLEY_SIM_NEVER), 0);
    uint64_t now_us = parley_sim_now(sim);
    cr_assert_eq(parley_sim_run_for(sim, PARLEY_SIM_NEVER), 0);
    cr_assert_lt(parley_sim_now(sim), now_us + 60 * SECOND, "nothing was left to happen");
    parley_sim_free(sim);
}
