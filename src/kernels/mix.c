/* mix.c: the loops of averaging.
 *
 *   1. a block (2,048 floats) is read once: the difference is written, its squares go into 16 lanes
 *      of fp64 sums, and so does the difference itself, with a sign of the block and the lane
 *   2. the last, short block is copied into a zeroed one: zeros change no sum
 *   3. the lanes are added up by halves
 *
 * What can't be is decided by the sums: a square of an fp32 fits fp64 with room for 2^760 of them,
 * so a sum that is not finite says that an element was not. An element of either vector that is not
 * finite makes one of the difference that is not.
 */
#include "kernels/mix.h"

#include <math.h>
#include <string.h>

#include "core/rng.h"

#define MASS_STREAM UINT64_C(0x6d617373) /* apart from the other streams of one seed */

static double fold(double *lane)
{
    for (int half = MIX_LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            lane[i] += lane[i + half];
    return lane[0];
}

#if defined(__clang__)
#define MIX_UNROLL _Pragma("clang loop unroll(full)")
#else
#define MIX_UNROLL _Pragma("GCC unroll 16")
#endif

enum { LINE = 16, AHEAD = 1024 }; /* floats in a cache line; bytes that a pass looks ahead */

/* What a pass over p comes to soon, once a cache line: what the processor fetches by itself ends
 * with the page, and what is only written it fetches late. It may be past p's end, where no pointer
 * may point. */
KERNEL_BODY void will_read(const float *p, size_t at)
{
    if (at % LINE == 0) __builtin_prefetch((const void *)((uintptr_t)(p + at) + AHEAD));
}

KERNEL_BODY void will_write(const float *p, size_t at)
{
    if (at % LINE == 0) __builtin_prefetch((const void *)((uintptr_t)(p + at) + AHEAD), 1);
}

#define PATH_LOOPS "kernels/mix_path.h"
#include "kernels/paths.h"

/* No element of x depends on another, so x may be `from`. */
KERNEL_BODY void add(float *x, const float *from, const float *restrict d, float c, size_t n)
{
    KERNEL_EACH_ALONE
    for (size_t j = 0; j < n; j++)
        x[j] = from[j] + c * d[j];
}

/* The largest magnitude, as bits: those of what is not finite are above all others. */
KERNEL_BODY bool finite(const float *x, size_t n)
{
    int32_t largest = 0;
    for (size_t j = 0; j < n; j++) {
        int32_t bits;
        memcpy(&bits, &x[j], sizeof bits);
        bits &= INT32_MAX;
        largest = bits > largest ? bits : largest;
    }
    return largest < 0x7f800000;
}

KERNEL_ON_PATHS(void, add,
                (float *x, const float *from, const float *restrict d, float c, size_t n),
                add(x, from, d, c, n))
KERNEL_ON_PATHS(bool, finite, (const float *x, size_t n), return finite(x, n))

#define ROW(path)                                                                                  \
    diff_##path, gap_##path, take_##path, norm_sq_##path, add_##path, add_gap_##path, finite_##path

const struct mix_kernels mix_kernels[KERNEL_PATHS] = KERNEL_TABLE(ROW);

static const struct mix_kernels *best(void)
{
    return &mix_kernels[kernel_path_best()];
}

/* ---- Differences ----------------------------------------------------------------------------- */

/* A draw for each block. */
static struct rng signs_from(const struct mix_part *part, uint64_t sign_seed)
{
    struct rng rng = rng_init(sign_seed, MASS_STREAM);
    rng.counter = part->done / MIX_BLOCK;
    return rng;
}

void mix_diff_next(struct mix_part *part, float *d, const float *theirs, const float *ours,
                   size_t blocks, uint64_t sign_seed)
{
    best()->diff(part, d, theirs, ours, blocks, signs_from(part, sign_seed));
}

/* The last, short block; d: NULL for nowhere. */
static void diff_short(struct mix_part *part, float *d, const float *theirs, const float *ours,
                       size_t n, uint64_t sign_seed)
{
    float last_theirs[MIX_BLOCK] = {0}, last_ours[MIX_BLOCK] = {0};
    memcpy(last_theirs, theirs, n * sizeof(float));
    memcpy(last_ours, ours, n * sizeof(float));
    mix_diff_next(part, last_theirs, last_theirs, last_ours, 1, sign_seed);
    if (d) memcpy(d, last_theirs, n * sizeof(float));
}

void mix_diff_rest(struct mix_part *part, float *restrict theirs, const float *restrict ours,
                   size_t n, uint64_t sign_seed, struct mix_diff_result *out)
{
    size_t done = part->done, rest = (n - done) % MIX_BLOCK, at = n - rest;
    mix_diff_next(part, theirs + done, theirs + done, ours + done, (n - done) / MIX_BLOCK,
                  sign_seed);
    if (rest > 0) diff_short(part, theirs + at, theirs + at, ours + at, rest, sign_seed);
    out->norm_sq = fold(part->delta);
    out->mass = fold(part->mass);
    out->finite = isfinite(out->norm_sq);
}

void mix_diff(float *restrict theirs, const float *restrict ours, size_t n, uint64_t sign_seed,
              struct mix_diff_result *out)
{
    struct mix_part part = {0};
    mix_diff_rest(&part, theirs, ours, n, sign_seed, out);
}

void mix_gap(const float *theirs, const float *ours, size_t n, uint64_t sign_seed,
             struct mix_gap *out)
{
    struct mix_part part = {0};
    size_t rest = n % MIX_BLOCK, at = n - rest;
    best()->gap(&part, theirs, ours, n / MIX_BLOCK, signs_from(&part, sign_seed));
    if (rest > 0) diff_short(&part, NULL, theirs + at, ours + at, rest, sign_seed);
    out->norm_sq = fold(part.delta);
    out->mass = fold(part.mass);
}

void mix_subtract(float *restrict d, const float *theirs, const float *ours, size_t n)
{
    for (size_t j = 0; j < n; j++)
        d[j] = theirs[j] - ours[j];
}

/* ---- Adding ---------------------------------------------------------------------------------- */

void mix_add(float *restrict x, const float *restrict d, float c, size_t n)
{
    best()->add(x, x, d, c, n);
}

void mix_add_to(float *x, const float *from, const float *restrict d, float c, size_t n)
{
    best()->add(x, from, d, c, n);
}

void mix_add_gap(float *x, const float *from, float *restrict m, const float *theirs,
                 const float *ours, float c, float cm, size_t n)
{
    best()->add_gap(x, from, m, theirs, ours, c, cm, n);
}

void mix_add_rest(float *restrict x, float *restrict rest, size_t n)
{
    for (size_t j = 0; j < n; j++) {
        float sum = x[j] + rest[j], added = sum - x[j];
        rest[j] = (x[j] - (sum - added)) + (rest[j] - added);
        x[j] = sum;
    }
}

/* ---- Looking at one -------------------------------------------------------------------------- */

void mix_take(struct mix_squares *squares, float *restrict to, const float *restrict from, size_t n)
{
    best()->take(squares->lane, to, from, n);
}

double mix_squares_sum(const struct mix_squares *squares)
{
    struct mix_squares sum = *squares;
    return fold(sum.lane);
}

double mix_norm_sq(const float *x, size_t n)
{
    struct mix_squares squares = {{0}};
    best()->norm_sq(squares.lane, x, n);
    return fold(squares.lane);
}

bool mix_finite(const float *x, size_t n)
{
    return best()->finite(x, n);
}

enum { COMBINE_FLOATS = 2048 }; /* looked at again while they are in the cache */

static void combine(float *restrict y, const float *restrict x, float keep, float c, size_t n)
{
    if (c == 0) {
        for (size_t i = 0; i < n; i++)
            y[i] *= keep;
    } else if (keep == 0) {
        for (size_t i = 0; i < n; i++)
            y[i] = c * x[i];
    } else {
        for (size_t i = 0; i < n; i++)
            y[i] = keep * y[i] + c * x[i];
    }
}

bool mix_combine(float *restrict y, const float *restrict x, float keep, float c, size_t n)
{
    bool finite = true;
    for (size_t at = 0; at < n; at += COMBINE_FLOATS) {
        size_t size = n - at < COMBINE_FLOATS ? n - at : COMBINE_FLOATS;
        if (keep == 0 && c == 0)
            memset(y + at, 0, size * sizeof *y);
        else
            combine(y + at, c == 0 ? NULL : x + at, keep, c, size);
        finite = mix_finite(y + at, size) && finite;
    }
    return finite;
}
