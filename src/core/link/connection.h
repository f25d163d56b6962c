/* connection.h: links to peers: how one is made, found, used and ended.
 *
 * Thread rule: as the node's.
 */
#ifndef PARLEY_CORE_CONNECTION_H
#define PARLEY_CORE_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "core/membership/roster.h"
#include "core/wire/message.h"
#include "parley/node.h"

struct inflow;

enum conn_state { CONN_FREE, CONN_DIALING, CONN_PENDING, CONN_LIVE, CONN_CLOSING };

/* Of whom the other end is to be sent sketches, and the change that has been. */
struct lack {
    uint64_t boot, sent;
};

struct conn {
    uint32_t id;
    enum conn_state state;
    bool outgoing;
    bool goodbye; /* BYE was said or heard: its end is no sign of death */
    int member;   /* once LIVE, or whom we dialled; NONE */
    int seed;     /* which seed it was dialled for; NONE */
    char address[PARLEY_ADDRESS_SIZE];
    uint64_t since_us; /* of the present state */
    uint64_t heard_us, used_us;
    uint64_t pinged_us;   /* after heard_us: since then it has not answered */
    uint64_t token;       /* of who accepted it; 0: none was drawn */
    uint32_t streams;     /* that both ends want, once LIVE; 0: none */
    uint32_t queued;      /* control bytes not yet out */
    uint32_t chunk_bytes; /* adapted so that a chunk takes 25 to 100 ms at the most */
    /* gossip.c: up to which change the own record and each list of the others has gone out here,
     * and whose that was. */
    uint64_t own_sent, sent[ROSTER_LISTS];
    int sent_of[ROSTER_LISTS];
    bool wanted, asked; /* the other end is to relay news here, and has been told */
    bool asks;          /* the other end wants that of us */
    bool synced;        /* everything known has gone out once since */
    /* sketches.c: the version of the own sketch that has gone out; whose the other end lacks. */
    uint32_t sketch_sent, lacks_count;
    struct lack lacks[MESSAGE_SKETCHES_MAX];
    /* A chunk that is coming in. */
    uint32_t chunk_left; /* bytes of floats still to come; 0: none */
    bool chunk_aside;    /* not on this connection */
    uint64_t chunk_us;   /* it began then, or the other end was told that this one lives */
    uint64_t chunk_sum;
    struct inflow *into; /* NULL: nobody wants it any more */
};

/* Where the connection of this id is: what is looked up with each event lies close together. */
struct open {
    uint32_t id, place;
    int32_t member; /* while LIVE, and not about to give way to another link to it; else NONE */
};

struct conn *connection_find(struct parley_node *node, uint32_t id);
/* The LIVE connection of a member; NULL if there is none. */
struct conn *connection_of(struct parley_node *node, int member);
/* The same, dialling if need be: NULL means it is under way, or that no place is free. */
struct conn *connection_want(struct parley_node *node, int member);
/* NULL: no place is free. */
struct conn *connection_dial(struct parley_node *node, const char *address);
/* Ends one that says what it must not: as that may come again, it is not dialled at once. */
void connection_break(struct parley_node *node, struct conn *conn);
/* Ends the link, if any, to one that is judged already. */
void connection_drop(struct parley_node *node, int member);
/* It can be reached again: a dial that has waited for it is given up for another. */
void connection_renew(struct parley_node *node, int member);

/* Encodes and sends; a queue over its limit closes the connection. */
void connection_send(struct parley_node *node, struct conn *conn, enum wire_type type,
                     const void *message);
/* A frame that is encoded in the arena. */
void connection_send_bytes(struct parley_node *node, struct conn *conn, const uint8_t *bytes,
                           size_t size);
void connection_close(struct parley_node *node, struct conn *conn);
void connection_goodbye(struct parley_node *node, struct conn *conn, enum message_bye reason);
/* What is to be said or sent over it waits in vain: it ends, if it is LIVE, and no one is suspected
 * for it; it is dialled anew when somebody wants it. */
void connection_stalled(struct parley_node *node, uint32_t id);

/* Whether a line of the log may be about it. Of those that others have dialled a few a minute, or
 * whoever reaches the port fills the disk. */
bool connection_is_news(struct parley_node *node, const struct conn *conn);

/* Events. */
void connection_incoming(struct parley_node *node, uint32_t id, const char *address,
                         uint64_t token);
void connection_connected(struct parley_node *node, uint32_t id);
/* HELLO is said and heard, and conn->member is who the other end is. */
void connection_live(struct parley_node *node, struct conn *conn);
void connection_closed(struct parley_node *node, const struct parley_event *event);
void connection_bye(struct parley_node *node, struct conn *conn, struct message_bye_frame *bye);
void connection_timers(struct parley_node *node);
uint64_t connection_deadline(const struct parley_node *node);

#endif
