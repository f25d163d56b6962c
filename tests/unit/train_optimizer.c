/* Optimizers, clipping and schedules against a float64 reference, written from the papers. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "core/rng.h"
#include "train/optimizer.h"
#include "train/schedule.h"

#define COUNT 37
#define STEPS 100

static const struct {
    const char *name;
    double rate;
    uint32_t vectors;
    bool wants_gradient;
} optimizers[] = {
    {"gd", 0.05, 0, true},       {"sgd", 0.05, 0, false},   {"momentum", 0.02, 1, false},
    {"nesterov", 0.02, 1, true}, {"adagrad", 0.1, 1, true}, {"rmsprop", 0.01, 1, true},
    {"adam", 0.02, 2, true},     {"adamw", 0.02, 2, true},
};
static const char *const schedules[] = {"constant", "step",   "exponential",
                                        "cosine",   "linear", "inverse-sqrt"};
static const struct optimizer_numbers numbers[] = {
    {.momentum = 0.9, .weight_decay = (double)NAN},
    {.momentum = 0.8, .beta2 = 0.95, .epsilon = 1e-3},
    {.momentum = 0.9, .weight_decay = 0.05},
    {.momentum = 0.9, .clip_norm = 0.7},
    {.momentum = 0.9, .clip_value = 0.2},
    {.momentum = 0.9, .weight_decay = 0.05, .clip_norm = 0.7, .clip_value = 0.2},
};

enum { OPTIMIZERS = sizeof optimizers / sizeof optimizers[0] };
enum { SCHEDULES = sizeof schedules / sizeof schedules[0] };
enum { NUMBERS = sizeof numbers / sizeof numbers[0] };

/* ---- Three problems -------------------------------------------------------------------------- */

/* A bowl whose axes differ a hundredfold, about a point off 0. */
static void bowl(const double *x, double *g)
{
    for (int i = 0; i < COUNT; i++)
        g[i] = pow(100, (double)i / (COUNT - 1)) / 10 * (x[i] - sin(i + 1));
}

/* Logistic regression on 60 points that no plane separates; x: weights, the last is the bias. */
static void logistic(const double *x, double *g)
{
    memset(g, 0, COUNT * sizeof *g);
    for (int p = 0; p < 60; p++) {
        double a[COUNT], z = 0;
        for (int i = 0; i < COUNT; i++)
            z += x[i] * (a[i] = i == COUNT - 1 ? 1 : cos(p / 2 * 7.0 + i * i * 0.3));
        double d = 1 / (1 + exp(-z)) - (p % 3 == 0);
        for (int i = 0; i < COUNT; i++)
            g[i] += a[i] * d / 60;
    }
}

/* A network of 4 inputs, 6 tanh units (4 weights and a bias each), one output of 6 weights and a
 * bias, squared loss on 16 points: not convex. */
static void network(const double *x, double *g)
{
    memset(g, 0, COUNT * sizeof *g);
    for (int p = 0; p < 16; p++) {
        double in[4], h[6], y = x[36], d;
        for (int i = 0; i < 4; i++)
            in[i] = sin(1.7 * p + 2.3 * i);
        for (int j = 0; j < 6; j++) {
            double z = x[24 + j];
            for (int i = 0; i < 4; i++)
                z += in[i] * x[4 * j + i];
            h[j] = tanh(z);
            y += h[j] * x[30 + j];
        }
        d = (y - cos(3.1 * p)) / 16;
        g[36] += d;
        for (int j = 0; j < 6; j++) {
            double back = d * x[30 + j] * (1 - h[j] * h[j]);
            g[30 + j] += d * h[j];
            g[24 + j] += back;
            for (int i = 0; i < 4; i++)
                g[4 * j + i] += back * in[i];
        }
    }
}

typedef void problem(const double *x, double *g);
static problem *const problems[] = {bowl, logistic, network};
static const char *const problem_names[] = {"bowl", "logistic", "network"};

/* ---- The reference --------------------------------------------------------------------------- */

static double shape(const char *schedule, double p, double w)
{
    double q = (p - w) / (1 - w);
    if (strcmp(schedule, "step") == 0) return q >= 0.75 ? 0.01 : q >= 0.5 ? 0.1 : 1;
    if (strcmp(schedule, "exponential") == 0) return pow(10, -2 * q);
    if (strcmp(schedule, "cosine") == 0) return pow(cos(q * acos(-1) / 2), 2);
    if (strcmp(schedule, "linear") == 0) return 1 - q;
    if (strcmp(schedule, "inverse-sqrt") == 0)
        return w > 0 ? 1 / sqrt(p / w) : 1 / sqrt(1 + p / 0.01);
    return 1;
}

