/* agreement.c: the end of training, beyond what kills and partitions do to it. */
#include "scene.h"

Test(agreement, more_nodes_than_sketches_settle_and_agree)
{
    /* 36 nodes keep 32 sketches: those outside the sample measure themselves too, so settling ends
     * by its tolerance, long before its timeout. */
    struct parley_sim *sim = scene_together(&(struct parley_sim_options){
        .nodes = 36, .seed = 1, .seeds = 3, .latency_us = 200, .unchecked = true});
    scene_train(sim, 36);
    scene_run(sim, 50000);
    parley_sim_stop(sim, 0, PARLEY_STOP_OPERATOR);
    scene_until(sim, 36, parley_sim_agreed, NULL, 10);
    scene_same(sim, 36);
    struct parley_view view = scene_view(sim, 7);
    cr_assert_eq(view.held, 36);
    cr_assert_leq(view.drift_before, 1e-4);
    parley_sim_free(sim);
}

Test(agreement, a_full_disk_keeps_the_model_in_memory)
{
    /* The node that cannot write takes part, agrees, and ends with an error of its own. */
    struct parley_sim *sim = scene_together(
        &(struct parley_sim_options){.nodes = 2, .seed = 2, .step_us = 1000, .latency_us = 300});
    parley_sim_disk_full(sim, 1, true);
    scene_train(sim, 2);
    scene_run(sim, 500000 - parley_sim_now(sim));
    parley_sim_stop(sim, 0, PARLEY_STOP_OPERATOR);
    parley_sim_on_line(sim, PARLEY_LOG_ERROR, NULL, NULL);
    scene_expect(sim, "phase log finished", 60,
                 "n0 phase stop\n"
                 "n0 phase settle\n"
                 "n1 phase stop\n"
                 "n1 phase settle\n"
                 "n0 phase proposed\n"
                 "n1 phase proposed\n"
                 "n1 log the model could not be written; it is held in memory\n"
                 "n1 phase held\n"
                 "n0 phase held\n"
                 "n0 phase locked\n"
                 "n1 phase locked\n"
                 "n1 log the model file could not get its final name\n"
                 "n1 phase done\n"
                 "n0 phase done\n"
                 "n0 finished no error\n"
                 "n1 finished the final model could not be written\n");
    cr_assert_null(parley_sim_file(sim, 1));
    cr_assert_not_null(parley_sim_file(sim, 0));
    parley_sim_free(sim);
}

static bool all_settle(struct parley_sim *sim, void *arg)
{
    uint32_t nodes = *(uint32_t *)arg;
    for (uint32_t i = 0; i < nodes; i++)
        if (scene_view(sim, i).phase < PARLEY_PHASE_SETTLE) return false;
    return true;
}

/* Eight nodes that train and don't meet. */
static void apart(struct parley_config *config, uint32_t node, void *arg)
{
    (void)node;
    (void)arg;
    config->min_peers = 7;
    config->mix_every = 1000000;
}

Test(agreement, a_power_of_two_of_nodes_has_the_mean_after_few_exchanges)
{
    /* Three meetings each make eight models one, and no more are needed to know it; at random it
     * takes some 25 each. */
    uint32_t nodes = 8;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct parley_sim *sim = scene(&(struct parley_sim_options){
            .nodes = nodes, .seed = seed, .latency_us = 200, .configure = apart});
        scene_train(sim, nodes);
        scene_run(sim, 50000);
        parley_sim_stop(sim, 0, PARLEY_STOP_OPERATOR);
        scene_until(sim, nodes, all_settle, &nodes, 10);
        uint64_t before = scene_applied(sim, nodes);
        scene_until(sim, nodes, parley_sim_agreed, NULL, 10);
        scene_same(sim, nodes);
        uint64_t took = scene_applied(sim, nodes) - before;
        struct parley_view view = scene_view(sim, 0);
        cr_expect_leq(took, 3 * nodes, "%llu in seed %llu", (unsigned long long)took,
                      (unsigned long long)seed);
        cr_expect_leq(view.drift_before, 1e-6, "%g", view.drift_before);
        parley_sim_free(sim);
    }
}

static void by_samples(struct parley_config *config, uint32_t node, void *arg)
{
    (void)node;
    (void)arg;
    config->min_peers = 3;
    config->samples_budget = 8000;
}

