/* What convolution and pooling do beside products: each path to the bit as the first, and that as
 * written here plainly. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "kernels/layers/image.h"

/* [count] with room before and behind; free(array - IMAGE_SLACK). */
static float *fill(size_t count, uint64_t stream)
{
    struct rng rng = rng_init(1, stream);
    float *made = malloc((count + 2 * IMAGE_SLACK) * sizeof *made);

    for (size_t i = 0; i < count + 2 * IMAGE_SLACK; i++)
        made[i] = (float)rng_normal(&rng);
    return made + IMAGE_SLACK;
}

static void drop(float *array)
{
    free(array - IMAGE_SLACK);
}

/* What lies under place (c, i, j) of the kernel of output (y, x), as an index; or -1. */
static long under(const struct patches *p, size_t c, size_t i, size_t j, size_t y, size_t x)
{
    long row = (long)(y * p->stride + i) - (long)p->pad;
    long column = (long)(x * p->stride + j) - (long)p->pad;

    if (row < 0 || row >= (long)p->height || column < 0 || column >= (long)p->width) return -1;
    return ((long)(c * p->height) + row) * (long)p->width + column;
}

static void check_patches(const struct image_kernels *kernels, const struct patches *p)
{
    size_t k = p->kernel, places = (size_t)p->out_height * p->out_width;
    size_t image_size = (size_t)p->channels * p->height * p->width;
    size_t columns_size = p->channels * k * k * places;
    float *image = fill(image_size, 1), *taken = fill(columns_size, 2), *back = fill(image_size, 3);
    double *sums = calloc(image_size, sizeof *sums);

    kernels->take(taken, image, p);
    kernels->give(back, taken, p);
    for (size_t at = 0; at < columns_size; at++) {
        size_t place = at / places, y = at % places / p->out_width, x = at % p->out_width;
        long from = under(p, place / (k * k), place / k % k, place % k, y, x % p->out_width);

        cr_assert_eq(taken[at], from < 0 ? 0 : image[from], "at %zu", at);
        if (from >= 0) sums[from] += (double)image[from];
    }
    for (size_t i = 0; i < image_size; i++)
        cr_assert_float_eq((double)back[i], sums[i], 1e-4, "at %zu", i);
    drop(image);
    drop(taken);
    drop(back);
    free(sums);
}

Test(image, patches_are_taken_and_given_back_on_every_path_for_all_sizes_of_rows)
{
    /* Proves borders, strides, and rows of less than a vector to several. */
    static const uint32_t widths[] = {1, 5, 10, 14, 15, 16, 17, 28, 32, 50};

    for (int path = 0; path < KERNEL_PATHS; path++)
        for (size_t w = 0; w < sizeof widths / sizeof widths[0]; w++)
            for (uint32_t kernel = 1; kernel <= 5; kernel += 2)
                for (uint32_t stride = 1; stride <= 2; stride++)
                    for (uint32_t pad = 0; pad <= kernel / 2; pad++) {
                        struct patches p = {.channels = 2,
                                            .height = 5 + (uint32_t)w,
                                            .width = widths[w],
                                            .kernel = kernel,
                                            .stride = stride,
                                            .pad = pad};

                        if (!kernel_path_supported((enum kernel_path)path)) continue;
                        if (p.width + 2 * pad < kernel) continue;
                        p.out_height = (p.height + 2 * pad - kernel) / stride + 1;
                        p.out_width = (p.width + 2 * pad - kernel) / stride + 1;
                        check_patches(&image_kernels[path], &p);
                    }
}

