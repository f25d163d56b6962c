/* training.h: local steps, the budget of them, and this node's part of the cluster's samples.
 *
 * Thread rule: as the node's.
 */
#ifndef PARLEY_CORE_TRAINING_H
#define PARLEY_CORE_TRAINING_H

#include <stdbool.h>
#include <stdint.h>

#include "core/out.h"
#include "parley/node.h"

#define TRAINED_MAX (UINT64_C(1000000000000000000) - 1) /* steps, and samples */

struct record;

struct training {
    uint64_t version, samples;    /* as last reported, since this process started */
    struct parley_resumed before; /* what counts of the time before */
    double weight;                /* of x: 1 but for push_sum.c; ... */
    double unit;                  /* ... and what counts as 1 of it */
    double part;    /* of the cluster's samples: own ones come in, and every exchange averages it,
                       or moves it along with the weight */
    double behind;  /* how far below it peers were lately */
    uint32_t among; /* members that trained when it was last averaged */
    double alike;   /* samples of the cluster, if all made as many as this node while they trained,
                       but for what tells otherwise */
    uint64_t held;  /* gradients in its model, as it was last counted by them */
    uint64_t granted;    /* steps asked of the driver, all told */
    uint64_t start_us;   /* the cluster trains since then, modulo 2^64: perhaps before time 0 */
    uint64_t stepped_us; /* when `version` last moved */
    double rate;         /* steps a second, smoothed */
    double progress;     /* of the cluster's budget, as it was known with the newest step */
    double reached;      /* likewise, as training ended; 0: it has not */
    double moved_sq;     /* by a step, smoothed; 0: not known */
    uint64_t inherited;  /* steps of the optimizer vectors less own ones, modulo 2^64 */
    bool started;
    uint32_t early;        /* members that were there when this node began to train: */
    uint64_t early_us;     /* until then those who still join count as training, too */
    uint64_t word_us;      /* not 0: so long those who have but said hello are waited for, ... */
    uint64_t bring_us;     /* ... and those who bring a model along */
    uint32_t diverged;     /* not 0: the model is no longer finite */
    uint32_t recovered;    /* times another's was taken for that */
    uint64_t helpless_us;  /* not 0: until then it must have been */
    enum parley_stop stop; /* asked for, and obeyed once in, and once the strategy allows, ... */
    uint64_t stop_us;      /* ... since then */
    uint64_t turnover, turnover_us; /* the roster's, and when it last changed (stop.c), ... */
    uint64_t moves_us; /* ... and when it did so first, after a while without, or alone */
    bool alone;        /* no other was live when it last changed */
};

void training_advance(struct parley_node *node); /* joining, budget, steps to make */
void training_stepped(struct parley_node *node, const struct parley_event *event);
/* How much of the cluster's time is spent, since it began to train. */
uint64_t training_spent_us(const struct parley_node *node);
/* A peer whose model this node has taken has spent so much. */
void training_share_time(struct parley_node *node, uint64_t spent_us);
/* Whether the budget leaves room for one more step of this node. */
bool training_wants(const struct parley_node *node);
/* Whether that node has made its budget of steps; false where there is none. */
bool training_made_all(const struct parley_node *node, const struct record *r);
/* A live member that trains, or is about to: all were there as this node began, and of most it has
 * not heard yet that they have. */
bool training_counts(const struct parley_node *node, uint32_t member);
/* What strategy->steps() says has changed. */
void training_counted(struct parley_node *node);
/* What is in the buffer goes into x with this weight beside that of x, and with this part of the
 * cluster's samples; below 0: is taken out. */
void training_weigh(struct parley_node *node, enum op_kind kind, int owner, uint32_t buffer,
                    double weight, double part);
void training_leave(struct parley_node *node);
uint64_t training_awaits(const struct parley_node *node); /* see parley_node_awaits_steps() */
uint64_t training_deadline(const struct parley_node *node);

/* A peer's part was more by `gap`, and came in by this factor. */
void training_averaged(struct parley_node *node, double gap, double factor);

double training_progress(const struct parley_node *node);
/* Samples that all have used, by all appearances: to look at, not to end by. */
uint64_t training_reckoned(const struct parley_node *node);
/* Whether it is counted by what was heard of each. */
bool training_counts_heard(const struct parley_node *node);

#endif
