/* doubt.h: READY was said, the decision not heard, and the connection is gone, or the initiator
 * silent.
 *
 * Thread rule: as the node's.
 */
#ifndef PARLEY_CORE_DOUBT_H
#define PARLEY_CORE_DOUBT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/exchange/delta.h"
#include "core/wire/message.h"
#include "parley/node.h"

struct conn;
struct slot;

enum { DOUBTS_MAX = 2 };

enum doubt_state {
    DOUBT_FREE,
    DOUBT_ASKED, /* the initiator is asked what became of it */
    DOUBT_ADDING /* it was decided: the delta goes into x at the next boundary */
};

struct doubt {
    enum doubt_state state;
    uint64_t initiator; /* boot */
    int member;
    uint32_t sequence;
    struct delta delta;
    uint32_t buffer;
    uint64_t since_us, ask_us, backoff_us;
};

uint32_t doubts_open(const struct parley_node *node); /* how many are not free */
/* Whether one more has a place; one whose initiator is gone for good may give up its own. */
bool doubt_make_room(struct parley_node *node);
void doubt_open(struct parley_node *node, struct slot *slot);
bool doubt_blocks(const struct parley_node *node);
void doubt_drop_all(struct parley_node *node);
void doubt_finish(struct parley_node *node); /* the node ends: what it said READY to is given up */
void doubt_ask(struct parley_node *node, struct conn *conn,
               const struct message_outcome_frame *ask);
void doubt_outcome(struct parley_node *node, const struct message_outcome_frame *outcome);
void doubt_done(struct parley_node *node, int doubt);
void doubt_live(struct parley_node *node, struct conn *conn);
void doubt_restarted(struct parley_node *node, uint64_t boot);
void doubt_timers(struct parley_node *node);
uint64_t doubt_deadline(const struct parley_node *node);

#endif
