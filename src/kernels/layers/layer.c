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

KERNEL_ON_PATHS(void, add_bias,
                (float *restrict y, const float *restrict bias, size_t rows, size_t out, bool relu),
                add_bias(y, bias, rows, out, relu))
KERNEL_ON_PATHS(void, mask, (float *restrict delta, const float *restrict output, size_t count),
                mask(delta, output, count))
KERNEL_ON_PATHS(void, sum_rows,
                (float *restrict sums, const float *restrict delta, size_t rows, size_t out),
                sum_rows(sums, delta, rows, out))
KERNEL_ON_PATHS(void, exp_all, (float *logits, size_t count), exp_all(logits, count))

#define ROW(path) add_bias_##path, mask_##path, sum_rows_##path, exp_all_##path

const struct layer_kernels layer_kernels[KERNEL_PATHS] = KERNEL_TABLE(ROW);
