/* narrow.c: see narrow.h.
 *
 *   forward   turns the weights into [out][in], so that both factors of a dot product lie in order;
 *             dot products of two rows with a few outputs, whose sums stay in registers
 *   weights   sums of neighbouring weight rows in one vector, which so is full whatever `out` is;
 *             turns them back
 */
#include "kernels/narrow.h"

#include <string.h>

#include "kernels/lanes.h"

enum { PAIR = 2, FEW = 5, QUAD = 4 };
enum { SUMS = 12 }; /* PAIR * FEW, in whole quads */
/* Weight rows between two turns: some KiB. AROUND: a vector pair that begins before the first. */
enum { BLOCK = 64, AROUND = PAIR * LANES_COUNT, STEP = AROUND + BLOCK };

/* ---- Turning --------------------------------------------------------------------------------- */

typedef float quad __attribute__((vector_size(16), aligned(4), may_alias));

struct square {
    quad a, b, c, d; /* its rows; turned: its columns */
};

KERNEL_BODY struct square turned(struct square s)
{
    quad ac_low = __builtin_shufflevector(s.a, s.c, 0, 4, 1, 5);
    quad ac_high = __builtin_shufflevector(s.a, s.c, 2, 6, 3, 7);
    quad bd_low = __builtin_shufflevector(s.b, s.d, 0, 4, 1, 5);
    quad bd_high = __builtin_shufflevector(s.b, s.d, 2, 6, 3, 7);

    return (struct square){__builtin_shufflevector(ac_low, bd_low, 0, 4, 1, 5),
                           __builtin_shufflevector(ac_low, bd_low, 2, 6, 3, 7),
                           __builtin_shufflevector(ac_high, bd_high, 0, 4, 1, 5),
                           __builtin_shufflevector(ac_high, bd_high, 2, 6, 3, 7)};
}

/* to[c * to_step + r] = from[r * from_step + c] */
KERNEL_BODY void turn(float *restrict to, size_t to_step, const float *restrict from,
                      size_t from_step)
{
    struct square s = turned((struct square){*(const quad *)from, *(const quad *)(from + from_step),
                                             *(const quad *)(from + 2 * from_step),
                                             *(const quad *)(from + 3 * from_step)});

    *(quad *)to = s.a;
    *(quad *)(to + to_step) = s.b;
    *(quad *)(to + 2 * to_step) = s.c;
    *(quad *)(to + 3 * to_step) = s.d;
}

static inline size_t whole_quads(size_t n)
{
    return (n + QUAD - 1) / QUAD * QUAD;
}

size_t narrow_turned(size_t in, size_t out)
{
    return whole_quads(out) * lanes_whole(in);
}

/* to: [out][in rounded up], with zeroes behind each row; the rows behind `out` hold anything. */
KERNEL_BODY void turn_weights(float *restrict to, const float *restrict weight, size_t in,
                              size_t out)
{
    size_t step = lanes_whole(in), wide = whole_quads(out), k = 0;

    for (; (k + QUAD - 1) * out + wide <= in * out; k += QUAD)
        for (size_t j = 0; j < wide; j += QUAD)
            turn(to + j * step + k, step, weight + k * out + j, out);
    for (; k < step; k++)
        for (size_t j = 0; j < out; j++)
            to[j * step + k] = k < in ? weight[k * out + j] : 0;
}

/* to: [count][out] and some scratch behind; from: [out in whole quads][STEP]. From right to left,
 * as what is too much of one row falls on the left of the next. */
KERNEL_BODY void turn_back(float *restrict to, const float *restrict from, size_t count, size_t out)
{
    for (size_t k = 0; k < count; k += QUAD)
        for (size_t j = whole_quads(out); j > 0; j -= QUAD)
            turn(to + k * out + j - QUAD, out, from + (j - QUAD) * STEP + k, STEP);
}

/* ---- Sums ------------------------------------------------------------------------------------ */

KERNEL_BODY quad fold_to_quad(const float *lane)
{
    const quad *q = (const quad *)lane;

    return (q[0] + q[2]) + (q[1] + q[3]);
}

/* lanes_fold of QUAD sums at once. */
KERNEL_BODY void fold(float *sums, float lane[QUAD][LANES_COUNT])
{
    struct square s = turned((struct square){fold_to_quad(lane[0]), fold_to_quad(lane[1]),
                                             fold_to_quad(lane[2]), fold_to_quad(lane[3])});

    *(quad *)sums = (s.a + s.c) + (s.b + s.d);
}

/* How many of `rest` outputs to take next: at most FEW, and no odd little rest at the end. */
static inline size_t few_of(size_t rest)
{
    size_t times = (rest + FEW - 1) / FEW;

    return (rest + times - 1) / times;
}

static inline const float *row_of(const struct narrow *n, size_t row)
{
    return n->x + (n->at != NULL ? n->at[row] : row * n->in);
}

#define PATH_LOOPS "kernels/narrow_path.h"
#include "kernels/paths.h"

const struct narrow_kernels narrow_kernels[KERNEL_PATHS] = {
    [KERNEL_PATH_BASE] = {forward_base, weights_base, add_dots_base, across_base},
    [KERNEL_PATH_AVX2] = {forward_avx2, weights_avx2, add_dots_avx2, across_avx2},
    [KERNEL_PATH_AVX512] = {forward_avx512, weights_avx512, add_dots_avx512, across_avx512},
};
