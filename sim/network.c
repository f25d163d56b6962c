/* network.c: links: how they come to be, carry messages and end. See network.h. */
#include "network.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Links ----------------------------------------------------------------------------------- */

static struct sim_link *link_new(struct parley_sim *sim)
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

static bool end_attach(struct sim_link *link, int side, struct sim_host *host, uint32_t conn,
                       enum sim_end_state state)
{
    if (!sim_grow(host->sim, &host->links, host->links_count, &host->links_capacity,
                  sizeof *host->links))
        return false;
    host->links[host->links_count++] = link;
    struct sim_end *end = &link->end[side];
    end->host = host;
    end->epoch = host->epoch;
    end->conn = conn;
    end->state = state;
    link->users++;
    return true;
}

/* The end is no more: its core has heard of it, or is gone. */
static void end_detach(struct sim_link *link, int side)
{
    struct sim_end *end = &link->end[side];
    struct sim_host *host = end->host;
    end->state = SIM_END_CLOSED;
    for (uint32_t i = 0; i < host->links_count; i++) {
        if (host->links[i] != link) continue;
        host->links[i] = host->links[--host->links_count];
        break;
    }
    free(end->rest);
    end->rest = NULL;
    end->rest_size = 0;
    sim_link_release(host->sim, link);
}

static struct sim_end *end_find(struct sim_host *host, uint32_t conn, struct sim_link **link)
{
    for (uint32_t i = 0; i < host->links_count; i++)
        for (int side = 0; side < 2; side++) {
            struct sim_end *end = &host->links[i]->end[side];
            if (end->host != host || end->conn != conn || end->state == SIM_END_CLOSED) continue;
            *link = host->links[i];
            return end;
        }
    return NULL;
}

static int side_of(const struct sim_link *link, const struct sim_end *end)
{
    return end == &link->end[1];
}

/* An item about one end of a link; the link is counted. */
static void put_link(struct sim_link *link, int side, enum sim_kind kind, uint64_t time_us,
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
    if (message->chunk && message->link->end[message->side].host->epoch == message->epoch)
        sim_done_chunk(message->link->end[message->side].host, message->op, false);
    sim_link_release(sim, message->link);
    free(message);
}

static struct sim_message *message_new(struct sim_link *link, int side, size_t size)
{
    struct sim_message *message = malloc(sizeof *message + size);
    if (!message) {
        sim_fail(link->end[side].host->sim, PARLEY_ENOMEM, "no memory for a message");
        return NULL;
    }
    *message = (struct sim_message){
        .link = link,
        .epoch = link->end[side].epoch,
        .side = (uint8_t)side,
        .size = size,
    };
    link->users++;
    return message;
}

static uint64_t latency_us(struct parley_sim *sim, const struct sim_host *from,
                           const struct sim_host *to)
{
    if (from == to) return 0;
    uint64_t us = sim_draw_us(&sim->draws, &sim->options.latency) + from->extra_us + to->extra_us;
    double arrives = (1 - from->loss_rate) * (1 - to->loss_rate);
    for (uint64_t again = 200000; arrives < 1 && again <= 25600000; again *= 2) {
        if (rng_unit(&sim->draws) < arrives) break;
        us += again;
    }
    return us;
}

/* Puts off by the time that `size` bytes take on a line that is free at *free_us. */
static uint64_t line_us(const struct parley_sim *sim, uint64_t *free_us, size_t size, bool arriving)
{
    uint64_t now = sim->queue.now_us, rate = sim->options.base.bandwidth_bytes;
    if (rate == 0) return now;
    uint64_t takes = (uint64_t)((double)size * 1e6 / (double)rate);
    uint64_t start = arriving ? *free_us : *free_us > now ? *free_us : now;
    /* Bytes that arrive came in while they left the other end: they take no time of their own. */
    *free_us = start + takes > now ? start + takes : now;
    return *free_us;
}

static void put_message(struct sim_message *message, enum sim_kind kind, uint64_t time_us)
{
    struct sim_link *link = message->link;
    const struct sim_end *end = &link->end[kind == SIM_RECEIVED ? !message->side : message->side];
    struct sim_item item = sim_item_for(end->host, kind);
    item.time_us = time_us;
    item.data = message;
    item.epoch = end->epoch;
    sim_put(end->host->sim, item);
}

