/* aside.c: rounds of nodes of which some do not reach each other: one of them stands aside. */
#include "core/state.h"
#include "core/strategy/ring/ring.h"
#include "ring.h"

/* Its model changes, by its own steps or those of others. */
static void expect_moves(struct parley_sim *sim, uint32_t node)
{
    float before = parley_sim_vector(sim, node)[0];
    scene_run(sim, 3 * SECOND);
    cr_expect_neq(parley_sim_vector(sim, node)[0], before, "n%u", node);
}

struct standing {
    bool told[5];          /* which of them have told people that a round does not go on */
    uint32_t aside, again; /* how often somebody has stood aside, and came back */
    int last, leader;      /* of who stood aside last */
};

static void watch_standing(const char *line, void *watched)
{
    struct standing *s = watched;
    const char *round = strstr(line, " log round "), *aside = strstr(line, " log stands aside");
    if (round && (strstr(line, "stands still") || strstr(line, "waits for")))
        s->told[round[-1] - '0'] = true;
    s->again += strstr(line, " log takes part in the rounds again") != NULL;
    if (!aside) return;
    s->aside++;
    s->last = aside[-1] - '0';
    s->leader = strstr(line, " from n")[7] - '0';
}

static const enum parley_strategy on_ring[] = {PARLEY_STRATEGY_ALLREDUCE, PARLEY_STRATEGY_LOCAL_SGD,
                                               PARLEY_STRATEGY_DILOCO};

/* For scenes in which some do not reach each other. */
static struct ring_scene walled(enum parley_strategy strategy, uint32_t nodes, uint64_t seed)
{
    return (struct ring_scene){.strategy = strategy,
                               .nodes = nodes,
                               .seed = seed,
                               .latency_us = 200,
                               .vectors = {.parameters = 64}};
}

/* Who wait for each other say so before one of them gives up. */
static struct parley_sim *begin_parted(struct ring_scene *scene, struct standing *standing,
                                       const uint32_t *pairs, uint32_t count)
{
    struct parley_sim *sim = begin(scene);
    scene_train(sim, scene->nodes);
    scene_run(sim, SECOND);
    for (uint32_t i = 0; i < count; i++)
        scene_part(sim, pairs[2 * i], pairs[2 * i + 1]);
    parley_sim_on_line(sim, PARLEY_LOG_INFO, watch_standing, standing);
    scene_run(sim, 20 * SECOND);
    for (uint32_t i = 0; i < scene->nodes; i++)
        cr_expect(standing->told[i], "n%u", i);
    scene_run(sim, 25 * SECOND);
    return sim;
}

Test(aside, of_two_that_cannot_reach_each_other_one_stands_aside_until_they_do)
{
    /* As behind two NATs: a round of both would wait for ever, and all with it. */
    for (size_t k = 0; k < sizeof on_ring / sizeof *on_ring; k++) {
        struct standing standing = {0};
        struct ring_scene scene = walled(on_ring[k], 4, 5);
        struct parley_sim *sim = begin_parted(&scene, &standing, (uint32_t[]){0, 2}, 1);
        cr_expect(standing.aside == 1 && standing.last == 2, "%d: %u, n%d", (int)k, standing.aside,
                  standing.last);
        for (uint32_t i = 0; i < 4; i++)
            expect_moves(sim, i);
        cr_expect_eq(standing.again, 0);
        parley_sim_heal(sim);
        scene_run(sim, 10 * SECOND);
        cr_expect(standing.aside == 1 && standing.again == 1, "%u, %u", standing.aside,
                  standing.again);
        expect_moves(sim, 2);
        end(sim, &scene);
    }
}

Test(aside, who_has_never_heard_of_the_one_on_its_left_stands_aside_too)
{
    /* It has nothing in hand: it waits for a first word before it makes anything. */
    for (size_t k = 0; k < sizeof on_ring / sizeof *on_ring; k++) {
        struct standing standing = {0};
        struct ring_scene scene = walled(on_ring[k], 3, 11);
        struct parley_sim *sim = begin(&scene);
        scene_part(sim, 1, 2);
        parley_sim_on_line(sim, PARLEY_LOG_INFO, watch_standing, &standing);
        scene_run(sim, 60 * SECOND);
        cr_assert(standing.aside == 1 && standing.last == 2, "%d: %u", (int)k, standing.aside);
        expect_moves(sim, 0);
        expect_moves(sim, 2);
        end(sim, &scene);
    }
}

