/* slot.c: one side of an exchange, and what both sides do alike: a snapshot, two streams, an add.
 *
 * A slot is this node's place for one exchange as initiator, or for one as responder. It moves
 * along the table below, and ends once, done or aborted; its buffers are free again when nothing
 * works on them any more.
 */
#include "core/exchange/slot.h"

#include <assert.h>
#include <string.h>

#include "core/exchange/doubt.h"
#include "core/exchange/exchange.h"
#include "core/link/connection.h"
#include "core/out.h"
#include "core/plant.h"
#include "core/state.h"
#include "core/training/training.h"
#include "core/transfer/codec.h"
#include "core/transfer/flow.h"

/* Where cores are scarce, a boundary may be so many steps away. From that period on it is little
 * beside the way to the next exchange, for which a snapshot taken ahead would be old. */
enum { FRESH_STEPS = 16, RARE_PERIOD = 8 };

static const char *const reason_texts[EXCHANGE_REASONS] = {
    [EXCHANGE_REASON_NONE] = "no reason given",
    [EXCHANGE_NOT_TRAINING] = "it does not average now",
    [EXCHANGE_DOUBTS] = "two exchanges are in doubt",
    [EXCHANGE_NON_FINITE] = "a value is not finite",
    [EXCHANGE_STALLED] = "no progress",
    [EXCHANGE_LOST] = "the connection is gone",
    [EXCHANGE_ASKED] = "the responder asked before the decision",
    [EXCHANGE_CROSSED] = "both have asked each other",
    [EXCHANGE_STATES_DIFFER] = "the other side knows of no such exchange",
    [EXCHANGE_PASSED] = "the peer can't take it any more",
};

static const char *slot_state_name(enum slot_state state)
{
    static const char *const names[SLOT_STATES] = {"idle",      "connecting", "taking", "offered",
                                                   "streaming", "diffing",    "ready",  "adding",
                                                   "ending",    "reserved"};
    return names[state];
}

/* ---- Moves ----------------------------------------------------------------------------------- */

