/* optimizer.h: how a gradient moves the parameters.
 *
 * A step is: ask optimizer_sink where the gradient goes, let gradient_backward put it there; that
 * calls back for each range that is done. So SGD adds it right into x, and momentum right into its
 * vector.
 * Thread rule: pure functions of their arguments.
 */
#ifndef PARLEY_TRAIN_OPTIMIZER_H
#define PARLEY_TRAIN_OPTIMIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "parley/error.h"
#include "train/gradient.h"

enum optimizer {
    OPTIMIZER_SGD,      /* x -= rate * g */
    OPTIMIZER_MOMENTUM, /* m = beta * m + g; x -= rate * m (Polyak 1964) */
    OPTIMIZER_NESTEROV, /* m = beta * m + g; x -= rate * (g + beta * m) */
};

/* "sgd", "momentum", "nesterov"; else PARLEY_EUSAGE with one line in why[why_size]. */
PARLEY_CHECK int optimizer_parse(enum optimizer *optimizer, const char *name, char *why,
                                 size_t why_size);

/* How many vectors as long as x the optimizer keeps. */
uint32_t optimizer_vectors(enum optimizer optimizer);

/* Whether it needs a gradient vector of its own; if not, `gradient` below may be NULL. */
bool optimizer_wants_gradient(enum optimizer optimizer);

/* One step's operands; all vectors are as long as x, and distinct. */
struct optimizer_step {
    enum optimizer optimizer;
    float *x;
    float *const *state;   /* [optimizer_vectors()] */
    float *gradient;       /* or NULL */
    float rate;            /* of this step, at least 0 */
    float beta;            /* in [0, 1) */
    float gradient_factor; /* on what gradient_backward computes: 1 / rows for a mean */
};

/* The sink borrows `step`. */
struct gradient_sink optimizer_sink(struct optimizer_step *step);

#endif
