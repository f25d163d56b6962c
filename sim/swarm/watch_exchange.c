/* watch_exchange.c: both sides of every exchange, side by side. */
#include <stdlib.h>

#include "core/strategy/rounds.h"
#include "swarm/watch_state.h"

enum { STUCK_US = 15000000 };

#define NOBODY UINT32_MAX /* no book, no buffer */

/* ---- Deltas ---------------------------------------------------------------------------------- */

/* Which exchange an ADD belongs to, and who is at the other end. */
struct side {
    bool initiates;
    uint64_t initiator; /* boot */
    uint32_t sequence;
    uint64_t peer;  /* boot */
    uint32_t named; /* buffer of the snapshot; NOBODY: in use elsewhere by now, or none */
    float weight;   /* of a push; else 0 */
    bool outer;     /* what is added is an outer optimizer's */
};

static bool side_of(const struct parley_node *node, uint32_t id, struct side *side)
{
    for (uint32_t i = 0; i < node->ops_count; i++) {
        const struct op *op = &node->ops[i];
        if (op->id != id || (op->kind != OP_ADD && op->kind != OP_DOUBT_ADD)) continue;
        uint64_t self = self_of(node)->boot;
        if (op->kind == OP_DOUBT_ADD) {
            const struct doubt *doubt = &node->exchange.doubts[op->owner];
            *side = (struct side){.initiator = doubt->initiator,
                                  .sequence = doubt->sequence,
                                  .peer = doubt->initiator,
                                  .named = NOBODY,
                                  .weight = (float)doubt->delta.weight,
                                  .outer = doubt->delta.trains && node->strategy->mix};
            return true;
        }
        const struct slot *slot = &node->exchange.slots[op->owner];
        uint64_t peer = record_of(node, slot->peer)->boot;
        bool initiates = slot->role == INITIATOR;
        *side = (struct side){.initiates = initiates,
                              .initiator = initiates ? self : peer,
                              .sequence = slot->sequence,
                              .peer = peer,
                              .named = slot->delta.weight > 0 && !initiates ? NOBODY : slot->own,
                              .weight = (float)slot->delta.weight,
                              .outer = slot->delta.trains && node->strategy->mix};
        return true;
    }
    return false;
}

static struct watch_entry *entry_of(struct sim_watch *watch, struct watch_book *book,
                                    uint32_t sequence)
{
    while (book->count <= sequence) {
        if (!sim_grow(watch->sim, &book->entries, book->count, &book->capacity,
                      sizeof *book->entries))
            return NULL;
        book->entries[book->count++] = (struct watch_entry){.responder = NOBODY};
    }
    return &book->entries[sequence];
}

/* Whether a is b, or its negative. */
static bool is_same(const float *a, const float *b, uint64_t n, float sign)
{
    bool same = true;
    for (uint64_t j = 0; j < n && same; j++)
        same = a[j] >= sign * b[j] && a[j] <= sign * b[j];
    return same;
}

/* The first side leaves its delta here, the second must bring the same with the other sign; what is
 * pushed is the same at both ends. Takes d. */
static const char *compare(struct sim_watch *watch, struct watch_entry *entry, float *d,
                           float factor, float sign)
{
    if (!entry->delta) {
        entry->factor = factor;
        entry->delta = d;
        return NULL;
    }
    bool same = entry->factor >= factor && entry->factor <= factor &&
                is_same(d, entry->delta, watch->sim->parameters, sign);
    free(d);
    free(entry->delta);
    entry->delta = NULL;
    return same ? NULL : "the two sides of an exchange add different deltas";
}

static float *read_delta(struct sim_watch *watch, struct sim_host *host, uint32_t buffer)
{
    float *d = malloc(watch->sim->parameters * sizeof *d);
    if (d) sim_buffer_read(host, buffer, d);
    return d;
}

