/* worker.c: what each node does that trains by a parameter server; server.h has the whole.
 *
 *   IDLE       -> ASKING      PULL: what it holds
 *   ASKING     -> RECEIVING   MODEL; or READY, where it has that very model
 *   RECEIVING  -> SETTING     the floats are there
 *   SETTING    -> READY       ... and in x
 *   READY      -> COMPUTING   a gradient
 *   COMPUTING  -> ASKING      PULL with that gradient
 *
 * Who serves goes from COMPUTING to IDLE to READY, without words. Failure modes: the link breaks,
 * or somebody else serves: back to IDLE, and what was computed is dropped.
 */
#include <assert.h>
#include <math.h>

#include "core/strategy/ps/server.h"
#include "core/training/joining.h"
#include "core/training/stop.h"

#define SPENT_MAX_US 1e15 /* 30 years: no time that anybody has spent is more */

static uint64_t server_boot(const struct parley_node *node)
{
    return record_of(node, (uint32_t)server_of(node)->leader)->boot;
}

/* ---- Asking ---------------------------------------------------------------------------------- */

static void pull(struct parley_node *node, struct conn *conn, uint32_t flags)
{
    struct server *s = server_of(node);
    struct message_strategy message = {.what = SERVER_PULL,
                                       .tag = ++s->sequence,
                                       .round = self_of(node)->holds,
                                       .key = s->from,
                                       .stamp = s->clock,
                                       .count = flags};
    if (flags & PULL_GRADIENT) {
        message.round = s->base;
        s->given = true;
    }
    if (node->training.stop != PARLEY_STOP_NONE) {
        message.count |= PULL_STOP;
        message.part = node->training.stop;
    }
    s->state = WORKER_ASKING;
    s->conn = conn->id;
    s->told = (message.count & PULL_STOP) != 0;
    s->unsent = (flags & PULL_WAITS) != 0;
    s->said_us = s->heard_us = conn->used_us = node->now_us;
    connection_send(node, conn, WIRE_STRATEGY, &message);
}

void worker_lose(struct parley_node *node)
{
    struct server *s = server_of(node);
    if (s->state == WORKER_RECEIVING) strategy_forget(node, SERVER_INFLOW);
    s->state = WORKER_IDLE;
    s->unsent = s->room = s->given = false;
}

/* It is still there, and still asks: who serves may have begun anew since. */
static void remind(struct parley_node *node, struct conn *conn)
{
    struct server *s = server_of(node);
    struct message_strategy message = {.what = SERVER_HERE};
    if (node->now_us < s->said_us + node->config.keepalive_us) return;
    s->said_us = node->now_us;
    if (s->state == WORKER_ASKING)
        message = (struct message_strategy){.what = SERVER_PULL,
                                            .tag = s->sequence,
                                            .round = self_of(node)->holds,
                                            .key = s->from,
                                            .stamp = s->clock};
    connection_send(node, conn, WIRE_STRATEGY, &message);
}

/* ---- Computing ------------------------------------------------------------------------------- */

bool worker_may_compute(const struct parley_node *node)
{
    const struct server *s = server_of(node);
    return !s->ends && !s->last && !node->leaving && training_wants(node);
}

static void compute(struct parley_node *node)
{
    struct server *s = server_of(node);
    if (s->sending) return; /* it is sent on, though too late */
    s->state = WORKER_COMPUTING;
    s->base = server_serves(node) ? s->version : self_of(node)->holds;
    struct parley_update *gradient =
        strategy_op(node, PARLEY_UPDATE_GRADIENT, s->arrivals[SERVER_OWN].buffer,
                    server_task(TASK_GRADIENT, 0));
    gradient->vector.steps = s->merged; /* a checkpoint keeps it beside the optimizer's vectors */
    /* Those of who follows are of a model that it has left. That it goes on from its file the
     * driver knows by the number of before, which it has had now. */
    if (s->giver != 0) s->merged = 0;
}

