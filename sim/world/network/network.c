/* network.c: what cores ask of the network, and what happens on it. See network.h. */
#include <stdlib.h>
#include <string.h>

#include "world/network/network.h"
#include "world/network/route.h"

/* ---- What a core asks for -------------------------------------------------------------------- */

static struct sim_host *host_at(struct parley_sim *sim, const char *address)
{
    char *after;
    if (address[0] != 'n') return NULL;
    unsigned long index = strtoul(address + 1, &after, 10);
    if (index >= sim->nodes || strcmp(sim->addresses[index], address) != 0) return NULL;
    return &sim->hosts[index];
}

/* Now and then a dial reaches its target once more: of that one the dialer knows nothing. */
static void duplicate_syn(struct sim_host *host, struct sim_host *target)
{
    struct parley_sim *sim = host->sim;
    double once = (1 - host->duplicate_rate) * (1 - target->duplicate_rate);
    if (once == 1 || rng_unit(&sim->draws) < once) return;
    struct sim_link *link = sim_link_new(sim);
    if (!link) return;
    link->end[0].host = host;
    link->end[1].host = target;
    uint64_t late_us = (uint64_t)(rng_unit(&sim->draws) * SIM_DUPLICATE_US);
    sim_link_put(link, 0, SIM_SYN, sim->queue.now_us + late_us, 0);
}

void sim_dial(struct sim_host *host, uint32_t conn, const char *address)
{
    struct parley_sim *sim = host->sim;
    struct sim_link *link = sim_link_new(sim);
    if (!link) return;
    link->users++;
    if (sim_end_attach(link, 0, host, conn, SIM_END_DIALING)) {
        struct sim_host *target = host_at(sim, address);
        uint64_t now = sim->queue.now_us;
        if (!target) {
            sim_end_closing(link, 0, PARLEY_CLOSED_UNREACHED, now);
        } else {
            link->end[1].host = target;
            sim_link_put(link, 0, SIM_SYN, now + sim_handshake_us(sim, host, target), 0);
            duplicate_syn(host, target);
        }
    }
    sim_link_release(sim, link);
}

void sim_close(struct sim_host *host, uint32_t conn)
{
    struct sim_link *link;
    struct sim_end *end = sim_end_find(host, conn, &link);
    if (end)
        sim_end_closing(link, sim_end_side(link, end), PARLEY_CLOSED_LOCAL,
                        host->sim->queue.now_us);
}

/* The end of conn, if bytes can still be sent there. */
static struct sim_end *sending(struct sim_host *host, uint32_t conn, struct sim_link **link)
{
    struct sim_end *end = sim_end_find(host, conn, link);
    /* Of a chunk a driver would tell the same again, and so on, and of nothing else. */
    if (end && end->lost)
        sim_fail(host->sim, PARLEY_EINVARIANT, "more for a connection where a chunk has failed");
    bool open = end && (end->state == SIM_END_OPEN || end->state == SIM_END_DIALING);
    return open ? end : NULL;
}

/* False once the sender is gone. */
static bool send_message(struct sim_end *end, struct sim_message *message)
{
    struct parley_sim *sim = end->host->sim;
    if (!sim_frame_seen(message, false)) {
        sim_message_free(sim, message);
        return false;
    }
    sim_end_queue(end, message);
    sim_end_pump(end);
    return true;
}

/* One frame that is sent by `conn`. False once the sender is gone. */
static bool send_frame(struct sim_host *host, uint32_t conn, const uint8_t *bytes, size_t size)
{
    struct sim_link *link;
    struct sim_end *end = sending(host, conn, &link);
    if (!end) return false;
    struct sim_message *message = sim_message_new(link, sim_end_side(link, end), size);
    if (!message) return false;
    memcpy(message->head, bytes, size);
    return send_message(end, message);
}

/* What a chunk holds that is not just a part of its buffer: a lying node's, and one whose buffer
 * goes on changing elsewhere. */
static struct sim_block *copy_of(struct sim_host *host, const struct sim_block *block,
                                 const struct parley_update *update)
{
    struct sim_block *copy = sim_block_new(host->sim);
    if (!copy) return NULL;
    float *x = copy->x + update->chunk.offset / sizeof *x;
    memcpy(x, (const uint8_t *)block->x + update->chunk.offset, update->chunk.size);
    if (sim_lies(host))
        sim_byzantine(host, x, update->chunk.offset / sizeof *x, update->chunk.size / sizeof *x);
    return copy;
}

