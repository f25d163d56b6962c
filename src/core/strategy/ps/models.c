/* models.c: the model as it is served: snapshots of x, and their way to the workers; server.h has
 * the whole.
 *
 * They leave one after the other: where all go over one line, the first worker computes, and sends
 * its gradient, while the others get their model. What one takes that has the line for itself is
 * found out on the way: the least that any took, and a little more as time goes on.
 *
 * Failure modes: a worker, or its line, that takes a model slowly or not at all (nobody waits for
 * it), a link that breaks, a model that is not finite (training.c ends the run).
 */
#include <assert.h>

#include "core/strategy/ps/server.h"

enum {
    UNKNOWN_US = 1000000, /* a pace that nobody has set yet */
    SHORT_US = 4000,      /* not worth waiting for: a timer may be late by as much */
    SLOW_TIMES = 4,       /* the pace: then it is the worker's line that is narrow */
    SLOWER_PART = 32
};

/* One that was made for another may be from before the gradient that `w` had to wait for. The last
 * model is for everybody. */
static bool will_do(const struct parley_node *node, const struct server_model *m,
                    const struct server_worker *w)
{
    bool bound = node->config.strategy == PARLEY_STRATEGY_PS_SSP && !server_of(node)->ends;
    return m->version >= w->wants && !(bound && crew_is_ahead(node, w, m->slowest));
}

int models_find(const struct parley_node *node, const struct server_worker *w, bool *comes)
{
    const struct server *s = server_of(node);
    int best = NONE;
    *comes = false;
    for (int i = 0; i < SERVER_MODELS; i++) {
        const struct server_model *m = &s->models[i];
        if (!will_do(node, m, w)) continue;
        *comes = *comes || m->state == SNAPSHOT_TAKING;
        if (m->state == SNAPSHOT_HERE && (best == NONE || m->version > s->models[best].version))
            best = i;
    }
    return best;
}

void models_take(struct parley_node *node)
{
    struct server *s = server_of(node);
    for (int i = 0; i < SERVER_MODELS; i++) {
        struct server_model *m = &s->models[i];
        if (m->users > 0 || m->state == SNAPSHOT_TAKING) continue;
        m->state = SNAPSHOT_TAKING;
        m->version = s->version;
        m->rounds = s->rounds;
        m->slowest = crew_slowest(node);
        s->pending++;
        strategy_op(node, PARLEY_UPDATE_TAKE, m->buffer, server_task(TASK_TAKE, i));
        return;
    }
}

void models_taken(struct parley_node *node, int model, bool finite)
{
    struct server *s = server_of(node);
    struct server_model *m = &s->models[model];
    s->pending--;
    m->state = finite && m->version != NEVER ? SNAPSHOT_HERE : SNAPSHOT_NONE;
    if (!finite) node->training.diverged++;
}

void models_forget(struct parley_node *node)
{
    struct server *s = server_of(node);
    s->pace_us = UNKNOWN_US;
    for (int i = 0; i < SERVER_MODELS; i++) {
        struct server_model *m = &s->models[i];
        if (m->state == SNAPSHOT_TAKING)
            m->version = NEVER;
        else
            m->state = SNAPSHOT_NONE;
    }
}

/* ---- To the workers -------------------------------------------------------------------------- */

uint32_t models_streams(const struct server *s)
{
    uint32_t users = 0;
    for (int i = 0; i < SERVER_MODELS; i++)
        users += s->models[i].users;
    return users;
}

uint64_t models_next_us(const struct parley_node *node)
{
    const struct server *s = server_of(node);
    uint64_t at = 0;
    if (models_streams(s) == SERVER_STREAMS) return NEVER;
    if (s->pace_us < SHORT_US) return node->now_us;
    for (int i = 0; i < SERVER_STREAMS; i++) {
        const struct server_stream *stream = &s->streams[i];
        uint64_t late_us = stream->begun_us + s->pace_us + s->pace_us / 4;
        if (stream->boot != 0 && !stream->slow && late_us > at) at = late_us;
    }
    return at;
}

void models_send(struct parley_node *node, struct server_worker *w, struct conn *conn, int model)
{
    struct server *s = server_of(node);
    int at = 0;
    while (s->streams[at].boot != 0) /* fewer than all are */
        at++;
    bool slow = w->took_us > SLOW_TIMES * s->pace_us;
    s->streams[at] = (struct server_stream){w->boot, model, node->now_us, slow};
    s->models[model].users++;
    struct strategy_part part = {
        .tag = w->sequence, .buffer = s->models[model].buffer, .size = vector_bytes(node)};
    bool sent = strategy_send(node, conn->id, &part, 1 + at);
    assert(sent);
    (void)sent;
}

void models_sent(struct parley_node *node, int stream, bool ok)
{
    struct server *s = server_of(node);
    struct server_stream *ended = &s->streams[stream];
    struct server_worker *w = crew_find(s, ended->boot);
    uint64_t took_us = node->now_us - ended->begun_us;
    ended->boot = 0;
    s->models[ended->model].users--;
    if (w) w->took_us = took_us;
    if (!ok) return;
    s->pace_us += s->pace_us / SLOWER_PART + 1;
    if (took_us < s->pace_us) s->pace_us = took_us;
}
