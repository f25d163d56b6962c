/* The products of a layer with few outputs: against float64, and on every path the bits of its
 * order of sums, fused or not. */
#include "kernels/layers/narrow.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "kernels/layers/lanes.h"

enum { BEHIND = 32 };
#define CANARY 12345.0f

struct layer {
    struct narrow n;
    float *x, *weight, *bias, *delta, *old; /* as long as they must be, for AddressSanitizer */
    float *turned, *y, *into;               /* these two with BEHIND canaries behind them */
    uint8_t *bytes;
};

/* Shapes where vectors, pairs of rows and blocks come out even, and where each leaves a rest. */
static const size_t shapes[][3] = {/* rows, in, out */
                                   {1, 1, 1},    {32, 784, 10}, {31, 84, 10}, {3, 17, 3},
                                   {2, 33, 16},  {5, 100, 11},  {7, 130, 5},  {4, 64, 4},
                                   {8, 32, 2},   {9, 31, 15},   {1, 15, 7},   {32, 123, 1},
                                   {33, 129, 6}, {6, 95, 13},   {2, 16, 9},   {12, 13, 8}};
#define SHAPES (sizeof shapes / sizeof *shapes)

static float *fill(size_t count, uint64_t stream, size_t canaries)
{
    struct rng rng = rng_init(1, stream);
    float *made = malloc((count + canaries) * sizeof *made);

    for (size_t i = 0; i < count; i++)
        made[i] = (float)rng_normal(&rng);
    for (size_t i = 0; i < canaries; i++)
        made[count + i] = CANARY;
    return made;
}

static uint8_t *draw_bytes(size_t count)
{
    struct rng rng = rng_init(1, 9);
    uint8_t *made = malloc(count);

    for (size_t i = 0; i < count; i++)
        made[i] = (uint8_t)rng_below(&rng, 256);
    return made;
}

static struct layer make(const size_t shape[3])
{
    size_t rows = shape[0], in = shape[1], out = shape[2];
    struct layer l = {.x = fill(rows * in, 1, 0),
                      .weight = fill(in * out, 2, 0),
                      .bias = fill(out, 3, 0),
                      .delta = fill(rows * out, 4, 0),
                      .old = fill(in * out, 5, 0),
                      .turned = fill(narrow_turned(in, out), 6, 0),
                      .y = fill(rows * out, 7, BEHIND),
                      .into = fill(in * out, 8, BEHIND),
                      .bytes = draw_bytes(rows * in)};

    l.n = (struct narrow){.rows = rows, .in = in, .out = out, .x = l.x};
    return l;
}

/* The same with pixels for x; whose places stay unread. */
static struct layer make_pixels(const size_t shape[3])
{
    struct layer l = make(shape);

    l.n.x = NULL;
    l.n.pixels = (struct pixels){l.bytes, 33.25f, 0.0127f};
    return l;
}

static struct layer make_either(const size_t shape[3], int pixels)
{
    return pixels ? make_pixels(shape) : make(shape);
}

/* What the inputs mean. */
static double input(const struct narrow *n, size_t at)
{
    const struct pixels *p = &n->pixels;

    return n->x != NULL ? (double)n->x[at] : (p->bytes[at] - (double)p->shift) * (double)p->scale;
}

/* What is multiplied. */
static float factor(const struct narrow *n, size_t at)
{
    return n->x != NULL ? n->x[at] : (float)n->pixels.bytes[at];
}

static void drop(struct layer *l)
{
    free(l->x);
    free(l->weight);
    free(l->bias);
    free(l->delta);
    free(l->old);
    free(l->turned);
    free(l->y);
    free(l->into);
    free(l->bytes);
}

static void expect_canaries(const float *behind)
{
    for (size_t i = 0; i < BEHIND; i++)
        cr_assert_eq(behind[i], CANARY, "%zu floats over the end", i + 1);
}

static void expect_forward(const struct layer *l, bool relu)
{
    const struct narrow *n = &l->n;

    for (size_t row = 0; row < n->rows; row++)
        for (size_t j = 0; j < n->out; j++) {
            double sum = (double)l->bias[j];

            for (size_t k = 0; k < n->in; k++)
                sum += input(n, row * n->in + k) * (double)l->weight[k * n->out + j];
            if (relu && sum < 0) sum = 0;
            cr_assert_float_eq((double)l->y[row * n->out + j], sum, 1e-6 * (double)(n->in + 1),
                               "%zu x %zu x %zu: row %zu, output %zu", n->rows, n->in, n->out, row,
                               j);
        }
    expect_canaries(l->y + n->rows * n->out);
}

