/* exchange.c: two nodes average, and the cluster's mean stays where it is.
 *
 *   initiator                          responder
 *   TAKING    snapshot
 *   OFFERED   OFFER            ->      TAKING     ACCEPT(divisor), BUSY or REFUSE: at once
 *   STREAMING own snapshot     <->     STREAMING  own snapshot
 *   DIFFING   d = theirs - ours        DIFFING    the same with the other sign, to the bit
 *   READY     waits            <-      READY      READY: has all, finite
 *   ADDING    COMMIT           ->      ADDING     both: x += d / divisor at the next boundary
 *             forgets          <-                 APPLIED
 *
 * Before READY (responder) or COMMIT (initiator) a side may abort alone. After READY the responder
 * is bound by the initiator's decision; if the connection breaks it asks (doubt.c). Nobody waits
 * for a node that waits: an OFFER never needs the initiator's slot. A snapshot is named only if it
 * holds every delta decided before, so it is taken again if one was decided meanwhile.
 * Deltas, Boyd et al. 2006, section II: W = I - (e_i - e_j)(e_i - e_j)^T / divisor.
 */
#include <assert.h>
#include <string.h>

#include "core/state.h"

enum {
    FRESH_STEPS = 16, /* where cores are scarce, a boundary may be that far away */
    CONNECT_US = 1000000,
    BUSY_RETRY_US = 1000,
    NOBODY_RETRY_US = 20000,
    LEAVE_EXCHANGES = 3
};

static const char *const reason_texts[EXCHANGE_REASONS] = {
    [EXCHANGE_REASON_NONE] = "no reason given",
    [EXCHANGE_NOT_TRAINING] = "it does not average now",
    [EXCHANGE_DOUBTS] = "two exchanges are in doubt",
    [EXCHANGE_AGE] = "the snapshot grew too old",
    [EXCHANGE_NON_FINITE] = "a value is not finite",
    [EXCHANGE_STALLED] = "no progress",
    [EXCHANGE_LOST] = "the connection is gone",
    [EXCHANGE_ASKED] = "the responder asked before the decision",
    [EXCHANGE_SUM] = "a checksum was wrong",
    [EXCHANGE_STATES_DIFFER] = "the other side knows of no such exchange",
};

static const char *slot_state_name(enum slot_state state)
{
    static const char *const names[SLOT_STATES] = {"idle",      "connecting", "taking", "offered",
                                                   "streaming", "diffing",    "ready",  "adding",
                                                   "ending",    "reserved"};
    return names[state];
}

/* ---- Slots ----------------------------------------------------------------------------------- */

/* Every move of a slot goes through here. */
static void slot_move(struct parley_node *node, struct slot *slot, enum slot_state to)
{
#define TO(x) (1u << SLOT_##x)
    static const uint32_t allowed[SLOT_STATES] = {
        [SLOT_IDLE] = TO(CONNECTING) | TO(TAKING) | TO(OFFERED) | TO(STREAMING) | TO(RESERVED),
        [SLOT_CONNECTING] = TO(TAKING) | TO(OFFERED) | TO(ENDING),
        [SLOT_TAKING] = TO(TAKING) | TO(OFFERED) | TO(STREAMING) | TO(ENDING),
        [SLOT_OFFERED] = TO(OFFERED) | TO(TAKING) | TO(STREAMING) | TO(ENDING),
        [SLOT_STREAMING] = TO(DIFFING) | TO(ENDING),
        [SLOT_DIFFING] = TO(READY) | TO(ENDING),
        [SLOT_READY] = TO(ADDING) | TO(ENDING),
        [SLOT_ADDING] = TO(ENDING),
        [SLOT_ENDING] = TO(IDLE),
        [SLOT_RESERVED] = TO(IDLE),
    };
#undef TO
    assert(allowed[slot->state] & (1u << to));
    out_log(node, PARLEY_LOG_DEBUG, "%s %u: %s -> %s", slot->role == INITIATOR ? "offer" : "answer",
            slot->sequence, slot_state_name(slot->state), slot_state_name(to));
    slot->state = to;
}

static bool is_open(const struct slot *slot)
{
    return (slot->state >= SLOT_OFFERED && slot->state <= SLOT_ADDING) ||
           (slot->state == SLOT_TAKING && slot->role == RESPONDER); /* it has accepted */
}

