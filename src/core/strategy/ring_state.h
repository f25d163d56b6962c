/* ring_state.h: what ring.c and ring_parts.c know of each other. */
#ifndef PARLEY_CORE_RING_STATE_H
#define PARLEY_CORE_RING_STATE_H

#include "core/state.h"
#include "core/strategy/ring.h"

/* Frames. PLACE, STOPPED: round, stamp, before; count, value (progress) and weight (divisor) of the
 * newest sum; key, tag, part: the try, and a mask of the stages that may come; key 0: none yet.
 * TELL, before each stage of the reduce-scatter: tag, part (the stage), and the most progress of
 * those whose shares it holds (or of more). PULL: round whose sum is wanted, tag. */
enum ring_what { RING_PLACE = 1, RING_STOPPED, RING_TELL, RING_PULL };

/* Buffers. */
enum { RING_OWN, RING_PARTIAL, RING_RESULT };

/* Inflows: one a stage, and of a whole sum, with its part number. */
enum { RING_WHOLE = RING_STAGES_MAX, RING_WHOLE_PART = 0xffff };

/* Numbers of operations, then of streams (those of stages from RING_SENT on). */
enum { RING_SUMMED = RING_NUMBERS, RING_HANDED = 0, RING_SENT = 1 };

static inline struct ring *ring_of(const struct parley_node *node)
{
    return node->strategy_state;
}

/* Of a mask of stages. */
static inline uint32_t ring_bit(uint32_t stage)
{
    return UINT32_C(1) << stage;
}

/* The try is of the round that is under way, perhaps with members of before. */
static inline bool ring_is_of_round(const struct ring *ring)
{
    return ring->now.active && ring->now.round == ring->round;
}

/* With those who are members now. */
static inline bool ring_tries(const struct ring *ring)
{
    return ring_is_of_round(ring) && ring->now.key == ring->key;
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
void ring_parts_forget(struct parley_node *node);  /* nothing of the try is expected any more */
void ring_parts_closed(struct parley_node *node, uint32_t conn);
/* Masks of stages that are not here: for which there is room; that are expected over some link. */
uint32_t ring_lacks(const struct parley_node *node);
uint32_t ring_expected(const struct ring_try *now);
void ring_parts_send(struct parley_node *node);
void ring_parts_told(struct parley_node *node, struct conn *conn,
                     const struct message_strategy *tell);
bool ring_is_whole(const struct parley_node *node); /* all of the round is here */
/* The round is over here, and others still get their parts. */
bool ring_owes(const struct parley_node *node);

#endif
