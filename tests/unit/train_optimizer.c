/* Optimizers and schedules against a float64 reference. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "core/rng.h"
#include "train/optimizer.h"
#include "train/schedule.h"

#define COUNT 37
#define STEPS 100

static const char *const optimizers[] = {"sgd", "momentum", "nesterov"};
static const char *const schedules[] = {"constant", "step", "cosine"};

static double reference_factor(const char *schedule, double progress)
{
    if (strcmp(schedule, "step") == 0) {
        if (progress >= 0.75) return 1.0 / 100;
        return progress >= 0.5 ? 1.0 / 10 : 1.0;
    }
    if (strcmp(schedule, "cosine") == 0) return pow(cos(progress * acos(-1) / 2), 2);
    return 1;
}

static void reference_step(const char *optimizer, double *x, double *m, const float *g, double rate,
                           double beta)
{
    for (int i = 0; i < COUNT; i++) {
        double move = (double)g[i];

        if (strcmp(optimizer, "sgd") != 0) {
            m[i] = beta * m[i] + (double)g[i];
            move = strcmp(optimizer, "nesterov") == 0 ? (double)g[i] + beta * m[i] : m[i];
        }
        x[i] -= rate * move;
    }
}

/* What gradient_backward does with a sink, in two ranges. g: [COUNT]. */
static void pour(const struct gradient_sink *sink, const float *g)
{
    static const size_t cuts[] = {0, 20, COUNT};

    for (int r = 0; r < 2; r++) {
        for (size_t i = cuts[r]; i < cuts[r + 1]; i++)
            sink->into[i] = (sink->keep == 0 ? 0 : sink->keep * sink->into[i]) + sink->scale * g[i];
        if (sink->finish != NULL) sink->finish(sink->context, cuts[r], cuts[r + 1] - cuts[r]);
    }
}

/* || x - reference || / || reference || after STEPS steps. */
static double trial(const char *optimizer, const char *schedule, uint64_t seed)
{
    struct rng rng = rng_init(seed, 3);
    enum optimizer kind;
    enum schedule plan;
    float x[COUNT], m[COUNT] = {0}, gradient[COUNT], *state[] = {m};
    double x64[COUNT], m64[COUNT] = {0}, error = 0, norm = 0;
    char why[200];

    cr_assert_eq(optimizer_parse(&kind, optimizer, why, sizeof why), 0);
    cr_assert_eq(schedule_parse(&plan, schedule, why, sizeof why), 0);
    for (int i = 0; i < COUNT; i++)
        x64[i] = (double)(x[i] = (float)rng_normal(&rng));
    for (int s = 0; s < STEPS; s++) {
        double progress = (double)s / STEPS;
        float g[COUNT];
        struct optimizer_step step = {kind, x, state, gradient, 0, 0.9f, 1};
        struct gradient_sink sink;

        step.rate = (float)(0.05 * schedule_factor(plan, progress));
        for (int i = 0; i < COUNT; i++)
            g[i] = (float)rng_normal(&rng);
        sink = optimizer_sink(&step);
        pour(&sink, g);
        reference_step(optimizer, x64, m64, g, 0.05 * reference_factor(schedule, progress), 0.9);
    }
    for (int i = 0; i < COUNT; i++) {
        error += ((double)x[i] - x64[i]) * ((double)x[i] - x64[i]);
        norm += x64[i] * x64[i];
    }
    return sqrt(error / norm);
}

Test(train_optimizer, each_optimizer_under_each_schedule_follows_float64_for_100_steps)
{
    /* Proves the update equations and their order. */
    for (size_t o = 0; o < 3; o++) {
        for (size_t s = 0; s < 3; s++) {
            for (uint64_t seed = 0; seed < 5; seed++) {
                double error = trial(optimizers[o], schedules[s], seed);

                cr_expect_leq(error, 1e-6, "%s, %s, seed %d: %g", optimizers[o], schedules[s],
                              (int)seed, error);
            }
        }
    }
}

Test(train_optimizer, an_optimizer_says_what_vectors_it_needs)
{
    /* Proves the counts by which callers allocate. */
    cr_expect_eq(optimizer_vectors(OPTIMIZER_SGD), 0);
    cr_expect_eq(optimizer_vectors(OPTIMIZER_MOMENTUM), 1);
    cr_expect_eq(optimizer_vectors(OPTIMIZER_NESTEROV), 1);
    cr_expect(!optimizer_wants_gradient(OPTIMIZER_MOMENTUM));
    cr_expect(optimizer_wants_gradient(OPTIMIZER_NESTEROV));
}

Test(train_optimizer, unknown_names_are_refused_with_the_valid_ones)
{
    /* Proves that a typo gets a line that names it. */
    enum optimizer kind;
    enum schedule plan;
    char why[200];

    cr_expect_eq(optimizer_parse(&kind, "momentun", why, sizeof why), PARLEY_EUSAGE);
    cr_expect_str_eq(why, "optimizer 'momentun' is unknown; valid: sgd, momentum, nesterov");
    cr_expect_eq(schedule_parse(&plan, "", why, sizeof why), PARLEY_EUSAGE);
    cr_expect_str_eq(why, "schedule '' is unknown; valid: constant, step, cosine");
}

Test(train_schedule, factors_stay_in_range_and_fall_over_the_budget)
{
    /* Proves the ends, and that progress from elsewhere (past the end, NaN) is harmless. */
    for (int s = SCHEDULE_CONSTANT; s <= SCHEDULE_COSINE; s++) {
        enum schedule plan = (enum schedule)s;
        double last = 1;

        cr_expect_eq(schedule_factor(plan, 0), 1);
        cr_expect_eq(schedule_factor(plan, -1), 1);
        cr_expect_eq(schedule_factor(plan, (double)NAN), 1);
        cr_expect_eq(schedule_factor(plan, 7), schedule_factor(plan, 1));
        for (int p = 0; p <= 1000; p++) {
            double factor = schedule_factor(plan, p / 1000.0);

            cr_expect(factor >= 0 && factor <= last);
            last = factor;
        }
    }
    cr_expect_eq(schedule_factor(SCHEDULE_COSINE, 1), 0);
    cr_expect_eq(schedule_factor(SCHEDULE_STEP, 0.5), 0.1);
    cr_expect_eq(schedule_factor(SCHEDULE_STEP, 1), 0.01);
}
