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

/* How far those are apart: sqrt(sum of ||x_i - mean||^2 / their number) / ||mean||; NAN where there
 * are none. */
double models_drift(struct parley_sim *sim);

/* The test accuracy of the nodes' own models. Of more than MODELS_OWN_MAX nodes so many are judged:
 * of as many equal parts of their list, a node each, drawn by the seed. */
enum { MODELS_OWN_MAX = 16 };
struct models_own {
    uint32_t judged;
    double mean, worst, deviation; /* NAN: there is none, of the deviation with one node, too */
};
void models_own(struct models_own *own, struct parley_sim *sim, uint64_t seed);

#endif
