/* fetch.c: a whole model from one peer: a joiner takes its state, the agreement the picked model.
 *
 *   asker: CONNECTING -> ASKED (FETCH) -> STREAMING (FETCHED, chunks) -> SETTING -> IDLE
 *   server of a state: reserves its responder's slot for the snapshot, streams, frees it; says
 *                      KEEPALIVE while its trainer keeps it waiting for the snapshot
 *
 * The asker fills the buffers of its initiator's slot, which its owner has reserved. No answer and
 * no byte for a while, or a no: another peer is asked; the owner decides whom.
 */
#include "core/transfer/fetch.h"

#include <string.h>

#include "core/agreement/agreement.h"
#include "core/agreement/holding.h"
#include "core/agreement/said.h"
#include "core/exchange/exchange.h"
#include "core/exchange/slot.h"
#include "core/link/connection.h"
#include "core/membership/membership.h"
#include "core/out.h"
#include "core/state.h"
#include "core/training/joining.h"
#include "core/training/training.h"
#include "core/transfer/flow.h"

enum { CONNECT_US = 2000000, RETRY_US = 20000, TELL_US = 2000000, OWED_US = 2000000 };
enum { NON_FINITE_US = 1000000 };

/* Of models larger than that, so many are sent at a time: a line that N of them share is through
 * with all N at once, and until then nobody else can serve one. Two, as one may be slow. */
enum { LARGE_BYTES = 4 * PARLEY_CHUNK_BYTES_MAX, LARGE_MAX = 2 };

static void failed(struct parley_node *node)
{
    struct fetch *fetch = &node->fetch;
    flow_forget(node, &fetch->in);
    fetch->state = FETCH_IDLE;
    fetch->retry_us = node->now_us + RETRY_US;
    if (fetch->by_digest)
        holding_fetch_failed(node);
    else
        exchange_release(node, INITIATOR); /* reserved again for the next try */
}

/* The buffers of a state: a copy of each vector in the slot's, then what the strategy keeps. */
static uint32_t state_buffers(const struct parley_node *node, const struct slot *slot,
                              uint32_t buffers[FLOW_VECTORS_MAX])
{
    uint32_t count = slot_copies(node, slot, buffers);
    for (uint32_t i = 0; i < node->strategy->kept; i++)
        buffers[count++] = strategy_buffer(node, i);
    return count;
}

static uint32_t vectors_wanted(const struct parley_node *node)
{
    return node->fetch.by_digest ? 1 : node->config.vectors + node->strategy->kept;
}

/* ---- Asking ---------------------------------------------------------------------------------- */

static void ask(struct parley_node *node, struct conn *conn)
{
    struct fetch *fetch = &node->fetch;
    struct slot *slot = &node->exchange.slots[INITIATOR];
    uint32_t buffers[FLOW_VECTORS_MAX];
    state_buffers(node, slot, buffers);
    if (fetch->by_digest) buffers[0] = node->agreement.other;
    fetch->state = FETCH_ASKED;
    fetch->conn = conn->id;
    fetch->sequence++;
    fetch->progress_us = fetch->told_us = conn->used_us = node->now_us;
    flow_expect(node, &fetch->in, conn->id, WIRE_STREAM_FETCH, fetch->sequence, buffers,
                vectors_wanted(node));
    struct message_fetch message = {.sequence = fetch->sequence, .by_digest = fetch->by_digest};
    if (fetch->by_digest) memcpy(message.digest, fetch->digest, sizeof message.digest);
    connection_send(node, conn, WIRE_FETCH, &message);
}

/* Dials, if there is no link and it may be dialled again. */
static void connect(struct parley_node *node)
{
    struct conn *conn = connection_want(node, node->fetch.member);
    if (conn) ask(node, conn);
}