static void send_chunk(struct sim_host *host, const struct parley_update *update)
{
    struct sim_link *link;
    struct sim_end *end = sending(host, update->chunk.conn, &link);
    struct sim_block *block = sim_buffer(host, update->chunk.buffer);
    if (end && block && (sim_lies(host) || update->chunk.part))
        block = copy_of(host, block, update);
    else if (block)
        block->users++;
    if (!end || !block) {
        sim_block_release(host->sim, block);
        sim_done_chunk(host, update->chunk.op, update->chunk.conn);
        return;
    }
    struct sim_message *message =
        sim_message_new(link, sim_end_side(link, end), update->chunk.head_size);
    if (!message) return;
    if (host->life.seals)
        wire_chunk_seal(update->chunk.head, (const uint8_t *)block->x + update->chunk.offset,
                        update->chunk.size);
    memcpy(message->head, update->chunk.head, message->head_size);
    message->block = block;
    message->offset = update->chunk.offset;
    message->size += update->chunk.size;
    message->chunk = true;
    message->part = update->chunk.part;
    message->op = update->chunk.op;
    send_message(end, message);
}

void sim_send(struct sim_host *host, const struct parley_update *update)
{
    if (update->type == PARLEY_UPDATE_SEND_CHUNK) {
        send_chunk(host, update);
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
        if (!send_frame(host, update->send.conn, bytes, size)) return;
        bytes += size;
        left -= size;
    }
}

/* ---- Items of the network -------------------------------------------------------------------- */

static bool sim_network_blocked(const struct parley_sim *sim, uint32_t from, uint32_t to)
{
    return sim->blocked && sim->blocked[(size_t)from * sim->nodes + to];
}

/* The target accepts. */
static bool sim_accept(struct parley_sim *sim, struct sim_link *link, uint64_t back_us)
{
    struct sim_host *to = link->end[1].host;
    to->life.conn_next += 2;
    if (!sim_end_attach(link, 1, to, to->life.conn_next, SIM_END_OPEN)) return false;
    link->end[1].arrival_us = back_us;
    sim_link_put(link, 1, SIM_INCOMING, sim->queue.now_us, 0);
    return true;
}

/* No answer: each SYN waits twice as long as the one before it. */
static void syn_again(struct parley_sim *sim, struct sim_link *link, uint64_t before)
{
    uint64_t now_us = sim->queue.now_us;
    if (before == SIM_SYNS_AGAIN)
        sim_end_closing(link, 0, PARLEY_CLOSED_UNREACHED, now_us);
    else
        sim_link_put(link, 0, SIM_SYN, now_us + ((uint64_t)SIM_SYN_AGAIN_US << before), before + 1);
}

/* before: how often it was sent already. */
static void syn(struct parley_sim *sim, struct sim_link *link, uint64_t before)
{
    struct sim_end *dialer = &link->end[0];
    struct sim_host *from = dialer->host, *to = link->end[1].host;
    bool waits = dialer->state == SIM_END_DIALING, up = to->state == SIM_HOST_UP;
    if (!waits && (before > 0 || !up)) return;
    if (sim_network_blocked(sim, from->index, to->index) ||
        sim_network_blocked(sim, to->index, from->index) || (!up && to->silent)) {
        syn_again(sim, link, before);
        return;
    }
    uint64_t back = sim->queue.now_us + sim_handshake_us(sim, to, from);
    if (!up) {
        sim_end_closing(link, 0, PARLEY_CLOSED_REFUSED, back);
        return;
    }
    if (!sim_accept(sim, link, back)) return;
    if (waits) {
        sim_link_put(link, 0, SIM_CONNECTED, back, 0);
    } else { /* a machine that knows of no such dial says so */
        dialer->arrival_us = back;
        sim_end_reset(link, 0);
    }
}

static void hold(struct parley_sim *sim, struct sim_item *item)
{
    if (!sim_grow(sim, &sim->held, sim->held_count, &sim->held_capacity, sizeof *sim->held)) {
        sim_drop(sim, item);
        return;
    }
    sim->held[sim->held_count++] = *item;
    const struct sim_message *message = item->data;
    struct sim_end *from = &message->link->end[message->side];
    if (from->held_us == 0) from->held_us = sim->queue.now_us;
}

