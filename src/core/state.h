/* state.h: the whole state of one node, and what its modules offer each other.
 *
 * One struct, one file a concept: connection.c (links), hello.c, seeds.c, membership.c (records,
 * SWIM), exchange.c (pairwise averaging), flow.c (streams of floats), drift.c (sketches), fetch.c
 * (a model from a peer), agreement.c (the end), training.c (local steps and the budget). node.c
 * dispatches. All time below is node time: the driver's clock less what this process slept
 * through (node.c), so that waking up late expires nothing.
 */
#ifndef PARLEY_CORE_STATE_H
#define PARLEY_CORE_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <xxhash.h>

#include "core/message.h"
#include "core/plant.h"
#include "core/rng.h"
#include "core/roster.h"
#include "core/strategy/strategy.h"
#include "core/topology.h"
#include "parley/node.h"

enum {
    COMMITS_MAX = 64, /* decided as initiator, APPLIED not yet heard */
    ABORTED_MAX = 64, /* newest sequences aborted as initiator */
    DOUBTS_MAX = 2,
    OUTFLOWS_MAX = 10, /* two exchanges and eight fetches served; a strategy's come on top */
    OPS_MAX = 64,      /* likewise */
    OPS_PER_OUTFLOW = 4,
    FLOW_VECTORS_MAX = PARLEY_VECTORS_MAX + STRATEGY_KEPT_MAX,
    BUSY_TRIES_MAX = 3,
    ROBUST_SEEN = 31 /* newest distances, whose median is the radius of clipping */
};

#define NEVER UINT64_MAX

/* ---- Connections ----------------------------------------------------------------------------- */

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
    uint64_t token;       /* of who accepted it; 0: none was drawn */
    uint32_t streams;     /* that both ends want, once LIVE; 0: none */
    uint32_t queued;      /* control bytes not yet out */
    uint32_t chunk_bytes; /* adapted so that a chunk takes 25 to 100 ms at the most */
    /* gossip.c: up to which change the own record, news of the others and their progress have gone
     * out here. */
    uint64_t own_sent, news_sent, any_sent;
    bool wanted, asked; /* the other end is to relay news here, and has been told */
    bool asks;          /* the other end wants that of us */
    bool synced;        /* everything known has gone out once since */
    /* drift.c: the version of the own sketch that has gone out here, and whose the other end lacks
     */
    uint32_t sketch_sent, lacks_count;
    struct lack lacks[MESSAGE_SKETCHES_MAX];
    /* A chunk that is coming in. */
    uint32_t chunk_left; /* bytes of floats still to come; 0: none */
    bool chunk_aside;    /* not on this connection */
    uint64_t chunk_sum;
    struct inflow *into; /* NULL: nobody wants it any more */
};

/* Where the connection of this id is: what is looked up with each event lies close together. */
struct open {
    uint32_t id, place;
    int32_t member; /* while LIVE, and not about to give way to another link to it; else NONE */
};

struct seed_dial {
    char address[PARLEY_ADDRESS_SIZE];
    uint64_t next_us, backoff_us;
    uint64_t boot; /* who answered there last; 0: nobody yet */
    bool self;
    bool tried; /* a dial has failed */
    bool dialing;
};

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

/* ---- Members --------------------------------------------------------------------------------- */

/* What this node alone knows of a member. */
struct member {
    uint64_t suspect_since_us, suspect_until_us; /* while SUSPECT */
    uint64_t confirmers[3];
    uint32_t confirmations;
    uint64_t dead_since_us;
    uint64_t redial_us; /* a dead member's address is tried again then */
    uint64_t busy_us;   /* it said BUSY: not before then */
    uint64_t spoilt_us; /* what it sent was not finite: nothing of it is mixed before then */
    bool counted;       /* this node's proposal has settled with it */
    bool refused;       /* its address refused a dial since it was last alive */
    uint64_t applied;
    double mass, mass_abs;
    uint64_t heard; /* own samples when its were heard of: training_reckoned() */
};

