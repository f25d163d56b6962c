/* offer.c: the initiator's side of an exchange: whom to ask, the decision, and its memory of it.
 *
 *   a peer is chosen, dialled if need be; a snapshot; OFFER; BUSY or REFUSE goes to the next peer;
 *   ACCEPT starts the streams; READY of both sides is followed by COMMIT
 *
 * What was decided is remembered until the responder says APPLIED, and said again on each new link.
 * See exchange.c for the whole of it.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/exchange/exchange.h"
#include "core/exchange/pairing.h"
#include "core/exchange/robust.h"
#include "core/exchange/slot.h"
#include "core/link/connection.h"
#include "core/link/redial.h"
#include "core/membership/membership.h"
#include "core/plant.h"
#include "core/state.h"
#include "core/strategy/push_sum.h"
#include "core/topology/topology.h"

enum {
    NOBODY_RETRY_US = 20000,
    PATIENCE_US = 500000,
    DUE_RETRY_MIN_US = 10000,
    DUE_RETRY_MAX_US = 10000000,
    PICK_TRIES = 3,
    BUSY_TRIES_MAX = 3
};

/* ---- What was decided ------------------------------------------------------------------------ */

struct commit *offer_commit_of(struct parley_node *node, uint64_t responder)
{
    for (int i = 0; i < COMMITS_MAX; i++)
        if (node->exchange.commits[i].responder == responder) return &node->exchange.commits[i];
    return NULL;
}

void exchange_forget(struct parley_node *node, uint64_t responder)
{
    struct commit *commit = offer_commit_of(node, responder);
    if (commit) *commit = (struct commit){0};
}

void offer_applied(struct parley_node *node, struct conn *conn,
                   const struct message_exchange *message)
{
    struct commit *commit = offer_commit_of(node, record_of(node, conn->member)->boot);
    if (!commit || commit->sequence != message->sequence) return;
    *commit = (struct commit){0};
    node->exchange.retry_us = 0; /* there is somebody to ask again */
}

enum message_outcome exchange_outcome(struct parley_node *node, uint64_t asker, uint32_t sequence)
{
    struct exchange *e = &node->exchange;
    struct commit *commit = offer_commit_of(node, asker);
    if (commit && commit->sequence == sequence) return MESSAGE_COMMITTED;
    struct slot *slot = &e->slots[INITIATOR];
    if (slot->state >= SLOT_OFFERED && slot->state < SLOT_ADDING && slot->sequence == sequence &&
        record_of(node, slot->peer)->boot == asker) {
        slot_abort(node, slot, EXCHANGE_ASKED, false); /* the question decides */
        return MESSAGE_ABORTED;
    }
    for (int i = 0; i < ABORTED_MAX; i++)
        if (e->aborted[i] == sequence) return MESSAGE_ABORTED;
    return MESSAGE_UNKNOWN;
}

/* ---- Choosing a peer ------------------------------------------------------------------------- */

uint32_t offer_neighbours(struct parley_node *node)
{
    struct exchange *e = &node->exchange;
    struct parley_roster *roster = node->roster;
    if (e->turnover == roster->turnover) return e->neighbours_count;
    const struct topology *t = roster_topology(roster, node->config.topology_seed);
    uint32_t own = roster->places[node->self].live;
    e->neighbours_count = 0;
    for (uint32_t at = topology_next(t, own, 0); at < t->n; at = topology_next(t, own, at + 1)) {
        if (e->neighbours_count == PARLEY_NEIGHBOURS_MAX) break;
        e->neighbours[e->neighbours_count++] = (int32_t)roster->live[at];
    }
    e->turnover = roster->turnover;
    return e->neighbours_count;
}

/* Over the link that there is: a new one is tried. */
static bool is_silent_since(struct parley_node *node, int member, uint64_t time_us)
{
    const struct conn *link = connection_of(node, member);
    bool trains = phase_of(node) == PARLEY_PHASE_TRAIN && !node->leaving;
    return trains && link && link->heard_us <= time_us;
}

