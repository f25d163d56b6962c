/* ring.h: rounds in which all live nodes get the sum of what each contributes, equal to the bit.
 *
 * The members of a round are the live nodes that train, in the order of their names. Ring
 * all-reduce (Patarasuk, Yuan, JPDC 69, 2009, section 4): the vector is cut into as many segments
 * as there are members, and each step every member sends one to its right.
 *
 *   parts 0 .. n-2     reduce-scatter: what comes is added to the own segment, and sent on
 *   parts n-1 .. 2n-3  all-gather: segments that hold everybody's share go round
 *
 * Who waits for a part says so to its left (PLACE: round, members, ticket, part), which sends from
 * there on; so a link may break at any moment. Where the members change, all try again with the
 * same contributions; parts of the earlier try have another ticket. A round that was completed by
 * one is completed by all: nobody tries a round again that it has completed, so no other sum of it
 * can come about with it; who finds its left a round ahead takes the sum from there (PULL), and
 * every node keeps its newest for that. What a node's rounds were made of is hashed into its stamp.
 * Who finds its left ahead otherwise, as a newcomer or after a cut, takes its state. So whoever is
 * furthest is followed by all, one after the other around the ring.
 *
 * A strategy on the ring has a struct ring as the first member of its state, and RING_BUFFERS of
 * its buffers from struct ring_use's `first` on.
 * Thread rule: as the node's.
 */
#ifndef PARLEY_CORE_RING_H
#define PARLEY_CORE_RING_H

#include "core/strategy/strategy.h"

enum { RING_BUFFERS = 4, RING_FLOWS = 2, RING_HEARD_MAX = 8, RING_NUMBERS = 100 };

/* Of a round; equal on all nodes. */
struct ring_sum {
    uint32_t count;  /* contributions; 0: there is none */
    double divisor;  /* what makes a mean of it */
    double progress; /* the most that a member saw of the cluster's */
};

/* What a strategy makes of rounds. */
struct ring_use {
    uint32_t first; /* of its buffers that are the ring's */
    bool goes_on;   /* who has had its steps takes part in what the others still make */
    /* Puts this node's contribution into the buffer; then calls ring_made(). */
    void (*make)(struct parley_node *node, uint32_t buffer);
    /* The sum of all contributions is in the buffer, which stays as it is: see ring_sum. When all
     * that it asks for is done it calls ring_used(). */
    void (*use)(struct parley_node *node, uint32_t buffer, const struct ring_sum *sum);
};

enum ring_stage {
    RING_RESTING, /* at rest, or summing if `made` */
    RING_MAKING,
    RING_PULLING, /* the sum from the left */
    RING_USING,
    RING_FOLLOWING /* the state from the left */
};

/* The newest that a member has said of where it is. */
struct ring_heard {
    uint64_t boot; /* 0: free */
    uint32_t conn;
    struct message_strategy place;
};

/* One try of a round. */
struct ring_try {
    bool active;
    uint64_t round, key;
    uint32_t count, at;  /* members, and this node's place among them */
    uint32_t ticket;     /* of what comes in */
    uint32_t conn;       /* where it is expected; 0: nowhere yet */
    uint32_t got, added; /* parts that are here; of the first n-1, those added to */
    bool adds;           /* to the next of those */
    bool whole;          /* the segment that was completed here is in the result */
    struct ring_sum sum; /* progress: of those of whom was told */
    uint32_t out_conn, out_ticket, out_part; /* the next to be sent, and for whom */
    int out_number;
    bool out_busy;
};

struct ring {
    const struct ring_use *use;
    enum ring_stage stage;
    bool made;              /* this node's contribution is in hand */
    uint64_t round;         /* completed; on from the steps of a former life */
    uint64_t stamp, before; /* what they were made of; without the newest */
    double divisor;         /* of what is in hand; 0: the number of contributions */
    uint32_t result;        /* 0 or 1: which of the two buffers holds the newest sum */
    struct ring_sum sum;
    uint32_t pending; /* operations under way on the ring's buffers */
    uint32_t tickets;
    struct ring_try now;

    uint64_t news; /* the roster's when the members were looked at */
    bool early;    /* those who are about to train were counted */
    uint64_t key;
    uint32_t members, at;
    int left, right; /* NONE: alone */

    struct ring_heard heard[RING_HEARD_MAX];
    uint32_t heard_next;
    uint64_t said; /* a hash of what was said, and to whom */
    uint64_t said_us;
    struct message_strategy pull; /* the place of whom the sum is taken from */
    uint32_t pull_conn;
    uint64_t begin_us, progress_us, ending_us;
    bool ending, complained;
};

/* To be given, or called, for the strategy's calls of the same names. */
void ring_begin(struct parley_node *node, const struct ring_use *use);
void ring_advance(struct parley_node *node);
uint64_t ring_deadline(const struct parley_node *node);
uint64_t ring_steps(const struct parley_node *node); /* rounds completed since it started */
/* Numbers from RING_NUMBERS on are the ring's. */
void ring_done(struct parley_node *node, int number, const struct parley_event *event);
void ring_received(struct parley_node *node, int inflow);
void ring_progress(struct parley_node *node, int inflow);
void ring_sent(struct parley_node *node, int number, bool ok);
void ring_frame(struct parley_node *node, struct conn *conn,
                const struct message_strategy *message);
void ring_live(struct parley_node *node, struct conn *conn);
void ring_closed(struct parley_node *node, uint32_t conn, int member);
void ring_give(struct parley_node *node, struct message_fetch *answer);
void ring_adopted(struct parley_node *node, const struct message_fetch *answer);
bool ring_stop(struct parley_node *node);

/* divisor: of the sum; 0: the number of contributions. The same for all in a round. */
void ring_made(struct parley_node *node, double divisor);
void ring_used(struct parley_node *node);

/* What is alike in a strategy on the ring. */
#define RING_STRATEGY                                                                              \
    .catches_up = true, .inflows = RING_FLOWS, .outflows = 2 * RING_FLOWS,                         \
    .deadline = ring_deadline, .received = ring_received, .progress = ring_progress,               \
    .sent = ring_sent, .frame = ring_frame, .live = ring_live, .closed = ring_closed,              \
    .give = ring_give

#endif
