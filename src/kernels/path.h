/* path.h: one plain loop compiled for several instruction sets, chosen at run time.
 *
 * Every path does the same operations in the same order on the same lanes, and nothing is
 * contracted into a fused multiply-add, so the results are equal to the bit: two nodes on unlike
 * machines still agree. Products of a training step, which BLAS rounds by machine anyway, may be
 * fused where they say so; then the paths that fuse are equal among each other. The choice is a
 * table, not an ifunc: tests walk through all paths, and sanitizers and static linking stay
 * possible.
 */
#ifndef PARLEY_KERNELS_PATH_H
#define PARLEY_KERNELS_PATH_H

#include <stdbool.h>

enum kernel_path { KERNEL_PATH_BASE, KERNEL_PATH_AVX2, KERNEL_PATH_AVX512, KERNEL_PATHS };

#define KERNEL_BODY static inline __attribute__((always_inline))

/* Compiled once for all callers: what it inlines is large. */
#if defined(__clang__)
#define KERNEL_ONCE __attribute__((noinline))
#else
#define KERNEL_ONCE __attribute__((noinline, noclone))
#endif

/* Before a loop: no turn of it needs what another one writes, though the arrays may be one. */
#if defined(__clang__)
#define KERNEL_EACH_ALONE _Pragma("clang loop vectorize(assume_safety)")
#else
#define KERNEL_EACH_ALONE _Pragma("GCC ivdep")
#endif

#if defined(__x86_64__)
#define KERNEL_AVX2 __attribute__((target("avx2,fma")))
#define KERNEL_AVX512 __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,fma")))

static inline bool kernel_path_supported(enum kernel_path path)
{
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (path == KERNEL_PATH_AVX2) return avx2;
    if (path == KERNEL_PATH_AVX512)
        return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
    return true;
}
#else
#define KERNEL_AVX2
#define KERNEL_AVX512

static inline bool kernel_path_supported(enum kernel_path path)
{
    return path == KERNEL_PATH_BASE;
}
#endif

static inline enum kernel_path kernel_path_best(void)
{
    if (kernel_path_supported(KERNEL_PATH_AVX512)) return KERNEL_PATH_AVX512;
    return kernel_path_supported(KERNEL_PATH_AVX2) ? KERNEL_PATH_AVX2 : KERNEL_PATH_BASE;
}

/* The functions inlined_base, inlined_avx2 and inlined_avx512, whose `body` calls `inlined`, a
 * KERNEL_BODY, with their `parameters`, which stand in parentheses. */
#define KERNEL_ON_PATHS(type, inlined, parameters, body)                                           \
    static type inlined##_base parameters                                                          \
    {                                                                                              \
        body;                                                                                      \
    }                                                                                              \
    KERNEL_AVX2 static type inlined##_avx2 parameters                                              \
    {                                                                                              \
        body;                                                                                      \
    }                                                                                              \
    KERNEL_AVX512 static type inlined##_avx512 parameters                                          \
    {                                                                                              \
        body;                                                                                      \
    }

/* Begins an array[KERNEL_PATHS] of structs; ROW(path) lists the functions of one path. */
#define KERNEL_TABLE(ROW)                                                                          \
    {                                                                                              \
        [KERNEL_PATH_BASE] = {ROW(base)}, [KERNEL_PATH_AVX2] = {ROW(avx2)},                        \
        [KERNEL_PATH_AVX512] = {ROW(avx512)},                                                      \
    }

#endif
