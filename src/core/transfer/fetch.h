/* fetch.h: a whole model from one peer, or for one.
 *
 * Thread rule: as the node's.
 */
#ifndef PARLEY_CORE_FETCH_H
#define PARLEY_CORE_FETCH_H

#include <stdbool.h>
#include <stdint.h>

#include "core/out.h"
#include "core/transfer/flow.h"
#include "core/wire/message.h"
#include "parley/node.h"

struct conn;

enum fetch_state { FETCH_IDLE, FETCH_CONNECTING, FETCH_ASKED, FETCH_STREAMING, FETCH_SETTING };

struct fetch {
    enum fetch_state state;
    bool by_digest;
    int member;
    uint32_t conn, sequence;
    uint8_t digest[PARLEY_DIGEST_BYTES];
    struct message_fetch answer; /* that brought it */
    uint64_t progress_us, retry_us, told_us;
    struct inflow in;
    /* Serving a joiner: the responder's slot is reserved until its state has been streamed. */
    bool serving;
    uint32_t serve_conn;
    uint64_t alive_us; /* when it is told that its snapshot is waited for; NEVER once it is taken */
    struct message_fetch serve_answer;
    uint64_t served_us; /* when the newest byte of a model went out, or a state's giving ended */
    uint64_t owed_us;   /* until then its state is kept for who was told to ask again */
};

void fetch_start(struct parley_node *node, int member, const uint8_t *digest); /* NULL: the state */
void fetch_stop(struct parley_node *node);
/* A peer's state is on its way, to be written over what this node would give of its own. */
bool fetch_takes_state(const struct parley_node *node);
void fetch_asked(struct parley_node *node, struct conn *conn, const struct message_fetch *message);
void fetch_answered(struct parley_node *node, struct conn *conn,
                    const struct message_fetch *message);
/* Who is asked has yet to come to a step's end. */
void fetch_alive(struct parley_node *node, const struct conn *conn, uint32_t sequence);
void fetch_received(struct parley_node *node);
void fetch_progress(struct parley_node *node);
void fetch_done(struct parley_node *node, const struct op *op, const struct parley_event *event);
void fetch_served(struct parley_node *node, bool was_state);
void fetch_live(struct parley_node *node, struct conn *conn);
void fetch_closed(struct parley_node *node, uint32_t conn);
void fetch_timers(struct parley_node *node);
uint64_t fetch_deadline(const struct parley_node *node);

#endif
