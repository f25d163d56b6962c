/* training.h: the nodes of `parley sim` train models on shares of one data set, with the very
 * trainer of the real node. Shares are drawn when a node starts to train, from the members it then
 * sees alive.
 */
#ifndef PARLEY_SIM_TRAINING_H
#define PARLEY_SIM_TRAINING_H

#include "job/job.h"
#include "task.h"

struct sim_training {
    const struct job *job;     /* borrowed; its trainer stands for all where they are alike */
    struct trainer **trainers; /* [nodes], made when a node first starts to train; owned */
    uint32_t nodes;
};

/* Fills in *task, which points to *training. PARLEY_ENOMEM; to be closed also then. */
PARLEY_CHECK int sim_training_init(struct sim_training *training, struct sim_task *task,
                                   const struct job *job, uint32_t nodes);
void sim_training_close(struct sim_training *training);

#endif
