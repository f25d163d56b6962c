/* narrow.h: the products of a dense layer with few outputs, as the last one of a classifier is.
 *
 *   forward   y[rows][out] = x[rows][in] * weight[in][out] + bias[out], then ReLU if wanted
 *   weights   into[count][out] = keep * from + scale * (x[rows][count], transposed,
 *                                                       * delta[rows][out])
 *   add_dots  y[rows][out] += x[rows][in] * (turned[out][in], transposed)
 *   across    to[out][in] = (delta[rows][out], transposed) * x[rows][in]
 *
 * BLAS copies its operands into an order of its own and computes in tiles that such a layer does
 * not fill; here both are most of the time. With 784 inputs, 10 outputs and 32 rows both products
 * together take 10 us, on AVX2 14, and BLAS's 15 and 26. Bytes are not made floats in memory first,
 * which takes 5 us more and pushes 100 kB through the cache.
 * Order of a sum: forward in 16 lanes, term i in lane i modulo 16, from the first on; then
 * lanes.h's halves, then the bias; add_dots alike, on y. weights and across: from the first row on.
 * Of pixels the bytes themselves are multiplied: forward, scale goes to the weights, and the bias
 * loses shift times their sum; sums of weights begin with -shift times the sum of delta.
 * Rows of x may overlap: a convolution's are its patches, which lie in one padded image.
 * On all paths but the base products are fused with their sums; those paths give the same bits.
 * Ownership: all arrays are the caller's and distinct; they need neither alignment nor slack.
 * Thread rule: pure.
 */
#ifndef PARLEY_KERNELS_NARROW_H
#define PARLEY_KERNELS_NARROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/layers/scale.h"
#include "kernels/path.h"

#define NARROW_OUT_MAX 16u

struct narrow {
    size_t rows, in, out; /* each at least 1; out at most NARROW_OUT_MAX */
    const float *x;       /* [rows][in] */
    const uint32_t *at;   /* [rows]: where in x each begins; NULL: one behind the other */
    struct pixels pixels; /* with bytes: x is what they mean, and stands nowhere */
};

struct narrow_kernels {
    /* turned: [narrow_turned(in, out)], scratch. */
    void (*forward)(const struct narrow *n, const float *weight, const float *bias, float *turned,
                    float *y, bool relu);
    /* For the weight rows first .. first + count - 1, which are those of `from` and `into`; these
     * may be one. keep 0: from is not read. */
    void (*weights)(const struct narrow *n, size_t first, size_t count, const float *delta,
                    float scale, float keep, const float *from, float *into);
    /* Their inner parts, for convolutions of few channels. turned: [out][in in whole 16], zeroes
     * behind each row. */
    void (*add_dots)(const struct narrow *n, const float *turned, float *y);
    void (*across)(const struct narrow *n, const float *delta, float *to);
};

/* Floats. */
size_t narrow_turned(size_t in, size_t out);

/* Call only a supported one. */
extern const struct narrow_kernels narrow_kernels[KERNEL_PATHS];

static inline const struct narrow_kernels *narrow_kernels_best(void)
{
    return &narrow_kernels[kernel_path_best()];
}

#endif
