/* frames.c: see frames.h. */
#include "core/wire/frames.h"

#include <string.h>

#include "core/drift/sketches.h"
#include "core/exchange/doubt.h"
#include "core/exchange/exchange.h"
#include "core/link/connection.h"
#include "core/link/hello.h"
#include "core/link/seeds.h"
#include "core/membership/merge.h"
#include "core/membership/probe.h"
#include "core/out.h"
#include "core/state.h"
#include "core/transfer/fetch.h"
#include "core/transfer/flow.h"

static void answer_status(struct parley_node *node, struct conn *conn,
                          const struct message_status *status)
{
    struct message_report report = {.total = node->roster->count};
    struct parley_view view;
    if (conn->queued > PARLEY_CONTROL_BYTES_MAX) { /* it has others to read first */
        connection_close(node, conn);
        return;
    }
    parley_node_view(node, &view);
    memcpy(report.cluster, node->cluster, sizeof report.cluster);
    report.live = view.live;
    report.known = view.known;
    report.drift = view.drift;
    report.progress = view.progress;
    for (uint32_t i = status->from; i < node->roster->count && report.count < MESSAGE_RECORDS_MAX;
         i++)
        report.records[report.count++] = *record_of(node, i);
    connection_send(node, conn, WIRE_REPORT, &report);
}

static int hand_over(struct parley_node *node, struct conn *conn, enum wire_type type,
                     const uint8_t *bytes, size_t size)
{
    union message m;
    int error = type == WIRE_REPORT ? PARLEY_EMALFORMED /* an answer that no node asks for */
                                    : message_decode(type, bytes, size, &m, node->out->unpacker);
    if (error) return error;
    switch (type) {
    case WIRE_HELLO:
        hello_received(node, conn, &m.hello);
        break;
    case WIRE_REJECT:
        hello_rejected(node, conn, &m.reject);
        break;
    case WIRE_BYE:
        connection_bye(node, conn, &m.bye);
        break;
    case WIRE_PING:
    case WIRE_ACK:
    case WIRE_PING_FOR:
        probe_received(node, conn, type, &m.probe);
        break;
    case WIRE_MEMBERS:
        merge_members(node, conn, &m.members);
        break;
    case WIRE_SKETCHES:
        sketches_received(node, conn, &m.sketches);
        break;
    case WIRE_OFFER:
    case WIRE_ACCEPT:
    case WIRE_BUSY:
    case WIRE_REFUSE:
    case WIRE_READY:
    case WIRE_COMMIT:
    case WIRE_APPLIED:
    case WIRE_ABORT:
    case WIRE_KEEPALIVE:
        exchange_frame(node, conn, type, &m.exchange);
        break;
    case WIRE_ASK:
        doubt_ask(node, conn, &m.outcome);
        break;
    case WIRE_OUTCOME:
        doubt_outcome(node, &m.outcome);
        break;
    case WIRE_FETCH:
        fetch_asked(node, conn, &m.fetch);
        break;
    case WIRE_FETCHED:
        fetch_answered(node, conn, &m.fetch);
        break;
    case WIRE_STATUS:
        answer_status(node, conn, &m.status);
        break;
    case WIRE_STRATEGY:
        if (node->strategy->frame) node->strategy->frame(node, conn, &m.strategy);
        break;
    case WIRE_NONE:
    case WIRE_REPORT:
    case WIRE_CHUNK:
    case WIRE_TYPES:
        break;
    }
    return 0;
}

/* ---- From bytes ------------------------------------------------------------------------------ */

/* Whoever it is, it stands where a seed is to be: the dials go on, and so may the lines. */
static void seed_is_foreign(struct parley_node *node, struct conn *conn)
{
    int seed = conn->seed; /* which goes with the link */
    connection_break(node, conn);
    seeds_log(node, seed, "answers in another protocol; is it a parley node?");
}

