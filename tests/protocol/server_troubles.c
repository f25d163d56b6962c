/* server_troubles.c: partitions, leavers, late nodes and narrow lines, where one node serves. */
#include "servers.h"

Test(server_troubles, of_two_servers_one_goes_on_when_a_partition_heals)
{
    /* Each side has its own for a while; then all follow the one with more in its model. */
    for (int c = 0; c < CASTS; c++) {
        struct cast cast = casts[c];
        struct parley_sim *sim = play(&cast, 5);
        const uint32_t sides[] = {0, 1, 1, 0};
        scene_train(sim, NODES);
        server_of_all(sim, NODES);
        parley_sim_partition(sim, sides);
        scene_run(sim, 40 * SECOND);
        uint32_t server = 0;
        cr_assert_eq(servers(sim, NODES, &server), 2);
        parley_sim_heal(sim);
        scene_run(sim, 5 * SECOND);
        server = server_of_all(sim, NODES);
        for (uint32_t i = 0; i < NODES; i++)
            cr_assert(i == server || server_of(sim->hosts[i].node)->count == 0,
                      "n%u keeps the workers that it had", i);
        scene_steps(sim, NODES, 100);
        scene_agree(sim, NODES, 3);
        parley_sim_free(sim);
    }
}

Test(server_troubles, who_can_not_be_heard_is_not_waited_for)
{
    /* What n3 sends does not reach n0, who serves; others say that it lives. */
    for (int c = 0; c < CASTS; c++) {
        struct cast cast = casts[c];
        struct parley_sim *sim = play(&cast, 6);
        scene_train(sim, NODES);
        cr_assert_eq(server_of_all(sim, NODES), 0);
        parley_sim_block(sim, 3, 0);
        scene_run(sim, 15 * SECOND);
        uint64_t before = version_of(sim, 1);
        scene_run(sim, 2 * SECOND);
        cr_assert_gt(version_of(sim, 1), before + 100, "cast %d", c);
        parley_sim_heal(sim);
        scene_run(sim, 20 * SECOND);
        scene_steps(sim, NODES, 100);
        scene_agree(sim, NODES, 3);
        parley_sim_free(sim);
    }
}

static double apart(const float *a, const float *b)
{
    double sum = 0;
    for (int j = 0; j < FLOATS; j++)
        sum += pow((double)a[j] - (double)b[j], 2);
    return sqrt(sum);
}

static bool has_ended(struct parley_sim *sim, void *node)
{
    return scene_view(sim, *(uint32_t *)node).phase > PARLEY_PHASE_STOP;
}

Test(server_troubles, who_never_reached_the_server_does_not_end_with_an_untrained_model)
{
    /* n1 and n2 can never link to n0, who serves; n3 has links to all, and the last model. Nor does
     * it where n0 dies once n3 has that: then none of them serves one that is older. */
    for (int c = 0; c < 2 * CASTS; c++) {
        struct cast cast = casts[c / 2];
        float trained[FLOATS], untrained[FLOATS];
        uint32_t linked = 3;
        struct parley_sim *sim = play(&cast, 3);
        for (uint32_t i = 1; i <= 2; i++) {
            scene_part(sim, 0, i);
        }
        scene_train(sim, NODES);
        cr_assert_eq(server_of_all(sim, NODES), 0);
        scene_run(sim, 40 * SECOND);
        memcpy(trained, parley_sim_vector(sim, linked), sizeof trained);
        memcpy(untrained, parley_sim_vector(sim, 1), sizeof untrained);
        parley_sim_stop(sim, linked, PARLEY_STOP_OPERATOR);
        if (c % 2) {
            scene_until(sim, NODES, has_ended, &linked, 10);
            parley_sim_kill(sim, 0, false);
        }
        scene_until(sim, NODES, parley_sim_agreed, NULL, 90);
        scene_same(sim, NODES);
        double moved = apart(parley_sim_agreed_vector(sim, linked), trained);
        cr_assert_lt(moved, 0.1 * apart(untrained, trained), "cast %d: %g of %g", c, moved,
                     apart(untrained, trained));
        parley_sim_free(sim);
    }
}

Test(server_troubles, who_never_reaches_the_server_is_not_waited_for_to_make_its_steps)
{
    for (int c = 0; c < CASTS; c++) {
        struct cast cast = casts[c];
        cast.steps = 500;
        struct parley_sim *sim = play(&cast, 4);
        scene_part(sim, 0, 3);
        scene_until(sim, NODES, parley_sim_agreed, NULL, 90);
        scene_same(sim, NODES);
        cr_expect_lt(version_of(sim, 3), cast.steps);
        parley_sim_free(sim);
    }
}

