/* mix.c: the averaging kernels: symmetry, conservation, scans, equal bits on every path. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "kernels/mix.h"

static const size_t sizes[] = {0, 1, 63, 64, 65, 2047, 2048, 2049, 10007};
#define SIZES (sizeof sizes / sizeof *sizes)
#define MAX 10007

static float x[MAX], y[MAX], d[MAX], e[MAX];

/* Values over many binades, so that rounding has work to do. */
static void fill(float *to, uint64_t seed, uint64_t stream)
{
    struct rng rng = rng_init(seed, stream);
    for (size_t i = 0; i < MAX; i++)
        to[i] = (float)(rng_normal(&rng) * exp2((double)rng_below(&rng, 20) - 10));
}

Test(mix, difference_is_antisymmetric_to_the_bit)
{
    /* Both ends of an exchange compute opposite differences, equal norms and opposite masses. */
    for (uint64_t seed = 1; seed <= 5; seed++) {
        for (size_t s = 0; s < SIZES; s++) {
            struct mix_diff_result here, there;
            fill(x, seed, 0);
            fill(y, seed, 1);
            memcpy(d, y, sizeof d);
            memcpy(e, x, sizeof e);
            mix_diff(d, x, sizes[s], 7, &here);
            mix_diff(e, y, sizes[s], 7, &there);
            for (size_t i = 0; i < sizes[s]; i++)
                cr_assert_eq(d[i], -e[i]);
            cr_assert_eq(here.mass, -there.mass);
            cr_assert_eq(here.norm_sq, there.norm_sq);
            cr_assert(here.finite && there.finite);
            for (size_t i = sizes[s]; i < MAX; i++)
                cr_assert_eq(d[i], y[i]);
        }
    }
}

Test(mix, a_difference_in_parts_is_the_one_in_one_piece)
{
    /* Floats come in at any pace, to their place or beside it; not one bit of d or of the figures
     * may depend on it. */
    for (size_t s = 0; s < SIZES; s++) {
        struct mix_diff_result whole, last;
        struct mix_part part = {0};
        struct rng rng = rng_init(s, 2);
        fill(x, s, 0);
        fill(d, s, 1);
        memcpy(e, d, sizeof e);
        memcpy(y, d, sizeof y);
        mix_diff(d, x, sizes[s], 7, &whole);
        for (size_t at; (at = part.done) + MIX_BLOCK <= sizes[s];) {
            size_t blocks = rng_below(&rng, 3);
            if (blocks > (sizes[s] - at) / MIX_BLOCK) continue;
            const float *from = rng_below(&rng, 2) ? e + at : y + at;
            mix_diff_next(&part, e + at, from, x + at, blocks, 7);
            cr_assert_eq(part.done, at + blocks * MIX_BLOCK);
        }
        mix_diff_rest(&part, e, x, sizes[s], 7, &last);
        cr_assert_arr_eq(d, e, sizeof d);
        cr_assert_eq(last.norm_sq, whole.norm_sq);
        cr_assert_eq(last.mass, whole.mass);
        cr_assert(last.finite);
    }
}

Test(mix, a_snapshot_in_parts_is_a_copy_and_has_the_norm_of_the_whole)
{
    /* To the bit, however it is cut; nothing behind the end. */
    for (size_t s = 0; s < SIZES; s++) {
        struct mix_squares squares = {{0}};
        fill(x, s, 0);
        fill(d, s, 1);
        memcpy(e, d, sizeof e);
        for (size_t at = 0, size; at < sizes[s]; at += size) {
            size = sizes[s] - at < 3 * MIX_LANES ? sizes[s] - at : 3 * MIX_LANES;
            mix_take(&squares, d + at, x + at, size);
        }
        cr_assert_eq(mix_squares_sum(&squares), mix_norm_sq(x, sizes[s]));
        cr_assert_arr_eq(d, x, sizes[s] * sizeof *d);
        cr_assert_arr_eq(d + sizes[s], e + sizes[s], (MAX - sizes[s]) * sizeof *d);
    }
}

Test(mix, what_rounding_keeps_from_a_sum_stays_in_the_rest)
{
    /* To the last bit: x + rest is the same before and after, and in the end nothing is lost of
     * terms that are each too small for x to feel. */
    fill(x, 3, 0);
    fill(d, 3, 1);
    for (size_t i = 0; i < MAX; i++) {
        y[i] = x[i];
        e[i] = d[i];
    }
    mix_add_rest(x, d, MAX);
    for (size_t i = 0; i < MAX; i++)
        cr_assert_eq((double)y[i] + e[i], (double)x[i] + d[i]);
    float one = 1, rest = 0;
    for (int i = 0; i < 1000; i++) {
        rest += 0x1p-30f;
        mix_add_rest(&one, &rest, 1);
    }
    cr_assert_eq((double)one + rest, 1 + 1000 * 0x1p-30);
    cr_assert_gt(one, 1);
}