struct gossip {
    bool due;           /* something wants to go out at once */
    uint64_t news_us;   /* not before then: news of others */
    uint64_t paid_us;   /* what has been told of progress is paid for by then */
    uint64_t spurt_us;  /* not before then: own progress, to all at once */
    uint64_t want_us;   /* another link is dialled then */
    uint64_t next_us;   /* the first of those that matters */
    uint64_t news_sent; /* the roster's news that have gone to all */
    uint64_t told;      /* own samples that all have been told of */
    uint64_t turn;      /* counts turns of links: whose it is to be told of progress */
};

struct probe {
    int member; /* NONE: nobody is being probed */
    uint32_t sequence;
    uint64_t sent_us;
    bool indirect;
};

/* A probe made for another member. */
struct favour {
    uint32_t sequence, asker_sequence;
    uint64_t asker, target;
    uint64_t until_us;
};

/* ---- Vectors --------------------------------------------------------------------------------- */

enum op_kind {
    OP_FREE,
    OP_TAKE, /* for the slot */
    OP_ENCODE,
    OP_DIFF,
    OP_ADD,
    OP_CHUNK, /* for the outflow */
    OP_DOUBT_ADD,
    OP_STRATEGY, /* the strategy's number */
    OP_SKETCH_TAKE,
    OP_SKETCH,
    OP_STATE_TAKE, /* for a peer that joins */
    OP_ADOPT,      /* SET of a fetched state */
    OP_CANDIDATE_TAKE,
    OP_CANDIDATE_HASH,
    OP_FETCHED_HASH,
    OP_FETCHED_COPY,
    OP_FETCHED_DIFF,
    OP_WRITE,
    OP_PUBLISH
};

