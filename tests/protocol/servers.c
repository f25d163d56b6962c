/* servers.c: one of the nodes serves the model; it may die, and so may any other. */
#include "servers.h"

Test(servers, all_follow_the_first_by_name_and_end_with_its_model)
{
    /* Of every kind: n0 serves, all make steps, and what it has last is what all agree on. */
    for (int c = 0; c < CASTS; c++) {
        struct cast cast = casts[c];
        struct parley_sim *sim = play(&cast, 1);
        scene_train(sim, NODES);
        cr_assert_eq(server_of_all(sim, NODES), 0);
        scene_steps(sim, NODES, 100);
        scene_agree(sim, NODES, 2);
        cr_assert_eq(memcmp(parley_sim_vector(sim, 0), parley_sim_agreed_vector(sim, 3),
                            FLOATS * sizeof(float)),
                     0);
        struct parley_view view = scene_view(sim, 1);
        cr_assert_eq(view.drift_before, 0, "cast %d settled %g", c, view.drift_before);
        parley_sim_free(sim);
    }
}

Test(servers, of_nodes_that_go_on_from_files_the_furthest_serves)
{
    /* It goes on with the optimizer's count of steps, too, and the budget is of both lives. */
    for (int c = 0; c < CASTS; c++) {
        struct cast cast = casts[c];
        cast.steps = 1500;
        cast.resumed = true;
        struct parley_sim *sim = play(&cast, 1);
        scene_train(sim, NODES);
        cr_assert_eq(server_of_all(sim, NODES), 2, "cast %d", c);
        scene_steps(sim, NODES, 100);
        cr_expect_gt(server_of(sim->hosts[2].node)->merged, 440, "cast %d", c);
        if (cast.strategy == PARLEY_STRATEGY_PS_BSP) /* whose steps are the server's */
            cr_expect_geq(said_by(sim, 0)->version + 20, said_by(sim, 2)->version, "cast %d", c);
        scene_until(sim, NODES, parley_sim_agreed, NULL, 60);
        for (uint32_t i = 0; i < NODES; i++)
            cr_expect_eq(said_by(sim, i)->version, 1500, "n%u of cast %d", i, c);
        parley_sim_free(sim);
    }
}

Test(servers, who_serves_in_place_of_another_begins_with_empty_optimizer_vectors)
{
    /* Those of its file are of a model that it has long left. */
    for (int c = 0; c < CASTS; c++) {
        struct cast cast = casts[c];
        cast.resumed = true;
        struct parley_sim *sim = play(&cast, 1);
        scene_train(sim, NODES);
        cr_assert_eq(server_of_all(sim, NODES), 2, "cast %d", c);
        scene_steps(sim, NODES, 100);
        for (uint32_t i = 0; i < NODES; i++) /* what a checkpoint tells of them */
            cr_expect_eq(server_of(sim->hosts[i].node)->merged == 0, i != 2, "n%u of %d", i, c);
        parley_sim_kill(sim, 2, false);
        uint32_t next = server_of_all(sim, NODES);
        cr_assert_neq(next, 2);
        cr_expect_lt(server_of(sim->hosts[next].node)->merged, 200, "cast %d", c);
        scene_agree(sim, NODES, next);
        parley_sim_free(sim);
    }
}

Test(servers, who_comes_later_with_a_newer_file_serves_and_with_an_older_one_does_not)
{
    /* The model that had been kept was overwritten with that of who had begun with none. */
    uint64_t starts[NODES] = {0, SECOND, 2 * SECOND, 3 * SECOND};
    for (int c = 0; c < CASTS; c++) {
        struct cast cast = casts[c];
        cast.starts = starts;
        struct parley_sim *sim = play(&cast, 1);
        uint32_t alone = 1, two = 2;
        scene_until(sim, 1, one_serves_all, &alone, 60);
        scene_run(sim, 3 * SECOND / 2);
        scene_until(sim, 2, one_serves_all, &two, 60);
        cr_expect_eq(said_by(sim, 0)->follows, said_by(sim, 0)->boot, "cast %d", c);
        cr_expect_eq(server_of(sim->hosts[1].node)->reign, 0, "n1 served in cast %d", c);
        scene_run(sim, 2 * SECOND);
        cr_assert_eq(server_of_all(sim, NODES), 2, "cast %d", c);
        cr_expect_gt(said_by(sim, 0)->holds, 2200, "cast %d", c);
        scene_steps(sim, NODES, 100);
        scene_agree(sim, NODES, 2);
        parley_sim_free(sim);
    }
}

Test(servers, who_was_started_without_its_newer_file_first_serves_once_it_brings_it)
{
    /* What the others count of it by then is little of what its file tells of. */
    uint64_t starts[NODES] = {0};
    for (int c = 0; c < CASTS; c++) {
        struct cast cast = casts[c];
        cast.starts = starts;
        cast.forgets = true;
        struct parley_sim *sim = play(&cast, 1);
        scene_train(sim, NODES);
        scene_run(sim, 2 * SECOND);
        cr_assert_lt(said_by(sim, 0)->holds, 2200, "cast %d", c);
        parley_sim_kill(sim, 2, false);
        scene_run(sim, SECOND / 10);
        cast.forgets = false;
        parley_sim_start(sim, 2);
        scene_run(sim, SECOND);
        cr_expect_eq(server_of_all(sim, NODES), 2, "cast %d", c);
        scene_agree(sim, NODES, 2);
        parley_sim_free(sim);
    }
}

static bool third_serves(struct parley_sim *sim, void *arg)
{
    (void)arg;
    return parley_sim_live(sim, 2) && said_by(sim, 2)->follows == said_by(sim, 2)->boot;
}