Test(agreement, the_living_make_the_steps_of_the_dead)
{
    /* A budget of samples of the cluster is met, and not passed by much, though one node is slow
     * and one dies. */
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 4,
                                                                .seed = 3,
                                                                .rate = 0.01,
                                                                .step_us = 1000,
                                                                .latency_us = 200,
                                                                .configure = by_samples});
    parley_sim_slow(sim, 1, 5);
    scene_train(sim, 4);
    scene_run(sim, 1 * SECOND);
    parley_sim_kill(sim, 3, false);
    scene_until(sim, 4, parley_sim_agreed, NULL, 60);
    uint64_t steps = scene_made(sim, 4);
    for (uint32_t i = 0; i < 4; i++)
        if (parley_sim_live(sim, i)) cr_assert_eq(scene_view(sim, i).stop, PARLEY_STOP_BUDGET);
    cr_assert_geq(steps, 8000);
    cr_assert_lt(steps, 12000);
    parley_sim_free(sim);
}

enum { WITNESSES = 8 };

/* At the node that is DONE now: has it heard of all that they have locked? */
static void look_at_locks(const char *line, void *arg)
{
    struct parley_sim *sim = *(struct parley_sim **)arg;
    uint32_t node;
    if (!strstr(line, "phase done") || sscanf(line, "%*s n%u", &node) != 1) return;
    for (uint32_t peer = 0; peer < WITNESSES; peer++) {
        struct parley_member member;
        cr_assert(peer == node || parley_sim_member(sim, node, peer, &member));
        cr_assert(peer == node || member.phase == PARLEY_PHASE_LOCKED ||
                      member.phase == PARLEY_PHASE_DONE,
                  "n%u is done, and has n%u in %s", node, peer, parley_phase_name(member.phase));
    }
}

Test(agreement, who_is_done_has_heard_of_all_that_they_have_locked)
{
    /* Proves that a node that holds the model does not go along with the first that is done while
     * others' locks are news under way: its record of the agreement would lack them. */
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct parley_sim *sim = scene_together(
            &(struct parley_sim_options){.nodes = WITNESSES, .seed = seed, .latency_us = 1000});
        scene_train(sim, WITNESSES);
        for (uint32_t i = 0; i < WITNESSES; i++)
            parley_sim_reorder(sim, i, 50000);
        parley_sim_on_line(sim, PARLEY_LOG_INFO, look_at_locks, &sim);
        scene_agree(sim, WITNESSES, 0);
        parley_sim_free(sim);
    }
}

Test(agreement, many_that_have_only_just_met_agree_at_once)
{
    /* Proves that rounds of averaging are kept while news of who is there still goes round, that a
     * link which gave way to another keeps no pair apart, and that a sample of sketches stands for
     * all. Each of these alone kept a hundred nodes mixing for tens of seconds. */
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct parley_sim *sim =
            scene(&(struct parley_sim_options){.nodes = 100, .rate = 0.01, .seed = seed});
        scene_train(sim, 100);
        parley_sim_stop(sim, 0, PARLEY_STOP_OPERATOR);
        scene_until(sim, 1, parley_sim_agreed, NULL, 5);
        scene_same(sim, 100);
        parley_sim_free(sim);
    }
}

enum { MANY = 24 };

static void train_for_a_moment(struct parley_config *config, uint32_t node, void *arg)
{
    (void)node, (void)arg;
    config->min_peers = MANY - 1;
    config->samples_budget = 32;
}

Test(agreement, a_few_that_finish_before_the_others_begin_are_followed_by_all)
{
    /* Proves that who is late goes along with those few even when others have done so before: its
     * first fetch is refused, and then there are more who are done than had agreed. */
    uint64_t starts[MANY] = {0};
    for (uint32_t i = 16; i < MANY; i++)
        starts[i] = (i - 16) * 1000;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct parley_sim *sim = scene(&(struct parley_sim_options){
            .nodes = MANY, .seed = seed, .start_us = starts, .configure = train_for_a_moment});
        scene_until(sim, 1, parley_sim_agreed, NULL, 5);
        scene_same(sim, MANY);
        parley_sim_free(sim);
    }
}

Test(agreement, who_is_alone_looks_for_the_others_before_it_locks_and_before_it_is_done)
{
    /* Proves that one of two whose peer fell silent waits half a minute for it, twice, and no
     * longer. */
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 2, .seed = 1});
    scene_train(sim, 2);
    parley_sim_kill(sim, 1, true);
    scene_run(sim, 20 * SECOND);
    parley_sim_stop(sim, 0, PARLEY_STOP_OPERATOR);
    uint64_t from_us = parley_sim_now(sim);
    scene_until(sim, 2, parley_sim_agreed, NULL, 90);
    double took_s = (double)(parley_sim_now(sim) - from_us) / 1e6;
    cr_assert(took_s > 59 && took_s < 65, "%g s", took_s);
    parley_sim_free(sim);
}
