/* optimizer.h: how a gradient moves the parameters.
 *
 * A step is: ask optimizer_target where the gradient goes, let gradient_backward put it there,
 * optimizer_finish. So SGD adds it right into x and momentum right into its vector.
 * Thread rule: pure functions of their arguments.
 */
#ifndef PARLEY_TRAIN_OPTIMIZER_H
#define PARLEY_TRAIN_OPTIMIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "parley/error.h"

enum optimizer {
    OPTIMIZER_SGD,      /* x -= rate * g */
    OPTIMIZER_MOMENTUM, /* m = beta * m + g; x -= rate * m (Polyak 1964) */
    OPTIMIZER_NESTEROV, /* m = beta * m + g; x -= rate * (g + beta * m) */
};

/* Where a gradient goes: into = keep * into + scale * gradient. */
struct optimizer_target {
    float *into;
    float scale, keep;
};

/* "sgd", "momentum", "nesterov"; else PARLEY_EUSAGE with one line in why[why_size]. */
PARLEY_CHECK int optimizer_parse(enum optimizer *optimizer, const char *name, char *why,
                                 size_t why_size);

/* How many vectors as long as x the optimizer keeps. */
uint32_t optimizer_vectors(enum optimizer optimizer);

/* Whether it needs a gradient vector of its own; if not, `gradient` below may be NULL. */
bool optimizer_wants_gradient(enum optimizer optimizer);

/* rate: of this step, at least 0; beta: in [0, 1). All vectors: [count], and distinct. */
struct optimizer_target optimizer_target(enum optimizer optimizer, float *x, float *const *state,
                                         float *gradient, float rate, float beta);
void optimizer_finish(enum optimizer optimizer, float *x, float *const *state,
                      const float *gradient, size_t count, float rate, float beta);

#endif
