/* quorum.c: --quorum majority. Of parts that do not hear each other only the one that has more than
 * half of all nodes decides.
 */
#include "scene.h"

static void majority(struct parley_config *config, uint32_t node, void *arg)
{
    (void)node;
    (void)arg;
    config->min_peers = 4;
    config->quorum = PARLEY_QUORUM_MAJORITY;
    config->nodes = 5;
}

Test(quorum, no_minority_decides)
{
    /* Cut in three and two and all told to stop: the two never get DONE, the three agree. */
    const uint32_t group[] = {0, 0, 0, 1, 1};
    struct parley_sim *sim = scene(&(struct parley_sim_options){
        .nodes = 5, .seed = 6, .seeds = 2, .latency_us = 500, .configure = majority});
    scene_train(sim, 5);
    scene_run(sim, 2 * SECOND);
    parley_sim_partition(sim, group);
    for (uint32_t i = 0; i < 5; i++)
        parley_sim_stop(sim, i, PARLEY_STOP_OPERATOR);
    scene_run(sim, 90 * SECOND);
    for (uint32_t i = 0; i < 5; i++) {
        struct parley_view view = scene_view(sim, i);
        if (group[i] == 0)
            cr_assert_eq(view.phase, PARLEY_PHASE_DONE, "n%u", i);
        else
            cr_assert_neq(view.phase, PARLEY_PHASE_DONE, "n%u", i);
    }
    parley_sim_free(sim);
}

static void majority_of_seven(struct parley_config *config, uint32_t node, void *arg)
{
    (void)node;
    (void)arg;
    config->min_peers = 6;
    config->quorum = PARLEY_QUORUM_MAJORITY;
    config->nodes = 7;
}

/* All nodes train on: their versions grow. */
static void train_on(struct parley_sim *sim, uint64_t us)
{
    struct parley_view before[7], after;
    for (uint32_t i = 0; i < 7; i++)
        before[i] = scene_view(sim, i);
    scene_run(sim, us);
    for (uint32_t i = 0; i < 7; i++) {
        after = scene_view(sim, i);
        cr_assert_gt(after.version, before[i].version, "n%u stands still", i);
    }
}

Test(quorum, a_healed_partition_merges_views_and_models)
{
    /* Four and three train on apart for a minute. Healed, all see all within 10 s, their models
     * come together, and all seven hold one digest: each says so of all seven. */
    const uint32_t group[] = {0, 0, 0, 0, 1, 1, 1};
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 7,
                                                                .seed = 7,
                                                                .seeds = 2,
                                                                .latency_us = 500,
                                                                .rate = 0.01,
                                                                .configure = majority_of_seven});
    scene_train(sim, 7);
    scene_run(sim, 5 * SECOND);
    double together = parley_sim_spread(sim);
    parley_sim_partition(sim, group);
    train_on(sim, 60 * SECOND);
    double apart = parley_sim_spread(sim);
    cr_assert_gt(apart, 2 * together);
    parley_sim_heal(sim);
    scene_until(sim, 7, parley_sim_converged, NULL, 10);
    scene_run(sim, 5 * SECOND);
    cr_assert_lt(parley_sim_spread(sim), 1.5 * together, "%g, before %g", parley_sim_spread(sim),
                 together);
    scene_agree(sim, 7, 0);
    for (uint32_t i = 0; i < 7; i++) {
        struct parley_view view = scene_view(sim, i);
        cr_assert(view.held == 7 && view.known == 7, "n%u: held %u of %u", i, view.held,
                  view.known);
    }
    parley_sim_free(sim);
}

/* Cut in four and three for 20 s, in which the two become different, then all are told to stop, and
 * the four have come to `phase`. */
static struct parley_sim *four_in(enum parley_phase phase, uint64_t seed)
{
    const uint32_t group[] = {0, 0, 0, 0, 1, 1, 1};
    struct parley_view view;
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 7,
                                                                .seed = seed,
                                                                .seeds = 2,
                                                                .rate = 0.01,
                                                                .latency_us = 500,
                                                                .configure = majority_of_seven});
    scene_train(sim, 7);
    scene_run(sim, 2 * SECOND);
    parley_sim_partition(sim, group);
    scene_run(sim, 20 * SECOND);
    for (uint32_t i = 0; i < 7; i++)
        parley_sim_stop(sim, i, PARLEY_STOP_OPERATOR);
    do {
        scene_run(sim, 100);
        view = scene_view(sim, 0);
    } while (view.phase < phase && parley_sim_now(sim) < 120 * SECOND);
    cr_assert_geq(view.phase, phase);
    return sim;
}

static void majority_of_three(struct parley_config *config, uint32_t node, void *arg)
{
    (void)node;
    (void)arg;
    config->min_peers = 3;
    config->quorum = PARLEY_QUORUM_MAJORITY;
    config->nodes = 3;
}

