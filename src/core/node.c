/* node.c: one event in, updates out.
 *
 *   node_dispatch   hands the event to the module that owns it
 *   node_advance    lets each module start what may start now
 *   node_pump       sends what has changed, as far as there is room
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/agreement.h"
#include "core/connection.h"
#include "core/doubt.h"
#include "core/drift.h"
#include "core/exchange.h"
#include "core/fetch.h"
#include "core/flow.h"
#include "core/gossip.h"
#include "core/hello.h"
#include "core/membership.h"
#include "core/out.h"
#include "core/seeds.h"
#include "core/sketches.h"
#include "core/state.h"
#include "core/stop.h"
#include "core/training.h"
#include "core/warm.h"

enum { LATE_US = 1000000, DRAIN_US = 100000 };

static void node_frame(struct parley_node *node, struct conn *conn, enum wire_type type,
                       const uint8_t *bytes, size_t size);

/* ---- Receiving ------------------------------------------------------------------------------- */

static void malformed(struct parley_node *node, struct conn *conn, int error)
{
    out_log(node, PARLEY_LOG_WARN, "closed a connection with %s: %s",
            conn->member >= 0 ? record_of(node, conn->member)->name : conn->address,
            parley_error_text(error));
    connection_close(node, conn);
}

/* Takes frame after frame, until the bytes or the room for updates end. */
static size_t node_received(struct parley_node *node, uint32_t id, const uint8_t *bytes,
                            size_t size)
{
    size_t at = 0;
    while (out_room(node)) {
        struct conn *conn = connection_find(node, id);
        if (!conn || conn->state == CONN_CLOSING || node->finished) return size;
        conn->heard_us = node->now_us;
        int error = 0;
        if (conn->chunk_left > 0) {
            if (at == size) break;
            at += flow_chunk_bytes(node, conn, bytes + at, size - at, &error);
        } else {
            struct wire_header header;
            if (size - at < WIRE_HEADER_BYTES) break;
            error = wire_header_read(bytes + at, &header);
            if (!error && conn->state != CONN_LIVE && header.type != WIRE_HELLO &&
                header.type != WIRE_REJECT && header.type != WIRE_STATUS &&
                header.type != WIRE_BYE) {
                /* It may turn out to be another's name. Who dialled says no more till it is heard,
                 * who answered may; but no more than the driver has room for (node.h). */
                bool checked = hello_is_checked(node, conn);
                if (checked && size - at <= WIRE_HEADER_BYTES + PARLEY_CONTROL_BYTES_MAX) break;
                error = checked ? PARLEY_ELIMIT : PARLEY_EMALFORMED; /* nothing before HELLO */
            }
            if (error == PARLEY_EMISMATCH && conn->state == CONN_PENDING) {
                hello_foreign(node, conn, bytes[at + 2]);
                return size;
            }
            if (error) {
                malformed(node, conn, error);
                return size;
            }
            size_t need = header.type == WIRE_CHUNK ? WIRE_CHUNK_BYTES : header.size;
            if (size - at < WIRE_HEADER_BYTES + need) break;
            const uint8_t *body = bytes + at + WIRE_HEADER_BYTES;
            if (header.type == WIRE_CHUNK)
                flow_chunk_begin(node, conn, body, header.size - WIRE_CHUNK_BYTES, &error);
            else
                node_frame(node, conn, (enum wire_type)header.type, body, need);
            at += WIRE_HEADER_BYTES + need;
        }
        if (error) {
            malformed(node, conn, error);
            return size;
        }
        if (at > 0 && conn->chunk_left > 0 && conn->chunk_aside) break; /* not of these bytes */
    }
    return at;
}

static void node_status(struct parley_node *node, struct conn *conn,
                        const struct message_status *status)
{
    struct message_report report = {.total = node->roster->count};
    struct parley_view view;
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

static void node_frame(struct parley_node *node, struct conn *conn, enum wire_type type,
                       const uint8_t *bytes, size_t size)
{
    union message m;
    int error = type == WIRE_REPORT ? PARLEY_EMALFORMED /* an answer that no node asks for */
                                    : message_decode(type, bytes, size, &m, node->out->unpacker);
    if (error) {
        malformed(node, conn, error);
        return;
    }
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
        membership_members(node, conn, &m.members);
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
        node_status(node, conn, &m.status);
        break;
    case WIRE_STRATEGY:
        if (node->strategy->frame) node->strategy->frame(node, conn, &m.strategy);
        break;
    case WIRE_REPORT:
    case WIRE_CHUNK:
    case WIRE_TYPES:
        break;
    }
}

/* ---- Operations ------------------------------------------------------------------------------ */

