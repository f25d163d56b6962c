/* following.c: a momentum that follows averaging gets its part of all that averaging adds. */
#include "scene.h"

enum { NODES = 5, FLOATS = 40 };

static void start(void *self, uint32_t node, float *const *vectors)
{
    struct rng rng = rng_init(node, 1);
    (void)self;
    for (int j = 0; j < FLOATS; j++) {
        vectors[0][j] = (float)rng_normal(&rng);
        vectors[1][j] = 0;
    }
}

static double step(void *self, uint32_t node, uint32_t thread, const float *from,
                   float *const *vectors, const struct trainer_turn *turn)
{
    uint64_t *told = self;
    (void)thread;
    if (from != vectors[0]) memcpy(vectors[0], from, FLOATS * sizeof *from);
    told[node] = turn->averaged;
    return 0;
}

static float follow(void *self, uint32_t node)
{
    (void)self;
    return -(float)(node + 1);
}

/* With no gradient, x has moved by deltas only: the momentum is the factor times that. */
static void follow_with(uint32_t threads, float momenta[NODES][FLOATS])
{
    uint64_t told[NODES] = {0};
    struct sim_task task = {.self = told,
                            .parameters = FLOATS,
                            .vectors = 2,
                            .batch = 1,
                            .model_digest = 1,
                            .start = start,
                            .step = step,
                            .follow = follow};
    struct sim_options options = {.base = {.nodes = NODES,
                                           .parameters = FLOATS,
                                           .vectors = 2,
                                           .seed = 1,
                                           .seeds = 1,
                                           .threads = threads,
                                           .configure = scene_wait_for,
                                           .arg = (void *)(uintptr_t)(NODES - 1)},
                                  .compute = {.low_us = 1000, .high_us = 1000},
                                  .latency = {.low_us = 100, .high_us = 100}};
    struct parley_sim *sim;
    cr_assert_eq(sim_new(&sim, &options, &task), 0);
    scene_train(sim, NODES);
    scene_run(sim, 5 * SECOND);
    for (uint32_t i = 0; i < NODES; i++) {
        float first[FLOATS], zero[FLOATS], *both[2] = {first, zero};
        const float *x = parley_sim_vector(sim, i); /* waits for what is being computed */
        memcpy(momenta[i], sim->hosts[i].vectors[1], sizeof momenta[i]);
        start(NULL, i, both);
        struct parley_view view = scene_view(sim, i);
        cr_expect_geq(told[i] + 2, view.ledger.applied, "n%u is told of its averagings", i);
        cr_expect_leq(told[i], view.ledger.applied);
        cr_expect_gt(told[i], 20);
        for (int j = 0; j < FLOATS; j++) {
            double moved = (double)x[j] - (double)first[j];
            double expected = -(double)(i + 1) * moved, got = (double)momenta[i][j];
            cr_expect_float_eq(got, expected, 1e-4, "n%u: %g instead of %g", i, got, expected);
        }
    }
    parley_sim_free(sim);
}

Test(following, each_delta_goes_to_the_momentum_too_by_the_factor_of_the_node)
{
    static float one[NODES][FLOATS], four[NODES][FLOATS];
    follow_with(1, one);
    follow_with(4, four);
    cr_expect_eq(memcmp(one, four, sizeof one), 0, "whatever the number of threads");
}
