/* merge.c: gradients go into the sum of a round, or each into x as it comes; server.h has the
 * whole.
 *
 * Failure modes: a gradient of an older model than the round's, or a second one of its sender, is
 * dropped; who is late does not hold up a round for ever.
 */
#include "core/strategy/ps/server.h"

/* The mean of so many gradients. How stale they are slows the rate, and leaves the gradient what it
 * is: weight decay and clipping go by that, and some rules don't even see its scale. */
static void apply(struct parley_node *node, uint32_t buffer, uint32_t gradients, uint64_t staleness,
                  int arrival)
{
    struct server *s = server_of(node);
    struct parley_update *update =
        strategy_op(node, PARLEY_UPDATE_APPLY, buffer, server_task(TASK_APPLY, arrival));
    update->vector.factor = 1.0f / (float)gradients;
    update->vector.weight = (double)staleness;
    update->vector.live = gradients;
    update->vector.steps = s->merged++;
    s->pending++;
    s->version += gradients;
    s->rounds++;
    training_counted(node);
}

void merge_drop(struct parley_node *node, struct server_worker *w)
{
    if (w) w->wants = server_of(node)->version;
}

static void add_to_sum(struct parley_node *node, int index, struct server_worker *w)
{
    struct server *s = server_of(node);
    struct server_arrival *a = &s->arrivals[index];
    a->state = ARRIVAL_FREE;
    if (a->version != s->version || (w && w->in)) {
        merge_drop(node, w);
        return;
    }
    if (w) w->in = true;
    if (s->summed++ == 0) {
        uint32_t swap = s->sum;
        s->sum = a->buffer;
        a->buffer = swap;
        return;
    }
    a->state = ARRIVAL_MERGING;
    strategy_combine(node, s->sum, 1, a->buffer, 1, server_task(TASK_SUM, index));
    s->summing++;
    s->pending++;
}

/* Gradients that went into x since the model it was computed at; taken for the usual number, that
 * of the workers, where it is less: else those that happen to come first would weigh most. */
static uint64_t staleness_of(const struct server *s, const struct server_arrival *a)
{
    uint64_t since = s->version - a->version;
    return since > s->count ? since : s->count;
}

void merge_finish_round(struct parley_node *node)
{
    struct server *s = server_of(node);
    apply(node, s->sum, s->summed, 1, SERVER_OWN + 1);
    s->applied = s->summed;
    s->summed = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        s->workers[i].clock += s->workers[i].in;
        s->workers[i].in = false;
        s->workers[i].wants = s->version;
    }
}

/* Its own gradient is waited for, as x can't change before it is there. */
static bool round_is_full(struct parley_node *node)
{
    struct server *s = server_of(node);
    uint32_t missing = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        const struct server_worker *w = &s->workers[i];
        if (w->in || !crew_waits_for(node, w)) continue;
        if (w->member == node->self) return false;
        missing++;
    }
    return s->summed > 0 && s->summing == 0 && missing <= node->config.backup_workers;
}

void merge_advance(struct parley_node *node)
{
    struct server *s = server_of(node);
    for (int i = 0; i <= SERVER_OWN; i++) {
        struct server_arrival *a = &s->arrivals[i];
        if (a->state != ARRIVAL_FULL) continue;
        struct server_worker *w = crew_find(s, a->boot);
        if (server_sums(node)) {
            add_to_sum(node, i, w);
            continue;
        }
        a->state = ARRIVAL_MERGING;
        apply(node, a->buffer, 1, staleness_of(s, a), i);
        if (!w) continue;
        w->clock++;
        w->wants = s->version;
    }
    if (server_sums(node) && round_is_full(node)) merge_finish_round(node);
}