static void node_done(struct parley_node *node, const struct parley_event *event)
{
    struct op op = {0};
    for (uint32_t i = 0; i < node->ops_count; i++) {
        if (node->ops[i].kind == OP_FREE || node->ops[i].id != event->done.op) continue;
        op = node->ops[i];
        node->ops[i].kind = OP_FREE;
        break;
    }
    switch (op.kind) {
    case OP_FREE:
        assert(!"DONE for an operation that is not under way");
        break;
    case OP_TAKE:
    case OP_ENCODE:
    case OP_DIFF:
    case OP_ADD:
        exchange_done(node, &op, event);
        break;
    case OP_CHUNK:
        flow_chunk_done(node, op.owner, event->done.ok);
        break;
    case OP_DOUBT_ADD:
        doubt_done(node, op.owner);
        break;
    case OP_STRATEGY:
        if (node->strategy->done) node->strategy->done(node, op.owner, event);
        break;
    case OP_SKETCH_TAKE:
    case OP_SKETCH:
        drift_done(node, &op, event);
        break;
    case OP_STATE_TAKE:
    case OP_ADOPT:
        fetch_done(node, &op, event);
        break;
    case OP_CANDIDATE_TAKE:
    case OP_CANDIDATE_HASH:
    case OP_FETCHED_HASH:
    case OP_FETCHED_COPY:
    case OP_FETCHED_DIFF:
    case OP_WRITE:
    case OP_PUBLISH:
        agreement_done(node, &op, event);
        break;
    }
}

/* ---- The step -------------------------------------------------------------------------------- */

static void node_dispatch(struct parley_node *node, const struct parley_event *event)
{
    struct conn *conn;
    switch (event->type) {
    case PARLEY_EVENT_START:
        node->start_us = node->now_us;
        membership_start(node);
        seeds_hurry(node);
        node->deadline_us = node->now_us;
        break;
    case PARLEY_EVENT_TICK:
        break;
    case PARLEY_EVENT_INCOMING:
        connection_incoming(node, event->incoming.conn, event->incoming.address,
                            event->incoming.token);
        break;
    case PARLEY_EVENT_CONNECTED:
        connection_connected(node, event->connected.conn);
        break;
    case PARLEY_EVENT_CLOSED:
        connection_closed(node, event);
        break;
    case PARLEY_EVENT_RECEIVED:
        node->out->consumed =
            node_received(node, event->received.conn, event->received.bytes, event->received.size);
        break;
    case PARLEY_EVENT_SENT:
        conn = connection_find(node, event->sent.conn);
        if (conn) {
            assert(event->sent.bytes <= conn->queued);
            conn->queued -= (uint32_t)event->sent.bytes;
        }
        break;
    case PARLEY_EVENT_STEPPED:
        training_stepped(node, event);
        break;
    case PARLEY_EVENT_DONE:
        node_done(node, event);
        break;
    case PARLEY_EVENT_SEEDS:
        seeds_set(node, event->seeds.seeds, event->seeds.count);
        break;
    case PARLEY_EVENT_STOP:
        stop_raise(node, event->stop.cause);
        break;
    case PARLEY_EVENT_LEAVE:
        training_leave(node);
        break;
    }
}

static void node_timers(struct parley_node *node)
{
    seeds_timers(node);
    hello_timers(node);
    connection_timers(node);
    seeds_give_up(node); /* after the others: somebody may have been let in just now */
    membership_timers(node);
    exchange_timers(node);
    doubt_timers(node);
    fetch_timers(node);
}

static void node_advance(struct parley_node *node)
{
    strategy_advance(node); /* first: it says how many steps may be granted */
    training_advance(node);
    agreement_advance(node);
    if (!drift_advance(node)) exchange_advance(node);
}

