/* gelu.h: the Gaussian error linear unit in the form that GPT-2 has (Hendrycks, Gimpel,
 * arXiv:1606.08415, section 2).
 *
 *   y = x * sigmoid(2 u), u = sqrt(2 / pi) * (x + 0.044715 x^3), which is x/2 * (1 + tanh u)
 *
 * Each output is computed by one fixed sequence of operations, the same on every path.
 * Thread rule: pure.
 */
#ifndef PARLEY_KERNELS_GELU_H
#define PARLEY_KERNELS_GELU_H

#include <stddef.h>

#include "kernels/path.h"

struct gelu_kernels {
    void (*forward)(float *restrict y, const float *restrict x, size_t count);
    /* below: [count], the loss by x, of delta[count], the loss by y. */
    void (*back)(float *restrict below, const float *restrict delta, const float *restrict x,
                 size_t count);
};

/* Call only a supported one. */
extern const struct gelu_kernels gelu_kernels[KERNEL_PATHS];

static inline const struct gelu_kernels *gelu_kernels_best(void)
{
    return &gelu_kernels[kernel_path_best()];
}

#endif