Test(quorum, more_nodes_than_it_is_of_have_no_two_majorities)
{
    /* Two and two of four would each be most of three. Neither agrees, and healed they all do. */
    const uint32_t group[] = {0, 0, 1, 1};
    struct parley_sim *sim = scene(&(struct parley_sim_options){
        .nodes = 4, .seed = 5, .latency_us = 500, .configure = majority_of_three});
    scene_train(sim, 4);
    scene_run(sim, SECOND);
    parley_sim_partition(sim, group);
    scene_run(sim, 20 * SECOND);
    for (uint32_t i = 0; i < 4; i++)
        parley_sim_stop(sim, i, PARLEY_STOP_OPERATOR);
    scene_run(sim, 60 * SECOND);
    for (uint32_t i = 0; i < 4; i++) {
        cr_assert_neq(scene_view(sim, i).phase, PARLEY_PHASE_DONE, "n%u", i);
    }
    parley_sim_heal(sim);
    scene_until(sim, 4, parley_sim_agreed, NULL, 60);
    scene_same(sim, 4);
    parley_sim_free(sim);
}

/* Five that want a majority train, and n5 is to be started later. */
static struct parley_sim *five_train(uint64_t latency_us)
{
    static const uint64_t starts[] = {0, 0, 0, 0, 0, PARLEY_SIM_NEVER};
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 6,
                                                                .seed = 3,
                                                                .seeds = 2,
                                                                .latency_us = latency_us,
                                                                .start_us = starts,
                                                                .configure = majority});
    scene_train(sim, 5);
    return sim;
}

static bool is_late(struct parley_sim *sim, void *node)
{
    return scene_view(sim, *(uint32_t *)node).phase == PARLEY_PHASE_LATE;
}

Test(quorum, who_comes_after_training_takes_none_away)
{
    /* Three of five live and agree when a sixth comes, which has no say. They waited for it and it
     * for them, half a minute; and where it died, till all gave up. */
    for (int dies = 0; dies < 2; dies++) {
        uint32_t late = 5;
        struct parley_sim *sim = five_train(50000);
        parley_sim_kill(sim, 3, false);
        parley_sim_kill(sim, 4, false);
        scene_run(sim, 3 * SECOND);
        for (uint32_t i = 0; i < 3; i++)
            parley_sim_stop(sim, i, PARLEY_STOP_OPERATOR);
        parley_sim_start(sim, late);
        scene_until(sim, 6, is_late, &late, 5);
        if (dies) parley_sim_kill(sim, late, false);
        scene_until(sim, 3, scene_three_are_done, NULL, 10);
        scene_same(sim, 3);
        if (!dies) scene_until(sim, 6, parley_sim_agreed, NULL, 10);
        parley_sim_free(sim);
    }
}

Test(quorum, who_comes_after_training_waits_as_long_as_the_others)
{
    /* Two, two and one of five, each without a majority, wait for each other. Who came to two of
     * them gave up after half a minute, with nothing, and they agreed a minute later. */
    const uint32_t group[] = {0, 0, 1, 1, 2, 0};
    uint32_t late = 5;
    int error = 0;
    struct parley_sim *sim = five_train(500);
    parley_sim_partition(sim, group);
    scene_run(sim, 20 * SECOND);
    for (uint32_t i = 0; i < 5; i++)
        parley_sim_stop(sim, i, PARLEY_STOP_OPERATOR);
    scene_run(sim, SECOND);
    parley_sim_start(sim, late);
    scene_until(sim, 6, is_late, &late, 5);
    scene_run(sim, 60 * SECOND);
    cr_assert(!parley_sim_finished(sim, late, &error), "%s", parley_error_name(error));
    parley_sim_heal(sim);
    scene_until(sim, 6, parley_sim_agreed, NULL, 60);
    scene_same(sim, 6);
    parley_sim_free(sim);
}

Test(quorum, who_comes_back_and_tells_of_deaths_holds_up_nobody_for_long)
{
    /* n4, cut off, is back as the others settle, and says that they are dead: too few are left to
     * decide until those are back in the agreement, and nobody is missing who could be waited for.
     */
    const uint32_t group[] = {0, 0, 0, 0, 1, 1};
    struct parley_sim *sim = five_train(50000);
    scene_run(sim, 3 * SECOND);
    parley_sim_partition(sim, group);
    scene_run(sim, 21 * SECOND);
    for (uint32_t i = 0; i < 5; i++)
        parley_sim_stop(sim, i, PARLEY_STOP_OPERATOR);
    scene_run(sim, 100000);
    cr_assert_eq(scene_phase(sim, 0), PARLEY_PHASE_SETTLE);
    parley_sim_heal(sim);
    scene_until(sim, 5, parley_sim_agreed, NULL, 7);
    scene_same(sim, 5);
    parley_sim_free(sim);
}

