/* link.c: the two ends of a connection, the messages between them, and how it breaks.
 *
 * A message waits in its end's queue until the window is open, goes through the sender's line, and
 * arrives a latency later. A link lives as long as an end, an item or a message refers to it.
 */
#include <stdlib.h>

#include "core/wire/wire.h"
#include "world/network/network.h"
#include "world/network/route.h"

/* ---- Links ----------------------------------------------------------------------------------- */

struct sim_link *sim_link_new(struct parley_sim *sim)
{
    struct sim_link *link = calloc(1, sizeof *link);
    if (!link) {
        sim_fail(sim, PARLEY_ENOMEM, "no memory for a connection");
        return NULL;
    }
    link->next = sim->links;
    if (sim->links) sim->links->previous = link;
    sim->links = link;
    link->end[0].state = link->end[1].state = SIM_END_CLOSED;
    return link;
}

static void link_free(struct parley_sim *sim, struct sim_link *link)
{
    if (link->previous)
        link->previous->next = link->next;
    else
        sim->links = link->next;
    if (link->next) link->next->previous = link->previous;
    free(link->end[0].rest);
    free(link->end[1].rest);
    free(link);
}

void sim_link_release(struct parley_sim *sim, struct sim_link *link)
{
    if (--link->users == 0) link_free(sim, link);
}

/* ---- Ends by connection ---------------------------------------------------------------------- */

/* The place of conn, or the free one where it would stand. */
static uint32_t place_of(const struct sim_host *host, uint32_t conn)
{
    uint32_t mask = host->links_places - 1, at = conn & mask;
    while (host->links[at].conn != 0 && host->links[at].conn != conn)
        at = (at + 1) & mask;
    return at;
}

static bool places_grow(struct sim_host *host)
{
    struct sim_place *old = host->links;
    uint32_t count = host->links_places, more = count ? 2 * count : 8;
    struct sim_place *grown = calloc(more, sizeof *grown);
    if (!grown) {
        sim_fail(host->sim, PARLEY_ENOMEM, "no memory for a connection");
        return false;
    }
    host->links = grown;
    host->links_places = more;
    for (uint32_t i = 0; i < count; i++)
        if (old[i].conn) grown[place_of(host, old[i].conn)] = old[i];
    free(old);
    return true;
}

/* Those after it that would be found no longer move up, so that no gap parts them from where their
 * probing starts (Knuth, TAOCP vol. 3, 6.4, algorithm R). */
static void place_free(struct sim_host *host, uint32_t gap)
{
    uint32_t mask = host->links_places - 1;
    host->links_count--;
    for (uint32_t at = (gap + 1) & mask; host->links[at].conn != 0; at = (at + 1) & mask) {
        uint32_t home = host->links[at].conn & mask;
        if (((at - home) & mask) < ((at - gap) & mask)) continue;
        host->links[gap] = host->links[at];
        gap = at;
    }
    host->links[gap] = (struct sim_place){0};
}

bool sim_end_attach(struct sim_link *link, int side, struct sim_host *host, uint32_t conn,
                    enum sim_end_state state)
{
    if (2 * (host->links_count + 1) > host->links_places && !places_grow(host)) return false;
    host->links[place_of(host, conn)] = (struct sim_place){link, conn, (uint8_t)side};
    host->links_count++;
    struct sim_end *end = &link->end[side];
    end->host = host;
    end->epoch = host->epoch;
    end->conn = conn;
    end->state = state;
    link->users++;
    return true;
}

void sim_end_detach(struct sim_link *link, int side)
{
    struct sim_end *end = &link->end[side];
    struct sim_host *host = end->host;
    end->state = SIM_END_CLOSED;
    place_free(host, place_of(host, end->conn));
    free(end->rest);
    end->rest = NULL;
    end->rest_size = 0;
    sim_link_release(host->sim, link);
}

