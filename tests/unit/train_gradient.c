/* Where gradients go, and losses against float64, which is written here apart and plainly. That
 * gradients are right: train_layers.c. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "train/gradient.h"
#include "train/loss.h"

#define SEEDS 5

struct problem {
    struct model *model;
    struct workspace workspace;
    uint32_t rows, classes;
    size_t count;
    float *x, *gradient;
    uint16_t labels[16];
};

static void problem_init(struct problem *p, const char *spec, uint32_t features, uint64_t seed)
{
    struct rng rng = rng_init(seed, 1);
    char why[256];

    p->rows = 6;
    p->classes = 5;
    cr_assert_eq(model_new(&p->model, spec,
                           &(struct model_data){.features = features, .classes = p->classes}, why,
                           sizeof why),
                 0);
    cr_assert_eq(workspace_init(&p->workspace, p->model, p->rows), 0);
    p->count = model_parameters(p->model);
    p->x = malloc(p->count * sizeof(float));
    p->gradient = malloc(p->count * sizeof(float));
    model_start(p->model, seed, p->x);
    for (size_t i = 0; i < p->count; i++)
        p->x[i] += (float)(0.05 * rng_normal(&rng));
    for (size_t i = 0; i < (size_t)p->rows * features; i++)
        p->workspace.inputs[i] = (float)rng_normal(&rng);
    for (uint32_t row = 0; row < p->rows; row++)
        p->labels[row] = (uint16_t)rng_below(&rng, p->classes);
}

static void problem_close(struct problem *p)
{
    free(p->gradient);
    free(p->x);
    workspace_close(&p->workspace);
    model_free(p->model);
}

static double run(struct problem *p, const struct gradient_sink *sink)
{
    float *logits = gradient_forward(p->model, &p->workspace, p->x, p->rows, true);
    double loss = loss_gradient(logits, p->labels, p->rows, p->classes);

    gradient_backward(p->model, &p->workspace, p->x, p->rows, sink);
    return loss;
}

Test(train_gradient, a_sink_keeps_scales_and_may_be_the_parameters_themselves)
{
    /* Proves into = keep * into + scale * gradient, which SGD and momentum rest on. */
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct problem p;
        struct gradient_sink sink = {.scale = 1};
        float *v;

        problem_init(&p, "mlp:301,6", 131, seed);
        v = malloc(p.count * sizeof *v);
        sink.into = p.gradient;
        run(&p, &sink);
        memcpy(v, p.x, p.count * sizeof *v);
        sink = (struct gradient_sink){.into = v, .scale = 0.5f, .keep = 0.75f};
        run(&p, &sink);
        for (size_t i = 0; i < p.count; i++)
            cr_assert_float_eq(v[i], 0.75f * p.x[i] + 0.5f * p.gradient[i], 1e-4);
        memcpy(v, p.x, p.count * sizeof *v);
        sink = (struct gradient_sink){.into = p.x, .scale = -0.5f, .keep = 1};
        run(&p, &sink);
        for (size_t i = 0; i < p.count; i++)
            cr_assert_float_eq(p.x[i], v[i] - 0.5f * p.gradient[i], 1e-4);
        free(v);
        problem_close(&p);
    }
}

struct spoiler {
    float *x;
    uint8_t *seen;
};

static void spoil(void *context, size_t offset, size_t count)
{
    struct spoiler *spoiler = context;

    for (size_t i = offset; i < offset + count; i++) {
        spoiler->seen[i]++;
        spoiler->x[i] = NAN;
    }
}

