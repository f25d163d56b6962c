/* flow.c: floats on their way, in chunks between control frames.
 *
 * Out: at most two chunks of a connection are in the driver's hands, each of a size that leaves in
 * 25 to 100 ms, so that a probe is never stuck behind a model. In: chunks must follow each other
 * exactly; each carries a checksum. Floats that nobody waits for any more are read and dropped.
 */
#include "core/transfer/flow.h"

#include <assert.h>
#include <string.h>

#include "core/exchange/exchange.h"
#include "core/exchange/slot.h"
#include "core/link/connection.h"
#include "core/out.h"
#include "core/plant.h"
#include "core/state.h"
#include "core/transfer/fetch.h"
#include "core/wire/sum.h"

enum {
    CHUNKS_IN_FLIGHT_MAX = 2,
    CHUNK_BYTES_MIN = 4 * 1024,
    CHUNK_FAST_US = 25000,
    CHUNK_SLOW_US = 100000,
    STALL_TIMES = 6
};

/* ---- Out ------------------------------------------------------------------------------------- */

static int free_place(const struct parley_node *node)
{
    for (uint32_t i = 0; i < node->outflows_count; i++)
        if (!node->outflows[i].active) return (int)i;
    return NONE;
}

int flow_send(struct parley_node *node, uint32_t conn, enum wire_stream kind, uint32_t sequence,
              const uint32_t *buffers, uint32_t vectors, int slot)
{
    int place = free_place(node);
    if (place == NONE) return NONE;
    struct outflow *out = &node->outflows[place];
    node->outflows_active++;
    *out = (struct outflow){.active = true,
                            .conn = conn,
                            .kind = kind,
                            .sequence = sequence,
                            .vectors = vectors,
                            .end = vector_bytes(node),
                            .slot = slot};
    memcpy(out->buffers, buffers, vectors * sizeof *buffers);
    return place;
}

bool flow_is_sent(const struct parley_node *node, uint32_t buffer)
{
    for (uint32_t i = 0; i < node->outflows_count; i++) {
        const struct outflow *out = &node->outflows[i];
        for (uint32_t v = 0; out->active && v < out->vectors; v++)
            if (out->buffers[v] == buffer) return true;
    }
    return false;
}

static void ended(struct parley_node *node, struct outflow *out)
{
    out->active = false;
    node->outflows_active--;
    bool ok = !out->aborted && out->vector == out->vectors;
    if (out->slot == FLOW_STRATEGY)
        node->strategy->sent(node, out->number, ok);
    else if (out->slot != NONE)
        exchange_sent(node, out->slot, ok);
    else
        fetch_served(node, out->buffers[0] == node->exchange.slots[RESPONDER].own);
}

void flow_abort(struct parley_node *node, int outflow)
{
    struct outflow *out = &node->outflows[outflow];
    if (!out->active || out->aborted) return;
    out->aborted = true;
    if (out->in_flight == 0) ended(node, out);
}

static void moved(struct parley_node *node, struct outflow *out)
{
    out->moved_us = node->now_us;
    if (out->slot >= 0 && out->slot < ROLES) exchange_progress(node, out->slot);
    if (out->kind == WIRE_STREAM_FETCH) node->fetch.served_us = node->now_us;
}

void flow_moves(struct parley_node *node, const struct conn *conn)
{
    /* What is all with the kernel may still be long on its way: a fetch, maybe. */
    if (!flow_uses(node, conn->id)) node->fetch.served_us = node->now_us;
    for (uint32_t i = 0; node->outflows_active > 0 && i < node->outflows_count; i++)
        if (node->outflows[i].active && node->outflows[i].conn == conn->id)
            moved(node, &node->outflows[i]);
}

void flow_chunk_done(struct parley_node *node, int outflow, bool ok)
{
    struct outflow *out = &node->outflows[outflow];
    assert(out->active && out->in_flight > 0);
    out->in_flight--;
    struct conn *conn = connection_find(node, out->conn);
    if (ok && conn) {
        uint64_t took_us = node->now_us - out->chunk_us;
        if (took_us < CHUNK_FAST_US && conn->chunk_bytes < PARLEY_CHUNK_BYTES_MAX)
            conn->chunk_bytes *= 2;
        if (took_us > CHUNK_SLOW_US && conn->chunk_bytes > CHUNK_BYTES_MIN) conn->chunk_bytes /= 2;
        out->chunk_us = node->now_us; /* the next had to wait for this one */
        moved(node, out);
    }
    if (!ok) out->aborted = true;
    /* Before anything more is sent there. */
    if (!ok && conn && !PLANTED(SEND_ON)) connection_close(node, conn);
    if (out->in_flight == 0 && (out->aborted || out->vector == out->vectors)) ended(node, out);
}