Test(servers, who_dies_before_anyone_has_the_model_that_it_brings_brings_it_again)
{
    uint64_t starts[NODES] = {0, 0, SECOND, 0};
    for (int c = 0; c < CASTS; c++) {
        struct cast cast = casts[c];
        cast.starts = starts;
        struct parley_sim *sim = play(&cast, 1);
        scene_until(sim, NODES, third_serves, NULL, 2);
        scene_run(sim, 600);
        parley_sim_kill(sim, 2, false);
        scene_run(sim, 3 * SECOND);
        uint32_t others = 3;
        scene_until(sim, NODES, one_serves_all, &others, 10);
        cr_assert_lt(said_by(sim, 0)->holds, 2200, "cast %d: it was early enough", c);
        parley_sim_start(sim, 2);
        scene_run(sim, SECOND);
        cr_expect_eq(server_of_all(sim, NODES), 2, "cast %d", c);
        scene_agree(sim, NODES, 2);
        parley_sim_free(sim);
    }
}

Test(servers, a_step_of_ps_bsp_is_one_of_the_mean_gradient)
{
    /* 20 steps of four nodes against the same in float64: x -= rate * mean of (x - target). */
    struct cast cast = {.strategy = PARLEY_STRATEGY_PS_BSP, .nodes = NODES, .steps = 20};
    struct parley_sim *sim = play(&cast, 2);
    double x[FLOATS], target[FLOATS] = {0}, gap = 0, norm = 0;
    for (int j = 0; j < FLOATS; j++)
        x[j] = parley_sim_vector(sim, 0) ? (double)parley_sim_vector(sim, 0)[j] : 0;
    float gradient[FLOATS], zero[FLOATS] = {0};
    parley_sim_step(sim);
    for (int j = 0; j < FLOATS; j++)
        x[j] = (double)parley_sim_vector(sim, 0)[j];
    for (uint32_t i = 0; i < NODES; i++) {
        sim->task->gradient(sim->task->self, i, 0, zero, gradient, &(struct trainer_turn){0});
        for (int j = 0; j < FLOATS; j++)
            target[j] -= (double)gradient[j] / NODES;
    }
    scene_until(sim, NODES, parley_sim_agreed, NULL, 60);
    for (int j = 0; j < FLOATS; j++) {
        for (int step = 0; step < 20; step++)
            x[j] -= 0.01 * (x[j] - target[j]);
        gap += pow(x[j] - (double)parley_sim_agreed_vector(sim, 1)[j], 2);
        norm += x[j] * x[j];
    }
    cr_assert_leq(sqrt(gap / norm), 1e-6);
    parley_sim_free(sim);
}

/* ---- Deaths ---------------------------------------------------------------------------------- */

struct strike {
    uint64_t number; /* of the frame or chunk */
    uint8_t type;
    bool arriving, server, done;
};

static void strike(struct parley_sim *sim, const struct parley_sim_frame *frame, void *arg)
{
    struct strike *at = arg;
    if (at->done || frame->type != at->type || frame->arriving != at->arriving ||
        frame->number < at->number)
        return;
    uint32_t server = 0;
    if (servers(sim, NODES, &server) != 1) return;
    uint32_t other = frame->from == server ? frame->to : frame->from;
    at->done = true;
    parley_sim_kill(sim, at->server ? server : other, at->number % 2);
}

/* Whoever dies in whatever moment of a step: the others make steps, by one server, and agree. */
static void kill_in_a_step(bool server)
{
    for (int c = 0; c < CASTS; c++)
        for (uint64_t k = 0; k < 6; k++) {
            struct cast cast = casts[c];
            struct parley_sim *sim = play(&cast, 10 + k);
            scene_train(sim, NODES);
            server_of_all(sim, NODES);
            scene_run(sim, 100000);
            struct strike at = {
                .type = k & 1 ? WIRE_STRATEGY : WIRE_CHUNK, .arriving = k & 2, .server = server};
            at.number = parley_sim_frames(sim, at.type) + 1 + 3 * k;
            parley_sim_on_frame(sim, strike, &at);
            scene_until(sim, NODES, scene_is_set, &at.done, 10);
            scene_run(sim, 12 * SECOND);
            server_of_all(sim, NODES);
            scene_steps(sim, NODES, 100);
            uint32_t who = parley_sim_live(sim, 1) ? 1 : 2;
            scene_agree(sim, NODES, who);
            parley_sim_free(sim);
        }
}

Test(servers, another_takes_over_when_the_server_dies_in_a_step)
{
    /* See above. */
    kill_in_a_step(true);
}

Test(servers, a_step_goes_on_with_who_is_left_when_a_worker_dies)
{
    /* See above. */
    kill_in_a_step(false);
}

Test(servers, a_takeover_loses_at_most_what_came_after_the_newest_copy)
{
    /* ps-bsp: every live worker has all rounds but the last one; so has who takes over. */
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct cast cast = {.strategy = PARLEY_STRATEGY_PS_BSP, .nodes = NODES};
        struct parley_sim *sim = play(&cast, seed);
        scene_train(sim, NODES);
        uint32_t server = server_of_all(sim, NODES);
        scene_run(sim, 500000 + 1900 * seed);
        uint64_t held = said_by(sim, server)->holds;
        parley_sim_kill(sim, server, false);
        uint32_t next = server_of_all(sim, NODES);
        cr_assert_geq(said_by(sim, next)->holds + NODES, held);
        parley_sim_free(sim);
    }
}
