/* exchange.c: two nodes average, and the cluster's mean stays where it is.
 *
 *   initiator                          responder
 *   TAKING    snapshot
 *   OFFERED   OFFER            ->      TAKING     ACCEPT(share), BUSY or REFUSE: at once
 *   STREAMING own snapshot     <->     STREAMING  own snapshot
 *   DIFFING   d = theirs - ours        DIFFING    the same with the other sign, to the bit
 *   READY     waits            <-      READY      READY: has all, finite
 *   ADDING    COMMIT           ->      ADDING     both: x += share d at the next boundary
 *             forgets          <-                 APPLIED
 *
 * Before READY (responder) or COMMIT (initiator) a side may abort alone. After READY the responder
 * is bound by the initiator's decision; if the connection breaks, or that one falls silent, it asks
 * (doubt.c). Nobody waits for a node that waits: an OFFER never needs the initiator's slot. A
 * snapshot is named only if it holds every delta decided before, so it is taken again if one was
 * decided meanwhile. How old it is at the decision does not matter: a slot is open until its delta
 * is in x, so d draws together what was apart, whatever steps came since. A bound on the age in
 * steps only ends all averaging where an exchange takes longer than that, as over slow lines.
 * Deltas, Boyd et al. 2006, section II: W = I - share (e_i - e_j)(e_i - e_j)^T.
 */
#include "core/exchange/exchange.h"

#include <math.h>
#include <string.h>

#include "core/drift/drift.h"
#include "core/exchange/doubt.h"
#include "core/exchange/pairing.h"
#include "core/exchange/robust.h"
#include "core/exchange/slot.h"
#include "core/link/connection.h"
#include "core/membership/membership.h"
#include "core/out.h"
#include "core/plant.h"
#include "core/state.h"
#include "core/strategy/push_sum.h"
#include "core/training/training.h"
#include "core/transfer/fetch.h"

/* Who sent what is not finite is let be for a while: else the two would try again without end. */
enum { CONNECT_US = 1000000, NON_FINITE_US = 1000000 };

/* ---- What suits ------------------------------------------------------------------------------ */

/* What a peer says its part is, can be one. It may be below 0: exchanges that overlap, each a half
 * or a quarter, take together more than was there. */
static bool part_is_sane(double part)
{
    return part > -1e18 && part < 1e18;
}

bool exchange_is_sane(const struct message_exchange *message)
{
    return part_is_sane(message->samples) && message->weight >= 0 &&
           message->weight <= PARLEY_MEMBERS_MAX && message->radius >= 0;
}

bool exchange_mixes_kept(const struct parley_node *node)
{
    return node->strategy->mix && node->strategy->kept > 0;
}

bool exchange_may_mix(const struct parley_node *node)
{
    return !exchange_mixes_kept(node) || !(node->fetch.serving || fetch_takes_state(node));
}

/* One that has to take its snapshot again goes first: else exchanges of a step each would keep it
 * waiting for good. */
bool exchange_is_due(const struct parley_node *node, const struct slot *other)
{
    if (phase_of(node) != PARLEY_PHASE_TRAIN) return true;
    if (other->state == SLOT_TAKING && other->behind) return false;
    if (!node->strategy->due) return true;
    bool owes = node->now_us < node->fetch.owed_us; /* else one after the other keeps it back */
    return node->strategy->due(node) && !slot_is_open(other) && exchange_may_mix(node) && !owes;
}

/* ---- The responder --------------------------------------------------------------------------- */

static enum exchange_reason refusal(struct parley_node *node, int member, bool pushes)
{
    enum parley_phase phase = phase_of(node);
    if (pushes && (phase != PARLEY_PHASE_TRAIN || !node->strategy->pushes))
        return EXCHANGE_NOT_TRAINING;
    if (phase < PARLEY_PHASE_TRAIN || phase > PARLEY_PHASE_PROPOSED || node->leaving)
        return EXCHANGE_NOT_TRAINING;
    if (phase == PARLEY_PHASE_TRAIN && !node->strategy->answers) return EXCHANGE_NOT_TRAINING;
    const struct member *m = member_of(node, member);
    if (node->training.diverged || (m && m->spoilt_us > node->now_us)) return EXCHANGE_NON_FINITE;
    return doubt_make_room(node) ? EXCHANGE_REASON_NONE : EXCHANGE_DOUBTS;
}

/* This node has asked the one that asks it. If the two offers have crossed, the higher id is the
 * busy one, but for one that is rounds behind: it is not as far as what it is asked. */
