/* parley/node.h: the node as a pure state machine: one event in, updates out.
 *
 * The node owns no socket, clock, thread, file or float. A driver tells it what happened
 * (struct parley_event) and carries out what it asks for (struct parley_update), in order. Two
 * drivers exist: peers/ (libuv, TCP, threads) and sim/ (virtual time). The happy path:
 *
 *     if (parley_updates_init(&updates) || parley_node_new(&node, &config)) return 1;
 *     for (;;) {
 *         event = what happened next, or TICK once now >= parley_node_deadline(node);
 *         parley_node_step(node, &event, &updates);
 *         carry out updates.list[0 .. updates.count);
 *     }
 *
 * Big vectors are named by buffer id. The driver owns parley_config_buffers() buffers of
 * config.averaged times config.parameters floats each, ids 0, 1, ..., and the vectors being
 * trained: vector 0 is the parameters x, 1 and up are the optimizer's. Only the trainer touches
 * those, and only between two local steps: at a *boundary*. An idle trainer is always at a
 * boundary.
 *
 * What comes from peers can break nothing. What a driver does against what stands here (DONE of an
 * op that is not under way, SENT of more bytes than were given, a member beyond the count) is a bug
 * of the driver: an assertion ends the program, in release builds, too.
 *
 * Drivers of one kind may make sketches, digests and the vector of +-1 as they like, if all make
 * them alike, and do without sums of chunks (config.chunk_sums). Those that talk to parley's own
 * nodes take them from src/, as they are not in the library.
 *
 * Thread rule: a node belongs to one thread. Nothing here blocks; a step allocates nothing.
 */
#ifndef PARLEY_NODE_H
#define PARLEY_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "parley/config.h"