/* The message has gone through its sender's line. */
static void message_left(struct sim_message *message)
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
        if (message->chunk && message->epoch == end->host->epoch)
            sim_done_chunk(end->host, message->op, true);
        else if (end->state == SIM_END_OPEN)
            put_link(link, message->side, SIM_SENT, sim->queue.now_us, message->size);
        message->chunk = false;
    }
    uint64_t arrival =
        sim->queue.now_us + latency_us(sim, end->host, link->end[!message->side].host);
    if (arrival < end->arrival_us) arrival = end->arrival_us;
    end->arrival_us = arrival;
    put_message(message, SIM_ARRIVED, arrival);
}

/* Lets messages go as far as the window is open. */
static void end_pump(struct sim_end *end)
{
    if (end->state != SIM_END_OPEN && !end->flushing) return;
    struct parley_sim *sim = end->host->sim;
    while (end->first &&
           (end->flight_bytes == 0 || end->flight_bytes + end->first->size <= SIM_WINDOW_BYTES)) {
        struct sim_message *message = end->first;
        end->first = message->next;
        if (!end->first) end->last = NULL;
        message->next = NULL;
        end->flight_bytes += message->size;
        uint64_t left = line_us(sim, &end->host->sender_us, message->size, false);
        if (left == sim->queue.now_us)
            message_left(message);
        else
            put_message(message, SIM_LEFT, left);
    }
}

static void end_queue(struct sim_end *end, struct sim_message *message)
{
    if (end->last)
        end->last->next = message;
    else
        end->first = message;
    end->last = message;
}

static void end_drop_queue(struct sim_end *end)
{
    while (end->first) {
        struct sim_message *message = end->first;
        end->first = message->next;
        sim_message_free(end->host->sim, message);
    }
    end->last = NULL;
}

/* Resets the other end, after what has left before. */
static void end_send_reset(struct sim_link *link, int side)
{
    struct sim_end *end = &link->end[side];
    struct sim_end *other = &link->end[!side];
    if (other->state != SIM_END_OPEN && other->state != SIM_END_DIALING) return;
    struct sim_message *message = message_new(link, side, 0);
    if (!message) return;
    message->what = SIM_MESSAGE_RESET;
    uint64_t arrival =
        end->host->sim->queue.now_us + latency_us(end->host->sim, end->host, other->host);
    if (arrival < end->arrival_us) arrival = end->arrival_us;
    end->arrival_us = arrival;
    put_message(message, SIM_ARRIVED, arrival);
}

/* Tells the core that the end is closed, at time_us, and nothing else any more. */
static void end_closing(struct sim_link *link, int side, enum parley_closed reason,
                        uint64_t time_us)
{
    struct sim_end *end = &link->end[side];
    if (end->state != SIM_END_OPEN && end->state != SIM_END_DIALING) return;
    bool was_open = end->state == SIM_END_OPEN;
    end->state = SIM_END_CLOSING;
    link->users++; /* dropping messages must not free it under us */
    if (reason == PARLEY_CLOSED_LOCAL && was_open) {
        end->flushing = true;
        for (struct sim_message *m = end->first; m; m = m->next) {
            if (m->chunk) sim_done_chunk(end->host, m->op, true);
            m->chunk = false;
        }
        struct sim_message *message = message_new(link, side, 0);
        if (message) {
            message->what = SIM_MESSAGE_END;
            end_queue(end, message);
        }
        end_pump(end);
    } else {
        end_drop_queue(end);
        if (reason == PARLEY_CLOSED_LOCAL) end_send_reset(link, side); /* the target may be open */
    }
    put_link(link, side, SIM_CLOSED, time_us, reason);
    sim_link_release(end->host->sim, link);
}

/* ---- What a core asks for -------------------------------------------------------------------- */

static struct sim_host *host_at(struct parley_sim *sim, const char *address)
{
    char *after;
    if (address[0] != 'n') return NULL;
    unsigned long index = strtoul(address + 1, &after, 10);
    if (index >= sim->nodes || strcmp(sim->addresses[index], address) != 0) return NULL;
    return &sim->hosts[index];
}

void sim_dial(struct sim_host *host, uint32_t conn, const char *address)
{
    struct parley_sim *sim = host->sim;
    struct sim_link *link = link_new(sim);
    if (!link) return;
    link->users++;
    if (end_attach(link, 0, host, conn, SIM_END_DIALING)) {
        struct sim_host *target = host_at(sim, address);
        uint64_t now = sim->queue.now_us;
        if (!target) {
            end_closing(link, 0, PARLEY_CLOSED_UNREACHED, now);
        } else {
            link->end[1].host = target;
            put_link(link, 0, SIM_SYN, now + latency_us(sim, host, target), 0);
            put_link(link, 0, SIM_UNREACHED, now + SIM_DIAL_TIMEOUT_US, 0);
        }
    }
    sim_link_release(sim, link);
}