/* Over, one way or the other; the buffers are free once nothing works on them. */
static void slot_end(struct parley_node *node, struct slot *slot)
{
    if (slot->state != SLOT_ENDING) {
        slot->ended = node->training.version;
        flow_forget(node, &slot->in);
        slot_move(node, slot, SLOT_ENDING);
        for (int i = 0; i < OUTFLOWS_MAX; i++)
            if (node->outflows[i].active && node->outflows[i].slot == (int)slot->role &&
                node->outflows[i].sequence == slot->sequence)
                flow_abort(node, i);
    }
    if (slot->state == SLOT_ENDING && slot->pending == 0) slot_move(node, slot, SLOT_IDLE);
}

static void send_exchange(struct parley_node *node, uint32_t id, enum wire_type type,
                          const struct message_exchange *message)
{
    struct conn *conn = connection_find(node, id);
    if (conn) connection_send(node, conn, type, message);
}

/* Only before the decision. */
static void slot_abort(struct parley_node *node, struct slot *slot, enum exchange_reason reason,
                       bool tell)
{
    bool counted =
        slot->state > SLOT_OFFERED || (slot->state == SLOT_TAKING && slot->role == RESPONDER);
    node->ledger.aborted += counted;
    if (slot->role == INITIATOR && slot->state >= SLOT_OFFERED) {
        struct exchange *e = &node->exchange;
        e->aborted[e->aborted_next++ % ABORTED_MAX] = slot->sequence;
    }
    out_log(node, PARLEY_LOG_DEBUG, "exchange %u with %s aborted: %s", slot->sequence,
            node->members[slot->peer].r.name, reason_texts[reason]);
    struct message_exchange abort = {
        .sequence = slot->sequence, .from_responder = slot->role == RESPONDER, .reason = reason};
    if (tell) send_exchange(node, slot->conn, WIRE_ABORT, &abort);
    slot_end(node, slot);
}

static bool is_too_old(const struct parley_node *node, const struct slot *slot)
{
    return node->training.version > slot->version + node->config.age_steps_max;
}

void exchange_init(struct parley_node *node)
{
    uint32_t next = 0;
    for (int role = 0; role < ROLES; role++) {
        struct slot *slot = &node->exchange.slots[role];
        slot->role = (enum role)role;
        slot->own = next++;
        slot->theirs = next++;
        for (uint32_t v = 2; v < node->config.vectors; v++)
            slot->spare[v] = next++;
        slot->in.slot = role;
    }
    for (int i = 0; i < DOUBTS_MAX; i++)
        node->exchange.doubts[i].buffer = next++;
    node->fetch.in.slot = NONE;
    node->drift.value = -1;
}

void exchange_reserve(struct parley_node *node, enum role role)
{
    struct slot *slot = &node->exchange.slots[role];
    slot->fresh = false;
    slot_move(node, slot, SLOT_RESERVED);
}

void exchange_release(struct parley_node *node, enum role role)
{
    slot_move(node, &node->exchange.slots[role], SLOT_IDLE);
}

/* ---- Choosing a peer ------------------------------------------------------------------------- */

static struct commit *commit_of(struct parley_node *node, uint64_t responder)
{
    for (int i = 0; i < COMMITS_MAX; i++)
        if (node->exchange.commits[i].responder == responder) return &node->exchange.commits[i];
    return NULL;
}

void exchange_forget(struct parley_node *node, uint64_t responder)
{
    struct commit *commit = commit_of(node, responder);
    if (commit) *commit = (struct commit){0};
}

static bool is_neighbour(const struct parley_node *node, int member)
{
    if (node->config.topology == PARLEY_TOPOLOGY_COMPLETE) return true;
    const char *own = node->members[0].r.name, *theirs = node->members[member].r.name;
    uint32_t own_place = 0, their_place = 0, n = 0;
    for (uint32_t i = 0; i < node->members_count; i++) {
        if (!membership_is_live(node, (int)i)) continue;
        n++;
        own_place += strcmp(node->members[i].r.name, own) < 0;
        their_place += strcmp(node->members[i].r.name, theirs) < 0;
    }
    return topology_linked(node->config.topology, n, own_place, their_place);
}

