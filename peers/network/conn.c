/* conn.c: see conn.h. Dialling stands in dial.c, accepting in accept.c. */
#include "network/conn.h"

#include <assert.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "core/wire/wire.h"
#include "network/address.h"
#include "network/lane.h"
#include "network/streams.h"
#include "network/tls.h"

/* A write under way: a control frame (its bytes follow), a chunk (its head follows), or the head of
 * one whose floats are taken from where they are, or streamed (with their place). */
enum write_kind { WRITE_CONTROL, WRITE_CHUNK, WRITE_LANE, WRITE_STREAMS };
struct write {
    uv_write_t request;
    uint8_t *sealed; /* what goes out in place of the bytes; NULL: they do */
    enum write_kind kind;
    uint32_t op;
    bool ok;            /* of a chunk that has gone out, or could not */
    struct write *next; /* likewise, among those that the core hears of in the next turn */
    size_t size;
    uint8_t bytes[];
};

static struct conn **bucket_of(struct loop *loop, uint32_t id)
{
    return &loop->conns[(id / 2) % LOOP_BUCKETS];
}

static struct conn *conn_find(struct loop *loop, uint32_t id)
{
    struct conn *conn = *bucket_of(loop, id);
    while (conn && conn->id != id)
        conn = conn->next;
    return conn;
}

int conn_fd(const struct conn *conn)
{
    uv_os_fd_t fd;
    return uv_fileno((const uv_handle_t *)&conn->tcp, &fd) == 0 ? fd : -1;
}

int conn_peer(const struct conn *conn, char address[PARLEY_ADDRESS_SIZE])
{
    struct sockaddr_storage from = {0};
    int size = sizeof from;
    int code = uv_tcp_getpeername(&conn->tcp, (struct sockaddr *)&from, &size);
    if (!code) address_print(address, (struct sockaddr *)&from);
    return code;
}

struct conn *conn_from(struct loop *loop, const char *address)
{
    for (uint32_t b = 0; b < LOOP_BUCKETS; b++)
        for (struct conn *conn = loop->conns[b]; conn; conn = conn->next) {
            char text[PARLEY_ADDRESS_SIZE];
            if (conn->id % 2 || conn->state != CONN_OPEN || (conn->tls && !conn->proved) ||
                conn_peer(conn, text))
                continue;
            if (strcmp(text, address) == 0) return conn;
        }
    return NULL;
}

struct conn *conn_of_token(struct loop *loop, uint64_t token)
{
    for (uint32_t b = 0; token && b < LOOP_BUCKETS; b++)
        for (struct conn *conn = loop->conns[b]; conn; conn = conn->next)
            if (conn->token == token && conn->state == CONN_OPEN) return conn;
    return NULL;
}

struct conn *conn_new(struct loop *loop, uint32_t id)
{
    struct conn *conn = calloc(1, sizeof *conn);
    if (!conn) return NULL;
    if (loop->tls) conn->tls = tls_end_new(loop->tls, id % 2);
    if ((loop->tls && !conn->tls) || uv_tcp_init(&loop->uv, &conn->tcp)) {
        tls_end_free(conn->tls);
        free(conn);
        return NULL;
    }
    conn->loop = loop;
    conn->id = id;
    conn->try_until_us = UINT64_MAX;
    conn->tcp.data = conn;
    struct conn **bucket = bucket_of(loop, id);
    conn->next = *bucket;
    *bucket = conn;
    atomic_fetch_add(&loop->connections, 1);
    return conn;
}

static void forget(struct conn *conn)
{
    struct loop *loop = conn->loop;
    struct conn **at = bucket_of(loop, conn->id);
    while (*at != conn)
        at = &(*at)->next;
    *at = conn->next;
    atomic_fetch_sub(&loop->connections, 1);
    conn_tell_sent(loop);
    lane_end(conn);
    streams_end(conn);
    char text[200];
    conn_why_closed(conn, text, sizeof text);
    struct parley_event event = {.type = PARLEY_EVENT_CLOSED,
                                 .closed = {conn->id, conn->reason, text}};
    if (conn->tell_closed) loop_tell(loop, &event);
    if (conn->found) uv_freeaddrinfo(conn->found);
    tls_end_free(conn->tls);
    free(conn->input);
    free(conn);
}

