/* verdict.h: what the nodes of a simulated run hold at its end. Thread rule: as the simulation's.
 */
#ifndef PARLEY_SIM_VERDICT_H
#define PARLEY_SIM_VERDICT_H

#include "world/cluster.h"

/* Accuracies and losses are NAN where nobody holds a model, or there is nothing to measure on. */
struct verdict {
    uint32_t live, holders; /* holders: have agreed, be it to one model or to several */
    uint32_t agreed;        /* to one model: the largest group of holders that has one digest */
    uint32_t first;         /* of that group, by number */
    uint32_t known;
    double drift_before;
    double accuracy, worst, loss; /* of that group's model; the least of any holder's */
    uint64_t exchanges, dropped;
    double mass_dropped;
    int error; /* the first that a node ended with */
};

/* So far, each once. */
uint64_t verdict_exchanges(struct parley_sim *sim);

void verdict_judge(struct verdict *verdict, struct parley_sim *sim);

#endif