static bool is_twice(const struct parley_node *node, const struct slot *other, int member,
                     const struct message_exchange *offer)
{
    if (!slot_is_open(other) || other->peer != member) return false;
    if (other->state > SLOT_OFFERED) return true;
    bool behind = offer->line == other->delta.line && offer->round < other->delta.round;
    return !behind && self_of(node)->boot > record_of(node, member)->boot;
}

static void stream_as_responder(struct parley_node *node, struct slot *slot)
{
    slot->fresh = false;
    slot->progress_us = node->now_us;
    slot_move(node, slot, SLOT_STREAMING);
    slot_stream(node, slot);
}

/* One way: no snapshot of this node's is named. */
static void await_push(struct parley_node *node, struct slot *slot,
                       const struct message_exchange *message)
{
    slot->delta.gap = message->samples;
    slot->delta.mass = 0;
    slot->fresh = false;
    slot->version = node->training.version;
    slot->progress_us = node->now_us;
    slot_move(node, slot, SLOT_STREAMING);
}

/* It asks that one too, or is about to: a draw counts once, here as there. Or there is nobody else
 * whom it could draw. */
static bool has_drawn(struct parley_node *node, struct slot *asks, int member)
{
    if (asks->drawn && asks->state != SLOT_IDLE && asks->peer == member) {
        asks->drawn = false;
        return true;
    }
    return node->config.robust && offer_neighbours(node) == 1;
}

static void accept_offer(struct parley_node *node, struct slot *slot, struct conn *conn,
                         const struct message_exchange *message)
{
    struct slot *other = &node->exchange.slots[INITIATOR];
    struct message_exchange answer = {.sequence = message->sequence};
    slot->drawn = has_drawn(node, other, conn->member);
    /* It goes on with its own offer and is busy for ours, which else would weigh as one more. */
    if (slot_is_open(other) && other->peer == conn->member)
        slot_abort(node, other, EXCHANGE_CROSSED, true);
    slot->peer = conn->member;
    slot->conn = conn->id;
    slot->sequence = message->sequence;
    bool twice = message->open || slot_is_open(other);
    slot->delta.share = twice ? SHARE_TWO_AT_ONCE : pairing_share(node, conn->member, message);
    slot->received = slot->sent = slot->peer_ready = false;
    conn->used_us = node->now_us;
    slot_code(node, slot, message->coded && slot_wants_codec(node));
    answer.share = slot->delta.share;
    answer.coded = slot->coded;
    answer.samples = slot->samples = node->training.part;
    answer.radius = robust_radius(node);
    slot->radius = fmin(answer.radius, message->radius);
    slot->delta.gap = message->samples - slot->samples;
    slot->delta.trains = phase_of(node) == PARLEY_PHASE_TRAIN;
    slot->delta.weight = message->weight;
    slot->delta.round = message->round;
    slot->delta.line = message->line;
    connection_send(node, conn, WIRE_ACCEPT, &answer);
    slot_expect(node, slot, WIRE_STREAM_OFFER);
    slot_begin_quick(node, slot);
    if (slot->delta.weight > 0)
        await_push(node, slot, message);
    else if (slot_finds_fresh(node, slot))
        stream_as_responder(node, slot);
    else
        slot_take(node, slot);
}

static bool is_busy(struct parley_node *node, const struct slot *slot, int member,
                    const struct message_exchange *offer)
{
    const struct slot *other = &node->exchange.slots[INITIATOR];
    return slot->state != SLOT_IDLE || is_twice(node, other, member, offer) ||
           !exchange_is_due(node, other) || pairing_refuses(node, offer);
}

static void on_offer(struct parley_node *node, struct conn *conn,
                     const struct message_exchange *message)
{
    struct slot *slot = &node->exchange.slots[RESPONDER];
    struct message_exchange answer = {.sequence = message->sequence};
    answer.reason = exchange_is_sane(message) ? refusal(node, conn->member, message->weight > 0)
                                              : EXCHANGE_STATES_DIFFER;
    if (answer.reason) {
        connection_send(node, conn, WIRE_REFUSE, &answer);
        return;
    }
    if (slot->state != SLOT_IDLE && PLANTED(WAIT_FOR_BUSY)) return;
    if (is_busy(node, slot, conn->member, message)) {
        node->ledger.busy++;
        connection_send(node, conn, WIRE_BUSY, &answer);
        return;
    }
    accept_offer(node, slot, conn, message);
}

/* ---- Both ------------------------------------------------------------------------------------ */

static const struct slot *named(const struct parley_node *node, const struct slot *slot)
{
    return PLANTED(OTHER_SNAPSHOT) ? &node->exchange.slots[RESPONDER] : slot;
}