struct sim_end *sim_end_find(struct sim_host *host, uint32_t conn, struct sim_link **link)
{
    if (host->links_count == 0) return NULL;
    const struct sim_place *place = &host->links[place_of(host, conn)];
    if (place->conn == 0) return NULL;
    *link = place->link;
    return &place->link->end[place->side];
}

void sim_end_lost(struct sim_host *host, uint32_t conn)
{
    struct sim_link *link;
    struct sim_end *end = sim_end_find(host, conn, &link);
    if (end) end->lost = true;
}

int sim_end_side(const struct sim_link *link, const struct sim_end *end)
{
    return end == &link->end[1];
}

/* An item about one end of a link; the link is counted. */
void sim_link_put(struct sim_link *link, int side, enum sim_kind kind, uint64_t time_us,
                  uint64_t number)
{
    struct sim_end *end = &link->end[side];
    struct sim_item item = sim_item_for(end->host, kind);
    item.time_us = time_us;
    item.data = link;
    item.side = (uint8_t)side;
    item.number = number;
    item.epoch = end->epoch;
    link->users++;
    sim_put(end->host->sim, item);
}

/* ---- Messages -------------------------------------------------------------------------------- */

void sim_message_free(struct parley_sim *sim, struct sim_message *message)
{
    const struct sim_end *end = &message->link->end[message->side];
    if (message->chunk && end->host->epoch == message->epoch)
        sim_done_chunk(end->host, message->op, end->conn);
    sim_link_release(sim, message->link);
    sim_block_release(sim, message->block);
    free(message);
}

struct sim_message *sim_message_new(struct sim_link *link, int side, size_t head_size)
{
    struct sim_message *message = malloc(sizeof *message + head_size);
    if (!message) {
        sim_fail(link->end[side].host->sim, PARLEY_ENOMEM, "no memory for a message");
        return NULL;
    }
    *message = (struct sim_message){
        .link = link,
        .epoch = link->end[side].epoch,
        .side = (uint8_t)side,
        .size = head_size,
        .head_size = head_size,
    };
    link->users++;
    return message;
}

void sim_message_put(struct sim_message *message, enum sim_kind kind, uint64_t time_us)
{
    struct sim_link *link = message->link;
    const struct sim_end *end = &link->end[kind == SIM_RECEIVED ? !message->side : message->side];
    struct sim_item item = sim_item_for(end->host, kind);
    item.time_us = time_us;
    item.data = message;
    item.epoch = end->epoch;
    sim_put(end->host->sim, item);
}

/* True if the next message of this end cuts the connection instead of arriving. */
static bool sim_end_cut(struct sim_link *link, int side)
{
    struct sim_end *end = &link->end[side];
    struct parley_sim *sim = end->host->sim;
    double stays = (1 - end->host->cut_rate) * (1 - link->end[!side].host->cut_rate);
    if (stays == 1 || end->host == link->end[!side].host || rng_unit(&sim->draws) < stays)
        return false;
    sim_end_reset(link, side);
    sim_end_closing(link, side, PARLEY_CLOSED_RESET, sim->queue.now_us);
    return true;
}

/* Nothing more comes through from this end, and after all its tries it gives up. */
static void sim_end_break(struct sim_link *link, int side)
{
    struct sim_end *end = &link->end[side];
    const struct parley_sim *sim = end->host->sim;
    uint64_t time_us = sim->queue.now_us;
    if (end->broken) return;
    end->broken = true;
    for (uint32_t losses = 0; losses < sim->options.base.again.most; losses++)
        time_us += sim_again_us(&sim->options.base.again, 0, losses);
    sim_link_put(link, side, SIM_BREAK, time_us, 0);
}

/* Its core wants to know only lest too much waits: it hears of many messages at once. */
static void sent(struct sim_link *link, int side, size_t size)
{
    struct sim_end *end = &link->end[side];
    bool told = end->sent_bytes >= SIM_SENT_BYTES;
    end->sent_bytes += size;
    if (end->sent_bytes >= SIM_SENT_BYTES && !told)
        sim_link_put(link, side, SIM_SENT, end->host->sim->queue.now_us, 0);
}