static double reference_factor(const char *schedule, double p, double w)
{
    return p < w ? p / w : shape(schedule, p, w);
}

struct reference {
    double x[COUNT], m[COUNT], v[COUNT];
};

static void reference_clip(double *g, const struct optimizer_numbers *n)
{
    double square = 0;
    for (int i = 0; i < COUNT; i++) {
        if (n->clip_value > 0) g[i] = fmax(-n->clip_value, fmin(n->clip_value, g[i]));
        square += g[i] * g[i];
    }
    for (int i = 0; i < COUNT && n->clip_norm > 0; i++)
        g[i] *= fmin(1, n->clip_norm / sqrt(square));
}

static void reference_step(struct reference *r, const char *name, const struct optimizer_numbers *n,
                           double *g, double rate, int t)
{
    bool w = strcmp(name, "adamw") == 0, rms = strcmp(name, "rmsprop") == 0;
    bool adam = w || strcmp(name, "adam") == 0, plain = strstr("gd sgd", name) != NULL;
    double beta2 = n->beta2 > 0 ? n->beta2 : rms ? 0.99 : 0.999;
    double epsilon = n->epsilon > 0 ? n->epsilon : 1e-8;
    double decay = !isnan(n->weight_decay) ? n->weight_decay : w ? 0.01 : 0;

    reference_clip(g, n);
    for (int i = 0; i < COUNT; i++) {
        double *x = &r->x[i], *m = &r->m[i], *v = &r->v[i];
        if (w)
            *x *= 1 - rate * decay;
        else
            g[i] += decay * *x;
        if (plain) {
            *x -= rate * g[i];
        } else if (adam) {
            *m = n->momentum * *m + (1 - n->momentum) * g[i];
            *v = beta2 * *v + (1 - beta2) * g[i] * g[i];
            double m_hat = *m / (1 - pow(n->momentum, t));
            double v_hat = *v / (1 - pow(beta2, t));
            *x -= rate * m_hat / (sqrt(v_hat) + epsilon);
        } else if (rms) {
            *v = beta2 * *v + (1 - beta2) * g[i] * g[i];
            *x -= rate * g[i] / (sqrt(*v) + epsilon);
        } else if (strcmp(name, "adagrad") == 0) {
            *v += g[i] * g[i];
            *x -= rate * g[i] / (sqrt(*v) + epsilon);
        } else {
            *m = n->momentum * *m + g[i];
            *x -= rate * (strcmp(name, "nesterov") == 0 ? g[i] + n->momentum * *m : *m);
        }
    }
}

/* ---- What is tested -------------------------------------------------------------------------- */

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

struct tested {
    struct optimizer optimizer;
    float x[COUNT], gradient[COUNT], state[2][COUNT];
};

static void tested_step(struct tested *tested, problem *gradient, double rate, uint64_t steps)
{
    float *const state[] = {tested->state[0], tested->state[1]};
    float g[COUNT];
    double x[COUNT], g64[COUNT];
    struct optimizer_step step = {.optimizer = &tested->optimizer,
                                  .from = tested->x,
                                  .x = tested->x,
                                  .count = COUNT,
                                  .state = state,
                                  .gradient = tested->gradient,
                                  .rate = rate,
                                  .gradient_factor = 0.25,
                                  .steps = steps};
    struct gradient_sink sink;

    for (int i = 0; i < COUNT; i++)
        x[i] = (double)tested->x[i];
    gradient(x, g64);
    for (int i = 0; i < COUNT; i++)
        g[i] = 4 * (float)g64[i];
    sink = optimizer_sink(&step);
    pour(&sink, g);
    optimizer_end(&step);
}

static void make(struct tested *tested, struct reference *reference, const char *name,
                 const struct optimizer_numbers *n, uint64_t seed)
{
    struct rng rng = rng_init(seed, 3);
    char why[200] = "";

    *tested = (struct tested){0};
    *reference = (struct reference){0};
    cr_assert_eq(optimizer_init(&tested->optimizer, name, n, why, sizeof why), 0, "%s", why);
    memset(tested->gradient, 0xff, sizeof tested->gradient); /* NaN: must not be read */
    for (int i = 0; i < COUNT; i++)
        reference->x[i] = (double)(tested->x[i] = (float)rng_normal(&rng));
}

static double distance(const struct tested *tested, const struct reference *reference)
{
    double error = 0, norm = 0;

    for (int i = 0; i < COUNT; i++) {
        error +=
            ((double)tested->x[i] - reference->x[i]) * ((double)tested->x[i] - reference->x[i]);
        norm += reference->x[i] * reference->x[i];
    }
    return sqrt(error / norm);
}

