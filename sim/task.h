/* task.h: what the nodes of a simulation train: a table of calls, made by the fixture (vectors
 * pulled to targets) or by `parley sim` (models on shares of a data set).
 */
#ifndef PARLEY_SIM_TASK_H
#define PARLEY_SIM_TASK_H

#include <stddef.h>
#include <stdint.h>

#include "parley/error.h"
#include "train/trainer.h"

struct sim_task {
    void *self;
    uint64_t parameters;
    uint32_t vectors;
    uint32_t batch;
    uint64_t model_digest;
    const struct tensor *tensors; /* [tensors_count] or NULL, for the digest */
    uint32_t tensors_count;
    /* A node's first model; vectors: [vectors] of [parameters]. boot counts its starts from 1. */
    void (*start)(void *self, uint32_t node, uint32_t boot, float *const *vectors);
    /* Training starts on `node` with these members alive, itself among them. NULL: no matter. */
    int (*begin)(void *self, uint32_t node, const char *const *names, uint32_t count);
    /* One local step; returns the loss. NULL: nothing moves. */
    double (*step)(void *self, uint32_t node, float *const *vectors,
                   const struct trainer_turn *turn);
    /* How many samples the next step of `node` takes; NULL: `batch`. */
    uint32_t (*samples)(void *self, uint32_t node);
};

/* Vectors drawn from a normal distribution; each step moves x by rate * (target - x), the target
 * a draw of the node's own. *task owns memory until sim_vectors_close(). */
PARLEY_CHECK int sim_vectors_init(struct sim_task *task, uint64_t parameters, uint32_t vectors,
                                  double rate, uint64_t seed);
void sim_vectors_close(struct sim_task *task);

#endif
