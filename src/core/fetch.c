/* fetch.c: a whole model from one peer: a joiner takes its state, the agreement the picked model.
 *
 *   asker: CONNECTING -> ASKED (FETCH) -> STREAMING (FETCHED, chunks) -> SETTING -> IDLE
 *   server of a state: reserves its responder's slot for the snapshot, streams, frees it
 *
 * The asker fills the buffers of its initiator's slot, which its owner has reserved. No answer and
 * no byte for a while, or a no: another peer is asked; the owner decides whom.
 */
#include <string.h>

#include "core/state.h"

enum { CONNECT_US = 2000000, RETRY_US = 20000 };

static void failed(struct parley_node *node)
{
    struct fetch *fetch = &node->fetch;
    flow_forget(node, &fetch->in);
    fetch->state = FETCH_IDLE;
    fetch->retry_us = node->now_us + RETRY_US;
    if (fetch->by_digest)
        agreement_fetch_failed(node);
    else
        exchange_release(node, INITIATOR); /* reserved again for the next try */
}

/* ---- Asking ---------------------------------------------------------------------------------- */

static void ask(struct parley_node *node, struct conn *conn)
{
    struct fetch *fetch = &node->fetch;
    struct slot *slot = &node->exchange.slots[INITIATOR];
    uint32_t buffers[PARLEY_VECTORS_MAX] = {fetch->by_digest ? node->agreement.other : slot->own,
                                            slot->theirs, slot->spare[2]};
    fetch->state = FETCH_ASKED;
    fetch->conn = conn->id;
    fetch->sequence++;
    fetch->progress_us = conn->used_us = node->now_us;
    flow_expect(node, &fetch->in, conn->id, WIRE_STREAM_FETCH, fetch->sequence, buffers,
                fetch->by_digest ? 1 : node->config.vectors);
    struct message_fetch message = {.sequence = fetch->sequence, .by_digest = fetch->by_digest};
    if (fetch->by_digest) memcpy(message.digest, fetch->digest, sizeof message.digest);
    connection_send(node, conn, WIRE_FETCH, &message);
}

void fetch_start(struct parley_node *node, int member, const uint8_t *digest)
{
    struct fetch *fetch = &node->fetch;
    fetch->state = FETCH_CONNECTING;
    fetch->by_digest = digest != NULL;
    fetch->member = member;
    fetch->progress_us = node->now_us;
    if (digest) memcpy(fetch->digest, digest, sizeof fetch->digest);
    struct conn *conn = connection_want(node, member);
    if (conn) ask(node, conn);
}

void fetch_stop(struct parley_node *node)
{
    flow_forget(node, &node->fetch.in);
    if (node->fetch.state != FETCH_SETTING) node->fetch.state = FETCH_IDLE;
}

void fetch_live(struct parley_node *node, struct conn *conn)
{
    if (node->fetch.state == FETCH_CONNECTING && node->fetch.member == conn->member)
        ask(node, conn);
}

void fetch_answered(struct parley_node *node, struct conn *conn,
                    const struct message_fetch *message)
{
    struct fetch *fetch = &node->fetch;
    if (fetch->state != FETCH_ASKED || fetch->conn != conn->id ||
        fetch->sequence != message->sequence)
        return;
    if (!message->ok || message->vectors != (fetch->by_digest ? 1 : node->config.vectors)) {
        failed(node);
        return;
    }
    fetch->version = message->version;
    fetch->state = FETCH_STREAMING;
    fetch->progress_us = node->now_us;
}

void fetch_progress(struct parley_node *node)
{
    node->fetch.progress_us = node->now_us;
}

void fetch_received(struct parley_node *node)
{
    struct fetch *fetch = &node->fetch;
    if (fetch->by_digest) {
        fetch->state = FETCH_IDLE;
        agreement_fetched(node);
        return;
    }
    fetch->state = FETCH_SETTING;
    struct slot *slot = &node->exchange.slots[INITIATOR];
    struct parley_update *update = out_vector(node, PARLEY_UPDATE_SET, OP_ADOPT, NONE, slot->own);
    update->vector.vectors = node->config.vectors;
    update->vector.buffers[1] = slot->theirs;
    update->vector.buffers[2] = slot->spare[2];
}

void fetch_closed(struct parley_node *node, uint32_t conn, int member)
{
    struct fetch *fetch = &node->fetch;
    if ((fetch->state == FETCH_ASKED || fetch->state == FETCH_STREAMING) && fetch->conn == conn)
        failed(node);
    (void)member;
}