/* || x - reference || / || reference || after STEPS steps. */
static double trial(int o, int p, const char *schedule, double warmup,
                    const struct optimizer_numbers *n)
{
    struct schedule plan;
    struct tested tested;
    struct reference reference;
    char why[200] = "";

    make(&tested, &reference, optimizers[o].name, n, (uint64_t)p + 1);
    cr_assert_eq(schedule_init(&plan, schedule, warmup, why, sizeof why), 0, "%s", why);
    for (int s = 0; s < STEPS; s++) {
        double at = (double)s / STEPS, g[COUNT];

        tested_step(&tested, problems[p], optimizers[o].rate * schedule_factor(&plan, at),
                    (uint64_t)s);
        problems[p](reference.x, g);
        reference_step(&reference, optimizers[o].name, n, g,
                       optimizers[o].rate * reference_factor(schedule, at, warmup), s + 1);
    }
    return distance(&tested, &reference);
}

Test(train_optimizer, each_optimizer_under_each_schedule_follows_float64_on_three_problems)
{
    /* Proves the update equations and their order, schedules and warm-up. */
    for (int o = 0; o < OPTIMIZERS; o++)
        for (int p = 0; p < 3; p++)
            for (int s = 0; s < SCHEDULES; s++)
                for (int w = 0; w < 2; w++) {
                    double error = trial(o, p, schedules[s], w * 0.125, &numbers[0]);

                    cr_expect_leq(error, 1e-6, "%s, %s, %s, warm-up %d/8: %g", optimizers[o].name,
                                  problem_names[p], schedules[s], w, error);
                }
}

Test(train_optimizer, decay_clipping_and_other_numbers_follow_float64_too)
{
    /* Proves decay inside and outside the gradient, both kinds of clipping, their order. */
    for (int o = 0; o < OPTIMIZERS; o++)
        for (int p = 0; p < 3; p++)
            for (int n = 0; n < NUMBERS; n++) {
                double error = trial(o, p, "cosine", 0, &numbers[n]);

                cr_expect_leq(error, 1e-6, "%s, %s, numbers %d: %g", optimizers[o].name,
                              problem_names[p], n, error);
            }
}

Test(train_optimizer, a_state_taken_over_goes_on_at_its_own_step_count)
{
    /* Proves that corrections by step count hold at whoever takes the vectors from a peer, and
     * that they are not those of a fresh start. */
    for (int o = 0; o < OPTIMIZERS; o++) {
        struct tested giver, taker, fresh;
        struct reference reference;

        make(&giver, &reference, optimizers[o].name, &numbers[0], 1);
        for (uint64_t s = 0; s < 65; s++)
            tested_step(&giver, network, optimizers[o].rate, s);
        taker = fresh = giver;
        tested_step(&giver, network, optimizers[o].rate, 65);
        tested_step(&taker, network, optimizers[o].rate, 65);
        tested_step(&fresh, network, optimizers[o].rate, 0);
        cr_expect_eq(memcmp(giver.x, taker.x, sizeof giver.x), 0);
        cr_expect_eq(memcmp(giver.x, fresh.x, sizeof giver.x) != 0, optimizers[o].vectors == 2);
    }
}

Test(train_optimizer, clipping_bounds_a_gradient_that_explodes)
{
    /* Proves the bound itself: a step is no longer than rate * c, each part no more than that. */
    const struct optimizer_numbers by_norm = {.clip_norm = 0.5}, by_value = {.clip_value = 0.5};
    struct tested tested;
    struct reference before;
    double square = 0;

    make(&tested, &before, "sgd", &by_norm, 1);
    for (int i = 0; i < COUNT; i++)
        before.x[i] = (double)(tested.x[i] *= 1e15f);
    tested_step(&tested, bowl, 1e16, 0);
    for (int i = 0; i < COUNT; i++)
        square += pow((double)tested.x[i] - before.x[i], 2);
    cr_expect_float_eq(sqrt(square) / 5e15, 1, 1e-5);
    make(&tested, &before, "sgd", &by_value, 1);
    for (int i = 0; i < COUNT; i++)
        before.x[i] = (double)(tested.x[i] *= 1e15f);
    tested_step(&tested, bowl, 1e16, 0);
    for (int i = 0; i < COUNT; i++)
        cr_expect_float_eq(fabs((double)tested.x[i] - before.x[i]) / 5e15, 1, 1e-5);
}

