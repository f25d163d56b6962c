/* exchange.h: what the parts of an exchange know of one another.
 *
 *   exchange.c  the whole of it: the responder's side, frames, broken links, timers
 *   offer.c     the initiator's side
 *   slot.c      what both sides do alike
 *   robust.c    how much of a difference is added
 *
 * Thread rule: as the node's.
 */
#ifndef PARLEY_CORE_EXCHANGE_H
#define PARLEY_CORE_EXCHANGE_H

#include "core/state.h"

/* d is added over so much. A quarter where either node has another exchange open: a half and a half
 * would swap models, and two thirds overshoot the mean as soon as snapshots are some steps old, by
 * more each time where there is momentum. With a quarter no mode of W has a negative factor on any
 * graph of degree 2, which is what two slots make. */
enum exchange_divisor { ALONE = 2, TWO_AT_ONCE = 4 };

enum {
    FRESH_STEPS = 16, /* where cores are scarce, a boundary may be that far away */
    BUSY_RETRY_US = 1000,
    LEAVE_EXCHANGES = 3 /* with so many peers before a node leaves */
};

/* slot.c */

/* Every move of a slot goes through here. */
void slot_move(struct parley_node *node, struct slot *slot, enum slot_state to);
/* The peer counts on it, and what it adds is not decided or not in x yet. */
bool slot_is_open(const struct slot *slot);
/* Over, one way or the other. */
void slot_end(struct parley_node *node, struct slot *slot);
/* Only before the decision. */
void slot_abort(struct parley_node *node, struct slot *slot, enum exchange_reason reason,
                bool tell);
/* To a connection that may be gone. */
void slot_send(struct parley_node *node, uint32_t id, enum wire_type type,
               const struct message_exchange *message);
/* Whether its snapshot is what a new one would be, or nearly so. */
bool slot_is_recent(const struct parley_node *node, const struct slot *slot);
/* The same, and nobody was told of it yet. */
bool slot_is_fresh(const struct parley_node *node, const struct slot *slot);
void slot_take(struct parley_node *node, struct slot *slot);
/* Whether this node's snapshots are not just x as it is: other vectors with it, or by a codec. */
bool slot_wants_codec(const struct parley_node *node);
/* Both know now how snapshots go out: `coded` or not. */
void slot_code(struct parley_node *node, struct slot *slot, bool coded);
/* How many vectors it averages. */
uint32_t slot_wide(const struct parley_node *node, const struct slot *slot);
/* What the snapshot just taken is. */
void slot_keep(struct parley_node *node, struct slot *slot, const struct parley_event *event);
/* In which the two expect each other's snapshots. */
void slot_expect(struct parley_node *node, struct slot *slot, enum wire_stream kind);
/* The own one goes out, once it is encoded. */
void slot_stream(struct parley_node *node, struct slot *slot);
/* What d is multiplied by as it is added: of one that was pushed (weight > 0) all of it. */
float slot_factor(double weight, uint32_t divisor, double clip);
/* It is decided. */
void slot_add(struct parley_node *node, struct slot *slot);

/* robust.c */

/* An exchange that this node began has shown ||d||^2. */
void robust_seen(struct parley_node *node, double norm_sq);
/* How long a difference may be that this node adds; at least 0, and 0 unless config.robust. */
double robust_radius(const struct parley_node *node);
/* What makes a difference of this squared length no longer than that, in [0, 1]. */
double robust_clip(double radius, double norm_sq);

/* strategy/push_sum.c */

/* What this node pushes of its weight now; 0: nothing. */
double push_sum_weight(const struct parley_node *node);
/* What came is looked at: the DONE of it, as of a DIFF, says whether it is finite. */
void push_sum_check(struct parley_node *node, int role, uint32_t buffer);

/* pairing.c */

void pairing_start(struct parley_node *node); /* SETTLE begins */
/* Whom to ask, NONE: nobody now. False where that is left to chance. */
bool pairing_peer(struct parley_node *node, int *peer);
/* How this node chooses now. */
enum message_settles pairing_way(const struct parley_node *node);
/* Who made this offer is to ask again once it is its turn. */
bool pairing_refuses(struct parley_node *node, int member, const struct message_exchange *offer);
/* An exchange that was offered by schedule is in x. */
void pairing_mixed(struct parley_node *node, int member);
uint32_t pairing_sweep(const struct parley_node *node); /* rounds until all have met, one way */

/* offer.c */

/* Of the newest exchange with this responder, until APPLIED; of 0: a free place. NULL: none. */
struct commit *offer_commit_of(struct parley_node *node, uint64_t responder);
/* The snapshot is in hand: name it to the peer. */
void offer_taken(struct parley_node *node, struct slot *slot);
void offer_accepted(struct parley_node *node, struct slot *slot,
                    const struct message_exchange *message);
void offer_busy(struct parley_node *node, struct slot *slot, bool refused,
                const struct message_exchange *message);
void offer_ready(struct parley_node *node, struct slot *slot); /* the peer is */
void offer_commit(struct parley_node *node, struct slot *slot);
void offer_applied(struct parley_node *node, struct conn *conn,
                   const struct message_exchange *message);

/* What a peer says of its part, its weight and its radius can be. */
static inline bool exchange_is_sane(const struct message_exchange *message)
{
    return part_is_sane(message->samples) && message->weight >= 0 &&
           message->weight <= PARLEY_MEMBERS_MAX && message->radius >= 0;
}

/* Whether mix() writes what joiners are given along with x. */
static inline bool exchange_mixes_kept(const struct parley_node *node)
{
    return node->strategy->mix && node->strategy->kept > 0;
}

/* Whether mix() may do so now: not while a joiner is being given it. */
static inline bool exchange_may_mix(const struct parley_node *node)
{
    return !node->fetch.serving || !exchange_mixes_kept(node);
}

/* Whether an exchange suits the strategy now, `other` being the other slot. One that has to take
 * its snapshot again goes first: else exchanges of a step each would keep it waiting for good. */
static inline bool exchange_is_due(const struct parley_node *node, const struct slot *other)
{
    if (phase_of(node) != PARLEY_PHASE_TRAIN) return true;
    if (other->state == SLOT_TAKING && other->behind) return false;
    if (!node->strategy->due) return true;
    return node->strategy->due(node) && !slot_is_open(other) && exchange_may_mix(node);
}

#endif
