/* moved.h: how far a step moves a large vector, by a sample of it.
 *
 * Places lie evenly over the vector, so each layer is there by its size. Costs next to nothing.
 * Thread rule: pure.
 */
#ifndef PARLEY_KERNELS_MOVED_H
#define PARLEY_KERNELS_MOVED_H

#include <stddef.h>

enum { MOVED_PLACES = 64, MOVED_RUN = 16 };

struct moved {
    float before[MOVED_PLACES * MOVED_RUN];
};

/* x: [n], before the step. */
void moved_begin(struct moved *moved, const float *x, size_t n);

/* x after it: an estimate of ||x - x before||^2; exact for n up to 1,024. */
double moved_end(const struct moved *moved, const float *x, size_t n);

#endif
