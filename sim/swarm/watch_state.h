/* watch_state.h: what the watch remembers: a book for each boot of a node. */
#ifndef PARLEY_SIM_WATCH_STATE_H
#define PARLEY_SIM_WATCH_STATE_H

#include "core/buffers.h"
#include "core/state.h"
#include "swarm/watch.h"

enum {
    WATCH_BUFFERS = 16, /* those of exchanges, which come first */
    WATCH_OPERATIONS = OPS_MAX + OPS_PER_OUTFLOW * PARLEY_SERVED_MAX
};

/* One offer, by its sequence in the initiator's book. */
struct watch_entry {
    uint32_t responder; /* book */
    bool decided, answered;
    float factor;
    float *delta; /* [parameters], of the side that came first; owned, until the other has come */
};

/* Of a round (gossip_sync.c): one end's, until that of the other end has come. */
struct watch_term {
    uint64_t round;
    uint64_t self, peer; /* boots */
    float factor;
    float *delta; /* [parameters]; owned */
};

/* A boot of a node. */
struct watch_book {
    uint64_t boot;
    struct watch_entry *entries; /* [count] of capacity */
    uint32_t count, capacity;
    uint64_t decided, added; /* as initiator; in both roles */
    bool proposed, locked, done;
    uint8_t lock[PARLEY_DIGEST_BYTES], agreed[PARLEY_DIGEST_BYTES]; /* agreed: of DONE */
};

/* An operation that the driver has not said DONE of. */
struct watch_operation {
    uint32_t id;
    enum parley_update_type type;
    struct buffer_set buffers;
    uint64_t from, end; /* the part of each, in bytes */
};

struct watch_host {
    uint32_t book;                                    /* of the present boot */
    struct watch_operation pending[WATCH_OPERATIONS]; /* [pending_count] */
    uint32_t pending_count;
    uint64_t issued; /* deltas given to the trainer */
    struct {
        uint64_t holds; /* deltas in the snapshot */
        bool used;      /* by a decided exchange */
    } snapshots[WATCH_BUFFERS];
    struct {
        enum slot_state state;
        uint32_t sequence;
        uint64_t since_us;
    } slots[ROLES];
    enum parley_phase phase;
    uint64_t phase_us;
    enum candidate_state candidate;
};

struct sim_watch {
    struct parley_sim *sim;
    struct watch_host *hosts; /* [nodes] */
    struct watch_book *books; /* [books_count] of capacity */
    uint32_t books_count, books_capacity;
    struct watch_term *terms; /* [terms_count] of capacity */
    uint32_t terms_count, terms_capacity;
    uint64_t calm_us;
    bool apart;
    bool done_any;
};

struct watch_book *watch_book_of(struct sim_watch *watch, uint64_t boot); /* NULL: none */

/* watch_exchange.c */
void watch_delta(struct sim_watch *watch, struct sim_host *host,
                 const struct parley_update *update);
void watch_slots(struct sim_watch *watch, struct sim_host *host);
void watch_offers(struct sim_watch *watch, struct sim_host *host, const struct parley_event *event);

/* watch_agreement.c */
void watch_phase(struct sim_watch *watch, struct sim_host *host, enum parley_phase phase);
void watch_candidate(struct sim_watch *watch, struct sim_host *host);
void watch_publish(struct sim_watch *watch, struct sim_host *host);

#endif