Test(mix, a_gap_has_the_figures_of_the_difference_and_its_floats_are_the_same)
{
    /* Who keeps both snapshots gets the same bits without writing a difference. */
    for (size_t s = 0; s < SIZES; s++) {
        struct mix_diff_result result;
        struct mix_gap gap, mirror;
        fill(x, 9, 0);
        fill(y, 9, 1);
        memcpy(d, y, sizeof d);
        mix_diff(d, x, sizes[s], 7, &result);
        mix_gap(y, x, sizes[s], 7, &gap);
        mix_gap(x, y, sizes[s], 7, &mirror);
        memset(e, 0, sizeof e);
        mix_subtract(e, y, x, sizes[s]);
        cr_assert_arr_eq(d, e, sizes[s] * sizeof *d);
        cr_assert_eq(gap.norm_sq, result.norm_sq);
        cr_assert_eq(gap.mass, result.mass);
        cr_assert_eq(mirror.norm_sq, gap.norm_sq);
        cr_assert_eq(mirror.mass, -gap.mass);
    }
}

Test(mix, a_gap_is_added_as_its_floats_would_be_to_the_bit)
{
    /* One pass or two, to a model alone or to its momentum as well, in its place or on the way to
     * another; nothing behind the end. */
    static float nx[MAX], nm[MAX], m[MAX], moved[MAX];
    for (size_t s = 0; s < SIZES; s++) {
        fill(x, 9, 0);
        fill(y, 9, 1);
        fill(nx, 9, 2);
        fill(nm, 9, 3);
        memcpy(e, nx, sizeof e);
        memcpy(m, nm, sizeof m);
        mix_subtract(d, y, x, sizes[s]);
        mix_add(nx, d, 0.5f, sizes[s]);
        memcpy(moved, e, sizeof e);
        mix_add_gap(moved, e, NULL, y, x, 0.5f, 9, sizes[s]);
        mix_add_gap(e, e, NULL, y, x, 0.5f, 9, sizes[s]);
        cr_assert_arr_eq(e, nx, sizeof e);
        cr_assert_arr_eq(moved, nx, sizeof e);
        mix_add(nx, d, -1.0f / 3, sizes[s]);
        mix_add(nm, d, 0.3f, sizes[s]);
        mix_add_gap(moved, e, m, y, x, -1.0f / 3, 0.3f, sizes[s]);
        cr_assert_arr_eq(m, nm, sizeof m);
        fill(m, 9, 3);
        mix_add_gap(e, e, m, y, x, -1.0f / 3, 0.3f, sizes[s]);
        cr_assert_arr_eq(e, nx, sizeof e);
        cr_assert_arr_eq(moved, nx, sizeof e);
        cr_assert_arr_eq(m, nm, sizeof m);
    }
}

Test(mix, averaging_conserves_the_mean_up_to_the_rounding_of_the_sums)
{
    /* The two deltas cancel exactly; each end's sum is off by at most half an ulp. */
    static const float factors[] = {0.5f, 1.0f / 3};
    static float nx[MAX], ny[MAX];
    for (uint64_t seed = 1; seed <= 5; seed++) {
        for (int f = 0; f < 2; f++) {
            struct mix_diff_result result;
            fill(x, seed, 0);
            fill(y, seed, 1);
            memcpy(nx, x, sizeof nx);
            memcpy(ny, y, sizeof ny);
            memcpy(d, y, sizeof d);
            memcpy(e, x, sizeof e);
            mix_diff(d, x, MAX, 1, &result);
            mix_diff(e, y, MAX, 1, &result);
            mix_add(nx, d, factors[f], MAX);
            mix_add(ny, e, factors[f], MAX);
            for (size_t i = 0; i < MAX; i++) {
                float here = factors[f] * d[i], there = factors[f] * e[i];
                cr_assert_eq(here, -there);
                double x_off = fabs((double)nx[i] - ((double)x[i] + here));
                double y_off = fabs((double)ny[i] - ((double)y[i] + there));
                cr_assert_leq(x_off, (nextafterf(fabsf(nx[i]), INFINITY) - fabsf(nx[i])) / 2.0);
                cr_assert_leq(y_off, (nextafterf(fabsf(ny[i]), INFINITY) - fabsf(ny[i])) / 2.0);
            }
        }
    }
}

