/* read.c: what comes in over a connection, as conn.h has it: to the core, or past it to where
 * floats belong.
 */
#include "network/conn.h"

#include <assert.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>

#include "core/wire/wire.h"
#include "network/lane.h"
#include "network/streams.h"
#include "network/tls.h"

/* After some time; and as soon as as much has come in as has gone out: else of two models that
 * cross each would go by itself, while the other end waits for its turn. */
static bool has_read_enough(struct loop *loop)
{
    if (loop->turn_read_bytes == 0) return false;
    if (loop->turn_sent_bytes > 0 && loop->turn_read_bytes >= loop->turn_sent_bytes) return true;
    return loop_turn_us(loop) > LOOP_READ_BUDGET_US;
}

/* Where what comes next belongs, and how much of it. */
static uint8_t *place_of_next(struct conn *conn, size_t *room)
{
    struct loop *loop = conn->loop;
    /* Little before a chunk's floats: those that come along have to be copied. */
    *room = conn->filled ? CONN_HEAD_BYTES : CONN_INPUT_BYTES - conn->used;
    conn->filled = false;
    conn->direct = NULL;
    uint32_t vector;
    uint64_t offset;
    size_t left = 0;
    if (conn->state == CONN_OPEN && conn->used == 0 &&
        !parley_node_awaits_aside(loop->node, conn->id))
        left = parley_node_awaits(loop->node, conn->id, &vector, &offset);
    if (left == 0) return conn->input + conn->used;
    conn->direct = (uint8_t *)vectors_buffer(loop->vectors, vector) + offset;
    *room = left;
    return conn->direct;
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    struct conn *conn = handle->data;
    struct loop *loop = conn->loop;
    *buffer = uv_buf_init(NULL, 0); /* libuv then reports ENOBUFS and asks again in the next turn */
    if (!conn->input) conn->input = malloc(CONN_INPUT_BYTES);
    if (!conn->input) return; /* on_read() ends it: here nothing may be closed */
    if (has_read_enough(loop)) return;
    size_t room = CONN_READ_BYTES;
    uint8_t *place = conn->tls ? loop->sealed : place_of_next(conn, &room);
    *buffer = uv_buf_init((char *)place, (unsigned)room);
}

/* Floats of a chunk, in the other end's memory or read from there. Of those that nobody waits for
 * the core reads none. */
static void offer_floats(struct conn *conn, const uint8_t *floats, size_t size)
{
    struct loop *loop = conn->loop;
    for (size_t part, at = 0; at < size && conn->state == CONN_OPEN; at += part) {
        part = size - at < CONN_ASIDE_BYTES ? size - at : CONN_ASIDE_BYTES;
        struct parley_event event = {.type = PARLEY_EVENT_RECEIVED,
                                     .received = {conn->id, floats + at, part}};
        size_t consumed = loop_tell(loop, &event);
        assert(consumed == part || conn->state != CONN_OPEN || loop->finished);
        (void)consumed;
    }
}

/* A chunk whose floats come aside: their place came in their stead. */
static void offer_aside(struct conn *conn, const uint8_t *bytes, size_t size)
{
    uint64_t place = wire_get(bytes, LANE_PLACE_BYTES);
    if (place & STREAMS_PLACE) {
        if (!streams_read(conn, place)) conn_end(conn, PARLEY_CLOSED_RESET, UV_EPROTO);
        return;
    }
    const uint8_t *floats = lane_floats(conn, place, size);
    if (!floats) {
        conn_end(conn, PARLEY_CLOSED_RESET, UV_EPROTO);
        return;
    }
    offer_floats(conn, floats, size);
    atomic_fetch_add_explicit(&conn->loop->bytes_received, size, memory_order_relaxed);
    if (conn->state == CONN_OPEN) lane_taken(conn);
}

/* Offers bytes until the core takes no more. Returns how many it took. */
static size_t offer(struct conn *conn, const uint8_t *bytes, size_t size)
{
    size_t start = 0;
    while (start < size && conn->state == CONN_OPEN && !conn->waits) {
        size_t aside = parley_node_awaits_aside(conn->loop->node, conn->id);
        if (aside > 0) {
            if (size - start < LANE_PLACE_BYTES) break;
            offer_aside(conn, bytes + start, aside);
            start += LANE_PLACE_BYTES;
            continue;
        }
        struct parley_event event = {.type = PARLEY_EVENT_RECEIVED,
                                     .received = {conn->id, bytes + start, size - start}};
        size_t consumed = loop_tell(conn->loop, &event);
        assert(consumed <= size - start);
        start += consumed;
        if (!consumed) break;
    }
    return conn->state == CONN_OPEN ? start : size;
}

static void offer_input(struct conn *conn)
{
    size_t start = offer(conn, conn->input, conn->used);
    conn->used -= start;
    assert(conn->used <= CONN_LEFT_BYTES || conn->waits);
    if (start > 0) memmove(conn->input, conn->input + start, conn->used);
}