void exchange_store(struct parley_node *node, int index, struct parley_update *update)
{
    const struct slot *slot = &node->exchange.slots[index];
    update->store.diffs = slot->state == SLOT_STREAMING && !slot->coded &&
                          slot->delta.weight <= 0 && slot->delta.wide == 1;
    update->store.other = named(node, slot)->own;
}

static void diff_if_complete(struct parley_node *node, struct slot *slot)
{
    bool ready = slot->received && slot->encoded == slot->coded;
    if (slot->state != SLOT_STREAMING || !ready) return;
    slot_move(node, slot, SLOT_DIFFING);
    slot->pending++;
    if (slot->delta.weight > 0) {
        push_sum_check(node, (int)slot->role, slot->theirs);
        return;
    }
    struct parley_update *update =
        out_vector(node, PARLEY_UPDATE_DIFF, OP_DIFF, (int)slot->role, slot->theirs);
    update->vector.other = named(node, slot)->own;
    update->vector.coded = slot->coded;
    update->vector.wide = slot->delta.wide;
    update->vector.draw = slot->draw;
}

void exchange_received(struct parley_node *node, int index)
{
    struct slot *slot = &node->exchange.slots[index];
    slot->received = true;
    slot->progress_us = node->now_us;
    diff_if_complete(node, slot);
}

void exchange_progress(struct parley_node *node, int index)
{
    node->exchange.slots[index].progress_us = node->now_us;
}

void exchange_sent(struct parley_node *node, int index, bool ok)
{
    struct slot *slot = &node->exchange.slots[index];
    slot->pending--;
    slot->sent = ok;
    if (slot->state == SLOT_ENDING) slot_end(node, slot);
}

static void taken(struct parley_node *node, struct slot *slot, const struct parley_event *event)
{
    if (!event->done.finite) {
        node->training.diverged++;
        slot_abort(node, slot, EXCHANGE_NON_FINITE, slot->role == RESPONDER);
        return;
    }
    slot_keep(node, slot, event);
    if (slot->holds != node->exchange.decided && !PLANTED(OLD_SNAPSHOT)) {
        slot_take(node, slot);
        slot->behind = true;
    } else if (slot->role == INITIATOR) {
        offer_taken(node, slot);
    } else {
        stream_as_responder(node, slot);
        diff_if_complete(node, slot);
    }
}

static void encoded(struct parley_node *node, struct slot *slot)
{
    slot->encoded = true;
    slot->progress_us = node->now_us;
    slot_stream(node, slot);
    diff_if_complete(node, slot);
}

static void diffed(struct parley_node *node, struct slot *slot, const struct parley_event *event)
{
    struct member *m = member_of(node, slot->peer);
    if (!event->done.finite && m) m->spoilt_us = node->now_us + NON_FINITE_US;
    if (!event->done.finite) {
        slot_abort(node, slot, EXCHANGE_NON_FINITE, true);
        return;
    }
    if (slot->delta.weight <= 0) slot->delta.mass = event->done.mass;
    slot->norm_sq = event->done.norm_sq;
    slot->own_norm_sq = event->done.own_norm_sq;
    slot->delta.clip = 1;
    if (node->config.robust) {
        slot->delta.clip = robust_clip(slot->radius, slot->norm_sq);
        if (slot->drawn) robust_seen(node, slot->norm_sq);
        slot->drawn = false;
    }
    slot->progress_us = node->now_us;
    slot_move(node, slot, SLOT_READY);
    struct message_exchange ready = {.sequence = slot->sequence};
    if (slot->role == RESPONDER)
        slot_send(node, slot->conn, WIRE_READY, &ready);
    else if (slot->peer_ready)
        offer_commit(node, slot);
    if (slot->role == RESPONDER && PLANTED(APPLY_BEFORE_DECISION)) slot_add(node, slot);
}

void exchange_applied(struct parley_node *node, int member, float factor, double mass)
{
    struct member *m = member_of(node, member);
    double moved = mass * (double)factor;
    if (m) {
        m->applied++;
        m->mass += moved;
        m->mass_abs += fabs(moved);
    }
    node->ledger.applied += 1 + PLANTED(LEDGER_TWICE);
}

void exchange_say_applied(struct parley_node *node, int initiator, uint32_t sequence)
{
    struct message_exchange message = {.sequence = sequence};
    struct conn *conn = connection_of(node, initiator);
    if (conn) connection_send(node, conn, WIRE_APPLIED, &message);
}

