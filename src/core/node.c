/* node.c: one event in, updates out.
 *
 *   node_dispatch   hands the event to the module that owns it
 *   node_advance    lets each module start what may start now
 *   node_pump       sends what has changed, as far as there is room
 */
#include <assert.h>
#include <stddef.h>

#include "core/agreement/agreement.h"
#include "core/drift/drift.h"
#include "core/drift/sketches.h"
#include "core/exchange/doubt.h"
#include "core/exchange/exchange.h"
#include "core/link/connection.h"
#include "core/link/hello.h"
#include "core/link/seeds.h"
#include "core/membership/gossip.h"
#include "core/membership/membership.h"
#include "core/out.h"
#include "core/state.h"
#include "core/training/stop.h"
#include "core/training/training.h"
#include "core/transfer/fetch.h"
#include "core/transfer/flow.h"
#include "core/warm.h"
#include "core/wire/frames.h"

enum { LATE_US = 1000000, DRAIN_US = 100000 };

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
    case OP_LOOK:
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
        node->out->consumed = frames_received(node, event->received.conn, event->received.bytes,
                                              event->received.size);
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
    flow_timers(node);
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

static uint64_t node_deadline(const struct parley_node *node)
{
    uint64_t at = seeds_deadline(node);
    at = earlier(at, hello_deadline(node));
    at = earlier(at, connection_deadline(node));
    at = earlier(at, membership_deadline(node));
    at = earlier(at, exchange_deadline(node));
    at = earlier(at, doubt_deadline(node));
    at = earlier(at, fetch_deadline(node));
    at = earlier(at, flow_deadline(node));
    at = earlier(at, drift_deadline(node));
    at = earlier(at, training_deadline(node));
    at = earlier(at, strategy_deadline(node));
    return earlier(at, agreement_deadline(node));
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
        [PARLEY_PHASE_JOINING] = TO(TRAIN) | TO(LATE) | TO(LEFT),
        [PARLEY_PHASE_TRAIN] = TO(STOP) | TO(LEFT),
        [PARLEY_PHASE_STOP] = TO(SETTLE) | TO(LATE) | TO(LEFT),
        [PARLEY_PHASE_SETTLE] = TO(PROPOSED) | TO(HELD) | TO(LATE) | TO(LEFT),
        [PARLEY_PHASE_PROPOSED] = TO(SETTLE) | TO(HELD) | TO(LATE) | TO(LEFT),
        [PARLEY_PHASE_HELD] =
            TO(SETTLE) | TO(PROPOSED) | TO(LOCKED) | TO(DONE) | TO(LATE) | TO(LEFT),
        [PARLEY_PHASE_LOCKED] = TO(PROPOSED) | TO(DONE) | TO(LATE) | TO(LEFT),
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
