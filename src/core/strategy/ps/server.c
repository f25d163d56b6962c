/* server.c: what the one who serves does; server.h has the whole.
 *
 *   pulled    a worker of the crew (crew.c) asks, perhaps with a gradient, which goes where
 *             the strategy wants it (merge.c)
 *   is_turn   whose turn it is: the other thing in which strategies differ
 *   answer    snapshots of x go out (models.c)
 *   close_up  the last model, once nothing is under way
 *
 * Failure modes: links and members that go (their places are freed, nobody waits for them), more
 * workers than buffers (they queue), a model that is not finite (training.c ends the run).
 */
#include "core/strategy/ps/server.h"
#include "core/training/stop.h"

/* ---- Answers --------------------------------------------------------------------------------- */

static bool is_turn(struct parley_node *node, const struct server_worker *w)
{
    struct server *s = server_of(node);
    if (!w->asks || crew_is_pending(s, w)) return false;
    if (s->ends) return s->closed;
    if (w->rests) return false;
    if (server_sums(node)) return !w->in;
    if (node->config.strategy == PARLEY_STRATEGY_PS_ASP)
        return w->member != node->self || w->clock <= crew_fastest_other(node);
    return !crew_is_ahead(node, w, crew_slowest(node));
}

/* The place that is kept for its next gradient; NONE. */
static int room_of(const struct server *s, const struct server_worker *w)
{
    for (int i = 0; i < s->lanes; i++)
        if (s->arrivals[i].state == ARRIVAL_KEPT && s->arrivals[i].boot == w->boot &&
            s->arrivals[i].conn == w->conn)
            return i;
    return NONE;
}

/* Where there is one for everybody. */
static bool keep_room(struct server *s, const struct server_worker *w)
{
    int i = 0;
    if (s->count > (uint32_t)s->lanes + 1) return false;
    if (room_of(s, w) != NONE) return true;
    while (i < s->lanes && s->arrivals[i].state != ARRIVAL_FREE)
        i++;
    if (i == s->lanes) return false;
    s->arrivals[i].state = ARRIVAL_KEPT;
    s->arrivals[i].boot = w->boot;
    s->arrivals[i].conn = w->conn;
    return true;
}

static enum parley_stop cause_of(const struct parley_node *node)
{
    if (node->training.stop != PARLEY_STOP_NONE) return node->training.stop;
    for (uint32_t i = 0; i < node->roster->count; i++)
        if (record_of(node, i)->stop != PARLEY_STOP_NONE)
            return (enum parley_stop)record_of(node, i)->stop;
    return PARLEY_STOP_BUDGET;
}

/* model: NONE where the worker has what it wants. */
static void give(struct parley_node *node, struct server_worker *w, struct conn *conn, int model)
{
    struct server *s = server_of(node);
    struct message_strategy answer = {.what = SERVER_MODEL,
                                      .tag = w->sequence,
                                      .key = s->reign,
                                      .stamp = w->clock,
                                      .round = model == NONE ? w->holds : s->models[model].version,
                                      .before = model == NONE ? s->rounds : s->models[model].rounds,
                                      .value = (double)training_spent_us(node)};
    if (model == NONE) answer.count |= MODEL_SAME;
    if (s->ends && !node->leaving) {
        answer.count |= MODEL_LAST;
        answer.part = cause_of(node);
    } else if (keep_room(s, w)) {
        answer.count |= MODEL_ROOM;
    }
    w->asks = false;
    w->holds = answer.round;
    w->rests = (answer.count & MODEL_LAST) != 0;
    conn->used_us = node->now_us;
    connection_send(node, conn, WIRE_STRATEGY, &answer);
    if (model != NONE) models_send(node, w, conn, model);
}

/* Who is furthest behind is not to hold up others, nor is who takes longest. */
static bool is_before(const struct server_worker *a, const struct server_worker *b)
{
    return !b || a->clock < b->clock || (a->clock == b->clock && a->took_us > b->took_us);
}