static void node_pump(struct parley_node *node)
{
    gossip_pump(node);
    sketches_pump(node);
    flow_pump(node);
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t node_deadline(const struct parley_node *node)
{
    uint64_t at = seeds_deadline(node);
    at = least(at, hello_deadline(node));
    at = least(at, connection_deadline(node));
    at = least(at, membership_deadline(node));
    at = least(at, exchange_deadline(node));
    at = least(at, doubt_deadline(node));
    at = least(at, fetch_deadline(node));
    at = least(at, drift_deadline(node));
    at = least(at, training_deadline(node));
    at = least(at, strategy_deadline(node));
    return least(at, agreement_deadline(node));
}

void parley_node_step(struct parley_node *node, const struct parley_event *event,
                      struct parley_updates *updates)
{
    updates->count = 0;
    updates->consumed = 0;
    updates->arena_used = 0;
    if (node->finished) {
        if (event->type == PARLEY_EVENT_RECEIVED) updates->consumed = event->received.size;
        return;
    }
    node->out = updates;
    node->more = false;

    /* A process that was stopped must not count the time it slept as silence of the others: node
     * time stands still from shortly before the missed deadline on, so that what waits in the
     * sockets is read before any verdict. */
    uint64_t now_us = event->now_us - node->skew_us;
    if (node->deadline_us != NEVER && now_us > node->deadline_us + LATE_US) {
        uint64_t awake_us = node->deadline_us > DRAIN_US ? node->deadline_us - DRAIN_US : 0;
        if (awake_us < node->now_us) awake_us = node->now_us;
        node->skew_us += now_us - awake_us;
        node->training.start_us -= now_us - awake_us; /* the others trained on */
        now_us = awake_us;
    }
    if (now_us > node->now_us) node->now_us = now_us;

    node_dispatch(node, event);
    if (!node->finished && node->now_us >= node->deadline_us) node_timers(node);
    if (!node->finished) node_advance(node);
    if (!node->finished) node_pump(node);
    if (node->finished) doubt_finish(node);
    node->deadline_us = node->finished ? NEVER : node->more ? node->now_us : node_deadline(node);
    node->out = NULL;
}

void node_warm(const struct parley_node *node)
{
    warm(&node->rng, offsetof(struct parley_node, name_check) - offsetof(struct parley_node, rng));
    warm(&node->roster, sizeof node->roster);
    warm(&node->self,
         offsetof(struct parley_node, probing.favours) - offsetof(struct parley_node, self));
    warm(&node->ops, offsetof(struct parley_node, exchange) - offsetof(struct parley_node, ops));
    warm(&node->exchange, offsetof(struct exchange, commits));
    warm(&node->exchange.aborted_next,
         sizeof node->exchange - offsetof(struct exchange, aborted_next));
    warm(&node->drift.stale, sizeof node->drift - offsetof(struct drift, stale));
    warm(&node->fetch, sizeof(uint64_t));
    warm(&node->agreement, sizeof(uint64_t));
    warm(&node->training, sizeof node->training);
}

void node_warm_arrays(const struct parley_node *node)
{
    warm(node->open, node->open_count * sizeof *node->open);
    warm(node->ops, 4 * sizeof *node->ops);
    warm(self_of(node), sizeof(struct record));
}

uint64_t parley_node_deadline(const struct parley_node *node)
{
    return node->deadline_us == NEVER ? NEVER : node->deadline_us + node->skew_us;
}

uint64_t parley_node_awaits_steps(const struct parley_node *node)
{
    return training_awaits(node);
}

/* ---- Phases ---------------------------------------------------------------------------------- */

void node_phase(struct parley_node *node, enum parley_phase phase)
{
#define TO(x) (1u << PARLEY_PHASE_##x)
    static const uint32_t allowed[] = {
        [PARLEY_PHASE_JOINING] = TO(TRAIN) | TO(STOP) | TO(LATE) | TO(LEFT),
        [PARLEY_PHASE_TRAIN] = TO(STOP) | TO(LEFT),
        [PARLEY_PHASE_STOP] = TO(SETTLE) | TO(LATE) | TO(LEFT),
        [PARLEY_PHASE_SETTLE] = TO(PROPOSED) | TO(HELD) | TO(LATE) | TO(LEFT),
        [PARLEY_PHASE_PROPOSED] = TO(SETTLE) | TO(HELD) | TO(LATE) | TO(LEFT),
        [PARLEY_PHASE_HELD] =
            TO(SETTLE) | TO(PROPOSED) | TO(LOCKED) | TO(DONE) | TO(LATE) | TO(LEFT),
        [PARLEY_PHASE_LOCKED] = TO(PROPOSED) | TO(HELD) | TO(DONE) | TO(LATE) | TO(LEFT),
        [PARLEY_PHASE_DONE] = TO(LEFT),
        [PARLEY_PHASE_LATE] = TO(SETTLE) | TO(PROPOSED) | TO(DONE) | TO(LEFT),
        [PARLEY_PHASE_LEFT] = 0,
    };
#undef TO
    struct record *self = self_of(node);
    assert(allowed[self->phase] & (1u << phase));
    out_log(node, PARLEY_LOG_DEBUG, "phase %s -> %s",
            parley_phase_name((enum parley_phase)self->phase), parley_phase_name(phase));
    self->phase = phase;
    membership_changed(node, true);
    out_add(node, PARLEY_UPDATE_PHASE)->phase.phase = phase;
}

/* ---- Making and freeing ---------------------------------------------------------------------- */

static bool allocate_flows(struct parley_node *node)
{
    const struct strategy *s = node->strategy;
    node->outflows_count = OUTFLOWS_MAX + s->outflows;
    node->ops_count = OPS_MAX + OPS_PER_OUTFLOW * s->outflows;
    node->outflows = calloc(node->outflows_count, sizeof *node->outflows);
    node->ops = calloc(node->ops_count, sizeof *node->ops);
    node->inflows = calloc(s->inflows + 1, sizeof *node->inflows);
    node->strategy_state = calloc(1, s->size + 1);
    if (!node->outflows || !node->ops || !node->inflows || !node->strategy_state) return false;
    struct inflow *flows[] = {&node->exchange.slots[0].in, &node->exchange.slots[1].in,
                              &node->fetch.in};
    for (int i = 0; i < 3; i++)
        if (!(flows[i]->sum = XXH3_createState())) return false;
    for (uint32_t i = 0; i < s->inflows; i++) {
        node->inflows[i].slot = FLOW_STRATEGY;
        if (!(node->inflows[i].sum = XXH3_createState())) return false;
    }
    return true;
}

static bool allocate(struct parley_node *node)
{
    struct parley_config *c = &node->config;
    node->strategy = strategy_of(c->strategy);
    node->conns_count = c->connections_max + c->pending_max;
    node->conns = calloc(node->conns_count, sizeof *node->conns);
    node->open = calloc(node->conns_count, sizeof *node->open);
    node->seeds = calloc(seeds_room(c), sizeof *node->seeds);
    if (!node->conns || !node->open || !node->seeds) return false;
    node->roster = c->roster ? c->roster : &node->own_roster;
    if (!c->roster) {
        node->members = calloc(c->members_max, sizeof *node->members);
        node->probing.order = calloc(c->members_max, sizeof *node->probing.order);
        if (!node->members || !node->probing.order ||
            roster_init(node->roster, c->members_max, c->steps_budget) != 0)
            return false;
    }
    if (roster_use_topology(node->roster, c) != 0) return false;
    return allocate_flows(node);
}

int parley_node_new(struct parley_node **result, const struct parley_config *config)
{
    char why[1];
    *result = NULL;
    if (parley_config_check(config, why, sizeof why)) return PARLEY_EUSAGE;
    struct parley_node *node = calloc(1, sizeof *node);
    if (!node) return PARLEY_ENOMEM;
    node->config = *config;
    node->training.weight = node->training.unit = 1;
    if (!allocate(node)) {
        parley_node_free(node);
        return PARLEY_ENOMEM;
    }
    memcpy(node->cluster, config->cluster, strlen(config->cluster) + 1);
    for (uint32_t i = 0; i < config->settings_count; i++) {
        strncpy(node->settings[i].name, config->settings[i].name, PARLEY_NAME_SIZE - 1);
        strncpy(node->settings[i].value, config->settings[i].value, MESSAGE_VALUE_SIZE - 1);
    }
    for (uint32_t i = 0; i < config->seeds_count; i++)
        memcpy(node->seeds[node->seeds_count++].address, config->seeds[i],
               strlen(config->seeds[i]) + 1);
    struct record self = {.boot = config->boot};
    memcpy(self.name, config->name, strlen(config->name) + 1);
    memcpy(self.address, config->address, strlen(config->address) + 1);
    node->self = roster_add(node->roster, &self);
    if (node->self == NONE) {
        parley_node_free(node);
        return PARLEY_ELIMIT;
    }
    node->config.cluster = node->cluster;
    node->config.name = self_of(node)->name;
    node->config.address = self_of(node)->address;
    node->config.settings = NULL;
    node->config.seeds = NULL;
    node->rng = rng_init(config->seed, config->boot);
    node->next_conn = 1;
    node->deadline_us = node->next_conn_us = node->gossip.next_us = NEVER;
    exchange_init(node);
    *result = node;
    return 0;
}

void parley_node_free(struct parley_node *node)
{
    if (!node) return;
    struct inflow *flows[] = {&node->exchange.slots[0].in, &node->exchange.slots[1].in,
                              &node->fetch.in};
    for (int i = 0; i < 3; i++)
        XXH3_freeState(flows[i]->sum);
    for (uint32_t i = 0; node->inflows && i < node->strategy->inflows; i++)
        XXH3_freeState(node->inflows[i].sum);
    free(node->strategy_state);
    free(node->inflows);
    free(node->ops);
    free(node->outflows);
    roster_close(&node->own_roster);
    free(node->probing.order);
    free(node->members);
    free(node->seeds);
    free(node->open);
    free(node->conns);
    free(node);
}
