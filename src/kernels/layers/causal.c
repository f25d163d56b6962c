/* causal.c: plain loops, compiled for each path. */
#include "kernels/layers/causal.h"

#include <string.h>

#include "kernels/layers/exp.h"
#include "kernels/layers/lanes.h"

KERNEL_BODY void forward(float *scores, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        float *row = scores + i * length;
        size_t seen = i + 1;
        float max = lanes_max(row, seen);
        size_t whole = lanes_whole(seen);
        for (size_t j = 0; j < (whole < length ? whole : length); j++)
            row[j] = exp_of(row[j] - max); /* past `seen` too: single ones would take longer */
        float factor = 1 / lanes_sum(row, seen);
        for (size_t j = 0; j < seen; j++)
            row[j] *= factor;
        memset(row + seen, 0, (length - seen) * sizeof *row);
    }
}

/* s = softmax(z): the loss by z is s * (delta - sum of delta s). */
KERNEL_BODY void back(float *restrict delta, const float *restrict shares, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        float *restrict d = delta + i * length;
        const float *restrict s = shares + i * length;
        size_t seen = i + 1;
        float sum = lanes_dot(d, s, seen);
        for (size_t j = 0; j < seen; j++)
            d[j] = s[j] * (d[j] - sum);
        memset(d + seen, 0, (length - seen) * sizeof *d);
    }
}

#define PATH(suffix, target)                                                                       \
    target static void forward_##suffix(float *scores, size_t length)                              \
    {                                                                                              \
        forward(scores, length);                                                                   \
    }                                                                                              \
    target static void back_##suffix(float *restrict delta, const float *restrict shares,          \
                                     size_t length)                                                \
    {                                                                                              \
        back(delta, shares, length);                                                               \
    }

PATH(base, )
PATH(avx2, KERNEL_AVX2)
PATH(avx512, KERNEL_AVX512)

const struct causal_kernels causal_kernels[KERNEL_PATHS] = {
    [KERNEL_PATH_BASE] = {forward_base, back_base},
    [KERNEL_PATH_AVX2] = {forward_avx2, back_avx2},
    [KERNEL_PATH_AVX512] = {forward_avx512, back_avx512},
};