static void give_chunk(struct parley_node *node, int index, struct conn *conn)
{
    struct outflow *out = &node->outflows[index];
    /* None reaches over a multiple of the largest size: of whole ones a driver may know the sum. */
    uint64_t left = PARLEY_CHUNK_BYTES_MAX - out->offset % PARLEY_CHUNK_BYTES_MAX;
    if (left > out->end - out->offset) left = out->end - out->offset;
    uint32_t size = left < conn->chunk_bytes ? (uint32_t)left : conn->chunk_bytes;
    struct wire_chunk chunk = {.kind = (uint16_t)out->kind,
                               .vector = (uint16_t)(out->part + out->vector),
                               .sequence = out->sequence,
                               .offset = out->offset};
    struct parley_update *update = out_add(node, PARLEY_UPDATE_SEND_CHUNK);
    update->chunk.head = out_bytes(node, WIRE_CHUNK_HEAD_BYTES);
    update->chunk.head_size = WIRE_CHUNK_HEAD_BYTES;
    wire_chunk_write(update->chunk.head, &chunk, size);
    update->chunk.op = out_op(node, OP_CHUNK, index);
    update->chunk.conn = out->conn;
    update->chunk.buffer = out->buffers[out->vector];
    update->chunk.offset = out->offset;
    update->chunk.size = size;
    update->chunk.part = out->slot == FLOW_STRATEGY;
    conn->used_us = out->chunk_us = out->moved_us = node->now_us;
    out->in_flight++;
    out->offset += size;
    if (out->offset == out->end) {
        out->offset = out->from;
        out->vector++;
    }
}

void flow_pump(struct parley_node *node)
{
    for (uint32_t i = 0, left = node->outflows_active; left > 0; i++) {
        struct outflow *out = &node->outflows[i];
        left -= out->active;
        if (!out->active || out->aborted) continue;
        struct conn *conn = connection_find(node, out->conn);
        if (!conn || conn->state != CONN_LIVE) continue;
        while (out->in_flight < CHUNKS_IN_FLIGHT_MAX && out->vector < out->vectors &&
               out_room(node))
            give_chunk(node, (int)i, conn);
    }
}

/* A line that has become slow still takes a large chunk; but who fetches a model asks another by
 * then. */
static uint64_t stalls_us(const struct parley_node *node, const struct outflow *out)
{
    bool waits = out->active && out->in_flight > 0, fetched = out->slot == NONE && !out->aborted;
    uint64_t times = fetched ? 1 : STALL_TIMES;
    return waits ? out->moved_us + times * node->config.progress_timeout_us : NEVER;
}

void flow_timers(struct parley_node *node)
{
    for (uint32_t i = 0; node->outflows_active > 0 && i < node->outflows_count; i++)
        if (node->now_us >= stalls_us(node, &node->outflows[i]) && out_room(node)) {
            node->outflows[i].moved_us = node->now_us; /* it may take a while to be given back */
            connection_stalled(node, node->outflows[i].conn);
        }
}

uint64_t flow_deadline(const struct parley_node *node)
{
    uint64_t at = NEVER;
    for (uint32_t i = 0, left = node->outflows_active; left > 0; i++) {
        left -= node->outflows[i].active;
        at = earlier(at, stalls_us(node, &node->outflows[i]));
    }
    return at;
}

/* ---- In -------------------------------------------------------------------------------------- */

struct inflow *flow_in(struct parley_node *node, uint32_t i)
{
    if (i < ROLES) return &node->exchange.slots[i].in;
    if (i == ROLES) return &node->fetch.in;
    i -= ROLES + 1;
    return node->inflows && i < node->strategy->inflows ? &node->inflows[i] : NULL;
}

void flow_expect(struct parley_node *node, struct inflow *in, uint32_t conn, enum wire_stream kind,
                 uint32_t sequence, const uint32_t *buffers, uint32_t vectors)
{
    in->active = true;
    in->conn = conn;
    in->kind = kind;
    in->sequence = sequence;
    in->part = 0;
    in->vectors = vectors;
    in->vector = 0;
    in->from = in->offset = 0;
    in->end = vector_bytes(node);
    memcpy(in->buffers, buffers, vectors * sizeof *buffers);
}