static bool fits(struct parley_node *node, int member)
{
    const struct member *m = &node->members[member];
    enum parley_phase phase = (enum parley_phase)m->r.phase;
    if (phase < PARLEY_PHASE_TRAIN || phase > PARLEY_PHASE_PROPOSED) return false;
    if (m->busy_us > node->now_us || commit_of(node, m->r.boot)) return false;
    if (m->link == NONE && m->redial_us > node->now_us) return false;
    if (node->leaving)
        for (int i = 0; i < LEAVE_EXCHANGES; i++)
            if (node->exchange.peer_last[i] == m->r.boot) return false;
    return phase_of(node) != PARLEY_PHASE_TRAIN || is_neighbour(node, member);
}

/* ---- The initiator --------------------------------------------------------------------------- */

/* Is there a snapshot at hand that is what a new one would be, or nearly so? */
static bool is_fresh(const struct parley_node *node, const struct slot *slot)
{
    return slot->fresh && slot->holds == node->exchange.decided &&
           node->training.version <= slot->version + FRESH_STEPS;
}

static void take(struct parley_node *node, struct slot *slot)
{
    slot->taken = slot->fresh = false;
    slot->pending++;
    slot->progress_us = slot->keepalive_us = node->now_us;
    if (slot->state != SLOT_TAKING) slot_move(node, slot, SLOT_TAKING);
    out_vector(node, PARLEY_UPDATE_TAKE, OP_TAKE, (int)slot->role, slot->own);
}

static void offer(struct parley_node *node, struct slot *slot, struct conn *conn)
{
    slot->taken = true;
    slot->fresh = false;
    slot->conn = conn->id;
    slot->sequence = ++node->exchange.sequence;
    slot->received = slot->sent = slot->peer_ready = false;
    slot->progress_us = node->now_us;
    slot_move(node, slot, SLOT_OFFERED);
    conn->used_us = node->now_us;
    struct message_exchange message = {.sequence = slot->sequence,
                                       .open = is_open(&node->exchange.slots[RESPONDER])};
    connection_send(node, conn, WIRE_OFFER, &message);
}

/* Who has made its budget of steps goes on averaging until all have. */
static bool steps_are_made(const struct parley_node *node)
{
    return node->config.steps_budget && node->training.version >= node->config.steps_budget;
}

static bool may_start(const struct parley_node *node)
{
    const struct exchange *e = &node->exchange;
    if (e->slots[INITIATOR].state != SLOT_IDLE || node->now_us < e->retry_us) return false;
    if (node->training.diverged) return false;
    if (node->leaving) return e->left_count < LEAVE_EXCHANGES;
    if (phase_of(node) == PARLEY_PHASE_SETTLE) return true;
    return phase_of(node) == PARLEY_PHASE_TRAIN &&
           node->config.strategy == PARLEY_STRATEGY_GOSSIP &&
           (node->training.version >= e->next_version || steps_are_made(node));
}

static void wait_for_peers(struct parley_node *node, uint64_t wait_us)
{
    node->exchange.retry_us = node->now_us + wait_us;
}

void exchange_advance(struct parley_node *node)
{
    struct exchange *e = &node->exchange;
    struct slot *slot = &e->slots[INITIATOR];
    if (!may_start(node)) return;
    if (!commit_of(node, 0)) { /* 64 decisions unheard of */
        wait_for_peers(node, NOBODY_RETRY_US);
        return;
    }
    int peer = membership_pick(node, fits);
    if (peer == NONE) {
        wait_for_peers(node, node->live > 1 ? BUSY_RETRY_US : NOBODY_RETRY_US);
        return;
    }
    slot->peer = peer;
    slot->tries = 0;
    slot->progress_us = node->now_us;
    e->next_version = node->training.version + node->config.mix_every;
    slot->quick = node->training.version <= slot->ended + FRESH_STEPS;
    if (steps_are_made(node)) wait_for_peers(node, BUSY_RETRY_US);
    struct conn *conn = connection_want(node, peer);
    if (!conn)
        slot_move(node, slot, SLOT_CONNECTING);
    else if (is_fresh(node, slot))
        offer(node, slot, conn);
    else
        take(node, slot);
}

void exchange_live(struct parley_node *node, struct conn *conn)
{
    struct slot *slot = &node->exchange.slots[INITIATOR];
    if (slot->state == SLOT_CONNECTING && slot->peer == conn->member) take(node, slot);
    struct commit *commit = commit_of(node, node->members[conn->member].r.boot);
    struct message_exchange again = {.sequence = commit ? commit->sequence : 0};
    if (commit) connection_send(node, conn, WIRE_COMMIT, &again);
}

