/* rounds.h: synchronous rounds in which each node mixes with all its neighbours, and no node with
 * all.
 *
 * x_i <- x_i + step * sum_j w_ij (z_j - z_i), W symmetric, so doubly stochastic
 * (topology_weight()); z is what the strategy makes of a snapshot of x. Every --mix-every local
 * steps a round:
 *
 *   z_i                    made(); the local steps up to the next round go on meanwhile
 *   ROUND(r, weight) ->    to each neighbour; who is in round r, too, answers with its own
 *   PULL(r) ->             then z_j is asked for, and comes; d = z_j - z_i
 *   GOT(r) ->              x_i += step w d, w the smaller of what both ends named
 *
 * A round ends when each neighbour's term is in, and it has ours: nobody is more than a round ahead
 * of a neighbour. As both ends add the same d with the same w, one with the other sign, the mean of
 * the live stays where it is, whatever the order. Either both ends of a link take its term or none,
 * but for deaths:
 *
 *   a neighbour dies or stops      its term is dropped; the others' weights stay, and what is left
 *                                  over counts as own weight. From the next round on the weights
 *                                  are those of the live graph. If it had sent its model to some:
 *                                  these keep that, and the mean of the living has moved by
 *                                  step w (z_dead - z_i) / n for each, as if it had left them a
 *                                  part of its model.
 *   it only seemed dead, or was    the same, and it may have taken ours: the mean of the two moves
 *   silent for 10 s                once by step w (z_j - z_i) / n. When it is back it goes on with
 *                                  the round that the others are in.
 *   the two can't reach each other each drops the other's term at once, once both have found so (at
 *                                  first after 10 s of silence), and dials it again each round
 *   a link breaks                  both say again what matters on the next one; no harm
 *   the two see different graphs   who is asked by somebody who is no neighbour says NO, as does
 *                                  who was about to train and came too late
 *   a node is late                 it joins the round that the others are in; if it has missed more
 *                                  steps than an exchange may be old, and more rounds than partners
 *                                  may be apart by, with another's model, unless it has just come
 *                                  with one of its own. (Where neighbours change, nodes may be
 *                                  rounds apart without anybody being late.)
 *
 * Nobody waits for who is ahead, so there is no circle of waiting.
 *
 * A strategy by rounds has a struct rounds as the first member of its state, sets `use` in begin(),
 * and has ROUNDS_COMMON of its buffers first. Its table names the calls below; done() passes on the
 * numbers below ROUNDS_NUMBERS.
 * Thread rule: as the node's.
 */
#ifndef PARLEY_CORE_ROUNDS_H
#define PARLEY_CORE_ROUNDS_H

#include "core/state.h"
#include "core/strategy/strategy.h"

/* Buffers: z, then its short form, if any: what changes z_j of the round before, where the other
 * end has that, into the present one, in as many bytes as config.codec makes. The lanes' are the
 * strategy's until rounds_made(). */
enum { ROUNDS_OWN, ROUNDS_SHORT, ROUNDS_COMMON = ROUNDS_SHORT };
enum { ROUNDS_LANES = 2, ROUNDS_LANES_MAX = 16, ROUNDS_SENDS = 2, ROUNDS_NUMBERS = 100 };

struct neighbour {
    int member;    /* where it has its place, ... */
    uint64_t boot; /* ... as long as it is this one */
    float weight;
    uint64_t before; /* its short form changes z of that round (plus 1); 0: it has none */
    bool met;        /* it is in this round, and has named its weight */
    bool dropped;    /* it takes no part any more */
    bool pulled;     /* it waits for our z; ... */
    bool pulls_short;
    bool sending;
    bool got;   /* it has it for good */
    bool mixed; /* its term is in x, or decided to be */
    bool counted;
    int lane; /* that its z comes in; NONE */
    uint64_t heard_us;
};

struct lane {
    int neighbour; /* NONE: free */
    bool coming;
    uint64_t first_us;     /* when something of it came; 0: nothing has */
    bool is_short, broken; /* in which form it comes; it can't be read */
    double mass;
};

/* What a strategy makes of rounds. Those that are NULL do the usual; without a short form `before`
 * stays 0. */
