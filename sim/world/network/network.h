/* network.h: connections between hosts: pipes of bytes with latency, a line each host shares among
 * its connections, a window of bytes in flight, and what breaks them.
 *
 *   DIAL -> SYN at the target -> INCOMING there, CONNECTED here
 *   SEND -> queue of the end -> (window) -> the sender's line: SENT or DONE -> latency
 *        -> the receiver's line -> RECEIVED; consumed bytes open the window
 *
 * What goes wrong: nobody listens (REFUSED), a silent or blocked target (UNREACHED in the end), a
 * process that ends (RESET to the other end, after what had left before), a cut (RESET at both). A
 * block holds back what arrives until it is healed and the sender tries again, by the same pauses
 * as for what is lost (route.h). What is lost too often has its end RESET, and the other, half
 * open, learns it when it next sends. A SYN that comes late or twice makes a connection at the
 * target that is RESET a moment later. As of real sockets, sending fails a little before CLOSED is
 * told.
 */
#ifndef PARLEY_SIM_NETWORK_H
#define PARLEY_SIM_NETWORK_H

#include "world/cluster.h"

enum {
    SIM_WINDOW_BYTES = 1 << 20, /* in flight a direction at most, about what two sockets hold */
    SIM_WINDOW_LEAST_BYTES = 16 * 1024,
    SIM_QUEUE_US = 250000, /* of a narrow line TCP keeps about so much waiting before it */
    SIM_PIECE_LEAST_BYTES = 1400,
    SIM_SENT_BYTES = 16 * 1024, /* less is not told: far below what a core lets wait */
    SIM_SYN_AGAIN_US = 1000000, /* the second; the next after 2, 4, ... s */
    SIM_SYNS_AGAIN = 7,         /* the last is not sent: 127 s have passed (Linux) */
    SIM_DUPLICATE_US = 2000000, /* the second of two SYNs comes within this */
    SIM_TURN_US = 1000          /* a driver tells of a connection's end as its turn ends */
};

struct sim_message {
    struct sim_link *link; /* counted */
    struct sim_message *next;
    uint32_t epoch; /* of the sender */
    uint32_t op;
    uint8_t side; /* the sender's end */
    bool chunk;   /* a DONE for op is owed: that of the last piece */
    bool part;    /* the rest of the block is nobody's */
    bool late;    /* it comes after what a cut has held back */
    enum { SIM_MESSAGE_BYTES, SIM_MESSAGE_END, SIM_MESSAGE_RESET } what;
    uint64_t span_us;        /* from its first byte to its last, on the line that it was on last */
    size_t size;             /* of the frame, or what is sent of it: head and floats */
    struct sim_block *block; /* whose floats follow the head, held; NULL: none */
    uint64_t offset;         /* of those, in bytes */
    size_t head_size;
    uint8_t head[]; /* [head_size] */
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
    bool broken;                      /* what it sends is lost, until it notices */
    bool flushing;                    /* closed by its core: what was sent still leaves */
    bool lost;                        /* its core knows that it is: a chunk has failed there */
    struct sim_message *first, *last; /* not yet left */
    size_t flight_bytes;              /* left, not yet consumed */
    uint64_t way_us;                  /* that the newest has before it, but for lines */
    size_t sent_bytes;                /* left, and its core does not know */
    uint64_t arrival_us;              /* of the newest that left: they don't overtake ... */
    uint64_t through_us;              /* ... on the receiver's line, either */
    uint64_t held_us;                 /* since when nothing gets through; 0: it does */
    uint64_t again_us;                /* when what was held is sent again: nothing comes before */
    uint8_t *rest;                    /* [rest_size] received and not consumed; owned */
    size_t rest_size;
};

struct sim_link {
    struct sim_link *previous, *next; /* all links of the simulation */
    uint32_t users;                   /* ends not closed, items, messages */
    struct sim_end end[2];            /* the dialer's first */
};

/* ---- link.c ---------------------------------------------------------------------------------- */

struct sim_link *sim_link_new(struct parley_sim *sim); /* no users yet; NULL after sim_fail() */
void sim_link_release(struct parley_sim *sim, struct sim_link *link);
void sim_links_free(struct parley_sim *sim); /* when no items are left */
/* Puts an item about one end; counts the link. */
void sim_link_put(struct sim_link *link, int side, enum sim_kind kind, uint64_t time_us,
                  uint64_t number);

bool sim_end_attach(struct sim_link *link, int side, struct sim_host *host, uint32_t conn,
                    enum sim_end_state state);
void sim_end_detach(struct sim_link *link, int side); /* its core has heard of it, or is gone */
struct sim_end *sim_end_find(struct sim_host *host, uint32_t conn, struct sim_link **link);
void sim_end_lost(struct sim_host *host, uint32_t conn); /* its core is about to be told so */
int sim_end_side(const struct sim_link *link, const struct sim_end *end);
void sim_end_queue(struct sim_end *end, struct sim_message *message);
void sim_end_drop_queue(struct sim_end *end);
void sim_end_pump(struct sim_end *end); /* lets messages go as far as the window is open */
void sim_end_reset(struct sim_link *link, int side); /* the other end, after what has left before */
/* From now on nothing can be sent there; a turn after time_us the core hears CLOSED. */
void sim_end_closing(struct sim_link *link, int side, enum parley_closed reason, uint64_t time_us);

struct sim_message *sim_message_new(struct sim_link *link, int side, size_t head_size);
void sim_message_free(struct parley_sim *sim, struct sim_message *message);
void sim_message_put(struct sim_message *message, enum sim_kind kind, uint64_t time_us);
void sim_message_left(struct sim_message *message);

/* ---- deliver.c ------------------------------------------------------------------------------- */

/* Shows a frame to the test's hook; false if the message's end did not outlive that. */
bool sim_frame_seen(struct sim_message *message, bool arriving);
/* CONNECTED to RECEIVED, for a process that is up and awake. */
void sim_network_event(struct parley_sim *sim, struct sim_item *item);

/* ---- network.c ------------------------------------------------------------------------------- */

void sim_dial(struct sim_host *host, uint32_t conn, const char *address);
void sim_close(struct sim_host *host, uint32_t conn);
/* SEND and SEND_CHUNK. */
void sim_send(struct sim_host *host, const struct parley_update *update);

/* Items of the network itself. */
void sim_network_item(struct parley_sim *sim, struct sim_item *item);

/* The host's process has ended: by itself (all is flushed), killed (reset) or silently. */
enum sim_network_end { SIM_NETWORK_FLUSH, SIM_NETWORK_RESET, SIM_NETWORK_SILENT };
void sim_network_end(struct sim_host *host, enum sim_network_end how);

void sim_network_cut(struct parley_sim *sim, uint32_t a, uint32_t b);
void sim_network_release(
    struct parley_sim *sim); /* after a change of blocks: lets go what is held */

#endif