void sim_close(struct sim_host *host, uint32_t conn)
{
    struct sim_link *link;
    struct sim_end *end = end_find(host, conn, &link);
    if (end) end_closing(link, side_of(link, end), PARLEY_CLOSED_LOCAL, host->sim->queue.now_us);
}

/* Shows a frame to the test's hook; false if the message's end did not outlive that. */
static bool frame_seen(struct sim_message *message, bool arriving)
{
    struct sim_link *link = message->link;
    struct sim_end *end = &link->end[arriving ? !message->side : message->side];
    struct parley_sim *sim = end->host->sim;
    struct wire_header header;
    if (message->size < WIRE_HEADER_BYTES || wire_header_read(message->bytes, &header) != 0)
        return true;
    uint64_t number = ++(arriving ? sim->arrivals : sim->frames)[header.type];
    if (!sim->on_frame) return true;
    struct parley_sim_frame frame = {
        .type = header.type,
        .arriving = arriving,
        .from = link->end[message->side].host->index,
        .to = link->end[!message->side].host->index,
        .number = number,
        .size = message->size,
    };
    sim->on_frame(sim, &frame, sim->on_frame_arg);
    return end->state == SIM_END_OPEN || (end->state == SIM_END_DIALING && !arriving);
}

/* Queues one frame: head and body, sent by `conn`. False once the sender is gone. */
static bool send_frame(struct sim_host *host, uint32_t conn, const uint8_t *head, size_t head_size,
                       const void *body, size_t body_size, const uint32_t *op)
{
    struct sim_link *link;
    struct sim_end *end = end_find(host, conn, &link);
    if (!end || (end->state != SIM_END_OPEN && end->state != SIM_END_DIALING)) {
        if (op) sim_done_chunk(host, *op, false);
        return false;
    }
    struct sim_message *message = message_new(link, side_of(link, end), head_size + body_size);
    if (!message) return false;
    memcpy(message->bytes, head, head_size);
    if (body_size > 0) memcpy(message->bytes + head_size, body, body_size);
    message->chunk = op;
    message->op = op ? *op : 0;
    if (!frame_seen(message, false)) {
        sim_message_free(host->sim, message);
        return false;
    }
    end_queue(end, message);
    end_pump(end);
    return true;
}

void sim_send(struct sim_host *host, const struct parley_update *update)
{
    if (update->type == PARLEY_UPDATE_SEND_CHUNK) {
        const float *buffer = sim_buffer(host, update->chunk.buffer);
        if (!buffer) return;
        const uint8_t *body = (const uint8_t *)buffer + update->chunk.offset;
        wire_chunk_seal(update->chunk.head, body, update->chunk.size);
        send_frame(host, update->chunk.conn, update->chunk.head, update->chunk.head_size, body,
                   update->chunk.size, &update->chunk.op);
        return;
    }
    const uint8_t *bytes = update->send.bytes;
    size_t left = update->send.size;
    while (left > 0) { /* a frame a message, so that faults can strike between any two */
        struct wire_header header;
        size_t size = left;
        if (left >= WIRE_HEADER_BYTES && wire_header_read(bytes, &header) == 0 &&
            header.size <= left - WIRE_HEADER_BYTES)
            size = WIRE_HEADER_BYTES + header.size;
        if (!send_frame(host, update->send.conn, bytes, size, NULL, 0, NULL)) return;
        bytes += size;
        left -= size;
    }
}

/* ---- Items of the network -------------------------------------------------------------------- */

bool sim_network_blocked(const struct parley_sim *sim, uint32_t from, uint32_t to)
{
    return sim->blocked && sim->blocked[(size_t)from * sim->nodes + to];
}

static void syn(struct parley_sim *sim, struct sim_link *link)
{
    struct sim_end *dialer = &link->end[0];
    struct sim_host *from = dialer->host, *to = link->end[1].host;
    if (dialer->state != SIM_END_DIALING) return;
    if (sim_network_blocked(sim, from->index, to->index) ||
        sim_network_blocked(sim, to->index, from->index))
        return;
    uint64_t back = sim->queue.now_us + latency_us(sim, to, from);
    if (to->state != SIM_HOST_UP) {
        if (!to->silent) end_closing(link, 0, PARLEY_CLOSED_REFUSED, back);
        return;
    }
    to->conn_next += 2;
    if (!end_attach(link, 1, to, to->conn_next, SIM_END_OPEN)) return;
    link->end[1].arrival_us = back;
    put_link(link, 1, SIM_INCOMING, sim->queue.now_us, 0);
    put_link(link, 0, SIM_CONNECTED, back, 0);
}