struct rounds_use {
    /* The neighbours are found: gets z from x, and calls rounds_made(). */
    void (*make)(struct parley_node *node);
    /* The factor of all terms, usually 1. */
    float (*step)(const struct parley_node *node);
    /* Whether n's short form is of use: this node has n's z that it changes. */
    bool (*fits)(const struct parley_node *node, const struct neighbour *n);
    /* n's z is in the lane's buffer, in that form. Asks for what makes it the whole of z there, all
     * under that number. */
    void (*read)(struct parley_node *node, const struct neighbour *n, bool is_short,
                 uint32_t buffer, int number);
    /* It was mixed, or could not be. */
    void (*mixed)(struct parley_node *node, const struct neighbour *n, bool ok);
    /* Adds factor times the buffer's floats to x: an ADD under that number. */
    void (*add)(struct parley_node *node, uint32_t buffer, float factor, int number);
};

enum rounds_stage {
    ROUNDS_RESTING, /* no round is under way */
    ROUNDS_MAKING,  /* z is being made, if there is any neighbour */
    ROUNDS_MIXING
};

struct rounds {
    const struct rounds_use *use;
    enum rounds_stage stage;
    uint64_t round;        /* the one under way, or the next */
    uint64_t next_version; /* own step count from which it may start */
    uint64_t before;       /* the own short form's, as in struct neighbour */
    bool ending, refused;  /* no more rounds, and the neighbours know */
    bool crowded;          /* that there are more neighbours than have room was said */
    bool follows;
    uint64_t follows_us; /* since then */
    uint64_t ahead;      /* the furthest round heard of */
    int leader;          /* from whom */
    uint64_t said_us;    /* in this round; 0: not yet */
    uint64_t turnover;   /* the roster's, of the graph that it goes by */
    struct neighbour neighbours[PARLEY_NEIGHBOURS_MAX];
    uint32_t count;
    struct lane lanes[ROUNDS_LANES_MAX]; /* [lanes_count] */
    int lanes_count, lanes_open;         /* so many are used at a time */
};

static inline struct rounds *rounds_of(const struct parley_node *node)
{
    return node->strategy_state;
}

/* For make(): z is in ROUNDS_OWN, and a short form that goes with `before` in ROUNDS_SHORT. Not
 * finite: this node's model has diverged, and it takes no part in this round. */
void rounds_made(struct parley_node *node, bool finite, uint64_t before);

/* rounds.c: as in struct strategy */
void rounds_begin(struct parley_node *node, const struct rounds_use *use);
void rounds_advance(struct parley_node *node);
uint64_t rounds_deadline(const struct parley_node *node);
uint64_t rounds_limit(const struct parley_node *node);
void rounds_give(struct parley_node *node, struct message_fetch *answer);
void rounds_adopted(struct parley_node *node, const struct message_fetch *answer);
bool rounds_stop(struct parley_node *node);

/* rounds_terms.c: the lane whose term is added to x under that number; NONE. For the simulator's
 * checkers alone. */
int rounds_lane_added(int number);

/* rounds_terms.c: likewise */
void rounds_done(struct parley_node *node, int number, const struct parley_event *event);
void rounds_received(struct parley_node *node, int lane);
void rounds_progress(struct parley_node *node, int lane);
void rounds_sent(struct parley_node *node, int number, bool ok);
void rounds_frame(struct parley_node *node, struct conn *conn,
                  const struct message_strategy *message);
void rounds_live(struct parley_node *node, struct conn *conn);
void rounds_closed(struct parley_node *node, uint32_t conn, int member);

/* rounds_terms.c, for rounds.c */
void rounds_announce(struct parley_node *node, const struct neighbour *n);
void rounds_refuse(struct parley_node *node, const struct neighbour *n);
void rounds_pump(struct parley_node *node); /* asks for what may come, and gives what was asked */
void rounds_drop(struct parley_node *node, struct neighbour *n);

/* Nothing more comes of it, nor goes to it, in this round. */
static inline bool rounds_is_over(const struct neighbour *n)
{
    return (n->dropped || (n->mixed && n->got)) && n->lane == NONE;
}

/* This node waits for it, or it for this node. */
static inline bool rounds_is_awaited(const struct neighbour *n)
{
    return !n->dropped && !rounds_is_over(n);
}

/* What is alike in a strategy of synchronous rounds. */
#define ROUNDS_STRATEGY                                                                            \
    .inflows = ROUNDS_LANES_MAX, .outflows = ROUNDS_SENDS, .lanes = ROUNDS_LANES,                  \
    .lanes_max = ROUNDS_LANES_MAX, .advance = rounds_advance, .deadline = rounds_deadline,         \
    .limit = rounds_limit, .received = rounds_received, .progress = rounds_progress,               \
    .sent = rounds_sent, .frame = rounds_frame, .live = rounds_live, .closed = rounds_closed,      \
    .give = rounds_give, .stop = rounds_stop

#endif
