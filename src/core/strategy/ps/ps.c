/* ps.c: the three strategies with a parameter server, as the node sees them; server.h has the
 * whole.
 */
#include "core/strategy/ps/server.h"

static void begin(struct parley_node *node)
{
    struct server *s = server_of(node);
    uint32_t next = 0;
    s->leader = s->former = NONE;
    s->lost_us = node->now_us;
    s->rounds = node->training.before.steps;
    s->merged = node->training.before.state_steps;
    s->lanes = (int)strategy_lanes(&node->config);
    for (int i = 0; i < s->lanes; i++)
        s->arrivals[i].buffer = strategy_lane_buffer(node, i);
    s->arrivals[SERVER_OWN].buffer = strategy_buffer(node, next++);
    for (int i = 0; i < SERVER_MODELS; i++)
        s->models[i].buffer = strategy_buffer(node, next++);
    s->sum = strategy_buffer(node, next++);
    s->incoming = strategy_buffer(node, next++);
}

static void advance(struct parley_node *node)
{
    if (!node->training.started) return; /* it is late, and settles with the others */
    if (phase_of(node) == PARLEY_PHASE_TRAIN) election_advance(node);
    if (server_serves(node)) server_advance(node);
    worker_advance(node);
}

static uint64_t deadline(const struct parley_node *node)
{
    const struct server *s = server_of(node);
    uint64_t at = election_deadline(node);
    uint64_t own =
        server_serves(node) ? server_deadline(node) : s->said_us + node->config.keepalive_us;
    return phase_of(node) == PARLEY_PHASE_TRAIN && own > node->now_us ? earlier(at, own) : at;
}

static void done(struct parley_node *node, int number, const struct parley_event *event)
{
    int index = number / TASKS;
    switch ((enum server_task)(number % TASKS)) {
    case TASK_GRADIENT:
        worker_computed(node, event->done.finite);
        break;
    case TASK_SET:
        worker_ready(node);
        break;
    case TASK_SUM:
    case TASK_APPLY:
        server_merged(node, index, number % TASKS == TASK_APPLY);
        break;
    case TASK_TAKE:
        models_taken(node, index, event->done.finite);
        break;
    case TASK_RESET:
        server_of(node)->pending--;
        break;
    case TASKS:
        break;
    }
}

static void received(struct parley_node *node, int inflow)
{
    if (inflow == SERVER_INFLOW)
        worker_received(node);
    else
        server_received(node, inflow);
}

static void progress(struct parley_node *node, int inflow)
{
    if (inflow == SERVER_INFLOW) server_of(node)->heard_us = node->now_us;
}

static void sent(struct parley_node *node, int number, bool ok)
{
    if (number == 0)
        server_of(node)->sending = false;
    else
        models_sent(node, number - 1, ok);
}

static void frame(struct parley_node *node, struct conn *conn, const struct message_strategy *m)
{
    if (!node->training.started) return;
    switch ((enum server_word)m->what) {
    case SERVER_PULL:
        if (server_serves(node)) server_pulled(node, conn, m);
        break;
    case SERVER_MODEL:
        worker_answered(node, conn, m);
        break;
    case SERVER_SEND:
        worker_may_send(node, conn, m);
        break;
    case SERVER_HERE:
        break;
    }
}

static void closed(struct parley_node *node, uint32_t conn, int member)
{
    (void)member;
    if (!node->training.started) return;
    server_closed(node, conn);
    worker_closed(node, conn);
}

static bool stop(struct parley_node *node)
{
    struct server *s = server_of(node);
    if (!s->ends) s->ends_us = node->now_us;
    s->ends = true;
    return server_serves(node) ? s->last : worker_stops(node);
}

static uint64_t rounds(const struct parley_node *node)
{
    uint64_t rounds = server_of(node)->rounds, before = node->training.before.steps;
    return rounds > before ? rounds - before : 0;
}

#define COMMON                                                                                     \
    .splits = true, .catches_up = true, .nodes_max = PARLEY_SERVED_MAX,                            \
    .size = sizeof(struct server), .buffers = SERVER_BUFFERS, .inflows = SERVER_ARRIVALS_MAX + 1,  \
    .outflows = SERVER_STREAMS + 1, .lanes = SERVER_ARRIVALS, .lanes_max = SERVER_ARRIVALS_MAX,    \
    .begin = begin, .advance = advance, .deadline = deadline, .done = done, .received = received,  \
    .progress = progress, .sent = sent, .frame = frame, .closed = closed,                          \
    .adopted = worker_adopted, .stop = stop

const struct strategy strategy_ps_bsp = {
    .name = "ps-bsp", .sums_batches = true, .steps = rounds, COMMON};
const struct strategy strategy_ps_asp = {.name = "ps-asp", .merges_each = true, COMMON};
const struct strategy strategy_ps_ssp = {.name = "ps-ssp", .merges_each = true, COMMON};
