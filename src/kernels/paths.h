/* paths.h: includes PATH_LOOPS, a header of loops, once for each path of kernels/path.h.
 *
 * It sees TARGET, the attribute of its functions; LANES, the floats in a register; and
 * NAME(function), its name on this path, like forward_avx2. What it defines itself it undefines.
 *
 * For loops that are written as vectors. They are not inlined into functions of other targets as
 * elsewhere: GCC takes vectors apart by the target of the function in which they are written.
 */
#define TARGET
#define LANES 4
#define NAME(function) function##_base
#include PATH_LOOPS
#undef TARGET
#undef LANES
#undef NAME

#define TARGET KERNEL_AVX2
#define LANES 8
#define NAME(function) function##_avx2
#include PATH_LOOPS
#undef TARGET
#undef LANES
#undef NAME

#define TARGET KERNEL_AVX512
#define LANES 16
#define NAME(function) function##_avx512
#include PATH_LOOPS
#undef TARGET
#undef LANES
#undef NAME

#undef PATH_LOOPS
