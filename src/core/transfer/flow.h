/* flow.h: floats on their way: streams out of buffers, and into buffers.
 *
 * A stream is named by its connection, kind, sequence and part; what comes in and is not expected
 * is dropped. Thread rule: as the node's.
 */
#ifndef PARLEY_CORE_FLOW_H
#define PARLEY_CORE_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <xxhash.h>

#include "core/wire/wire.h"
#include "parley/node.h"

struct conn;

enum {
    OUTFLOWS_MAX = 10, /* six fetches served, four for exchanges; a strategy's come on top */
    FLOW_KEPT_MAX = 2, /* buffers of a strategy that travel together with the trainer's vectors */
    FLOW_VECTORS_MAX = PARLEY_VECTORS_MAX + FLOW_KEPT_MAX
};

/* In the place of a slot: neither an exchange nor a fetch. */
enum { FLOW_STRATEGY = 2 };

/* Floats on their way out. */
struct outflow {
    bool active, aborted;
    uint32_t conn;
    enum wire_stream kind;
    uint32_t sequence, part;
    uint32_t buffers[FLOW_VECTORS_MAX], vectors;
    uint64_t from, end; /* of each vector, bytes */
    uint32_t vector;    /* being sent */
    uint64_t offset;    /* in it, bytes */
    uint32_t in_flight; /* chunks given to the driver */
    uint64_t chunk_us;  /* when the newest was given, or the one before it was out */
    uint64_t moved_us;  /* likewise, or when the other end said that bytes of one come in */
    int slot;           /* whose exchange it is; NONE for a fetch; FLOW_STRATEGY */
    int number;         /* the strategy's */
};

/* Floats on their way in. */
struct inflow {
    bool active;
    uint32_t conn;
    enum wire_stream kind;
    uint32_t sequence, part;
    uint32_t buffers[FLOW_VECTORS_MAX], vectors;
    uint64_t from, end; /* of each vector, bytes */
    uint32_t vector;
    uint64_t offset;
    int slot; /* NONE: the fetch; FLOW_STRATEGY */
    XXH3_state_t *sum;
};

int flow_send(struct parley_node *node, uint32_t conn, enum wire_stream kind, uint32_t sequence,
              const uint32_t *buffers, uint32_t vectors, int slot); /* NONE: all places taken */
/* Some stream still reads that buffer. */
bool flow_is_sent(const struct parley_node *node, uint32_t buffer);
void flow_abort(struct parley_node *node, int outflow);
/* A link that takes no chunk for long is closed: what goes over it holds its buffers till then. */
void flow_timers(struct parley_node *node);
uint64_t flow_deadline(const struct parley_node *node);

/* The i-th place for what comes in: the exchanges' by role, the fetch's, then the strategy's, by
 * their numbers. NULL: there is none, nor any after it. */
struct inflow *flow_in(struct parley_node *node, uint32_t i);
void flow_expect(struct parley_node *node, struct inflow *in, uint32_t conn, enum wire_stream kind,
                 uint32_t sequence, const uint32_t *buffers, uint32_t vectors);
void flow_forget(struct parley_node *node, struct inflow *in);

/* A chunk: its head, then what it can take of the rest; `error` is set when the connection must be
 * closed. */
void flow_chunk_begin(struct parley_node *node, struct conn *conn, const uint8_t *bytes,
                      uint32_t size, int *error);
size_t flow_chunk_bytes(struct parley_node *node, struct conn *conn, const uint8_t *bytes,
                        size_t size, int *error);
void flow_chunk_done(struct parley_node *node, int outflow, bool ok);
/* The other end says that it is in the middle of a chunk from here. */
void flow_moves(struct parley_node *node, const struct conn *conn);
/* Whether any floats are on their way out over that connection. */
bool flow_uses(const struct parley_node *node, uint32_t conn);
void flow_closed(struct parley_node *node, uint32_t conn);
void flow_pump(struct parley_node *node);

#endif