/* Of the bytes sent, those that are to stay few however many nodes there are. */
static void count_upkeep(struct sim_host *host, const struct sim_message *message)
{
    struct wire_header header;
    if (message->head_size < WIRE_HEADER_BYTES || wire_header_read(message->head, &header)) return;
    if (wire_is_membership(header.type)) host->bytes_membership += message->size;
    if (header.type == WIRE_SKETCHES) host->bytes_sketches += message->size;
}

/* The message has gone through its sender's line. */
void sim_message_left(struct sim_message *message)
{
    struct sim_link *link = message->link;
    struct sim_end *end = &link->end[message->side];
    struct parley_sim *sim = end->host->sim;
    if (end->state != SIM_END_OPEN && !end->flushing) {
        sim_message_free(sim, message);
        return;
    }
    if (message->what == SIM_MESSAGE_BYTES) {
        sim->bytes_sent += message->size;
        end->host->bytes_sent += message->size;
        count_upkeep(end->host, message);
        if (message->chunk && message->epoch == end->host->epoch)
            sim_done_chunk(end->host, message->op, 0);
        else if (!message->block && end->state == SIM_END_OPEN)
            sent(link, message->side, message->size);
        message->chunk = false;
    }
    const struct sim_host *to = link->end[!message->side].host;
    bool lost = false;
    end->way_us = sim_message_us(sim, end->host, to, message->size, &lost);
    uint64_t arrival =
        end->way_us + sim_site_line_us(sim, end->host, to, message->size, &message->span_us);
    if (end->broken || lost || sim_end_cut(link, message->side)) {
        if (lost) sim_end_break(link, message->side);
        sim_message_free(sim, message);
        return;
    }
    if (arrival < end->arrival_us) arrival = end->arrival_us;
    end->arrival_us = arrival;
    sim_message_put(message, SIM_ARRIVED, arrival);
}

/* What the narrowest line takes on the way there and back, and in the queue before it. */
static uint64_t window_bytes(const struct sim_link *link, int side)
{
    const struct sim_end *end = &link->end[side];
    uint64_t rate = sim_narrowest_bytes(end->host, link->end[!side].host);
    double bytes = (double)rate * (double)(2 * end->way_us + SIM_QUEUE_US) / 1e6;
    if (rate == 0 || bytes > SIM_WINDOW_BYTES) return SIM_WINDOW_BYTES;
    return bytes > SIM_WINDOW_LEAST_BYTES ? (uint64_t)bytes : SIM_WINDOW_LEAST_BYTES;
}

static bool is_open_for(const struct sim_end *end, const struct sim_message *message)
{
    return end->flight_bytes == 0 ||
           end->flight_bytes + message->size <= window_bytes(message->link, message->side);
}

/* A chunk on a narrow line comes in pieces, by which the other end hears that this one lives: so
 * many floats at once. */
static size_t piece_bytes(const struct sim_link *link)
{
    uint64_t rate = sim_narrowest_bytes(link->end[0].host, link->end[1].host);
    uint64_t bytes = rate / (1000000 / SIM_QUEUE_US) & ~UINT64_C(3);
    if (rate == 0 || bytes > PARLEY_CHUNK_BYTES_MAX) return PARLEY_CHUNK_BYTES_MAX;
    return bytes > SIM_PIECE_LEAST_BYTES ? bytes : SIM_PIECE_LEAST_BYTES;
}

/* Leaves a piece in the message; the rest is the next. */
static void split(struct sim_end *end, struct sim_message *message)
{
    size_t floats = message->size - message->head_size;
    size_t piece = floats > SIM_PIECE_LEAST_BYTES ? piece_bytes(message->link) : floats;
    if (!message->block || floats <= piece) return;
    struct sim_message *rest = sim_message_new(message->link, message->side, 0);
    if (!rest) return;
    rest->epoch = message->epoch;
    rest->op = message->op;
    rest->chunk = message->chunk;
    rest->block = message->block;
    rest->block->users++;
    rest->offset = message->offset + piece;
    rest->size = floats - piece;
    rest->next = message->next;
    message->next = rest;
    if (end->last == message) end->last = rest;
    message->size -= rest->size;
    message->part = rest->part = true;
    message->chunk = false;
}