void slot_move(struct parley_node *node, struct slot *slot, enum slot_state to)
{
#define TO(x) (1u << SLOT_##x)
    static const uint32_t allowed[SLOT_STATES] = {
        [SLOT_IDLE] = TO(CONNECTING) | TO(TAKING) | TO(OFFERED) | TO(STREAMING) | TO(RESERVED),
        [SLOT_CONNECTING] = TO(TAKING) | TO(OFFERED) | TO(ENDING),
        [SLOT_TAKING] = TO(TAKING) | TO(OFFERED) | TO(STREAMING) | TO(ENDING),
        [SLOT_OFFERED] = TO(OFFERED) | TO(TAKING) | TO(STREAMING) | TO(ENDING),
        [SLOT_STREAMING] = TO(DIFFING) | TO(ADDING) | TO(ENDING), /* who pushes has no d */
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

bool slot_is_open(const struct slot *slot)
{
    return (slot->state >= SLOT_OFFERED && slot->state <= SLOT_ADDING) ||
           (slot->state == SLOT_TAKING && slot->role == RESPONDER); /* it has accepted */
}

/* Over, one way or the other; the buffers are free once nothing works on them. */
void slot_end(struct parley_node *node, struct slot *slot)
{
    if (slot->state != SLOT_ENDING) {
        slot->ended = node->training.version;
        flow_forget(node, &slot->in);
        slot_move(node, slot, SLOT_ENDING);
        for (uint32_t i = 0; i < node->outflows_count; i++)
            if (node->outflows[i].active && node->outflows[i].slot == (int)slot->role &&
                node->outflows[i].sequence == slot->sequence)
                flow_abort(node, i);
    }
    if (slot->state == SLOT_ENDING && (slot->pending == 0 || PLANTED(EARLY_RELEASE)))
        slot_move(node, slot, SLOT_IDLE);
}

void slot_send(struct parley_node *node, uint32_t id, enum wire_type type,
               const struct message_exchange *message)
{
    struct conn *conn = connection_find(node, id);
    if (conn) connection_send(node, conn, type, message);
}

void slot_abort(struct parley_node *node, struct slot *slot, enum exchange_reason reason, bool tell)
{
    bool counted =
        slot->state > SLOT_OFFERED || (slot->state == SLOT_TAKING && slot->role == RESPONDER);
    node->ledger.aborted += counted;
    if (slot->role == INITIATOR && slot->state >= SLOT_OFFERED) {
        struct exchange *e = &node->exchange;
        e->aborted[e->aborted_next++ % ABORTED_MAX] = slot->sequence;
    }
    out_log(node, PARLEY_LOG_DEBUG, "exchange %u with %s aborted: %s", slot->sequence,
            record_of(node, slot->peer)->name, reason_texts[reason]);
    struct message_exchange abort = {
        .sequence = slot->sequence, .from_responder = slot->role == RESPONDER, .reason = reason};
    if (tell) slot_send(node, slot->conn, WIRE_ABORT, &abort);
    slot_end(node, slot);
}

/* ---- Snapshots, streams, adding -------------------------------------------------------------- */

bool slot_is_recent(const struct parley_node *node, const struct slot *slot)
{
    return slot->holds == node->exchange.decided &&
           node->training.version <= slot->version + FRESH_STEPS;
}

/* A mix() is of what has been trained since the one before: it wants a snapshot of its own time. */
void slot_begin_quick(const struct parley_node *node, struct slot *slot)
{
    bool trains = phase_of(node) == PARLEY_PHASE_TRAIN;
    slot->quick = !node->strategy->mix && (!trains || period_steps(node) < RARE_PERIOD) &&
                  node->training.version <= slot->ended + FRESH_STEPS;
}

void slots_stale(struct parley_node *node)
{
    for (int role = 0; role < ROLES; role++)
        node->exchange.slots[role].fresh = false;
}

bool slot_is_fresh(const struct parley_node *node, const struct slot *slot)
{
    return slot->fresh && slot_is_recent(node, slot);
}

/* What one exchange decides, the other slot's snapshot lacks; so where they follow each other fast,
 * the one that is fresh is mostly that of the slot whose exchange was the last. */
bool slot_finds_fresh(struct parley_node *node, struct slot *slot)
{
    struct slot *other = &node->exchange.slots[slot->role == INITIATOR ? RESPONDER : INITIATOR];
    uint32_t own = slot->own;
    if (slot_is_fresh(node, slot)) return true;
    if (other->state != SLOT_IDLE || !slot_is_fresh(node, other)) return false;
    slot->own = other->own;
    slot->version = other->version;
    slot->holds = other->holds;
    slot->fresh = true;
    other->own = own;
    other->fresh = false;
    return true;
}

static void take(struct parley_node *node, struct slot *slot)
{
    out_vector(node, PARLEY_UPDATE_TAKE, OP_TAKE, (int)slot->role, slot->own)->vector.wide =
        node->config.averaged;
}

void slot_take(struct parley_node *node, struct slot *slot)
{
    slot->fresh = slot->behind = false;
    slot->pending++;
    slot->progress_us = slot->keepalive_us = node->now_us;
    if (slot->state != SLOT_TAKING) slot_move(node, slot, SLOT_TAKING);
    take(node, slot);
}

void slot_keep(struct parley_node *node, struct slot *slot, const struct parley_event *event)
{
    slot->fresh = event->done.finite;
    slot->version = event->done.version;
    slot->holds = node->exchange.added;
}

/* What brings a node's work into the mean for good is not rounded: the end, and leaving. */
bool slot_wants_codec(const struct parley_node *node)
{
    bool plain = node->config.codec == PARLEY_CODEC_FP32 && node->config.averaged == 1;
    return !plain && phase_of(node) == PARLEY_PHASE_TRAIN && !node->leaving;
}

void slot_code(struct parley_node *node, struct slot *slot, bool coded)
{
    const struct record *initiator =
        slot->role == INITIATOR ? self_of(node) : record_of(node, (uint32_t)slot->peer);
    slot->coded = coded;
    slot->delta.wide = coded ? node->config.averaged : 1;
    slot->encoded = coded && node->config.codec == PARLEY_CODEC_FP32; /* as it stands */
    slot->draw = rng_mix(initiator->boot) + slot->sequence;
}

uint32_t slot_copies(const struct parley_node *node, const struct slot *slot,
                     uint32_t buffers[PARLEY_VECTORS_MAX])
{
    const uint32_t all[] = {slot->own, slot->theirs, slot->spare};
    _Static_assert(sizeof all / sizeof *all == PARLEY_VECTORS_MAX, "a buffer a vector");
    memcpy(buffers, all, sizeof all);
    return node->config.vectors;
}

static uint64_t stream_bytes(const struct parley_node *node, const struct slot *slot)
{
    const struct parley_config *c = &node->config;
    enum parley_codec codec = slot->coded ? c->codec : PARLEY_CODEC_FP32;
    return slot->delta.wide * codec_bytes(codec, c->codec_part, c->parameters);
}

void slot_expect(struct parley_node *node, struct slot *slot, enum wire_stream kind)
{
    flow_expect(node, &slot->in, slot->conn, kind, slot->sequence, &slot->theirs, 1);
    slot->in.end = stream_bytes(node, slot);
}

static void encode(struct parley_node *node, struct slot *slot)
{
    slot->pending++;
    struct parley_update *update =
        out_vector(node, PARLEY_UPDATE_ENCODE, OP_ENCODE, (int)slot->role, slot->own);
    update->vector.wide = slot->delta.wide;
    update->vector.draw = slot->draw;
}

void slot_stream(struct parley_node *node, struct slot *slot)
{
    if (slot->coded && !slot->encoded) {
        encode(node, slot);
        return;
    }
    slot->pending++;
    int flow = flow_send(node, slot->conn,
                         slot->role == INITIATOR ? WIRE_STREAM_OFFER : WIRE_STREAM_ACCEPT,
                         slot->sequence, &slot->own, 1, (int)slot->role);
    assert(flow != NONE); /* places are kept for exchanges (fetch.c) */
    node->outflows[flow].end = stream_bytes(node, slot);
}

static void trade_buffers(struct slot *slot)
{
    uint32_t own = slot->own;
    slot->own = slot->theirs;
    slot->theirs = own;
}

void slot_add(struct parley_node *node, struct slot *slot)
{
    struct delta delta = slot->delta;
    bool pushed = delta.weight > 0;
    node->exchange.decided++;
    slot_move(node, slot, SLOT_ADDING);
    slot->pending++;
    if (PLANTED(ACK_UNAPPLIED) && slot->role == RESPONDER) delta.share = 0;
    if (pushed && slot->role == INITIATOR) /* it has that much less */
        training_weigh(node, OP_ADD, INITIATOR, slot->own, -delta.weight, delta.gap);
    else
        delta_add(node, &delta, OP_ADD, (int)slot->role, (int)slot->own, slot->theirs);
    if (pushed || !slot->quick || !slot->sent) return;
    /* At the same boundary the snapshot of the next exchange, which need not wait for one then;
     * over d, which is in the cache as it is added. */
    trade_buffers(slot);
    slot->pending++;
    take(node, slot);
}

/* ---- Setting up, lending --------------------------------------------------------------------- */

void exchange_init(struct parley_node *node)
{
    uint32_t next = 0;
    for (int role = 0; role < ROLES; role++) {
        struct slot *slot = &node->exchange.slots[role];
        slot->role = (enum role)role;
        slot->own = next++;
        slot->theirs = next++;
        if (node->config.vectors > 2) slot->spare = next++;
        slot->in.slot = role;
    }
    for (int i = 0; i < DOUBTS_MAX; i++)
        node->exchange.doubts[i].buffer = next++;
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
