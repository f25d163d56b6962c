/* models.h: what the models of a run are worth on the test data while it goes. Looking costs no
 * virtual time, and finds the same with any number of threads. Thread rule: as the simulation's.
 */
#ifndef PARLEY_SIM_MODELS_H
#define PARLEY_SIM_MODELS_H

#include "world/cluster.h"

/* Whether a node's model counts here: it lives, and has begun to train. */
bool models_counts(const struct parley_sim *sim, uint32_t node);

/* The mean of those models, which is what the nodes would agree on, into mean[parameters]. */
void models_mean(struct parley_sim *sim, float *mean);

#endif
