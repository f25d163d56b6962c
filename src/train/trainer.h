/* trainer.h: training: model, optimizer and schedule, as one step function.
 *
 * Both drivers train through this and nothing else. The flat parameter vector x and the optimizer's
 * vectors belong to the caller, who may change x between two steps (that is what averaging does),
 * and so does what else is a node's own: one trainer, with its options and scratch memory, may
 * serve many nodes in turn.
 * Happy path: trainer_new, trainer_start, and for each node trainer_share, trainer_step again and
 * again, trainer_evaluate now and then, sampler_close; trainer_free.
 * Thread rule: a trainer belongs to one thread at a time; many trainers may share one data set.
 */
#ifndef PARLEY_TRAIN_TRAINER_H
#define PARLEY_TRAIN_TRAINER_H

#include <stddef.h>
#include <stdint.h>

#include "data/dataset.h"
#include "data/sampler.h"
#include "parley/error.h"
#include "train/optimizer.h"

#define TRAINER_BATCH_MAX (1u << 20) /* samples a step */

struct model;
struct trainer; /* opaque */

/* The linear scaling rule (Goyal et al., arXiv:1706.02677, section 2.1): `rate` is for 32 samples
 * and grows with those that a step of ... takes. It holds up to some number of samples only (there,
 * section 5.1). */
enum trainer_scale {
    TRAINER_SCALE_NONE,
    TRAINER_SCALE_BATCH,  /* ... one node */
    TRAINER_SCALE_CLUSTER /* ... all live nodes, up to 256: 8 times the rate at most */
};

/* What the rate is multiplied by, of `live` nodes with batches of `batch` samples. */
double trainer_scaling(enum trainer_scale scale, uint32_t batch, uint32_t live);

/* What averaging does to the momentum of "momentum" and "nesterov". */
enum trainer_momentum {
    /* Nothing: it sums gradients of the node's own data only (Lian et al., NeurIPS 2017). */
    TRAINER_MOMENTUM_LOCAL,
    /* It sums, in part, what x has really moved by, averaging included. After Lin et al., ICML
     * 2021, algorithm 1, but not by their equation, a running mean of all that x has moved by:
     * beside the own gradients stands up to half of what averaging did, see trainer_follow(). */
    TRAINER_MOMENTUM_QUASI_GLOBAL,
    /* It is averaged as x is, by whoever does that: twice the traffic (Yu, Jin, Yang, ICML 2019).
     */
    TRAINER_MOMENTUM_AVERAGED,
    /* It begins anew with the step after an averaging. */
    TRAINER_MOMENTUM_RESET
};

struct trainer_options {
    const char *model;     /* "softmax", "mlp:256,128" */
    const char *optimizer; /* a name of optimizer.h */
    const char *schedule;  /* a name of schedule.h */
    double rate;           /* learning rate, per batch; finite, at least 0 */
    struct optimizer_numbers numbers;
    double warmup;  /* part of the budget, in [0, 1) */
    uint32_t batch; /* samples a step, 1 to TRAINER_BATCH_MAX; gd: computed at once */
    enum trainer_scale scale;
    enum trainer_momentum momentum_mode;
    double averaged_part; /* of x that an averaging is of, in (0, 1]; 0: all of it */
    uint64_t seed;        /* of the initial model (equal on all nodes) */
};

/* What a step depends on beside its samples. */
struct trainer_turn {
    double progress;   /* of the cluster's budget, in [0, 1]: for the schedule */
    uint64_t steps;    /* that the optimizer's vectors have been through, whoever made them */
    uint32_t live;     /* nodes, this one included; at least 1 */
    uint64_t averaged; /* times that averaging has changed x so far */
    double weight;     /* of x (push-sum), or how stale a gradient is: the rate is divided by it;
                          0: 1 */
};

/* What is a node's own from one step to the next, beside x and the optimizer's vectors: zeroed at
 * first, and its sampler is for the caller to close. */
struct trainer_node {
    struct sampler sampler; /* order is NULL until there is a share */
    double rate;            /* of the newest step; 0 before the first */
    uint64_t averaged;      /* before it */
    double density;         /* averagings a step lately, in [0, 1] */
};

/* `set` is borrowed and must outlive the trainer; the options are copied.
 * PARLEY_EUSAGE with a message in why[why_size] for a bad option; PARLEY_ENOMEM. */
PARLEY_CHECK int trainer_new(struct trainer **trainer, const struct trainer_options *options,
                             const struct dataset *set, char *why, size_t why_size);

/* Borrowed: names and shapes of x, its normal spec, its digest. */
const struct model *trainer_model(const struct trainer *trainer);