Test(aside, who_stands_aside_takes_the_sums_from_another_if_the_first_dies)
{
    for (size_t k = 0; k < sizeof on_ring / sizeof *on_ring; k++) {
        struct standing standing = {0};
        struct ring_scene scene = walled(on_ring[k], 5, 6);
        struct parley_sim *sim = begin_parted(&scene, &standing, (uint32_t[]){0, 4}, 1);
        cr_assert(standing.aside == 1 && standing.last == 4, "%d: %u", (int)k, standing.aside);
        parley_sim_kill(sim, (uint32_t)standing.leader, false);
        scene_run(sim, 10 * SECOND);
        expect_moves(sim, 4);
        end(sim, &scene);
    }
}

Test(aside, who_stands_aside_is_not_waited_for_to_make_its_steps)
{
    struct standing standing = {0};
    struct ring_scene scene = walled(PARLEY_STRATEGY_LOCAL_SGD, 3, 9);
    scene.steps = 3000;
    struct parley_sim *sim = begin_parted(&scene, &standing, (uint32_t[]){0, 1}, 1);
    cr_expect(standing.aside == 1 && standing.last == 1);
    end(sim, &scene);
}

Test(aside, who_stands_aside_has_the_last_round_too)
{
    /* Proves that it does not end with what it has when it hears of the end before it hears of the
     * round that the others have completed since; and that a sum that takes a second to be asked
     * for comes. */
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct standing standing = {0};
        struct ring_scene scene = walled(PARLEY_STRATEGY_ALLREDUCE, 4, seed);
        struct parley_sim *sim = begin_parted(&scene, &standing, (uint32_t[]){0, 1}, 1);
        cr_assert(standing.aside == 1 && standing.last == 1);
        parley_sim_latency(sim, (uint32_t)standing.leader, SECOND / 2);
        scene_run(sim, 20 * SECOND + seed * 77777);
        end(sim, &scene);
    }
}

Test(aside, who_stands_aside_is_in_nobodys_way)
{
    /* n2 can't reach n1, which can't reach n0: one of the two aside is enough. */
    struct standing standing = {0};
    struct ring_scene scene = walled(PARLEY_STRATEGY_ALLREDUCE, 5, 7);
    struct parley_sim *sim = begin_parted(&scene, &standing, (uint32_t[]){0, 1, 1, 2, 3, 4}, 3);
    cr_expect_eq(standing.aside - standing.again, 2, "%u, %u", standing.aside, standing.again);
    for (uint32_t i = 0; i < 5; i++)
        expect_moves(sim, i);
    end(sim, &scene);
}

static bool stands_aside(struct parley_sim *sim, void *standing)
{
    (void)sim;
    return ((struct standing *)standing)->aside > 0;
}

/* It is about to take the model of the one on its left, which is rounds ahead. */
static bool follows(struct parley_sim *sim, void *who)
{
    const struct parley_node *node = sim->hosts[*(uint32_t *)who].node;
    return ((const struct ring *)node->strategy_state)->stage == RING_FOLLOWING;
}

Test(aside, who_goes_after_one_that_it_can_no_longer_reach_stands_aside)
{
    /* Proves that it does not ask for that model for ever. n1 was cut off, and made its rounds
     * alone and faster. */
    struct standing standing = {0};
    struct ring_scene scene = walled(PARLEY_STRATEGY_ALLREDUCE, 4, 5);
    scene.latency_us = 20000;
    struct parley_sim *sim = begin(&scene);
    scene_train(sim, 4);
    for (uint32_t i = 0; i < 4; i++)
        if (i != 1) scene_part(sim, 1, i);
    scene_run(sim, 15 * SECOND);
    parley_sim_heal(sim);
    scene_until(sim, 4, follows, &(uint32_t){2}, 30);
    scene_part(sim, 1, 2);
    parley_sim_on_line(sim, PARLEY_LOG_WARN, watch_standing, &standing);
    scene_until(sim, 4, stands_aside, &standing, 60);
    cr_expect_eq(standing.last, 2);
    for (uint32_t i = 0; i < 4; i++)
        expect_moves(sim, i);
    end(sim, &scene);
}

Test(aside, among_many_a_dead_link_is_found_by_who_waits_for_what_it_brings)
{
    /* Proves that it is not the next probe, a minute on, that finds it. */
    struct standing standing = {0};
    struct ring_scene scene = walled(PARLEY_STRATEGY_ALLREDUCE, 24, 7);
    scene.compute_us = 200000;
    struct parley_sim *sim = begin(&scene);
    scene_train(sim, scene.nodes);
    scene_run(sim, SECOND);
    scene_part(sim, 20, 21);
    parley_sim_on_line(sim, PARLEY_LOG_WARN, watch_standing, &standing);
    scene_until(sim, scene.nodes, stands_aside, &standing, 40);
    parley_sim_free(sim);
}
