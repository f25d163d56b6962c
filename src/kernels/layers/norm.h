/* norm.h: layer normalisation (Ba, Kiros, Hinton, arXiv:1607.06450, section 3).
 *
 *   y = (x - mean) / sqrt(variance + 1e-5) * gain + bias, both over a row
 *
 * Each output is computed by one fixed sequence of operations, the same on every path.
 * Thread rule: pure.
 */
#ifndef PARLEY_KERNELS_NORM_H
#define PARLEY_KERNELS_NORM_H

#include <stddef.h>

#include "kernels/path.h"

struct norm_kernels {
    /* y, x: [rows][width]; gain, bias: [width]. stats: [rows][2], each row's mean and what its
     * distance from it was multiplied by, for the way back. */
    void (*forward)(float *restrict y, float *restrict stats, const float *restrict x,
                    const float *restrict gain, const float *restrict bias, size_t rows,
                    size_t width);
    /* below: [rows][width], set to the loss by x, where delta[rows][width] is the loss by y.
     * gain_sums, bias_sums: [width], set to the loss by gain and bias. */
    void (*back)(float *restrict below, float *restrict gain_sums, float *restrict bias_sums,
                 const float *restrict delta, const float *restrict x, const float *restrict stats,
                 const float *restrict gain, size_t rows, size_t width);
};

/* Call only a supported one. */
extern const struct norm_kernels norm_kernels[KERNEL_PATHS];

static inline const struct norm_kernels *norm_kernels_best(void)
{
    return &norm_kernels[kernel_path_best()];
}

#endif
