/* mix.h: averaging two models: the difference of two snapshots, and adding it.
 *
 *   mix_take   a snapshot, and its norm, in one pass; in parts
 *   mix_diff   theirs <- theirs - ours, with all that the protocol wants to know of it, in one pass
 *   mix_diff_next, mix_diff_rest   the same as theirs come in, while they are in the cache
 *   mix_gap, mix_subtract   the same in two: what the protocol wants to know; the difference
 *   mix_add_gap   adding a difference that stands nowhere
 *   mix_add    x <- x + c d;  mix_add_to the same of what stands elsewhere
 *   mix_combine   y <- keep y + c x, for sums over a ring and for outer optimizers
 *
 * fp32 subtraction and multiplication are antisymmetric, so the two ends' deltas c d cancel to the
 * bit, and so do their masses; only adding rounds, by half an ulp at most. Sums are fp64 in a fixed
 * order that depends on n alone, on every instruction set. The mass is <r, d> with r_j = +-1 drawn
 * by (sign_seed, j / MIX_BLOCK, j % MIX_LANES). Thread rule: pure; call from any thread, on vectors
 * that nobody else writes.
 */
#ifndef PARLEY_KERNELS_MIX_H
#define PARLEY_KERNELS_MIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/rng.h"
#include "kernels/path.h"

enum { MIX_BLOCK = 2048, MIX_LANES = 16 };

struct mix_diff_result {
    bool finite;    /* theirs, ours and d are, in every element */
    double norm_sq; /* ||d||^2; infinite or NaN unless finite */
    double mass;    /* <r, d>; the other end's, negated, exactly */
};

/* How far a difference has come: in whole blocks of MIX_BLOCK floats. All 0: nothing yet. */
struct mix_part {
    size_t done; /* floats of d that stand already */
    double delta[MIX_LANES], mass[MIX_LANES];
};

struct mix_gap {
    double norm_sq; /* ||theirs - ours||^2: finite exactly if all elements are */
    double mass;    /* <r, theirs - ours> */
};

/* Of a snapshot so far. All 0: nothing yet. */
struct mix_squares {
    double lane[MIX_LANES];
};

/* to <- from, [n], not overlapping: some more of a snapshot, a multiple of MIX_LANES floats unless
 * it is the last. */
void mix_take(struct mix_squares *squares, float *restrict to, const float *restrict from,
              size_t n);
/* mix_norm_sq() of the whole, to the bit. */
double mix_squares_sum(const struct mix_squares *squares);

/* theirs, ours: [n], not overlapping, no alignment needed. */
void mix_diff(float *restrict theirs, const float *restrict ours, size_t n, uint64_t sign_seed,
              struct mix_diff_result *out);

/* The same in parts, equal to the bit. The next `blocks` of MIX_BLOCK floats, each vector from
 * part->done on; d is theirs or overlaps neither. */
void mix_diff_next(struct mix_part *part, float *d, const float *theirs, const float *ours,
                   size_t blocks, uint64_t sign_seed);
/* What is left of all n, in theirs' place, and the figures. */
void mix_diff_rest(struct mix_part *part, float *restrict theirs, const float *restrict ours,
                   size_t n, uint64_t sign_seed, struct mix_diff_result *out);

/* The figures alone, equal to the bit; theirs and ours stay. */
void mix_gap(const float *theirs, const float *ours, size_t n, uint64_t sign_seed,
             struct mix_gap *out);

/* d <- theirs - ours; all [n], d overlaps neither. */
void mix_subtract(float *restrict d, const float *theirs, const float *ours, size_t n);

/* x, d: [n], not overlapping. */
void mix_add(float *restrict x, const float *restrict d, float c, size_t n);

/* x <- from + c d, what a copy and mix_add() do, to the bit. [n]; x is `from` or overlaps nothing,
 * d overlaps neither. */
void mix_add_to(float *x, const float *from, const float *restrict d, float c, size_t n);

/* x <- from + c (theirs - ours) and, unless m is NULL, m <- m + cm (theirs - ours), in one pass:
 * what a copy, mix_subtract() and mix_add() do, to the bit. [n]; x is `from` or overlaps nothing, m
 * overlaps nothing. */
void mix_add_gap(float *x, const float *from, float *restrict m, const float *theirs,
                 const float *ours, float c, float cm, size_t n);

/* x <- x + rest, rest <- what rounding kept from x, exactly (Knuth, "The Art of Computer
 * Programming", volume 2, 4.2.2, theorem B). For terms so small that x would not feel them, and
 * which add up. [n], not overlapping. */
void mix_add_rest(float *restrict x, float *restrict rest, size_t n);

/* y, x: [n], not overlapping. A vector times 0 is not read, so that one that holds anything may be
 * overwritten, and x may be NULL; times 1 it is taken as it is. Returns whether all of y is finite
 * then. */
bool mix_combine(float *restrict y, const float *restrict x, float keep, float c, size_t n);

/* ||x||^2 in fp64: no finite fp32 vector overflows it, so it is finite exactly if x is. */
double mix_norm_sq(const float *x, size_t n);

bool mix_finite(const float *x, size_t n);

/* The paths behind those above, for tests and benchmarks; call only a supported one. */
struct mix_kernels {
    /* Blocks, in `d` or nowhere; a draw of `signs` for each. */
    void (*diff)(struct mix_part *part, float *d, const float *theirs, const float *ours,
                 size_t blocks, struct rng signs);
    void (*gap)(struct mix_part *part, const float *theirs, const float *ours, size_t blocks,
                struct rng signs);
    void (*take)(double *lane, float *to, const float *from, size_t n);
    void (*norm_sq)(double *lane, const float *x, size_t n);
    void (*add)(float *x, const float *from, const float *restrict d, float c, size_t n);
    void (*add_gap)(float *x, const float *from, float *restrict m, const float *restrict theirs,
                    const float *restrict ours, float c, float cm, size_t n);
    bool (*finite)(const float *x, size_t n);
};
extern const struct mix_kernels mix_kernels[KERNEL_PATHS];

#endif