Test(mix, results_agree_with_plain_sums)
{
    /* Norms and mass equal a scalar sum over the documented signs, up to fp64 rounding. */
    struct mix_diff_result result;
    fill(x, 3, 0);
    fill(y, 3, 1);
    memcpy(d, y, sizeof d);
    mix_diff(d, x, MAX, 42, &result);
    double norm = 0, own = 0, mass = 0, scale = 0;
    struct rng rng = rng_init(42, UINT64_C(0x6d617373));
    uint64_t bits = 0;
    int signs = 0, positive = 0;
    for (size_t i = 0; i < MAX; i++) {
        if (i % MIX_BLOCK == 0) bits = rng_next(&rng);
        double r = bits >> i % MIX_LANES & 1 ? -1 : 1;
        double delta = y[i] - x[i];
        bool first = i % MIX_BLOCK < MIX_LANES; /* of those that share a sign */
        signs += first;
        positive += first && r > 0;
        norm += delta * delta;
        own += (double)x[i] * x[i];
        mass += r * delta;
        scale += fabs(delta);
    }
    cr_assert_float_eq(result.norm_sq, norm, 1e-12 * norm);
    cr_assert_float_eq(result.mass, mass, 1e-12 * scale);
    cr_assert_float_eq(mix_norm_sq(x, MAX), own, 1e-12 * own);
    /* Five standard deviations of a fair coin. */
    cr_assert_eq(signs, 80);
    cr_assert_lt(abs(2 * positive - signs), 5 * 9);
}

Test(mix, mass_sees_a_side_that_was_not_applied)
{
    /* The mass of one exchange is about ||d||, far from 0, for each of several seeds. */
    fill(x, 9, 0);
    fill(y, 9, 1);
    double sum_sq = 0;
    struct mix_diff_result result;
    for (uint64_t seed = 0; seed < 64; seed++) {
        memcpy(d, y, sizeof d);
        mix_diff(d, x, MAX, seed, &result);
        sum_sq += result.mass * result.mass;
    }
    double ratio = sum_sq / 64 / result.norm_sq;
    cr_assert(ratio > 0.3 && ratio < 2.2, "mean square mass is %g of the square norm", ratio);
}

Test(mix, a_non_finite_element_is_found_wherever_it_stands)
{
    /* Infinity and NaN on either side, and a difference that overflows, are seen at every place. */
    static const size_t n = 2048 + 65;
    const float bad[] = {NAN, INFINITY, -INFINITY};
    struct mix_diff_result result;
    fill(x, 4, 0);
    fill(y, 4, 1);
    for (size_t at = 0; at < n; at += at < 130 ? 1 : 61) {
        for (int side = 0; side < 2; side++) {
            float *victim = side ? x : y, kept = victim[at];
            for (int b = 0; b < 3; b++) {
                victim[at] = bad[b];
                memcpy(d, y, sizeof d);
                mix_diff(d, x, n, 1, &result);
                cr_assert_not(result.finite);
                for (enum kernel_path path = KERNEL_PATH_BASE; path < KERNEL_PATHS; path++)
                    if (kernel_path_supported(path))
                        cr_assert_not(mix_kernels[path].finite(victim, n));
                cr_assert_not(mix_finite(victim, n));
            }
            victim[at] = kept;
        }
    }
    cr_assert(mix_finite(x, n));
    x[5] = -3e38f;
    d[5] = 3e38f;
    mix_diff(d, x, 6, 1, &result);
    cr_assert_not(result.finite);
}

Test(mix, the_largest_finite_vectors_do_not_overflow_the_sums)
{
    /* Finite stays finite: fp64 holds the squares of the largest fp32 values. */
    for (size_t i = 0; i < MAX; i++)
        x[i] = 3.4028234e38f;
    cr_assert(mix_finite(x, MAX));
}

