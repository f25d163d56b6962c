/* lanes.h: sums over a row in 16 lanes, added up by halves: one order of operations on every path.
 *
 * A plain sum of floats may not be reordered by the compiler, and so would not vectorise.
 * Thread rule: pure.
 */
#ifndef PARLEY_KERNELS_LANES_H
#define PARLEY_KERNELS_LANES_H

#include <stddef.h>

#include "kernels/path.h"

enum { LANES_COUNT = 16 };

/* The least multiple of LANES_COUNT that is no less than n. */
static inline size_t lanes_whole(size_t n)
{
    return (n + LANES_COUNT - 1) / LANES_COUNT * LANES_COUNT;
}

KERNEL_BODY float lanes_fold(float *lane)
{
    for (int half = LANES_COUNT / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            lane[i] += lane[i + half];
    return lane[0];
}

KERNEL_BODY float lanes_sum(const float *v, size_t n)
{
    float lane[LANES_COUNT] = {0};
    size_t rest = n % LANES_COUNT;
    for (size_t at = 0; at < n - rest; at += LANES_COUNT)
        for (int i = 0; i < LANES_COUNT; i++)
            lane[i] += v[at + i];
    for (size_t i = 0; i < rest; i++)
        lane[i] += v[n - rest + i];
    return lanes_fold(lane);
}

KERNEL_BODY float lanes_dot(const float *a, const float *b, size_t n)
{
    float lane[LANES_COUNT] = {0};
    size_t rest = n % LANES_COUNT;
    for (size_t at = 0; at < n - rest; at += LANES_COUNT)
        for (int i = 0; i < LANES_COUNT; i++)
            lane[i] += a[at + i] * b[at + i];
    for (size_t i = 0; i < rest; i++)
        lane[i] += a[n - rest + i] * b[n - rest + i];
    return lanes_fold(lane);
}

/* Sum of (v - mean)^2. */
KERNEL_BODY float lanes_spread(const float *v, float mean, size_t n)
{
    float lane[LANES_COUNT] = {0};
    size_t rest = n % LANES_COUNT;
    for (size_t at = 0; at < n - rest; at += LANES_COUNT)
        for (int i = 0; i < LANES_COUNT; i++)
            lane[i] += (v[at + i] - mean) * (v[at + i] - mean);
    for (size_t i = 0; i < rest; i++)
        lane[i] += (v[n - rest + i] - mean) * (v[n - rest + i] - mean);
    return lanes_fold(lane);
}

/* The greatest of n at least 1; what it is with a NaN among them is not said. */
KERNEL_BODY float lanes_max(const float *v, size_t n)
{
    float lane[LANES_COUNT];
    size_t rest = n % LANES_COUNT;
    for (int i = 0; i < LANES_COUNT; i++)
        lane[i] = v[0];
    for (size_t at = 0; at < n - rest; at += LANES_COUNT)
        for (int i = 0; i < LANES_COUNT; i++)
            lane[i] = v[at + i] > lane[i] ? v[at + i] : lane[i];
    for (size_t i = 0; i < rest; i++)
        lane[i] = v[n - rest + i] > lane[i] ? v[n - rest + i] : lane[i];
    for (int half = LANES_COUNT / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            lane[i] = lane[i + half] > lane[i] ? lane[i + half] : lane[i];
    return lane[0];
}

#endif