static void expect_weights(const struct layer *l, double scale, double keep)
{
    const struct narrow *n = &l->n;

    for (size_t k = 0; k < n->in; k++)
        for (size_t j = 0; j < n->out; j++) {
            double sum = 0, old = keep > 0 ? (double)l->old[k * n->out + j] : 0;

            for (size_t row = 0; row < n->rows; row++)
                sum += input(n, row * n->in + k) * (double)l->delta[row * n->out + j];
            cr_assert_float_eq((double)l->into[k * n->out + j], keep * old + scale * sum,
                               1e-6 * (double)(n->rows + 1),
                               "%zu x %zu x %zu: weight row %zu, output %zu", n->rows, n->in,
                               n->out, k, j);
        }
    expect_canaries(l->into + n->in * n->out);
}

/* In ranges of `step` weight rows. */
static void run_weights(const struct narrow_kernels *kernels, struct layer *l, size_t step,
                        float scale, float keep)
{
    size_t in = l->n.in, out = l->n.out;

    for (size_t i = 0; i < in * out; i++)
        l->into[i] = keep > 0 ? l->old[i] : NAN; /* which must not be read */
    for (size_t first = 0; first < in; first += step)
        kernels->weights(&l->n, first, in - first < step ? in - first : step, l->delta, scale, keep,
                         l->into + first * out, l->into + first * out);
}

/* The same sums as those of weights, the other way round; to: l->into. */
static void expect_across(const struct layer *l, const float *wanted)
{
    for (size_t k = 0; k < l->n.in; k++)
        for (size_t j = 0; j < l->n.out; j++)
            cr_assert_eq(l->into[j * l->n.in + k], wanted[k * l->n.out + j]);
    expect_canaries(l->into + l->n.in * l->n.out);
}

Test(narrow_kernels, products_match_float64_whatever_the_shape_and_write_nothing_else)
{
    /* Proves that no term is left out or counted twice, and that nothing behind y and into is
     * touched; what is read behind the inputs, AddressSanitizer sees. */
    for (int path = 0; path < KERNEL_PATHS; path++) {
        if (!kernel_path_supported((enum kernel_path)path)) continue;
        for (size_t s = 0; s < 2 * SHAPES; s++) {
            struct layer l = make_either(shapes[s / 2], s % 2);

            for (int relu = 0; relu < 2; relu++) {
                narrow_kernels[path].forward(&l.n, l.weight, l.bias, l.turned, l.y, relu);
                expect_forward(&l, relu);
            }
            run_weights(&narrow_kernels[path], &l, l.n.in, 0.5f, 0);
            expect_weights(&l, 0.5, 0);
            run_weights(&narrow_kernels[path], &l, l.n.in, -0.25f, 0.75f);
            expect_weights(&l, -0.25, 0.75);
            drop(&l);
        }
    }
}

static float plus(bool fuses, float sum, float a, float b)
{
    return fuses ? fmaf(a, b, sum) : sum + a * b;
}

/* The orders of sums that narrow.h gives, written out. */
static void expect_forward_bits(const struct layer *l, bool fuses)
{
    const struct narrow *n = &l->n;

    for (size_t row = 0; row < n->rows; row++)
        for (size_t j = 0; j < n->out; j++) {
            float lane[LANES_COUNT] = {0}, weights[LANES_COUNT] = {0};

            for (size_t k = 0; k < n->in; k++) {
                float weight = l->weight[k * n->out + j] * (n->x != NULL ? 1 : n->pixels.scale);

                lane[k % LANES_COUNT] =
                    plus(fuses, lane[k % LANES_COUNT], factor(n, row * n->in + k), weight);
                weights[k % LANES_COUNT] += weight;
            }
            float shift = n->x != NULL ? 0 : n->pixels.shift * lanes_fold(weights);
            cr_assert_eq(l->y[row * n->out + j], lanes_fold(lane) + (l->bias[j] - shift));
        }
}