/* The snapshot is in hand: name it to the peer. */
static void taken_as_initiator(struct parley_node *node, struct slot *slot)
{
    struct conn *conn = connection_of(node, slot->peer);
    if (conn && fits(node, slot->peer))
        offer(node, slot, conn);
    else
        slot_abort(node, slot, EXCHANGE_LOST, false);
}

/* It was busy: somebody else may have this very snapshot, unless a delta was decided since. */
static void offer_elsewhere(struct parley_node *node, struct slot *slot)
{
    int peer = ++slot->tries < BUSY_TRIES_MAX && !is_too_old(node, slot)
                   ? membership_pick(node, fits)
                   : NONE;
    struct conn *conn = peer == NONE ? NULL : connection_of(node, peer);
    if (!conn) {
        slot_end(node, slot);
        wait_for_peers(node, BUSY_RETRY_US);
        return;
    }
    slot->peer = peer;
    if (slot->holds == node->exchange.decided)
        offer(node, slot, conn);
    else
        take(node, slot);
}

static void begin_streams(struct parley_node *node, struct slot *slot)
{
    slot->pending++;
    int flow = flow_send(node, slot->conn,
                         slot->role == INITIATOR ? WIRE_STREAM_OFFER : WIRE_STREAM_ACCEPT,
                         slot->sequence, &slot->own, 1, (int)slot->role);
    assert(flow != NONE); /* two places are kept for exchanges */
    (void)flow;
}

static void decide(struct parley_node *node, struct slot *slot)
{
    node->exchange.decided++;
    slot_move(node, slot, SLOT_ADDING);
    slot->pending++;
    out_vector(node, PARLEY_UPDATE_ADD, OP_ADD, (int)slot->role, slot->theirs)->vector.factor =
        1.0f / (float)slot->divisor;
    if (!slot->quick || !slot->sent) return;
    /* At the same boundary the snapshot of the next exchange, which need not wait for one then. */
    slot->pending++;
    out_vector(node, PARLEY_UPDATE_TAKE, OP_TAKE, (int)slot->role, slot->own);
}

static void commit(struct parley_node *node, struct slot *slot)
{
    if (is_too_old(node, slot)) {
        slot_abort(node, slot, EXCHANGE_AGE, true);
        return;
    }
    struct commit *commit = commit_of(node, 0);
    assert(commit); /* a place was free when the offer went out, and there is one offer at a time */
    *commit = (struct commit){node->members[slot->peer].r.boot, slot->sequence, node->now_us};
    node->ledger.committed++;
    struct message_exchange message = {.sequence = slot->sequence};
    send_exchange(node, slot->conn, WIRE_COMMIT, &message);
    decide(node, slot);
}

/* ---- The responder --------------------------------------------------------------------------- */

static enum exchange_reason refusal(const struct parley_node *node)
{
    enum parley_phase phase = phase_of(node);
    if (phase < PARLEY_PHASE_TRAIN || phase > PARLEY_PHASE_PROPOSED || node->leaving)
        return EXCHANGE_NOT_TRAINING;
    if (node->training.diverged) return EXCHANGE_NON_FINITE;
    return doubt_room(node) ? EXCHANGE_REASON_NONE : EXCHANGE_DOUBTS;
}

static void stream_as_responder(struct parley_node *node, struct slot *slot)
{
    slot->taken = true;
    slot->fresh = false;
    slot->progress_us = node->now_us;
    slot_move(node, slot, SLOT_STREAMING);
    begin_streams(node, slot);
}

static void on_offer(struct parley_node *node, struct conn *conn,
                     const struct message_exchange *message)
{
    struct slot *slot = &node->exchange.slots[RESPONDER];
    const struct slot *other = &node->exchange.slots[INITIATOR];
    struct message_exchange answer = {.sequence = message->sequence};
    answer.reason = refusal(node);
    if (answer.reason) {
        connection_send(node, conn, WIRE_REFUSE, &answer);
        return;
    }
    /* Two offers of one pair have crossed: the higher id is the busy one. */
    bool crossed = other->state == SLOT_OFFERED && other->peer == conn->member &&
                   self_of(node)->r.boot > node->members[conn->member].r.boot;
    if (slot->state != SLOT_IDLE || crossed) {
        answer.retry_us = BUSY_RETRY_US;
        node->ledger.busy++;
        connection_send(node, conn, WIRE_BUSY, &answer);
        return;
    }
    slot->peer = conn->member;
    slot->conn = conn->id;
    slot->sequence = message->sequence;
    slot->divisor = message->open || is_open(other) ? 3 : 2;
    slot->received = slot->sent = slot->peer_ready = false;
    conn->used_us = node->now_us;
    answer.divisor = slot->divisor;
    connection_send(node, conn, WIRE_ACCEPT, &answer);
    flow_expect(node, &slot->in, conn->id, WIRE_STREAM_OFFER, slot->sequence, &slot->theirs, 1);
    slot->quick = node->training.version <= slot->ended + FRESH_STEPS;
    if (is_fresh(node, slot))
        stream_as_responder(node, slot);
    else
        take(node, slot);
}

