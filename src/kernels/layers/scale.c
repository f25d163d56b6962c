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

#define PATH(suffix, target)                                                                       \
    target static void bytes_##suffix(const uint8_t *restrict from, float *restrict to, size_t n,  \
                                      float shift, float scale)                                    \
    {                                                                                              \
        bytes(from, to, n, shift, scale);                                                          \
    }                                                                                              \
    target static void floats_##suffix(const float *restrict from, float *restrict to, size_t n,   \
                                       const float *restrict shift, const float *restrict scale)   \
    {                                                                                              \
        floats(from, to, n, shift, scale);                                                         \
    }

PATH(base, )
PATH(avx2, KERNEL_AVX2)
PATH(avx512, KERNEL_AVX512)

const struct scale_kernels scale_kernels[KERNEL_PATHS] = {
    [KERNEL_PATH_BASE] = {bytes_base, floats_base},
    [KERNEL_PATH_AVX2] = {bytes_avx2, floats_avx2},
    [KERNEL_PATH_AVX512] = {bytes_avx512, floats_avx512},
};

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
