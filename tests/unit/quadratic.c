/* quadratic.c: the simulator's model of D numbers, for runs in which only the protocol matters. */
#include <criterion/criterion.h>

#include <string.h>

#include "run/quadratic.h"
#include "settings/settings.h"

enum { FLOATS = 4 };

static struct sim_task scheduled_task(struct settings *settings, char *model, char *rate,
                                      char *schedule)
{
    char *argv[] = {"parley", "sim", "--model",    model,    "--lr", rate,
                    "--seed", "3",   "--schedule", schedule, NULL};
    char why[SETTINGS_WHY_BYTES];
    struct sim_task task;
    settings_init(settings);
    cr_assert_eq(settings_flags(settings, 10, argv, why), 0, "%s", why);
    cr_assert_eq(settings_finish(settings, why), 0, "%s", why);
    cr_assert_eq(sim_quadratic_init(&task, settings, why, sizeof why), 0, "%s", why);
    cr_assert_eq(task.parameters, FLOATS);
    return task;
}

static struct sim_task task_of(struct settings *settings, char *model, char *rate)
{
    return scheduled_task(settings, model, rate, "constant");
}

Test(quadratic, a_rate_is_divided_by_the_weight_of_the_model)
{
    /* Proves that push-sum's steps are eta / w, in both forms of a step; and 0 is no weight. */
    struct settings settings;
    struct sim_task task = task_of(&settings, "quadratic:4", "0.1");
    float x[2][FLOATS] = {{0}}, from[FLOATS] = {0}, gradient[FLOATS];
    for (int halves = 0; halves < 2; halves++) {
        for (int i = 0; i < 2; i++) {
            struct trainer_turn turn = {.live = 1, .weight = i ? 2 : 0};
            float *vector = x[i];
            memset(vector, 0, sizeof x[i]);
            if (halves)
                task.apply(task.self, 0, 0, &vector, gradient, 1, &turn);
            else
                task.step(task.self, 0, 0, from, &vector, &turn);
        }
        for (int j = 0; j < FLOATS; j++) {
            cr_expect_neq(x[0][j], 0);
            cr_expect_float_eq(x[1][j], x[0][j] / 2, 1e-7);
        }
        task.gradient(task.self, 0, 0, from, gradient, &(struct trainer_turn){.live = 1});
    }
    sim_task_close(&task);
    settings_close(&settings);
}

Test(quadratic, nodes_start_alike_or_apart_and_a_rate_of_0_moves_nothing)
{
    static char *const models[] = {"quadratic:4", "quadratic:4,common", "quadratic:4,apart"};
    for (int m = 0; m < 3; m++) {
        struct settings settings;
        struct sim_task task = task_of(&settings, models[m], "0");
        bool apart = m == 2;
        float x[2][FLOATS], from[FLOATS];
        struct trainer_turn turn = {.live = 2};
        for (uint32_t node = 0; node < 2; node++) {
            float *vector = x[node];
            task.start(task.self, node, &vector);
            memcpy(from, vector, sizeof from);
            task.step(task.self, node, 0, from, &vector, &turn);
            cr_expect_arr_eq(vector, from, sizeof from);
        }
        cr_expect_eq(task.alike, !apart);
        cr_expect_eq(memcmp(x[0], x[1], sizeof x[0]) == 0, !apart, "%s", models[m]);
        sim_task_close(&task);
        settings_close(&settings);
    }
}

Test(quadratic, a_step_is_the_gradient_by_the_rate_that_the_schedule_says)
{
    /* Proves that runs of only the protocol go by --schedule as others do, in both forms of a step,
     * that a stale gradient counts as little as it is told to, and that both tell one loss. */
    struct settings settings;
    struct sim_task task = scheduled_task(&settings, "quadratic:4", "0.1", "linear");
    float x[FLOATS], from[FLOATS] = {0}, gradient[FLOATS], *vector = x;
    struct trainer_turn turn = {.live = 1, .progress = 0.75};
    double loss = task.gradient(task.self, 0, 0, from, gradient, &turn);
    cr_expect_float_eq(task.step(task.self, 0, 0, from, &vector, &turn), loss, 1e-12);
    for (int j = 0; j < FLOATS; j++)
        cr_expect_float_eq(x[j], -0.025f * gradient[j], 1e-7);
    memset(x, 0, sizeof x);
    task.apply(task.self, 0, 0, &vector, gradient, 0.5f, &turn);
    for (int j = 0; j < FLOATS; j++)
        cr_expect_float_eq(x[j], -0.0125f * gradient[j], 1e-7);
    sim_task_close(&task);
    settings_close(&settings);
}

Test(quadratic, nodes_have_one_optimum_or_each_its_own)
{
    /* Proves that "common" is what the nodes' losses are, and that nothing else makes them so. */
    static char *const models[] = {"quadratic:4", "quadratic:4,common", "quadratic:4,apart"};
    for (int m = 0; m < 3; m++) {
        struct settings settings;
        struct sim_task task = task_of(&settings, models[m], "0.1");
        float from[FLOATS] = {0}, gradients[2][FLOATS];
        for (uint32_t node = 0; node < 2; node++)
            task.gradient(task.self, node, 0, from, gradients[node],
                          &(struct trainer_turn){.live = 2});
        bool alike = memcmp(gradients[0], gradients[1], sizeof gradients[0]) == 0;
        cr_expect_eq(alike, m == 1, "%s", models[m]);
        sim_task_close(&task);
        settings_close(&settings);
    }
}