/* All that need no model, and one that does; whether there was one. */
static bool answer(struct parley_node *node)
{
    struct server *s = server_of(node);
    struct server_worker *first = NULL;
    bool comes, wanted = false;
    for (uint32_t i = 0; i < s->count; i++) {
        struct server_worker *w = &s->workers[i];
        if (!is_turn(node, w)) continue;
        if (w->member == node->self) {
            w->asks = false;
            s->clock = w->clock;
            s->state = WORKER_READY;
            continue;
        }
        struct conn *conn = connection_find(node, w->conn);
        if (!conn || conn->state != CONN_LIVE || !out_room(node)) continue;
        if (w->holds != NEVER && w->holds >= w->wants)
            give(node, w, conn, NONE);
        else if (models_find(node, w, &comes) == NONE)
            wanted = wanted || !comes;
        else if (is_before(w, first))
            first = w;
    }
    bool gives = first && out_room(node) && models_next_us(node) <= node->now_us;
    if (gives)
        give(node, first, connection_find(node, first->conn), models_find(node, first, &comes));
    /* After that: it may take the place of a snapshot that nobody reads. */
    if (wanted && !node->training.diverged) models_take(node);
    return gives;
}

/* ---- Requests -------------------------------------------------------------------------------- */

static void receive(struct parley_node *node, int index, struct server_worker *w)
{
    struct server_arrival *a = &server_of(node)->arrivals[index];
    a->state = ARRIVAL_RECEIVING;
    a->boot = w->boot;
    a->conn = w->conn;
    a->version = w->holds;
    struct strategy_part part = {
        .tag = w->sequence, .buffer = a->buffer, .size = vector_bytes(node)};
    strategy_expect(node, index, w->conn, &part);
}

void server_release(struct parley_node *node, int index)
{
    struct server_arrival *a = &server_of(node)->arrivals[index];
    if (a->state == ARRIVAL_RECEIVING) strategy_forget(node, index);
    if (a->state != ARRIVAL_MERGING) a->state = ARRIVAL_FREE;
}

static void pushed(struct parley_node *node, struct server_worker *w, bool waits)
{
    struct server *s = server_of(node);
    int room = room_of(s, w);
    bool good = w->holds != NEVER && !s->closed &&
                (!server_sums(node) || (w->holds == s->version && !w->in));
    if (good && waits) {
        w->queued = true;
        w->place = ++s->queue;
    } else if (good && room != NONE) {
        receive(node, room, w);
    } else {
        merge_drop(node, w); /* its floats are read and forgotten */
    }
}

/* Whose turn it is to send its gradient, if there is room. */
static void call_up(struct parley_node *node)
{
    struct server *s = server_of(node);
    for (int i = 0; i < s->lanes; i++) {
        struct server_worker *first = NULL;
        for (uint32_t k = 0; s->arrivals[i].state == ARRIVAL_FREE && k < s->count; k++)
            if (s->workers[k].queued && (!first || s->workers[k].place < first->place))
                first = &s->workers[k];
        struct conn *conn = first ? connection_find(node, first->conn) : NULL;
        if (!conn || !out_room(node)) continue;
        first->queued = false;
        receive(node, i, first);
        struct message_strategy send = {.what = SERVER_SEND, .tag = first->sequence};
        connection_send(node, conn, WIRE_STRATEGY, &send);
    }
}

/* Who comes late, or back after it was not waited for, starts where the slowest is, and from
 * another server not before the fastest: nobody is to wait until a time apart has been made up for.
 */
static void set_clock(struct parley_node *node, struct server_worker *w,
                      const struct message_strategy *m)
{
    uint64_t low, high, apart = (uint64_t)node->config.staleness + 1; /* as far as they can be */
    if (m->key != 0 && w->clock < m->stamp) w->clock = m->stamp;
    if (!crew_clocks(node, w, &low, &high)) return;
    if (m->key != server_of(node)->reign && w->clock > high) w->clock = high;
    if (node->config.strategy == PARLEY_STRATEGY_PS_SSP && w->clock + apart < low) w->clock = low;
}

/* It asks anew, and will not send what it was told to: it had given that up by then. */
static void drop_unbegun(struct parley_node *node, const struct server_worker *w)
{
    struct server *s = server_of(node);
    for (int a = 0; a < s->lanes; a++)
        if (s->arrivals[a].boot == w->boot && s->arrivals[a].state == ARRIVAL_RECEIVING &&
            node->inflows[a].offset == 0)
            server_release(node, a);
}