Test(quorum, a_minority_left_alone_ends_without_a_model)
{
    /* The four agree, say "4 of 7", and are gone. The three, healed or not, end with status 3. */
    for (int heals = 0; heals < 2; heals++) {
        struct parley_sim *sim = four_in(PARLEY_PHASE_DONE, 8);
        int error = 0;
        scene_run(sim, SECOND);
        if (heals) parley_sim_heal(sim);
        scene_until(sim, 7, scene_all_ended, &error, 600);
        for (uint32_t i = 0; i < 7; i++) {
            struct parley_view view = scene_view(sim, i);
            parley_sim_finished(sim, i, &error);
            cr_assert_eq(parley_error_status(error), i < 4 ? 0 : 3, "n%u: %s", i,
                         parley_error_name(error));
            cr_assert(i >= 4 || (view.held == 4 && view.known == 7), "n%u: held %u of %u", i,
                      view.held, view.known);
        }
        parley_sim_free(sim);
    }
}

Test(quorum, a_wall_that_falls_during_the_agreement_leaves_one_model)
{
    /* Who comes over says whom it took for dead: those are late, and where too few are left to
     * decide, all settle once more. Whoever is DONE holds the one digest of a majority. */
    const enum parley_phase phases[] = {PARLEY_PHASE_SETTLE, PARLEY_PHASE_PROPOSED,
                                        PARLEY_PHASE_HELD, PARLEY_PHASE_LOCKED};
    for (uint64_t k = 0; k < 8; k++) {
        struct parley_sim *sim = four_in(phases[k % 4], 10 + k);
        struct parley_view holder = {0}, view;
        uint32_t done = 0;
        int error = 0;
        parley_sim_heal(sim);
        scene_until(sim, 7, scene_all_ended, &error, 600);
        for (uint32_t i = 0; i < 7; i++) {
            view = scene_view(sim, i);
            parley_sim_finished(sim, i, &error);
            cr_assert(error == 0 || error == PARLEY_ENO_AGREEMENT, "n%u: %s", i,
                      parley_error_name(error));
            if (error) continue;
            if (done++ == 0) holder = view;
            cr_assert_eq(memcmp(view.digest, holder.digest, sizeof view.digest), 0, "n%u", i);
            cr_assert_eq(view.known, 7, "n%u", i);
        }
        cr_assert_geq(done, 4, "%u hold it", done);
        parley_sim_free(sim);
    }
}

/* Or that moment was missed: then n1 locks. */
static bool only_the_first_has_to_lock(struct parley_sim *sim, void *arg)
{
    (void)arg;
    return scene_phase(sim, 1) >= PARLEY_PHASE_LOCKED ||
           (scene_phase(sim, 0) == PARLEY_PHASE_LOCKED &&
            scene_phase(sim, 2) == PARLEY_PHASE_LOCKED);
}

static bool first_is_done(struct parley_sim *sim, void *arg)
{
    (void)arg;
    return scene_phase(sim, 1) == PARLEY_PHASE_DONE;
}

Test(quorum, what_most_have_locked_is_the_only_model)
{
    /* Of three that have locked it n1 is done, unheard by the other two, and gone when all is
     * healed. Those, late by then like the two that never heard of it, are enough with these to
     * decide: they settle on nothing else. */
    const uint32_t two[] = {0, 0, 0, 1, 1}, all[] = {0, 1, 2, 3, 4};
    uint32_t tries = 0;
    for (uint64_t seed = 1; tries < 3; seed++) {
        struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 5,
                                                                    .seed = seed,
                                                                    .seeds = 2,
                                                                    .rate = 0.001,
                                                                    .latency_us = 500,
                                                                    .configure = majority});
        int error = 0;
        cr_assert_lt(seed, 100);
        scene_train(sim, 5);
        scene_run(sim, SECOND);
        parley_sim_partition(sim, two);
        for (uint32_t i = 0; i < 5; i++)
            parley_sim_stop(sim, i, PARLEY_STOP_OPERATOR);
        scene_until(sim, 5, only_the_first_has_to_lock, NULL, 60);
        if (scene_phase(sim, 1) >= PARLEY_PHASE_LOCKED) {
            parley_sim_free(sim);
            continue;
        }
        tries++;
        parley_sim_block(sim, 1, 0);
        parley_sim_block(sim, 1, 2);
        scene_until(sim, 5, first_is_done, NULL, 5);
        parley_sim_partition(sim, all);
        scene_run(sim, 40 * SECOND);
        cr_assert(parley_sim_finished(sim, 1, &error) && error == 0);
        parley_sim_heal(sim);
        scene_until(sim, 5, scene_all_ended, &error, 600);
        struct parley_view first = scene_view(sim, 1);
        for (uint32_t i = 0; i < 5; i++) {
            struct parley_view view = scene_view(sim, i);
            parley_sim_finished(sim, i, &error);
            cr_assert_eq(error, 0, "n%u: %s", i, parley_error_name(error));
            cr_assert_eq(memcmp(view.digest, first.digest, sizeof view.digest), 0, "n%u", i);
        }
        parley_sim_free(sim);
    }
}
