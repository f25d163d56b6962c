/* crew.c: who trains, as the one who serves sees it; server.h has the whole.
 *
 * Failure modes: members that go (their places are freed, what they send is dropped), or say
 * nothing any more (nobody waits for them).
 */
#include "core/strategy/ps/server.h"
#include "core/training/training.h"

struct server_worker *crew_find(struct server *s, uint64_t boot)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (s->workers[i].boot == boot) return &s->workers[i];
    return NULL;
}

struct server_worker *crew_add(struct parley_node *node, int member)
{
    struct server *s = server_of(node);
    uint64_t boot = record_of(node, (uint32_t)member)->boot;
    struct server_worker *w = crew_find(s, boot);
    if (w || s->count == PARLEY_SERVED_MAX) return w;
    w = &s->workers[s->count++];
    *w = (struct server_worker){
        .boot = boot, .member = member, .holds = NEVER, .since_us = node->now_us};
    if (member != node->self) return w;
    w->asks = s->state != WORKER_COMPUTING;
    w->clock = s->clock;
    return w;
}

/* What has come whole stays. */
static void leave(struct parley_node *node, uint32_t i)
{
    struct server *s = server_of(node);
    for (int a = 0; a < s->lanes; a++)
        if (s->arrivals[a].boot == s->workers[i].boot && s->arrivals[a].state < ARRIVAL_FULL)
            server_release(node, a);
    s->workers[i] = s->workers[--s->count];
}

/* A request may come before the record that says that its sender trains. */
static bool is_here(const struct parley_node *node, const struct server_worker *w)
{
    const struct record *r = record_of(node, (uint32_t)w->member);
    bool asks = record_is_live(r) && w->conn != 0 && r->phase == PARLEY_PHASE_JOINING;
    return r->boot == w->boot && (asks || training_counts(node, (uint32_t)w->member));
}

void crew_muster(struct parley_node *node)
{
    struct server *s = server_of(node);
    bool early = node->now_us < node->training.early_us;
    if (s->seen == node->roster->news && s->early == early) return;
    s->seen = node->roster->news;
    s->early = early;
    for (uint32_t i = s->count; i-- > 0;)
        if (!is_here(node, &s->workers[i])) leave(node, i);
    for (uint32_t i = 0; i < node->roster->count; i++)
        if (training_counts(node, i)) crew_add(node, (int)i);
}

bool crew_waits_for(struct parley_node *node, const struct server_worker *w)
{
    if (w->rests) return false;
    if (w->member == node->self) return true;
    struct conn *conn = connection_of(node, w->member);
    uint64_t heard_us = conn && conn->heard_us > w->since_us ? conn->heard_us : w->since_us;
    return node->now_us < heard_us + node->config.progress_timeout_us;
}

bool crew_is_pending(const struct server *s, const struct server_worker *w)
{
    for (int a = 0; a <= SERVER_OWN; a++)
        if (s->arrivals[a].boot == w->boot &&
            (s->arrivals[a].state == ARRIVAL_RECEIVING || s->arrivals[a].state == ARRIVAL_FULL))
            return true;
    return w->queued;
}

uint64_t crew_slowest(struct parley_node *node)
{
    struct server *s = server_of(node);
    uint64_t least = NEVER;
    for (uint32_t i = 0; i < s->count; i++) {
        const struct server_worker *w = &s->workers[i];
        if (!crew_waits_for(node, w)) continue;
        if (w->conn == 0 && w->member != node->self) return 0;
        if (w->clock < least) least = w->clock;
    }
    return least;
}

bool crew_is_ahead(const struct parley_node *node, const struct server_worker *w, uint64_t slowest)
{
    return w->clock > slowest && w->clock - slowest > node->config.staleness;
}

uint64_t crew_fastest_other(struct parley_node *node)
{
    struct server *s = server_of(node);
    uint64_t most = 0;
    bool any = false;
    for (uint32_t i = 0; i < s->count; i++) {
        const struct server_worker *w = &s->workers[i];
        if (w->member == node->self || !crew_waits_for(node, w)) continue;
        any = true;
        if (w->clock > most) most = w->clock;
    }
    return any ? most : NEVER;
}

bool crew_clocks(struct parley_node *node, const struct server_worker *w, uint64_t *low,
                 uint64_t *high)
{
    struct server *s = server_of(node);
    *low = NEVER;
    *high = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        const struct server_worker *other = &s->workers[i];
        bool known = other->conn != 0 || other->member == node->self;
        if (other == w || !known || !crew_waits_for(node, other)) continue;
        if (other->clock < *low) *low = other->clock;
        if (other->clock > *high) *high = other->clock;
    }
    return *low != NEVER;
}
