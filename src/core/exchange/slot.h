/* slot.h: one side of an exchange, and what both sides do alike.
 *
 * A node has a slot for each role; what goes on in it: exchange.h. Thread rule: as the node's.
 */
#ifndef PARLEY_CORE_SLOT_H
#define PARLEY_CORE_SLOT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/exchange/delta.h"
#include "core/transfer/flow.h"
#include "core/wire/message.h"
#include "parley/node.h"

enum role { INITIATOR, RESPONDER, ROLES };

enum slot_state {
    SLOT_IDLE,
    SLOT_CONNECTING, /* initiator: dialling the chosen peer */
    SLOT_TAKING,     /* waiting for the snapshot */
    SLOT_OFFERED,    /* initiator */
    SLOT_STREAMING,  /* both snapshots on their way */
    SLOT_DIFFING,    /* d is being computed */
    SLOT_READY,      /* responder: READY sent; initiator: own d ready, READY awaited */
    SLOT_ADDING,     /* decided: d goes into x at the next boundary */
    SLOT_ENDING,     /* over; operations on its buffers are still under way */
    SLOT_RESERVED,   /* its buffers serve something else: joining, a sketch, the candidate */
    SLOT_STATES
};

/* Why an exchange was refused or aborted, as said to the other side. */
enum exchange_reason {
    EXCHANGE_REASON_NONE,
    EXCHANGE_NOT_TRAINING,
    EXCHANGE_DOUBTS,
    EXCHANGE_NON_FINITE,
    EXCHANGE_STALLED,
    EXCHANGE_LOST,
    EXCHANGE_ASKED,
    EXCHANGE_CROSSED,
    EXCHANGE_STATES_DIFFER,
    EXCHANGE_PASSED, /* never offered, so never said */
    EXCHANGE_REASONS
};

struct slot {
    enum slot_state state;
    enum role role;
    int peer; /* member */
    uint32_t conn;
    uint32_t sequence; /* the initiator's count of its offers */
    struct delta delta;
    double radius;        /* robust.c: of d */
    bool drawn;           /* this node had drawn that peer, which shows no distance yet for it */
    uint32_t own, theirs; /* buffers; theirs becomes d */
    uint32_t spare;       /* a third, where there are three vectors */
    bool received, sent, peer_ready;
    bool eager;       /* initiator: its snapshot goes along with the offer */
    bool coded;       /* both snapshots go as is done in training: all vectors, by the codec */
    bool encoded;     /* `own` stands as it goes out */
    uint64_t draw;    /* of what a subset holds: the same at both ends */
    uint64_t version; /* of the snapshot */
    uint64_t holds;   /* how many of the decided deltas the snapshot holds */
    bool fresh;       /* `own` holds a snapshot that no exchange uses */
    bool behind;      /* the snapshot before lacked a delta that the other slot had decided */
    bool quick;       /* exchanges follow each other so fast that such a one is of use */
    uint64_t ended;   /* own step count when the last exchange ended */
    double norm_sq, own_norm_sq;
    double samples; /* this node's part of the cluster's samples, as told to the peer */
    uint64_t progress_us, keepalive_us;
    uint32_t pending; /* operations under way on its buffers */
    uint32_t tries;   /* initiator: peers that said BUSY in a row, ... */
    uint64_t asks_us; /* ... since then */
    struct inflow in;
};

/* Every move of a slot goes through here. */
void slot_move(struct parley_node *node, struct slot *slot, enum slot_state to);
/* The peer counts on it, and what it adds is not decided or not in x yet. */
bool slot_is_open(const struct slot *slot);
/* Over, one way or the other. */
void slot_end(struct parley_node *node, struct slot *slot);
/* Only before the decision. */
void slot_abort(struct parley_node *node, struct slot *slot, enum exchange_reason reason,
                bool tell);
/* To a connection that may be gone. */
void slot_send(struct parley_node *node, uint32_t id, enum wire_type type,
               const struct message_exchange *message);
/* Whether its snapshot is what a new one would be, or nearly so. */
bool slot_is_recent(const struct parley_node *node, const struct slot *slot);
/* The same, and no exchange uses it. */
bool slot_is_fresh(const struct parley_node *node, const struct slot *slot);
/* Whether it has a fresh one, if need be that of the other slot, which is idle. */
bool slot_finds_fresh(struct parley_node *node, struct slot *slot);
/* As an exchange begins: whether the snapshot of the next one is taken when it ends. */
void slot_begin_quick(const struct parley_node *node, struct slot *slot);
void slot_take(struct parley_node *node, struct slot *slot);
/* No exchange takes up a snapshot of before: what the trainer has made since is to go out. */
void slots_stale(struct parley_node *node);
/* Whether this node's snapshots are not just x as it is: other vectors with it, or by a codec. */
bool slot_wants_codec(const struct parley_node *node);
/* Both know now how snapshots go out: `coded` or not. */
void slot_code(struct parley_node *node, struct slot *slot, bool coded);
/* Its buffers, as copies of a whole state's vectors stand in them. Returns how many those are. */
uint32_t slot_copies(const struct parley_node *node, const struct slot *slot,
                     uint32_t buffers[PARLEY_VECTORS_MAX]);
/* What the snapshot just taken is. */
void slot_keep(struct parley_node *node, struct slot *slot, const struct parley_event *event);
/* In which the two expect each other's snapshots. */
void slot_expect(struct parley_node *node, struct slot *slot, enum wire_stream kind);
/* The own one goes out, once it is encoded. */
void slot_stream(struct parley_node *node, struct slot *slot);
/* It is decided. */
void slot_add(struct parley_node *node, struct slot *slot);

#endif