static void on_closed(uv_handle_t *handle)
{
    forget(handle->data);
}

void conn_end(struct conn *conn, enum parley_closed reason, int code)
{
    if (conn->state == CONN_ENDED) return;
    if (conn->retrying) {
        conn->close_wanted = true;
        return;
    }
    if (conn->state == CONN_SHUT) {
        conn->loop->conns_shut--;
        reason = PARLEY_CLOSED_LOCAL; /* the core had asked for it */
        code = 0;
    }
    conn_give_lookup_up(conn);
    conn->state = CONN_ENDED;
    conn->reason = reason;
    conn->code = code;
    uv_close((uv_handle_t *)&conn->tcp, on_closed);
}

/* ---- Reading --------------------------------------------------------------------------------- */

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
    conn_end(conn, conn->proved ? PARLEY_CLOSED_RESET : PARLEY_CLOSED_KEY, UV_EPROTO);
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

static void read_on(struct conn *conn)
{
    int code = uv_read_start((uv_stream_t *)&conn->tcp, on_alloc, on_read);
    if (code && code != UV_EALREADY) conn_end(conn, PARLEY_CLOSED_RESET, code);
}

void conn_resume(struct conn *conn)
{
    offer_input(conn);
    if (conn->state == CONN_OPEN && !conn->waits) read_on(conn);
}

static size_t model_bytes(const struct conn *conn)
{
    return conn->loop->vectors->count * sizeof(float);
}