struct op {
    uint32_t id;
    enum op_kind kind;
    int owner; /* slot, doubt, outflow or the strategy's own */
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
    uint64_t chunk_us;  /* when the newest was given */
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

/* ---- Exchange -------------------------------------------------------------------------------- */

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

enum exchange_reason {
    EXCHANGE_REASON_NONE,
    EXCHANGE_NOT_TRAINING,
    EXCHANGE_DOUBTS,
    EXCHANGE_NON_FINITE,
    EXCHANGE_STALLED,
    EXCHANGE_LOST,
    EXCHANGE_ASKED,
    EXCHANGE_STATES_DIFFER,
    EXCHANGE_REASONS
};

struct slot {
    enum slot_state state;
    enum role role;
    int peer; /* member */
    uint32_t conn;
    uint32_t sequence; /* the initiator's count of its offers */
    uint32_t divisor;
    bool trains;                        /* it began while this node trained */
    double weight;                      /* pushed one way, and not d: push_sum.c; 0: none */
    double radius, clip;                /* robust.c: of d; what it is to be shortened by, or 1 */
    uint32_t own, theirs;               /* buffers; theirs becomes d */
    uint32_t spare[PARLEY_VECTORS_MAX]; /* further buffers, for optimizer vectors */
    bool taken, received, sent, peer_ready;
    bool paired;      /* it is the exchange of this node's round: pairing.c */
    bool eager;       /* initiator: its snapshot goes along with the offer */
    bool coded;       /* both snapshots go as is done in training: all vectors, by the codec */
    bool encoded;     /* `own` stands as it goes out */
    uint64_t draw;    /* of what a subset holds: the same at both ends */
    uint64_t version; /* of the snapshot */
    uint64_t holds;   /* how many of the decided deltas the snapshot holds */
    bool fresh;       /* `own` holds a snapshot that no exchange has used */
    bool behind;      /* the snapshot before lacked a delta that the other slot had decided */
    bool quick;       /* exchanges follow each other so fast that such a one is of use */
    uint64_t ended;   /* own step count when the last exchange ended */
    double mass, norm_sq, own_norm_sq;
    double samples; /* this node's part of the cluster's samples, as told to the peer; ... */
    double gap;     /* ... and what the peer's was more */
    uint64_t progress_us, keepalive_us;
    uint32_t pending; /* operations under way on its buffers */
    uint32_t tries;   /* initiator: peers that said BUSY in a row */
    struct inflow in;
};

/* READY was sent, the decision was not heard, the connection is gone. */
struct doubt {
    bool active, adding;
    uint64_t initiator; /* boot */
    int member;
    uint32_t sequence, divisor;
    bool trains;
    double weight, clip;
    uint32_t buffer, wide;
    double mass, gap;
    uint64_t since_us, ask_us, backoff_us;
};

struct commit {
    uint64_t responder; /* boot; 0: free */
    uint32_t sequence;
};

/* pairing.c: with whom this node averages while it settles. */
struct pairing {
    uint32_t round;
    int partner;                   /* of this round; NONE: there is none */
    bool asks;                     /* this node asks it */
    bool broken;                   /* somebody does not keep to it: by chance from here on */
    uint64_t news;                 /* the roster's when it was found */
    uint64_t since_us, longest_us; /* when this round began; how long one has taken at most */
};

struct exchange {
    struct pairing pairing;
    struct slot slots[ROLES];
    struct doubt doubts[DOUBTS_MAX];
    struct commit commits[COMMITS_MAX];
    uint32_t aborted[ABORTED_MAX];
    uint32_t aborted_next;
    uint32_t sequence;     /* of the newest offer */
    uint64_t decided;      /* deltas decided so far */
    uint64_t added;        /* deltas that are in x */
    double period;         /* steered: local steps from one to the next */
    uint64_t next_version; /* own step count from which the next exchange may start */
    uint64_t retry_us;     /* nobody could be asked: not before then */
    int32_t neighbours[PARLEY_NEIGHBOURS_MAX]; /* [neighbours_count] */
    uint32_t neighbours_count;
    uint64_t turnover;     /* the roster's when they were found */
    uint64_t peer_last[3]; /* LEAVE: boots already met */
    uint32_t left_count;
};

/* robust.c: squared distances of the snapshots of the newest exchanges that this node began. */
struct robust {
    double seen[ROBUST_SEEN];
    uint32_t count; /* so far */
};

/* ---- The rest -------------------------------------------------------------------------------- */

struct drift {
    float own[MESSAGE_BUCKETS]; /* the newest own sketch: it may not be among the sample */
    uint64_t change;            /* counts changes of sketches */
    uint64_t stale;             /* those up to this one count no more */
    bool due;                   /* some sketch wants to go out */
    bool sketching;             /* the initiator's slot is reserved for it */
    bool far;                   /* some model met since `mixed` was 0 can't be within tolerance */
    uint32_t mixed;             /* exchanges that ended since a sketch might have been taken */
    uint32_t version;           /* of the newest own sketch */
    uint32_t passed;            /* own sketch versions in a row whose table was within tolerance */
    uint32_t judged;            /* version of the sketch judged last */
    uint64_t among;             /* a sum over those whom that was about */
    double value;               /* relative; negative: unknown */
    uint64_t measured_us;
    double pair_sq, own_sq; /* moving means over exchanges while training */
    uint64_t pairs;
    uint64_t next_us;  /* no sketch, and no exchange that one is due before, until then */
    uint64_t paid_us;  /* what has been sent of sketches is paid for by then */
    uint64_t ask_us;   /* not before then: whom this node lacks, to ... */
    uint32_t ask_turn; /* ... the next link */
};

enum fetch_state { FETCH_IDLE, FETCH_CONNECTING, FETCH_ASKED, FETCH_STREAMING, FETCH_SETTING };

struct fetch {
    enum fetch_state state;
    bool by_digest;
    int member;
    uint32_t conn, sequence;
    uint8_t digest[PARLEY_DIGEST_BYTES];
    uint64_t version;
    struct message_fetch answer; /* that brought it */
    uint64_t progress_us, retry_us;
    struct inflow in;
    /* Serving a joiner: the responder's slot is reserved until its state has been streamed. */
    bool serving;
    uint32_t serve_conn;
    struct message_fetch serve_answer;
    uint64_t served_us; /* when the newest byte of a model went out */
};

enum candidate_state {
    CANDIDATE_NONE,
    CANDIDATE_TAKING,
    CANDIDATE_HASHING,
    CANDIDATE_OWN,      /* proposed */
    CANDIDATE_FETCHING, /* the picked one comes in */
    CANDIDATE_CHECKING,
    CANDIDATE_WRITING,
    CANDIDATE_HELD,
    CANDIDATE_PUBLISHING,
    CANDIDATE_PUBLISHED
};

struct agreement {
    enum candidate_state candidate;
    uint32_t buffer, other;            /* the candidate's, and the one that a fetch fills */
    uint8_t own[PARLEY_DIGEST_BYTES];  /* what `buffer` holds */
    uint8_t pick[PARLEY_DIGEST_BYTES]; /* what is fetched, written or held */
    uint8_t written[PARLEY_DIGEST_BYTES];
    bool is_written, failed_write;
    double score;
    uint64_t proposer; /* of the pick: its boot; 0: others are DONE with it */
    uint64_t progress_us, patience_us, since_us;
    uint32_t settlers;    /* while in SETTLE: those that train no more, this one among them, ... */
    uint64_t mixes_us;    /* ... and when they last became more */
    uint64_t fingerprint; /* of all members' phases, to see whether anything moved */
    uint64_t verify_since_us; /* a small view dials the missing since then; 0: not yet */
    double drift_before;
    uint32_t held, known;
    uint64_t done_us;
    bool follows;  /* while LATE: another LATE node went back to SETTLE */
    bool rejoined; /* this node has done so */
};

struct training {
    uint64_t version, samples;    /* as last reported, since this process started */
    struct parley_resumed before; /* what counts of the time before */
    double weight;                /* of x: 1 but for push_sum.c */
    double part;    /* of the cluster's samples: own ones come in, and every exchange averages it */
    double behind;  /* how far below it peers were lately */
    uint32_t among; /* members that trained when it was last averaged */
    double alike; /* samples of the cluster, if all made as many as this node while they trained */
    uint64_t granted; /* steps asked of the driver, all told */
    uint64_t start_us;
    uint64_t stepped_us; /* when `version` last moved */
    double rate;         /* steps a second, smoothed */
    double moved_sq;     /* by a step, smoothed; 0: not known */
    uint64_t inherited;  /* steps of the optimizer vectors less own ones, modulo 2^64 */
    bool started;
    uint32_t diverged;     /* not 0: the model is no longer finite */
    uint32_t recovered;    /* times another's was taken for that */
    uint64_t helpless_us;  /* not 0: until then it must have been */
    enum parley_stop stop; /* asked for while JOINING: obeyed once in */
    uint64_t stop_us;
};

/* What a peer says its part is, can be one. It may be below 0: exchanges that overlap, each a half
 * or a third, take together more than was there. */
static inline bool part_is_sane(double part)
{
    return part > -1e18 && part < 1e18;
}

struct parley_node {
    struct parley_config config;
    char cluster[PARLEY_NAME_SIZE];
    struct message_setting settings[PARLEY_SETTINGS_MAX];
    struct rng rng;

