/* life.h: a node's life among peers that say anything: bytes, frames and events in every order.
 *
 * What happens next is drawn by life_below(), which the includer has: from a generator
 * (unit/node_fuzz.c) or from a fuzzer's bytes (fuzz/step.c). Whatever comes, no assert breaks,
 * every byte is taken or its connection closed, one step's updates stay within their bound, and
 * time goes on.
 */
#ifndef PARLEY_TESTS_LIFE_H
#define PARLEY_TESTS_LIFE_H

#include "../unit/lone.h"

/* In [0, bound); bound is at least 1. */
static uint32_t life_below(uint32_t bound);

static bool one_in(uint32_t n)
{
    return life_below(n) == 0;
}

/* ---- Frames that pass the decoder --------------------------------------------------------------
 */

static uint64_t any_boot(void)
{
    static const uint64_t strange[] = {0, 1000, UINT64_MAX, 77};
    return one_in(12) ? strange[life_below(4)] : 2000 + life_below(6);
}

static uint32_t any_number(void)
{
    static const uint32_t strange[] = {UINT32_MAX, UINT32_MAX / 2, 1u << 31, 100};
    return one_in(12) ? strange[life_below(4)] : life_below(6);
}

static double any_double(void)
{
    static const double strange[] = {0.0 / 0.0, 1e308, -1, 1e-320};
    return one_in(12) ? strange[life_below(4)] : life_below(100) * 1e-6;
}

static void any_digest(uint8_t *digest)
{
    memset(digest, 0, PARLEY_DIGEST_BYTES);
    digest[0] = (uint8_t[]){0, 7, 9}[life_below(3)];
}

/* A sequence that means something to the node, mostly. */
static uint32_t any_sequence(const struct lone *lone)
{
    const struct parley_node *node = lone->node;
    switch (life_below(5)) {
    case 0:
        return node->exchange.slots[INITIATOR].sequence;
    case 1:
        return node->exchange.slots[RESPONDER].sequence;
    case 2:
        return node->fetch.sequence;
    case 3:
        return node->exchange.doubts[0].sequence;
    default:
        return any_number();
    }
}

static uint32_t lone_phase; /* the node's own: most of the others are as far */

static void any_record(struct record *r)
{
    memset(r, 0, sizeof *r);
    r->boot = one_in(9) ? 100000 + life_below(500) : any_boot();
    snprintf(r->name, sizeof r->name, "p%llu", (unsigned long long)r->boot % 100000);
    snprintf(r->address, sizeof r->address, "10.0.0.%u:7000", (unsigned)r->boot % 200);
    r->incarnation = any_number();
    r->state = one_in(4) ? life_below(5) : 0;
    r->clock = any_number();
    r->phase = one_in(3) ? life_below(11) : lone_phase;
    r->stop = one_in(4) ? life_below(6) : 0;
    r->stop_live = any_number();
    r->version = one_in(9) ? UINT64_MAX : life_below(200);
    r->samples = life_below(200);
    r->sketch = any_number();
    r->measured = any_number();
    r->distance_sq = any_double();
    r->mean_sq = any_double();
    r->near = one_in(2);
    r->aside = one_in(8);
    r->generation = any_number();
    r->score = any_double();
    any_digest(r->digest);
    r->lock_voters = any_number();
    r->lock_generation = any_number();
    any_digest(r->lock_digest);
    r->voters = any_number();
}

static void any_members(struct message_members *m)
{
    m->count = one_in(10) ? MESSAGE_RECORDS_MAX : life_below(4);
    for (uint32_t i = 0; i < m->count; i++)
        any_record(&m->records[i]);
    m->complete = life_below(2);
}