void fetch_start(struct parley_node *node, int member, const uint8_t *digest)
{
    struct fetch *fetch = &node->fetch;
    fetch->state = FETCH_CONNECTING;
    fetch->by_digest = digest != NULL;
    fetch->member = member;
    fetch->progress_us = node->now_us;
    if (digest) memcpy(fetch->digest, digest, sizeof fetch->digest);
    connect(node);
}

void fetch_stop(struct parley_node *node)
{
    flow_forget(node, &node->fetch.in);
    node->fetch.state = FETCH_IDLE;
}

bool fetch_takes_state(const struct parley_node *node)
{
    return node->fetch.state != FETCH_IDLE && !node->fetch.by_digest;
}

void fetch_live(struct parley_node *node, struct conn *conn)
{
    if (node->fetch.state == FETCH_CONNECTING && node->fetch.member == conn->member)
        ask(node, conn);
}

static bool is_asked(const struct fetch *fetch, const struct conn *conn, uint32_t sequence)
{
    return fetch->state == FETCH_ASKED && fetch->conn == conn->id && fetch->sequence == sequence;
}

void fetch_alive(struct parley_node *node, const struct conn *conn, uint32_t sequence)
{
    if (is_asked(&node->fetch, conn, sequence)) node->fetch.progress_us = node->now_us;
}

void fetch_answered(struct parley_node *node, struct conn *conn,
                    const struct message_fetch *message)
{
    struct fetch *fetch = &node->fetch;
    if (!is_asked(fetch, conn, message->sequence)) return;
    if (!message->ok || message->vectors != vectors_wanted(node)) {
        failed(node);
        return;
    }
    fetch->answer = *message;
    fetch->state = FETCH_STREAMING;
    fetch->progress_us = node->now_us;
}

/* Who holds the picked model already is to know that it comes in elsewhere, slow as it may be. */
void fetch_progress(struct parley_node *node)
{
    struct fetch *fetch = &node->fetch;
    fetch->progress_us = node->now_us;
    if (!fetch->by_digest || node->now_us < fetch->told_us + TELL_US) return;
    fetch->told_us = node->now_us;
    self_of(node)->fetched = fetch->in.offset;
    membership_changed(node, true);
}

/* Nothing is trained on where a float is not finite. What the strategy keeps has come to its place
 * already: one after the other is looked at, then the trainer's vectors are as they are set. */
static void adopt(struct parley_node *node, uint32_t looked)
{
    struct slot *slot = &node->exchange.slots[INITIATOR];
    if (looked < node->strategy->kept) {
        struct parley_update *look = out_vector(node, PARLEY_UPDATE_COMBINE, OP_LOOK, (int)looked,
                                                strategy_buffer(node, looked));
        look->vector.keep = 1;
        look->vector.size = vector_bytes(node);
        return;
    }
    struct parley_update *set = out_vector(node, PARLEY_UPDATE_SET, OP_ADOPT, NONE, slot->own);
    set->vector.vectors = slot_copies(node, slot, set->vector.buffers);
    set->vector.if_finite = true;
}

void fetch_received(struct parley_node *node)
{
    struct fetch *fetch = &node->fetch;
    if (fetch->state != FETCH_STREAMING) { /* floats, and no word of what they are */
        failed(node);
        return;
    }
    if (fetch->by_digest) {
        fetch->state = FETCH_IDLE;
        holding_fetched(node);
        return;
    }
    fetch->state = FETCH_SETTING;
    adopt(node, 0);
}

void fetch_closed(struct parley_node *node, uint32_t conn)
{
    struct fetch *fetch = &node->fetch;
    if ((fetch->state == FETCH_ASKED || fetch->state == FETCH_STREAMING) && fetch->conn == conn)
        failed(node);
}

static uint64_t asking_deadline(const struct parley_node *node)
{
    const struct fetch *fetch = &node->fetch;
    switch (fetch->state) {
    case FETCH_CONNECTING:
        return fetch->progress_us + CONNECT_US;
    case FETCH_ASKED:
    case FETCH_STREAMING:
        return fetch->progress_us + node->config.progress_timeout_us;
    case FETCH_IDLE:
        return fetch->retry_us > node->now_us ? fetch->retry_us : NEVER;
    default:
        return NEVER;
    }
}