    uint64_t now_us, skew_us; /* node time; driver's time less node time */
    uint64_t deadline_us;
    bool more; /* something was left for the next step: it wants to come at once */
    bool finished;
    struct parley_updates *out;

    struct conn *conns; /* [conns_count = config.connections_max + config.pending_max] */
    struct open *open;  /* [open_count of conns_count], those not FREE, in no order */
    uint32_t conns_count, open_count;
    uint32_t next_conn;
    uint64_t next_conn_us;   /* no connection's deadline is before that */
    struct seed_dial *seeds; /* [PARLEY_SEEDS_MAX] */
    uint32_t seeds_count;
    uint64_t next_seed_us;
    bool contacted; /* some peer has let us in */
    bool met_all;   /* that peer's whole table has come */
    struct name_check name_check;

    struct parley_roster *roster; /* own, or shared */
    struct parley_roster own_roster;
    int self;               /* this node's place in it; 0 in an own one */
    struct member *members; /* [roster->max]; NULL where the roster is shared */
    struct gossip gossip;
    uint32_t *probe_order; /* [roster->max], likewise */
    uint32_t probe_at, probe_count;
    struct probe probe;
    uint64_t next_probe_us, next_suspicion_us, next_redial_us;
    uint32_t probe_sequence, health;
    struct favour favours[8];