static void any_sketches(struct message_sketches *m)
{
    static uint8_t buckets[2000];
    struct rng noise = rng_init(life_below(1000), 0);
    for (size_t i = 0; i < sizeof buckets; i++)
        buckets[i] = (uint8_t)(rng_below(&noise, 2) ? 0 : rng_below(&noise, 256));
    m->count = life_below(3);
    for (uint32_t i = 0; i < m->count; i++)
        m->sketches[i] = (struct message_sketch){
            any_boot(),
            any_number(),
            {buckets, one_in(9) ? life_below(sizeof buckets) : MESSAGE_BUCKETS * 4}};
    m->lacks_count = life_below(3);
    for (uint32_t i = 0; i < m->lacks_count; i++)
        m->lacks[i].boot = any_boot();
}

static size_t any_frame(struct lone *lone, enum wire_type type, uint8_t *bytes, size_t capacity)
{
    static union message m;
    lone_phase = record_of(lone->node, 0)->phase;
    memset(&m, 0, sizeof m);
    switch (type) {
    case WIRE_HELLO: {
        uint64_t boot = any_boot();
        char name[32];
        snprintf(name, sizeof name, "p%llu", (unsigned long long)boot % 100000);
        m.hello = lone_hello(lone, one_in(20) ? "self" : one_in(20) ? "p2001" : name, boot);
        if (one_in(20)) m.hello.parameters = any_number();
        break;
    }
    case WIRE_REJECT:
        m.reject.code = any_number();
        break;
    case WIRE_BYE:
        m.bye.reason = any_number();
        break;
    case WIRE_PING:
    case WIRE_ACK:
    case WIRE_PING_FOR:
        m.probe = (struct message_probe){any_number(), any_boot()};
        break;
    case WIRE_MEMBERS:
        any_members(&m.members);
        break;
    case WIRE_SKETCHES:
        any_sketches(&m.sketches);
        break;
    case WIRE_ASK:
    case WIRE_OUTCOME:
        m.outcome = (struct message_outcome_frame){any_boot(), one_in(2) ? 1000 : any_boot(),
                                                   any_sequence(lone), any_number()};
        break;
    case WIRE_FETCH:
    case WIRE_FETCHED:
        m.fetch = (struct message_fetch){.sequence = any_sequence(lone),
                                         .by_digest = life_below(2),
                                         .ok = life_below(2),
                                         .vectors = life_below(3),
                                         .version = any_number(),
                                         .trained_us = any_number()};
        any_digest(m.fetch.digest);
        break;
    case WIRE_STRATEGY:
        m.strategy = (struct message_strategy){.what = life_below(8),
                                               .tag = life_below(4),
                                               .part = life_below(4),
                                               .count = life_below(4),
                                               .round = life_below(3),
                                               .key = any_number(),
                                               .stamp = any_number(),
                                               .value = any_number()};
        break;
    case WIRE_STATUS:
        m.status.from = any_number();
        break;
    case WIRE_REPORT:
        m.report.live = any_number();
        break;
    default:
        m.exchange = (struct message_exchange){
            .sequence = any_sequence(lone),
            .from_responder = life_below(2),
            .open = life_below(2),
            .settles = life_below(3),
            .round = one_in(3) ? any_number() : life_below(4),
            .line = one_in(3) ? any_number() : (uint32_t)lone->node->exchange.pairing.among,
            .coded = life_below(2),
            .share = one_in(3) ? (double)any_number() : 1.0 / (2 << life_below(2)),
            .samples = (double)any_number(),
            .weight = (double)life_below(2),
            .radius = (double)any_number(),
            .reason = any_number()};
    }
    return message_encode(type, &m, bytes, capacity);
}