Test(train_gradient, each_range_is_finished_once_and_its_weights_are_not_used_again)
{
    /* Proves that an optimizer may change the weights the moment it is called. */
    struct problem p;
    struct gradient_sink sink = {.scale = 1};
    struct spoiler spoiler;
    float *wanted;

    problem_init(&p, "mlp:301,60", 131, 1);
    wanted = malloc(p.count * sizeof *wanted);
    sink.into = wanted;
    run(&p, &sink);
    spoiler = (struct spoiler){p.x, calloc(p.count, 1)};
    sink = (struct gradient_sink){p.gradient, 1, 0, spoil, &spoiler, NULL, NULL};
    run(&p, &sink);
    cr_expect_eq(memcmp(p.gradient, wanted, p.count * sizeof *wanted), 0);
    for (size_t i = 0; i < p.count; i++)
        cr_assert_eq(spoiler.seen[i], 1);
    free(spoiler.seen);
    free(wanted);
    problem_close(&p);
}

Test(train_loss, probabilities_and_losses_match_float64_from_tiny_to_huge_logits)
{
    /* Proves the exponential in use, and that nothing overflows. */
    static const double scales[] = {1e-3, 1, 10, 100, 1e4, 1e30};

    for (uint64_t seed = 0; seed < 4 * SEEDS; seed++) {
        struct rng rng = rng_init(seed, 2);

        for (size_t s = 0; s < sizeof scales / sizeof scales[0]; s++) {
            float z[3][11];
            double wanted[3][11], loss = 0, got;
            uint16_t labels[3];

            for (int row = 0; row < 3; row++) {
                double max = -INFINITY, sum = 0;

                labels[row] = (uint16_t)rng_below(&rng, 11);
                for (int c = 0; c < 11; c++) {
                    z[row][c] = (float)(scales[s] * rng_normal(&rng));
                    max = fmax(max, (double)z[row][c]);
                }
                for (int c = 0; c < 11; c++)
                    sum += wanted[row][c] = exp((double)z[row][c] - max);
                for (int c = 0; c < 11; c++)
                    wanted[row][c] = wanted[row][c] / sum - (c == labels[row]);
                loss += log(sum) + max - (double)z[row][labels[row]];
            }
            got = loss_gradient(&z[0][0], labels, 3, 11);
            cr_expect_lt(fabs(got - loss), 1e-6 * (1 + loss), "%g for %g", got, loss);
            for (int row = 0; row < 3; row++)
                for (int c = 0; c < 11; c++)
                    cr_expect_float_eq((double)z[row][c], wanted[row][c], 5e-7);
        }
    }
}

Test(train_loss, a_batch_has_a_finite_loss_however_large_it_is)
{
    /* Proves that the sums of many rows, of which one logarithm is taken, do not overflow: at the
     * start of training, where all classes are as likely, that would be called divergence. */
    enum { ROWS = 4000, CLASSES = 10 };
    static float z[ROWS * CLASSES];
    static const uint16_t labels[ROWS];

    double loss = loss_gradient(z, labels, ROWS, CLASSES);
    cr_expect_float_eq(loss, ROWS * log(CLASSES), 1e-6 * ROWS, "%g", loss);
}

Test(train_loss, a_logit_that_is_nan_or_plus_infinity_makes_the_loss_not_finite)
{
    /* Proves that divergence can't hide, wherever in the batch it starts. */
    static const float bad[] = {NAN, INFINITY};

    for (int b = 0; b < 2; b++) {
        for (int at = 0; at < 9; at++) {
            float z[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
            const uint16_t labels[3] = {0, 1, 2};

            z[at] = bad[b];
            cr_expect(!isfinite(loss_gradient(z, labels, 3, 3)), "%g at %d", (double)bad[b], at);
        }
    }
}

Test(train_loss, a_hit_is_the_first_greatest_logit_and_nan_hits_nothing)
{
    /* Proves that neither a model of zeros nor one of NaN looks accurate. */
    const float z[] = {0, 0, 0, 1, 3, 2, NAN, NAN, NAN, 5, 4, 5};

    cr_expect_eq(loss_hits(z, (const uint16_t[]){0, 1, 0, 0}, 4, 3), 3);
    cr_expect_eq(loss_hits(z, (const uint16_t[]){1, 0, 1, 2}, 4, 3), 0);
}