/* When who waits for a snapshot of this node's is told again that it comes. */
static uint64_t alive_deadline(const struct parley_node *node)
{
    return node->fetch.serving ? node->fetch.alive_us : NEVER;
}

/* No answer. Where nothing else was heard since over that link, the next question would fare no
 * better: what a line has swallowed for long TCP says again after as long a pause. */
static void give_up(struct parley_node *node)
{
    struct fetch *fetch = &node->fetch;
    bool asked = fetch->state == FETCH_ASKED || fetch->state == FETCH_STREAMING;
    struct conn *conn = asked ? connection_find(node, fetch->conn) : NULL;
    bool silent = conn && conn->heard_us <= fetch->progress_us;
    failed(node);
    if (silent) connection_stalled(node, conn->id);
}

static void say_alive(struct parley_node *node)
{
    struct fetch *fetch = &node->fetch;
    struct message_exchange alive = {.sequence = fetch->serve_answer.sequence};
    slot_send(node, fetch->serve_conn, WIRE_KEEPALIVE, &alive);
    fetch->alive_us = node->now_us + node->config.keepalive_us;
}

void fetch_timers(struct parley_node *node)
{
    struct fetch *fetch = &node->fetch;
    bool gone = fetch->state == FETCH_CONNECTING &&
                !record_is_live(record_of(node, (uint32_t)fetch->member));
    if (gone || node->now_us >= asking_deadline(node)) give_up(node);
    if (fetch->state == FETCH_CONNECTING && out_room(node)) connect(node);
    if (node->now_us >= alive_deadline(node)) say_alive(node);
}

uint64_t fetch_deadline(const struct parley_node *node)
{
    return earlier(asking_deadline(node), alive_deadline(node));
}

/* ---- Serving --------------------------------------------------------------------------------- */

/* 0 vectors: no. */
static void answer(struct parley_node *node, struct conn *conn, uint32_t sequence, uint32_t vectors)
{
    struct message_fetch message = {.sequence = sequence, .ok = vectors > 0, .vectors = vectors};
    connection_send(node, conn, WIRE_FETCHED, &message);
}

static int served_now(const struct parley_node *node)
{
    int fetches = 0;
    for (uint32_t i = 0; i < node->outflows_count; i++)
        fetches += node->outflows[i].active && node->outflows[i].slot == NONE;
    return fetches;
}

/* Two places for each exchange are kept among the outgoing flows. */
static bool has_place(const struct parley_node *node)
{
    return served_now(node) < OUTFLOWS_MAX - 2 * ROLES;
}

/* Who is told no asks whoever holds it by then. */
static bool has_place_for_model(const struct parley_node *node)
{
    return vector_bytes(node) > LARGE_BYTES ? served_now(node) < LARGE_MAX : has_place(node);
}

static void serve_model(struct parley_node *node, struct conn *conn,
                        const struct message_fetch *message)
{
    const struct agreement *a = &node->agreement;
    bool have = a->candidate >= CANDIDATE_OWN && !said_none(a->own) &&
                said_same(a->own, message->digest) && has_place_for_model(node);
    answer(node, conn, message->sequence, have ? 1 : 0);
    if (have) flow_send(node, conn->id, WIRE_STREAM_FETCH, message->sequence, &a->buffer, 1, NONE);
}