static size_t any_chunk(struct lone *lone, uint8_t *bytes)
{
    const struct parley_node *node = lone->node;
    static float floats[PARLEY_CHUNK_BYTES_MAX / 4];
    uint32_t size = one_in(3) ? 4 * (1 + life_below(400)) : (uint32_t)lone->config.parameters * 4;
    struct wire_chunk chunk = {.kind = (uint16_t)life_below(4), .sequence = any_sequence(lone)};
    if (chunk.kind == WIRE_STREAM_OFFER)
        chunk.sequence = node->exchange.slots[RESPONDER].sequence;
    else if (chunk.kind == WIRE_STREAM_ACCEPT)
        chunk.sequence = node->exchange.slots[INITIATOR].sequence;
    if (one_in(10)) chunk.offset = any_number();
    if (one_in(10)) chunk.vector = (uint16_t)life_below(3);
    wire_chunk_write(bytes, &chunk, size);
    memcpy(bytes + WIRE_CHUNK_HEAD_BYTES, floats, size);
    wire_chunk_seal(bytes, floats, one_in(20) ? size / 2 : size);
    return WIRE_CHUNK_HEAD_BYTES + size;
}

/* ---- Events ------------------------------------------------------------------------------------
 */

/* A connection in that state; 0 if there is none. */
static uint32_t any_conn(const struct lone *lone, enum lone_conn_state state)
{
    uint32_t found = 0, seen = 0;
    for (uint32_t id = 1; id <= lone->highest; id++)
        if (lone->conns[id] == state && life_below(++seen) == 0) found = id;
    return found;
}

static uint8_t buffer[WIRE_CHUNK_HEAD_BYTES + PARLEY_CHUNK_BYTES_MAX];

static void say_anything(struct lone *lone)
{
    uint32_t conn = any_conn(lone, LONE_OPEN);
    if (!conn) return;
    size_t size;
    if (one_in(12)) {
        size = 1 + life_below(300);
        for (size_t i = 0; i < size; i++)
            buffer[i] = (uint8_t)life_below(256);
        if (one_in(2))
            wire_header_write(buffer, (enum wire_type)life_below(WIRE_TYPES), life_below(300));
    } else if (one_in(4)) {
        size = any_chunk(lone, buffer);
    } else {
        enum wire_type type = (enum wire_type)(1 + life_below(WIRE_TYPES - 2));
        if (one_in(2)) type = WIRE_OFFER + life_below(WIRE_FETCHED - WIRE_OFFER + 1);
        if ((type == WIRE_BYE || type == WIRE_REJECT || type == WIRE_REPORT) && !one_in(10))
            type = WIRE_MEMBERS;
        struct conn *c = connection_find(lone->node, conn);
        if (c && c->state == CONN_LIVE && type == WIRE_HELLO && !one_in(10)) type = WIRE_OFFER;
        if (c && c->state == CONN_PENDING && !one_in(10)) type = WIRE_HELLO;
        size = any_frame(lone, type, buffer, sizeof buffer);
        if (one_in(40)) size = life_below((uint32_t)size + 1);
        if (one_in(40)) buffer[life_below((uint32_t)size + 1)] ^= (uint8_t)(1 << life_below(8));
    }
    /* A driver keeps what was not taken; here the peer is cut off in the middle of a frame. */
    if (lone_receive(lone, conn, buffer, size) > 0 && lone->conns[conn] == LONE_OPEN)
        lone_closed(lone, conn, PARLEY_CLOSED_RESET);
}

/* What a good peer would say next in an exchange that is under way, or to begin one. */
static void say_what_fits(struct lone *lone)
{
    enum role role = one_in(2) ? INITIATOR : RESPONDER;
    const struct slot *slot = &lone->node->exchange.slots[role];
    struct message_exchange m = {.sequence = slot->sequence, .share = SHARE_ALONE};
    uint32_t conn = slot->conn;
    enum wire_type type = WIRE_TYPES;
    if (role == RESPONDER && slot->state == SLOT_IDLE) {
        conn = any_conn(lone, LONE_OPEN);
        m.sequence = slot->sequence + 1;
        type = WIRE_OFFER;
    } else if (role == INITIATOR && slot->state == SLOT_OFFERED) {
        type = WIRE_ACCEPT;
    } else if (slot->state == SLOT_READY) {
        type = role == INITIATOR ? WIRE_READY : WIRE_COMMIT;
    }
    struct conn *c = connection_find(lone->node, conn);
    if (type != WIRE_TYPES && c && c->state == CONN_LIVE) lone_say(lone, conn, type, &m);
}