/* Three ways of not being heard for a minute: n3 sleeps; all but n0 do; two are cut off, and make
 * more steps each than the others, though fewer in all. */
static void part(struct parley_sim *sim, uint32_t nodes, int way)
{
    const uint32_t sides[] = {0, 1, 1, 0, 0, 0};
    if (way == 2) parley_sim_partition(sim, sides);
    for (uint32_t i = 0; i < nodes; i++) {
        if (way == 2)
            parley_sim_slow(sim, i, sides[i] ? 1 : 1.5);
        else if (i == 3 || (way == 1 && i > 0))
            parley_sim_pause(sim, i);
    }
    scene_run(sim, 60 * SECOND);
    parley_sim_heal(sim);
    for (uint32_t i = 0; i < nodes; i++) {
        parley_sim_resume(sim, i);
        parley_sim_slow(sim, i, 1);
    }
}

Test(server_troubles, who_comes_back_after_a_minute_holds_nobody_up)
{
    /* Proves that nobody waits until the steps of that minute have been made up for. */
    for (int c = 0; c < CASTS; c++) {
        for (int way = 0; way < 3; way++) {
            struct cast cast = casts[c];
            cast.step_us = 20000;
            if (way == 2) cast.nodes = 6;
            struct parley_sim *sim = play(&cast, 8);
            scene_train(sim, cast.nodes);
            server_of_all(sim, cast.nodes);
            part(sim, cast.nodes, way);
            server_of_all(sim, cast.nodes);
            scene_run(sim, 3 * SECOND);
            scene_steps(sim, cast.nodes, 50);
            scene_agree(sim, cast.nodes, 3);
            parley_sim_free(sim);
        }
    }
}

Test(server_troubles, who_has_served_alone_comes_back_as_from_another_server)
{
    /* Proves that what a node computes while it serves names its own reign, and not that of whom it
     * followed before: who serves then would take a gradient of another model, and let it wait for
     * the others to make all the steps that it has made meanwhile. */
    struct cast cast = {.strategy = PARLEY_STRATEGY_PS_SSP, .nodes = NODES, .staleness = 2};
    const uint32_t sides[NODES] = {0, 1, 0, 0};
    struct parley_sim *sim = play(&cast, 9);
    scene_train(sim, NODES);
    cr_assert_eq(server_of_all(sim, NODES), 0);
    scene_run(sim, SECOND); /* n1 has had models of n0 */
    parley_sim_partition(sim, sides);
    for (uint32_t i = 0; i < NODES; i++)
        parley_sim_slow(sim, i, sides[i] ? 1 : 1.5);
    scene_run(sim, 60 * SECOND);
    cr_assert_gt(said_by(sim, 1)->version, said_by(sim, 2)->version + 1000);
    parley_sim_heal(sim);
    cr_assert_eq(server_of_all(sim, NODES), 0);
    scene_steps(sim, NODES, 100);
    parley_sim_free(sim);
}

/* They train, and the one that serves is told to leave. */
static struct parley_sim *server_leaves(struct cast *cast, uint64_t seed, uint32_t *server)
{
    struct parley_sim *sim = play(cast, seed);
    scene_train(sim, NODES);
    *server = server_of_all(sim, NODES);
    scene_run(sim, 500000);
    parley_sim_leave(sim, *server);
    return sim;
}

Test(server_troubles, a_server_that_leaves_hands_its_model_over)
{
    /* Who takes over has every gradient that the one who left had. */
    for (int c = 0; c < CASTS; c++) {
        struct cast cast = casts[c];
        uint32_t server;
        struct parley_sim *sim = server_leaves(&cast, 7, &server);
        int error;
        while (!parley_sim_finished(sim, server, &error))
            cr_assert(parley_sim_step(sim));
        uint64_t held = said_by(sim, server)->holds;
        uint32_t next = server_of_all(sim, NODES);
        cr_assert_geq(said_by(sim, next)->holds, held, "cast %d", c);
        scene_steps(sim, NODES, 100);
        scene_agree(sim, NODES, 3);
        parley_sim_free(sim);
    }
}

