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

KERNEL_ON_PATHS(void, forward, (float *restrict y, const float *restrict x, size_t count),
                forward(y, x, count))
KERNEL_ON_PATHS(void, back,
                (float *restrict below, const float *restrict delta, const float *restrict x,
                 size_t count),
                back(below, delta, x, count))

#define ROW(path) forward_##path, back_##path

const struct gelu_kernels gelu_kernels[KERNEL_PATHS] = KERNEL_TABLE(ROW);
