/* image.c: plain loops, compiled for each path.
 *
 * Rows of small images are shorter than a vector or two, so whole vectors are written: what is too
 * much of one row is overwritten with the next.
 */
#include "kernels/image.h"

#include <string.h>

enum { LANES = 16, MOVED_FLOATS = 512 };

/* Compilers take plain loops of 16 steps apart before they see vectors in them; so these are said
 * to be vectors, which each path has in one or several registers. */
#define LANED __attribute__((vector_size(LANES * 4), aligned(4), may_alias))
typedef float lanes LANED;
typedef int32_t bits LANED;

/* Of variables whose address is taken. GCC takes them to lie as whole vectors do; AddressSanitizer
 * puts them where their type says. */
#define OWN _Alignas(LANES * 4)

static const bits numbers = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

#define EVEN(a, b)                                                                                 \
    __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
#define ODD(a, b)                                                                                  \
    __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)
/* Each lane twice, of the lower and the upper half. */
#define LOW_TWICE(a) __builtin_shufflevector(a, a, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7)
#define HIGH_TWICE(a)                                                                              \
    __builtin_shufflevector(a, a, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15)
/* Of each pair of lanes the first, or the second, in both. */
#define FIRSTS(a)                                                                                  \
    __builtin_shufflevector(a, a, 0, 0, 2, 2, 4, 4, 6, 6, 8, 8, 10, 10, 12, 12, 14, 14)
#define SECONDS(a)                                                                                 \
    __builtin_shufflevector(a, a, 1, 1, 3, 3, 5, 5, 7, 7, 9, 9, 11, 11, 13, 13, 15, 15)

#define TARGET
#define NAME(function) function##_base
#include "kernels/image_path.h"

#define TARGET KERNEL_AVX2
#define NAME(function) function##_avx2
#include "kernels/image_path.h"

#define TARGET KERNEL_AVX512
#define NAME(function) function##_avx512
#include "kernels/image_path.h"

#define ROW(s)                                                                                     \
    {                                                                                              \
        take_##s, give_##s, add_bias_##s, pool_##s, unpool_##s, sum_##s, scale_##s, blend_##s      \
    }

const struct image_kernels image_kernels[KERNEL_PATHS] = {
    [KERNEL_PATH_BASE] = ROW(base),
    [KERNEL_PATH_AVX2] = ROW(avx2),
    [KERNEL_PATH_AVX512] = ROW(avx512),
};