/* The next chunk of a stream that the node waits for, most often all that is left of it. */
static void say_what_is_awaited(struct lone *lone)
{
    static const float floats[PARLEY_CHUNK_BYTES_MAX / 4];
    struct parley_node *node = lone->node;
    uint32_t flows = 3 + node->strategy->inflows, at = life_below(flows);
    struct inflow *first[] = {&node->exchange.slots[INITIATOR].in,
                              &node->exchange.slots[RESPONDER].in, &node->fetch.in};
    for (uint32_t i = 0; i < flows; i++, at = (at + 1) % flows) {
        const struct inflow *in = at < 3 ? first[at] : &node->inflows[at - 3];
        struct conn *c = connection_find(node, in->conn);
        if (!in->active || !c || c->state != CONN_LIVE || c->chunk_left > 0 ||
            lone->conns[c->id] != LONE_OPEN)
            continue;
        uint64_t left = in->end - in->offset;
        uint32_t size = (uint32_t)(one_in(4) ? 4 * (1 + life_below((uint32_t)left / 4)) : left);
        struct wire_chunk chunk = {.kind = (uint16_t)in->kind,
                                   .vector = (uint16_t)(in->part + in->vector),
                                   .sequence = in->sequence,
                                   .offset = in->offset};
        wire_chunk_write(buffer, &chunk, size);
        memcpy(buffer + WIRE_CHUNK_HEAD_BYTES, floats, size);
        wire_chunk_seal(buffer, floats, size);
        lone_receive(lone, c->id, buffer, WIRE_CHUNK_HEAD_BYTES + size);
        return;
    }
}

/* Many frames at once, as after a pause: what one step may say of them is bounded. */
static void say_much(struct lone *lone)
{
    static uint8_t many[64 * 1024];
    uint32_t conn = any_conn(lone, LONE_OPEN);
    if (!conn || connection_find(lone->node, conn)->state != CONN_LIVE) return;
    size_t size = 0, more;
    enum wire_type type =
        one_in(2) ? WIRE_MEMBERS : WIRE_OFFER + life_below(WIRE_STATUS - WIRE_OFFER);
    while (sizeof many - size > 16 * 1024 &&
           (more = any_frame(lone, type, many + size, sizeof many - size)) > 0)
        size += more;
    lone_receive(lone, conn, many, size);
}

static void connect_anything(struct lone *lone)
{
    uint32_t dialed = any_conn(lone, LONE_DIALED), closed = any_conn(lone, LONE_CLOSED);
    if (closed) lone_closed(lone, closed, PARLEY_CLOSED_LOCAL);
    if (lone->finished) return;
    if (dialed && one_in(2)) {
        if (one_in(3))
            lone_closed(lone, dialed, one_in(2) ? PARLEY_CLOSED_REFUSED : PARLEY_CLOSED_UNREACHED);
        else
            lone_connected(lone, dialed);
    } else if (lone->next_incoming < LONE_CONNS_MAX - 4) {
        uint32_t conn = lone_incoming(lone, one_in(5) ? "10.0.0.1:5" : "127.0.0.1:6");
        if (lone->conns[conn] != LONE_OPEN || lone->finished || one_in(4)) return;
        size_t size = any_frame(lone, WIRE_HELLO, buffer, sizeof buffer);
        lone_receive(lone, conn, buffer, size);
    }
}

static void time_passes(struct lone *lone)
{
    static const uint64_t spans[] = {0, 10, 5000, 100000, 700000, 6000000};
    if (one_in(60))
        lone->now_us += 90000000; /* stopped for that long */
    else
        lone_run(lone, spans[life_below(6)]);
}

