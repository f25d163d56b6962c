/* send.c: what goes out over a connection, as conn.h has it: control frames, and chunks of floats.
 */
#include "network/conn.h"

#include <stdlib.h>
#include <string.h>

#include "core/wire/wire.h"
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
    conn_adapt(conn);
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
        code = lane_sends(conn)      ? send_lane(conn, update, write, floats)
               : streams_sends(conn) ? send_streams(conn, update, write, floats)
                                     : send_whole(conn, update, write, floats);
    }
    if (!code) return;
    write_free(write);
    if (conn) conn_end(conn, PARLEY_CLOSED_RESET, code);
    struct parley_event event = {.type = PARLEY_EVENT_DONE, .done = {.op = update->chunk.op}};
    loop_tell_later(loop, &event);
}
