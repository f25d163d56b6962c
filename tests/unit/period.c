/* period.c: how often a node averages: what is written, what follows of it, what steers it. */
#include <criterion/criterion.h>
#include <math.h>

#include "core/rng.h"
#include "kernels/moved.h"
#include "lone.h"
#include "settings/settings.h"

static int parse(struct settings_period *period, const char *text)
{
    char clause[SETTINGS_WHY_BYTES] = "";
    int error = period_parse(period, text, 1000000, clause);
    cr_assert_eq(error != 0, clause[0] != 0);
    return error;
}

Test(period, counts_schedules_and_auto_are_read)
{
    struct settings_period p;
    cr_assert_eq(parse(&p, "8"), 0);
    cr_assert(p.steps == 8 && p.later_count == 0 && !p.steered);
    cr_assert_eq(parse(&p, "1@0%,4@25%,8@50.5%"), 0);
    cr_assert(p.steps == 1 && p.later_count == 2 && p.later[1].steps == 8);
    cr_assert_float_eq(p.later[1].from, 0.505, 1e-12);
    cr_assert_eq(parse(&p, "auto"), 0);
    cr_assert(p.steered && p.steps == 1);
    static const char *const bad[] = {
        "0",        "",          "8@50%",         "1,8",      "1,8@50",   "1,8@100%",  "1,8@0%",
        "1,8@-5%",  "1,8@50%,4", "1,8@50%,4@50%", "1,8@nan%", "1,,8@50%", "auto,8@5%", "1000001",
        "1,8@50%x", "1,8@0x20%", "1,8@ 50%",      "1,8@50%%", "1,8@%",    "1,8@inf%"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_assert_eq(parse(&p, bad[i]), PARLEY_EUSAGE, "%s", bad[i]);
}

Test(period, a_schedule_follows_the_progress_of_the_budget)
{
    struct parley_config config = lone_config();
    config.steps_budget = 1000;
    config.mix_every = 2;
    config.mix_later[0] = (struct parley_period){0.25, 16};
    config.mix_later[1] = (struct parley_period){0.75, 4};
    config.mix_later_count = 2;
    struct lone *lone = lone_new(&config);
    static const struct {
        uint64_t version, steps;
    } rows[] = {{0, 2}, {249, 2}, {250, 16}, {749, 16}, {750, 4}, {1000, 4}};
    lone_start(lone);
    lone->node->training.started = true;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        self_of(lone->node)->version = rows[i].version;
        roster_changed(lone->node->roster, lone->node->self, false);
        cr_assert_eq(period_steps(lone->node), rows[i].steps);
    }
    lone_free(lone);
}

/* Where the period settles if each step draws a pair apart by so many updates; 0: it does not. */
static double settled(double apart)
{
    struct parley_config config = lone_config();
    config.mix_steered = true;
    struct lone *lone = lone_new(&config);
    struct parley_node *node = lone->node;
    struct rng rng = rng_init(1, 1);
    double sum = 0;
    lone_start(lone);
    period_start(node);
    node->training.moved_sq = 4;
    for (int i = 0; i < 2000; i++) {
        double distance = 2 * apart * (double)period_steps(node) * exp(rng_normal(&rng) / 3);
        period_pair(node, distance * distance);
        if (i >= 1000) sum += (double)period_steps(node) / 1000;
    }
    lone_free(lone);
    return sum;
}

Test(period, steering_finds_the_period_of_the_drift_that_is_allowed)
{
    /* The distance to the mean is half of that of a pair: 3 updates of it are allowed. */
    double few = settled(0.5), many = settled(0.05);
    cr_assert(few > 9 && few < 15, "%g", few);
    cr_assert(many > 90 && many < 150, "%g", many);
    cr_assert_float_eq(settled(100), 1, 1e-9);
    cr_assert_lt(settled(1e-9), 256.5);
}

/* The period after one exchange of models so far apart. */
static double period_after(double norm_sq)
{
    struct parley_config config = lone_config();
    config.mix_steered = true;
    struct lone *lone = lone_new(&config);
    lone_start(lone);
    period_start(lone->node);
    lone->node->exchange.period = 16;
    lone->node->training.moved_sq = 4;
    period_pair(lone->node, norm_sq);
    double period = lone->node->exchange.period;
    lone_free(lone);
    return period;
}

Test(period, one_exchange_moves_it_only_so_far_however_far_apart_the_models_are)
{
    /* As with a node that has just come, or one that lies: by a factor of 1.5 at most. */
    cr_assert(period_after(1e12) < 15 && period_after(1e-12) > 17);
    cr_assert_float_eq(period_after(1e12), period_after(1e24), 1e-9);
    cr_assert_float_eq(period_after(1e-12), period_after(1e-24), 1e-9);
    cr_assert(period_after(1e24) > 16 / 1.5 && period_after(1e-24) < 16 * 1.5);
}

Test(period, a_step_that_went_beyond_all_numbers_does_not_stay_in_the_mean)
{
    struct parley_config config = lone_config();
    config.mix_steered = true;
    config.steps_budget = 1000;
    struct lone *lone = lone_new(&config);
    lone_start(lone);
    static const double moved[] = {4, INFINITY, 4, 4};
    for (uint64_t i = 0; i < 4; i++)
        lone_step(lone, (struct parley_event){.type = PARLEY_EVENT_STEPPED,
                                              .stepped = {i + 1, 32 * (i + 1), 1, moved[i], 0}});
    cr_assert_float_eq(lone->node->training.moved_sq, 4, 1e-9);
    lone_free(lone);
}

Test(period, a_sample_tells_how_far_a_step_went)
{
    static float x[100000];
    struct moved moved;
    for (size_t n = 1; n <= 100000; n = n * 3 + 1) {
        double norm_sq = 0;
        struct rng rng = rng_init(n, 2);
        moved_begin(&moved, x, n);
        for (size_t i = 0; i < n; i++) {
            float by = (float)rng_normal(&rng) * 1e-3f;
            x[i] = by; /* it was 0 */
            norm_sq += (double)by * by;
        }
        cr_assert_float_eq(moved_end(&moved, x, n) / norm_sq, 1, n <= 1024 ? 1e-6 : 0.2);
        memset(x, 0, sizeof x);
    }
}