Test(server_troubles, a_server_that_leaves_with_a_model_that_is_not_finite_is_gone_soon)
{
    /* Nobody gets that model, however often it is asked for, and the others train on. */
    for (int c = 0; c < CASTS; c++) {
        struct cast cast = casts[c];
        uint32_t server;
        struct parley_sim *sim = server_leaves(&cast, 8, &server);
        parley_sim_spoil(sim, server, NAN);
        scene_run(sim, 10 * SECOND);
        int error;
        cr_assert(parley_sim_finished(sim, server, &error), "cast %d", c);
        scene_steps(sim, NODES, 100);
        scene_agree(sim, NODES, 3);
        parley_sim_free(sim);
    }
}

/* From when n3, a worker, is told to leave until it has ended. */
static uint64_t leave_us(struct parley_sim *sim)
{
    int error;
    uint64_t since_us = parley_sim_now(sim);
    cr_assert_neq(said_by(sim, 3)->follows, said_by(sim, 3)->boot, "n3 serves");
    parley_sim_leave(sim, 3);
    while (!parley_sim_finished(sim, 3, &error))
        cr_assert(parley_sim_step(sim));
    return parley_sim_now(sim) - since_us;
}

Test(server_troubles, a_worker_that_leaves_is_gone_once_its_gradient_is_taken)
{
    /* In any moment of a step that is at most a step later; nobody stops for it, and where each
     * gradient is a step of its own, the last model has all that were made, its own too. */
    for (int c = 0; c < CASTS; c++)
        for (uint64_t moment = 0; moment < 12; moment++) {
            struct cast cast = casts[c];
            struct parley_sim *sim = play(&cast, 20 + moment);
            scene_train(sim, NODES);
            server_of_all(sim, NODES);
            scene_run(sim, 500000 + 1000 * moment);
            uint64_t made = version_of(sim, 3), us = leave_us(sim);
            cr_assert_lt(us, 20000, "cast %d, moment %d: %d us", c, (int)moment, (int)us);
            cr_assert_leq(version_of(sim, 3), made + 1);
            if (moment == 0) scene_steps(sim, NODES, 100);
            scene_agree(sim, NODES, 1);
            made = scene_made(sim, NODES);
            if (cast.strategy != PARLEY_STRATEGY_PS_BSP)
                cr_assert_eq(said_by(sim, 0)->holds, made, "cast %d, moment %d", c, (int)moment);
            parley_sim_free(sim);
        }
}

Test(server_troubles, a_worker_that_has_made_its_steps_leaves_at_once)
{
    /* It asks for the last model only, which comes when n2, far slower, has made its steps, too. */
    for (int c = 2; c < CASTS; c++) {
        struct cast cast = casts[c];
        cast.steps = 50;
        cast.staleness = 50;
        struct parley_sim *sim = play(&cast, 21);
        scene_train(sim, NODES);
        server_of_all(sim, NODES);
        parley_sim_slow(sim, 2, 100);
        scene_run(sim, 2 * SECOND);
        cr_assert_eq(version_of(sim, 3), 50);
        uint64_t us = leave_us(sim);
        cr_assert_lt(us, 2000, "cast %d: %d us", c, (int)us);
        parley_sim_free(sim);
    }
}

Test(server_troubles, a_late_node_takes_the_model_and_works_along)
{
    /* It starts where the slowest is, and nobody stops for it. */
    for (int c = 0; c < CASTS; c++) {
        struct cast cast = casts[c];
        struct parley_sim *sim = play(&cast, 8);
        scene_train(sim, NODES);
        server_of_all(sim, NODES);
        parley_sim_kill(sim, 2, false);
        scene_run(sim, 3 * SECOND);
        parley_sim_start(sim, 2);
        scene_train(sim, NODES);
        server_of_all(sim, NODES);
        scene_steps(sim, NODES, 100);
        scene_agree(sim, NODES, 2);
        parley_sim_free(sim);
    }
}

Test(server_troubles, many_workers_take_no_longer_over_long_lines)
{
    /* Proves that small gradients of any number of workers come in side by side: those of more than
     * eight, one after the other, took 6 ways in place of 2. */
    for (int c = 0; c < CASTS; c++) {
        struct cast cast = casts[c];
        cast.nodes = 20;
        struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 20,
                                                                    .seed = 10,
                                                                    .seeds = 2,
                                                                    .step_us = 1000,
                                                                    .latency_us = 30000,
                                                                    .configure = configure,
                                                                    .arg = &cast});
        scene_train(sim, 20);
        server_of_all(sim, 20);
        uint64_t steps = scene_steps_in(sim, 20, 6 * SECOND);
        cr_assert_gt(steps, 6 * SECOND / (3 * 30000), "%llu", (unsigned long long)steps);
        parley_sim_free(sim);
    }
}

