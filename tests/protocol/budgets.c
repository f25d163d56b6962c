/* budgets.c: of what there is to train with, time or steps, how much all have used. */
#include "scene.h"

static void wait_for_time(struct parley_config *config, uint32_t node, void *strategy)
{
    (void)node;
    config->time_budget_us = 20 * SECOND;
    if (strategy) config->strategy = *(enum parley_strategy *)strategy;
}

Test(budgets, a_budget_of_time_is_the_clusters)
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

Test(budgets, of_a_budget_of_steps_all_are_as_far_as_the_living_are_on_average)
{
    /* Proves that a node four times slower, which makes most of its steps while the others wait for
     * it, makes them at the rate of an end; also where too many live to hear of each in time. */
    for (uint32_t nodes = 4; nodes <= 16; nodes += 12) {
        struct steps steps = {nodes, 500};
        uint32_t slow = nodes / 4;
        struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = nodes,
                                                                    .seed = 4,
                                                                    .rate = 0.01,
                                                                    .step_us = 4000,
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

struct many {
    enum parley_strategy strategy;
    uint64_t samples;
};

static void give_samples(struct parley_config *config, uint32_t node, void *arg)
{
    const struct many *many = arg;
    (void)node;
    config->min_peers = 15;
    config->strategy = many->strategy;
    config->samples_budget = many->samples;
}

Test(budgets, of_a_budget_of_samples_many_make_all_however_unlike_their_speeds)
{
    /* Proves that where too many live to hear of each in time, and half of them are five times
     * slower, the fast ones don't take the others for as fast: 60 % of the budget was made. */
    const enum parley_strategy strategies[] = {PARLEY_STRATEGY_GOSSIP, PARLEY_STRATEGY_PUSH_SUM,
                                               PARLEY_STRATEGY_PS_ASP, PARLEY_STRATEGY_NOLOCO,
                                               PARLEY_STRATEGY_NONE};
    for (int k = 0; k < 5; k++) {
        struct many many = {strategies[k], 16000};
        struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 16,
                                                                    .seed = 4,
                                                                    .rate = 0.01,
                                                                    .step_us = 1000,
                                                                    .latency_us = 200,
                                                                    .configure = give_samples,
                                                                    .arg = &many});
        scene_train(sim, 16);
        for (uint32_t i = 8; i < 16; i++)
            parley_sim_slow(sim, i, 5);
        scene_until(sim, 16, parley_sim_agreed, NULL, 60);
        double made = (double)scene_made(sim, 16) / (double)many.samples;
        cr_expect(made > 0.95 && made < 1.05, "%d: %g of the budget", k, made);
        parley_sim_free(sim);
    }
}

static bool has_made_a_quarter(struct parley_sim *sim, void *budget)
{
    return scene_view(sim, 0).version >= *(uint64_t *)budget / 4;
}

Test(budgets, who_is_done_is_as_far_as_it_was_when_training_ended)
{
    /* Proves that progress is no mean over those who are left, or over nobody, once nodes go. */
    struct steps steps = {3, 500};
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 3,
                                                                .seed = 4,
                                                                .rate = 0.01,
                                                                .step_us = 4000,
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

Test(budgets, a_budget_of_time_goes_on_where_it_was)
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

Test(budgets, so_is_what_a_node_has_slept_through)
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
