/* op.h: an operation on vectors, from the core's update to its DONE event.
 *
 * An op is one piece of memory that travels: the loop fills it from an update, hands it to the
 * trainer (buffers_at_boundary()) or to the worker, or carries it out itself (carry.c), and has its
 * result in `done`. Only who has it in hand may touch it; mailboxes pass it on.
 *
 * Thread rule of what is done to the vectors: the trainer's ops by whoever holds the boundary,
 * which is the trainer or, while it lends it (handoff.h), the loop; the others on any thread.
 *
 * The table keeps the core's order: an op starts when no earlier unfinished one names any of its
 * buffers, and never before an earlier one of the same thread. Those of the trainer may name what
 * earlier ones of its own do, as it carries them out in their order.
 */
#ifndef PARLEY_PEERS_OP_H
#define PARLEY_PEERS_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "core/buffers.h"
#include "file/record.h"
#include "parley/node.h"

struct op {
    struct op *next; /* in the mailbox or free list it is in */
    struct parley_update update;
    struct parley_event done; /* sketch and digest point into this op */
    bool started;             /* else it waits */
    struct buffer_set buffers;
    double sketch[PARLEY_SKETCH_BUCKETS];
    uint8_t digest[PARLEY_DIGEST_BYTES];
    char why[256];         /* not ok: a line that says why, or "" */
    struct record *record; /* PUBLISH: of the agreement, but for the file's hash; owned; or NULL */
};

struct ops {
    struct op pool[PARLEY_OPERATIONS_MAX];   /* the first `used` of them have been */
    struct op *unused;                       /* of those */
    struct op *order[PARLEY_OPERATIONS_MAX]; /* [count] unfinished, oldest first */
    uint32_t used, count;
};

void ops_init(struct ops *ops);

/* A waiting op for the update, the youngest of all. */
struct op *ops_add(struct ops *ops, const struct parley_update *update);

/* The next op that may start, now marked started; NULL: none. */
struct op *ops_next(struct ops *ops);

/* The op has ended and its event was told: its memory is used again. */
void ops_remove(struct ops *ops, struct op *op);

/* True for what the program itself does between two boundaries (GRADIENT, APPLY). */
bool op_is_work(const struct op *op);

#endif