void sim_end_pump(struct sim_end *end)
{
    if (end->state != SIM_END_OPEN && !end->flushing) return;
    struct parley_sim *sim = end->host->sim;
    while (end->first) {
        struct sim_message *message = end->first;
        split(end, message);
        if (!is_open_for(end, message)) return;
        end->first = message->next;
        if (!end->first) end->last = NULL;
        message->next = NULL;
        end->flight_bytes += message->size;
        uint64_t left =
            sim_line_us(&end->host->out, sim->queue.now_us, message->size, &message->span_us);
        if (left == sim->queue.now_us)
            sim_message_left(message);
        else
            sim_message_put(message, SIM_LEFT, left);
    }
}

void sim_end_queue(struct sim_end *end, struct sim_message *message)
{
    if (end->last)
        end->last->next = message;
    else
        end->first = message;
    end->last = message;
}

void sim_end_drop_queue(struct sim_end *end)
{
    while (end->first) {
        struct sim_message *message = end->first;
        end->first = message->next;
        sim_message_free(end->host->sim, message);
    }
    end->last = NULL;
}

/* Resets the other end, after what has left before. */
void sim_end_reset(struct sim_link *link, int side)
{
    struct sim_end *end = &link->end[side];
    struct sim_end *other = &link->end[!side];
    if (other->state != SIM_END_OPEN && other->state != SIM_END_DIALING) return;
    struct sim_message *message = sim_message_new(link, side, 0);
    if (!message) return;
    message->what = SIM_MESSAGE_RESET;
    uint64_t arrival =
        end->host->sim->queue.now_us + sim_handshake_us(end->host->sim, end->host, other->host);
    if (arrival < end->arrival_us) arrival = end->arrival_us;
    end->arrival_us = arrival;
    sim_message_put(message, SIM_ARRIVED, arrival);
}

/* Tells the core that the end is closed, and nothing else any more, a turn after time_us: what it
 * sends until then fails, and it may hear of that first. */
void sim_end_closing(struct sim_link *link, int side, enum parley_closed reason, uint64_t time_us)
{
    struct sim_end *end = &link->end[side];
    if (end->state != SIM_END_OPEN && end->state != SIM_END_DIALING) return;
    bool was_open = end->state == SIM_END_OPEN;
    end->state = SIM_END_CLOSING;
    link->users++; /* dropping messages must not free it under us */
    if (reason == PARLEY_CLOSED_LOCAL && was_open) {
        end->flushing = true;
        for (struct sim_message *m = end->first; m; m = m->next) {
            if (m->chunk) sim_done_chunk(end->host, m->op, 0);
            m->chunk = false;
        }
        struct sim_message *message = sim_message_new(link, side, 0);
        if (message) {
            message->what = SIM_MESSAGE_END;
            sim_end_queue(end, message);
        }
        sim_end_pump(end);
    } else {
        sim_end_drop_queue(end);
        if (reason == PARLEY_CLOSED_LOCAL) sim_end_reset(link, side); /* the target may be open */
    }
    sim_link_put(link, side, SIM_CLOSED, time_us + SIM_TURN_US, reason);
    sim_link_release(end->host->sim, link);
}

void sim_links_free(struct parley_sim *sim)
{
    while (sim->links) {
        struct sim_link *link = sim->links;
        for (int side = 0; side < 2; side++)
            while (link->end[side].first) {
                struct sim_message *message = link->end[side].first;
                link->end[side].first = message->next;
                sim_block_release(sim, message->block);
                free(message);
            }
        link_free(sim, link);
    }
}
