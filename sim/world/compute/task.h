/* task.h: what the nodes of a simulation train: a table of calls, made by the fixture (vectors
 * pulled to targets, or a program's own training) or by `parley sim` (models on shares of a data
 * set).
 */
#ifndef PARLEY_SIM_TASK_H
#define PARLEY_SIM_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "parley/error.h"
#include "parley/sim.h"
#include "train/trainer.h"

struct job_members;

struct sim_task {
    void *self;
    uint64_t parameters;
    uint32_t vectors;
    uint32_t batch;
    bool batch_is_shared; /* as in parley_config */
    bool alike;           /* all nodes start with the same model */
    uint64_t model_digest;
    const struct tensor *tensors; /* [tensors_count] or NULL, for the digest */
    uint32_t tensors_count;
    /* The others are called in the loop's thread. A node's first model, at each of its starts;
     * vectors: [vectors] of [parameters]. */
    void (*start)(void *self, uint32_t node, float *const *vectors);
    /* These members are alive for `node`, itself among them, or gone, now that its training starts
     * (`first`) or goes on with others than before. samples: of the cluster, so far. NULL: no
     * matter. An error comes with a line in why. */
    int (*share)(void *self, uint32_t node, const struct job_members *members, bool first,
                 uint64_t samples, char *why, size_t why_size);
    /* How far `node` has come with its share; NULL: no matter. In several threads as step(). */
    uint64_t (*place)(void *self, uint32_t node);
    /* One local step; returns the loss. NULL: nothing moves. `from` is vectors[0] before it: the
     * same, or another that stays as it is while all of vectors[0] is written. Called in several
     * threads at once, for different nodes; `thread` counts them from 0. */
    double (*step)(void *self, uint32_t node, uint32_t thread, const float *from,
                   float *const *vectors, const struct trainer_turn *turn);
    /* The two halves of a step, likewise: the gradient at x into gradient[parameters], and the step
     * with factor * gradient. */
    double (*gradient)(void *self, uint32_t node, uint32_t thread, const float *x, float *gradient,
                       const struct trainer_turn *turn);
    void (*apply)(void *self, uint32_t node, uint32_t thread, float *const *vectors,
                  const float *gradient, float factor, const struct trainer_turn *turn);
    /* How many samples a step of `node` takes; NULL: `batch`. */
    uint32_t (*samples)(void *self, uint32_t node);
    /* What vectors[1] gets of each averaging's d for vectors[0] after the newest step of `node`;
     * NULL: nothing. In several threads as step(). */
    float (*follow)(void *self, uint32_t node);
    /* From now on `node` trains on wrong labels, or on the right ones again. No step of it is being
     * made. NULL: there are none. */
    void (*mislabel)(void *self, uint32_t node, bool wrong);
    /* What the model x is worth on data that no node trains on. NULL: there are none. In several
     * threads as step(). */
    void (*evaluate)(void *self, uint32_t thread, const float *x, double *accuracy, double *loss);
    /* Whether the accuracy is at least so much, which is quicker told. NULL: there is none. */
    bool (*reaches)(void *self, const float *x, double accuracy);
};

/* The fixture's: vectors drawn from a normal distribution, of which each step moves x by rate *
 * (target - x), the target a draw of the node's own; or, with options->work, the program's
 * (program.c). *task owns memory until sim_task_close(). PARLEY_ENOMEM. */
PARLEY_CHECK int sim_vectors_init(struct sim_task *task, const struct parley_sim_options *options);
PARLEY_CHECK int sim_program_init(struct sim_task *task, const struct parley_sim_options *options);
void sim_task_close(struct sim_task *task);

#endif
