/* lone.h: one node and a driver in miniature, for tests that play all of its peers by hand.
 *
 * Every update is checked against the contract of node.h. Operations are answered by the test, in
 * the order given or in any the contract allows; nothing is computed: vectors are finite, all
 * distances 1. What the node sent on a connection is kept as bytes until the test reads it.
 */
#ifndef PARLEY_TESTS_LONE_H
#define PARLEY_TESTS_LONE_H

#ifndef cr_assert /* or what a program without Criterion has for it */
#include <criterion/criterion.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/buffers.h"
#include "core/rng.h"
#include "core/state.h"
#include "core/wire/message.h"

enum { LONE_CONNS_MAX = 4096, LONE_OPS_MAX = 512, LONE_SENT_MAX = 1 << 20, LONE_TOKEN = 7000 };

/* CLOSED: the node has asked for it, or knows of it, and is owed the event. */
enum lone_conn_state { LONE_NONE, LONE_DIALED, LONE_OPEN, LONE_CLOSED, LONE_GONE };

struct lone_op {
    uint32_t op, conn;
    enum parley_update_type type;
    uint32_t buffer;
    bool whole; /* a chunk of a buffer of which nothing may change meanwhile */
};

struct lone {
    struct parley_node *node;
    struct parley_config config;
    struct parley_updates updates;
    uint64_t now_us, seed;
    uint64_t version;
    uint64_t steps_left;
    struct parley_pace pace;                    /* of the newest grant */
    double weight;                              /* of the newest grant */
    enum lone_conn_state conns[LONE_CONNS_MAX]; /* by id */
    size_t unsent[LONE_CONNS_MAX];              /* SENT is owed for these bytes */
    uint32_t highest, next_incoming;
    struct lone_op ops[LONE_OPS_MAX];
    uint32_t ops_count;
    uint8_t *sent; /* of the connection `listened` */
    size_t sent_size;
    uint32_t listened;
    uint32_t updates_most, dials, warnings;
    bool finite, finished;
    bool lacks; /* what needs a disk or memory can't be carried out */
    int error;
    char why[320], warned[320]; /* the newest line of an error, of a warning */
};

static inline struct lone *lone_new(const struct parley_config *changes)
{
    struct lone *lone = calloc(1, sizeof *lone);
    cr_assert_not_null(lone);
    lone->sent = malloc(LONE_SENT_MAX);
    lone->next_incoming = 2;
    lone->finite = true;
    lone->now_us = 1000;
    lone->config = *changes;
    cr_assert_eq(parley_updates_init(&lone->updates), 0);
    char why[120];
    cr_assert_eq(parley_config_check(changes, why, sizeof why), 0, "%s", why);
    cr_assert_eq(parley_node_new(&lone->node, changes), 0);
    return lone;
}

static inline void lone_free(struct lone *lone)
{
    parley_node_free(lone->node);
    parley_updates_close(&lone->updates);
    free(lone->sent);
    free(lone);
}

static inline struct parley_config lone_config(void)
{
    struct parley_config config;
    parley_config_defaults(&config);
    config.name = "self";
    config.address = "127.0.0.1:7000";
    config.boot = 1000;
    config.parameters = 300;
    return config;
}

static inline void lone_op(struct lone *lone, struct lone_op op)
{
    cr_assert(lone->ops_count < LONE_OPS_MAX);
    lone->ops[lone->ops_count++] = op;
}

/* What is on its way to a peer stays as it is until its DONE. */
static inline void lone_writes(const struct lone *lone, uint32_t buffer)
{
    for (uint32_t i = 0; i < lone->ops_count; i++)
        cr_assert(!lone->ops[i].whole || lone->ops[i].buffer != buffer,
                  "seed %llu: buffer %u changes while a chunk of it is sent",
                  (unsigned long long)lone->seed, buffer);
}

static inline void lone_vector(struct lone *lone, const struct parley_update *u)
{
    bool takes = u->type == PARLEY_UPDATE_TAKE, sets = u->type == PARLEY_UPDATE_SET;
    for (uint32_t v = 0; takes && v < u->vector.vectors; v++)
        lone_writes(lone, u->vector.buffers[v]);
    if (u->type == PARLEY_UPDATE_GRADIENT || u->type == PARLEY_UPDATE_ENCODE ||
        u->type == PARLEY_UPDATE_DIFF || u->type == PARLEY_UPDATE_COMBINE || u->vector.rest)
        lone_writes(lone, u->vector.buffer);
    uint32_t buffer = takes || sets ? u->vector.buffers[0] : u->vector.buffer;
    lone_op(lone, (struct lone_op){.op = u->vector.op, .type = u->type, .buffer = buffer});
}

