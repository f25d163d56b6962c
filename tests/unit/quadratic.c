/* quadratic.c: the simulator's model of D numbers, for runs in which only the protocol matters. */
#include <criterion/criterion.h>

#include <string.h>

#include "settings/settings.h"
#include "world/task.h"

enum { FLOATS = 4 };

static struct sim_task task_of(struct settings *settings)
{
    char *argv[] = {"parley", "sim", "--model", "quadratic:4", "--lr", "0.1", "--seed", "3", NULL};
    char why[SETTINGS_WHY_BYTES];
    struct sim_task task;
    settings_init(settings);
    cr_assert_eq(settings_flags(settings, 8, argv, why), 0, "%s", why);
    cr_assert_eq(settings_finish(settings, why), 0, "%s", why);
    cr_assert_eq(sim_quadratic_init(&task, settings, why, sizeof why), 0, "%s", why);
    cr_assert_eq(task.parameters, FLOATS);
    return task;
}

Test(quadratic, a_rate_is_divided_by_the_weight_of_the_model)
{
    /* Proves that push-sum's steps are eta / w, in both forms of a step; and 0 is no weight. */
    struct settings settings;
    struct sim_task task = task_of(&settings);
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
    sim_quadratic_close(&task);
    settings_close(&settings);
}
