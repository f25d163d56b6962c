/* drift.h: how far the models are apart, as far as this node knows.
 *
 * Thread rule: as the node's.
 */
#ifndef PARLEY_CORE_DRIFT_H
#define PARLEY_CORE_DRIFT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/out.h"
#include "core/wire/message.h"
#include "parley/node.h"

struct drift {
    float own[MESSAGE_BUCKETS]; /* the newest own sketch: it may not be among the sample */
    uint64_t stale;             /* sketches up to this one of roster->sketched count no more, ... */
    uint64_t swept;             /* ... nor those up to this one once this sweep meets a far model */
    bool due;                   /* some sketch wants to go out */
    bool sketching;             /* the initiator's slot is reserved for it */
    bool late;                  /* ... and it is of a sweep that is no more */
    bool far;                   /* by chance a model was met that can't be within tolerance */
    uint32_t version;           /* of the newest own sketch */
    uint32_t seen;              /* version of it that a whole table was seen with, ... */
    uint32_t judged;            /* ... and that one within tolerance was */
    uint32_t passed;            /* tables in a row that were within tolerance */
    uint64_t looked;            /* what there was to see when a table was looked at last */
    uint64_t among;             /* the roster's: those whom that was about */
    double value;               /* relative; negative: unknown */
    double largest;             /* of any in the table, or of this node; likewise */
    double distance_sq;         /* of this node, in the same table, ... */
    double mean_sq;             /* ... and the squared norm of its mean */
    uint64_t measured_us;
    uint64_t mixes_us;      /* agreement.h's, as it was last seen */
    double pair_sq, own_sq; /* moving means over exchanges */
    uint64_t pairs;
    uint64_t next_us;  /* no sketch, and no exchange that one is due before, until then */
    uint64_t hold_us;  /* no exchange until then, as the table may be whole before it */
    uint64_t paid_us;  /* what has been sent of sketches is paid for by then */
    uint64_t ask_us;   /* not before then: whom this node lacks, to ... */
    uint32_t ask_turn; /* ... the next link */
};

/* An exchange has measured ||x_i - x_j||^2, and ||x_i||^2. */
void drift_pair(struct parley_node *node, double norm_sq, double own_norm_sq);
void drift_done(struct parley_node *node, const struct op *op, const struct parley_event *event);
double drift_own(const struct parley_node *node); /* of this model alone, as last measured */
/* In SETTLE: takes a sketch if one is due. True if no exchange may start before it. */
bool drift_advance(struct parley_node *node);
bool drift_settled(struct parley_node *node); /* within tolerance in two fresh tables */
uint64_t drift_deadline(const struct parley_node *node);

#endif
