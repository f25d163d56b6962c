/* image.h: what convolution, pooling and normalisation do beside matrix products.
 *
 * All work on planes of floats, [height][width]. Each output is computed by one fixed sequence of
 * operations, the same on every path.
 * Thread rule: pure.
 */
#ifndef PARLEY_KERNELS_IMAGE_H
#define PARLEY_KERNELS_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/path.h"

/* Before and behind each array must be so many floats of room: rows are worked on in whole vectors.
 * What is read too much is not used; what is written too much is overwritten with the next row, and
 * behind the last it is spoiled. */
#define IMAGE_SLACK 32u

/* Which input lies under which place of a kernel: under place (c, i, j), of the kernel that makes
 * output (y, x), lies image[c][y * stride + i - pad][x * stride + j - pad], or 0 beyond its border.
 */
struct patches {
    uint32_t channels, height, width; /* of the image */
    uint32_t kernel, stride, pad;     /* kernel below IMAGE_SLACK / 2 */
    uint32_t out_height, out_width;
};

struct image_kernels {
    /* columns[channels * kernel * kernel][out_height * out_width] = the patches of
     * image[channels][height][width]. */
    void (*take)(float *restrict columns, const float *restrict image, const struct patches *p);
    /* The reverse: image = the sum of all in columns that take has from there. */
    void (*give)(float *restrict image, const float *restrict columns, const struct patches *p);
    /* y[planes][count] += bias[planes], then ReLU if wanted; NaN stays NaN. */
    void (*bias)(float *restrict y, const float *restrict bias, size_t planes, size_t count,
                 bool relu);
    /* y[height / 2][width / 2] = the greatest of each 2 x 2 of x[height][width]; an odd last row or
     * column is left out. What is not finite makes NaN. */
    void (*pool)(float *restrict y, const float *restrict x, size_t height, size_t width);
    /* below[height][width] = delta[height / 2][width / 2] at the first of the greatest of each
     * 2 x 2 of x, else 0. y: as pool made it. */
    void (*unpool)(float *restrict below, const float *restrict delta, const float *restrict x,
                   const float *restrict y, size_t height, size_t width);
    /* sums[0] += sum of a[count]; sums[1] += sum of (a - a_shift) * (b[count] - b_shift). */
    void (*sums)(double sums[2], const float *a, const float *b, float a_shift, float b_shift,
                 size_t count);
    /* y[count] = scale * x + shift, then ReLU if wanted. */
    void (*scale)(float *restrict y, const float *restrict x, float scale, float shift,
                  size_t count, bool relu);
    /* y[count] = by_a * a + by_b * b + shift. */
    void (*blend)(float *restrict y, const float *restrict a, const float *restrict b, float by_a,
                  float by_b, float shift, size_t count);
};

/* Call only a supported one. */
extern const struct image_kernels image_kernels[KERNEL_PATHS];

static inline const struct image_kernels *image_kernels_best(void)
{
    return &image_kernels[kernel_path_best()];
}

#endif
