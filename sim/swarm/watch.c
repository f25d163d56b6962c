/* watch.c: the hooks, the books, and what hangs on buffers and counts. */
#include "swarm/watch_state.h"

#include <stdio.h>
#include <stdlib.h>

void sim_watch_fail(struct parley_sim *sim, uint32_t node, const char *invariant)
{
    char text[140];
    snprintf(text, sizeof text, "n%u: %s (event %llu)", node, invariant,
             (unsigned long long)sim->events);
    sim_fail(sim, PARLEY_EINVARIANT, text);
}

void sim_watch_free(struct sim_watch *watch)
{
    if (!watch) return;
    for (uint32_t b = 0; b < watch->books_count; b++) {
        for (uint32_t i = 0; i < watch->books[b].count; i++)
            free(watch->books[b].entries[i].delta);
        free(watch->books[b].entries);
    }
    for (uint32_t t = 0; t < watch->terms_count; t++)
        free(watch->terms[t].delta);
    free(watch->terms);
    free(watch->books);
    free(watch->hosts);
    free(watch);
}

void sim_watch_calm(struct sim_watch *watch, uint64_t time_us)
{
    watch->calm_us = time_us;
}

void sim_watch_apart(struct sim_watch *watch)
{
    watch->apart = true;
}

struct watch_book *watch_book_of(struct sim_watch *watch, uint64_t boot)
{
    for (uint32_t b = 0; b < watch->books_count; b++)
        if (watch->books[b].boot == boot) return &watch->books[b];
    return NULL;
}

static void start(struct sim_watch *watch, struct sim_host *host)
{
    if (!sim_grow(watch->sim, &watch->books, watch->books_count, &watch->books_capacity,
                  sizeof *watch->books))
        return;
    watch->hosts[host->index] = (struct watch_host){.book = watch->books_count};
    watch->books[watch->books_count++] = (struct watch_book){.boot = self_of(host->node)->boot};
}

/* ---- Buffers --------------------------------------------------------------------------------- */

static const struct buffer_set none;

static struct buffer_set one(uint32_t buffer)
{
    struct buffer_set set = none;
    buffers_add(&set, buffer);
    return set;
}

/* The update hands `reads` to an operation and changes `writes`: at once, or in its turn. */
static void use_part(struct sim_watch *watch, struct sim_host *host,
                     const struct parley_update *update, struct buffer_set reads,
                     struct buffer_set writes, uint64_t from, uint64_t size)
{
    struct watch_host *h = &watch->hosts[host->index];
    enum parley_update_type type = update->type;
    for (uint32_t i = 0; i < h->pending_count; i++) {
        const struct watch_operation *other = &h->pending[i];
        /* STORE waits for nothing, and nothing waits for a chunk. */
        bool races = type == PARLEY_UPDATE_STORE || other->type == PARLEY_UPDATE_SEND_CHUNK;
        if (races && buffers_meet(&other->buffers, &writes) && other->from < from + size &&
            from < other->end)
            sim_watch_fail(watch->sim, host->index, "a buffer changes while it is read");
    }
    if (type == PARLEY_UPDATE_STORE || h->pending_count == WATCH_OPERATIONS) return;
    uint32_t op = type == PARLEY_UPDATE_SEND_CHUNK ? update->chunk.op : update->vector.op;
    buffers_join(&reads, &writes);
    h->pending[h->pending_count++] = (struct watch_operation){op, type, reads, from, from + size};
}

static void use(struct sim_watch *watch, struct sim_host *host, const struct parley_update *update,
                struct buffer_set reads, struct buffer_set writes)
{
    use_part(watch, host, update, reads, writes, 0, UINT64_MAX / 2);
}

/* With an operation all COMBINEs are over that were given earlier and use one of its buffers,
 * though their DONE may come later: drivers keep that order. */
static void operation_done(struct sim_watch *watch, struct sim_host *host, uint32_t op)
{
    struct watch_host *h = &watch->hosts[host->index];
    struct watch_operation done = {.id = op};
    for (uint32_t i = 0; i < h->pending_count; i++) {
        if (h->pending[i].id != op) continue;
        done = h->pending[i];
        h->pending[i] = h->pending[--h->pending_count];
        break;
    }
    if (!buffers_meet(&done.buffers, &done.buffers)) return; /* over with a later one */
    watch->books[h->book].added += done.type == PARLEY_UPDATE_ADD || done.type == PARLEY_UPDATE_MIX;
    h->issued += done.type == PARLEY_UPDATE_SET;
    for (uint32_t i = 0; i < h->pending_count; i++) {
        const struct watch_operation *other = &h->pending[i];
        if (other->type != PARLEY_UPDATE_COMBINE || done.type == PARLEY_UPDATE_SEND_CHUNK ||
            other->id > op || !buffers_meet(&other->buffers, &done.buffers))
            continue;
        h->pending[i--] = h->pending[--h->pending_count];
    }
}

