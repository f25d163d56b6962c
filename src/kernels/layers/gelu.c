/* gelu.c: plain loops, compiled for each path. */
#include "kernels/layers/gelu.h"

#include <math.h>

#include "kernels/layers/exp.h"

#define TWICE_ROOT 1.5957691216057308f /* 2 sqrt(2 / pi) */
#define CUBIC 0.044715f

/* sigmoid(t), from e to a power that is not above 0. */
KERNEL_BODY float sigmoid(float t)
{
    float e = exp_of(-fabsf(t));
    return (t < 0 ? e : 1.0f) / (1.0f + e);
}

KERNEL_BODY void forward(float *restrict y, const float *restrict x, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float v = x[i];
        y[i] = v * sigmoid(TWICE_ROOT * (v + CUBIC * v * v * v));
    }
}

KERNEL_BODY void back(float *restrict below, const float *restrict delta, const float *restrict x,
                      size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float v = x[i];
        float s = sigmoid(TWICE_ROOT * (v + CUBIC * v * v * v));
        float slope = TWICE_ROOT * (1.0f + 3 * CUBIC * v * v);
        below[i] = delta[i] * (s + v * s * (1.0f - s) * slope);
    }
}

#define PATH(suffix, target)                                                                       \
    target static void forward_##suffix(float *restrict y, const float *restrict x, size_t count)  \
    {                                                                                              \
        forward(y, x, count);                                                                      \
    }                                                                                              \
    target static void back_##suffix(float *restrict below, const float *restrict delta,           \
                                     const float *restrict x, size_t count)                        \
    {                                                                                              \
        back(below, delta, x, count);                                                              \
    }

PATH(base, )
PATH(avx2, KERNEL_AVX2)
PATH(avx512, KERNEL_AVX512)

const struct gelu_kernels gelu_kernels[KERNEL_PATHS] = {
    [KERNEL_PATH_BASE] = {forward_base, back_base},
    [KERNEL_PATH_AVX2] = {forward_avx2, back_avx2},
    [KERNEL_PATH_AVX512] = {forward_avx512, back_avx512},
};
