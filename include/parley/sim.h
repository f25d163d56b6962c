/* parley/sim.h: many nodes of the real core in one process, in virtual time.
 *
 * A fixture for tests that read as transcripts:
 *
 *     if (parley_sim_new(&sim, &(struct parley_sim_options){.nodes = 8, .parameters = 1000}))
 *         return 1;
 *     parley_sim_run_for(sim, 5000000);
 *     parley_sim_kill(sim, 3, false);
 *     parley_sim_stop(sim, 0, PARLEY_STOP_OPERATOR);
 *     error = parley_sim_step_until(sim, parley_sim_agreed, NULL, 60000000);
 *     parley_sim_free(sim);
 *
 * Nodes are numbered from 0, named n0, n1, ... and reached at "n0:7000", ... A `node` below is such
 * a number, of those there are; any other is undefined behaviour. One set of options gives one run,
 * to the last bit: parley_sim_run_hash() covers every event and update.
 *
 * What nodes train is a program's own (options.work: the function that it deploys as a node, see
 * parley.h), or a vector drawn by the seed; with a rate that is pulled towards a target of the
 * node's own, so that local training and averaging can be told apart; without one only averaging
 * changes it.
 *
 * What may go wrong: a broken invariant, or no memory. Then nothing moves any more,
 * parley_sim_error() says what it was, and the stepping functions return the code.
 * Local steps and operations on vectors count from when they begin: who looks at a model sees them
 * as made. Nobody but the node's own core can tell.
 * Thread rule: a simulation belongs to one thread; several may run in several threads.
 */
#ifndef PARLEY_SIM_H
#define PARLEY_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "parley/config.h"
#include "parley/error.h"
#include "parley/node.h"
#include "parley/turn.h"