    struct op *ops; /* [ops_count] */
    uint32_t ops_count, next_op;
    struct outflow *outflows; /* [outflows_count] */
    uint32_t outflows_count, outflows_active;
    struct inflow *inflows; /* [strategy->inflows] */
    const struct strategy *strategy;
    void *strategy_state;

    struct exchange exchange;
    struct robust robust;
    struct drift drift;
    struct fetch fetch;
    struct agreement agreement;
    struct training training;
    struct parley_ledger ledger;
    bool leaving;
    uint64_t leave_us;
    uint64_t start_us;
};

static inline struct record *record_of(const struct parley_node *node, uint32_t member)
{
    return &node->roster->records[member];
}

static inline struct record *self_of(const struct parley_node *node)
{
    return record_of(node, (uint32_t)node->self);
}

/* NULL where the roster is shared. */
static inline struct member *member_of(const struct parley_node *node, int member)
{
    return node->members ? &node->members[member] : NULL;
}

/* Alive or suspect, this node included. */
static inline uint32_t live_of(const struct parley_node *node)
{
    return node->roster->counts[ROSTER_LIVE];
}

static inline enum parley_phase phase_of(const struct parley_node *node)
{
    return (enum parley_phase)self_of(node)->phase;
}

/* Bytes of a kind that may have so many a second: *paid_us is when all that went out is paid for.
 */
static inline void charge(const struct parley_node *node, uint64_t *paid_us, uint64_t bytes,
                          uint64_t bytes_a_second)
{
    if (*paid_us < node->now_us) *paid_us = node->now_us;
    *paid_us += bytes * 1000000 / bytes_a_second;
}

/* ---- out.c: updates -------------------------------------------------------------------------- */

struct parley_update *out_add(struct parley_node *node, enum parley_update_type type);
/* Whether a loop may emit one more frame; if not, it sets node->more and goes on next step. */
bool out_room(struct parley_node *node);
void out_log(struct parley_node *node, enum parley_log level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Text that lives until the next step. */
const char *out_text(struct parley_node *node, const char *text);
uint8_t *out_bytes(struct parley_node *node, size_t size);
/* Encodes a frame into the arena; returns its size. */
size_t out_encode(struct parley_node *node, enum wire_type type, const void *message,
                  uint8_t **bytes);
/* Registers an operation; its DONE comes to op_done() of the module that owns `kind`. */
uint32_t out_op(struct parley_node *node, enum op_kind kind, int owner);
struct parley_update *out_vector(struct parley_node *node, enum parley_update_type type,
                                 enum op_kind kind, int owner, uint32_t buffer);
void out_finish(struct parley_node *node, int error);

/* ---- connection.c ---------------------------------------------------------------------------- */

struct conn *connection_find(struct parley_node *node, uint32_t id);
/* The i-th of those that are not FREE, i < open_count. */
static inline struct conn *connection_at(const struct parley_node *node, uint32_t i)
{
    return &node->conns[node->open[i].place];
}
void connection_incoming(struct parley_node *node, uint32_t id, const char *address,
                         uint64_t token);
void connection_connected(struct parley_node *node, uint32_t id);
/* HELLO is said and heard, and conn->member is who the other end is. */
void connection_live(struct parley_node *node, struct conn *conn);
void connection_closed(struct parley_node *node, const struct parley_event *event);
void connection_bye(struct parley_node *node, struct conn *conn, struct message_bye_frame *bye);
void connection_timers(struct parley_node *node);
uint64_t connection_deadline(const struct parley_node *node);
/* The LIVE connection of a member; NULL if there is none. */
struct conn *connection_of(struct parley_node *node, int member);
/* The same, dialling if need be: NULL means it is under way, or that no place is free. */
struct conn *connection_want(struct parley_node *node, int member);
/* NULL: no place is free. */
struct conn *connection_dial(struct parley_node *node, const char *address);
/* It can be reached again: a dial that has waited for it is given up for another. */
void connection_renew(struct parley_node *node, int member);
void connection_close(struct parley_node *node, struct conn *conn);
void connection_goodbye(struct parley_node *node, struct conn *conn, enum message_bye reason);
/* What is to be said or sent over it waits in vain: it ends, if it is LIVE, and no one is suspected
 * for it; it is dialled anew when somebody wants it. */
void connection_stalled(struct parley_node *node, uint32_t id);
/* Encodes and sends; a queue over its limit closes the connection. */
void connection_send(struct parley_node *node, struct conn *conn, enum wire_type type,
                     const void *message);

/* ---- seeds.c --------------------------------------------------------------------------------- */

void seeds_add(struct parley_node *node, const char *const *seeds, uint32_t count);
/* All are dialled now, whatever their back-off. */
void seeds_hurry(struct parley_node *node);
bool seeds_only_self(
    const struct parley_node *node);            /* each is this node itself, or there is none */
bool seeds_met(const struct parley_node *node); /* each, or tried in vain */
/* Who answered there last; NONE: nobody yet. */
int seeds_member(const struct parley_node *node, int seed);
/* Of the connection that it was dialled by: HELLO is done; it has ended. */
void seeds_answered(struct parley_node *node, int seed, uint64_t boot);
void seeds_ended(struct parley_node *node, int seed, bool was_live);
void seeds_log(struct parley_node *node, int seed, const char *what);
void seeds_timers(struct parley_node *node);
/* Ends the node if it has met nobody for config.join_timeout_us. */
void seeds_give_up(struct parley_node *node);
uint64_t seeds_deadline(const struct parley_node *node);

/* ---- hello.c --------------------------------------------------------------------------------- */

/* Says who this node is; `answer`: to the HELLO of the other end. */
void hello_send(struct parley_node *node, struct conn *conn, bool answer);
void hello_received(struct parley_node *node, struct conn *conn, const struct message_hello *hello);
void hello_rejected(struct parley_node *node, struct conn *conn,
                    const struct message_reject *reject);
/* The other end speaks this other version of the protocol. */
void hello_foreign(struct parley_node *node, struct conn *conn, uint8_t version);
/* Whether it waits for the answer of who has its name. */
bool hello_is_checked(const struct parley_node *node, const struct conn *conn);
void hello_closed(struct parley_node *node, const struct conn *conn);
void hello_ack(struct parley_node *node, const struct message_probe *ack); /* perhaps that answer */
void hello_timers(struct parley_node *node);
uint64_t hello_deadline(const struct parley_node *node);

/* ---- membership.c, gossip.c ------------------------------------------------------------------ */

bool membership_is_live(const struct parley_node *node, int member);
/* A record seen directly or heard of. `from` is the member that said it, NONE for HELLO. */
int membership_merge(struct parley_node *node, const struct record *record, int from);
void membership_start(struct parley_node *node);
void membership_contact(struct parley_node *node, struct conn *conn); /* HELLO completed */
void membership_forgive(struct parley_node *node,
                        int member);                        /* its address may be dialled again */
void membership_lost(struct parley_node *node, int member); /* its connection broke */
void membership_refused(struct parley_node *node, int member);  /* its address refused a dial */
void membership_replaced(struct parley_node *node, int member); /* another boot has its place */
void membership_members(struct parley_node *node, struct conn *conn, struct message_members *m);
void membership_ping(struct parley_node *node, struct conn *conn, enum wire_type type,
                     struct message_probe *probe);
/* Own record changed: urgent changes go to everybody at once, lazy ones now and then. */
void membership_changed(struct parley_node *node, bool urgent);
void membership_leave(struct parley_node *node);
/* gossip.c: sends what is due of the members' records: on all links, or what this one lacks. */
void gossip_pump(struct parley_node *node);
void gossip_flush(struct parley_node *node, struct conn *conn);
void membership_timers(struct parley_node *node);
uint64_t membership_deadline(const struct parley_node *node);
/* A random live peer for which fits() holds; NONE if there is none. */
int membership_pick(struct parley_node *node, bool (*fits)(struct parley_node *, int));

/* ---- flow.c ---------------------------------------------------------------------------------- */

int flow_send(struct parley_node *node, uint32_t conn, enum wire_stream kind, uint32_t sequence,
              const uint32_t *buffers, uint32_t vectors, int slot); /* NONE: all places taken */
int flow_send_part(struct parley_node *node, uint32_t conn, const struct strategy_part *part,
                   int number);
void flow_abort(struct parley_node *node, int outflow);
void flow_expect(struct parley_node *node, struct inflow *in, uint32_t conn, enum wire_stream kind,
                 uint32_t sequence, const uint32_t *buffers, uint32_t vectors);
void flow_expect_part(struct parley_node *node, struct inflow *in, uint32_t conn,
                      const struct strategy_part *part);
void flow_forget(struct parley_node *node, struct inflow *in);
/* Takes what it can of a chunk; `error` is set when the connection must be closed. */
size_t flow_chunk_begin(struct parley_node *node, struct conn *conn, const uint8_t *bytes,
                        uint32_t size, int *error);
size_t flow_chunk_bytes(struct parley_node *node, struct conn *conn, const uint8_t *bytes,
                        size_t size, int *error);
void flow_chunk_done(struct parley_node *node, int outflow, bool ok);
void flow_closed(struct parley_node *node, uint32_t conn);
void flow_pump(struct parley_node *node);

/* ---- exchange.c, offer.c, slot.c (more in exchange.h), doubt.c ------------------------------- */

void exchange_init(struct parley_node *node);
void exchange_advance(struct parley_node *node); /* starts what may start */
void exchange_frame(struct parley_node *node, struct conn *conn, enum wire_type type,
                    const struct message_exchange *message);
void exchange_done(struct parley_node *node, const struct op *op, const struct parley_event *event);
void exchange_received(struct parley_node *node, int slot); /* its inflow is complete */
void exchange_progress(struct parley_node *node, int slot);
/* Says in a STORE of what comes in that a DIFF may begin. */
void exchange_store(struct parley_node *node, int slot, struct parley_update *update);
void exchange_sent(struct parley_node *node, int slot, bool ok);
void exchange_live(struct parley_node *node, struct conn *conn); /* a connection became LIVE */
void exchange_closed(struct parley_node *node, uint32_t conn, int member);
/* The responder is gone for good, and its delta with it: nothing is kept for it any more. */
void exchange_forget(struct parley_node *node, uint64_t responder);
/* Lends an idle slot's buffers to something else, and takes them back. */
void exchange_reserve(struct parley_node *node, enum role role);
void exchange_release(struct parley_node *node, enum role role);
void exchange_timers(struct parley_node *node);
uint64_t exchange_deadline(const struct parley_node *node);
/* A delta of <r, d> = mass is in x, times factor; gap: of the two parts of the cluster's samples.
 */
void exchange_applied(struct parley_node *node, int member, float factor, double mass, double gap);

/* period.c */
void period_start(struct parley_node *node);
uint64_t period_steps(const struct parley_node *node);      /* now, from one exchange to the next */
void period_pair(struct parley_node *node, double norm_sq); /* ||x_i - x_j||^2 of an exchange */

bool doubt_room(const struct parley_node *node);
void doubt_open(struct parley_node *node, struct slot *slot);
void doubt_ask(struct parley_node *node, struct conn *conn,
               const struct message_outcome_frame *ask);
void doubt_outcome(struct parley_node *node, const struct message_outcome_frame *outcome);
void doubt_done(struct parley_node *node, int doubt, bool ok);
void doubt_live(struct parley_node *node, struct conn *conn);
void doubt_restarted(struct parley_node *node, uint64_t boot);
void doubt_drop_all(struct parley_node *node);
bool doubt_blocks(const struct parley_node *node);
void doubt_timers(struct parley_node *node);
uint64_t doubt_deadline(const struct parley_node *node);
/* The newest outcome of an exchange this node initiated, as asked for. */
enum message_outcome exchange_outcome(struct parley_node *node, uint64_t asker, uint32_t sequence);

/* ---- drift.c --------------------------------------------------------------------------------- */

void drift_pair(struct parley_node *node, double norm_sq, double own_norm_sq);
void drift_done(struct parley_node *node, const struct op *op, const struct parley_event *event);
void drift_sketches(struct parley_node *node, struct conn *conn,
                    const struct message_sketches *message);
/* In SETTLE: takes a sketch if one is due. True if no exchange may start before it. */
bool drift_advance(struct parley_node *node);
uint64_t drift_deadline(const struct parley_node *node);
void drift_pump(struct parley_node *node);
bool drift_settled(struct parley_node *node); /* within tolerance in two fresh tables */

/* ---- fetch.c --------------------------------------------------------------------------------- */

void fetch_start(struct parley_node *node, int member, const uint8_t *digest); /* NULL: the state */
void fetch_stop(struct parley_node *node);
void fetch_asked(struct parley_node *node, struct conn *conn, const struct message_fetch *message);
void fetch_answered(struct parley_node *node, struct conn *conn,
                    const struct message_fetch *message);
void fetch_received(struct parley_node *node);
void fetch_progress(struct parley_node *node);
void fetch_done(struct parley_node *node, const struct op *op, const struct parley_event *event);
void fetch_served(struct parley_node *node, bool was_state);
void fetch_live(struct parley_node *node, struct conn *conn);
void fetch_closed(struct parley_node *node, uint32_t conn, int member);
void fetch_timers(struct parley_node *node);
uint64_t fetch_deadline(const struct parley_node *node);

/* ---- strategy/ (more in strategy/strategy.h) --------------------------------------------------
 */

void strategy_advance(struct parley_node *node);
uint64_t strategy_deadline(const struct parley_node *node);

/* ---- agreement.c (its view: said.h) ---------------------------------------------------------- */

void agreement_stop(struct parley_node *node, enum parley_stop cause);
void agreement_advance(struct parley_node *node);
/* The others go on without this node; it adopts what they agree on. */
void agreement_late(struct parley_node *node);
void agreement_done(struct parley_node *node, const struct op *op,
                    const struct parley_event *event);
uint64_t agreement_deadline(const struct parley_node *node);
/* Says goodbye to everybody and ends. */
void agreement_finish(struct parley_node *node, int error);
/* A member that this node's decisions wait for. */
static inline bool agreement_waits_for(const struct parley_node *node, int member)
{
    return record_is_waited_for(record_of(node, (uint32_t)member));
}

/* ---- training.c ------------------------------------------------------------------------------ */

void training_advance(struct parley_node *node); /* joining, start, budget, steps to make */
/* What is in the buffer goes into x with this weight beside that of x; below 0: is taken out. */
void training_weigh(struct parley_node *node, enum op_kind kind, int owner, uint32_t buffer,
                    double weight);
void training_stepped(struct parley_node *node, const struct parley_event *event);
/* Whether the budget leaves room for one more step of this node. */
bool training_wants(const struct parley_node *node);
/* What strategy->steps() says has changed. */
/* A peer's part was more by `gap`, and came in by this factor. */
void training_averaged(struct parley_node *node, double gap, double factor);
void training_counted(struct parley_node *node);
/* Takes the model and what belongs to it of that member, or of any that trains (NONE). Call again
 * until strategy->adopted(). */
void training_follow(struct parley_node *node, int member);
/* steps: that the vectors taken have been through; version: own steps so far. */
void training_adopted(struct parley_node *node, uint64_t steps, uint64_t version);
double training_progress(const struct parley_node *node);
/* Samples that all have used: no more than that, and where few count each by itself, no less than
 * what this node has heard of. */
uint64_t training_samples(const struct parley_node *node);
/* The same with what they have used since by all appearances: to look at, not to end by. */
uint64_t training_reckoned(const struct parley_node *node);
/* Whether it is counted by what was heard of each. */
bool training_counts_heard(const struct parley_node *node);
uint64_t training_deadline(const struct parley_node *node);
void training_leave(struct parley_node *node);

/* ---- node.c ---------------------------------------------------------------------------------- */

void node_phase(struct parley_node *node, enum parley_phase phase);

#endif
