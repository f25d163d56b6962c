/* curve.h: points along a run: what the mean model is worth, how far the nodes are apart, and what
 * it has cost until then.
 *
 * Accuracy and loss are the mean model's on the test data; looking costs no virtual time. Points
 * lie evenly in the budget where it is known ahead; with a target accuracy alone they lie evenly in
 * samples, and every other is dropped whenever there are too many.
 * Thread rule: as the simulation's.
 */
#ifndef PARLEY_SIM_CURVE_H
#define PARLEY_SIM_CURVE_H

#include "data/source.h"
#include "train/trainer.h"
#include "world/cluster.h"

enum { CURVE_POINTS = 40, CURVE_POINTS_MAX = 2 * CURVE_POINTS + 2 };

struct curve_point {
    double time_s;         /* virtual */
    double bytes, samples; /* of all nodes so far */
    double epoch;          /* samples over those of the data */
    double accuracy, loss; /* NAN: only the drift was looked at */
    double drift;          /* relative: rms distance from the mean over the mean's norm; NAN: of
                            * nobody, as all are dead */
};

struct curve {
    struct curve_point points[CURVE_POINTS_MAX];
    uint32_t count;
    double every, next; /* in the units of `place` */
    double after_s;     /* the next look at the drift once training is over; 0: not set */
    double pause_s;     /* until the one after it; grows, since nobody knows how long it takes */
    /* Of whoever evaluates, borrowed; NULL: there is nothing to evaluate, and drift alone. */
    struct trainer *trainer;
    const struct source *data;
    float *mean; /* [parameters]; owned */
};

/* data: borrowed; every: the distance of two points. PARLEY_ENOMEM; to be closed also then. */
PARLEY_CHECK int curve_init(struct curve *curve, struct trainer *trainer, const struct source *data,
                            uint64_t parameters, double every);

/* Adds a point if the run has come to its place. place: fraction of the budget, or samples. */
void curve_look(struct curve *curve, struct parley_sim *sim, double place);

/* After the last local step, now and then: adds a point of drift alone. trained_s: its time. */
void curve_settle(struct curve *curve, struct parley_sim *sim, double trained_s);

/* The last point: the agreed model's figures, as judged elsewhere. */
void curve_end(struct curve *curve, struct parley_sim *sim, double time_s, double accuracy,
               double loss);

/* Frees all but the points. */
void curve_close(struct curve *curve);

#endif