Test(train_optimizer, an_optimizer_says_what_vectors_it_needs)
{
    /* Proves the counts by which callers allocate. */
    struct optimizer made;
    char why[200];

    for (int o = 0; o < OPTIMIZERS; o++) {
        for (int n = 0; n < NUMBERS; n++) {
            bool clips = numbers[n].clip_norm > 0 || numbers[n].clip_value > 0;

            cr_assert_eq(optimizer_init(&made, optimizers[o].name, &numbers[n], why, sizeof why),
                         0);
            cr_expect_eq(optimizer_vectors(&made), optimizers[o].vectors);
            if (clips || numbers[n].weight_decay == 0 || isnan(numbers[n].weight_decay))
                cr_expect_eq(optimizer_wants_gradient(&made), clips || optimizers[o].wants_gradient,
                             "%s", optimizers[o].name);
            cr_expect_eq(optimizer_is_full_batch(&made), o == 0);
        }
    }
}

Test(train_optimizer, bad_names_and_numbers_are_refused_with_the_valid_ones)
{
    /* Proves that a typo gets a line that names it. */
    static const struct {
        const char *name;
        struct optimizer_numbers numbers;
        const char *why;
    } bad[] = {
        {"momentun",
         {.momentum = 0},
         "optimizer 'momentun' is unknown; valid: gd, sgd, momentum, nesterov, adagrad, rmsprop, "
         "adam, adamw"},
        {"adam", {.momentum = 1}, "momentum 1; valid: at least 0 and below 1"},
        {"adam", {.beta2 = 1}, "beta2 1; valid: above 0 and below 1"},
        {"adam", {.epsilon = -1}, "epsilon -1; valid: finite, above 0"},
        {"adam", {.weight_decay = -1}, "weight decay -1; valid: finite, at least 0"},
        {"adam", {.clip_norm = -1}, "clip norm -1; valid: finite, above 0"},
        {"adam", {.clip_value = 1e39}, "clip value 1e+39; valid: finite, above 0"},
    };
    struct optimizer made;
    struct schedule plan;
    char why[200];

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_expect_eq(optimizer_init(&made, bad[i].name, &bad[i].numbers, why, sizeof why),
                     PARLEY_EUSAGE);
        cr_expect_str_eq(why, bad[i].why);
    }
    cr_expect_eq(schedule_init(&plan, "", 0, why, sizeof why), PARLEY_EUSAGE);
    cr_expect_str_eq(why, "schedule '' is unknown; valid: constant, step, exponential, cosine, "
                          "linear, inverse-sqrt");
    cr_expect_eq(schedule_init(&plan, "step", 1, why, sizeof why), PARLEY_EUSAGE);
    cr_expect_eq(schedule_init(&plan, "step", (double)NAN, why, sizeof why), PARLEY_EUSAGE);
}

Test(train_schedule, a_step_is_not_late_for_a_progress_that_is_a_rounding_short_of_it)
{
    /* Progress is added up: after 6 steps of 12 it was 0.5 less a rounding, and the rate fell after
     * 7. */
    struct schedule plan;
    char why[200];
    cr_assert_eq(schedule_init(&plan, "step", 0, why, sizeof why), 0);
    cr_expect_eq(schedule_factor(&plan, nextafter(0.5, 0)), 0.1);
    cr_expect_eq(schedule_factor(&plan, nextafter(0.75, 0)), 0.01);
    cr_expect_eq(schedule_factor(&plan, 0.499), 1);
}

Test(train_schedule, factors_stay_in_range_climb_in_the_warmup_and_fall_after_it)
{
    /* Proves the ends, and that progress from elsewhere (past the end, NaN) is harmless. */
    char why[200];

    for (int s = 0; s < SCHEDULES; s++) {
        for (int w = 0; w < 3; w++) {
            struct schedule plan;
            double warmup = 0.25 * w, last = w > 0 ? 0 : 1;

            cr_assert_eq(schedule_init(&plan, schedules[s], warmup, why, sizeof why), 0);
            cr_expect_eq(schedule_factor(&plan, 0), last);
            cr_expect_eq(schedule_factor(&plan, -1), last);
            cr_expect_eq(schedule_factor(&plan, (double)NAN), last);
            cr_expect_eq(schedule_factor(&plan, 7), schedule_factor(&plan, 1));
            cr_expect_eq(schedule_factor(&plan, warmup), 1);
            for (int p = 0; p <= 1000; p++) {
                double factor = schedule_factor(&plan, p / 1000.0);

                cr_expect(factor >= 0 && factor <= 1);
                cr_expect(p / 1000.0 <= warmup ? factor >= last : factor <= last);
                last = factor;
            }
        }
    }
}
