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

enum { PAIR = 2, FEW = 5, QUAD = 4, OCT = 8 };
enum { SUMS = 16 }; /* PAIR * FEW, in whole octs */
/* Weight rows between two turns: some KiB. AROUND: a vector pair that begins before the first. */
enum { BLOCK = 64, AROUND = PAIR * LANES_COUNT, STEP = AROUND + BLOCK };

/* ---- Turning --------------------------------------------------------------------------------- */

typedef float quad __attribute__((vector_size(16), aligned(4), may_alias));
typedef float oct __attribute__((vector_size(32), aligned(4), may_alias));

/* Two squares of 4 x 4, one in the lower halves and one in the upper ones. */
struct squares {
    oct a, b, c, d; /* their rows; turned: their columns */
};

KERNEL_BODY void turn(struct squares *s)
{
    oct ac_low = __builtin_shufflevector(s->a, s->c, 0, 8, 1, 9, 4, 12, 5, 13);
    oct ac_high = __builtin_shufflevector(s->a, s->c, 2, 10, 3, 11, 6, 14, 7, 15);
    oct bd_low = __builtin_shufflevector(s->b, s->d, 0, 8, 1, 9, 4, 12, 5, 13);
    oct bd_high = __builtin_shufflevector(s->b, s->d, 2, 10, 3, 11, 6, 14, 7, 15);

    s->a = __builtin_shufflevector(ac_low, bd_low, 0, 8, 1, 9, 4, 12, 5, 13);
    s->b = __builtin_shufflevector(ac_low, bd_low, 2, 10, 3, 11, 6, 14, 7, 15);
    s->c = __builtin_shufflevector(ac_high, bd_high, 0, 8, 1, 9, 4, 12, 5, 13);
    s->d = __builtin_shufflevector(ac_high, bd_high, 2, 10, 3, 11, 6, 14, 7, 15);
}

KERNEL_BODY void join(oct *to, const float *low, const float *high)
{
    *to = __builtin_shufflevector(*(const quad *)low, *(const quad *)high, 0, 1, 2, 3, 4, 5, 6, 7);
}

/* to: four rows, `step` apart, of 4 floats each. */
KERNEL_BODY void put_low(float *to, size_t step, const struct squares *s)
{
    *(quad *)to = __builtin_shufflevector(s->a, s->a, 0, 1, 2, 3);
    *(quad *)(to + step) = __builtin_shufflevector(s->b, s->b, 0, 1, 2, 3);
    *(quad *)(to + 2 * step) = __builtin_shufflevector(s->c, s->c, 0, 1, 2, 3);
    *(quad *)(to + 3 * step) = __builtin_shufflevector(s->d, s->d, 0, 1, 2, 3);
}

KERNEL_BODY void put_high(float *to, size_t step, const struct squares *s)
{
    *(quad *)to = __builtin_shufflevector(s->a, s->a, 4, 5, 6, 7);
    *(quad *)(to + step) = __builtin_shufflevector(s->b, s->b, 4, 5, 6, 7);
    *(quad *)(to + 2 * step) = __builtin_shufflevector(s->c, s->c, 4, 5, 6, 7);
    *(quad *)(to + 3 * step) = __builtin_shufflevector(s->d, s->d, 4, 5, 6, 7);
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

    for (; (k + OCT - 1) * out + wide <= in * out; k += OCT)
        for (size_t j = 0; j < wide; j += QUAD) {
            const float *from = weight + k * out + j;
            struct squares s;

            join(&s.a, from, from + 4 * out);
            join(&s.b, from + out, from + 5 * out);
            join(&s.c, from + 2 * out, from + 6 * out);
            join(&s.d, from + 3 * out, from + 7 * out);
            turn(&s);
            *(oct *)(to + j * step + k) = s.a;
            *(oct *)(to + (j + 1) * step + k) = s.b;
            *(oct *)(to + (j + 2) * step + k) = s.c;
            *(oct *)(to + (j + 3) * step + k) = s.d;
        }
    for (; k < step; k++)
        for (size_t j = 0; j < out; j++)
            to[j * step + k] = k < in ? weight[k * out + j] : 0;
}

/* to: [count][out] and some scratch behind; from: [out in whole quads][STEP]. From right to left,
 * as what is too much of one row falls on the left of the next. */
KERNEL_BODY void turn_back(float *restrict to, const float *restrict from, size_t count, size_t out)
{
    for (size_t k = 0; k < count; k += OCT, to += OCT * out)
        for (size_t j = whole_quads(out); j > 0; j -= QUAD) {
            const float *row = from + (j - QUAD) * STEP + k;
            float *at = to + j - QUAD;
            struct squares s = {*(const oct *)row, *(const oct *)(row + STEP),
                                *(const oct *)(row + 2 * STEP), *(const oct *)(row + 3 * STEP)};

            turn(&s);
            put_low(at, out, &s);
            put_high(at + 4 * out, out, &s);
        }
}

/* ---- Sums ------------------------------------------------------------------------------------ */

KERNEL_BODY void fold_to_quads(oct *to, const float *low, const float *high)
{
    const quad *l = (const quad *)low, *h = (const quad *)high;
    quad one = (l[0] + l[2]) + (l[1] + l[3]), two = (h[0] + h[2]) + (h[1] + h[3]);

    *to = __builtin_shufflevector(one, two, 0, 1, 2, 3, 4, 5, 6, 7);
}

/* lanes_fold of OCT sums at once. */
KERNEL_BODY void fold(float *sums, float lane[OCT][LANES_COUNT])
{
    struct squares s;

    fold_to_quads(&s.a, lane[0], lane[4]);
    fold_to_quads(&s.b, lane[1], lane[5]);
    fold_to_quads(&s.c, lane[2], lane[6]);
    fold_to_quads(&s.d, lane[3], lane[7]);
    turn(&s);
    *(oct *)sums = (s.a + s.c) + (s.b + s.d);
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