static bool fits(struct parley_node *node, int member)
{
    const struct record *r = record_of(node, (uint32_t)member);
    const struct member *m = member_of(node, member);
    const struct slot *answer = &node->exchange.slots[RESPONDER];
    enum parley_phase phase = (enum parley_phase)r->phase;
    if (phase < PARLEY_PHASE_TRAIN || phase > PARLEY_PHASE_PROPOSED) return false;
    if (phase == PARLEY_PHASE_TRAIN && !node->strategy->answers) return false;
    if (member == node->self || offer_commit_of(node, r->boot)) return false;
    if (answer->peer == member && slot_is_open(answer)) return false;
    if (m && (m->busy_us > node->now_us || m->spoilt_us > node->now_us)) return false;
    if (m && m->unanswered_us && is_silent_since(node, member, m->asked_us)) return false;
    if (m && m->redial_us > node->now_us && !connection_of(node, member)) return false;
    if (node->leaving)
        for (int i = 0; i < LEAVE_EXCHANGES; i++)
            if (node->exchange.peer_last[i] == r->boot) return false;
    return true;
}

static bool is_willing(struct parley_node *node, int member)
{
    return record_of(node, (uint32_t)member)->state == PARLEY_MEMBER_ALIVE && fits(node, member);
}

/* While training, a neighbour; to settle, anybody. */
static int pick_peer(struct parley_node *node)
{
    struct exchange *e = &node->exchange;
    int partner;
    if (pairing_peer(node, &partner)) {
        if (partner == NONE || fits(node, partner)) return partner;
        /* What it has not heard of is said again over a new link, which nobody else may want. */
        if (offer_commit_of(node, record_of(node, (uint32_t)partner)->boot))
            (void)connection_want(node, partner);
        return NONE;
    }
    if (phase_of(node) != PARLEY_PHASE_TRAIN || node->config.topology == PARLEY_TOPOLOGY_COMPLETE)
        return membership_pick(node, fits);
    int found = NONE;
    uint32_t count = offer_neighbours(node), seen = 0;
    for (int tries = 0; count > 0 && tries < PICK_TRIES; tries++) { /* mostly the first will do */
        int member = e->neighbours[rng_below(&node->rng, count)];
        if (is_willing(node, member)) return member;
    }
    for (uint32_t i = 0; i < count; i++)
        if (is_willing(node, e->neighbours[i]) && rng_below(&node->rng, ++seen) == 0)
            found = e->neighbours[i];
    return found;
}

/* ---- Offering -------------------------------------------------------------------------------- */

static void offer(struct parley_node *node, struct slot *slot, struct conn *conn)
{
    slot->fresh = false;
    slot->conn = conn->id;
    slot->sequence = ++node->exchange.sequence;
    slot->received = slot->sent = slot->peer_ready = false;
    slot->progress_us = node->now_us;
    slot_move(node, slot, SLOT_OFFERED);
    conn->used_us = node->now_us;
    slot->samples = node->training.part;
    slot->delta.trains = phase_of(node) == PARLEY_PHASE_TRAIN && !node->leaving;
    slot->delta.weight = 0;
    if (slot->delta.trains && node->strategy->pushes) {
        slot->delta.weight = push_sum_weight(node);
        slot->samples *= slot->delta.weight / node->training.weight;
    }
    slot->radius = robust_radius(node);
    struct message_exchange message = {.sequence = slot->sequence,
                                       .samples = slot->samples,
                                       .radius = slot->radius,
                                       .weight = slot->delta.weight,
                                       .coded = slot_wants_codec(node),
                                       .open = slot_is_open(&node->exchange.slots[RESPONDER])};
    pairing_say(node, &message);
    connection_send(node, conn, WIRE_OFFER, &message);
    slot->delta.round = message.round;
    slot->delta.line = message.line;
    slot->delta.share = pairing_share(node, slot->peer, &message);
    /* What goes in one chunk goes along, and saves the way there and back; while training most
     * offers find a busy node. */
    slot->eager = phase_of(node) == PARLEY_PHASE_SETTLE && vector_bytes(node) <= conn->chunk_bytes;
    if (!slot->eager) return;
    slot_code(node, slot, false);
    slot_stream(node, slot);
}