/* More came at once, each to another member, than there are places. */
static void turn_away(struct parley_node *node, struct conn *conn, const struct message_strategy *m)
{
    struct message_strategy answer = {.what = SERVER_MODEL, .tag = m->tag, .count = MODEL_NO_PLACE};
    connection_send(node, conn, WIRE_STRATEGY, &answer);
}

void server_pulled(struct parley_node *node, struct conn *conn, const struct message_strategy *m)
{
    struct server *s = server_of(node);
    crew_muster(node);
    struct server_worker *w = crew_add(node, conn->member);
    if (!w) turn_away(node, conn, m);
    if (!w || (w->conn == conn->id && w->sequence == m->tag)) return; /* said again */
    set_clock(node, w, m);
    w->conn = conn->id;
    w->sequence = m->tag;
    w->asks = true;
    w->queued = false;
    w->rests = (m->count & PULL_RESTS) != 0;
    w->holds = m->key == s->reign && m->round <= s->version ? m->round : NEVER;
    if (m->count & PULL_GRADIENT) {
        pushed(node, w, (m->count & PULL_WAITS) != 0);
    } else {
        drop_unbegun(node, w);
        if (!crew_is_pending(s, w)) w->wants = s->version;
    }
    if (m->count & PULL_STOP && m->part > PARLEY_STOP_NONE && m->part <= PARLEY_STOP_OPERATOR)
        stop_raise(node, (enum parley_stop)m->part);
}

/* ---- The end --------------------------------------------------------------------------------- */

/* No gradient is under way: all who are waited for ask, and have asked for nothing else. */
static bool is_quiet(struct parley_node *node)
{
    struct server *s = server_of(node);
    for (uint32_t i = 0; i < s->count; i++) {
        const struct server_worker *w = &s->workers[i];
        bool own = w->member == node->self;
        if (own ? s->state == WORKER_COMPUTING : crew_waits_for(node, w) && !w->asks) return false;
        if (crew_is_pending(s, w) && (own || crew_waits_for(node, w))) return false;
    }
    return true;
}

/* The last model for everybody. */
static void close_up(struct parley_node *node)
{
    struct server *s = server_of(node);
    uint64_t patience_us = node->config.progress_timeout_us;
    if (!s->closed && !is_quiet(node) && node->now_us < s->ends_us + patience_us) return;
    if (!s->closed) {
        if (s->summing > 0) return;
        if (s->summed > 0) merge_finish_round(node);
        s->closed = true;
        for (uint32_t i = 0; i < s->count; i++)
            s->workers[i].wants = s->version;
    }
    bool all = s->pending == 0 && models_streams(s) == 0;
    for (uint32_t i = 0; i < s->count; i++)
        all = all && (s->workers[i].member == node->self || s->workers[i].conn == 0 ||
                      !s->workers[i].asks);
    s->last = s->last || all || (s->pending == 0 && node->now_us >= s->ends_us + 2 * patience_us);
}

/* ---- What has happened ----------------------------------------------------------------------- */

void server_computed(struct parley_node *node)
{
    struct server *s = server_of(node);
    struct server_arrival *a = &s->arrivals[SERVER_OWN];
    struct server_worker *w = crew_find(s, self_of(node)->boot);
    a->state = ARRIVAL_FULL;
    a->boot = self_of(node)->boot;
    a->version = s->base;
    if (w) w->asks = true;
}

void server_received(struct parley_node *node, int arrival)
{
    server_of(node)->arrivals[arrival].state = ARRIVAL_FULL;
}

void server_merged(struct parley_node *node, int arrival, bool applied)
{
    struct server *s = server_of(node);
    bool sum = arrival > SERVER_OWN;
    s->pending--;
    if (!sum) s->arrivals[arrival].state = ARRIVAL_FREE;
    if (!applied) {
        s->summing--;
        return;
    }
    self_of(node)->holds += sum ? s->applied : 1;
    membership_changed(node, false);
}