Test(mix, every_path_gives_the_same_bits)
{
    /* SSE2, AVX2 and AVX-512 agree, so unlike machines may share a cluster. */
    static float want_d[MAX], want_x[MAX], want_y[MAX], want_e[MAX];
    for (size_t s = 0; s < SIZES; s++) {
        struct mix_part want, got, want_gap, gap;
        double want_lane[MIX_LANES], lane[MIX_LANES], copied[MIX_LANES];
        size_t blocks = sizes[s] / MIX_BLOCK;
        for (enum kernel_path path = KERNEL_PATH_BASE; path < KERNEL_PATHS; path++) {
            if (!kernel_path_supported(path)) continue;
            fill(x, s, 0);
            fill(d, s, 1);
            memset(&got, 0, sizeof got);
            memset(&gap, 0, sizeof gap);
            memset(lane, 0, sizeof lane);
            memset(copied, 0, sizeof copied);
            mix_kernels[path].gap(&gap, d, x, blocks, rng_init(5, 0));
            fill(y, s, 2);
            memcpy(e, y, sizeof e);
            mix_kernels[path].add_gap(y, y, e, d, x, 0.5f, 1.0f / 7, sizes[s]);
            mix_kernels[path].diff(&got, d, d, x, blocks, rng_init(5, 0));
            mix_kernels[path].norm_sq(lane, d, sizes[s]);
            mix_kernels[path].add(x, x, d, 1.0f / 3, sizes[s]);
            mix_kernels[path].take(copied, e, x, sizes[s] / 2);
            if (path == KERNEL_PATH_BASE) {
                want = got;
                want_gap = gap;
                memcpy(want_lane, lane, sizeof lane);
                memcpy(want_d, d, sizeof d);
                memcpy(want_x, x, sizeof x);
                memcpy(want_y, y, sizeof y);
                memcpy(want_e, e, sizeof e);
            }
            cr_assert_arr_eq(d, want_d, sizeof d);
            cr_assert_arr_eq(x, want_x, sizeof x);
            cr_assert_arr_eq(y, want_y, sizeof y);
            cr_assert_arr_eq(e, want_e, sizeof e);
            cr_assert_arr_eq(lane, want_lane, sizeof lane);
            cr_assert_arr_eq(&gap, &want_gap, sizeof gap);
            cr_assert_arr_eq(&got, &want, sizeof got);
            cr_assert_arr_eq(&gap, &got, sizeof gap);
            memset(lane, 0, sizeof lane);
            mix_kernels[path].norm_sq(lane, x, sizes[s] / 2);
            cr_assert_arr_eq(copied, lane, sizeof lane);
        }
    }
}

Test(mix, sums_have_the_same_bits_under_every_compiler)
{
    /* A recorded result: a change of order, signs or contraction would split mixed clusters. */
    struct rng rng = rng_init(1, 2);
    struct mix_diff_result result;
    for (size_t i = 0; i < MAX; i++) {
        x[i] = (float)(rng_next(&rng) >> 40) * 0x1p-24f - 0.5f;
        d[i] = (float)(rng_next(&rng) >> 40) * 0x1p-20f - 5;
    }
    mix_diff(d, x, MAX, 3, &result);
    cr_assert_eq(result.norm_sq, 0x1.28d03c1039b4cp+18, "%a", result.norm_sq);
    cr_assert_eq(result.mass, 0x1.749c63874p+11, "%a", result.mass);
    mix_add(x, d, 1.0f / 3, MAX);
    cr_assert_eq(mix_norm_sq(x, MAX), 0x1.0a334dab85ffcp+15, "%a", mix_norm_sq(x, MAX));
}

Test(mix, combining_is_copying_scaling_and_adding_to_the_bit)
{
    /* Proves each use of mix_combine against its plain meaning; what is times 0 is not read, and
     * what is behind the end not touched. */
    for (size_t s = 0; s < SIZES; s++) {
        size_t n = sizes[s];
        fill(x, 3, 0);
        fill(d, 3, 1);
        memcpy(y, d, sizeof y);
        cr_assert(mix_combine(y, x, 1, 1, n));
        for (size_t i = 0; i < MAX; i++)
            cr_assert_eq(y[i], i < n ? d[i] + x[i] : d[i]);
        memcpy(y, d, sizeof y);
        cr_assert(mix_combine(y, NULL, 0.5f, 0, n));
        for (size_t i = 0; i < MAX; i++)
            cr_assert_eq(y[i], i < n ? 0.5f * d[i] : d[i]);
        for (size_t i = 0; i < n; i++)
            y[i] = NAN;
        cr_assert(mix_combine(y, x, 0, 1, n));
        cr_assert_eq(memcmp(y, x, n * sizeof *y), 0);
        cr_assert(mix_combine(y, x, 0.25f, -3, n));
        for (size_t i = 0; i < n; i++)
            cr_assert_eq(y[i], 0.25f * x[i] + -3 * x[i]);
        if (n == 0) continue;
        y[n - 1] = INFINITY;
        cr_assert(!mix_combine(y, x, 1, 1, n));
    }
}
