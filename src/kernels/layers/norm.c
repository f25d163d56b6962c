/* norm.c: plain loops, compiled for each path. */
#include "kernels/layers/norm.h"

#include <math.h>
#include <string.h>

#include "kernels/layers/lanes.h"

#define VARIANCE_MORE 1e-5f

KERNEL_BODY void forward(float *restrict y, float *restrict stats, const float *restrict x,
                         const float *restrict gain, const float *restrict bias, size_t rows,
                         size_t width)
{
    for (size_t row = 0; row < rows; row++, x += width, y += width, stats += 2) {
        float mean = lanes_sum(x, width) / (float)width;
        float variance = lanes_spread(x, mean, width) / (float)width;
        float factor = 1 / sqrtf(variance + VARIANCE_MORE);
        for (size_t j = 0; j < width; j++)
            y[j] = (x[j] - mean) * factor * gain[j] + bias[j];
        stats[0] = mean;
        stats[1] = factor;
    }
}

/* With h = (x - mean) * factor and e = delta * gain, the loss by h:
 * below = factor * (e - mean of e - h * mean of e h). */
KERNEL_BODY void back(float *restrict below, float *restrict gain_sums, float *restrict bias_sums,
                      const float *restrict delta, const float *restrict x,
                      const float *restrict stats, const float *restrict gain, size_t rows,
                      size_t width)
{
    memset(gain_sums, 0, width * sizeof *gain_sums);
    memset(bias_sums, 0, width * sizeof *bias_sums);
    for (size_t row = 0; row < rows; row++, stats += 2) {
        const float *restrict d = delta + row * width, *restrict v = x + row * width;
        float *restrict to = below + row * width;
        float mean = stats[0], factor = stats[1], sums[2][LANES_COUNT] = {{0}};
        for (size_t j = 0; j < width; j++) {
            gain_sums[j] += d[j] * ((v[j] - mean) * factor);
            bias_sums[j] += d[j];
        }
        size_t rest = width % LANES_COUNT, whole = width - rest;
        for (size_t at = 0; at < whole; at += LANES_COUNT) {
            for (int i = 0; i < LANES_COUNT; i++) {
                float e = d[at + i] * gain[at + i];
                sums[0][i] += e;
                sums[1][i] += e * ((v[at + i] - mean) * factor);
            }
        }
        for (size_t i = 0; i < rest; i++) {
            float e = d[whole + i] * gain[whole + i];
            sums[0][i] += e;
            sums[1][i] += e * ((v[whole + i] - mean) * factor);
        }
        float e_mean = lanes_fold(sums[0]) / (float)width;
        float eh_mean = lanes_fold(sums[1]) / (float)width;
        for (size_t j = 0; j < width; j++)
            to[j] = factor * (d[j] * gain[j] - e_mean - (v[j] - mean) * factor * eh_mean);
    }
}

KERNEL_ON_PATHS(void, forward,
                (float *restrict y, float *restrict stats, const float *restrict x,
                 const float *restrict gain, const float *restrict bias, size_t rows, size_t width),
                forward(y, stats, x, gain, bias, rows, width))
KERNEL_ON_PATHS(void, back,
                (float *restrict below, float *restrict gain_sums, float *restrict bias_sums,
                 const float *restrict delta, const float *restrict x, const float *restrict stats,
                 const float *restrict gain, size_t rows, size_t width),
                back(below, gain_sums, bias_sums, delta, x, stats, gain, rows, width))

#define ROW(path) forward_##path, back_##path

const struct norm_kernels norm_kernels[KERNEL_PATHS] = KERNEL_TABLE(ROW);
