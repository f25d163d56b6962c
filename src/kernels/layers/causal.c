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

KERNEL_ON_PATHS(void, forward, (float *scores, size_t length), forward(scores, length))
KERNEL_ON_PATHS(void, back, (float *restrict delta, const float *restrict shares, size_t length),
                back(delta, shares, length))

#define ROW(path) forward_##path, back_##path

const struct causal_kernels causal_kernels[KERNEL_PATHS] = KERNEL_TABLE(ROW);