/* ---- Both ------------------------------------------------------------------------------------ */

static void diff_if_complete(struct parley_node *node, struct slot *slot)
{
    if (slot->state != SLOT_STREAMING || !slot->taken || !slot->received) return;
    slot_move(node, slot, SLOT_DIFFING);
    slot->pending++;
    out_vector(node, PARLEY_UPDATE_DIFF, OP_DIFF, (int)slot->role, slot->theirs)->vector.other =
        slot->own;
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

static void keep_snapshot(struct parley_node *node, struct slot *slot,
                          const struct parley_event *event)
{
    slot->fresh = event->done.finite;
    slot->version = event->done.version;
    slot->holds = node->exchange.added;
}

static void taken(struct parley_node *node, struct slot *slot, const struct parley_event *event)
{
    if (!event->done.finite) {
        node->training.diverged++;
        slot_abort(node, slot, EXCHANGE_NON_FINITE, slot->role == RESPONDER);
        return;
    }
    keep_snapshot(node, slot, event);
    if (slot->holds != node->exchange.decided) {
        take(node, slot);
    } else if (slot->role == INITIATOR) {
        taken_as_initiator(node, slot);
    } else {
        stream_as_responder(node, slot);
        diff_if_complete(node, slot);
    }
}

static void diffed(struct parley_node *node, struct slot *slot, const struct parley_event *event)
{
    if (!event->done.finite || is_too_old(node, slot)) {
        slot_abort(node, slot, event->done.finite ? EXCHANGE_AGE : EXCHANGE_NON_FINITE, true);
        return;
    }
    slot->mass = event->done.mass;
    slot->norm_sq = event->done.norm_sq;
    slot->own_norm_sq = event->done.own_norm_sq;
    slot->progress_us = node->now_us;
    slot_move(node, slot, SLOT_READY);
    struct message_exchange ready = {.sequence = slot->sequence};
    if (slot->role == RESPONDER)
        send_exchange(node, slot->conn, WIRE_READY, &ready);
    else if (slot->peer_ready)
        commit(node, slot);
}

void exchange_applied(struct parley_node *node, int member, uint32_t divisor, double mass)
{
    struct member *m = &node->members[member];
    double moved = mass * (double)(1.0f / (float)divisor), size = moved < 0 ? -moved : moved;
    m->applied++;
    m->mass += moved;
    m->mass_abs += size;
    node->ledger.applied++;
    node->ledger.mass += moved;
    node->ledger.mass_abs += size;
    node->drift.mixed++;
}

static void added(struct parley_node *node, struct slot *slot)
{
    exchange_applied(node, slot->peer, slot->divisor, slot->mass);
    drift_pair(node, slot->norm_sq, slot->own_norm_sq);
    if (slot->role == RESPONDER) {
        node->members[slot->peer].applied_sequence = slot->sequence;
        struct message_exchange message = {.sequence = slot->sequence};
        struct conn *conn = connection_of(node, slot->peer);
        if (conn) connection_send(node, conn, WIRE_APPLIED, &message);
    } else if (node->leaving) {
        node->exchange.peer_last[node->exchange.left_count++ % LEAVE_EXCHANGES] =
            node->members[slot->peer].r.boot;
    }
    slot_end(node, slot);
}

void exchange_done(struct parley_node *node, const struct op *op, const struct parley_event *event)
{
    struct slot *slot = &node->exchange.slots[op->owner];
    slot->pending--;
    if (op->kind == OP_ADD) node->exchange.added++;
    if (slot->state == SLOT_ENDING) {
        if (op->kind == OP_TAKE) keep_snapshot(node, slot, event);
        slot_end(node, slot);
    } else if (op->kind == OP_TAKE)
        taken(node, slot, event);
    else if (op->kind == OP_DIFF)
        diffed(node, slot, event);
    else
        added(node, slot);
}

/* ---- Frames ---------------------------------------------------------------------------------- */

static void on_accept(struct parley_node *node, struct slot *slot,
                      const struct message_exchange *message)
{
    if (slot->state != SLOT_OFFERED) return;
    if (message->divisor != 2 && message->divisor != 3) {
        slot_abort(node, slot, EXCHANGE_STATES_DIFFER, true);
        return;
    }
    slot->divisor = message->divisor;
    slot->progress_us = node->now_us;
    node->ledger.started++;
    slot_move(node, slot, SLOT_STREAMING);
    flow_expect(node, &slot->in, slot->conn, WIRE_STREAM_ACCEPT, slot->sequence, &slot->theirs, 1);
    begin_streams(node, slot);
}

static void on_busy(struct parley_node *node, struct slot *slot, bool refused,
                    const struct message_exchange *message)
{
    if (slot->state != SLOT_OFFERED) return;
    uint64_t wait_us = refused ? NOBODY_RETRY_US : message->retry_us;
    if (wait_us > 1000000) wait_us = 1000000;
    node->members[slot->peer].busy_us = node->now_us + wait_us;
    offer_elsewhere(node, slot);
}

static void on_ready(struct parley_node *node, struct slot *slot)
{
    slot->peer_ready = true;
    slot->progress_us = node->now_us;
    if (slot->state == SLOT_READY) commit(node, slot);
}

static void on_commit(struct parley_node *node, struct conn *conn,
                      const struct message_exchange *message)
{
    struct slot *slot = &node->exchange.slots[RESPONDER];
    struct member *m = &node->members[conn->member];
    if (slot->state == SLOT_READY && slot->peer == conn->member &&
        slot->sequence == message->sequence) {
        decide(node, slot);
        return;
    }
    bool adding = slot->state == SLOT_ADDING && slot->peer == conn->member &&
                  slot->sequence == message->sequence;
    struct message_outcome_frame outcome = {m->r.boot, self_of(node)->r.boot, message->sequence,
                                            MESSAGE_COMMITTED};
    for (int i = 0; i < DOUBTS_MAX; i++) {
        const struct doubt *doubt = &node->exchange.doubts[i];
        if (!doubt->active || doubt->initiator != m->r.boot || doubt->sequence != message->sequence)
            continue;
        doubt_outcome(node, &outcome);
        return;
    }
    /* Said again after a broken connection: in x already, or given up and counted. */
    struct message_exchange answer = {.sequence = message->sequence};
    if (!adding) connection_send(node, conn, WIRE_APPLIED, &answer);
}

static bool is_of(const struct slot *slot, const struct conn *conn,
                  const struct message_exchange *message)
{
    return slot->state >= SLOT_TAKING && slot->state <= SLOT_ADDING && slot->conn == conn->id &&
           slot->sequence == message->sequence && slot->peer == conn->member;
}

static void on_applied(struct parley_node *node, struct conn *conn,
                       const struct message_exchange *message)
{
    struct commit *commit = commit_of(node, node->members[conn->member].r.boot);
    if (commit && commit->sequence == message->sequence) *commit = (struct commit){0};
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
        on_applied(node, conn, message);
        return;
    case WIRE_ACCEPT: {
        struct message_exchange abort = {.sequence = message->sequence,
                                         .reason = EXCHANGE_STATES_DIFFER};
        if (mine)
            on_accept(node, initiator, message);
        else
            connection_send(node, conn, WIRE_ABORT, &abort);
        return;
    }
    case WIRE_READY: {
        struct message_exchange abort = {.sequence = message->sequence, .reason = EXCHANGE_ASKED};
        struct commit *commit = commit_of(node, node->members[conn->member].r.boot);
        bool decided = commit && commit->sequence == message->sequence;
        if (mine && initiator->state < SLOT_ADDING)
            on_ready(node, initiator);
        else if (!decided)
            connection_send(node, conn, WIRE_ABORT, &abort);
        return;
    }
    case WIRE_BUSY:
    case WIRE_REFUSE:
        if (mine) on_busy(node, initiator, type == WIRE_REFUSE, message);
        return;
    case WIRE_ABORT:
        if (message->from_responder && mine && initiator->state < SLOT_ADDING)
            slot_abort(node, initiator, EXCHANGE_REASON_NONE, false);
        else if (!message->from_responder && is_of(responder, conn, message) &&
                 responder->state < SLOT_ADDING)
            slot_abort(node, responder, EXCHANGE_REASON_NONE, false);
        return;
    case WIRE_KEEPALIVE:
        if (message->from_responder && mine) initiator->progress_us = node->now_us;
        return;
    default:
        return;
    }
}

