/* ring_state.h: what ring.c and ring_parts.c know of each other. */
#ifndef PARLEY_CORE_RING_STATE_H
#define PARLEY_CORE_RING_STATE_H

#include "core/state.h"
#include "core/strategy/ring.h"

/* Frames. PLACE, STOPPED: round, stamp, before; count, value (progress) and weight (divisor) of the
 * newest sum; key, tag, part: the try, and the part that is wanted next of the one to whom it is
 * said; key 0: none yet. TELL, before each part of the reduce-scatter: tag, part, and the most
 * progress of those whose shares it holds (or of more). PULL: round whose sum is wanted, tag. */
enum ring_what { RING_PLACE = 1, RING_STOPPED, RING_TELL, RING_PULL };

/* Buffers. */
enum { RING_OWN, RING_PARTIAL, RING_RESULT };

/* Inflows; the part number of a whole sum. */
enum { RING_PARTS, RING_WHOLE, RING_WHOLE_PART = 0xffff };

/* Numbers of operations, then of streams (those of parts from RING_SENT on). */
enum { RING_ADDED = RING_NUMBERS, RING_COPIED, RING_HANDED = 0, RING_SENT = 1 };

static inline struct ring *ring_of(const struct parley_node *node)
{
    return node->strategy_state;
}

static inline uint32_t ring_buffer(const struct parley_node *node, uint32_t which)
{
    return strategy_buffer(node, ring_of(node)->use->first + which);
}

/* ring.c */
const struct ring_heard *ring_heard_of(const struct parley_node *node, int member);
void ring_finish(struct parley_node *node, const struct ring_sum *sum, uint64_t stamp);
void ring_pulled(struct parley_node *node);

/* ring_parts.c */
void ring_parts_advance(struct parley_node *node); /* tries the round; expects what comes next */
void ring_parts_send(struct parley_node *node);
void ring_parts_told(struct parley_node *node, struct conn *conn,
                     const struct message_strategy *tell);
bool ring_is_whole(const struct parley_node *node); /* all parts of the round are here */
/* The round is over here, and the right still gets its parts. */
bool ring_owes(const struct parley_node *node);

#endif