static const char *added(struct sim_watch *watch, struct sim_host *host, const struct side *side,
                         const struct parley_update *update)
{
    struct watch_host *h = &watch->hosts[host->index];
    struct watch_book *book = watch_book_of(watch, side->initiator);
    struct watch_book *peer = watch_book_of(watch, side->peer);
    if (!book || !peer) return "an exchange with nobody";
    struct watch_entry *entry = entry_of(watch, book, side->sequence);
    if (!entry) return "no memory for an exchange";
    bool *mine = side->initiates ? &entry->decided : &entry->answered;
    if (*mine) return "a delta is added twice";
    *mine = true;
    if (!entry->decided) return "a delta is added before it was decided";
    if (side->initiates) {
        entry->responder = (uint32_t)(peer - watch->books);
        book->decided++;
    } else if (entry->responder != h->book) {
        return "a delta is added by somebody it was not decided with";
    }
    if (side->named != NOBODY) {
        if (h->snapshots[side->named % WATCH_BUFFERS].used)
            return "a snapshot has served two exchanges";
        h->snapshots[side->named % WATCH_BUFFERS].used = true;
    }
    if (side->outer) return NULL;
    float *d = read_delta(watch, host, update->vector.buffer);
    if (!d) return "no memory for a delta";
    return side->weight > 0 ? compare(watch, entry, d, side->weight, 1)
                            : compare(watch, entry, d, update->vector.factor, -1);
}

/* The term whose difference is in that lane. CHOCO adds it to a rest first, and then the rest. */
static struct watch_term term_of(const struct parley_node *node, int lane,
                                 const struct parley_update *update)
{
    const struct rounds *rounds = rounds_of(node);
    const struct neighbour *n = &rounds->neighbours[rounds->lanes[lane].neighbour];
    return (struct watch_term){.round = rounds->round,
                               .self = self_of(node)->boot,
                               .peer = record_of(node, (uint32_t)n->member)->boot,
                               .factor = update->vector.rest ? n->weight : update->vector.factor};
}

static struct watch_term *other_end(struct sim_watch *watch, const struct watch_term *end)
{
    for (uint32_t t = 0; t < watch->terms_count; t++) {
        struct watch_term *term = &watch->terms[t];
        if (term->round == end->round && term->self == end->peer && term->peer == end->self)
            return term;
    }
    return NULL;
}

/* A term of a round: the other end adds the same with the other sign, before or after. Which two
 * ends belong together is told by round and nodes, not by what they add: of models that have become
 * equal all terms are 0, and a node's own would be taken for another's. */
static const char *term_added(struct sim_watch *watch, struct sim_host *host, int lane,
                              const struct parley_update *update)
{
    struct watch_term end = term_of(host->node, lane, update);
    end.delta = read_delta(watch, host, strategy_lane_buffer(host->node, lane));
    if (!end.delta) return "no memory for a delta";
    struct watch_term *other = other_end(watch, &end);
    if (!other) {
        if (sim_grow(watch->sim, &watch->terms, watch->terms_count, &watch->terms_capacity,
                     sizeof *watch->terms)) {
            watch->terms[watch->terms_count++] = end;
            return NULL;
        }
        free(end.delta);
        return "no memory for a delta";
    }
    bool same = other->factor >= end.factor && other->factor <= end.factor &&
                is_same(end.delta, other->delta, watch->sim->parameters, -1);
    free(end.delta);
    free(other->delta);
    *other = watch->terms[--watch->terms_count];
    return same ? NULL : "the two ends of a term add different deltas";
}

/* The lane of a round whose term that operation adds; NONE. */
static int lane_added(const struct parley_node *node, uint32_t id)
{
    enum parley_strategy strategy = node->config.strategy;
    bool rounds = strategy == PARLEY_STRATEGY_GOSSIP_SYNC || strategy == PARLEY_STRATEGY_CHOCO;
    for (uint32_t i = 0; rounds && i < node->ops_count; i++)
        if (node->ops[i].kind == OP_STRATEGY && node->ops[i].id == id)
            return rounds_lane_added(node->ops[i].owner);
    return NONE;
}

uint32_t sim_watch_lonely(const struct sim_watch *watch)
{
    return watch->terms_count;
}

void watch_delta(struct sim_watch *watch, struct sim_host *host, const struct parley_update *update)
{
    struct side side;
    const char *breach = "a delta of no exchange is added";
    int lane = lane_added(host->node, update->vector.op);
    if (side_of(host->node, update->vector.op, &side))
        breach = added(watch, host, &side, update);
    else if (lane != NONE)
        breach = term_added(watch, host, lane, update);
    if (breach) sim_watch_fail(watch->sim, host->index, breach);
    watch->hosts[host->index].issued++;
}

/* ---- Slots ----------------------------------------------------------------------------------- */