static void hold(struct parley_sim *sim, struct sim_item *item)
{
    if (!sim_grow(sim, &sim->held, sim->held_count, &sim->held_capacity, sizeof *sim->held)) {
        sim_drop(sim, item);
        return;
    }
    sim->held[sim->held_count++] = *item;
}

static void arrived(struct parley_sim *sim, struct sim_item *item)
{
    struct sim_message *message = item->data;
    struct sim_link *link = message->link;
    struct sim_end *to = &link->end[!message->side];
    if (sim_network_blocked(sim, link->end[message->side].host->index, to->host->index)) {
        hold(sim, item);
        return;
    }
    if (to->state == SIM_END_OPEN || to->state == SIM_END_DIALING) {
        put_message(message, SIM_RECEIVED,
                    line_us(sim, &to->host->receiver_us, message->size, true));
        return;
    }
    /* A machine that is back knows nothing of its old connections. */
    if (to->host->state == SIM_HOST_UP && to->epoch != to->host->epoch)
        end_send_reset(link, !message->side);
    sim_message_free(sim, message);
}

void sim_network_item(struct parley_sim *sim, struct sim_item *item)
{
    struct sim_link *link = item->data;
    switch (item->kind) {
    case SIM_SYN:
        syn(sim, link);
        break;
    case SIM_UNREACHED:
        if (link->end[1].state == SIM_END_CLOSED && link->end[0].state == SIM_END_DIALING)
            end_closing(link, 0, PARLEY_CLOSED_UNREACHED, sim->queue.now_us);
        break;
    case SIM_LEFT:
        message_left(item->data);
        return;
    default:
        arrived(sim, item);
        return;
    }
    sim_link_release(sim, link);
}

void sim_network_release(struct parley_sim *sim)
{
    uint32_t count = sim->held_count;
    struct sim_item *held = sim->held;
    sim->held = NULL;
    sim->held_count = sim->held_capacity = 0;
    for (uint32_t i = 0; i < count; i++) {
        held[i].time_us = sim->queue.now_us;
        sim_put(sim, held[i]); /* in their order; held again if still blocked */
    }
    free(held);
}

/* ---- Items for a process --------------------------------------------------------------------- */

void sim_connected(struct sim_host *host, struct sim_item *item)
{
    struct sim_link *link = item->data;
    struct sim_end *end = &link->end[item->side];
    if (end->state == SIM_END_DIALING) {
        end->state = SIM_END_OPEN;
        end_pump(end);
        sim_host_event(host, &(struct parley_event){.type = PARLEY_EVENT_CONNECTED,
                                                    .connected = {.conn = end->conn}});
    }
    sim_link_release(host->sim, link);
}

void sim_incoming(struct sim_host *host, struct sim_item *item)
{
    struct sim_link *link = item->data;
    struct sim_end *end = &link->end[item->side];
    if (end->state == SIM_END_OPEN)
        sim_host_event(
            host, &(struct parley_event){
                      .type = PARLEY_EVENT_INCOMING,
                      .incoming = {.conn = end->conn,
                                   .address = host->sim->addresses[link->end[0].host->index]}});
    sim_link_release(host->sim, link);
}

void sim_closed(struct sim_host *host, struct sim_item *item)
{
    static const char *const texts[] = {"", "end of stream", "connection reset by peer",
                                        "connection refused", "connection timed out"};
    struct sim_link *link = item->data;
    struct sim_end *end = &link->end[item->side];
    if (end->state == SIM_END_CLOSING) {
        uint32_t conn = end->conn;
        end_detach(link, item->side);
        sim_host_event(host,
                       &(struct parley_event){.type = PARLEY_EVENT_CLOSED,
                                              .closed = {.conn = conn,
                                                         .reason = (enum parley_closed)item->number,
                                                         .text = texts[item->number]}});
    }
    sim_link_release(host->sim, link);
}

void sim_sent(struct sim_host *host, struct sim_item *item)
{
    struct sim_link *link = item->data;
    struct sim_end *end = &link->end[item->side];
    if (end->state == SIM_END_OPEN)
        sim_host_event(host, &(struct parley_event){
                                 .type = PARLEY_EVENT_SENT,
                                 .sent = {.conn = end->conn, .bytes = (size_t)item->number}});
    sim_link_release(host->sim, link);
}

