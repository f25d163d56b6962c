/* causal.h: the softmax of attention that looks back only: row i over the columns 0 to i.
 *
 * Each output is computed by one fixed sequence of operations, the same on every path.
 * Thread rule: pure.
 */
#ifndef PARLEY_KERNELS_CAUSAL_H
#define PARLEY_KERNELS_CAUSAL_H

#include <stddef.h>

#include "kernels/path.h"

struct causal_kernels {
    /* scores: [length][length], in place: each row's softmax over its columns up to the diagonal,
     * 0 right of it, whatever stood there. */
    void (*forward)(float *scores, size_t length);
    /* delta: [length][length], the loss by the shares[length][length] that forward made, becomes
     * the loss by the scores. */
    void (*back)(float *restrict delta, const float *restrict shares, size_t length);
};

/* Call only a supported one. */
extern const struct causal_kernels causal_kernels[KERNEL_PATHS];

static inline const struct causal_kernels *causal_kernels_best(void)
{
    return &causal_kernels[kernel_path_best()];
}

#endif