enum message_outcome exchange_outcome(struct parley_node *node, uint64_t asker, uint32_t sequence)
{
    struct exchange *e = &node->exchange;
    struct commit *commit = commit_of(node, asker);
    if (commit && commit->sequence == sequence) return MESSAGE_COMMITTED;
    struct slot *slot = &e->slots[INITIATOR];
    if (slot->state >= SLOT_OFFERED && slot->state < SLOT_ADDING && slot->sequence == sequence &&
        node->members[slot->peer].r.boot == asker) {
        slot_abort(node, slot, EXCHANGE_ASKED, false); /* the question decides */
        return MESSAGE_ABORTED;
    }
    for (int i = 0; i < ABORTED_MAX; i++)
        if (e->aborted[i] == sequence && sequence != 0) return MESSAGE_ABORTED;
    return MESSAGE_UNKNOWN;
}

/* ---- Broken links and timers ----------------------------------------------------------------- */

void exchange_closed(struct parley_node *node, uint32_t conn, int member)
{
    for (int role = 0; role < ROLES; role++) {
        struct slot *slot = &node->exchange.slots[role];
        if (slot->state < SLOT_OFFERED && !(slot->state == SLOT_TAKING && role == RESPONDER))
            continue;
        if (slot->conn != conn || slot->state >= SLOT_ADDING) continue;
        if (role == RESPONDER && slot->state == SLOT_READY) {
            doubt_open(node, slot);
            slot_end(node, slot);
        } else {
            slot_abort(node, slot, EXCHANGE_LOST, false);
        }
    }
}