static inline void lone_hear(struct lone *lone, uint32_t conn, const void *bytes, size_t size)
{
    if (conn != lone->listened || size > LONE_SENT_MAX - lone->sent_size) return;
    memcpy(lone->sent + lone->sent_size, bytes, size);
    lone->sent_size += size;
}

static inline void lone_carry_out(struct lone *lone, const struct parley_update *u)
{
    uint32_t buffers = parley_config_buffers(&lone->config);
    size_t vector_bytes = lone->config.averaged * lone->config.parameters * sizeof(float);
    switch (u->type) {
    case PARLEY_UPDATE_DIAL:
        cr_assert(u->dial.conn % 2 == 1 && u->dial.conn < LONE_CONNS_MAX);
        cr_assert_eq(lone->conns[u->dial.conn], LONE_NONE, "conn %u again", u->dial.conn);
        lone->conns[u->dial.conn] = LONE_DIALED;
        if (u->dial.conn > lone->highest) lone->highest = u->dial.conn;
        lone->dials++;
        break;
    case PARLEY_UPDATE_CLOSE:
        lone->conns[u->close.conn] = LONE_CLOSED;
        break;
    case PARLEY_UPDATE_SEND:
        cr_assert_eq(lone->conns[u->send.conn], LONE_OPEN,
                     "seed %llu: SEND on a connection not open", (unsigned long long)lone->seed);
        cr_assert(u->send.size >= WIRE_HEADER_BYTES);
        lone->unsent[u->send.conn] += u->send.size;
        lone_hear(lone, u->send.conn, u->send.bytes, u->send.size);
        break;
    case PARLEY_UPDATE_SEND_CHUNK:
        cr_assert_eq(lone->conns[u->chunk.conn], LONE_OPEN);
        cr_assert(u->chunk.buffer < buffers && u->chunk.size % 4 == 0 && u->chunk.size > 0 &&
                  u->chunk.offset + u->chunk.size <= vector_bytes);
        lone_op(lone, (struct lone_op){u->chunk.op, u->chunk.conn, u->type, u->chunk.buffer,
                                       .whole = !u->chunk.part});
        break;
    case PARLEY_UPDATE_STORE:
        lone_writes(lone, u->store.buffer);
        cr_assert(u->store.buffer < buffers && u->store.offset + u->store.size <= vector_bytes);
        break;
    case PARLEY_UPDATE_TRAIN:
        /* 0: for the weight alone. */
        cr_assert(u->train.steps > 0 || lone->config.strategy == PARLEY_STRATEGY_PUSH_SUM);
        cr_assert(u->train.weight > 0 && u->train.weight < 1e300);
        lone->steps_left += u->train.steps;
        lone->pace = u->train.pace;
        lone->weight = u->train.weight;
        break;
    case PARLEY_UPDATE_HALT:
        lone->steps_left = 0;
        break;
    case PARLEY_UPDATE_TAKE:
    case PARLEY_UPDATE_SET:
    case PARLEY_UPDATE_ADD:
    case PARLEY_UPDATE_MIX:
    case PARLEY_UPDATE_GRADIENT:
    case PARLEY_UPDATE_APPLY:
    case PARLEY_UPDATE_ENCODE:
    case PARLEY_UPDATE_DIFF:
    case PARLEY_UPDATE_COMBINE:
    case PARLEY_UPDATE_SKETCH:
    case PARLEY_UPDATE_HASH:
    case PARLEY_UPDATE_WRITE:
    case PARLEY_UPDATE_PUBLISH:
        cr_assert(u->vector.buffer < buffers);
        lone_vector(lone, u);
        break;
    case PARLEY_UPDATE_LOG:
        lone->warnings += u->log.level == PARLEY_LOG_WARN;
        if (u->log.level == PARLEY_LOG_WARN)
            snprintf(lone->warned, sizeof lone->warned, "%s", u->log.text);
        if (u->log.level == PARLEY_LOG_ERROR)
            snprintf(lone->why, sizeof lone->why, "%s", u->log.text);
        break;
    case PARLEY_UPDATE_FINISHED:
        lone->finished = true;
        lone->error = u->finished.error;
        break;
    default:
        break;
    }
}