static void malformed(struct parley_node *node, struct conn *conn, int error)
{
    bool met = conn->state != CONN_PENDING || hello_is_checked(node, conn);
    if (error == PARLEY_EMALFORMED && conn->seed != NONE && !met) {
        seed_is_foreign(node, conn);
        return;
    }
    if (connection_is_news(node, conn))
        out_log(node, PARLEY_LOG_WARN, "closed a connection with %s: %s",
                conn->member >= 0 ? record_of(node, conn->member)->name : conn->address,
                parley_error_text(error));
    connection_break(node, conn);
}

static bool may_come_first(enum wire_type type)
{
    return type == WIRE_HELLO || type == WIRE_REJECT || type == WIRE_STATUS || type == WIRE_BYE;
}

/* Nothing goes before HELLO. But its name may turn out to be another's: who dialled says no more
 * till that is known, who answered may; yet no more than the driver has room for (node.h). */
static int before_hello(const struct parley_node *node, const struct conn *conn, size_t size)
{
    bool checked = hello_is_checked(node, conn);
    if (checked && size <= WIRE_HEADER_BYTES + PARLEY_CONTROL_BYTES_MAX) return 0;
    return checked ? PARLEY_ELIMIT : PARLEY_EMALFORMED;
}

/* The frame at the head of bytes[size]: how many it took, or 0 if it is not all there. Of a chunk
 * the head alone. */
static size_t take_frame(struct parley_node *node, struct conn *conn, const uint8_t *bytes,
                         size_t size, int *error)
{
    struct wire_header header;
    if (size < WIRE_HEADER_BYTES) return 0;
    *error = wire_header_read(bytes, &header);
    if (*error) return 0;
    if (conn->state != CONN_LIVE && !may_come_first((enum wire_type)header.type)) {
        *error = before_hello(node, conn, size);
        return 0;
    }
    size_t need = header.type == WIRE_CHUNK ? WIRE_CHUNK_BYTES : header.size;
    const uint8_t *body = bytes + WIRE_HEADER_BYTES;
    if (size - WIRE_HEADER_BYTES < need) return 0;
    if (header.type == WIRE_CHUNK)
        flow_chunk_begin(node, conn, body, header.size - WIRE_CHUNK_BYTES, error);
    else
        *error = hand_over(node, conn, (enum wire_type)header.type, body, need);
    return WIRE_HEADER_BYTES + need;
}

/* On a line that has become narrow a chunk takes long, and what the other end asks comes behind it:
 * it is told before that this one lives. */
static void say_alive(struct parley_node *node, struct conn *conn)
{
    struct message_probe alive = {.boot = self_of(node)->boot};
    if (node->now_us < conn->chunk_us + node->config.probe_interval_us) return;
    conn->chunk_us = node->now_us;
    connection_send(node, conn, WIRE_ACK, &alive);
}

size_t frames_received(struct parley_node *node, uint32_t id, const uint8_t *bytes, size_t size)
{
    size_t at = 0;
    while (at < size && out_room(node)) {
        struct conn *conn = connection_find(node, id);
        int error = 0;
        if (!conn || conn->state == CONN_CLOSING || node->finished) return size;
        conn->heard_us = node->now_us;
        bool in_chunk = conn->chunk_left > 0;
        size_t used = in_chunk ? flow_chunk_bytes(node, conn, bytes + at, size - at, &error)
                               : take_frame(node, conn, bytes + at, size - at, &error);
        if (error == PARLEY_EMISMATCH && conn->state == CONN_PENDING) {
            hello_foreign(node, conn, bytes[at + 2]);
            return size;
        }
        if (error) {
            malformed(node, conn, error);
            return size;
        }
        if (used == 0) break;
        at += used;
        if (in_chunk && conn->chunk_left > 0) say_alive(node, conn);
        if (conn->chunk_left > 0 && conn->chunk_aside) break; /* not of these bytes */
    }
    return at;
}
