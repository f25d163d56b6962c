/* Products in blocks against float64, and the loops beside them on every path. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "kernels/layers/layer.h"
#include "kernels/layers/scale.h"
#include "train/layers/product.h"

static float *fill(size_t count, uint64_t stream)
{
    struct rng rng = rng_init(1, stream);
    float *made = malloc(count * sizeof *made);
    for (size_t i = 0; i < count; i++)
        made[i] = (float)rng_normal(&rng);
    return made;
}

/* a[i * a_row + k * a_step] * b[k * b_step + j * b_column] against got[i][j], over the sizes. */
struct wanted {
    const float *a, *b, *got;
    size_t a_row, a_step, b_step, b_column, rows, columns, length;
};

static void expect(const struct wanted *w)
{
    for (size_t i = 0; i < w->rows; i++) {
        for (size_t j = 0; j < w->columns; j++) {
            double sum = 0;
            for (size_t k = 0; k < w->length; k++)
                sum += (double)w->a[i * w->a_row + k * w->a_step] *
                       (double)w->b[k * w->b_step + j * w->b_column];
            cr_assert_float_eq((double)w->got[i * w->columns + j], sum,
                               1e-5 * (double)w->length + 1e-6, "row %zu, column %zu", i, j);
        }
    }
}

static void check(uint32_t in, uint32_t out, uint32_t rows)
{
    struct product sizes = {in, out};
    float *input = fill((size_t)rows * in, 1), *weight = fill((size_t)in * out, 2);
    float *delta = fill((size_t)rows * out, 3), *y = fill((size_t)rows * out, 4);
    float *below = fill((size_t)rows * in, 5), *into = fill((size_t)in * out, 6);
    uint32_t tile = product_tile(&sizes, rows);

    y[0] = below[0] = into[0] = NAN; /* what was there must not be read */
    product_forward(&sizes, rows, input, weight, y);
    expect(&(struct wanted){input, weight, y, in, 1, out, 1, rows, out, in});
    product_back(&sizes, rows, delta, weight, below);
    expect(&(struct wanted){delta, weight, below, out, 1, 1, out, rows, in, out});
    for (uint32_t i = 0; i < in; i += tile)
        product_weights(&sizes, rows, i, in - i < tile ? in - i : tile, input, delta, 1, 0,
                        into + (size_t)i * out);
    expect(&(struct wanted){input, delta, into, 1, in, out, 1, in, out, rows});
    free(input);
    free(weight);
    free(delta);
    free(y);
    free(below);
    free(into);
}

Test(train_product, products_cut_into_blocks_match_float64_whatever_rest_is_left)
{
    /* Proves that no block is left out or counted twice: one block, many, and odd rests of each. */
    check(7, 5, 1);
    check(301, 131, 32);
    check(131, 301, 29);
    check(67, 1031, 33);
    check(1, 40, 513);
    check(77, 301, 300);
}

enum { MAX = 1031 };

Test(layer_kernels, every_path_gives_the_same_bits)
{
    /* Two nodes on unlike machines compute alike, also where vectors end in the middle. */
    static const size_t sizes[] = {1, 10, 63, 64, 65, 257, MAX};
    const struct layer_kernels *base = &layer_kernels[KERNEL_PATH_BASE];
    float *a = fill(3 * MAX, 1), *b = fill(3 * MAX, 2), *bias = fill(MAX, 3);
    static float want[3 * MAX], got[3 * MAX];
    a[5] = NAN;
    for (int path = 1; path < KERNEL_PATHS; path++) {
        if (!kernel_path_supported((enum kernel_path)path)) continue;
        const struct layer_kernels *k = &layer_kernels[path];
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            size_t n = sizes[s];
            for (int relu = 0; relu < 2; relu++) {
                memcpy(want, a, sizeof want);
                memcpy(got, a, sizeof got);
                base->bias(want, bias, 3, n, relu);
                k->bias(got, bias, 3, n, relu);
                cr_assert_eq(memcmp(want, got, sizeof want), 0);
            }
            base->mask(want, b, n);
            k->mask(got, b, n);
            cr_assert_eq(memcmp(want, got, sizeof want), 0);
            base->sum(want, b, 3, n);
            k->sum(got, b, 3, n);
            cr_assert_eq(memcmp(want, got, sizeof want), 0);
            for (size_t i = 0; i < n; i++)
                want[i] = got[i] = -30 * fabsf(b[i]);
            base->exp(want, n);
            k->exp(got, n);
            cr_assert_eq(memcmp(want, got, sizeof want), 0);
        }
    }
    free(a);
    free(b);
    free(bias);
}

Test(scale_kernels, every_path_gives_the_same_bits_and_they_are_those_of_the_formula)
{
    /* The inputs of a step are the same on every machine. */
    static uint8_t bytes[MAX];
    static float got[MAX], shift[MAX], scale[MAX];
    float *values = fill(MAX, 1);
    for (size_t i = 0; i < MAX; i++) {
        bytes[i] = (uint8_t)(i * 31);
        shift[i] = (float)i / 7;
        scale[i] = 1 / (1 + (float)i);
    }
    for (int path = 0; path < KERNEL_PATHS; path++) {
        if (!kernel_path_supported((enum kernel_path)path)) continue;
        for (size_t n = 1; n <= MAX; n += 103) {
            scale_kernels[path].bytes(bytes, got, n, 33.3f, 0.0123f);
            for (size_t i = 0; i < n; i++)
                cr_assert_eq(got[i], ((float)bytes[i] - 33.3f) * 0.0123f);
            scale_kernels[path].floats(values, got, n, shift, scale);
            for (size_t i = 0; i < n; i++)
                cr_assert_eq(got[i], (values[i] - shift[i]) * scale[i]);
        }
    }
    free(values);
}