/* Gives the core what has come, after what it left last time; keeps what it leaves now. */
static void end_deliver(struct sim_end *end, const uint8_t *bytes, size_t size)
{
    struct sim_host *host = end->host;
    uint8_t *all = NULL;
    if (end->rest_size > 0) {
        all = realloc(end->rest, end->rest_size + size);
        if (!all) {
            sim_fail(host->sim, PARLEY_ENOMEM, "no memory for what was received");
            return;
        }
        memcpy(all + end->rest_size, bytes, size);
        size += end->rest_size;
        end->rest = NULL;
        end->rest_size = 0;
        bytes = all;
    }
    size_t consumed = 1;
    while (size > 0 && consumed > 0 && end->state == SIM_END_OPEN) {
        sim_host_event(host, &(struct parley_event){
                                 .type = PARLEY_EVENT_RECEIVED,
                                 .received = {.conn = end->conn, .bytes = bytes, .size = size}});
        consumed = host->sim->updates.consumed;
        if (consumed > size) {
            sim_fail(host->sim, PARLEY_EINVARIANT, "more bytes consumed than offered");
            break;
        }
        bytes += consumed;
        size -= consumed;
    }
    if (size > 0 && end->state == SIM_END_OPEN) {
        end->rest = malloc(size);
        if (end->rest)
            memcpy(end->rest, bytes, size);
        else
            sim_fail(host->sim, PARLEY_ENOMEM, "no memory for what was received");
        end->rest_size = end->rest ? size : 0;
    }
    free(all);
}

void sim_received(struct sim_host *host, struct sim_item *item)
{
    struct sim_message *message = item->data;
    struct sim_link *link = message->link;
    struct sim_end *from = &link->end[message->side], *to = &link->end[!message->side];
    if (message->what != SIM_MESSAGE_BYTES) {
        bool reset = message->what == SIM_MESSAGE_RESET;
        end_closing(link, !message->side, reset ? PARLEY_CLOSED_RESET : PARLEY_CLOSED_EOF,
                    host->sim->queue.now_us);
    } else if (to->state == SIM_END_OPEN && frame_seen(message, true)) {
        size_t piece = host->sim->options.base.fragment_bytes;
        if (piece == 0) piece = message->size;
        for (size_t at = 0; at < message->size && to->state == SIM_END_OPEN; at += piece)
            end_deliver(to, message->bytes + at,
                        piece < message->size - at ? piece : message->size - at);
    }
    from->flight_bytes -= message->size;
    end_pump(from);
    sim_message_free(host->sim, message);
}

/* ---- Ends and cuts --------------------------------------------------------------------------- */

void sim_network_end(struct sim_host *host, enum sim_network_end how)
{
    while (host->links_count > 0) {
        struct sim_link *link = host->links[host->links_count - 1];
        int side = link->end[0].host == host && link->end[0].state != SIM_END_CLOSED ? 0 : 1;
        struct sim_end *end = &link->end[side];
        bool open = end->state == SIM_END_OPEN || end->state == SIM_END_DIALING;
        link->users++;
        if (open && how == SIM_NETWORK_FLUSH) end_closing(link, side, PARLEY_CLOSED_LOCAL, 0);
        if (how == SIM_NETWORK_SILENT) end->flushing = false;
        if (!end->flushing) end_drop_queue(end);
        if (open && how == SIM_NETWORK_RESET) end_send_reset(link, side);
        end_detach(link, side);
        sim_link_release(host->sim, link);
    }
}

void sim_network_cut(struct parley_sim *sim, uint32_t a, uint32_t b)
{
    struct sim_host *host = &sim->hosts[a];
    for (uint32_t i = 0; i < host->links_count; i++) {
        struct sim_link *link = host->links[i];
        if (link->end[0].host->index + link->end[1].host->index != a + b ||
            (link->end[0].host->index != b && link->end[1].host->index != b))
            continue;
        for (int side = 0; side < 2; side++)
            if (link->end[side].state == SIM_END_OPEN)
                end_closing(link, side, PARLEY_CLOSED_RESET, sim->queue.now_us);
    }
}

void sim_network_free(struct parley_sim *sim)
{
    while (sim->links) {
        struct sim_link *link = sim->links;
        for (int side = 0; side < 2; side++)
            while (link->end[side].first) {
                struct sim_message *message = link->end[side].first;
                link->end[side].first = message->next;
                free(message);
            }
        link_free(sim, link);
    }
}