static void expect_weights_bits(const struct layer *l, float scale, float keep, bool fuses)
{
    const struct narrow *n = &l->n;

    if (n->x == NULL) scale *= n->pixels.scale;

    for (size_t k = 0; k < n->in; k++)
        for (size_t j = 0; j < n->out; j++) {
            float sum = 0, old = l->old[k * n->out + j];

            for (size_t row = 0; row < n->rows && n->x == NULL; row++)
                sum += l->delta[row * n->out + j];
            sum *= -n->pixels.shift;
            for (size_t row = 0; row < n->rows; row++)
                sum = plus(fuses, sum, factor(n, row * n->in + k), l->delta[row * n->out + j]);
            cr_assert_eq(l->into[k * n->out + j],
                         keep > 0 ? keep * old + scale * sum : scale * sum);
        }
}

Test(narrow_kernels, every_path_sums_in_the_order_that_is_said_in_whatever_ranges)
{
    /* Two machines that can fuse compute alike, and two that can't; and the size of a tile is
     * nobody's business. */
    static const size_t steps[] = {1, 7, 64, 204};

    for (size_t s = 0; s < 2 * SHAPES; s++) {
        struct layer l = make_either(shapes[s / 2], s % 2);

        for (int path = 0; path < KERNEL_PATHS; path++) {
            const struct narrow_kernels *k = &narrow_kernels[path];
            bool fuses = path != KERNEL_PATH_BASE;

            if (!kernel_path_supported((enum kernel_path)path)) continue;
            k->forward(&l.n, l.weight, l.bias, l.turned, l.y, false);
            expect_forward_bits(&l, fuses);
            for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
                run_weights(k, &l, steps[i], 0.5f, 0.75f);
                expect_weights_bits(&l, 0.5f, 0.75f, fuses);
            }
        }
        drop(&l);
    }
}

Test(narrow_kernels, the_inner_parts_give_the_bits_of_the_whole_on_every_path)
{
    /* What convolutions use is summed in the same order, and add_dots adds. */
    for (size_t s = 0; s < SHAPES; s++)
        for (int path = 0; path < KERNEL_PATHS; path++) {
            if (!kernel_path_supported((enum kernel_path)path)) continue;
            struct layer l = make(shapes[s]);
            size_t outputs = l.n.rows * l.n.out, inputs = l.n.in * l.n.out;
            float *y = malloc(outputs * sizeof *y);

            run_weights(&narrow_kernels[path], &l, l.n.in, 1, 0);
            memcpy(l.old, l.into, inputs * sizeof(float));
            narrow_kernels[path].across(&l.n, l.delta, l.into);
            expect_across(&l, l.old);
            narrow_kernels[path].forward(&l.n, l.weight, l.bias, l.turned, y, false);
            for (size_t i = 0; i < outputs; i++)
                l.y[i] = l.bias[i % l.n.out];
            narrow_kernels[path].add_dots(&l.n, l.turned, l.y);
            cr_assert_eq(memcmp(l.y, y, outputs * sizeof(float)), 0);
            expect_canaries(l.y + outputs);
            free(y);
            drop(&l);
        }
}

Test(narrow_kernels, what_is_not_finite_spoils_its_own_sums_and_no_others)
{
    /* A loss that is not finite ends a run: it may not get lost in a ReLU, nor spread by padding.
     */
    for (int path = 0; path < KERNEL_PATHS; path++) {
        if (!kernel_path_supported((enum kernel_path)path)) continue;
        struct layer l = make((const size_t[3]){4, 37, 10});

        l.x[1 * 37 + 36] = l.x[2 * 37 + 36] = NAN;
        l.delta[2 * 10 + 9] = INFINITY;
        narrow_kernels[path].forward(&l.n, l.weight, l.bias, l.turned, l.y, true);
        for (size_t i = 0; i < 40; i++)
            cr_assert_eq(isnan(l.y[i]) != 0, i / 10 == 1 || i / 10 == 2);
        run_weights(&narrow_kernels[path], &l, 37, 1, 0);
        for (size_t i = 0; i < 370; i++)
            cr_assert_eq(isfinite(l.into[i]) == 0, i / 10 == 36 || i % 10 == 9);
        drop(&l);
    }
}