/* One step; returns what was consumed. */
static inline size_t lone_step(struct lone *lone, struct parley_event event)
{
    event.now_us = lone->now_us;
    parley_node_step(lone->node, &event, &lone->updates);
    parley_node_check(lone->node);
    if (lone->updates.count > lone->updates_most) lone->updates_most = lone->updates.count;
    for (uint32_t i = 0; i < lone->updates.count; i++)
        lone_carry_out(lone, &lone->updates.list[i]);
    return lone->updates.consumed;
}

static inline void lone_start(struct lone *lone)
{
    lone_step(lone, (struct parley_event){.type = PARLEY_EVENT_START});
}

/* Ticks while the node wants one now; it may want many only while it has much to say. */
static inline void lone_tick(struct lone *lone)
{
    uint32_t ticks = 0;
    while (!lone->finished && parley_node_deadline(lone->node) <= lone->now_us) {
        cr_assert(++ticks < 200, "seed %llu: ticks without end", (unsigned long long)lone->seed);
        lone_step(lone, (struct parley_event){.type = PARLEY_EVENT_TICK});
    }
}

/* Time passes, deadline after deadline. */
static inline void lone_run(struct lone *lone, uint64_t us)
{
    uint64_t end_us = lone->now_us + us;
    for (;;) {
        lone_tick(lone);
        uint64_t at = lone->finished ? UINT64_MAX : parley_node_deadline(lone->node);
        if (at > end_us) break;
        lone->now_us = at;
    }
    lone->now_us = end_us;
}

/* So long that what others say of a member counts again, as it has not been heard itself since. */
static inline void lone_silence(struct lone *lone)
{
    lone->now_us += lone->config.probe_interval_us + 1;
}

static inline uint32_t lone_incoming(struct lone *lone, const char *address)
{
    uint32_t conn = lone->next_incoming;
    lone->next_incoming += 2;
    cr_assert(conn < LONE_CONNS_MAX);
    lone->conns[conn] = LONE_OPEN;
    if (conn > lone->highest) lone->highest = conn;
    lone_step(lone, (struct parley_event){.type = PARLEY_EVENT_INCOMING,
                                          .incoming = {conn, address, LONE_TOKEN + conn}});
    return conn;
}

static inline void lone_connected(struct lone *lone, uint32_t conn)
{
    lone->conns[conn] = LONE_OPEN;
    lone_step(lone,
              (struct parley_event){.type = PARLEY_EVENT_CONNECTED, .connected = {.conn = conn}});
}

/* Chunks whose connection is gone fail, and no other may be sent there. How many there were. */
static inline uint32_t lone_chunks_fail(struct lone *lone, uint32_t conn)
{
    uint32_t failed = 0;
    for (uint32_t i = 0; i < lone->ops_count;) {
        struct lone_op op = lone->ops[i];
        if (op.type != PARLEY_UPDATE_SEND_CHUNK || op.conn != conn) {
            i++;
            continue;
        }
        memmove(&lone->ops[i], &lone->ops[i + 1], (--lone->ops_count - i) * sizeof op);
        lone->conns[conn] = LONE_CLOSED;
        lone_step(lone, (struct parley_event){.type = PARLEY_EVENT_DONE, .done = {.op = op.op}});
        failed++;
        i = 0;
    }
    return failed;
}

/* Operations whose connection is gone end first, then CLOSED comes. */
static inline void lone_closed(struct lone *lone, uint32_t conn, enum parley_closed reason)
{
    lone_chunks_fail(lone, conn);
    lone->conns[conn] = LONE_GONE;
    lone_step(lone,
              (struct parley_event){.type = PARLEY_EVENT_CLOSED,
                                    .closed = {.conn = conn, .reason = reason, .text = "gone"}});
}

/* Gives all bytes, as a driver would; what is left at the end is too short to be a frame. */
static inline size_t lone_receive(struct lone *lone, uint32_t conn, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    size_t left = size;
    while (left > 0 && lone->conns[conn] == LONE_OPEN && !lone->finished) {
        size_t consumed = lone_step(
            lone, (struct parley_event){.type = PARLEY_EVENT_RECEIVED,
                                        .received = {.conn = conn, .bytes = at, .size = left}});
        cr_assert(consumed <= left);
        if (consumed == 0) break;
        at += consumed;
        left -= consumed;
    }
    cr_assert(left <= 64 * 1024 + 64, "seed %llu: %zu bytes neither taken nor refused",
              (unsigned long long)lone->seed, left);
    return left;
}