static void send_gradient(struct parley_node *node, struct conn *conn)
{
    struct server *s = server_of(node);
    struct strategy_part part = {
        .tag = s->sequence, .buffer = s->arrivals[SERVER_OWN].buffer, .size = vector_bytes(node)};
    s->unsent = false;
    s->sending = strategy_send(node, conn->id, &part, 0);
    assert(s->sending); /* one place is kept for it */
}

void worker_computed(struct parley_node *node, bool finite)
{
    struct server *s = server_of(node);
    s->state = WORKER_IDLE;
    if (!finite) { /* it goes to nobody, and this node ends (training.c) */
        node->training.diverged++;
        return;
    }
    if (server_serves(node)) {
        server_computed(node);
        return;
    }
    struct conn *conn = s->leader == NONE ? NULL : connection_of(node, s->leader);
    if (!conn || s->last || s->giver != server_boot(node)) return;
    pull(node, conn, PULL_GRADIENT | (s->room ? 0 : PULL_WAITS));
    if (s->room) send_gradient(node, conn);
}

void worker_may_send(struct parley_node *node, struct conn *conn, const struct message_strategy *m)
{
    struct server *s = server_of(node);
    if (s->state == WORKER_ASKING && s->unsent && s->conn == conn->id && s->sequence == m->tag)
        send_gradient(node, conn);
}

/* ---- The model ------------------------------------------------------------------------------- */

void worker_ready(struct parley_node *node)
{
    struct server *s = server_of(node);
    s->state = WORKER_READY;
    s->giver = s->answerer;
    s->from = s->answer.key;
    s->clock = s->answer.stamp;
    s->rounds = s->answer.before;
    s->room = (s->answer.count & MODEL_ROOM) != 0;
    self_of(node)->holds = s->answer.round;
    if (s->answer.value > 0 && s->answer.value < SPENT_MAX_US)
        training_share_time(node, (uint64_t)s->answer.value);
    training_counted(node);
    uint32_t cause = s->answer.part;
    if (!(s->answer.count & MODEL_LAST) || node->leaving) return;
    s->ends = s->last = true;
    if (phase_of(node) == PARLEY_PHASE_TRAIN && cause > 0 && cause <= PARLEY_STOP_OPERATOR)
        stop_raise(node, (enum parley_stop)cause);
}

void worker_answered(struct parley_node *node, struct conn *conn, const struct message_strategy *m)
{
    struct server *s = server_of(node);
    if (s->state != WORKER_ASKING || s->conn != conn->id || s->sequence != m->tag) return;
    if (m->count & MODEL_NO_PLACE) {
        char text[MESSAGE_TEXT_SIZE];
        strategy_say_full(node, text);
        out_log(node, PARLEY_LOG_ERROR, "%s", text);
        out_finish(node, PARLEY_ELIMIT);
        return;
    }
    s->heard_us = node->now_us;
    s->answer = *m;
    s->answerer = record_of(node, (uint32_t)conn->member)->boot;
    s->unsent = s->given = false;
    if (m->count & MODEL_SAME) {
        worker_ready(node);
        return;
    }
    s->state = WORKER_RECEIVING;
    struct strategy_part part = {
        .tag = s->sequence, .buffer = s->incoming, .size = vector_bytes(node)};
    strategy_expect(node, SERVER_INFLOW, conn->id, &part);
}

void worker_received(struct parley_node *node)
{
    struct server *s = server_of(node);
    s->state = WORKER_SETTING;
    s->heard_us = node->now_us;
    strategy_op(node, PARLEY_UPDATE_SET, s->incoming, server_task(TASK_SET, 0));
}

void worker_closed(struct parley_node *node, uint32_t conn)
{
    const struct server *s = server_of(node);
    if (s->conn == conn && (s->state == WORKER_ASKING || s->state == WORKER_RECEIVING))
        worker_lose(node);
}

/* ---- The way through it ---------------------------------------------------------------------- */

