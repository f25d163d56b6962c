/* ring_state.h: what the parts of the ring know of each other.
 *
 *   ring.c      a round of this node's: contributes, waits, ends
 *   members.c   who the members are, and how far each has come
 *   parts.c     one try of a round: stages come in, are added up, and go out
 *   left.c      takes a sum or a state where the left is ahead
 *   reach.c     links with the members; who stands aside
 */
#ifndef PARLEY_CORE_RING_STATE_H
#define PARLEY_CORE_RING_STATE_H

#include "core/state.h"
#include "core/strategy/ring/ring.h"

/* Frames. PLACE, STOPPED: round, stamp, before; count, value (progress) and weight (divisor) of the
 * newest sum; key, tag, part: the try, and a mask of the stages that may come; key 0: none yet.
 * TELL, before each stage of the reduce-scatter: tag, part (the stage), and the most progress of
 * those whose shares it holds (or of more). PULL: round whose sum is wanted, tag. */
enum ring_what { RING_PLACE = 1, RING_STOPPED, RING_TELL, RING_PULL };

/* Buffers. */
enum { RING_OWN, RING_PARTIAL, RING_RESULT };

/* Inflows: one a stage, and of a whole sum, with its part number. */
enum { RING_WHOLE = RING_STAGES_MAX, RING_WHOLE_PART = 0xffff };

/* What was said or asked for is, again, if nothing moves. */
enum { RING_AGAIN_US = 1000000 };

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

/* It takes the sums of others' rounds, and is a member of none (reach.c). */
static inline bool ring_is_aside(const struct parley_node *node)
{
    return self_of(node)->aside;
}

/* ring.c */
/* The sum of the round is in the buffer that holds no result yet. */
void ring_finish(struct parley_node *node, const struct ring_sum *sum, uint64_t stamp);

/* members.c */
void ring_look(struct parley_node *node); /* at the roster: who they are now */
bool ring_is_member(const struct parley_node *node, uint32_t member);
bool ring_is_among(const int *peers, uint32_t count, int member);
/* The newest that it has said; NULL: nothing, or there is no such member. */
const struct ring_heard *ring_heard_of(const struct parley_node *node, int member);
const struct message_strategy *ring_place_of(const struct parley_node *node, int member);
void ring_hear(struct parley_node *node, const struct conn *conn,
               const struct message_strategy *place);
void ring_say(struct parley_node *node); /* where this node is, if that is news */

/* left.c */
bool ring_is_ahead(const struct ring *ring, const struct message_strategy *place);
bool ring_catches_up(struct parley_node *node);    /* true: nothing else is to be done */
bool ring_pulls_in_vain(struct parley_node *node); /* PULLING: it is not to come */
void ring_pulled(struct parley_node *node);        /* it is here */
void ring_follow(struct parley_node *node);        /* FOLLOWING */
/* The other end asks for the sum of a round. */
void ring_hand(struct parley_node *node, const struct conn *conn,
               const struct message_strategy *ask);

/* reach.c */
void ring_drop_dead_links(struct parley_node *node);
void ring_dial_peers(struct parley_node *node);
void ring_mind_links(struct parley_node *node); /* looks whether those it waits for still live */
void ring_mind_reach(struct parley_node *node); /* stands aside, or does no more */

/* parts.c */
void ring_parts_advance(struct parley_node *node); /* tries the round; expects what comes next */
void ring_parts_abandon(struct parley_node *node); /* nothing of the try is expected any more */
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