static void check_ledger(struct sim_watch *watch, struct sim_host *host)
{
    const struct watch_book *book = &watch->books[watch->hosts[host->index].book];
    const struct parley_ledger *ledger = &host->node->ledger;
    if (ledger->applied != book->added)
        sim_watch_fail(watch->sim, host->index, "its ledger does not count what it has added");
}

static void check_decided(struct sim_watch *watch, struct sim_host *host)
{
    const struct watch_book *book = &watch->books[watch->hosts[host->index].book];
    if (host->node->ledger.committed < book->decided)
        sim_watch_fail(watch->sim, host->index, "its ledger does not count what it has decided");
}

static void taken(struct sim_watch *watch, struct sim_host *host,
                  const struct parley_update *update)
{
    struct watch_host *h = &watch->hosts[host->index];
    uint64_t holds = h->issued;
    /* It comes after what is to be set before, which is counted when that is done. */
    for (uint32_t i = 0; i < h->pending_count; i++)
        holds += h->pending[i].type == PARLEY_UPDATE_SET;
    for (uint32_t v = 0; v < update->vector.vectors; v++) {
        uint32_t buffer = update->vector.buffers[v] % WATCH_BUFFERS;
        h->snapshots[buffer].holds = holds;
        h->snapshots[buffer].used = false;
    }
}

/* ---- The hooks ------------------------------------------------------------------------------- */

static void on_event(struct sim_host *host, const struct parley_event *event, void *arg)
{
    struct sim_watch *watch = arg;
    if (event->type == PARLEY_EVENT_START) start(watch, host);
    if (event->type == PARLEY_EVENT_DONE) operation_done(watch, host, event->done.op);
    if (event->type == PARLEY_EVENT_RECEIVED) watch_offers(watch, host, event);
    check_ledger(watch, host);
    watch_slots(watch, host);
    watch_candidate(watch, host);
}

static void on_due(struct sim_host *host, const struct parley_update *update, void *arg)
{
    struct sim_watch *watch = arg;
    switch (update->type) {
    case PARLEY_UPDATE_SEND_CHUNK:
        use_part(watch, host, update, one(update->chunk.buffer), none,
                 update->chunk.part ? update->chunk.offset : 0,
                 update->chunk.part ? update->chunk.size : UINT64_MAX / 2);
        break;
    case PARLEY_UPDATE_STORE:
        use_part(watch, host, update, none, one(update->store.buffer), update->store.offset,
                 update->store.size);
        break;
    case PARLEY_UPDATE_TAKE:
        use(watch, host, update, none, buffers_of(update));
        taken(watch, host, update);
        break;
    case PARLEY_UPDATE_SET:
        use(watch, host, update, buffers_of(update), none);
        break;
    case PARLEY_UPDATE_ADD:
    case PARLEY_UPDATE_MIX:
        use(watch, host, update, one(update->vector.buffer), none);
        watch_delta(watch, host, update);
        check_decided(watch, host);
        break;
    case PARLEY_UPDATE_GRADIENT:
        use(watch, host, update, update->vector.at_other ? one(update->vector.other) : none,
            one(update->vector.buffer));
        break;
    case PARLEY_UPDATE_ENCODE:
        use(watch, host, update, none, one(update->vector.buffer));
        break;
    case PARLEY_UPDATE_COMBINE:
        use_part(watch, host, update, one(update->vector.other), one(update->vector.buffer),
                 update->vector.offset, update->vector.size);
        break;
    case PARLEY_UPDATE_DIFF:
        use(watch, host, update, one(update->vector.other), one(update->vector.buffer));
        break;
    case PARLEY_UPDATE_PUBLISH:
        watch_publish(watch, host);
        /* fall through */
    case PARLEY_UPDATE_APPLY:
    case PARLEY_UPDATE_SKETCH:
    case PARLEY_UPDATE_HASH:
    case PARLEY_UPDATE_WRITE:
        use(watch, host, update, one(update->vector.buffer), none);
        break;
    case PARLEY_UPDATE_PHASE:
        watch_phase(watch, host, update->phase.phase);
        break;
    default:
        break;
    }
}

int sim_watch_new(struct sim_watch **result, struct parley_sim *sim)
{
    struct sim_watch *watch = calloc(1, sizeof *watch);
    if (!watch) return PARLEY_ENOMEM;
    watch->sim = sim;
    watch->calm_us = UINT64_MAX;
    watch->hosts = calloc(sim->nodes, sizeof *watch->hosts);
    if (!watch->hosts) {
        free(watch);
        return PARLEY_ENOMEM;
    }
    sim->on_event = on_event;
    sim->on_due = on_due;
    sim->on_event_arg = watch;
    *result = watch;
    return 0;
}
