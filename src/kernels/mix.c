/* mix.c: the loops of averaging.
 *
 *   1. a block (2,048 floats) is read once: the difference is written back, and its squares, the
 *      squares of ours and the signed difference go into 64 lanes of fp64 sums
 *   2. the last, short block is copied into a zeroed one: zeros change no sum
 *   3. the lanes are added up by halves
 *
 * What can't be is decided by the sums: a square of an fp32 fits fp64 with room for 2^760 of them,
 * so a sum that is not finite says that an element was not.
 */
#include "kernels/mix.h"

#include <math.h>
#include <string.h>

#include "kernels/signs.h"

#define LANES SIGNS_LANES
#define BLOCK SIGNS_BLOCK
_Static_assert(LANES == MIX_LANES && BLOCK == MIX_BLOCK, "a part is made of blocks of signs");
#define MASS_STREAM UINT64_C(0x6d617373) /* apart from the other streams of one seed */

KERNEL_BODY double fold(double *lane)
{
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            lane[i] += lane[i + half];
    return lane[0];
}

enum { FEW = 2 }; /* steps of a lane while its sums are in registers: more of them need too many */

KERNEL_BODY void diff_block(float *restrict theirs, const float *restrict ours,
                            const uint64_t *restrict words, struct mix_part *restrict sums)
{
    for (int step = 0; step < SIGNS_STEPS; step += FEW) {
        for (int i = 0; i < LANES; i++) {
            double delta_sq = sums->delta[i], own_sq = sums->ours[i], mass = sums->mass[i];
            for (int s = step; s < step + FEW; s++) {
                float delta = theirs[s * LANES + i] - ours[s * LANES + i];
                double wide = delta, own = ours[s * LANES + i];
                theirs[s * LANES + i] = delta;
                delta_sq += wide * wide;
                own_sq += own * own;
                mass += signs_given_wide(words[i], s, wide);
            }
            sums->delta[i] = delta_sq;
            sums->ours[i] = own_sq;
            sums->mass[i] = mass;
        }
    }
}

/* The next blocks: theirs and ours begin with them. */
KERNEL_BODY void diff(struct mix_part *part, float *restrict theirs, const float *restrict ours,
                      size_t blocks, uint64_t sign_seed)
{
    struct rng rng = rng_init(sign_seed, MASS_STREAM);
    uint32_t words[LANES];
    uint64_t wide[LANES];
    for (size_t b = 0; b < blocks; b++) {
        signs_block(rng, part->done / BLOCK + b, words);
        for (int i = 0; i < LANES; i++)
            wide[i] = words[i];
        diff_block(theirs + b * BLOCK, ours + b * BLOCK, wide, part);
    }
    part->done += blocks * BLOCK;
}

KERNEL_BODY void gap_block(const float *restrict theirs, const float *restrict ours,
                           const uint32_t *restrict words, struct mix_part *restrict sums)
{
    for (int step = 0; step < SIGNS_STEPS; step++) {
        for (int i = 0; i < LANES; i++) {
            float delta = theirs[step * LANES + i] - ours[step * LANES + i];
            double wide = delta;
            sums->delta[i] += wide * wide;
            sums->mass[i] += signs_given(words[i], step, delta);
        }
    }
}

KERNEL_BODY void gap(const float *theirs, const float *ours, size_t n, uint64_t sign_seed,
                     struct mix_gap *out)
{
    struct mix_part sums = {0};
    struct rng rng = rng_init(sign_seed, MASS_STREAM);
    uint32_t words[LANES];
    size_t at = 0, rest = n % BLOCK;
    for (; at < n - rest; at += BLOCK) {
        signs_block(rng, at / BLOCK, words);
        gap_block(theirs + at, ours + at, words, &sums);
    }
    if (rest > 0) {
        float last_theirs[BLOCK] = {0}, last_ours[BLOCK] = {0};
        memcpy(last_theirs, theirs + at, rest * sizeof(float));
        memcpy(last_ours, ours + at, rest * sizeof(float));
        signs_block(rng, at / BLOCK, words);
        gap_block(last_theirs, last_ours, words, &sums);
    }
    out->norm_sq = fold(sums.delta);
    out->mass = fold(sums.mass);
}

/* No element of x depends on another, so x may be `from`. */
KERNEL_BODY void add(float *x, const float *from, const float *restrict d, float c, size_t n)
{
    KERNEL_EACH_ALONE
    for (size_t j = 0; j < n; j++)
        x[j] = from[j] + c * d[j];
}

/* Likewise. */
KERNEL_BODY void add_gap(float *x, const float *from, float *restrict m,
                         const float *restrict theirs, const float *restrict ours, float c,
                         float cm, size_t n)
{
    if (!m) {
        KERNEL_EACH_ALONE
        for (size_t j = 0; j < n; j++)
            x[j] = from[j] + c * (theirs[j] - ours[j]);
        return;
    }
    KERNEL_EACH_ALONE
    for (size_t j = 0; j < n; j++) {
        float d = theirs[j] - ours[j];
        m[j] += cm * d;
        x[j] = from[j] + c * d;
    }
}

