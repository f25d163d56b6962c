/* deliver.c: what the network brings to cores: connections, their ends, and bytes, in the pieces
 * that a test wants. See network.h.
 */
#include <stdlib.h>
#include <string.h>

#include "world/network/network.h"

bool sim_frame_seen(struct sim_message *message, bool arriving)
{
    struct sim_link *link = message->link;
    struct sim_end *end = &link->end[arriving ? !message->side : message->side];
    struct parley_sim *sim = end->host->sim;
    struct wire_header header;
    if (message->head_size < WIRE_HEADER_BYTES || wire_header_read(message->head, &header) != 0)
        return true;
    uint64_t number = ++(arriving ? sim->arrivals : sim->frames)[header.type];
    if (!sim->on_frame) return true;
    struct parley_sim_frame frame = {
        .name = wire_type_name(header.type),
        .type = header.type,
        .arriving = arriving,
        .from = link->end[message->side].host->index,
        .to = link->end[!message->side].host->index,
        .number = number,
        .size = WIRE_HEADER_BYTES + header.size,
    };
    sim->on_frame(sim, &frame, sim->on_frame_arg);
    return end->state == SIM_END_OPEN || (end->state == SIM_END_DIALING && !arriving);
}

static void connected(struct sim_end *end)
{
    if (end->state != SIM_END_DIALING) return;
    end->state = SIM_END_OPEN;
    sim_end_pump(end);
    sim_host_event(end->host, &(struct parley_event){.type = PARLEY_EVENT_CONNECTED,
                                                     .connected = {.conn = end->conn}});
}

static void incoming(struct sim_end *end, const struct sim_host *from)
{
    if (end->state != SIM_END_OPEN) return;
    sim_host_event(end->host, &(struct parley_event){
                                  .type = PARLEY_EVENT_INCOMING,
                                  .incoming = {.conn = end->conn,
                                               .address = from->sim->addresses[from->index]}});
}

static void closed(struct sim_link *link, int side, enum parley_closed reason)
{
    static const char *const texts[] = {"", "end of stream", "connection reset by peer",
                                        "connection refused", "connection timed out"};
    const struct sim_end *end = &link->end[side];
    uint32_t conn = end->conn;
    if (end->state != SIM_END_CLOSING) return;
    sim_end_detach(link, side);
    sim_host_event(
        end->host,
        &(struct parley_event){.type = PARLEY_EVENT_CLOSED,
                               .closed = {.conn = conn, .reason = reason, .text = texts[reason]}});
}

static void sent(struct sim_end *end)
{
    size_t bytes = end->sent_bytes;
    end->sent_bytes = 0;
    if (end->state != SIM_END_OPEN) return;
    sim_host_event(end->host, &(struct parley_event){.type = PARLEY_EVENT_SENT,
                                                     .sent = {.conn = end->conn, .bytes = bytes}});
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

static void deliver_in_pieces(struct sim_end *to, const uint8_t *bytes, size_t size, size_t piece)
{
    for (size_t at = 0; at < size && to->state == SIM_END_OPEN; at += piece)
        end_deliver(to, bytes + at, piece < size - at ? piece : size - at);
}

/* Head and floats apart, so that the floats need not be copied; a test may want other pieces. */
static void deliver(struct sim_end *to, const struct sim_message *message)
{
    struct parley_sim *sim = to->host->sim;
    size_t piece = sim->options.base.fragment_bytes, floats = message->size - message->head_size;
    const uint8_t *body =
        message->block ? (const uint8_t *)message->block->x + message->offset : NULL;
    if (piece == 0) {
        end_deliver(to, message->head, message->head_size);
        sim->arriving = message->part ? NULL : message->block;
        if (body && to->state == SIM_END_OPEN) end_deliver(to, body, floats);
        sim->arriving = NULL;
        return;
    }
    uint8_t *whole = malloc(message->size);
    if (!whole) {
        sim_fail(sim, PARLEY_ENOMEM, "no memory for what was received");
        return;
    }
    memcpy(whole, message->head, message->head_size);
    if (body) memcpy(whole + message->head_size, body, floats);
    deliver_in_pieces(to, whole, message->size, piece);
    free(whole);
}

static void received(struct parley_sim *sim, struct sim_message *message)
{
    struct sim_link *link = message->link;
    struct sim_end *from = &link->end[message->side], *to = &link->end[!message->side];
    if (message->what != SIM_MESSAGE_BYTES) {
        bool reset = message->what == SIM_MESSAGE_RESET;
        sim_end_closing(link, !message->side, reset ? PARLEY_CLOSED_RESET : PARLEY_CLOSED_EOF,
                        sim->queue.now_us);
    } else if (to->state == SIM_END_OPEN && sim_frame_seen(message, true)) {
        deliver(to, message);
    }
    from->flight_bytes -= message->size;
    sim_end_pump(from);
    sim_message_free(sim, message);
}

void sim_network_event(struct parley_sim *sim, struct sim_item *item)
{
    if (item->kind == SIM_RECEIVED) {
        received(sim, item->data);
        return;
    }
    struct sim_link *link = item->data;
    struct sim_end *end = &link->end[item->side];
    if (item->kind == SIM_CONNECTED) connected(end);
    if (item->kind == SIM_INCOMING) incoming(end, link->end[0].host);
    if (item->kind == SIM_CLOSED) closed(link, item->side, (enum parley_closed)item->number);
    if (item->kind == SIM_SENT) sent(end);
    sim_link_release(sim, link);
}
