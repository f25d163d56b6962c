/* training.h: the nodes of `parley sim` train models on shares of one data set, with the very
 * trainer of the real node. Shares are drawn when a node starts to train, from the members it then
 * sees alive, and anew when those change.
 *
 * A trainer's scratch memory is a thread's, not a node's: a node has its place in its share and
 * some numbers of its newest steps. Nodes that see the same members, as most do, share one drawing
 * of the partition.
 */
#ifndef PARLEY_SIM_TRAINING_H
#define PARLEY_SIM_TRAINING_H

#include "job/job.h"
#include "world/compute/task.h"

/* A partition among the members called names, which a node saw when it started to train. */
struct sim_shares {
    const char **names; /* [members], sorted; owned, the names borrowed */
    uint32_t members;
    uint32_t *start; /* [members + 1]: whose samples begin where; owned, NULL: all have all */
    uint32_t *samples;
};

struct sim_training {
    const struct job *job;     /* borrowed; its trainer stands for all where they are alike */
    struct trainer **trainers; /* [threads]; owned */
    struct trainer_node *own;  /* [nodes] */
    /* Where a fault asks for wrong labels: the same on such data; else NULL. */
    struct trainer **misled; /* [threads]; owned */
    struct job wrong;        /* the job, but for its labels, which are owned */
    bool *mislabelled;       /* [nodes]; owned */
    uint32_t threads, nodes;
    float *first;             /* [parameters], the initial model; owned */
    struct sim_shares shares; /* the newest */
    struct coverage coverage; /* owned */
    char why[256];            /* of the last failure */
};

/* Fills in *task, which points to *training. PARLEY_ENOMEM; PARLEY_EUSAGE with training->why. To be
 * closed also then. */
PARLEY_CHECK int sim_training_init(struct sim_training *training, struct sim_task *task,
                                   const struct job *job, uint32_t nodes, uint32_t threads);
void sim_training_close(struct sim_training *training);

#endif