static bool is_time(const struct parley_node *node)
{
    const struct exchange *e = &node->exchange;
    return node->training.version >= e->next_version ||
           (period_goes_on(node) && node->now_us >= e->next_us) || push_sum_is_laden(node);
}

static bool may_start(struct parley_node *node)
{
    const struct exchange *e = &node->exchange;
    if (e->slots[INITIATOR].state != SLOT_IDLE || node->now_us < e->retry_us) return false;
    if (node->training.diverged) return false;
    if (node->leaving) return node->strategy->answers && e->left_count < LEAVE_EXCHANGES;
    if (phase_of(node) == PARLEY_PHASE_SETTLE) return true;
    if (!exchange_is_due(node, &e->slots[RESPONDER])) return false;
    if (node->strategy->pushes && !push_sum_may(node)) return false;
    return phase_of(node) == PARLEY_PHASE_TRAIN && node->strategy->offers && is_time(node);
}

static void wait_for_peers(struct parley_node *node, uint64_t wait_us)
{
    node->exchange.retry_us = node->now_us + wait_us;
}

/* No dial of it has come through so far: it is dialled again, and others are asked meanwhile. Who
 * waited for it would go on getting what others push, and push nothing: with push-sum all weight
 * would end there. */
static bool passes_over(struct parley_node *node, int member)
{
    struct member *m = member_of(node, member);
    if (!m || m->unreached_us == 0 || connection_of(node, member)) return false;
    redial_unreached(node, member);
    m->busy_us = node->now_us + node->config.redial_min_us;
    wait_for_peers(node, BUSY_RETRY_US);
    return true;
}

/* Somebody else is asked in this period, not in the next. */
static void make_up(struct parley_node *node)
{
    if (node->strategy->due) return; /* what it has made waits for an exchange anyway */
    node->exchange.next_version = node->training.version;
    node->exchange.next_us = node->now_us;
}

/* The other end is stopped, or cut off: others are there. What it says later is answered with an
 * ABORT, or else the doubt is over. */
static void give_up_silent(struct parley_node *node, struct slot *slot)
{
    bool undecided = slot->state >= SLOT_CONNECTING && slot->state <= SLOT_READY;
    if (!undecided) return;
    uint32_t state = record_of(node, slot->peer)->state;
    if (state != PARLEY_MEMBER_SUSPECT && state != PARLEY_MEMBER_DEAD) return;
    if (membership_hears(node, slot->peer)) return;
    if (pairing_is_kept(node)) return; /* there is no other */
    /* What the driver has in hand would keep the slot all the same, which is not stalled then. */
    for (uint32_t i = 0; i < node->outflows_count; i++)
        if (node->outflows[i].in_flight > 0 && node->outflows[i].slot == (int)slot->role) return;
    exchange_let_go(node, slot, EXCHANGE_STALLED, slot_is_open(slot));
    if (slot->role == INITIATOR) make_up(node);
}

void exchange_advance(struct parley_node *node)
{
    struct exchange *e = &node->exchange;
    struct slot *slot = &e->slots[INITIATOR];
    give_up_silent(node, slot);
    give_up_silent(node, &e->slots[RESPONDER]);
    if (!may_start(node)) return;
    if (!offer_commit_of(node, 0)) { /* 64 decisions unheard of */
        wait_for_peers(node, NOBODY_RETRY_US);
        return;
    }
    int peer = pick_peer(node);
    if (peer == NONE) {
        wait_for_peers(node, live_of(node) > 1 ? BUSY_RETRY_US : NOBODY_RETRY_US);
        return;
    }
    if (passes_over(node, peer)) return;
    slot->peer = peer;
    slot->drawn = true;
    slot->tries = 0;
    slot->asks_us = slot->progress_us = node->now_us;
    if (!node->strategy->due) period_begin(node);
    slot_begin_quick(node, slot);
    struct conn *conn = connection_want(node, peer);
    if (!conn)
        slot_move(node, slot, SLOT_CONNECTING);
    else if (slot_finds_fresh(node, slot))
        offer(node, slot, conn);
    else
        slot_take(node, slot);
}