#ifdef __cplusplus
extern "C" {
#endif

struct parley_node;

/* What a driver has room for: buffers, by their ids; operations on vectors between their update and
 * their DONE, but for STORE and SEND_CHUNK. */
enum { PARLEY_BUFFERS_MAX = 128, PARLEY_OPERATIONS_MAX = 64 + 2 * PARLEY_SERVED_MAX };

/* ---- Events ---------------------------------------------------------------------------------- */

enum parley_event_type {
    PARLEY_EVENT_START,    /* the driver listens; once, first */
    PARLEY_EVENT_TICK,     /* parley_node_deadline() has passed */
    PARLEY_EVENT_INCOMING, /* a peer connected; conn is the driver's: even, above 0, never reused */
    PARLEY_EVENT_CONNECTED, /* the dial of conn succeeded */
    PARLEY_EVENT_CLOSED, /* conn is gone, or its dial failed; also after UPDATE_CLOSE; once each */
    PARLEY_EVENT_RECEIVED, /* bytes came in */
    PARLEY_EVENT_SENT,     /* bytes given with UPDATE_SEND have left the driver's queue */
    PARLEY_EVENT_STEPPED,  /* local steps were made; may be coalesced */
    PARLEY_EVENT_DONE,     /* an operation (a field `op`) has ended; exactly once each */
    PARLEY_EVENT_SEEDS,    /* the peer list was read again */
    PARLEY_EVENT_STOP,     /* somebody wants the run to end with an agreement */
    PARLEY_EVENT_LEAVE     /* this node is to leave alone */
};

enum parley_closed {
    PARLEY_CLOSED_LOCAL, /* the core asked for it */
    PARLEY_CLOSED_EOF,
    PARLEY_CLOSED_RESET,
    PARLEY_CLOSED_REFUSED,   /* the dial was refused: nobody listens there */
    PARLEY_CLOSED_UNREACHED, /* the dial failed otherwise: timed out, no route, unknown host */
    PARLEY_CLOSED_KEY        /* whoever is there has not this node's key, or has one alone */
};

enum parley_stop {
    PARLEY_STOP_NONE,
    PARLEY_STOP_BUDGET,
    PARLEY_STOP_TARGET,
    PARLEY_STOP_DEADLINE,
    PARLEY_STOP_OPERATOR
};

struct parley_event {
    enum parley_event_type type;
    uint64_t now_us;      /* monotonic; never less than in the event before */
    __extension__ union { /* clang++ -Wpedantic takes it for C alone */
        struct {
            uint32_t conn;
            const char *address; /* of the remote end, for messages; borrowed */
            uint64_t token;      /* told to the other end in HELLO, where not 0 */
        } incoming;
        struct {
            uint32_t conn;
        } connected;
        struct {
            uint32_t conn;
            enum parley_closed reason;
            const char *text; /* the system's words, and a name's addresses; or ""; borrowed */
        } closed;
        struct {
            uint32_t conn;
            const uint8_t
                *bytes;  /* borrowed for the call, and until STOREs of it are carried out */
            size_t size; /* see parley_updates.consumed */
        } received;
        struct {
            uint32_t conn;
            size_t bytes;
        } sent;
        struct {
            /* Local steps made by this node since it started, all told, and the samples they used:
             * with those resumed below 10^18, or the node ends with PARLEY_EUSAGE. */
            uint64_t version, samples;
            double loss;     /* mean loss of the newest steps; may be non-finite */
            double moved_sq; /* ||what the newest step moved x by||^2, or an estimate; wanted where
                                config.mix_steered; 0: not known */
            uint64_t place;  /* how far the node has come with its share of the data, in a measure
                                of the driver's: others are told; 0: not known */
        } stepped;
        struct {
            uint32_t op;
            bool ok; /* false: it could not be carried out; only SEND_CHUNK (the connection is
                        gone: CLOSED may come later), HASH (no memory), WRITE and PUBLISH (the
                        disk) may fail */
            uint64_t version; /* TAKE, ADD, SET, GRADIENT, APPLY: the trainer's at that boundary */
            bool finite;    /* TAKE, DIFF, COMBINE, HASH, GRADIENT, SET where if_finite: every float
                               involved is finite; GRADIENT: so is the loss */
            double norm_sq; /* DIFF: ||theirs - ours||^2 */
            double own_norm_sq; /* DIFF: ||ours||^2 */
            double mass; /* DIFF: <r, theirs - ours>, r the run's vector of +-1, in float64 */
            const double *sketch;  /* SKETCH: [PARLEY_SKETCH_BUCKETS]; borrowed */
            const uint8_t *digest; /* HASH, WRITE: [PARLEY_DIGEST_BYTES]; borrowed */
        } done;
        struct {
            const char *const *seeds; /* borrowed */
            uint32_t count;
        } seeds;
        struct {
            enum parley_stop cause;
        } stop;
    };
};

/* ---- Updates --------------------------------------------------------------------------------- */

enum parley_update_type {
    /* Connections. Writes of one connection leave in the order given. */
    PARLEY_UPDATE_DIAL,  /* connect to address; conn is odd, chosen by the core, never reused */
    PARLEY_UPDATE_CLOSE, /* flush what was sent, then close; events of conn but CLOSED end */
    PARLEY_UPDATE_SEND,  /* bytes are valid until the next step: copy or write them */
    PARLEY_UPDATE_SEND_CHUNK, /* head, then floats of a buffer, which stay unchanged until DONE;
                                 seal the head first, where config.chunk_sums: wire_chunk_seal()
                                 in src/core/wire/wire.h, which this library keeps to itself */
    /* Training. */
    PARLEY_UPDATE_TRAIN, /* make `steps` more local steps; adds to what is left of earlier ones */
    PARLEY_UPDATE_HALT,  /* forget the steps that are left; the one under way completes */
    /* Vectors. TAKE, SET, ADD, MIX, GRADIENT and APPLY happen in the order given, at the trainer's
       next boundary, and before the steps of a later TRAIN; the others in the order given on any
       thread but never before earlier ones on the same buffer. */
    PARLEY_UPDATE_STORE, /* bytes (borrowed from RECEIVED) into buffer at offset: at once; they may
                            stand there already, see parley_node_awaits() */
    PARLEY_UPDATE_TAKE,  /* buffers[v] = vector v, for v < vectors, all at one boundary; `wide` of
                            them stand one behind the other in buffers[0], where it is above 1 */
    PARLEY_UPDATE_SET,   /* vector v = buffers[v], for v < vectors, all at one boundary;
                            `if_finite`: none of them, where a float is not finite */
    PARLEY_UPDATE_ADD,   /* vector v += factor * (part v of buffer), for v < wide, at one boundary;
                            nobody wants the buffer's floats any more. `rest`: x += buffer, which
                            then holds what rounding kept from x */
    PARLEY_UPDATE_MIX,   /* x = keep * x + factor * buffer */
    /* A local step in two halves. GRADIENT counts as the step: STEPPED tells its samples and loss,
       then comes DONE. APPLY may be given any gradient, of any node. */
    PARLEY_UPDATE_GRADIENT, /* buffer = gradient of the next batch's mean loss, at x or at `other`
                             */
    PARLEY_UPDATE_APPLY,  /* the optimizer's step of x with factor * buffer, which stays as it is */
    PARLEY_UPDATE_ENCODE, /* buffer becomes what config.codec makes of it (core/transfer/codec.h),
                             or of `other` */
    PARLEY_UPDATE_DIFF,   /* buffer (theirs) -= other (ours), in place; measures. `coded`: both are
                             encoded, and d is that of what they decode to, for each of the `wide`
                             vectors in them; it measures the first, x */
    /* buffer = keep * buffer + factor * other, over a part of both; what is times 0 is not read.
       STOREs and chunks of other parts of the buffer go on meanwhile. `coded`: buffer += what
       `other` decodes to, whole; `finite` also says whether it could be decoded. */
    PARLEY_UPDATE_COMBINE,
    PARLEY_UPDATE_SKETCH,  /* CountSketch of buffer */
    PARLEY_UPDATE_HASH,    /* SHA-256 over run id, shapes and floats of buffer */
    PARLEY_UPDATE_WRITE,   /* write buffer durably beside the final name, read back, hash; from
                              then on this start may hold a model (enum parley_earlier) */
    PARLEY_UPDATE_PUBLISH, /* what was written becomes the final model file, atomically */
    /* Telling. */
    PARLEY_UPDATE_PHASE,   /* the node's phase changed: parley_node_view() has it */
    PARLEY_UPDATE_MEMBER,  /* a member came, or its state changed; not of who was gone before */
    PARLEY_UPDATE_LOG,     /* a line for people */
    PARLEY_UPDATE_FINISHED /* the node has ended: close everything; no event after this */
};

enum parley_log {
    PARLEY_LOG_ERROR,
    PARLEY_LOG_WARN,
    PARLEY_LOG_INFO,
    PARLEY_LOG_DEBUG /* one line a state change */
};

enum parley_member_state {
    PARLEY_MEMBER_ALIVE,
    PARLEY_MEMBER_SUSPECT,
    PARLEY_MEMBER_DEAD,
    PARLEY_MEMBER_LEFT
};

enum parley_phase {
    PARLEY_PHASE_JOINING,
    PARLEY_PHASE_TRAIN,
    PARLEY_PHASE_STOP, /* training has ended here; open exchanges end */
    PARLEY_PHASE_SETTLE,
    PARLEY_PHASE_PROPOSED,
    PARLEY_PHASE_HELD,
    PARLEY_PHASE_LOCKED,
    PARLEY_PHASE_DONE,
    PARLEY_PHASE_LATE,
    PARLEY_PHASE_LEFT
};

/* How far the cluster is in its budget as this node makes its steps, for the schedule. */
struct parley_pace {
    double progress; /* in [0, 1], as it is reckoned before the step that follows ... */
    uint64_t made;   /* ... so many of this node's, ... */
    double slope;    /* ... and what each more of them adds, at least 0 */
};

/* Before the step that follows `made` of this node's, no fewer than the pace's. Pure. */
double parley_pace_progress(const struct parley_pace *pace, uint64_t made);

struct parley_update {
    enum parley_update_type type;
    __extension__ union { /* clang++ -Wpedantic takes it for C alone */
        struct {
            uint32_t conn;
            const char *address; /* valid until the next step */
        } dial;
        struct {
            uint32_t conn;
            bool at_once; /* nothing is flushed: the other end is dead */
        } close;
        struct {
            uint32_t conn;
            const uint8_t *bytes;
            size_t size;
        } send;
        struct {
            uint32_t op;
            uint32_t conn;
            uint8_t *head; /* [head_size], unsealed; valid until the next step: copy it */
            size_t head_size;
            uint32_t buffer;
            uint64_t offset; /* in bytes from the buffer's start */
            size_t size;     /* bytes, a multiple of 4, at most PARLEY_CHUNK_BYTES_MAX */
            bool part;       /* other parts of the buffer may change meanwhile */
        } chunk;
        struct {
            uint64_t steps;
            struct parley_pace pace;
            uint32_t live; /* nodes that live, this one included */
            /* Plus the steps this node has made, those that its optimizer vectors have been
               through: modulo 2^64, as they may be fewer. */
            uint64_t inherited;
            double
                weight; /* the rate is to be divided by it; holds for steps granted before, too */
        } train;
        struct {
            uint32_t buffer;
            uint64_t offset; /* in bytes */
            const uint8_t *bytes;
            size_t size;
            /* The buffer will be DIFFed with `other`, uncoded, once it has all come, and `other`
               stands: a driver may begin with what it has. */
            bool diffs;
            uint32_t other;
        } store;
        struct { /* TAKE, SET, ADD, MIX, GRADIENT, APPLY, ENCODE, DIFF, COMBINE, SKETCH, HASH,
                    WRITE, PUBLISH */
            uint32_t op;
            uint32_t buffer; /* all but TAKE, SET */
            uint32_t other;  /* DIFF, COMBINE, GRADIENT and ENCODE where at_other */
            bool at_other;
            bool coded;            /* DIFF, COMBINE */
            bool rest;             /* ADD */
            bool if_finite;        /* SET */
            uint32_t wide;         /* TAKE, ADD, ENCODE, DIFF: vectors in one buffer, at least 1 */
            uint64_t draw;         /* ENCODE, DIFF, COMBINE: of what a subset holds */
            float factor, keep;    /* ADD, MIX, APPLY, COMBINE; MIX, COMBINE */
            uint64_t offset, size; /* COMBINE: bytes, multiples of 4 */
            uint32_t vectors;      /* TAKE, SET */
            uint32_t buffers[PARLEY_VECTORS_MAX];
            double progress; /* APPLY: of the cluster's budget, for the schedule; ... */
            uint32_t live;   /* ... nodes that the rate may scale with; GRADIENT: as in TRAIN */
            uint64_t steps;  /* APPLY: that the optimizer's vectors have been through before */
            double weight;   /* APPLY: the rate is to be divided by it; 0: 1 */
        } vector;
        struct {
            enum parley_phase phase;
        } phase;
        struct {
            const char *name;
            uint64_t boot;
            enum parley_member_state state;
            bool suspected;     /* until now, alive before that: alive says that this was wrong */
            const char *reason; /* a short clause; valid until the next step */
        } member;
        struct {
            enum parley_log level;
            const char *text; /* valid until the next step */
        } log;
        struct {
            int error; /* PARLEY_OK or PARLEY_E...; its text was logged before */
        } finished;
    };
};

/* One step's answer. Made once by the driver and used again for every step of every node. */
struct parley_updates {
    struct parley_update *list; /* [count] */
    uint32_t count;
    /* RECEIVED: how many of the bytes were taken. Carry out the updates, then offer the rest again:
       at once if anything was consumed and something is left, else together with what comes next.
       At most 64 KiB + 64 bytes are ever left waiting for more. */
    size_t consumed;
    /* The node's own scratch memory for bytes and texts. */
    uint8_t *arena;
    size_t arena_used;
    void *unpacker;
};

PARLEY_CHECK int parley_updates_init(struct parley_updates *updates); /* PARLEY_ENOMEM */
void parley_updates_close(struct parley_updates *updates);

/* ---- One table of members for very many nodes -------------------------------------------------
 */

/* n views of n members take memory and traffic that grow with the square of n. Nodes of one process
 * (a simulation) may instead share one table, given to each as config.roster: each writes what it
 * says of itself, all read it at once, and nobody probes or gossips; the driver tells who died.
 *
 * Thread rule: belongs to the one thread of all its nodes. */

/* `max`: boots ever started, 1 to PARLEY_MEMBERS_MAX; steps_budget: that of the nodes' configs.
 * PARLEY_EUSAGE for another `max`, PARLEY_ENOMEM. */
PARLEY_CHECK int parley_roster_new(struct parley_roster **roster, uint32_t max,
                                   uint64_t steps_budget);
void parley_roster_free(struct parley_roster *roster);
/* The node of this boot has died; not for those that have left. */
void parley_roster_dead(struct parley_roster *roster, uint64_t boot);

/* ---- The node -------------------------------------------------------------------------------- */

/* PARLEY_EUSAGE for a config that parley_config_check() refuses, PARLEY_ELIMIT for a shared roster
 * that is full, PARLEY_ENOMEM. */
PARLEY_CHECK int parley_node_new(struct parley_node **node, const struct parley_config *config);

/* Takes one event. updates->list[0 .. count) is then to be carried out, in that order, before the
 * next step that these updates are given to: what they point to is valid until then, what the event
 * points to is borrowed for the call (but see RECEIVED). START comes first, now_us never goes back.
 * It can't fail: what goes wrong comes as LOG and FINISHED. After FINISHED events change nothing
 * and bring no updates. */
void parley_node_step(struct parley_node *node, const struct parley_event *event,
                      struct parley_updates *updates);

/* When the node next wants a TICK, in the time of its events; UINT64_MAX: never. */
uint64_t parley_node_deadline(const struct parley_node *node);

/* The local steps (STEPPED's version) that the node waits for: of so many it is told at once. Of
 * fewer it may hear later, before the next RECEIVED frame and the next TICK. */
uint64_t parley_node_awaits_steps(const struct parley_node *node);

/* How many bytes come next that are wanted in a buffer, without a header between them; 0: none.
 * They belong at *offset (in bytes) of *buffer. A driver may read them from the socket, or from
 * where they come aside, right to that place: RECEIVED then points there, and STORE finds its work
 * done. Until the next step. */
size_t parley_node_awaits(struct parley_node *node, uint32_t conn, uint32_t *buffer,
                          uint64_t *offset);

/* How many bytes come next that the head before them says come another way, which the two drivers
 * know of; 0: none. The driver gives them to the node by RECEIVED, in the place of bytes of the
 * connection. Until the next step. */
size_t parley_node_awaits_aside(struct parley_node *node, uint32_t conn);

/* How many connections beside this one may carry its floats (config.streams of both ends, the
 * lesser), and what proves that they belong to it: the token that who accepted it drew. 0: none.
 * The core knows nothing else of them. */
uint32_t parley_node_streams(struct parley_node *node, uint32_t conn, uint64_t *token);

/* At any time; NULL is none. Connections and buffers are the driver's to close and free. */
void parley_node_free(struct parley_node *node);

/* ---- Looking at it --------------------------------------------------------------------------- */

/* Names as in the JSON lines: "alive", "train", ... Static memory. */
const char *parley_member_state_name(enum parley_member_state state);
const char *parley_phase_name(enum parley_phase phase);
const char *parley_stop_name(enum parley_stop cause);

struct parley_ledger {
    uint64_t started;    /* offers made as initiator that were accepted */
    uint64_t committed;  /* decisions made as initiator */
    uint64_t applied;    /* deltas added to x, in both roles */
    uint64_t aborted;    /* ended before the decision, in both roles */
    uint64_t in_doubt;   /* now: READY sent, decision unknown, connection gone */
    uint64_t dropped;    /* in doubt, then given up */
    uint64_t busy;       /* offers answered BUSY */
    uint64_t joins;      /* models taken from a peer */
    double mass_dropped; /* sum of absolute values of what was given up */
};

struct parley_view {
    enum parley_phase phase;
    enum parley_stop stop; /* why training ended */
    uint32_t live;         /* alive or suspect members, this node included until it has LEFT */
    uint32_t known;        /* names ever seen alive that have not left of their own will */
    uint64_t version;      /* local steps that this process has made */
    uint64_t steps; /* of steps_budget: that it has made, those that it resumed included; where all
                       make them in common (ALLREDUCE, PS_BSP), those in its model */
    uint64_t samples_cluster; /* samples of all nodes ever seen */
    uint64_t trained_us;      /* since the cluster began to train, as this node knows; 0: before */
    double weight;            /* of x in push-sum, else 1; of all, and of what is on its way, n */
    double progress;          /* of the budget, in [0, 1]; once training has ended, as of then */
    double drift;             /* relative consensus distance; negative: not known yet, or alone */
    uint64_t drift_us;        /* when it was measured */
    double incoming; /* of a model that is on its way to this node, the part that is here, in
                        [0, 1]; negative: none is */
    struct parley_ledger ledger;
    /* From PROPOSED on. */
    uint32_t generation;
    uint32_t held; /* from PUBLISH on: members that hold the agreed digest, this node and those that
                      have died with it included */
    uint8_t digest[PARLEY_DIGEST_BYTES];
    double drift_before; /* at the proposal */
    uint32_t candidate;  /* DONE: the buffer that holds the agreed model */
    bool in_memory_only; /* the model file could not be written */
    bool locked;         /* it has locked a model, which others may have agreed on */
};

/* Also after FINISHED. */
void parley_node_view(const struct parley_node *node, struct parley_view *view);

/* Counts comings and goings of live members. */
uint64_t parley_node_turnover(const struct parley_node *node);

struct parley_member {
    const char *name; /* valid until the next step */
    const char *address;
    uint64_t boot;
    enum parley_member_state state;
    enum parley_phase phase;
    uint64_t version, samples; /* local steps and what they used, as last heard: those that it
                                  resumed included */
    uint64_t place;            /* likewise: see STEPPED */
    bool holds;                /* it is HELD, LOCKED or DONE with the digest of parley_view, or was
                                  so to its death: at PUBLISH it counts in `held` there */
    /* This node's ledger with that member: what was applied of exchanges with it. */
    uint64_t applied;
    double mass, mass_abs;
};

/* How many records; self first, but where config.roster is shared. */
uint32_t parley_node_members(const struct parley_node *node);
void parley_node_member(const struct parley_node *node, uint32_t index,
                        struct parley_member *member);

/* Names of the members that live, this node's among them, in strcmp's order; valid until the next
 * step. Who was started anew stands among the records twice until all know that its first process
 * is dead, and here once. names: [parley_node_members(node)]; returns how many it has. */
uint32_t parley_node_live(const struct parley_node *node, const char **names);

/* Asserts every invariant of the node's state; for the simulator and the tests. */
void parley_node_check(const struct parley_node *node);

#ifdef __cplusplus
}
#endif

#endif