void exchange_timers(struct parley_node *node)
{
    const struct parley_config *c = &node->config;
    for (int role = 0; role < ROLES; role++) {
        struct slot *slot = &node->exchange.slots[role];
        if (slot->state == SLOT_CONNECTING && node->now_us >= slot->progress_us + CONNECT_US)
            slot_abort(node, slot, EXCHANGE_LOST, false);
        bool waits_for_trainer = slot->state == SLOT_TAKING;
        if (waits_for_trainer && role == RESPONDER &&
            node->now_us >= slot->keepalive_us + c->keepalive_us) {
            struct message_exchange alive = {.sequence = slot->sequence, .from_responder = 1};
            send_exchange(node, slot->conn, WIRE_KEEPALIVE, &alive);
            slot->keepalive_us = node->now_us;
        }
        if (slot->state < SLOT_OFFERED || slot->state > SLOT_READY ||
            node->now_us < slot->progress_us + c->progress_timeout_us)
            continue;
        if (role == RESPONDER && slot->state == SLOT_READY) {
            doubt_open(node, slot);
            slot_end(node, slot);
        } else {
            slot_abort(node, slot, EXCHANGE_STALLED, true);
        }
    }
}

uint64_t exchange_deadline(const struct parley_node *node)
{
    const struct parley_config *c = &node->config;
    uint64_t at = NEVER;
    for (int role = 0; role < ROLES; role++) {
        const struct slot *slot = &node->exchange.slots[role];
        uint64_t slot_at = NEVER;
        if (slot->state == SLOT_CONNECTING) slot_at = slot->progress_us + CONNECT_US;
        if (slot->state == SLOT_TAKING && role == RESPONDER)
            slot_at = slot->keepalive_us + c->keepalive_us;
        if (slot->state >= SLOT_OFFERED && slot->state <= SLOT_READY)
            slot_at = slot->progress_us + c->progress_timeout_us;
        if (slot_at < at) at = slot_at;
    }
    bool waits = node->exchange.slots[INITIATOR].state == SLOT_IDLE &&
                 node->exchange.retry_us > node->now_us &&
                 (node->leaving || phase_of(node) == PARLEY_PHASE_TRAIN ||
                  phase_of(node) == PARLEY_PHASE_SETTLE);
    return waits && node->exchange.retry_us < at ? node->exchange.retry_us : at;
}