static void serve_state(struct parley_node *node, struct conn *conn,
                        const struct message_fetch *message)
{
    struct slot *slot = &node->exchange.slots[RESPONDER];
    enum parley_phase phase = phase_of(node);
    /* What is decided meanwhile would change what is being sent. */
    bool mixes = exchange_mixes_kept(node) && slot_is_open(&node->exchange.slots[INITIATOR]);
    if (slot->state != SLOT_IDLE || phase < PARLEY_PHASE_TRAIN || phase > PARLEY_PHASE_PROPOSED ||
        node->leaving || !has_place(node) || mixes || fetch_takes_state(node)) {
        answer(node, conn, message->sequence, 0);
        node->fetch.owed_us = node->now_us + OWED_US;
        return;
    }
    node->fetch.owed_us = 0;
    exchange_reserve(node, RESPONDER);
    node->fetch.serving = true;
    node->fetch.serve_conn = conn->id;
    node->fetch.alive_us = node->now_us + node->config.keepalive_us;
    node->fetch.serve_answer = (struct message_fetch){
        .sequence = message->sequence,
        .ok = 1,
        .vectors = node->config.vectors + node->strategy->kept,
    };
    if (node->strategy->give) node->strategy->give(node, &node->fetch.serve_answer);
    struct parley_update *update =
        out_vector(node, PARLEY_UPDATE_TAKE, OP_STATE_TAKE, NONE, slot->own);
    update->vector.vectors = slot_copies(node, slot, update->vector.buffers);
}

/* Who asks anew has given up what it asked for before. */
static void end_earlier(struct parley_node *node, const struct conn *conn)
{
    for (uint32_t i = 0; i < node->outflows_count; i++) {
        const struct outflow *out = &node->outflows[i];
        if (out->conn == conn->id && out->slot == NONE) flow_abort(node, (int)i);
    }
}

void fetch_asked(struct parley_node *node, struct conn *conn, const struct message_fetch *message)
{
    end_earlier(node, conn);
    if (message->by_digest)
        serve_model(node, conn, message);
    else
        serve_state(node, conn, message);
}

void fetch_served(struct parley_node *node, bool was_state)
{
    if (!was_state || !node->fetch.serving) return;
    node->fetch.serving = false;
    node->fetch.served_us = node->now_us; /* who got nothing of it asks again, and is waited for */
    exchange_release(node, RESPONDER);
}

/* Who gives it looks at its vectors before: it lies, or what its strategy keeps has run away. */
static void refuse(struct parley_node *node)
{
    struct fetch *fetch = &node->fetch;
    out_log(node, PARLEY_LOG_WARN, "the model that %s gives is not finite: it is not taken",
            record_of(node, (uint32_t)fetch->member)->name);
    failed(node);
    fetch->retry_us = node->now_us + NON_FINITE_US;
}

static void adopting_done(struct parley_node *node, const struct op *op,
                          const struct parley_event *event)
{
    struct fetch *fetch = &node->fetch;
    if (!event->done.finite) {
        refuse(node);
    } else if (op->kind == OP_LOOK) {
        adopt(node, (uint32_t)op->owner + 1);
    } else {
        fetch->state = FETCH_IDLE;
        joining_adopted(node, fetch->answer.version, event->done.version);
    }
}

void fetch_done(struct parley_node *node, const struct op *op, const struct parley_event *event)
{
    if (op->kind != OP_STATE_TAKE) {
        adopting_done(node, op, event);
        return;
    }
    struct slot *slot = &node->exchange.slots[RESPONDER];
    struct conn *conn = connection_find(node, node->fetch.serve_conn);
    node->fetch.alive_us = NEVER;
    if (!event->done.finite) node->training.diverged++;
    if (!conn || conn->state != CONN_LIVE || !event->done.finite) {
        if (conn && conn->state == CONN_LIVE)
            answer(node, conn, node->fetch.serve_answer.sequence, 0);
        fetch_served(node, true);
        return;
    }
    uint32_t buffers[FLOW_VECTORS_MAX];
    uint32_t count = state_buffers(node, slot, buffers);
    struct message_fetch *message = &node->fetch.serve_answer;
    message->version = event->done.version + node->training.inherited;
    message->trained_us = training_spent_us(node);
    message->samples = training_reckoned(node);
    connection_send(node, conn, WIRE_FETCHED, message);
    flow_send(node, conn->id, WIRE_STREAM_FETCH, message->sequence, buffers, count, NONE);
}