KERNEL_BODY double norm_sq(const float *x, size_t n)
{
    double lane[LANES] = {0};
    size_t rest = n % LANES;
    for (size_t at = 0; at < n - rest; at += LANES)
        for (int i = 0; i < LANES; i++)
            lane[i] += (double)x[at + i] * x[at + i];
    for (size_t i = 0; i < rest; i++)
        lane[i] += (double)x[n - rest + i] * x[n - rest + i];
    return fold(lane);
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

#define PATH(suffix, target)                                                                       \
    target static void diff_##suffix(struct mix_part *part, float *restrict theirs,                \
                                     const float *restrict ours, size_t blocks,                    \
                                     uint64_t sign_seed)                                           \
    {                                                                                              \
        diff(part, theirs, ours, blocks, sign_seed);                                               \
    }                                                                                              \
    target static void gap_##suffix(const float *theirs, const float *ours, size_t n,              \
                                    uint64_t sign_seed, struct mix_gap *out)                       \
    {                                                                                              \
        gap(theirs, ours, n, sign_seed, out);                                                      \
    }                                                                                              \
    target static void add_##suffix(float *x, const float *from, const float *restrict d, float c, \
                                    size_t n)                                                      \
    {                                                                                              \
        add(x, from, d, c, n);                                                                     \
    }                                                                                              \
    target static void add_gap_##suffix(float *x, const float *from, float *restrict m,            \
                                        const float *restrict theirs, const float *restrict ours,  \
                                        float c, float cm, size_t n)                               \
    {                                                                                              \
        add_gap(x, from, m, theirs, ours, c, cm, n);                                               \
    }                                                                                              \
    target static double norm_sq_##suffix(const float *x, size_t n)                                \
    {                                                                                              \
        return norm_sq(x, n);                                                                      \
    }                                                                                              \
    target static bool finite_##suffix(const float *x, size_t n)                                   \
    {                                                                                              \
        return finite(x, n);                                                                       \
    }

PATH(base, )
PATH(avx2, KERNEL_AVX2)
PATH(avx512, KERNEL_AVX512)

const struct mix_kernels mix_kernels[KERNEL_PATHS] = {
    [KERNEL_PATH_BASE] = {diff_base, gap_base, add_base, add_gap_base, norm_sq_base, finite_base},
    [KERNEL_PATH_AVX2] = {diff_avx2, gap_avx2, add_avx2, add_gap_avx2, norm_sq_avx2, finite_avx2},
    [KERNEL_PATH_AVX512] = {diff_avx512, gap_avx512, add_avx512, add_gap_avx512, norm_sq_avx512,
                            finite_avx512},
};

void mix_diff(float *restrict theirs, const float *restrict ours, size_t n, uint64_t sign_seed,
              struct mix_diff_result *out)
{
    struct mix_part part = {0};
    mix_diff_rest(&part, theirs, ours, n, sign_seed, out);
}

void mix_diff_part(struct mix_part *part, float *restrict theirs, const float *restrict ours,
                   size_t ready, uint64_t sign_seed)
{
    size_t done = part->done;
    if (ready < done + BLOCK) return;
    mix_kernels[kernel_path_best()].diff(part, theirs + done, ours + done, (ready - done) / BLOCK,
                                         sign_seed);
}

void mix_diff_rest(struct mix_part *part, float *restrict theirs, const float *restrict ours,
                   size_t n, uint64_t sign_seed, struct mix_diff_result *out)
{
    mix_diff_part(part, theirs, ours, n, sign_seed);
    size_t at = part->done, rest = n - at;
    if (rest > 0) {
        float last_theirs[BLOCK] = {0}, last_ours[BLOCK] = {0};
        memcpy(last_theirs, theirs + at, rest * sizeof(float));
        memcpy(last_ours, ours + at, rest * sizeof(float));
        mix_kernels[kernel_path_best()].diff(part, last_theirs, last_ours, 1, sign_seed);
        memcpy(theirs + at, last_theirs, rest * sizeof(float));
    }
    out->norm_sq = fold(part->delta);
    out->ours_norm_sq = fold(part->ours);
    out->mass = fold(part->mass);
    out->finite = isfinite(out->norm_sq) && isfinite(out->ours_norm_sq);
}

void mix_gap(const float *theirs, const float *ours, size_t n, uint64_t sign_seed,
             struct mix_gap *out)
{
    mix_kernels[kernel_path_best()].gap(theirs, ours, n, sign_seed, out);
}

void mix_subtract(float *restrict d, const float *theirs, const float *ours, size_t n)
{
    for (size_t j = 0; j < n; j++)
        d[j] = theirs[j] - ours[j];
}

void mix_add(float *restrict x, const float *restrict d, float c, size_t n)
{
    mix_kernels[kernel_path_best()].add(x, x, d, c, n);
}

void mix_add_to(float *x, const float *from, const float *restrict d, float c, size_t n)
{
    mix_kernels[kernel_path_best()].add(x, from, d, c, n);
}

void mix_add_gap(float *x, const float *from, float *restrict m, const float *theirs,
                 const float *ours, float c, float cm, size_t n)
{
    mix_kernels[kernel_path_best()].add_gap(x, from, m, theirs, ours, c, cm, n);
}

void mix_add_rest(float *restrict x, float *restrict rest, size_t n)
{
    for (size_t j = 0; j < n; j++) {
        float sum = x[j] + rest[j], added = sum - x[j];
        rest[j] = (x[j] - (sum - added)) + (rest[j] - added);
        x[j] = sum;
    }
}

double mix_norm_sq(const float *x, size_t n)
{
    return mix_kernels[kernel_path_best()].norm_sq(x, n);
}

bool mix_finite(const float *x, size_t n)
{
    return mix_kernels[kernel_path_best()].finite(x, n);
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
            combine(y + at, x + at, keep, c, size);
        finite = mix_finite(y + at, size) && finite;
    }
    return finite;
}
