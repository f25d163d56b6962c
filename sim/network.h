/* network.h: connections between hosts: pipes of bytes with latency, a line each host shares among
 * its connections, a window of bytes in flight, and what breaks them.
 *
 *   DIAL -> SYN at the target -> INCOMING there, CONNECTED here
 *   SEND -> queue of the end -> (window) -> the sender's line: SENT or DONE -> latency
 *        -> the receiver's line -> RECEIVED; consumed bytes open the window
 *
 * What goes wrong: nobody listens (REFUSED), a silent or blocked target (UNREACHED after 3 s), a
 * process that ends (RESET to the other end, after what had left before), a cut (RESET at both). A
 * block holds back what arrives until it is healed, as TCP would.
 */
#ifndef PARLEY_SIM_NETWORK_H
#define PARLEY_SIM_NETWORK_H

#include "cluster.h"

enum {
    SIM_WINDOW_BYTES = 1 << 20, /* in flight a direction, about what two sockets hold */
    SIM_DIAL_TIMEOUT_US = 3000000
};

struct sim_message {
    struct sim_link *link; /* counted */
    struct sim_message *next;
    uint32_t epoch; /* of the sender */
    uint32_t op;
    uint8_t side; /* the sender's end */
    bool chunk;   /* a DONE for op is owed */
    enum { SIM_MESSAGE_BYTES, SIM_MESSAGE_END, SIM_MESSAGE_RESET } what;
    size_t size;
    uint8_t bytes[]; /* [size], one frame */
};

enum sim_end_state {
    SIM_END_DIALING,
    SIM_END_OPEN,
    SIM_END_CLOSING, /* the core is about to hear CLOSED, and nothing else */
    SIM_END_CLOSED
};

struct sim_end {
    struct sim_host *host;
    uint32_t epoch; /* of the host */
    uint32_t conn;
    enum sim_end_state state;
    bool flushing;                    /* closed by its core: what was sent still leaves */
    struct sim_message *first, *last; /* not yet left */
    size_t flight_bytes;              /* left, not yet consumed */
    uint64_t arrival_us;              /* of the newest that left: they don't overtake */
    uint8_t *rest;                    /* [rest_size] received and not consumed; owned */
    size_t rest_size;
};

struct sim_link {
    struct sim_link *previous, *next; /* all links of the simulation */
    uint32_t users;                   /* ends not closed, items, messages */
    struct sim_end end[2];            /* the dialer's first */
};

void sim_dial(struct sim_host *host, uint32_t conn, const char *address);
void sim_close(struct sim_host *host, uint32_t conn);
/* SEND and SEND_CHUNK. */
void sim_send(struct sim_host *host, const struct parley_update *update);

/* Items of the network itself. */
void sim_network_item(struct parley_sim *sim, struct sim_item *item);

/* Items for a process, called with the host up and awake. */
void sim_connected(struct sim_host *host, struct sim_item *item);
void sim_incoming(struct sim_host *host, struct sim_item *item);
void sim_closed(struct sim_host *host, struct sim_item *item);
void sim_sent(struct sim_host *host, struct sim_item *item);
void sim_received(struct sim_host *host, struct sim_item *item);

/* The host's process has ended: by itself (all is flushed), killed (reset) or silently. */
enum sim_network_end { SIM_NETWORK_FLUSH, SIM_NETWORK_RESET, SIM_NETWORK_SILENT };
void sim_network_end(struct sim_host *host, enum sim_network_end how);

void sim_network_cut(struct parley_sim *sim, uint32_t a, uint32_t b);
bool sim_network_blocked(const struct parley_sim *sim, uint32_t from, uint32_t to);
void sim_network_release(
    struct parley_sim *sim); /* after a change of blocks: lets go what is held */

void sim_link_release(struct parley_sim *sim, struct sim_link *link);
void sim_message_free(struct parley_sim *sim, struct sim_message *message);
void sim_network_free(struct parley_sim *sim); /* when no items are left */

#endif