static void arrived(struct parley_sim *sim, struct sim_item *item)
{
    struct sim_message *message = item->data;
    struct sim_link *link = message->link;
    struct sim_end *from = &link->end[message->side], *to = &link->end[!message->side];
    uint64_t now_us = sim->queue.now_us;
    if (now_us < from->again_us || (now_us == from->again_us && !message->late)) {
        item->time_us = from->again_us; /* after what was held back, though that be so once more */
        message->late = true;
        sim_put(sim, *item);
        return;
    }
    if (sim_network_blocked(sim, from->host->index, to->host->index)) {
        hold(sim, item);
        return;
    }
    from->held_us = 0;
    if (to->state == SIM_END_OPEN || to->state == SIM_END_DIALING) {
        uint64_t through_us = sim_line_us(&to->host->in, now_us, message->size, &message->span_us);
        if (through_us > from->through_us) from->through_us = through_us;
        sim_message_put(message, SIM_RECEIVED, from->through_us);
        return;
    }
    /* A machine that is back, or has given up, knows nothing of its old connections. */
    if (to->host->state == SIM_HOST_UP && (to->epoch != to->host->epoch || to->broken))
        sim_end_reset(link, !message->side);
    from->flight_bytes -= message->size;
    sim_end_pump(from);
    sim_message_free(sim, message);
}

void sim_network_item(struct parley_sim *sim, struct sim_item *item)
{
    struct sim_link *link = item->data;
    switch (item->kind) {
    case SIM_SYN:
        syn(sim, link, item->number);
        break;
    case SIM_BREAK:
        sim_end_closing(link, item->side, PARLEY_CLOSED_RESET, sim->queue.now_us);
        sim_end_drop_queue(&link->end[item->side]); /* closed before: its window opens no more */
        break;
    case SIM_LEFT:
        sim_message_left(item->data);
        return;
    default:
        arrived(sim, item);
        return;
    }
    sim_link_release(sim, link);
}

/* When it is sent again, the first time from now on. */
static uint64_t again_us(const struct sim_end *end, uint64_t now_us)
{
    uint64_t at_us = end->held_us;
    for (uint32_t losses = 0; at_us < now_us; losses++)
        at_us += sim_again_us(&end->host->sim->options.base.again, 0, losses);
    return at_us;
}

void sim_network_release(struct parley_sim *sim)
{
    uint32_t count = sim->held_count;
    struct sim_item *held = sim->held;
    sim->held = NULL;
    sim->held_count = sim->held_capacity = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct sim_message *message = held[i].data;
        struct sim_end *from = &message->link->end[message->side];
        message->late = true;
        held[i].time_us = from->again_us = again_us(from, sim->queue.now_us);
        if (from->arrival_us <= from->again_us) from->arrival_us = from->again_us + 1;
        sim_put(sim, held[i]); /* in their order; held again if still blocked */
    }
    free(held);
}

/* ---- Ends and cuts --------------------------------------------------------------------------- */

static void end_of(struct sim_host *host, struct sim_link *link, int side, enum sim_network_end how)
{
    struct sim_end *end = &link->end[side];
    bool open = end->state == SIM_END_OPEN || end->state == SIM_END_DIALING;
    link->users++;
    if (open && how == SIM_NETWORK_FLUSH) sim_end_closing(link, side, PARLEY_CLOSED_LOCAL, 0);
    if (how == SIM_NETWORK_SILENT) end->flushing = false;
    if (!end->flushing) sim_end_drop_queue(end);
    if (open && how == SIM_NETWORK_RESET) sim_end_reset(link, side);
    sim_end_detach(link, side);
    sim_link_release(host->sim, link);
}

void sim_network_end(struct sim_host *host, enum sim_network_end how)
{
    /* Others move up into a place that becomes free. */
    for (uint32_t i = 0; host->links_count > 0; i = (i + 1) & (host->links_places - 1))
        while (host->links[i].conn)
            end_of(host, host->links[i].link, host->links[i].side, how);
}

void sim_network_cut(struct parley_sim *sim, uint32_t a, uint32_t b)
{
    const struct sim_host *host = &sim->hosts[a];
    for (uint32_t i = 0; i < host->links_places; i++) {
        if (!host->links[i].conn) continue;
        struct sim_link *link = host->links[i].link;
        if (link->end[0].host->index + link->end[1].host->index != a + b ||
            (link->end[0].host->index != b && link->end[1].host->index != b))
            continue;
        bool accepted = link->end[1].state == SIM_END_OPEN; /* its dialer may not know yet */
        for (int side = 0; side < 2; side++)
            if (link->end[side].state == SIM_END_OPEN ||
                (link->end[side].state == SIM_END_DIALING && accepted))
                sim_end_closing(link, side, PARLEY_CLOSED_RESET, sim->queue.now_us);
    }
}