Test(server_troubles, who_serves_makes_no_step_without_those_who_are_about_to_train)
{
    /* Proves that over long lines the first steps are of all: that of ps-bsp is the mean of as many
     * gradients as there are nodes. The server made 29 alone, and 29 steps fewer were made by each
     * of the others. */
    enum { STEPS = 20 };
    struct cast cast = {.strategy = PARLEY_STRATEGY_PS_BSP, .nodes = 8, .steps = STEPS};
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 8,
                                                                .seed = 12,
                                                                .seeds = 2,
                                                                .step_us = 1000,
                                                                .latency_us = 30000,
                                                                .configure = configure,
                                                                .arg = &cast});
    scene_train(sim, 8);
    scene_until(sim, 8, parley_sim_agreed, NULL, 60);
    for (uint32_t i = 0; i < 8; i++) {
        struct parley_view view = scene_view(sim, i);
        cr_assert_eq(view.version, STEPS, "n%u made %llu", i, (unsigned long long)view.version);
    }
    parley_sim_free(sim);
}

static struct parley_sim *play_narrow(struct cast *cast)
{
    /* A model takes 80 ms of the server's line. */
    return scene(&(struct parley_sim_options){.nodes = cast->nodes,
                                              .seed = 11,
                                              .seeds = 2,
                                              .parameters = 25000,
                                              .step_us = 1000,
                                              .latency_us = 1000,
                                              .bandwidth_bytes = 1250000,
                                              .configure = configure,
                                              .arg = cast});
}

Test(server_troubles, models_leave_one_after_the_other_over_a_narrow_line)
{
    /* Proves that of a step of ps-bsp all but one gradient come while models leave: 8 nodes take
     * 8 models' time. Where models left side by side all came at once, and it took 11. */
    struct cast cast = {.strategy = PARLEY_STRATEGY_PS_BSP, .nodes = 8};
    struct parley_sim *sim = play_narrow(&cast);
    scene_train(sim, 8);
    server_of_all(sim, 8);
    scene_run(sim, 3 * SECOND);
    uint64_t steps = scene_steps_in(sim, 8, 40 * SECOND);
    cr_assert_gt(steps, 40 * SECOND / (9 * 80000), "%llu", (unsigned long long)steps);
    parley_sim_free(sim);
}

Test(server_troubles, those_with_narrow_lines_take_their_models_together)
{
    /* Proves that what takes ten times as long over a worker's own line is not waited for: with
     * five such workers a step took 2.2 s where each of them was sent its model after the other. */
    struct cast cast = {.strategy = PARLEY_STRATEGY_PS_BSP, .nodes = 8};
    struct parley_sim *sim = play_narrow(&cast);
    for (uint32_t i = 3; i < 8; i++)
        parley_sim_bandwidth(sim, i, 125000);
    scene_train(sim, 8);
    server_of_all(sim, 8);
    scene_run(sim, 30 * SECOND);
    uint64_t steps = scene_steps_in(sim, 8, 120 * SECOND);
    cr_assert_gt(steps, 60, "%llu", (unsigned long long)steps);
    parley_sim_free(sim);
}

Test(server_troubles, those_who_are_behind_get_their_model_first)
{
    /* Proves that where a narrow line is what all wait for, workers make as many steps each: who
     * was first by name got its model first, time and again. */
    struct cast cast = {.strategy = PARLEY_STRATEGY_PS_ASP, .nodes = 12};
    struct parley_sim *sim = play_narrow(&cast);
    scene_train(sim, 12);
    uint32_t server = server_of_all(sim, 12);
    uint64_t least = UINT64_MAX, most = 0;
    scene_run(sim, 60 * SECOND);
    for (uint32_t i = 0; i < 12; i++) {
        struct parley_view view = scene_view(sim, i);
        if (i == server) continue;
        if (view.version < least) least = view.version;
        if (view.version > most) most = view.version;
    }
    cr_assert_geq(least + 3, most, "%llu and %llu steps", (unsigned long long)least,
                  (unsigned long long)most);
    parley_sim_free(sim);
}

Test(server_troubles, more_workers_than_buffers_take_turns)
{
    /* Fourteen workers, eight places for gradients: all make steps alike. */
    for (int c = 0; c < CASTS; c++) {
        struct cast cast = casts[c];
        cast.nodes = 15;
        cast.narrow = true;
        struct parley_sim *sim = play(&cast, 9);
        scene_train(sim, 15);
        server_of_all(sim, 15);
        scene_steps(sim, 15, 100);
        scene_agree(sim, 15, 3);
        parley_sim_free(sim);
    }
}