void watch_slots(struct sim_watch *watch, struct sim_host *host)
{
    struct watch_host *h = &watch->hosts[host->index];
    for (int role = 0; role < ROLES; role++) {
        const struct slot *slot = &host->node->exchange.slots[role];
        if (slot->state == h->slots[role].state && slot->sequence == h->slots[role].sequence)
            continue;
        h->slots[role].state = slot->state;
        h->slots[role].sequence = slot->sequence;
        h->slots[role].since_us = watch->sim->queue.now_us;
        bool names = slot->state == (role == INITIATOR ? SLOT_OFFERED : SLOT_STREAMING) &&
                     (role == INITIATOR || slot->delta.weight <= 0);
        if (names && h->snapshots[slot->own % WATCH_BUFFERS].holds < h->issued)
            sim_watch_fail(watch->sim, host->index,
                           "a snapshot is named that lacks a delta decided before");
    }
}

void sim_watch_stuck(struct sim_watch *watch)
{
    uint64_t now_us = watch->sim->queue.now_us;
    for (uint32_t i = 0; i < watch->sim->nodes; i++) {
        const struct sim_host *host = &watch->sim->hosts[i];
        if (host->state != SIM_HOST_UP || host->paused || now_us < watch->calm_us) continue;
        for (int role = 0; role < ROLES; role++) {
            const struct slot *slot = &host->node->exchange.slots[role];
            uint64_t since_us = watch->hosts[i].slots[role].since_us;
            if (since_us < watch->calm_us) since_us = watch->calm_us;
            /* Nobody waits for an initiator that has no snapshot: a delta after the other, decided
             * by its own other slot, may outdate each that it takes. */
            bool waits = slot->state == SLOT_TAKING && role == INITIATOR;
            if (slot->state != SLOT_IDLE && slot->state != SLOT_RESERVED && !waits &&
                now_us > since_us + STUCK_US)
                sim_watch_fail(watch->sim, i, "an exchange is stuck");
        }
    }
}

/* ---- Offers ---------------------------------------------------------------------------------- */

static uint32_t offers_in(const uint8_t *bytes, size_t size)
{
    struct wire_header header;
    uint32_t count = 0;
    for (size_t at = 0; at + WIRE_HEADER_BYTES <= size; at += WIRE_HEADER_BYTES + header.size) {
        if (wire_header_read(bytes + at, &header) != 0) break; /* in the middle of a chunk */
        count += header.type == WIRE_OFFER;
    }
    return count;
}

static uint32_t answers_in(const struct parley_updates *updates, uint32_t conn)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < updates->count; i++) {
        const struct parley_update *update = &updates->list[i];
        struct wire_header header;
        if (update->type != PARLEY_UPDATE_SEND || update->send.conn != conn ||
            wire_header_read(update->send.bytes, &header) != 0)
            continue;
        count +=
            header.type == WIRE_ACCEPT || header.type == WIRE_BUSY || header.type == WIRE_REFUSE;
    }
    return count;
}

void watch_offers(struct sim_watch *watch, struct sim_host *host, const struct parley_event *event)
{
    const struct parley_updates *updates = &watch->sim->updates;
    uint32_t conn = event->received.conn;
    uint32_t offers = offers_in(event->received.bytes, updates->consumed);
    if (offers <= answers_in(updates, conn)) return;
    for (uint32_t i = 0; i < updates->count; i++)
        if ((updates->list[i].type == PARLEY_UPDATE_CLOSE && updates->list[i].close.conn == conn) ||
            updates->list[i].type == PARLEY_UPDATE_FINISHED)
            return;
    sim_watch_fail(watch->sim, host->index, "an offer is not answered at once");
}

/* ---- The end --------------------------------------------------------------------------------- */

/* Decisions that the node of `book` was to add its side of, and has not. */
static uint64_t missing(const struct sim_watch *watch, uint32_t book)
{
    uint64_t count = 0;
    for (uint32_t b = 0; b < watch->books_count; b++)
        for (uint32_t i = 0; i < watch->books[b].count; i++) {
            const struct watch_entry *entry = &watch->books[b].entries[i];
            count += entry->decided && !entry->answered && entry->responder == book;
        }
    return count;
}

void sim_watch_end(struct sim_watch *watch)
{
    for (uint32_t i = 0; i < watch->sim->nodes; i++) {
        const struct sim_host *host = &watch->sim->hosts[i];
        if (host->state == SIM_HOST_OFF) continue;
        struct parley_view view;
        parley_sim_view(watch->sim, i, &view);
        if (missing(watch, watch->hosts[i].book) > view.ledger.dropped + view.ledger.in_doubt)
            sim_watch_fail(watch->sim, i, "it lost its side of a decision, uncounted");
    }
}
