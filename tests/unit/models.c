/* models.c: what the models of a simulated run are worth while it goes. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "run/models.h"

enum { NODES_MAX = 40, SETTLED_US = 1000000 };

/* A model is one number, and as accurate as that is. */
static void evaluate(void *self, uint32_t thread, const float *x, double *accuracy, double *loss)
{
    (void)self;
    (void)thread;
    *accuracy = *loss = x[0];
}

static bool reaches(void *self, const float *x, double accuracy)
{
    (void)self;
    return x[0] >= (float)accuracy;
}

/* Nodes that have begun to train, but for those from `late` on, which are still to start. */
static struct parley_sim *nodes(uint32_t count, uint32_t late, uint32_t threads)
{
    uint64_t starts[NODES_MAX] = {0};
    for (uint32_t i = late; i < count; i++)
        starts[i] = PARLEY_SIM_NEVER;
    struct parley_sim_options options = {.nodes = count,
                                         .parameters = 1,
                                         .start_us = starts,
                                         .step_us = 20000,
                                         .threads = threads,
                                         .unchecked = true};
    struct parley_sim *sim;
    cr_assert_eq(parley_sim_new(&sim, &options), 0);
    sim->own_task.evaluate = evaluate;
    sim->own_task.reaches = reaches;
    cr_assert_eq(parley_sim_run_for(sim, SETTLED_US), 0);
    /* What they have is told apart from here on. */
    for (uint32_t i = 0; i < late; i++)
        sim->hosts[i].vectors[0][0] = (float)i / 64;
    return sim;
}

Test(models, all_that_live_and_train_are_judged_and_averaged)
{
    /* The dead and those who are yet to come are not. */
    struct parley_sim *sim = nodes(6, 5, 2);
    struct models_own own;
    float mean;
    parley_sim_kill(sim, 4, false); /* 0, 1, 2 and 3 are left */
    cr_assert_eq(parley_sim_run_for(sim, 1), 0);
    for (uint32_t i = 0; i < 4; i++)
        sim->hosts[i].vectors[0][0] = (float)i / 64;
    models_own(&own, sim, 1);
    models_mean(sim, &mean);
    cr_expect_eq(own.judged, 4);
    cr_expect_float_eq(own.mean, 1.5 / 64, 1e-9);
    cr_expect_float_eq(own.worst, 0, 1e-9);
    cr_expect_float_eq(own.deviation, sqrt(5.0 / 3) / 64, 1e-9);
    cr_expect_float_eq(mean, 1.5f / 64, 1e-6f);
    parley_sim_free(sim);
}

Test(models, one_alone_has_no_deviation_and_what_has_no_accuracy_none_at_all)
{
    /* NAN is null in what is written. */
    struct parley_sim *sim = nodes(1, 1, 1);
    struct models_own own;
    models_own(&own, sim, 1);
    cr_expect(own.judged == 1 && own.mean == 0 && own.worst == 0 && isnan(own.deviation));
    sim->own_task.reaches = NULL;
    models_own(&own, sim, 1);
    cr_expect(own.judged == 0 && isnan(own.mean) && isnan(own.worst) && isnan(own.deviation));
    parley_sim_free(sim);
}

Test(models, of_many_as_many_are_judged_from_all_over_the_list_by_the_seed_alone)
{
    /* So that a thousand cost no more than sixteen, the same with any number of threads. */
    struct parley_sim *one = nodes(NODES_MAX, NODES_MAX, 1);
    struct parley_sim *three = nodes(NODES_MAX, NODES_MAX, 3);
    struct models_own own, same, other;
    int differ = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        models_own(&own, one, seed);
        models_own(&same, three, seed);
        models_own(&other, one, seed + 100);
        cr_expect_eq(own.judged, MODELS_OWN_MAX);
        cr_expect(own.mean == same.mean && own.worst == same.worst);
        cr_expect_eq(own.deviation, same.deviation);
        differ += own.mean != other.mean;
        /* One of each sixteenth: the mean of their numbers is near that of all, the first is low.
         */
        cr_expect_float_eq(own.mean * 64, (NODES_MAX - 1) / 2.0, 1.5, "%g", own.mean * 64);
        cr_expect_leq(own.worst * 64, 1);
    }
    cr_expect_geq(differ, 10);
    parley_sim_free(one);
    parley_sim_free(three);
}
