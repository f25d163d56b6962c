/* training.h: the nodes of `parley sim` train models on shares of one data set, with the very
 * trainer of the real node. Shares are drawn when a node starts to train, from the members it then
 * sees alive.
 */
#ifndef PARLEY_SIM_TRAINING_H
#define PARLEY_SIM_TRAINING_H

#include "data/dataset.h"
#include "data/partition.h"
#include "task.h"
#include "train/trainer.h"

struct sim_training {
    struct trainer_options options;
    struct partition_spec partition;
    const struct dataset *train; /* borrowed */
    struct trainer **trainers;   /* [nodes], made when a node first starts; owned */
    uint32_t nodes;
    char why[256]; /* of the last failure */
};

/* Fills in *task, which points to *training. options' strings and `train` are borrowed.
 * PARLEY_EUSAGE with training->why, PARLEY_ENOMEM; to be closed also then. */
PARLEY_CHECK int sim_training_init(struct sim_training *training, struct sim_task *task,
                                   const struct trainer_options *options, const char *partition,
                                   const struct dataset *train, uint32_t nodes);
void sim_training_close(struct sim_training *training);

/* Accuracy and loss of x on `test`. */
void sim_training_evaluate(struct sim_training *training, const float *x,
                           const struct dataset *test, double *accuracy, double *loss);

#endif
