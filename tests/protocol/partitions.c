/* partitions.c: nodes that sleep or do not hear each other for a time. */
#include "scene.h"

static struct parley_sim *trained(uint32_t *peers, uint64_t seed)
{
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = *peers + 1,
                                                                .seed = seed,
                                                                .seeds = 2,
                                                                .latency_us = 500,
                                                                .configure = scene_wait_for,
                                                                .arg = peers});
    scene_train(sim, *peers + 1);
    scene_run(sim, 2 * SECOND);
    return sim;
}

static enum parley_member_state state_of(struct parley_sim *sim, uint32_t node, uint32_t peer)
{
    struct parley_member member;
    cr_assert(parley_sim_member(sim, node, peer, &member));
    return member.state;
}

Test(partitions, a_node_that_slept_is_suspected_and_comes_back)
{
    /* 20 s stopped: the others take it for gone; awake it is alive again, and counted once. */
    uint32_t peers = 4;
    struct parley_sim *sim = trained(&peers, 1);
    parley_sim_pause(sim, 3);
    scene_run(sim, 20 * SECOND);
    cr_assert_neq(state_of(sim, 0, 3), PARLEY_MEMBER_ALIVE);
    parley_sim_resume(sim, 3);
    scene_until(sim, 5, parley_sim_converged, NULL, 40);
    cr_assert_eq(state_of(sim, 0, 3), PARLEY_MEMBER_ALIVE);
    for (uint32_t i = 0; i < 5; i++) {
        struct parley_view view;
        parley_sim_view(sim, i, &view);
        cr_assert_eq(view.known, 5, "n%u knows %u", i, view.known);
    }
    scene_agree(sim, 5, 0);
    cr_assert_leq(parley_sim_mass_error(sim), 1e-6);
    parley_sim_free(sim);
}

Test(partitions, who_wakes_up_declares_nobody_dead)
{
    /* Seen from the sleeper no time has passed: it takes no other for dead. */
    uint32_t peers = 4;
    struct parley_sim *sim = trained(&peers, 2);
    parley_sim_pause(sim, 2);
    scene_run(sim, 30 * SECOND);
    parley_sim_resume(sim, 2);
    for (int part = 0; part < 100; part++) {
        scene_run(sim, 100000);
        for (uint32_t i = 0; i < 5; i++)
            cr_assert_neq(state_of(sim, 2, i), PARLEY_MEMBER_DEAD, "n%u", i);
    }
    parley_sim_free(sim);
}

Test(partitions, halves_that_heal_become_one_cluster_again)
{
    /* 30 s apart, both halves train on; healed, all see all and agree on one model. */
    uint32_t peers = 5;
    const uint32_t group[] = {0, 0, 0, 1, 1, 1};
    struct parley_sim *sim = trained(&peers, 3);
    parley_sim_partition(sim, group);
    scene_run(sim, 30 * SECOND);
    cr_assert_eq(state_of(sim, 0, 5), PARLEY_MEMBER_DEAD);
    parley_sim_heal(sim);
    scene_until(sim, 6, parley_sim_converged, NULL, 60);
    scene_agree(sim, 6, 0);
    parley_sim_free(sim);
}

Test(partitions, one_direction_that_is_deaf_ends_with_one_model)
{
    /* n4 hears nothing of the others for 20 s; afterwards all agree. */
    uint32_t peers = 4;
    struct parley_sim *sim = trained(&peers, 4);
    for (uint32_t i = 0; i < 4; i++)
        parley_sim_block(sim, i, 4);
    scene_run(sim, 20 * SECOND);
    parley_sim_heal(sim);
    scene_until(sim, 5, parley_sim_converged, NULL, 60);
    scene_agree(sim, 5, 0);
    parley_sim_free(sim);
}

Test(partitions, a_minority_does_not_decide_alone_at_once)
{
    /* One of five, cut off and told to stop, may not be DONE before it has dialled the others in
     * vain for 30 s. */
    uint32_t peers = 4;
    const uint32_t group[] = {0, 0, 0, 0, 1};
    struct parley_sim *sim = trained(&peers, 5);
    parley_sim_partition(sim, group);
    parley_sim_stop(sim, 4, PARLEY_STOP_OPERATOR);
    struct parley_view view;
    for (int part = 0; part < 29; part++) {
        scene_run(sim, 1 * SECOND);
        parley_sim_view(sim, 4, &view);
        cr_assert_neq(view.phase, PARLEY_PHASE_DONE, "after %d s", part + 1);
    }
    parley_sim_heal(sim);
    scene_run(sim, 30 * SECOND);
    scene_agree(sim, 5, 0);
    parley_sim_free(sim);
}

static void majority(struct parley_config *config, uint32_t node, void *arg)
{
    (void)node;
    (void)arg;
    config->min_peers = 4;
    config->quorum = PARLEY_QUORUM_MAJORITY;
    config->nodes = 5;
}

Test(partitions, under_a_majority_quorum_no_minority_decides)
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
        struct parley_view view;
        parley_sim_view(sim, i, &view);
        if (group[i] == 0)
            cr_assert_eq(view.phase, PARLEY_PHASE_DONE, "n%u", i);
        else
            cr_assert_neq(view.phase, PARLEY_PHASE_DONE, "n%u", i);
    }
    parley_sim_free(sim);
}
