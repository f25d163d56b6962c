/* A convolution by itself against float64, which is written here apart and plainly: of few channels
 * and of many, with and without border, with odd sizes and with steps. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "core/rng.h"
#include "train/layers/layers.h"

enum { ROWS = 3, ROOM = 64 };

static const struct geometry {
    uint32_t in, height, width, out, kernel, stride, pad;
} geometries[] = {
    {1, 28, 28, 6, 5, 1, 2}, {3, 32, 32, 6, 5, 1, 0}, {2, 7, 5, 3, 3, 1, 1},
    {1, 3, 19, 11, 3, 1, 1}, {4, 9, 17, 1, 1, 1, 0},  {2, 1, 1, 2, 3, 1, 2},
    {3, 9, 40, 5, 5, 1, 4},  {2, 7, 6, 5, 3, 2, 1},   {6, 14, 14, 16, 5, 1, 0},
    {5, 6, 9, 12, 3, 2, 1},
};

/* Room before and behind, and nothing but NaN there, which must not get into anything. */
static float *array(size_t floats)
{
    float *made = malloc((floats + 2 * ROOM) * sizeof *made);

    for (size_t i = 0; i < floats + 2 * ROOM; i++)
        made[i] = NAN;
    return made + ROOM;
}

static float *filled(size_t floats, uint64_t stream)
{
    struct rng rng = rng_init(1, stream);
    float *made = array(floats);

    for (size_t i = 0; i < floats; i++)
        made[i] = (float)rng_normal(&rng);
    return made;
}

struct problem {
    struct layer layer;
    struct layer_pass pass;
    size_t patch, weights, in, out;
    float *x, *gradient;
    double *y, *slope, *below; /* wanted */
};

static struct problem make(const struct geometry *g)
{
    struct problem p = {
        .layer = {.kind = &layer_conv,
                  .option = {[CONV_OUT] = g->out,
                             [CONV_KERNEL] = g->kernel,
                             [CONV_STRIDE] = g->stride,
                             [CONV_PAD] = g->pad},
                  .in = {g->in, g->height, g->width}},
        .patch = (size_t)g->in * g->kernel * g->kernel,
    };

    cr_assert_null(layer_conv.plan(&p.layer));
    p.weights = p.patch * g->out;
    p.layer.at[1] = p.weights;
    p.in = shape_size(p.layer.in);
    p.out = shape_size(p.layer.out);
    p.x = filled(p.weights + g->out, 1);
    p.gradient = array(p.weights + g->out);
    p.pass = (struct layer_pass){.x = p.x,
                                 .rows = ROWS,
                                 .input = filled(ROWS * p.in, 2),
                                 .output = array(ROWS * p.out),
                                 .scratch = array(p.layer.scratch),
                                 .delta = filled(ROWS * p.out, 3),
                                 .below = array(ROWS * p.in)};
    p.y = calloc(ROWS * p.out, sizeof(double));
    p.slope = calloc(p.weights + g->out, sizeof(double));
    p.below = calloc(ROWS * p.in, sizeof(double));
    return p;
}

static void drop(struct problem *p)
{
    const float *arrays[] = {p->x,           p->gradient,     p->pass.input,
                             p->pass.output, p->pass.scratch, p->pass.delta,
                             p->pass.below};

    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        free((void *)(arrays[i] - ROOM));
    free(p->y);
    free(p->slope);
    free(p->below);
}

/* All that one weight does: y[y_at] += w[w_at] * in[in_at]. */
static void touch(struct problem *p, size_t y_at, size_t w_at, size_t in_at)
{
    p->y[y_at] += (double)p->x[w_at] * (double)p->pass.input[in_at];
    p->slope[w_at] += (double)p->pass.delta[y_at] * (double)p->pass.input[in_at];
    p->below[in_at] += (double)p->pass.delta[y_at] * (double)p->x[w_at];
}

static void one_output(struct problem *p, const struct geometry *g, size_t row, size_t at)
{
    uint32_t width = p->layer.out.width, height = p->layer.out.height;
    uint32_t o = (uint32_t)(at / width / height), i = (uint32_t)(at / width % height);
    uint32_t j = (uint32_t)(at % width);

    p->y[row * p->out + at] = (double)p->x[p->weights + o];
    p->slope[p->weights + o] += (double)p->pass.delta[row * p->out + at];
    for (uint32_t k = 0; k < p->patch; k++) {
        uint32_t c = k / g->kernel / g->kernel;
        uint32_t up = i * g->stride + k / g->kernel % g->kernel - g->pad; /* wraps above 0 */
        uint32_t left = j * g->stride + k % g->kernel - g->pad;

        if (up < g->height && left < g->width)
            touch(p, row * p->out + at, o * p->patch + k,
                  row * p->in + (c * g->height + up) * g->width + left);
    }
}

static void expect_near(const float *got, const double *wanted, size_t count, const char *what,
                        size_t geometry)
{
    double error = 0, norm = 0;

    for (size_t i = 0; i < count; i++) {
        error += pow((double)got[i] - wanted[i], 2);
        norm += wanted[i] * wanted[i];
    }
    cr_expect_leq(sqrt(error), 1e-5 * sqrt(norm), "%s of geometry %zu: %g beside %g", what,
                  geometry, sqrt(error), sqrt(norm));
}

Test(train_conv, every_geometry_matches_float64_forward_and_back)
{
    for (size_t n = 0; n < sizeof geometries / sizeof *geometries; n++) {
        struct problem p = make(&geometries[n]);
        struct gradient_sink sink = {.into = p.gradient, .scale = 1};

        for (size_t i = 0; i < ROWS * p.out; i++)
            one_output(&p, &geometries[n], i / p.out, i % p.out);
        layer_conv.forward(&p.layer, &p.pass);
        expect_near(p.pass.output, p.y, ROWS * p.out, "output", n);
        layer_conv.backward(&p.layer, &p.pass, &sink);
        expect_near(p.gradient, p.slope, p.weights + p.layer.out.channels, "gradient", n);
        expect_near(p.pass.below, p.below, ROWS * p.in, "what goes below", n);
        drop(&p);
    }
}
