/* layer.c: plain loops, compiled for each path. */
#include "kernels/layers/layer.h"

#include <string.h>

#include "kernels/layers/exp.h"

KERNEL_BODY void add_bias(float *restrict y, const float *restrict bias, size_t rows, size_t out,
                          bool relu)
{
    for (size_t row = 0; row < rows; row++, y += out) {
        if (relu) {
            for (size_t j = 0; j < out; j++) {
                float v = y[j] + bias[j];
                y[j] = v < 0 ? 0 : v; /* this way round NaN stays NaN */
            }
        } else {
            for (size_t j = 0; j < out; j++)
                y[j] += bias[j];
        }
    }
}

KERNEL_BODY void mask(float *restrict delta, const float *restrict output, size_t count)
{
    for (size_t i = 0; i < count; i++)
        delta[i] = output[i] > 0 ? delta[i] : 0;
}

KERNEL_BODY void sum_rows(float *restrict sums, const float *restrict delta, size_t rows,
                          size_t out)
{
    memcpy(sums, delta, out * sizeof *sums);
    for (size_t row = 1; row < rows; row++)
        for (size_t j = 0; j < out; j++)
            sums[j] += delta[row * out + j];
}

KERNEL_BODY void exp_all(float *logits, size_t count)
{
    for (size_t i = 0; i < count; i++)
        logits[i] = exp_of(logits[i]);
}

#define PATH(suffix, target)                                                                       \
    target static void bias_##suffix(float *restrict y, const float *restrict bias, size_t rows,   \
                                     size_t out, bool relu)                                        \
    {                                                                                              \
        add_bias(y, bias, rows, out, relu);                                                        \
    }                                                                                              \
    target static void mask_##suffix(float *restrict delta, const float *restrict output,          \
                                     size_t count)                                                 \
    {                                                                                              \
        mask(delta, output, count);                                                                \
    }                                                                                              \
    target static void sum_##suffix(float *restrict sums, const float *restrict delta,             \
                                    size_t rows, size_t out)                                       \
    {                                                                                              \
        sum_rows(sums, delta, rows, out);                                                          \
    }                                                                                              \
    target static void exp_##suffix(float *logits, size_t count)                                   \
    {                                                                                              \
        exp_all(logits, count);                                                                    \
    }

PATH(base, )
PATH(avx2, KERNEL_AVX2)
PATH(avx512, KERNEL_AVX512)

const struct layer_kernels layer_kernels[KERNEL_PATHS] = {
    [KERNEL_PATH_BASE] = {bias_base, mask_base, sum_base, exp_base},
    [KERNEL_PATH_AVX2] = {bias_avx2, mask_avx2, sum_avx2, exp_avx2},
    [KERNEL_PATH_AVX512] = {bias_avx512, mask_avx512, sum_avx512, exp_avx512},
};
