/* scale.h: samples made into inputs: (value - shift) * scale.
 *
 * Each element is rounded by itself, in the same way on every path. Thread rule: pure.
 */
#ifndef PARLEY_KERNELS_SCALE_H
#define PARLEY_KERNELS_SCALE_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/path.h"

/* Inputs that stay bytes until they are used. */
struct pixels {
    const uint8_t *bytes; /* NULL: there are none */
    float shift, scale;
};

/* from, to: [n], no alignment needed; one pair for all elements. */
void scale_bytes(const uint8_t *restrict from, float *restrict to, size_t n, float shift,
                 float scale);

/* from, to, shift, scale: [n]. */
void scale_floats(const float *restrict from, float *restrict to, size_t n,
                  const float *restrict shift, const float *restrict scale);

/* The paths behind the two above, for tests; call only a supported one. */
struct scale_kernels {
    void (*bytes)(const uint8_t *restrict from, float *restrict to, size_t n, float shift,
                  float scale);
    void (*floats)(const float *restrict from, float *restrict to, size_t n,
                   const float *restrict shift, const float *restrict scale);
};
extern const struct scale_kernels scale_kernels[KERNEL_PATHS];

#endif