static void act(struct lone *lone)
{
    uint32_t conn;
    switch (life_below(17)) {
    case 0:
        connect_anything(lone);
        break;
    case 1:
    case 2:
        time_passes(lone);
        break;
    case 3:
        conn = any_conn(lone, LONE_OPEN);
        if (conn && one_in(5)) lone_closed(lone, conn, PARLEY_CLOSED_EOF);
        break;
    case 4:
        conn = any_conn(lone, LONE_OPEN);
        if (!conn) break;
        size_t sent = lone->unsent[conn];
        lone->unsent[conn] = 0;
        lone_step(lone, (struct parley_event){.type = PARLEY_EVENT_SENT,
                                              .sent = {.conn = conn, .bytes = sent}});
        break;
    case 5:
    case 6:
    case 7:
        lone->finite = !one_in(60);
        lone->lacks = one_in(20);
        if (lone->ops_count > 0) lone_done(lone, life_below(lone->ops_count));
        break;
    case 8:
        if (lone->steps_left == 0) break;
        uint64_t made = 1 + life_below((uint32_t)lone->steps_left);
        lone->steps_left -= made;
        lone->version += made;
        lone_stepped(lone, lone->version, one_in(99) ? 0.0 / 0.0 : 1);
        break;
    case 9:
        if (one_in(100))
            lone_step(lone, (struct parley_event){.type = PARLEY_EVENT_STOP,
                                                  .stop = {PARLEY_STOP_OPERATOR}});
        else if (one_in(400))
            lone_step(lone, (struct parley_event){.type = PARLEY_EVENT_LEAVE});
        break;
    case 10:
    case 11:
        if (one_in(2))
            say_what_fits(lone);
        else
            say_what_is_awaited(lone);
        break;
    case 12:
        if (one_in(20)) say_much(lone);
        break;
    default:
        say_anything(lone);
    }
}

/* A config of any kind; false: one that is refused. */
static bool any_config(struct parley_config *config, uint64_t seed)
{
    static const char *const seeds[] = {"127.0.0.1:7000", "10.0.0.9:7000"};
    char why[120];
    *config = lone_config();
    config->seed = seed;
    config->seeds = seeds;
    config->seeds_count = life_below(3);
    config->vectors = 1 + life_below(3);
    config->averaged = one_in(3) ? 1 + life_below(config->vectors) : 1;
    config->members_max = one_in(3) ? 4 : 64;
    config->connections_max = PARLEY_CONNECTIONS_MIN + life_below(8);
    config->pending_max = 1 + life_below(8);
    config->min_peers = life_below(2);
    config->steps_budget = one_in(2) ? 50 : 0;
    config->samples_budget = one_in(4) ? 200 : 0;
    config->topology = (enum parley_topology)life_below(PARLEY_TOPOLOGY_GRAPH);
    config->topology_degree = 3;
    config->strategy =
        one_in(2) ? PARLEY_STRATEGY_GOSSIP : (enum parley_strategy)life_below(PARLEY_STRATEGIES);
    if (config->strategy > PARLEY_STRATEGY_NONE) config->averaged = 1;
    config->staleness = life_below(3);
    config->backup_workers = life_below(2);
    config->codec = one_in(3) ? (enum parley_codec)life_below(PARLEY_CODEC_SUBSET + 1) : 0;
    config->codec_part = config->codec == PARLEY_CODEC_SUBSET ? 0.25 : 1;
    config->mix_every = 1 + life_below(3);
    config->mix_steered = one_in(5);
    config->quorum = one_in(4) ? PARLEY_QUORUM_MAJORITY : PARLEY_QUORUM_LIVE;
    config->nodes = 3;
    config->log_level = one_in(4) ? PARLEY_LOG_DEBUG : PARLEY_LOG_WARN;
    return parley_config_check(config, why, sizeof why) == 0;
}

#endif
