/* ring.h: rounds in which all live nodes get the sum of what each contributes, equal to the bit.
 *
 * The members of a round are the live nodes that train, in a ring by their names. The vector is cut
 * into as many blocks as there are members; who stands at place i sums up block i, and gives it to
 * all. That takes 2 ceil(log2 n) stages on a circulant graph, and of each line what 2 (n-1)/n
 * vectors take (Traeff, arXiv:2410.14234, 2024, algorithms 1 and 2):
 *
 *   reduce-scatter   in stage k the sums so far of his block, and of those behind it, go to who
 *                    stands s(k) places to the right; s(0) = ceil(n / 2), s(k) = ceil(s(k-1) / 2)
 *   all-gather       the same stages backwards: blocks that are done go to who stands s(k) places
 *                    to the left
 *
 * Who waits for a stage asks the one that it comes from (PLACE: round, members, ticket, stages),
 * who sends it once it is ready; so a link may break at any moment. Where the members change, all
 * try again with the same contributions; what belongs to the earlier try has another ticket. A
 * round that was completed by one is completed by all: nobody tries a round again that it has
 * completed, so no other sum of it can come about with it; who finds its left a round ahead takes
 * the sum from there (PULL), and every node keeps its newest for that. What a node's rounds were
 * made of is hashed into its stamp. Who finds its left ahead otherwise, as a newcomer or after a
 * cut, takes its state. So whoever is furthest is followed by all, one after the other around the
 * ring.
 *
 * Two that live and don't reach each other would keep all waiting. The one with the later name
 * stands aside once it has found so: it is no member any more, whoever it has a link with is on its
 * left, and it takes the sums from there. It is back as soon as it reaches all members before it.
 *
 * A strategy on the ring has a struct ring as the first member of its state, and RING_BUFFERS of
 * its buffers from struct ring_use's `first` on.
 * Thread rule: as the node's.
 */
#ifndef PARLEY_CORE_RING_H
#define PARLEY_CORE_RING_H

#include "core/strategy/strategy.h"

enum {
    RING_BUFFERS = 4,
    RING_SKIPS_MAX = 14, /* 2^14 members: PARLEY_MEMBERS_MAX */
    RING_STAGES_MAX = 2 * RING_SKIPS_MAX,
    RING_INFLOWS = RING_STAGES_MAX + 1,
    RING_OUTFLOWS = 4,
    RING_LANES_MAX = 4,
    RING_HEARD_MAX = 2 * RING_STAGES_MAX, /* of the members before a change, and after it */
    RING_NUMBERS = 100
};

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
     * that it asks for is done it calls ring_used(). NULL: it sees by RING_USING that there is one.
     */
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
    uint64_t boot;
    uint32_t conn;
    struct message_strategy place;
};

/* What goes out, a stage at a time. */
struct ring_out {
    bool active, busy; /* busy: a part of it is on its way */
    uint32_t stage, part;
    int number;
};

/* One try of a round. Stages are counted through the reduce-scatter and the all-gather; a mask has
 * a bit for each. */
struct ring_try {
    bool active;
    uint64_t round, key;
    uint32_t early;                  /* as of the members */
    uint32_t count, at, stages;      /* members, this node's place among them */
    int peers[RING_STAGES_MAX];      /* whom each stage comes from, and its mirror goes to */
    uint32_t ticket;                 /* of what comes in */
    uint32_t here;                   /* mask: what has come as a whole */
    uint32_t conns[RING_STAGES_MAX]; /* where each is expected; 0: nowhere yet */
    uint8_t got[RING_STAGES_MAX];    /* parts of each that are here, of two at most */
    uint32_t summed, summing;        /* stages added to the sum; operations that add the next */
    struct ring_sum sum;             /* progress: of those of whom was told */
    struct {
        uint32_t conn, ticket;
    } sent[RING_STAGES_MAX]; /* for whom, last */
    uint32_t done;           /* mask: sent as a whole, or empty */
    struct ring_out out;
};

struct ring {
    const struct ring_use *use;
    enum ring_stage stage;
    bool made;              /* this node's contribution is in hand */
    uint64_t begun;         /* with these it began */
    uint64_t round;         /* completed, with those */
    uint64_t stamp, before; /* what they were made of; without the newest */
    double divisor;         /* of what is in hand; 0: the number of contributions */
    double progress;        /* this node's view of the cluster's as it was made */
    uint32_t result;        /* 0 or 1: which of the two buffers holds the newest sum */
    struct ring_sum sum;
    uint32_t pending; /* operations under way on the ring's buffers */
    uint32_t tickets;
    struct ring_try now;

    uint64_t news;  /* the roster's when the members were looked at */
    uint32_t early; /* of its first places those who are about to train are members, too */
    uint64_t key;
    uint32_t members, at;
    uint32_t stages; /* 2 ceil(log2 members) */
    int peers[RING_STAGES_MAX];
    int left;      /* NONE: alone */
    bool unlinked; /* from some of them, perhaps */

    struct ring_heard heard[RING_HEARD_MAX];
    uint32_t heard_count, heard_next;
    uint64_t said; /* a hash of what was said; 0: to be said again */
    uint64_t said_us;
    struct message_strategy pull; /* the place of whom the sum is taken from */
    uint32_t pull_conn;
    uint64_t progress_us, ending_us;
    bool ending, complained;
};

/* To be given, or called, for the strategy's calls of the same names. */
/* begun: rounds that the model it comes with has been through. */
void ring_begin(struct parley_node *node, const struct ring_use *use, uint64_t begun);
void ring_advance(struct parley_node *node);
uint64_t ring_deadline(const struct parley_node *node);
uint64_t ring_steps(const struct parley_node *node); /* rounds completed since it started */
void ring_done(struct parley_node *node);            /* of a number from RING_NUMBERS on */
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
/* Some peer waits for this node's part in the round, or in a later one. */
bool ring_is_awaited(const struct parley_node *node);

/* s(k) to s(k + 1); s(-1) is the number of members. */
static inline uint32_t ring_skip(uint32_t skip)
{
    return (skip + 1) / 2;
}

/* Of so many members, who stand at as many distances. */
static inline uint32_t ring_stages(uint32_t members)
{
    uint32_t stages = 0;
    for (uint32_t skip = members; skip > 1; skip = ring_skip(skip))
        stages += 2;
    return stages;
}

/* What is alike in a strategy on the ring. */
#define RING_STRATEGY                                                                              \
    .catches_up = true, .on_ring = true, .inflows = RING_INFLOWS, .outflows = RING_OUTFLOWS,       \
    .lanes_max = RING_LANES_MAX, .deadline = ring_deadline, .received = ring_received,             \
    .progress = ring_progress, .sent = ring_sent, .frame = ring_frame, .live = ring_live,          \
    .closed = ring_closed, .adopted = ring_adopted

#endif
