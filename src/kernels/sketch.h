/* sketch.h: a CountSketch of a model, from which distances between models are told.
 *
 * After Charikar, Chen, Farach-Colton, "Finding frequent items in data streams" (2002): each
 * element is added, with a random sign, to one of 256 buckets. The map is linear, so S x - S y =
 * S(x - y), and ||S z||^2 is an unbiased estimate of ||z||^2 with relative variance at most 2 / 256
 * (rms error 8.8 % for one vector; an average over the models of a cluster has less).
 *
 * Buckets differ from the paper's in one way that costs nothing and makes the loop a plain one:
 * rows of 256 consecutive elements go to 256 different buckets, rotated by a random amount a row.
 * Two elements of one row never meet, two of different rows meet with chance 1/256, as before.
 * Thread rule: pure; call from any thread.
 */
#ifndef PARLEY_KERNELS_SKETCH_H
#define PARLEY_KERNELS_SKETCH_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/path.h"
#include "parley/config.h"

enum { SKETCH_BUCKETS = PARLEY_SKETCH_BUCKETS };

/* Into buckets: [SKETCH_BUCKETS] the sketch of x: [n]. Equal seeds (the run id) on all nodes, or
 * sketches can't be compared. */
void sketch_of(double *buckets, const float *x, size_t n, uint64_t seed);

/* The paths behind sketch_of, for tests and benchmarks; call only a supported one. */
typedef void (*sketch_kernel)(double *buckets, const float *x, size_t n, uint64_t seed);
extern const sketch_kernel sketch_kernels[KERNEL_PATHS];

#endif
