/* sketch.c: the CountSketch as a plain loop over rows.
 *
 *   1. a row of 256 floats is added, signs applied, to a table of 512 sums at a random offset below
 *      256: no modulo, no gather
 *   2. rows take turns among four tables, so that no row waits for the stores of the one before
 *   3. the tables are added up, and their upper halves onto the lower ones: the rotation
 *
 * A non-finite x makes a non-finite sketch; callers scan before they sketch.
 */
#include "kernels/sketch.h"

#include <string.h>

#include "core/rng.h"

/* Signs r_j = +-1, 64 from one hash. Blocks of SIGNS_BLOCK elements; element j of a block is lane
 * j % SIGNS_LANES at step j / SIGNS_LANES, and its sign is bit `step` of the lane's word: one shift
 * serves all lanes, so a plain loop over the lanes vectorises on every instruction set. */
#define SIGNS_LANES 64
#define SIGNS_STEPS 32
#define SIGNS_BLOCK (SIGNS_LANES * SIGNS_STEPS)

#define TABLES 4
#define ROWS (SIGNS_BLOCK / SKETCH_BUCKETS)
#define ROW_STEPS (SKETCH_BUCKETS / SIGNS_LANES)
#define SIGN_STREAM UINT64_C(0x736b5f73) /* apart from the other streams of one seed */
#define SHIFT_STREAM UINT64_C(0x736b5f62)

_Static_assert(ROWS == 8, "one hash gives a byte of rotation to each row of a block");

/* words: [SIGNS_LANES], for block `block` of the stream `rng` (as rng_init made it). */
static inline void signs_block(struct rng rng, uint64_t block, uint32_t *words)
{
    rng.counter = block * (SIGNS_LANES / 2);
    for (int i = 0; i < SIGNS_LANES; i += 2) {
        uint64_t bits = rng_next(&rng);
        words[i] = (uint32_t)bits;
        words[i + 1] = (uint32_t)(bits >> 32);
    }
}

/* +1 or -1: bit `step` of a lane's word. */
static inline double signs_of(uint32_t word, int step)
{
    return 1 - 2 * (int32_t)(word >> step & 1);
}

/* Adds one block of SIGNS_BLOCK floats; byte r of `shifts` rotates row r. */
KERNEL_BODY void add_block(double (*restrict table)[2 * SKETCH_BUCKETS], const float *restrict x,
                           const uint32_t *restrict words, uint64_t shifts)
{
    for (int step = 0; step < SIGNS_STEPS; step++) {
        int row = step / ROW_STEPS;
        double *restrict sums =
            table[row % TABLES] + (shifts >> (8 * row) & 255) + step % ROW_STEPS * SIGNS_LANES;
        for (int i = 0; i < SIGNS_LANES; i++)
            sums[i] += signs_of(words[i], step) * x[step * SIGNS_LANES + i];
    }
}

KERNEL_BODY void sketch(double *buckets, const float *x, size_t n, uint64_t seed)
{
    double table[TABLES][2 * SKETCH_BUCKETS] = {{0}};
    struct rng signs = rng_init(seed, SIGN_STREAM), shifts = rng_init(seed, SHIFT_STREAM);
    uint32_t words[SIGNS_LANES];
    size_t at = 0, rest = n % SIGNS_BLOCK;
    for (; at < n - rest; at += SIGNS_BLOCK) {
        signs_block(signs, at / SIGNS_BLOCK, words);
        add_block(table, x + at, words, rng_next(&shifts));
    }
    if (rest > 0) {
        float last[SIGNS_BLOCK] = {0};
        memcpy(last, x + at, rest * sizeof(float));
        signs_block(signs, at / SIGNS_BLOCK, words);
        add_block(table, last, words, rng_next(&shifts));
    }
    for (int b = 0; b < SKETCH_BUCKETS; b++) {
        double sum = 0;
        for (int t = 0; t < TABLES; t++)
            sum += table[t][b] + table[t][b + SKETCH_BUCKETS];
        buckets[b] = sum;
    }
}

KERNEL_ON_PATHS(void, sketch, (double *buckets, const float *x, size_t n, uint64_t seed),
                sketch(buckets, x, n, seed))

const sketch_kernel sketch_kernels[KERNEL_PATHS] = {
    [KERNEL_PATH_BASE] = sketch_base,
    [KERNEL_PATH_AVX2] = sketch_avx2,
    [KERNEL_PATH_AVX512] = sketch_avx512,
};

void sketch_of(double *buckets, const float *x, size_t n, uint64_t seed)
{
    sketch_kernels[kernel_path_best()](buckets, x, n, seed);
}