void conn_opened(struct conn *conn)
{
    conn->state = CONN_OPEN;
    uv_tcp_nodelay(&conn->tcp, 1);
    int bytes = CONN_NOTSENT_BYTES;
    (void)setsockopt(conn_fd(conn), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes);
    retransmit_adapt(conn_fd(conn), model_bytes(conn), &conn->retransmit);
    read_on(conn);
    if (conn->state != CONN_OPEN || conn->id % 2 == 0) return;
    if (conn->tls)
        greet(conn);
    else
        connected(conn);
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* Those kinds of control frames that are to stay few however many nodes there are. */
static void count_frame(struct loop *loop, const struct write *write)
{
    struct wire_header header;
    if (write->size < WIRE_HEADER_BYTES || wire_header_read(write->bytes, &header)) return;
    if (wire_is_membership(header.type))
        atomic_fetch_add_explicit(&loop->bytes_membership, write->size, memory_order_relaxed);
    if (header.type == WIRE_SKETCHES)
        atomic_fetch_add_explicit(&loop->bytes_sketches, write->size, memory_order_relaxed);
}

static void write_free(struct write *write)
{
    if (write) free(write->sealed);
    free(write);
}

static void on_written(uv_write_t *request, int status)
{
    struct write *write = (struct write *)request;
    struct conn *conn = request->handle->data;
    struct loop *loop = conn->loop;
    if (status == 0)
        atomic_fetch_add_explicit(&loop->bytes_sent, write->size, memory_order_relaxed);
    if (status == 0 && write->kind == WRITE_CONTROL) count_frame(loop, write);
    if (status == 0 && write->kind == WRITE_LANE)
        atomic_fetch_add_explicit(&loop->bytes_lane, write->size, memory_order_relaxed);
    if (status < 0 && status != UV_ECANCELED) conn_end(conn, PARLEY_CLOSED_RESET, status);
    if (write->kind == WRITE_CHUNK) {
        write->ok = status == 0;
        write->next = NULL;
        *loop->last_sent = write;
        loop->last_sent = &write->next;
        return;
    }
    struct parley_event event = {.type = PARLEY_EVENT_SENT, .sent = {conn->id, write->size}};
    bool tell = write->kind == WRITE_CONTROL && status == 0 && conn->state == CONN_OPEN;
    write_free(write);
    if (tell) loop_tell(loop, &event);
}

/* The bytes are the caller's until on_written(): 0 or a libuv error. */
static int put(struct conn *conn, struct write *write, const uv_buf_t *parts, unsigned count)
{
    uv_buf_t sealed;
    write->sealed = NULL;
    if (conn->tls) {
        for (unsigned i = 0; i < count; i++)
            if (!tls_write(conn->tls, parts[i].base, parts[i].len)) return UV_EPROTO;
        size_t size = tls_take(conn->tls, &write->sealed);
        if (size == 0) return UV_ENOMEM;
        sealed = uv_buf_init((char *)write->sealed, (unsigned)size);
        parts = &sealed;
        count = 1;
    }
    return uv_write(&write->request, (uv_stream_t *)&conn->tcp, parts, count, on_written);
}

/* Telling at once would send chunk upon chunk before anything is read: libuv's turn has room for
 * eight, and a model would lie in the kernel's memory, both ways, instead of in the cache. */
void conn_tell_sent(struct loop *loop)
{
    struct write *write = loop->sent;
    loop->sent = NULL;
    loop->last_sent = &loop->sent;
    while (write) {
        struct write *next = write->next;
        struct parley_event event = {.type = PARLEY_EVENT_DONE,
                                     .done = {.op = write->op, .ok = write->ok}};
        write_free(write);
        loop_tell(loop, &event);
        write = next;
    }
}

void conn_send(struct loop *loop, uint32_t id, const uint8_t *bytes, size_t size)
{
    struct conn *conn = conn_find(loop, id);
    if (!conn || conn->state != CONN_OPEN) return;
    conn->spoke = true;
    struct write *write = malloc(sizeof *write + size);
    int code = UV_ENOMEM;
    if (write) {
        write->kind = WRITE_CONTROL;
        write->size = size;
        memcpy(write->bytes, bytes, size);
        retransmit_sends(conn_fd(conn), &conn->retransmit);
        uv_buf_t buffer = uv_buf_init((char *)write->bytes, (unsigned)size);
        code = put(conn, write, &buffer, 1);
    }
    if (!code) return;
    write_free(write);
    conn_end(conn, PARLEY_CLOSED_RESET, code);
}

/* The head alone, with the place of its floats: 0 or a libuv error. */
static int send_head(struct conn *conn, struct write *write, size_t head_size, uint64_t place)
{
    wire_chunk_aside(write->bytes);
    wire_put(write->bytes + head_size, place, LANE_PLACE_BYTES);
    uv_buf_t buffer = uv_buf_init((char *)write->bytes, (unsigned)head_size + LANE_PLACE_BYTES);
    return put(conn, write, &buffer, 1);
}

static int send_lane(struct conn *conn, const struct parley_update *update, struct write *write,
                     const uint8_t *floats)
{
    size_t place = (size_t)(floats - (const uint8_t *)conn->loop->vectors->block);
    write->kind = WRITE_LANE;
    int code = send_head(conn, write, update->chunk.head_size, place);
    if (!code) lane_sent(conn, update->chunk.op);
    return code;
}

static int send_streams(struct conn *conn, const struct parley_update *update, struct write *write,
                        const uint8_t *floats)
{
    write->kind = WRITE_STREAMS;
    int code = send_head(conn, write, update->chunk.head_size, streams_place(conn));
    if (!code) streams_sent(conn, update->chunk.op, floats, update->chunk.size);
    return code;
}

static int send_whole(struct conn *conn, const struct parley_update *update, struct write *write,
                      const uint8_t *floats)
{
    retransmit_adapt(conn_fd(conn), model_bytes(conn), &conn->retransmit);
    retransmit_sends(conn_fd(conn), &conn->retransmit);
    conn->loop->turn_sent_bytes += update->chunk.size;
    uv_buf_t buffers[2] = {uv_buf_init((char *)write->bytes, (unsigned)update->chunk.head_size),
                           uv_buf_init((char *)(uintptr_t)floats, (unsigned)update->chunk.size)};
    return put(conn, write, buffers, 2);
}

void conn_send_chunk(struct loop *loop, const struct parley_update *update)
{
    struct conn *conn = conn_find(loop, update->chunk.conn);
    struct write *write = NULL;
    if (conn && conn->state == CONN_OPEN)
        write = malloc(sizeof *write + update->chunk.head_size + LANE_PLACE_BYTES);
    int code = UV_ENOMEM;
    if (write) {
        uint8_t *floats = (uint8_t *)vectors_buffer(loop->vectors, update->chunk.buffer);
        floats += update->chunk.offset;
        vectors_seal(loop->vectors, update);
        write->kind = WRITE_CHUNK;
        write->op = update->chunk.op;
        write->size = update->chunk.head_size + update->chunk.size;
        memcpy(write->bytes, update->chunk.head, update->chunk.head_size);
        code = lane_sends(conn)     ? send_lane(conn, update, write, floats)
               : streams_send(conn) ? send_streams(conn, update, write, floats)
                                    : send_whole(conn, update, write, floats);
    }
    if (!code) return;
    write_free(write);
    if (conn) conn_end(conn, PARLEY_CLOSED_RESET, code);
    struct parley_event event = {.type = PARLEY_EVENT_DONE, .done = {.op = update->chunk.op}};
    loop_tell_later(loop, &event);
}

/* ---- Closing --------------------------------------------------------------------------------- */

static void on_shut(uv_shutdown_t *request, int status)
{
    struct conn *conn = request->handle->data;
    conn->flushed = status == 0;
    if (status < 0) conn_end(conn, PARLEY_CLOSED_LOCAL, 0); /* else the peer's FIN ends it */
}

static void shut(struct conn *conn)
{
    if (conn->state == CONN_SHUT) return;
    if (conn->state != CONN_OPEN || !conn->spoke) { /* no frame of ours to be lost */
        conn_end(conn, PARLEY_CLOSED_LOCAL, 0);
        return;
    }
    if (uv_shutdown(&conn->shutdown, (uv_stream_t *)&conn->tcp, on_shut)) {
        conn_end(conn, PARLEY_CLOSED_LOCAL, 0);
        return;
    }
    conn->state = CONN_SHUT;
    conn->linger_until_us = loop_now_us() + CONN_LINGER_MS * 1000;
    conn->loop->conns_shut++;
    if (conn->waits) read_on(conn); /* for the peer's FIN; from on_read() it has not stopped yet */
}

void conn_close(struct loop *loop, uint32_t id, bool at_once)
{
    struct conn *conn = conn_find(loop, id);
    if (conn && at_once)
        conn_end(conn, PARLEY_CLOSED_LOCAL, 0);
    else if (conn)
        shut(conn);
}

/* The peer's machine has all that was sent, but for a FIN perhaps: that the kernel sees to alone.
 */
static bool has_arrived(const struct conn *conn)
{
    int left;
    return conn->flushed && ioctl(conn_fd(conn), SIOCOUTQ, &left) == 0 && left <= 1;
}

void conn_sweep(struct loop *loop, uint64_t now_us)
{
    for (uint32_t b = 0; loop->conns_shut > 0 && b < LOOP_BUCKETS; b++)
        for (struct conn *conn = loop->conns[b]; conn; conn = conn->next)
            if (conn->state == CONN_SHUT && (now_us >= conn->linger_until_us || has_arrived(conn)))
                conn_end(conn, PARLEY_CLOSED_LOCAL, 0);
}

void conn_close_all(struct loop *loop, bool flush)
{
    for (uint32_t b = 0; b < LOOP_BUCKETS; b++)
        for (struct conn *conn = loop->conns[b]; conn; conn = conn->next) {
            if (flush)
                shut(conn);
            else
                conn_end(conn, PARLEY_CLOSED_LOCAL, 0);
        }
}