/* With what the optimizer was told left to it in place. */
const struct optimizer_numbers *trainer_numbers(const struct trainer *trainer);

/* Number of floats in x, and how many optimizer vectors of that same length there are (0 to 2). */
size_t trainer_parameters(const struct trainer *trainer);
/* Whether it has a gradient as long as the parameters, beside its vectors. */
bool trainer_keeps_gradient(const struct trainer *trainer);
uint32_t trainer_state_vectors(const struct trainer *trainer);

/* The initial model, a pure function of (model, seed); zeroes the optimizer's vectors. */
void trainer_start(const struct trainer *trainer, float *x, float *const *state);

/* Memory for x and the optimizer's vectors, started: x is returned, for the caller to free(), and
 * state[0] and [1], if there are such, lie in the same block, each from a cache line on. NULL:
 * there is no memory. */
float *trainer_vectors(const struct trainer *trainer, float **state);

/* Which samples the node trains on; copied. May be called again, between steps, with a share in
 * ascending order: what was visited in this pass counts as visited, and `due` is sampler_share()'s;
 * NULL at first. PARLEY_EDATA if count is 0 or a sample is not in the set, PARLEY_ENOMEM: the share
 * stays as it was. */
PARLEY_CHECK int trainer_share(const struct trainer *trainer, struct trainer_node *node,
                               const uint32_t *share, uint32_t count, const uint64_t *due,
                               uint64_t sampler_seed);

/* Samples of a step: the batch, or for gd the whole share (until there is one, or where `node` is
 * NULL, the whole set). */
uint32_t trainer_samples(const struct trainer *trainer, const struct trainer_node *node);
/* A step takes all samples of the share. */
bool trainer_is_full_batch(const struct trainer *trainer);

/* One local step on the next batch; needs a share. from: x before the step, which may stand
 * somewhere else and stays as it is then. Returns the batch's mean loss (before the step; of text
 * over all places).
 * If that is not finite, nothing has been changed but the place in the share: the caller ends the
 * run (PARLEY_EDIVERGED). Allocates nothing. */
double trainer_step(struct trainer *trainer, struct trainer_node *node, const float *from, float *x,
                    float *const *state, const struct trainer_turn *turn);

/* The two halves of a step, for strategies that average gradients. The first: the next batch's
 * gradient at x, of the mean loss, into gradient[parameters]; returns the loss. If that is not
 * finite, neither need the gradient be. Behind the gradient stands by how much the batch moves the
 * running statistics, which the second adds, times factor over turn->weight. The second: the
 * optimizer's step with factor times any gradient, which stays as it is; turn->live is what the
 * rate may scale with. */
double trainer_gradient(struct trainer *trainer, struct trainer_node *node, const float *x,
                        float *gradient);
void trainer_apply(struct trainer *trainer, struct trainer_node *node, float *x,
                   float *const *state, const float *gradient, float factor,
                   const struct trainer_turn *turn);

/* Whoever adds d to x between two steps adds trainer_follow() * d to state[0], too; 0: nothing.
 *
 * A momentum is a sum of past gradients, each of which moved x by -rate times itself; averaging has
 * moved x by d, as a gradient of -d / rate would have. A part of that enters the momentum, so that
 * nodes with data of their own don't draw their models apart for as long as a momentum lasts. What
 * enters goes on moving x, by up to 1 / (1 - beta) times as much: so the part is the smaller the
 * rarer averagings of the same part of x are, else the models would swing around their mean, and
 * ever further. */
float trainer_follow(const struct trainer *trainer, const struct trainer_node *node);

/* What x says of the samples of `set` from `first` on (below its count), *rows of them, as many as
 * a batch holds: [*rows][classes] logits, of text for each place; or the numbers themselves.
 * Borrowed, until the next call; may be written to. `set` is as for trainer_evaluate(). */
float *trainer_outputs(struct trainer *trainer, const float *x, const struct dataset *set,
                       uint32_t first, uint32_t *rows);

/* Accuracy in [0, 1] and mean loss, both over all predictions, of x on `set`, which has the
 * trainer's features and no more classes. Both are 0 for an empty set. Where labels are
 * numbers the loss is the mean squared error, and the accuracy NAN in any case. Needs no share;
 * does not disturb training. */
void trainer_evaluate(struct trainer *trainer, const float *x, const struct dataset *set,
                      double *accuracy, double *loss);

/* Whether the accuracy that trainer_evaluate() finds is at least `accuracy`. Looks no further than
 * until so many are wrong that it can't be. For labels that are classes; false for an empty set. */
bool trainer_reaches(struct trainer *trainer, const float *x, const struct dataset *set,
                     double accuracy);

void trainer_free(struct trainer *trainer);

#endif