static void added(struct parley_node *node, struct slot *slot)
{
    delta_added(node, &slot->delta, slot->peer);
    if (slot->delta.weight <= 0) {
        double norm_sq = slot->norm_sq * slot->delta.clip * slot->delta.clip;
        drift_pair(node, norm_sq, slot->own_norm_sq);
        period_pair(node, norm_sq);
    }
    if (slot->role == RESPONDER)
        exchange_say_applied(node, slot->peer, slot->sequence);
    else if (node->leaving)
        exchange_left(node, slot->peer);
    slot_end(node, slot);
}

void exchange_left(struct parley_node *node, int peer)
{
    node->exchange.peer_last[node->exchange.left_count++ % LEAVE_EXCHANGES] =
        record_of(node, peer)->boot;
}

void exchange_done(struct parley_node *node, const struct op *op, const struct parley_event *event)
{
    struct slot *slot = &node->exchange.slots[op->owner];
    slot->pending--;
    if (op->kind == OP_ADD) node->exchange.added++;
    if (slot->state == SLOT_ENDING) {
        if (op->kind == OP_TAKE) slot_keep(node, slot, event);
        slot_end(node, slot);
    } else if (op->kind == OP_TAKE)
        taken(node, slot, event);
    else if (op->kind == OP_ENCODE)
        encoded(node, slot);
    else if (op->kind == OP_DIFF)
        diffed(node, slot, event);
    else
        added(node, slot);
}

/* ---- Frames ---------------------------------------------------------------------------------- */

static void on_commit(struct parley_node *node, struct conn *conn,
                      const struct message_exchange *message)
{
    struct slot *slot = &node->exchange.slots[RESPONDER];
    uint64_t initiator = record_of(node, (uint32_t)conn->member)->boot;
    bool named = slot->peer == conn->member && slot->sequence == message->sequence;
    if (named && slot->state == SLOT_READY) {
        slot_add(node, slot);
        return;
    }
    struct message_outcome_frame outcome = {initiator, self_of(node)->boot, message->sequence,
                                            MESSAGE_COMMITTED};
    for (int i = 0; i < DOUBTS_MAX; i++) {
        const struct doubt *doubt = &node->exchange.doubts[i];
        if (doubt->state == DOUBT_FREE || doubt->initiator != initiator ||
            doubt->sequence != message->sequence)
            continue;
        doubt_outcome(node, &outcome);
        return;
    }
    /* Said again after a broken connection: in x already, or given up and counted. */
    struct message_exchange answer = {.sequence = message->sequence};
    bool adding = named && slot->state == SLOT_ADDING; /* it says so itself then */
    if (!adding) connection_send(node, conn, WIRE_APPLIED, &answer);
}

static bool is_of(const struct slot *slot, const struct conn *conn,
                  const struct message_exchange *message)
{
    return slot->state >= SLOT_TAKING && slot->state <= SLOT_ADDING && slot->conn == conn->id &&
           slot->sequence == message->sequence;
}

static void decline(struct parley_node *node, struct conn *conn, uint32_t sequence,
                    enum exchange_reason reason)
{
    struct message_exchange abort = {.sequence = sequence, .reason = reason};
    connection_send(node, conn, WIRE_ABORT, &abort);
}

/* slot: whose offer it answers; NULL: of one that is over. */
static void on_accept(struct parley_node *node, struct conn *conn,
                      const struct message_exchange *message, struct slot *slot)
{
    offer_answered(node, conn->member, slot);
    if (slot)
        offer_accepted(node, slot, message);
    else
        decline(node, conn, message->sequence, EXCHANGE_STATES_DIFFER);
}

static void on_ready(struct parley_node *node, struct conn *conn,
                     const struct message_exchange *message, struct slot *slot)
{
    struct commit *commit = offer_commit_of(node, record_of(node, conn->member)->boot);
    bool decided = commit && commit->sequence == message->sequence;
    if (slot && slot->state < SLOT_ADDING)
        offer_ready(node, slot);
    else if (!decided)
        decline(node, conn, message->sequence, EXCHANGE_ASKED);
}