static inline void lone_say(struct lone *lone, uint32_t conn, enum wire_type type,
                            const void *message)
{
    uint8_t bytes[WIRE_HEADER_BYTES + PARLEY_CONTROL_BYTES_MAX];
    size_t size = message_encode(type, message, bytes, sizeof bytes);
    cr_assert(size > 0);
    lone_receive(lone, conn, bytes, size);
}

/* The trainer has come to lone->version, with so many samples. */
static inline void lone_stepped(struct lone *lone, uint64_t samples, double loss)
{
    lone_step(lone, (struct parley_event){
                        .type = PARLEY_EVENT_STEPPED,
                        .stepped = {.version = lone->version, .samples = samples, .loss = loss}});
}

static inline bool lone_may_fail(enum parley_update_type type)
{
    return type == PARLEY_UPDATE_HASH || type == PARLEY_UPDATE_WRITE ||
           type == PARLEY_UPDATE_PUBLISH;
}

/* The operation at that place ends, or a former one of the trainer, whose end in their order. */
static inline void lone_done(struct lone *lone, uint32_t index)
{
    if (buffers_at_boundary(lone->ops[index].type))
        for (uint32_t i = 0; i < index; i++)
            if (buffers_at_boundary(lone->ops[i].type)) index = i;
    struct lone_op op = lone->ops[index];
    memmove(&lone->ops[index], &lone->ops[index + 1], (--lone->ops_count - index) * sizeof op);
    double sketch[PARLEY_SKETCH_BUCKETS] = {1};
    uint8_t digest[PARLEY_DIGEST_BYTES] = {7};
    if (op.type == PARLEY_UPDATE_GRADIENT) {
        lone->version++;
        lone_stepped(lone, lone->version, 1);
    }
    lone_step(lone, (struct parley_event){.type = PARLEY_EVENT_DONE,
                                          .done = {.op = op.op,
                                                   .ok = !lone->lacks || !lone_may_fail(op.type),
                                                   .version = lone->version,
                                                   .finite = lone->finite,
                                                   .norm_sq = 1,
                                                   .own_norm_sq = 1,
                                                   .mass = 1,
                                                   .sketch = sketch,
                                                   .digest = digest}});
}

static inline void lone_done_all(struct lone *lone)
{
    for (int i = 0; i < 1000 && lone->ops_count > 0 && !lone->finished; i++)
        lone_done(lone, 0);
}

static inline struct message_hello lone_hello(const struct lone *lone, const char *name,
                                              uint64_t boot)
{
    struct message_hello hello = {.cluster = "parley",
                                  .run = lone->config.run,
                                  .boot = boot,
                                  .model = lone->config.model_digest,
                                  .parameters = lone->config.parameters,
                                  .vectors = lone->config.vectors,
                                  .averaged = lone->config.averaged,
                                  .robust = lone->config.robust,
                                  .strategy = lone->config.strategy};
    snprintf(hello.name, sizeof hello.name, "%s", name);
    snprintf(hello.address, sizeof hello.address, "127.0.0.1:%u", 7000 + (unsigned)boot % 1000);
    return hello;
}

/* A peer dials and says HELLO: a LIVE connection. */
static inline uint32_t lone_peer(struct lone *lone, const char *name, uint64_t boot)
{
    uint32_t conn = lone_incoming(lone, "127.0.0.1:50000");
    struct message_hello hello = lone_hello(lone, name, boot);
    lone_say(lone, conn, WIRE_HELLO, &hello);
    return conn;
}

/* The newest frame of a type that the node sent on `listened`; false if there is none. */
static inline bool lone_heard(struct lone *lone, enum wire_type type, void *message)
{
    bool found = false;
    for (size_t at = 0; at < lone->sent_size;) {
        struct wire_header header;
        cr_assert_eq(wire_header_read(lone->sent + at, &header), 0);
        if (header.type == type) {
            found = true;
            if (message)
                cr_assert_eq(message_decode(type, lone->sent + at + WIRE_HEADER_BYTES, header.size,
                                            message, lone->updates.unpacker),
                             0);
        }
        at += WIRE_HEADER_BYTES + header.size;
    }
    return found;
}

static inline void lone_listen(struct lone *lone, uint32_t conn)
{
    lone->listened = conn;
    lone->sent_size = 0;
}

#endif