void exchange_live(struct parley_node *node, struct conn *conn)
{
    struct slot *slot = &node->exchange.slots[INITIATOR];
    if (slot->state == SLOT_CONNECTING && slot->peer == conn->member) slot_take(node, slot);
    struct commit *commit = offer_commit_of(node, record_of(node, conn->member)->boot);
    struct message_exchange again = {.sequence = commit ? commit->sequence : 0};
    if (commit) connection_send(node, conn, WIRE_COMMIT, &again);
}

void offer_taken(struct parley_node *node, struct slot *slot)
{
    struct conn *conn = connection_of(node, slot->peer);
    if (conn && fits(node, slot->peer) && exchange_is_due(node, &node->exchange.slots[RESPONDER]))
        offer(node, slot, conn);
    else
        slot_abort(node, slot, EXCHANGE_PASSED, false);
}

/* Where one exchange is made at a time, who asks is busy; so all that are due must not ask at once.
 * Over a long line a short pause would make no difference. */
static uint64_t pause_us(struct parley_node *node, const struct slot *slot)
{
    uint64_t most_us = 2 * (node->now_us - slot->asks_us);
    if (!node->strategy->due) return 0;
    if (most_us < DUE_RETRY_MIN_US) most_us = DUE_RETRY_MIN_US;
    if (most_us > DUE_RETRY_MAX_US) most_us = DUE_RETRY_MAX_US;
    return rng_below(&node->rng, (uint32_t)most_us);
}

/* It was busy: somebody else may have this snapshot, if it is still what a new one would be. */
static void offer_elsewhere(struct parley_node *node, struct slot *slot)
{
    int peer = ++slot->tries < BUSY_TRIES_MAX ? pick_peer(node) : NONE;
    struct conn *conn = peer == NONE ? NULL : connection_of(node, peer);
    if (!conn) {
        slot->fresh = !node->strategy->mix;
        slot_end(node, slot);
        wait_for_peers(node, BUSY_RETRY_US + pause_us(node, slot));
        if (period_goes_on(node)) period_again(node);
        return;
    }
    slot->peer = peer;
    slot->drawn = true;
    if (slot_is_recent(node, slot))
        offer(node, slot, conn);
    else
        slot_take(node, slot);
}

void offer_busy(struct parley_node *node, struct slot *slot, bool refused,
                const struct message_exchange *message)
{
    if (slot->state != SLOT_OFFERED) return;
    struct member *m = member_of(node, slot->peer);
    if (m) m->busy_us = node->now_us + (refused ? NOBODY_RETRY_US : BUSY_RETRY_US);
    /* One that leaves too, as when all are interrupted at once, takes nothing over. */
    if (node->leaving && refused && message->reason == EXCHANGE_NOT_TRAINING)
        exchange_left(node, slot->peer);
    if (slot->eager) { /* its buffer is still being read */
        slot_end(node, slot);
        wait_for_peers(node, BUSY_RETRY_US + pairing_pause_us(node));
        return;
    }
    offer_elsewhere(node, slot);
}

/* Who answers does so at once, but for the way there and back, which may be long: three times as
 * long as answers take on average is waited, to whomever, and each time that a peer proves this too
 * short twice as long. Where that adds up to progress_timeout_us the link is one that carries
 * nothing. */
static uint64_t patience_us(const struct parley_node *node, const struct slot *slot)
{
    const struct member *m = member_of(node, slot->peer);
    uint64_t most_us = node->config.progress_timeout_us, wait_us = PATIENCE_US;
    if (!m || !slot->delta.trains) return most_us;
    if (3 * node->exchange.answers_us > wait_us) wait_us = 3 * node->exchange.answers_us;
    if (m->patience_us > wait_us) wait_us = m->patience_us;
    return wait_us < most_us - m->unanswered_us ? wait_us : most_us - m->unanswered_us;
}

