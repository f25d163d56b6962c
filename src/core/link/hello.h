/* hello.h: what two nodes say of themselves on a new link, and whether they go together.
 *
 * Thread rule: as the node's.
 */
#ifndef PARLEY_CORE_HELLO_H
#define PARLEY_CORE_HELLO_H

#include <stdbool.h>
#include <stdint.h>

#include "core/wire/message.h"
#include "parley/node.h"

struct conn;

/* A connect of a newcomer whose name belongs to another boot, until that one was asked. */
struct name_check {
    uint32_t conn;     /* the newcomer's */
    int member;        /* who had the name */
    uint64_t until_us; /* silent until then: replaced */
    uint32_t sequence; /* of the ping to that one */
    uint32_t pinged;   /* the connection it went out on; 0: none yet */
    bool active, answered;
    struct message_hello hello;
};

/* Says who this node is; `answer`: to the HELLO of the other end. */
void hello_send(struct parley_node *node, struct conn *conn, bool answer);
void hello_received(struct parley_node *node, struct conn *conn, const struct message_hello *hello);
void hello_rejected(struct parley_node *node, struct conn *conn,
                    const struct message_reject *reject);
/* The other end speaks this other version of the protocol. */
void hello_foreign(struct parley_node *node, struct conn *conn, uint8_t version);

/* Whether it waits for the answer of who has its name. */
bool hello_is_checked(const struct parley_node *node, const struct conn *conn);
void hello_ack(struct parley_node *node, const struct message_probe *ack); /* perhaps that answer */
void hello_timers(struct parley_node *node);
uint64_t hello_deadline(const struct parley_node *node);

#endif