void exchange_frame(struct parley_node *node, struct conn *conn, enum wire_type type,
                    const struct message_exchange *message)
{
    struct slot *initiator = &node->exchange.slots[INITIATOR];
    struct slot *responder = &node->exchange.slots[RESPONDER];
    bool mine = is_of(initiator, conn, message) && initiator->state >= SLOT_OFFERED;
    switch (type) {
    case WIRE_OFFER:
        on_offer(node, conn, message);
        return;
    case WIRE_COMMIT:
        on_commit(node, conn, message);
        return;
    case WIRE_APPLIED:
        offer_applied(node, conn, message);
        return;
    case WIRE_ACCEPT:
        on_accept(node, conn, message, mine ? initiator : NULL);
        return;
    case WIRE_READY:
        on_ready(node, conn, message, mine ? initiator : NULL);
        return;
    case WIRE_BUSY:
    case WIRE_REFUSE:
        offer_answered(node, conn->member, mine ? initiator : NULL);
        if (mine) offer_busy(node, initiator, type == WIRE_REFUSE, message);
        return;
    case WIRE_ABORT:
        if (message->from_responder && mine && initiator->state < SLOT_ADDING)
            slot_abort(node, initiator, EXCHANGE_REASON_NONE, false);
        else if (!message->from_responder && is_of(responder, conn, message) &&
                 responder->state < SLOT_ADDING)
            slot_abort(node, responder, EXCHANGE_REASON_NONE, false);
        return;
    case WIRE_KEEPALIVE:
        if (!message->from_responder)
            fetch_alive(node, conn, message->sequence);
        else if (mine)
            initiator->progress_us = node->now_us;
        return;
    default:
        return;
    }
}

/* ---- Broken links and timers ----------------------------------------------------------------- */

void exchange_let_go(struct parley_node *node, struct slot *slot, enum exchange_reason reason,
                     bool tell)
{
    if (slot->role == RESPONDER && slot->state == SLOT_READY) {
        doubt_open(node, slot);
        slot_end(node, slot);
    } else {
        slot_abort(node, slot, reason, tell);
    }
}

void exchange_closed(struct parley_node *node, uint32_t conn)
{
    for (int role = 0; role < ROLES; role++) {
        struct slot *slot = &node->exchange.slots[role];
        if (slot->state < SLOT_OFFERED && !(slot->state == SLOT_TAKING && role == RESPONDER))
            continue;
        if (slot->conn != conn || slot->state >= SLOT_ADDING) continue;
        exchange_let_go(node, slot, EXCHANGE_LOST, false);
    }
}

/* When something is to be done about it, if nothing comes before. */
static uint64_t slot_deadline(const struct parley_node *node, const struct slot *slot)
{
    if (slot->state == SLOT_CONNECTING) return slot->progress_us + CONNECT_US;
    if (slot->state == SLOT_TAKING && slot->role == RESPONDER) /* it waits for the trainer */
        return slot->keepalive_us + node->config.keepalive_us;
    if (slot->state == SLOT_OFFERED) return offer_deadline(node, slot);
    if (slot->state > SLOT_OFFERED && slot->state <= SLOT_READY)
        return slot->progress_us + node->config.progress_timeout_us;
    return NEVER;
}

/* What does not get through would keep the slot's buffers, and the next exchange over this link
 * would fare no better. Who is READY asks (exchange_closed). */
static void stalled(struct parley_node *node, struct slot *slot)
{
    uint32_t conn = slot->conn;
    if (slot->role == INITIATOR || slot->state != SLOT_READY)
        slot_abort(node, slot, EXCHANGE_STALLED, true);
    connection_stalled(node, conn);
}

void exchange_timers(struct parley_node *node)
{
    for (int role = 0; role < ROLES; role++) {
        struct slot *slot = &node->exchange.slots[role];
        struct message_exchange alive = {.sequence = slot->sequence, .from_responder = 1};
        if (node->now_us < slot_deadline(node, slot)) continue;
        if (slot->state == SLOT_CONNECTING) {
            slot_abort(node, slot, EXCHANGE_LOST, false);
        } else if (slot->state == SLOT_TAKING) {
            slot_send(node, slot->conn, WIRE_KEEPALIVE, &alive);
            slot->keepalive_us = node->now_us;
        } else if (slot->state != SLOT_OFFERED || !offer_unanswered(node, slot)) {
            stalled(node, slot);
        }
    }
}

uint64_t exchange_deadline(const struct parley_node *node)
{
    uint64_t at = NEVER;
    for (int role = 0; role < ROLES; role++)
        at = earlier(at, slot_deadline(node, &node->exchange.slots[role]));
    const struct exchange *e = &node->exchange;
    bool waits = e->slots[INITIATOR].state == SLOT_IDLE &&
                 (node->leaving || phase_of(node) == PARLEY_PHASE_TRAIN ||
                  phase_of(node) == PARLEY_PHASE_SETTLE);
    if (waits && e->retry_us > node->now_us) at = earlier(at, e->retry_us);
    if (waits && period_goes_on(node) && e->next_us > node->now_us) at = earlier(at, e->next_us);
    return at;
}