#ifdef __cplusplus
extern "C" {
#endif

struct parley_sim;

#define PARLEY_SIM_NEVER UINT64_MAX
#define PARLEY_SIM_STEP_US_MAX UINT64_C(31622400000000) /* 366 days */
#define PARLEY_SIM_SLOW_MAX 10000

/* How TCP sends again what was lost. The defaults are what Linux 6.18 was measured to do with what
 * nodes ask of it: 5 ms (peers/network/retransmit.h), which comes to 14 to 20 in its ticks.
 * Before 6.15 least_us is 200,000. Where a line loses a fifth and more, real TCP is far slower than
 * this with messages of more than three packets. Zero means the default of each field. */
struct parley_sim_again {
    uint64_t least_us; /* the shortest pause (default 16,000), ... */
    uint32_t ways;     /* ... or so often as long as the way, where that is more (default 3) */
    uint32_t even;     /* pauses before each is twice the last, up to 256 times (default 6) */
    uint32_t most;     /* lost so often in a row, it ends its connection (default 15) */
};

/* Zero means the default of each field. */
struct parley_sim_options {
    uint32_t nodes;      /* at least 1 (default 1), at most PARLEY_MEMBERS_MAX */
    uint64_t parameters; /* of a model, to 2^32 and PARLEY_PARAMETERS_MAX (default 64) */
    uint32_t vectors;    /* 1 to PARLEY_VECTORS_MAX (default 1) */
    uint32_t averaged;   /* of those, while training (default 1); no node may have another */
    uint64_t seed;
    uint32_t seeds;           /* everyone's seed list is the first so many nodes, at most
                                 PARLEY_SEEDS_MAX (default 1) */
    const uint64_t *start_us; /* [nodes], when each starts; PARLEY_SIM_NEVER: at parley_sim_start */
    double rate; /* of training, in [0, 1]: each step moves x by rate * (target - x) (default 0) */
    /* A program's own training in its place: what it does between two calls of parley_boundary().
     *
     * begin writes the model a node starts with, vectors[vectors] of [parameters], all 0 before.
     * Called for each start of a node, and once for each as the simulation is made. NULL: zeroes.
     *
     * work does what turn->work says, and returns the loss. vectors is NULL for GRADIENT, which is
     * of turn->at; turn->turnover is 0. Of one node it is called in the order of its steps, of
     * different ones by several threads at once. How long it takes does not matter: in virtual time
     * a step takes step_us. A call may come some steps late; parley_sim_vector() of the node waits
     * for all that are due. Where it depends on nothing but what it is given and on its own earlier
     * calls for that node, runs are repeatable.
     *
     * Neither may call the simulation. No work and a begin, or work and a rate, are refused. */
    void (*begin)(float *const *vectors, uint32_t node, void *arg);
    double (*work)(float *const *vectors, const struct parley_turn *turn, uint32_t node, void *arg);
    uint32_t samples;         /* of a step (default 1) */
    uint64_t step_us;         /* one local step, at most PARLEY_SIM_STEP_US_MAX (default 1 ms) */
    uint64_t operation_us;    /* on buffers, but for those at a boundary (default 20), and ... */
    uint64_t latency_us;      /* ... one way (default 0): each at most PARLEY_SIM_STEP_US_MAX */
    uint64_t bandwidth_bytes; /* a second, of each node in each direction (default unlimited) */
    double loss;              /* of each packet, in [0, 1): see parley_sim_loss() (default 0) */
    struct parley_sim_again again;
    uint32_t fragment_bytes; /* received in pieces of at most so many bytes (default as sent) */
    uint32_t threads; /* that compute, this one included, at most 256; no result depends on it
                         (default 1) */
    bool unchecked;   /* leaves out parley_node_check() after every event */
    /* Changes a node's configuration before each of its starts; not its parameters, vectors and
     * averaged. A bad one ends the simulation: parley_sim_error() says PARLEY_EUSAGE, with the
     * node's name and the line of parley_config_check(). */
    void (*configure)(struct parley_config *config, uint32_t node, void *arg);
    void *arg; /* for begin, work and configure */
};

/* PARLEY_EUSAGE with a line in why[size] that names the option, its value and the valid range. */
PARLEY_CHECK int parley_sim_check(const struct parley_sim_options *options, char *why, size_t size);

/* PARLEY_EUSAGE (parley_sim_check() says why), PARLEY_ENOMEM, PARLEY_EFAIL (no threads to be had):
 * *sim is NULL then. */
PARLEY_CHECK int parley_sim_new(struct parley_sim **sim, const struct parley_sim_options *options);
void parley_sim_free(struct parley_sim *sim);

/* ---- Time ------------------------------------------------------------------------------------ */

uint64_t parley_sim_now(const struct parley_sim *sim);

/* One event. False if there is none left, or the simulation failed. */
bool parley_sim_step(struct parley_sim *sim);

/* 0 or the failure. */
int parley_sim_run_for(struct parley_sim *sim, uint64_t us);

/* Steps until predicate(sim, arg) holds: 0. PARLEY_ENO_AGREEMENT when limit_us of virtual time
 * (from now) have passed or nothing is left to happen; else the failure. */
PARLEY_CHECK int parley_sim_step_until(struct parley_sim *sim,
                                       bool (*predicate)(struct parley_sim *sim, void *arg),
                                       void *arg, uint64_t limit_us);

/* Predicates. Live are nodes that are started, and neither killed nor paused; of those that have
 * ended, who is DONE, until it is started anew. */
bool parley_sim_in_phase(struct parley_sim *sim, void *phase); /* all live; enum parley_phase * */
bool parley_sim_agreed(struct parley_sim *sim, void *arg); /* all live are DONE, with one digest */
bool parley_sim_converged(struct parley_sim *sim,
                          void *arg); /* all live see just all live, alive; no start is due */
bool parley_sim_quiet(struct parley_sim *sim,
                      void *arg); /* both sides of each commit have applied: not any more where
                                     one was killed before it had */

/* ---- Faults ---------------------------------------------------------------------------------- */

/* Longer than PARLEY_SIM_STEP_US_MAX nothing takes: what is given as more counts as that. */

/* Nobody is up before the simulation's first step. What is done to a node that is not up by kill,
 * pause, stop, leave or spoil is lost. */
void parley_sim_start(struct parley_sim *sim,
                      uint32_t node); /* a new boot, a new model; not if up */
/* Loud: peers see their connections reset, and dials are refused. Silent: a pulled plug. Neither
 * this nor a pause does anything to a node that has ended by itself: it has no process any more. */
void parley_sim_kill(struct parley_sim *sim, uint32_t node, bool silent);
/* SIGSTOP: the kernel goes on; the step under way does not, and ends as much later. */
void parley_sim_pause(struct parley_sim *sim, uint32_t node);
void parley_sim_resume(struct parley_sim *sim, uint32_t node);
void parley_sim_disconnect(struct parley_sim *sim, uint32_t a, uint32_t b); /* reset, both sides */
/* Nothing from `from` reaches `to`; dials of either fail. What was sent arrives after healing. */
void parley_sim_block(struct parley_sim *sim, uint32_t from, uint32_t to);
void parley_sim_unblock(struct parley_sim *sim, uint32_t from, uint32_t to);
/* Blocks, both ways, between the nodes of group[node] = 0, 1, ... */
void parley_sim_partition(struct parley_sim *sim, const uint32_t *group);
void parley_sim_heal(struct parley_sim *sim); /* removes all blocks */
void parley_sim_latency(struct parley_sim *sim, uint32_t node, uint64_t extra_us);
/* In the next three a probability is 0 to 1; another one ends the simulation: parley_sim_error()
 * says PARLEY_EUSAGE.
 *
 * Each packet from or to the node is lost with this probability and sent again (options.again; of a
 * handshake after 200 ms, then 400, and so on). Where that ends a connection the sender sees it
 * reset, the receiver not before it sends something itself. */
void parley_sim_loss(struct parley_sim *sim, uint32_t node, double probability);
/* Each message from or to the node cuts its connection, for both ends, with this probability. */
void parley_sim_cut(struct parley_sim *sim, uint32_t node, double probability);
/* Each dial from or to the node reaches its target twice with this probability: up to 2 s later a
 * second connection comes in, of which the dialer knows nothing. */
void parley_sim_duplicate(struct parley_sim *sim, uint32_t node, double probability);
/* Each message from or to the node takes up to so much longer, drawn anew: those of one connection
 * stay in order, others overtake each other, and dials may come when they were given up. */
void parley_sim_reorder(struct parley_sim *sim, uint32_t node, uint64_t longest_us);
/* A second, of the node in each direction; 0: without limit. */
void parley_sim_bandwidth(struct parley_sim *sim, uint32_t node, uint64_t bandwidth_bytes);
/* What nodes of group[node] = 0, 1, ... (UINT32_MAX: none) send to those of another group takes
 * latency_us (PARLEY_SIM_NEVER: as elsewhere) and goes through a line that each two groups share in
 * each direction (0: without limit). Of several links between two nodes the newest holds.
 * PARLEY_EUSAGE for a group from PARLEY_MEMBERS_MAX on, PARLEY_ENOMEM: nothing has changed then. */
PARLEY_CHECK int parley_sim_link(struct parley_sim *sim, const uint32_t *group, uint64_t latency_us,
                                 uint64_t bandwidth_bytes);
/* Steps that begin from now on take so many times as long, and 1 us at least: above 0, at most
 * PARLEY_SIM_SLOW_MAX. Another factor ends the simulation: parley_sim_error() says PARLEY_EUSAGE.
 */
void parley_sim_slow(struct parley_sim *sim, uint32_t node, double factor);
/* The first float of a live node's model becomes `value`, as a flipped bit makes it, or a step with
 * too high a rate. Copies that were made before stay as they are. */
void parley_sim_spoil(struct parley_sim *sim, uint32_t node, float value);
void parley_sim_disk_full(struct parley_sim *sim, uint32_t node, bool full);
/* What is read back is not what was written. */
void parley_sim_disk_torn(struct parley_sim *sim, uint32_t node, bool torn);
void parley_sim_disk_slow(struct parley_sim *sim, uint32_t node, uint64_t extra_us); /* a write */

/* What a node sends in place of the truth, be that a model, a gradient or a difference; ALIE and
 * IPM are made of others' models, and mean nothing where something else is sent. Nor does any lie
 * but LABELS with a codec, whose bytes are taken for floats. */
enum parley_sim_lie {
    PARLEY_SIM_HONEST,
    PARLEY_SIM_SIGN,   /* the negative */
    PARLEY_SIM_SCALE,  /* a hundred times as much */
    PARLEY_SIM_RANDOM, /* draws of a normal distribution */
    PARLEY_SIM_NAN,    /* the truth, but for one value of each chunk, which is not a number */
    PARLEY_SIM_ALIE,   /* what honest nodes have: their mean, less 1.5 of their deviations */
    PARLEY_SIM_IPM,    /* their mean, times -0.1 */
    PARLEY_SIM_LABELS  /* the truth of what it trains, where that has labels: on wrong ones */
};
void parley_sim_byzantine(struct parley_sim *sim, uint32_t node, enum parley_sim_lie lie);

void parley_sim_stop(struct parley_sim *sim, uint32_t node, enum parley_stop cause);
void parley_sim_leave(struct parley_sim *sim, uint32_t node);

/* A frame on its way. Called twice for each: before it leaves, and before it is received. The
 * callback may use all of the functions of this part, and of the next, but may neither step nor
 * free the simulation: who kills the sender of a frame that leaves, or cuts its connection, keeps
 * it from leaving; likewise with the receiver. */
struct parley_sim_frame {
    const char *name; /* "HELLO", "OFFER", "COMMIT", "CHUNK", ...; static */
    uint8_t type;     /* its number */
    bool arriving;
    uint32_t from, to;
    uint64_t number; /* of its type and direction so far in this run, from 1 */
    size_t size;     /* bytes with the header */
};
void parley_sim_on_frame(struct parley_sim *sim,
                         void (*callback)(struct parley_sim *sim,
                                          const struct parley_sim_frame *frame, void *arg),
                         void *arg);

/* Phases, member states, ends and log lines up to `level` as text: "12.400s n3 phase settle". The
 * node is in the middle of a step: the callback may look at all, and change nothing. */
void parley_sim_on_line(struct parley_sim *sim, enum parley_log level,
                        void (*callback)(const char *line, void *arg), void *arg);

/* Steps until the lines of `transcript` have come, in their order, and nothing else of their kinds:
 *
 *     error = parley_sim_expect(sim, "phase finished",
 *                               "n1 phase stop\n"
 *                               "12.400s n0 phase stop\n"
 *                               "n0 finished ...\n", 60000000, why, sizeof why);
 *
 * Lines are those of parley_sim_on_line(), of the level given there; where it was not called, all
 * that nodes log. Kinds are the words after the node's name: of "phase", "member", "finished" and
 * "log", those that count. A line without a time may come at any time; one that ends in "..." may
 * go on. Blanks at the start of a line are layout. Returns 0 right after the last line;
 * PARLEY_ENO_AGREEMENT where another line came, or none within limit_us of virtual time: why then
 * says what was expected and what came; PARLEY_EUSAGE for an unknown kind, which why names; or the
 * failure. */
PARLEY_CHECK int parley_sim_expect(struct parley_sim *sim, const char *kinds,
                                   const char *transcript, uint64_t limit_us, char *why,
                                   size_t why_size);

/* ---- Looking --------------------------------------------------------------------------------- */

bool parley_sim_live(const struct parley_sim *sim, uint32_t node);
uint32_t parley_sim_live_count(const struct parley_sim *sim);
/* Whether the node has ended by itself, and with which error, for which there may be NULL. */
bool parley_sim_finished(const struct parley_sim *sim, uint32_t node, int *error);

/* The node's view; of a killed node as it was; all zero if it was never started. */
void parley_sim_view(const struct parley_sim *sim, uint32_t node, struct parley_view *view);
/* What `node` says of `peer`, of its newest process if that is known to it; false if it has no
 * record of it. */
bool parley_sim_member(const struct parley_sim *sim, uint32_t node, uint32_t peer,
                       struct parley_member *member);

/* Borrowed: [parameters]; NULL of a node that was killed, or never started. The model being
 * trained, and the agreed one (NULL before DONE). */
const float *parley_sim_vector(const struct parley_sim *sim, uint32_t node);
const float *parley_sim_agreed_vector(const struct parley_sim *sim, uint32_t node);
/* SHA-256 of the published model file, or NULL. */
const uint8_t *parley_sim_file(const struct parley_sim *sim, uint32_t node);

/* True values, in float64, over the nodes that are live or paused, c of them. The spread is
 * sqrt(sum of ||x_i - mean||^2 / c). */
void parley_sim_mean(const struct parley_sim *sim, double *mean); /* [parameters] */
double parley_sim_spread(const struct parley_sim *sim);
double parley_sim_drift(const struct parley_sim *sim); /* spread / ||mean|| */
/* How far averaging has moved the mean of those models, over the spread at the start. Training,
 * starts, deaths and models taken from peers are accounted for and do not count, nor do pushes
 * (PUSH_SUM, which keeps the mean by weight) and models set as a whole (LOCAL_SGD, DILOCO). */
double parley_sim_mass_error(const struct parley_sim *sim);

uint64_t parley_sim_run_hash(const struct parley_sim *sim);
uint64_t parley_sim_events(const struct parley_sim *sim);
/* Frames of a type that have left, and all bytes. */
uint64_t parley_sim_frames(const struct parley_sim *sim, uint8_t type);
uint64_t parley_sim_bytes_sent(const struct parley_sim *sim);
/* 0, or why the simulation stands; *text is borrowed, and text may be NULL. */
int parley_sim_error(const struct parley_sim *sim, const char **text);

#ifdef __cplusplus
}
#endif

#endif
