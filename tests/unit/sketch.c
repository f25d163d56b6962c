/* sketch.c: the CountSketch: linear, unbiased, as sharp as the theory says. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "core/rng.h"
#include "kernels/sketch.h"

#define N 20001

static float x[N], y[N], z[N];

static void fill(float *to, size_t n, uint64_t seed, uint64_t stream)
{
    struct rng rng = rng_init(seed, stream);
    for (size_t i = 0; i < n; i++)
        to[i] = (float)rng_normal(&rng);
}

static double distance_sq(const double *a, const double *b)
{
    double sum = 0;
    for (int i = 0; i < SKETCH_BUCKETS; i++)
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sum;
}

static double norm_sq(const double *a)
{
    static const double zero[SKETCH_BUCKETS];
    return distance_sq(a, zero);
}

Test(sketch, is_linear)
{
    /* S x + S y = S(x + y), up to fp64 rounding, for several seeds. */
    for (uint64_t seed = 1; seed <= 5; seed++) {
        double sx[SKETCH_BUCKETS], sy[SKETCH_BUCKETS], direct[SKETCH_BUCKETS];
        fill(x, N, seed, 0);
        fill(y, N, seed, 1);
        for (size_t i = 0; i < N; i++) {
            /* 10 bits each, so that the fp32 sum is exact. */
            x[i] = rintf(x[i] * 256) / 256;
            y[i] = rintf(y[i] * 256) / 256;
            z[i] = x[i] + y[i];
        }
        sketch_of(sx, x, N, seed);
        sketch_of(sy, y, N, seed);
        sketch_of(direct, z, N, seed);
        for (int b = 0; b < SKETCH_BUCKETS; b++)
            sx[b] += sy[b];
        cr_assert_leq(sqrt(distance_sq(sx, direct)), 1e-12 * sqrt(norm_sq(direct)));
    }
}

Test(sketch, squared_distance_is_unbiased_with_the_error_of_256_buckets)
{
    /* Over 600 seeds the mean is right within 4 standard errors, the rms error near sqrt(2/256). */
    enum { SEEDS = 600, LENGTH = 3000 };
    const double expect = sqrt(2.0 / SKETCH_BUCKETS);
    double truth = 0, mean = 0, square = 0;
    fill(x, LENGTH, 11, 0);
    fill(y, LENGTH, 11, 1);
    for (size_t i = 0; i < LENGTH; i++)
        y[i] += 3; /* one way: without signs they would add up */
    for (size_t i = 0; i < LENGTH; i++)
        truth += ((double)x[i] - y[i]) * ((double)x[i] - y[i]);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        double sx[SKETCH_BUCKETS], sy[SKETCH_BUCKETS];
        sketch_of(sx, x, LENGTH, seed);
        sketch_of(sy, y, LENGTH, seed);
        double error = distance_sq(sx, sy) / truth - 1;
        mean += error / SEEDS;
        square += error * error / SEEDS;
    }
    cr_assert_leq(fabs(mean), 4 * expect / sqrt(SEEDS), "bias %g", mean);
    cr_assert(sqrt(square) > 0.75 * expect && sqrt(square) < 1.15 * expect, "rms error %g",
              sqrt(square));
}

Test(sketch, two_elements_never_meet_in_a_row_and_seldom_elsewhere)
{
    /* A vector of two equal elements: the estimate is exact unless they share a bucket (1/256),
     * which rows apart they do at every distance alike. */
    enum { SEEDS = 20000 };
    static const size_t elsewhere[] = {256 + 3, 256 + 40, 256 + 130, 511};
    static float pair[512];
    pair[3] = 1;
    for (int e = 0; e < 4; e++) {
        int met = 0;
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            double s[SKETCH_BUCKETS];
            pair[elsewhere[e]] = 1;
            sketch_of(s, pair, 512, seed);
            pair[elsewhere[e]] = 0;
            met += norm_sq(s) != 2;
            if (e > 0) continue;
            pair[200] = 1;
            sketch_of(s, pair, 512, seed);
            pair[200] = 0;
            cr_assert_eq(norm_sq(s), 2);
        }
        /* 78 expected; five standard deviations either way. */
        cr_assert(met > 34 && met < 122, "met %d times", met);
    }
}

Test(sketch, drift_of_32_models_is_known_within_a_few_percent)
{
    /* sigma^2 = mean ||x_i - mean||^2 from sketches alone: rms error of sigma below 2 %. */
    enum { NODES = 32, LENGTH = 5000, SEEDS = 20 };
    static float model[NODES][LENGTH];
    static double s[NODES][SKETCH_BUCKETS];
    double square = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        double truth = 0, told = 0;
        double mean[SKETCH_BUCKETS] = {0};
        fill(x, LENGTH, seed, 99);
        for (int k = 0; k < NODES; k++) {
            fill(model[k], LENGTH, seed, (uint64_t)k);
            for (size_t i = 0; i < LENGTH; i++)
                model[k][i] = x[i] + 1e-3f * model[k][i];
            sketch_of(s[k], model[k], LENGTH, seed);
            for (int b = 0; b < SKETCH_BUCKETS; b++)
                mean[b] += s[k][b] / NODES;
        }
        for (int k = 0; k < NODES; k++)
            told += distance_sq(s[k], mean) / NODES;
        for (size_t i = 0; i < LENGTH; i++) {
            double centre = 0;
            for (int k = 0; k < NODES; k++)
                centre += (double)model[k][i] / NODES;
            for (int k = 0; k < NODES; k++)
                truth += (model[k][i] - centre) * (model[k][i] - centre) / NODES;
        }
        double error = sqrt(told / truth) - 1;
        square += error * error / SEEDS;
    }
    cr_assert_lt(sqrt(square), 0.02, "rms error %g", sqrt(square));
}

Test(sketch, every_path_gives_the_same_bits)
{
    /* SSE2, AVX2 and AVX-512 agree, at lengths around the row and the block. */
    static const size_t sizes[] = {0, 1, 255, 256, 257, 2047, 2048, 2049, N};
    fill(x, N, 1, 0);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        double want[SKETCH_BUCKETS], got[SKETCH_BUCKETS];
        for (enum kernel_path path = KERNEL_PATH_BASE; path < KERNEL_PATHS; path++) {
            if (!kernel_path_supported(path)) continue;
            sketch_kernels[path](got, x, sizes[s], 3);
            if (path == KERNEL_PATH_BASE) memcpy(want, got, sizeof want);
            cr_assert_arr_eq(got, want, sizeof got);
        }
    }
}
