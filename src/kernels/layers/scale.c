/* scale.c: plain loops, compiled for each path. */
#include "kernels/layers/scale.h"

KERNEL_BODY void bytes(const uint8_t *restrict from, float *restrict to, size_t n, float shift,
                       float scale)
{
    for (size_t i = 0; i < n; i++)
        to[i] = ((float)from[i] - shift) * scale;
}

KERNEL_BODY void floats(const float *restrict from, float *restrict to, size_t n,
                        const float *restrict shift, const float *restrict scale)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (from[i] - shift[i]) * scale[i];
}

KERNEL_ON_PATHS(void, bytes,
                (const uint8_t *restrict from, float *restrict to, size_t n, float shift,
                 float scale),
                bytes(from, to, n, shift, scale))
KERNEL_ON_PATHS(void, floats,
                (const float *restrict from, float *restrict to, size_t n,
                 const float *restrict shift, const float *restrict scale),
                floats(from, to, n, shift, scale))

#define ROW(path) bytes_##path, floats_##path

const struct scale_kernels scale_kernels[KERNEL_PATHS] = KERNEL_TABLE(ROW);

void scale_bytes(const uint8_t *restrict from, float *restrict to, size_t n, float shift,
                 float scale)
{
    scale_kernels[kernel_path_best()].bytes(from, to, n, shift, scale);
}

void scale_floats(const float *restrict from, float *restrict to, size_t n,
                  const float *restrict shift, const float *restrict scale)
{
    scale_kernels[kernel_path_best()].floats(from, to, n, shift, scale);
}