void flow_forget(struct parley_node *node, struct inflow *in)
{
    if (!in->active) return;
    in->active = false;
    struct conn *conn = connection_find(node, in->conn);
    if (conn && conn->into == in) conn->into = NULL;
}

static struct inflow *wanted(struct parley_node *node, uint32_t conn,
                             const struct wire_chunk *chunk)
{
    struct inflow *in;
    for (uint32_t i = 0; (in = flow_in(node, i)); i++) {
        bool named = in->kind == (enum wire_stream)chunk->kind && in->sequence == chunk->sequence;
        bool part = chunk->kind != WIRE_STREAM_STRATEGY || in->part == chunk->vector;
        if (in->active && in->conn == conn && named && part) return in;
    }
    return NULL;
}

void flow_chunk_begin(struct parley_node *node, struct conn *conn, const uint8_t *bytes,
                      uint32_t size, int *error)
{
    struct wire_chunk chunk;
    wire_chunk_read(bytes, &chunk);
    struct inflow *in = wanted(node, conn->id, &chunk);
    conn->chunk_left = size;
    conn->chunk_sum = chunk.sum;
    conn->chunk_aside = chunk.aside;
    conn->chunk_us = node->now_us;
    conn->into = in;
    conn->used_us = node->now_us;
    if (!in) return;
    if (chunk.vector != in->part + in->vector || chunk.offset != in->offset ||
        size > in->end - in->offset)
        *error = PARLEY_EMALFORMED;
    else if (node->config.chunk_sums)
        XXH3_64bits_reset(in->sum);
}

static void complete(struct parley_node *node, struct inflow *in)
{
    in->active = false;
    if (in->slot == NONE)
        fetch_received(node);
    else if (in->slot == FLOW_STRATEGY)
        node->strategy->received(node, (int)(in - node->inflows));
    else
        exchange_received(node, in->slot);
}

size_t flow_chunk_bytes(struct parley_node *node, struct conn *conn, const uint8_t *bytes,
                        size_t size, int *error)
{
    struct inflow *in = conn->into;
    size_t take = size < conn->chunk_left ? size : conn->chunk_left;
    conn->chunk_left -= (uint32_t)take;
    if (!in) return take;

    struct parley_update *update = out_add(node, PARLEY_UPDATE_STORE);
    update->store.buffer = in->buffers[in->vector];
    update->store.offset = in->offset;
    update->store.bytes = bytes;
    update->store.size = take;
    if (node->config.chunk_sums) XXH3_64bits_update(in->sum, bytes, take);
    in->offset += take;
    if (in->slot == NONE) {
        fetch_progress(node);
    } else if (in->slot == FLOW_STRATEGY) {
        node->strategy->progress(node, (int)(in - node->inflows));
    } else {
        exchange_progress(node, in->slot);
        exchange_store(node, in->slot, update);
    }
    if (conn->chunk_left > 0) return take;

    conn->into = NULL;
    if (node->config.chunk_sums && XXH3_64bits_digest(in->sum) != conn->chunk_sum) {
        *error = PARLEY_EMALFORMED; /* TCP let a flipped bit through, or the peer is broken */
        return take;
    }
    if (in->offset == in->end) {
        in->offset = in->from;
        if (++in->vector == in->vectors) complete(node, in);
    }
    return take;
}

size_t parley_node_awaits(struct parley_node *node, uint32_t id, uint32_t *buffer, uint64_t *offset)
{
    const struct conn *conn = node->finished ? NULL : connection_find(node, id);
    if (!conn || conn->state == CONN_CLOSING || !conn->into) return 0;
    *buffer = conn->into->buffers[conn->into->vector];
    *offset = conn->into->offset;
    return conn->chunk_left;
}

size_t parley_node_awaits_aside(struct parley_node *node, uint32_t id)
{
    const struct conn *conn = node->finished ? NULL : connection_find(node, id);
    if (!conn || conn->state == CONN_CLOSING || !conn->chunk_aside) return 0;
    return conn->chunk_left;
}

bool flow_uses(const struct parley_node *node, uint32_t conn)
{
    for (uint32_t i = 0; i < node->outflows_count; i++)
        if (node->outflows[i].active && node->outflows[i].conn == conn) return true;
    return false;
}

/* ---- The end of a connection ----------------------------------------------------------------- */

void flow_closed(struct parley_node *node, uint32_t conn)
{
    for (uint32_t i = 0; i < node->outflows_count; i++)
        if (node->outflows[i].conn == conn) flow_abort(node, (int)i);
}
