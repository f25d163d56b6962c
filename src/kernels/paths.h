/* paths.h: includes PATH_LOOPS, a header of loops, once for each path of kernels/path.h.
 *
 * It sees TARGET, the attribute of its functions; LANES, the floats in a register;
 * NAME(function), its name on this path, like forward_avx2; and sums of products: PLUS(sum, a, b)
 * is sum + a * b of vectors, PLUS_ONE of floats, fused on all paths but the base. BYTES(from) are
 * the next LANES bytes as floats. KEPT(v) has the vector in a register: GCC may load one anew for
 * each use. LIST(name, n) is the list of numbers name_n, for shuffles of n floats. What it defines
 * itself it undefines.
 *
 * For loops that are written as vectors. They are not inlined into functions of other targets as
 * elsewhere: GCC takes vectors apart by the target of the function in which they are written.
 */
#if defined(__x86_64__)
#include <immintrin.h>
#define FUSED(bits, sum, a, b)                                                                     \
    ((__typeof__(sum))_mm##bits##_fmadd_ps((__m##bits)(a), (__m##bits)(b), (__m##bits)(sum)))
#define FUSED_ONE(sum, a, b) __builtin_fmaf(a, b, sum)
#define BYTES_8(from)                                                                              \
    ((lanes)_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)(from)))))
#define BYTES_16(from)                                                                             \
    ((lanes)_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)(from)))))
#define IN_REGISTER(kind, v) __asm__("" : "+" kind(v))
#else
#define FUSED(bits, sum, a, b) ((sum) + (a) * (b))
#define FUSED_ONE(sum, a, b) ((sum) + (a) * (b))
#define BYTES_8(from) ((lanes){FOUR(from), FOUR((from) + 4)})
#define BYTES_16(from) ((lanes){FOUR(from), FOUR((from) + 4), FOUR((from) + 8), FOUR((from) + 12)})
#define IN_REGISTER(kind, v)
#endif

#define FOUR(from) (from)[0], (from)[1], (from)[2], (from)[3]
#define JOINED(name, n) name##_##n
#define LIST(name, n) JOINED(name, n)

#define TARGET
#define LANES 4
#define BYTES(from) ((lanes){FOUR(from)})
#define KEPT(v) IN_REGISTER("x", v)
#define PLUS(sum, a, b) ((sum) + (a) * (b))
#define PLUS_ONE(sum, a, b) ((sum) + (a) * (b))
#define NAME(function) function##_base
#include PATH_LOOPS
#undef TARGET
#undef LANES
#undef BYTES
#undef KEPT
#undef PLUS
#undef PLUS_ONE
#undef NAME

#define TARGET KERNEL_AVX2
#define LANES 8
#define BYTES(from) BYTES_8(from)
#define KEPT(v) IN_REGISTER("x", v)
#define PLUS(sum, a, b) FUSED(256, sum, a, b)
#define PLUS_ONE(sum, a, b) FUSED_ONE(sum, a, b)
#define NAME(function) function##_avx2
#include PATH_LOOPS
#undef TARGET
#undef LANES
#undef BYTES
#undef KEPT
#undef PLUS
#undef PLUS_ONE
#undef NAME

#define TARGET KERNEL_AVX512
#define LANES 16
#define BYTES(from) BYTES_16(from)
#define KEPT(v) IN_REGISTER("v", v)
#define PLUS(sum, a, b) FUSED(512, sum, a, b)
#define PLUS_ONE(sum, a, b) FUSED_ONE(sum, a, b)
#define NAME(function) function##_avx512
#include PATH_LOOPS
#undef TARGET
#undef LANES
#undef BYTES
#undef KEPT
#undef PLUS
#undef PLUS_ONE
#undef NAME

#undef JOINED
#undef LIST
#undef FUSED
#undef FUSED_ONE
#undef BYTES_8
#undef BYTES_16
#undef IN_REGISTER
#undef FOUR
#undef PATH_LOOPS