uint64_t offer_deadline(const struct parley_node *node, const struct slot *slot)
{
    return slot->progress_us + patience_us(node, slot);
}

bool offer_unanswered(struct parley_node *node, struct slot *slot)
{
    struct member *m = member_of(node, slot->peer);
    uint64_t waited_us = patience_us(node, slot), most_us = node->config.progress_timeout_us;
    bool gives_up = m && slot->delta.trains && m->unanswered_us + waited_us < most_us;
    if (m) m->unanswered_us = gives_up ? m->unanswered_us + waited_us : 0;
    if (!gives_up) return false;
    m->asked_us = slot->progress_us;
    m->patience_us = 2 * waited_us;
    slot_abort(node, slot, EXCHANGE_STALLED, true);
    make_up(node);
    return true;
}

/* Of one that was stopped for long no more counts than half a second more than twice as long as
 * answers have taken: that a way grows by so much is learned all the same. */
static void answer_took(struct parley_node *node, uint64_t took_us)
{
    struct exchange *e = &node->exchange;
    uint64_t most_us = 2 * e->answers_us + PATIENCE_US;
    if (took_us > most_us) took_us = most_us;
    e->answers_us = (3 * e->answers_us + took_us) / 4;
}

void offer_answered(struct parley_node *node, int member, const struct slot *slot)
{
    struct member *m = member_of(node, member);
    if (!m) return;
    uint64_t took_us = node->now_us - (slot ? slot->progress_us : m->asked_us);
    if (slot || m->unanswered_us) answer_took(node, took_us);
    m->unanswered_us = 0;
    if (slot && 4 * took_us < m->patience_us) m->patience_us /= 2;
}

/* ---- The decision ---------------------------------------------------------------------------- */

void offer_accepted(struct parley_node *node, struct slot *slot,
                    const struct message_exchange *message)
{
    if (slot->state != SLOT_OFFERED) return;
    bool pushes = slot->delta.weight > 0;
    bool shares = message->share == slot->delta.share || message->share == SHARE_ALONE ||
                  message->share == SHARE_TWO_AT_ONCE;
    bool codes = node->config.codec != PARLEY_CODEC_FP32 || node->config.averaged > 1;
    if ((!pushes && !shares) || (message->coded && (!codes || slot->eager)) ||
        !exchange_is_sane(message)) {
        slot_abort(node, slot, EXCHANGE_STATES_DIFFER, true);
        return;
    }
    slot_code(node, slot, message->coded);
    slot->delta.share = PLANTED(OTHER_SHARE) ? SHARE_ALONE : message->share;
    slot->delta.gap = pushes ? -slot->samples : message->samples - slot->samples;
    slot->radius = fmin(slot->radius, message->radius);
    slot->delta.mass = 0;
    slot->progress_us = node->now_us;
    node->ledger.started++;
    slot_move(node, slot, SLOT_STREAMING);
    if (!pushes) slot_expect(node, slot, WIRE_STREAM_ACCEPT);
    if (!slot->eager) slot_stream(node, slot);
}

void offer_commit(struct parley_node *node, struct slot *slot)
{
    struct commit *commit = offer_commit_of(node, 0);
    assert(commit); /* a place was free when the offer went out, and there is one offer at a time */
    *commit = (struct commit){record_of(node, slot->peer)->boot, slot->sequence};
    node->ledger.committed++;
    struct message_exchange message = {.sequence = slot->sequence};
    slot_send(node, slot->conn, WIRE_COMMIT, &message);
    slot_add(node, slot);
}

void offer_ready(struct parley_node *node, struct slot *slot)
{
    slot->peer_ready = true;
    slot->progress_us = node->now_us;
    bool pushes = slot->delta.weight > 0 && slot->state == SLOT_STREAMING;
    if (slot->state == SLOT_READY || pushes) offer_commit(node, slot);
}