void fetch_timers(struct parley_node *node)
{
    struct fetch *fetch = &node->fetch;
    bool waits = fetch->state == FETCH_CONNECTING || fetch->state == FETCH_ASKED ||
                 fetch->state == FETCH_STREAMING;
    if (waits && node->now_us >= fetch_deadline(node)) failed(node);
}

uint64_t fetch_deadline(const struct parley_node *node)
{
    const struct fetch *fetch = &node->fetch;
    switch (fetch->state) {
    case FETCH_CONNECTING:
        return fetch->progress_us + CONNECT_US;
    case FETCH_ASKED: /* the answer waits for a boundary of the other's trainer */
    case FETCH_STREAMING:
        return fetch->progress_us + node->config.progress_timeout_us;
    case FETCH_IDLE:
        return fetch->retry_us > node->now_us ? fetch->retry_us : NEVER;
    default:
        return NEVER;
    }
}

/* ---- Serving --------------------------------------------------------------------------------- */

static void answer(struct parley_node *node, struct conn *conn, uint32_t sequence, uint32_t vectors,
                   uint64_t version)
{
    struct message_fetch message = {
        .sequence = sequence, .ok = vectors > 0, .vectors = vectors, .version = version};
    connection_send(node, conn, WIRE_FETCHED, &message);
}

/* Two places among the outgoing flows are kept for exchanges. */
static bool has_place(const struct parley_node *node)
{
    int fetches = 0;
    for (int i = 0; i < OUTFLOWS_MAX; i++)
        fetches += node->outflows[i].active && node->outflows[i].slot == NONE;
    return fetches < OUTFLOWS_MAX - 2 * ROLES;
}

static void serve_model(struct parley_node *node, struct conn *conn,
                        const struct message_fetch *message)
{
    static const uint8_t no_digest[PARLEY_DIGEST_BYTES];
    const struct agreement *a = &node->agreement;
    bool have = a->candidate >= CANDIDATE_OWN && memcmp(a->own, no_digest, sizeof a->own) != 0 &&
                memcmp(a->own, message->digest, sizeof a->own) == 0 && has_place(node);
    answer(node, conn, message->sequence, have ? 1 : 0, 0);
    if (have) flow_send(node, conn->id, WIRE_STREAM_FETCH, message->sequence, &a->buffer, 1, NONE);
}

static void serve_state(struct parley_node *node, struct conn *conn,
                        const struct message_fetch *message)
{
    struct slot *slot = &node->exchange.slots[RESPONDER];
    enum parley_phase phase = phase_of(node);
    if (slot->state != SLOT_IDLE || phase < PARLEY_PHASE_TRAIN || phase > PARLEY_PHASE_SETTLE ||
        node->leaving || !has_place(node)) {
        answer(node, conn, message->sequence, 0, 0);
        return;
    }
    exchange_reserve(node, RESPONDER);
    node->fetch.serving = true;
    node->fetch.serve_conn = conn->id;
    node->fetch.serve_sequence = message->sequence;
    struct parley_update *update =
        out_vector(node, PARLEY_UPDATE_TAKE, OP_STATE_TAKE, NONE, slot->own);
    update->vector.vectors = node->config.vectors;
    update->vector.buffers[1] = slot->theirs;
    update->vector.buffers[2] = slot->spare[2];
}

void fetch_asked(struct parley_node *node, struct conn *conn, const struct message_fetch *message)
{
    if (message->by_digest)
        serve_model(node, conn, message);
    else
        serve_state(node, conn, message);
}

void fetch_served(struct parley_node *node, bool was_state)
{
    node->fetch.served_us = node->now_us;
    if (!was_state || !node->fetch.serving) return;
    node->fetch.serving = false;
    exchange_release(node, RESPONDER);
}

void fetch_done(struct parley_node *node, const struct op *op, const struct parley_event *event)
{
    struct slot *slot = &node->exchange.slots[RESPONDER];
    if (op->kind == OP_ADOPT) {
        node->fetch.state = FETCH_IDLE;
        training_adopted(node, node->fetch.version, event->done.version);
        return;
    }
    struct conn *conn = connection_find(node, node->fetch.serve_conn);
    if (!conn || conn->state != CONN_LIVE || !event->done.finite) {
        if (conn && conn->state == CONN_LIVE) answer(node, conn, node->fetch.serve_sequence, 0, 0);
        fetch_served(node, true);
        return;
    }
    uint32_t buffers[PARLEY_VECTORS_MAX] = {slot->own, slot->theirs, slot->spare[2]};
    answer(node, conn, node->fetch.serve_sequence, node->config.vectors,
           event->done.version + node->training.inherited);
    flow_send(node, conn->id, WIRE_STREAM_FETCH, node->fetch.serve_sequence, buffers,
              node->config.vectors, NONE);
}