void server_closed(struct parley_node *node, uint32_t conn)
{
    struct server *s = server_of(node);
    for (int i = 0; i < s->lanes; i++)
        if (s->arrivals[i].conn == conn && s->arrivals[i].state < ARRIVAL_FULL)
            server_release(node, i);
    for (uint32_t i = 0; i < s->count; i++) {
        struct server_worker *w = &s->workers[i];
        if (w->conn != conn || conn == 0) continue;
        w->conn = 0;
        w->asks = w->queued = false;
        w->since_us = node->now_us;
    }
}

/* ---- Beginning and giving up ----------------------------------------------------------------- */

bool server_is_idle(const struct parley_node *node)
{
    const struct server *s = server_of(node);
    return s->pending == 0 && models_streams(s) == 0 && !s->sending && s->state != WORKER_SETTING;
}

/* The optimizer's vectors start again from zero. */
static void reset(struct parley_node *node)
{
    struct server *s = server_of(node);
    uint32_t x = s->models[0].buffer, zero = s->models[1].buffer;
    strategy_op(node, PARLEY_UPDATE_TAKE, x, server_task(TASK_RESET, 0));
    struct parley_update *clear =
        strategy_op(node, PARLEY_UPDATE_COMBINE, zero, server_task(TASK_RESET, 0));
    clear->vector.other = x;
    struct parley_update *set = strategy_op(node, PARLEY_UPDATE_SET, x, server_task(TASK_RESET, 0));
    set->vector.vectors = node->config.vectors;
    for (uint32_t v = 1; v < node->config.vectors; v++)
        set->vector.buffers[v] = zero;
    s->pending += 3;
}

static void tell(struct parley_node *node)
{
    const struct server *s = server_of(node);
    unsigned long long version = s->version;
    if (s->former == NONE) {
        out_log(node, PARLEY_LOG_INFO, "this node serves the model, with %llu gradients in it",
                version);
        return;
    }
    const struct record *r = record_of(node, (uint32_t)s->former);
    unsigned long long lost = r->holds > s->version ? r->holds - s->version : 0;
    out_log(
        node, PARLEY_LOG_WARN,
        "this node serves the model now, in place of %s, with %llu gradients in it; what %s had "
        "merged since is lost: %llu that it told of",
        r->name, version, r->name, lost);
}

void server_open(struct parley_node *node)
{
    struct server *s = server_of(node);
    bool stale = s->giver != 0; /* its vectors are of another model than the one it was given */
    s->reign = s->reign > 0 ? s->reign + 1 : self_of(node)->boot;
    s->giver = 0;
    s->version = self_of(node)->holds;
    s->from = s->reign; /* what it computes from now on is of no other's model */
    if (s->state != WORKER_COMPUTING) worker_lose(node);
    s->count = s->summed = 0;
    s->seen = NEVER;
    models_forget(node);
    if (stale && node->config.vectors > 1) reset(node);
    if (stale) s->merged = 0;
    tell(node);
}

void server_shut(struct parley_node *node)
{
    struct server *s = server_of(node);
    for (int i = 0; i <= SERVER_OWN; i++)
        server_release(node, i);
    models_forget(node);
    s->count = s->summed = 0;
    s->closed = false;
    if (s->state != WORKER_COMPUTING) s->state = WORKER_IDLE;
}

/* With ps-asp the server waits for one more step of the fastest other at most: what it made alone,
 * while nobody was to be heard, need not be made up for. */
static void bound_own_clock(struct parley_node *node, struct server_worker *own)
{
    uint64_t most = crew_fastest_other(node);
    if (node->config.strategy != PARLEY_STRATEGY_PS_ASP || most == NEVER) return;
    if (own->clock > most + 1) own->clock = most + 1;
}

uint64_t server_deadline(const struct parley_node *node)
{
    enum { LOOK_US = 1000000 }; /* who has been silent for long */
    uint64_t look = node->now_us + LOOK_US, next = models_next_us(node);
    return next > node->now_us && next < look ? next : look;
}

void server_advance(struct parley_node *node)
{
    struct server *s = server_of(node);
    crew_muster(node);
    struct server_worker *own = crew_find(s, self_of(node)->boot);
    if (own) own->rests = !worker_may_compute(node) && s->state != WORKER_COMPUTING;
    if (own) bound_own_clock(node, own);
    merge_advance(node);
    if (s->ends) close_up(node);
    while (answer(node))
        ;
    call_up(node);
}