static void work_for(struct parley_node *node, struct conn *conn)
{
    struct server *s = server_of(node);
    if (s->state == WORKER_READY && s->giver != server_boot(node)) worker_lose(node);
    if ((s->state == WORKER_ASKING || s->state == WORKER_RECEIVING) && s->conn != conn->id)
        worker_lose(node);
    bool wish = node->training.stop != PARLEY_STOP_NONE && !s->told;
    if (s->state == WORKER_READY && !s->last && worker_may_compute(node))
        compute(node);
    else if (s->state == WORKER_READY && !s->last && !s->sending)
        pull(node, conn, PULL_RESTS);
    else if (s->state == WORKER_IDLE)
        pull(node, conn, worker_may_compute(node) ? 0 : PULL_RESTS);
    else if (s->state == WORKER_ASKING && wish && !s->unsent && !s->sending)
        pull(node, conn, worker_may_compute(node) ? 0 : PULL_RESTS);
    else
        remind(node, conn);
}

void worker_advance(struct parley_node *node)
{
    struct server *s = server_of(node);
    if (phase_of(node) != PARLEY_PHASE_TRAIN || s->takes || s->state == WORKER_COMPUTING ||
        s->state == WORKER_SETTING)
        return;
    bool serves = server_serves(node), follows = !serves && s->leader != NONE;
    strategy_stand_aside(node, follows && membership_is_unreached(node, s->leader));
    if (serves) {
        if (s->state == WORKER_READY && worker_may_compute(node)) compute(node);
        return;
    }
    struct conn *conn = follows ? connection_want(node, s->leader) : NULL;
    if (conn)
        work_for(node, conn);
    else if (s->state != WORKER_READY)
        worker_lose(node);
}

/* Nothing of it is on its way: no floats in or out, nor the answer that says that its gradient is
 * in the model. */
static bool has_parted(const struct server *s)
{
    bool asks = s->state == WORKER_ASKING && !s->given;
    return asks || s->state == WORKER_READY || s->state == WORKER_IDLE;
}

/* Of the live that it has a link to, and that train, or have ended that: who has most gradients in
 * its model, and more than this node. */
static int better_one(struct parley_node *node, bool trains)
{
    uint64_t most = self_of(node)->holds;
    int best = NONE;
    for (uint32_t i = 0; i < node->roster->count; i++) {
        const struct record *r = record_of(node, i);
        bool fits = trains ? r->phase == PARLEY_PHASE_TRAIN
                           : r->phase > PARLEY_PHASE_TRAIN && r->phase <= PARLEY_PHASE_PROPOSED;
        if (!fits || !record_is_live(r) || r->holds <= most || !connection_of(node, (int)i))
            continue;
        most = r->holds;
        best = (int)i;
    }
    return best;
}

bool worker_takes(struct parley_node *node)
{
    struct server *s = server_of(node);
    int other = better_one(node, false);
    if (other == NONE) return false;
    s->takes = true;
    joining_follow(node, other);
    return true;
}

void worker_adopted(struct parley_node *node, const struct message_fetch *answer)
{
    (void)answer;
    struct server *s = server_of(node);
    if (!s->takes) return;
    self_of(node)->holds = record_of(node, (uint32_t)node->fetch.member)->holds;
    s->last = true;
}

/* A worker's part of strategy->stop(): it has the last model, the server's or another worker's, or
 * there is none to be had. */
bool worker_stops(struct parley_node *node)
{
    struct server *s = server_of(node);
    if (s->takes && node->fetch.state != FETCH_IDLE) return false;
    if (s->last) return true;
    if (node->leaving) return has_parted(s);
    uint64_t since_us = s->heard_us > s->ends_us ? s->heard_us : s->ends_us;
    if (node->now_us < since_us + 2 * node->config.progress_timeout_us) return false;
    if (s->state == WORKER_SETTING) return false;
    if (s->state != WORKER_COMPUTING) worker_lose(node); /* what comes late is not to go into x */
    s->takes = true;
    /* Who has more and trains still waits for a last model, too, and then gives it. */
    bool in_vain = node->now_us >= since_us + 3 * node->config.progress_timeout_us;
    if (!in_vain && (worker_takes(node) || better_one(node, true) != NONE)) return false;
    out_log(node, PARLEY_LOG_WARN,
            "nobody has given this node the last model: it ends with its own");
    s->last = true;
    return true;
}
