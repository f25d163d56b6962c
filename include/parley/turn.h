/* parley/turn.h: what a program that trains is to do next, as a node (parley.h) or in the simulator
 * (sim.h).
 *
 * A struct parley_turn is written by the library and read by the program's training, which does
 * what `work` says. What it points at may be used until that is done.
 */
#ifndef PARLEY_TURN_H
#define PARLEY_TURN_H

#include <stdbool.h>
#include <stdint.h>

enum parley_work {
    PARLEY_WORK_STEP, /* a local step on the vectors */
    /* gradient[] = that of the next batch's mean loss at at[]; is a step, too. It comes again until
     * a step is reported, after parley_stop(), too: others wait for it. */
    PARLEY_WORK_GRADIENT,
    /* The optimizer's step with factor * gradient[], at a rate divided by weight; reports none. */
    PARLEY_WORK_APPLY
};

struct parley_turn {
    enum parley_work work; /* STEP unless options.splits */
    float *gradient;       /* GRADIENT: to be written; APPLY: to be left as it is */
    const float *at;       /* GRADIENT: the parameters it is of; perhaps vectors[0] */
    float factor;          /* APPLY */
    bool started;    /* true once: the first step comes; parley_live() tells whose the data is */
    double progress; /* of the cluster's budget, in [0, 1]: for the learning-rate schedule */
    uint32_t live;   /* nodes that live, this one included */
    /* Above 0: divide the learning rate by it; 1 but for PUSH_SUM, and APPLY of PS_ASP and PS_SSP.
     */
    double weight;
    /* Local steps that the optimizer's vectors have been through, those made by the peer that a
     * late node took them from included: for corrections by step count. */
    uint64_t state_steps;
    uint64_t averaged; /* deltas that averaging has added to x so far */
    uint64_t turnover; /* how often the names that parley_live() gives have changed so far */
};

#endif
