/* layer.h: what a dense layer does beside its matrix products.
 *
 * Each output is computed by one fixed sequence of operations, the same on every path.
 * Thread rule: pure.
 */
#ifndef PARLEY_KERNELS_LAYER_H
#define PARLEY_KERNELS_LAYER_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/path.h"

struct layer_kernels {
    /* y: [rows][out] += bias[out], then ReLU if wanted; NaN stays NaN. */
    void (*bias)(float *restrict y, const float *restrict bias, size_t rows, size_t out, bool relu);
    /* delta: [count], zeroed where the ReLU gave zero. */
    void (*mask)(float *restrict delta, const float *restrict output, size_t count);
    /* sums[out] = the rows of delta[rows][out] added up, first to last; rows at least 1. */
    void (*sum)(float *restrict sums, const float *restrict delta, size_t rows, size_t out);
    /* logits[count], none above 0: e to their power, within 2 ulp down to -87 and 1.6e-38 below;
     * NaN stays NaN. */
    void (*exp)(float *logits, size_t count);
};

/* Call only a supported one. */
extern const struct layer_kernels layer_kernels[KERNEL_PATHS];

static inline const struct layer_kernels *layer_kernels_best(void)
{
    return &layer_kernels[kernel_path_best()];
}

#endif