static void check_pool(const struct image_kernels *kernels, size_t height, size_t width)
{
    size_t out = width / 2, count = height / 2 * out;
    float *x = fill(height * width, 1), *y = fill(count, 2);
    float *delta = fill(count, 3), *below = fill(height * width, 4);

    for (size_t i = 0; i < height * width; i++)
        x[i] = roundf(2 * x[i]); /* many are equal */
    kernels->pool(y, x, height, width);
    kernels->unpool(below, delta, x, y, height, width);
    for (size_t i = 0; i < height * width; i++) {
        size_t row = i / width, column = i % width, at = row / 2 * out + column / 2;
        size_t corner = row / 2 * 2 * width + column / 2 * 2, best = corner;
        const size_t four[] = {corner, corner + 1, corner + width, corner + width + 1};

        if (row / 2 >= height / 2 || column / 2 >= out) {
            cr_assert_eq(below[i], 0, "%zu x %zu, at %zu", height, width, i);
            continue;
        }
        for (int k = 1; k < 4; k++)
            if (x[four[k]] > x[best]) best = four[k];
        cr_assert_eq(y[at], x[best]);
        cr_assert_eq(below[i], best == i ? delta[at] : 0, "%zu x %zu, at %zu", height, width, i);
    }
    drop(x);
    drop(y);
    drop(delta);
    drop(below);
}

Test(image, pooling_takes_the_greatest_and_gives_back_to_the_first_of_equals_on_every_path)
{
    /* Proves odd sizes, and rows of less than a vector to several. */
    for (int path = 0; path < KERNEL_PATHS; path++)
        for (size_t height = 2; height < 6; height++)
            for (size_t width = 2; width < 70; width++)
                if (kernel_path_supported((enum kernel_path)path))
                    check_pool(&image_kernels[path], height, width);
}

Test(image, what_is_not_finite_comes_out_of_pooling_as_nan)
{
    /* Proves that divergence can't hide behind a greater neighbour. */
    static const float bad[] = {NAN, INFINITY, -INFINITY};

    for (int path = 0; path < KERNEL_PATHS; path++)
        for (size_t at = 0; at < 12; at++) {
            float *x = fill(4, 1), *y = fill(1, 2);

            if (kernel_path_supported((enum kernel_path)path)) {
                x[at % 4] = bad[at / 4];
                image_kernels[path].pool(y, x, 2, 2);
                cr_expect(isnan(y[0]), "%g at %zu", (double)bad[at / 4], at % 4);
            }
            drop(x);
            drop(y);
        }
}

Test(image, loops_over_planes_are_to_the_bit_the_same_on_every_path)
{
    /* Proves one sequence of operations for all; and the sums against float64. */
    for (size_t count = 1; count < 120; count += 7) {
        float *a = fill(2 * count, 1), *b = fill(2 * count, 2), *y[KERNEL_PATHS];
        double sums[KERNEL_PATHS][2], wanted[2] = {1, 2};

        for (size_t i = 0; i < count; i++) {
            wanted[0] += (double)a[i];
            wanted[1] += ((double)a[i] - 0.5) * ((double)b[i] - 0.25);
        }
        for (int path = 0; path < KERNEL_PATHS; path++) {
            const struct image_kernels *kernels = &image_kernels[path];

            y[path] = fill(2 * count, 3);
            if (!kernel_path_supported((enum kernel_path)path)) continue;
            sums[path][0] = 1;
            sums[path][1] = 2;
            kernels->sums(sums[path], a, b, 0.5f, 0.25f, count);
            kernels->blend(y[path], a, b, 1.5f, -0.3f, 0.7f, 2 * count);
            kernels->bias(y[path], a, 2, count, true);
            kernels->scale(y[path], b, 1.1f, 0.2f, count, false);
            cr_expect_float_eq(sums[path][0], wanted[0], 1e-4);
            cr_expect_float_eq(sums[path][1], wanted[1], 1e-4);
            cr_expect_eq(memcmp(sums[path], sums[0], sizeof sums[0]), 0);
            cr_expect_eq(memcmp(y[path], y[0], 2 * count * sizeof *a), 0);
        }
        for (int path = 0; path < KERNEL_PATHS; path++)
            drop(y[path]);
        drop(a);
        drop(b);
    }
}
