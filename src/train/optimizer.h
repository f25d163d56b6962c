/* optimizer.h: how a gradient moves the parameters.
 *
 * A step is: ask optimizer_sink where the gradient goes, let gradient_backward put it there; that
 * calls back for each range that is done; optimizer_end does what needs the whole gradient. So SGD
 * adds it right into x, momentum right into its vector, and the others pass over each range while
 * it is in the cache. Clipping by norm and full batches wait for the end.
 *
 *   gd        x -= rate * g, g over the node's whole share (Cauchy 1847)
 *   sgd       the same, g over a batch (Robbins, Monro 1951)
 *   momentum  m = beta m + g;  x -= rate * m (Polyak 1964, section 3)
 *   nesterov  m = beta m + g;  x -= rate * (g + beta m) (Sutskever et al., ICML 2013, section 2,
 *             with the parameters taken at the point looked ahead to)
 *   adagrad   v += g g;  x -= rate * g / (sqrt(v) + epsilon) (Duchi, Hazan, Singer, JMLR 12, 2011,
 *             section 1.1, diagonal)
 *   rmsprop   v = beta2 v + (1 - beta2) g g;  x as adagrad (Tieleman, Hinton 2012, lecture 6e)
 *   adam      m = beta m + (1 - beta) g;  v as rmsprop;  m' = m / (1 - beta^t), v' likewise;
 *             x -= rate * m' / (sqrt(v') + epsilon) (Kingma, Ba, ICLR 2015, algorithm 1)
 *   adamw     x -= rate * decay * x, then adam (Loshchilov, Hutter, ICLR 2019, algorithm 2; their
 *             schedule's multiplier is here the whole rate)
 *
 * Order in a step: clip by value, clip by norm (Pascanu, Mikolov, Bengio, ICML 2013, section 3.2),
 * then g += decay * x (but for adamw). Biases decay as weights do.
 * Thread rule: pure functions of their arguments.
 */
#ifndef PARLEY_TRAIN_OPTIMIZER_H
#define PARLEY_TRAIN_OPTIMIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "parley/error.h"
#include "train/gradient.h"

struct optimizer_numbers {
    double momentum;     /* beta, in [0, 1); rules without momentum don't look at it */
    double beta2;        /* in (0, 1); 0: the rule's own, 0.99 for rmsprop, 0.999 for adam(w) */
    double epsilon;      /* above 0; 0: the rule's own, 1e-8 */
    double weight_decay; /* at least 0; NAN: the rule's own, 0.01 for adamw, else 0 */
    double clip_norm;    /* greatest Euclidean norm of a gradient; 0: any */
    double clip_value;   /* greatest magnitude of its parts; 0: any */
};

struct optimizer {
    const struct optimizer_rule *rule; /* constant */
    struct optimizer_numbers numbers;  /* with the rule's own in place */
};

/* name: as above. PARLEY_EUSAGE with one line in why[why_size] that names the value and what is
 * valid. */
PARLEY_CHECK int optimizer_init(struct optimizer *optimizer, const char *name,
                                const struct optimizer_numbers *numbers, char *why,
                                size_t why_size);

/* How many vectors as long as x the optimizer keeps (0 to 2). They start as zeroes. */
uint32_t optimizer_vectors(const struct optimizer *optimizer);

/* Whether it needs a gradient vector of its own; if not, `gradient` below may be NULL. */
bool optimizer_wants_gradient(const struct optimizer *optimizer);

/* Whether state[0] is a momentum in units of the gradient, by which x moves at the step's rate. */
bool optimizer_has_momentum(const struct optimizer *optimizer);

/* Whether a step takes the whole share. Its parts may be computed one after the other: the sink's
 * keep is 0 for the first and 1 for the rest. */
bool optimizer_is_full_batch(const struct optimizer *optimizer);

/* One step's operands; all vectors are as long as x, and distinct, but that `from` may be x. */
struct optimizer_step {
    const struct optimizer *optimizer;
    const float *from;      /* x before the step; optimizer_apply: x itself */
    float *x;               /* after it */
    size_t count;           /* floats in x that it moves, from the first */
    float *const *state;    /* [optimizer_vectors()] */
    float *gradient;        /* or NULL */
    double rate;            /* of this step, at least 0 */
    double gradient_factor; /* on what gradient_backward computes: 1 / rows for a mean */
    uint64_t steps;         /* that `state` has been through before this one */
    bool anew;              /* what of momentum and nesterov is in state[0] counts as 0 */

    /* Filled by optimizer_sink. */
    struct optimizer_factors {
        float rate, beta, beta_rest, beta2_rest; /* rest: 1 - beta */
        float keep;                              /* of the momentum before: beta, or 0 */
        float root;                              /* on sqrt(v): 1 / sqrt(1 - beta2^t) */
        float epsilon, decay, clip;              /* clip: by norm */
    } factors;
};

/* The sink borrows `step`. */
struct gradient_sink optimizer_sink(struct optimizer_step *step);

/* The same step with gradient_factor times a gradient that is there already, and stays as it is;
 * step->gradient is scratch for OPTIMIZER_RANGE floats. In place of optimizer_sink and _end. */
enum { OPTIMIZER_RANGE = 16384 };
void optimizer_apply(struct optimizer_step *step, const float *gradient);

/* After the last gradient_backward of the step. */
void optimizer_end(struct optimizer_step *step);

#endif