/* What came to place_of_next(). */
static void take(struct conn *conn, size_t size, size_t room)
{
    atomic_fetch_add_explicit(&conn->loop->bytes_received, (uint64_t)size, memory_order_relaxed);
    if (conn->direct) {
        conn->filled = size == room;
        size_t taken = offer(conn, conn->direct, size);
        assert(taken == size); /* of a chunk it takes all */
        (void)taken;
        return;
    }
    conn->used += size;
    if (!conn->tls && !conn->met && conn->id % 2 == 0 && tls_is_asked(conn->input, conn->used)) {
        conn_warn_of_stranger(conn);
        conn_end(conn, PARLEY_CLOSED_KEY, UV_EPROTO);
        return;
    }
    loop_tell_steps(conn->loop); /* what comes in is answered as of now */
    offer_input(conn);
    if (!conn->met && conn->id % 2 && conn->state == CONN_OPEN) lane_ask(conn);
    conn->met = true;
    if (conn->state == CONN_OPEN) streams_ask(conn);
}

static void connected(struct conn *conn)
{
    struct parley_event event = {.type = PARLEY_EVENT_CONNECTED, .connected = {conn->id}};
    loop_tell(conn->loop, &event);
}

/* What the handshake itself has to say, little as it is. */
static void shake_hands(struct conn *conn)
{
    uint8_t *bytes;
    size_t size = tls_take(conn->tls, &bytes);
    uv_buf_t buffer = uv_buf_init((char *)bytes, (unsigned)size);
    bool sent = size == 0 || uv_try_write((uv_stream_t *)&conn->tcp, &buffer, 1) == (int)size;
    free(bytes);
    if (!sent) conn_end(conn, PARLEY_CLOSED_RESET, UV_EPROTO);
}

/* Whoever dials speaks first. */
static void greet(struct conn *conn)
{
    uint8_t none;
    (void)tls_read(conn->tls, &none, sizeof none);
    shake_hands(conn);
}

static void unseal(struct conn *conn, const void *bytes, size_t size)
{
    ssize_t got;
    if (!conn->answered) conn->foreign = !tls_may_begin(*(const uint8_t *)bytes);
    conn->answered = true;
    tls_feed(conn->tls, bytes, size);
    do {
        size_t room;
        uint8_t *place = place_of_next(conn, &room);
        got = tls_read(conn->tls, place, room);
        shake_hands(conn);
        if (!conn->proved && tls_is_up(conn->tls) && conn->state == CONN_OPEN) {
            conn->proved = true;
            if (conn->id % 2) connected(conn);
        }
        if (got > 0 && conn->state == CONN_OPEN && conn->stream)
            streams_join(conn, place, (size_t)got);
        else if (got > 0 && conn->state == CONN_OPEN)
            take(conn, (size_t)got, room);
    } while (got > 0 && conn->state == CONN_OPEN);
    if (got >= 0) return;
    if (!conn->proved) conn_warn_of_stranger(conn);
    bool barred = !conn->proved && !conn->foreign;
    conn_end(conn, barred ? PARLEY_CLOSED_KEY : PARLEY_CLOSED_RESET, UV_EPROTO);
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
    struct conn *conn = stream->data;
    if (size == UV_ENOBUFS && !conn->input) conn_end(conn, PARLEY_CLOSED_RESET, UV_ENOMEM);
    if (conn->state == CONN_ENDED || size == 0 || size == UV_ENOBUFS) return;
    if (size < 0) {
        bool barred = !conn->tls && tls_is_spoken(conn->input, conn->used);
        conn_end(conn,
                 barred           ? PARLEY_CLOSED_KEY
                 : size == UV_EOF ? PARLEY_CLOSED_EOF
                                  : PARLEY_CLOSED_RESET,
                 size == UV_EOF ? 0 : (int)size);
        return;
    }
    retransmit_heard(conn_fd(conn), &conn->retransmit);
    conn->loop->turn_read_bytes += (size_t)size;
    if (conn->state != CONN_OPEN) return; /* being shut: thrown away */
    if (conn->tls)
        unseal(conn, buffer->base, (size_t)size);
    else
        take(conn, (size_t)size, buffer->len);
    if (conn->waits && conn->state == CONN_OPEN) uv_read_stop(stream);
}

void conn_read_on(struct conn *conn)
{
    int code = uv_read_start((uv_stream_t *)&conn->tcp, on_alloc, on_read);
    if (code && code != UV_EALREADY) conn_end(conn, PARLEY_CLOSED_RESET, code);
}

void conn_resume(struct conn *conn)
{
    offer_input(conn);
    if (conn->state == CONN_OPEN && !conn->waits) conn_read_on(conn);
}

void conn_opened(struct conn *conn)
{
    conn->state = CONN_OPEN;
    uv_tcp_nodelay(&conn->tcp, 1);
    int bytes = CONN_NOTSENT_BYTES;
    (void)setsockopt(conn_fd(conn), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes);
    conn_adapt(conn);
    conn_read_on(conn);
    if (conn->state != CONN_OPEN || conn->id % 2 == 0) return;
    if (conn->tls)
        greet(conn);
    else
        connected(conn);
}
