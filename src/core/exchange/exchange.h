/* exchange.h: two nodes average: what one remembers of it, and what it offers the others.
 *
 *   exchange.c  the whole of it: the responder's side, frames, broken links, timers
 *   offer.c     the initiator's side
 *   slot.c      what both sides do alike
 *   delta.c     what it adds to the model
 *   doubt.c     what became of it, where the decision was not heard
 *   period.c    how often
 *   pairing.c   with whom while the node settles
 *   robust.c    how much of a difference is added
 *
 * Thread rule: as the node's.
 */
#ifndef PARLEY_CORE_EXCHANGE_H
#define PARLEY_CORE_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/exchange/doubt.h"
#include "core/exchange/pairing.h"
#include "core/exchange/slot.h"
#include "core/out.h"
#include "core/wire/message.h"
#include "parley/node.h"

struct conn;

/* So much of d each side adds; in SETTLE by what the schedule says (pairing.h). A quarter where
 * either node has another exchange open: a half and a half would swap models, and two thirds
 * overshoot the mean as soon as snapshots are some steps old, by more each time where there is
 * momentum. With a quarter no mode of W has a negative factor on any graph of degree 2, which is
 * what two slots make. */
#define SHARE_ALONE 0.5
#define SHARE_TWO_AT_ONCE 0.25

enum {
    COMMITS_MAX = 64,    /* decided as initiator, APPLIED not yet heard */
    ABORTED_MAX = 64,    /* newest sequences aborted as initiator */
    LEAVE_EXCHANGES = 3, /* with so many peers before a node leaves */
    BUSY_RETRY_US = 1000
};

struct commit {
    uint64_t responder; /* boot; 0: free */
    uint32_t sequence;
};

struct exchange {
    struct pairing pairing;
    struct slot slots[ROLES];
    struct doubt doubts[DOUBTS_MAX];
    struct commit commits[COMMITS_MAX];
    uint32_t aborted[ABORTED_MAX];
    uint32_t aborted_next;
    uint32_t sequence;     /* of the newest offer */
    uint64_t decided;      /* deltas decided so far */
    uint64_t added;        /* deltas that are in x */
    double period;         /* steered: local steps from one to the next */
    uint64_t next_version; /* own step count from which the next exchange may start */
    uint64_t begun_us;     /* when its first step began */
    uint64_t next_us;      /* without steps: when that would be at the pace of before */
    uint64_t retry_us;     /* nobody could be asked: not before then */
    uint64_t answers_us;   /* an answer to an offer takes so long, on average */
    int32_t neighbours[PARLEY_NEIGHBOURS_MAX]; /* [neighbours_count] */
    uint32_t neighbours_count;
    uint64_t turnover;                   /* the roster's when they were found */
    uint64_t peer_last[LEAVE_EXCHANGES]; /* LEAVE: boots already met */
    uint32_t left_count;
};

/* ---- For the other modules ------------------------------------------------------------------- */

void exchange_init(struct parley_node *node);
void exchange_advance(struct parley_node *node); /* starts what may start */
void exchange_frame(struct parley_node *node, struct conn *conn, enum wire_type type,
                    const struct message_exchange *message);
void exchange_done(struct parley_node *node, const struct op *op, const struct parley_event *event);
void exchange_live(struct parley_node *node, struct conn *conn); /* a connection became LIVE */
void exchange_closed(struct parley_node *node, uint32_t conn);
/* Nothing comes from the other end of an exchange that is not decided, or not as far as this node
 * knows. */
void exchange_let_go(struct parley_node *node, struct slot *slot, enum exchange_reason reason,
                     bool tell);
void exchange_timers(struct parley_node *node);
uint64_t exchange_deadline(const struct parley_node *node);

/* Of the streams of a slot: all of it is here; some of it came; it has gone out, or could not. */
void exchange_received(struct parley_node *node, int slot);
void exchange_progress(struct parley_node *node, int slot);
void exchange_sent(struct parley_node *node, int slot, bool ok);
/* Says in a STORE of what comes in that a DIFF may begin. */
void exchange_store(struct parley_node *node, int slot, struct parley_update *update);

/* Lends an idle slot's buffers to something else, and takes them back. */
void exchange_reserve(struct parley_node *node, enum role role);
void exchange_release(struct parley_node *node, enum role role);
/* The responder is gone for good, and its delta with it: nothing is kept for it any more. */
void exchange_forget(struct parley_node *node, uint64_t responder);

/* Whether mix() of the strategy writes what joiners are given along with x; whether it may do so
 * now: not while a joiner is being given it, nor while this node is. */
bool exchange_mixes_kept(const struct parley_node *node);
bool exchange_may_mix(const struct parley_node *node);

/* period.c */
void period_start(struct parley_node *node);
uint64_t period_steps(const struct parley_node *node); /* now, from one exchange to the next */
void period_begin(struct parley_node *node);           /* from now to the next */
/* Who has had its steps averages until all have. What an exchange makes of a period's steps (due())
 * is of nothing without them. */
bool period_goes_on(const struct parley_node *node);
/* All whom it asked were busy: at some time before the next is due. Those whose pace is one would
 * else find them busy each time, with the same one that comes before them. */
void period_again(struct parley_node *node);
void period_pair(struct parley_node *node, double norm_sq); /* ||x_i - x_j||^2 of an exchange */

/* ---- Among its parts ------------------------------------------------------------------------- */

/* Whether an exchange suits the strategy now, `other` being the other slot. */
bool exchange_is_due(const struct parley_node *node, const struct slot *other);
/* What a peer says of its part, its weight and its radius can be. */
bool exchange_is_sane(const struct message_exchange *message);
/* A delta of <r, d> = mass is in x, times factor. */
void exchange_applied(struct parley_node *node, int member, float factor, double mass);
/* Its initiator may forget that it has decided it. */
void exchange_say_applied(struct parley_node *node, int initiator, uint32_t sequence);
/* This node leaves and is done with `peer`: the two have averaged, or that one leaves too. */
void exchange_left(struct parley_node *node, int peer);
/* The newest outcome of an exchange this node initiated, as asked for. */
enum message_outcome exchange_outcome(struct parley_node *node, uint64_t asker, uint32_t sequence);

/* offer.c */

/* Of the newest exchange with this responder, until APPLIED; of 0: a free place. NULL: none. */
struct commit *offer_commit_of(struct parley_node *node, uint64_t responder);
/* How many neighbours it has now, of whom no more than PARLEY_NEIGHBOURS_MAX count. */
uint32_t offer_neighbours(struct parley_node *node);
/* The snapshot is in hand: name it to the peer. */
void offer_taken(struct parley_node *node, struct slot *slot);
void offer_accepted(struct parley_node *node, struct slot *slot,
                    const struct message_exchange *message);
/* Until when an answer is waited for. None has come by then: another is asked (false: nothing gets
 * through to this one). One came, for that slot; NULL: too late. */
uint64_t offer_deadline(const struct parley_node *node, const struct slot *slot);
bool offer_unanswered(struct parley_node *node, struct slot *slot);
void offer_answered(struct parley_node *node, int member, const struct slot *slot);
void offer_busy(struct parley_node *node, struct slot *slot, bool refused,
                const struct message_exchange *message);
void offer_ready(struct parley_node *node, struct slot *slot); /* the peer is */
void offer_commit(struct parley_node *node, struct slot *slot);
void offer_applied(struct parley_node *node, struct conn *conn,
                   const struct message_exchange *message);

#endif
