/* parley/parley.h: a real node inside your own program.
 *
 * The happy path, on the thread that trains (the *trainer*):
 *
 *     parley_options_defaults(&options);
 *     options.config.parameters = n;             and a name, seeds; a budget, or it never ends
 *     options.vectors[0] = x;                    n floats; to train, equal on all nodes at first
 *     if (parley_open(&p, &options, why, sizeof why))
 *         return 1;                              why has a line about it
 *     while ((code = parley_boundary(p, &step, &turn)) == PARLEY_GO)
 *         step = one local step on x;            zeroes before the first
 *     parley_result(p, &result);                 x holds the agreed model if result.agreed
 *     parley_close(p);
 *
 * Without a budget (config.steps_budget, say) training ends only by parley_stop(), here or at
 * another node. A node that joins more than config.behind_steps_max steps late takes the vectors of
 * a peer: what its own held is replaced, not averaged in.
 *
 * parley_open() starts a thread that talks to the peers and one that computes on snapshots. They
 * touch x only while you are inside parley_boundary(): whatever averaging does to it happens
 * between two of your steps, and not before you come there for the first time.
 *
 * What can go wrong: a bad setting or address, a port in use, a model file that has no place, and
 * tensors or texts that none could hold are refused by parley_open(), with a line that says so.
 * Later errors end the run: parley_boundary() returns them, and a line about each has gone to
 * on_update before.
 *
 * Pointers are never NULL, unless it says that they may be.
 *
 * Thread rule: parley_boundary(), _boundary_within() and parley_result() belong to the trainer;
 * parley_close() comes last. parley_stop(), _leave(), _seeds(), _live(), _gone(), _stats(),
 * _listens() and _config_of() may be called from any thread until parley_close(), but not from a
 * signal handler. Callbacks run on the loop's thread: be quick there, a callback that blocks stops
 * the node from answering its peers. parley_node_of() is for them alone; parley_boundary() and
 * parley_close(), which wait for that thread, are not for them: they abort there.
 *
 * fork(): a child has none of the threads, and must not call the library, but may exit(). It keeps
 * the sockets open until it executes another program (all descriptors are close-on-exec) or ends:
 * peers may see only then that this process is gone.
 *
 * C++: parley_result, parley_stats and parley_gone are functions, too; write `struct` before the
 * types of these names.
 */
#ifndef PARLEY_PARLEY_H
#define PARLEY_PARLEY_H

#include "parley/config.h"
#include "parley/error.h"
#include "parley/node.h"
#include "parley/turn.h"

#ifdef __cplusplus
extern "C" {
#ifdef __GNUC__ /* functions that hide the types of their names, see above */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif
#endif

struct parley;

/* Of the library that runs: "0.1.0". Static. Any thread. */
const char *parley_version(void);

/* A named part of the parameter vector; the parts follow one another without gaps. With `out`,
 * their names are of 1 to 31 bytes from '!' to '~', and no two are alike: what a model file can
 * hold. */
struct parley_tensor {
    const char *name;  /* at most 31 bytes */
    uint32_t rank;     /* 1 to 4 */
    uint32_t shape[4]; /* outermost first */
};

/* What a model file says about itself beside tensors, digest and run; equal on all nodes, or their
 * files differ in that, and in nothing else. Zeroes will do for a bare vector. */
struct parley_about {
    const char *model; /* "mlp:256,128", or NULL */
    const char *data;  /* "digits", or NULL */
    uint32_t features, classes;
    uint32_t channels, height, width; /* 0 for tables */
    uint32_t scaling;                 /* floats in shift and in scale: 0, 1 or features */
    const float *shift, *scale;       /* of the inputs: value scaled = (value - shift) * scale;
                                         scales from 0 on */
    const float *label;               /* [2], shift and scale (above 0) of a label that is a number;
                                         NULL: labels are classes */
    const char *vocabulary;           /* of text: a character of UTF-8 a class, or NULL */
    const char *class_names;          /* of a table: a line of UTF-8 a class, or NULL */
    const char *columns;              /* likewise a line a feature */
};

struct parley_options {
    /* Filled by parley_options_defaults(). Set at least `parameters`. Left 0, NULL or "", these are
     * chosen at the start: boot and seed (drawn; the default of seed is 1), name ("node-" and the
     * boot id), address (where it listens; needed when it listens on all addresses; a port 0 in it
     * becomes the real one), model_digest (of the tensors' names and shapes). `roster` stays NULL:
     * it belongs to one thread, and each parley has one of its own. */
    struct parley_config config;
    bool no_lane;       /* floats go to peers on this machine by TCP, too (peers/network/lane.h) */
    const char *listen; /* "127.0.0.1:0": HOST:PORT, port 0 is any free one */
    /* A file of 64 hexadecimal digits (`parley keygen` makes one), equal on all nodes: links are
     * encrypted, and who has not that key is turned away; a node whose seeds all have another ends
     * with PARLEY_EKEY. Peers on this machine and of this user still read each other's floats from
     * memory, unless no_lane. NULL: whoever reaches the port may join and read all that is said. */
    const char *cluster_key;

    /* The caller's, until parley_close(): [config.vectors], each of config.parameters floats. */
    float *vectors[PARLEY_VECTORS_MAX];

    /* The final model, as safetensors; NULL: none is written. Its record stands beside it, with
     * ".agreement.json" added to the name. From the working folder as it is at parley_open(). */
    const char *out;
    /* A file of this node's own, for a majority: whether one of its starts may have held a model in
     * this run (config.run), and not given up before it locked it, and so have agreed on it. Then,
     * and where nothing is kept of a start that others know of, this node does not count. Made
     * where it is not there; one that another node has open is refused, and a link, which may be
     * another's. What comes of it is in config.earlier. NULL: none. */
    const char *vote;
    const struct parley_tensor *tensors; /* NULL: one tensor named "vector" */
    uint32_t tensors_count;
    struct parley_about about;

    /* The program does what turn.work says. Else strategies that need it are refused. */
    bool splits;

    /* Called on the loop's thread. PHASE, MEMBER, LOG and FINISHED updates only; what an update
     * points at is valid during the call. Some may come before parley_open() has returned. */
    void (*on_update)(void *context, struct parley *p, const struct parley_update *update);
    void (*on_timer)(void *context, struct parley *p); /* every timer_us, until FINISHED */
    uint64_t timer_us;                                 /* 0: no timer; rounded up to whole ms */
    void *context;
};

/* Config by parley_config_defaults(), listening on a free port of the loopback. */
void parley_options_defaults(struct parley_options *options);

/* Listens, starts the threads, joins by the seeds. Options are copied; vectors are borrowed.
 * On errors *p is NULL and why[size] holds a line, with '?' in place of control characters:
 * PARLEY_EUSAGE (and a key that can't be read), PARLEY_ENETWORK (the address can't be listened on),
 * PARLEY_ENOMEM, PARLEY_EFAIL (threads; descriptors, of which 0, 1 and 2 must be open, on /dev/null
 * at least). */
PARLEY_CHECK int parley_open(struct parley **p, const struct parley_options *options, char *why,
                             size_t size);

/* What was done since the last boundary. */
struct parley_step {
    /* That were made: 1, 0, or more, which are taken from those wanted next. With 0, as after a
     * part of a batch, samples and a loss that is not finite count all the same, and nothing else.
     * A node of whose steps, or of whose samples, there are 10^18 ends with PARLEY_EUSAGE. */
    uint64_t steps;
    uint64_t samples; /* that it used; of all nodes' steps less than 10^18 */
    /* Their mean loss; any finite number, like 0, where there is none. One that is not finite says
     * that the model is lost, as does a gradient in which something is not: the node takes a live
     * peer's in its place or, where it is alone, its strategy averages gradients, this has happened
     * too often, or no peer has given one for 30 s (or for 8 steps that take longer), as where all
     * diverge at once, ends with PARLEY_EDIVERGED. */
    double loss;
    /* Until the next boundary that reports a step: where averaging adds d to vectors[0], it adds
     * follow * d to vectors[1], so that a momentum there can follow where averaging moves x.
     * Finite, which nobody checks. 0, or no vectors[1]: nothing. */
    float follow;
    /* How far the node has come with its share of the data, in a measure of your own that grows:
     * what others find in parley_gone() once this node is gone. 0: no matter. */
    uint64_t place;
};

enum { PARLEY_END, PARLEY_GO, PARLEY_LATER };

/* The gap between two local steps. Carries out what averaging wants done to x, then returns
 * PARLEY_GO as soon as one more local step is wanted. Blocks, and goes on applying, while none is.
 * At the end returns PARLEY_END or a negative PARLEY_E...; from then on it returns the same at
 * once. `step` may be NULL: no step was made. */
PARLEY_CHECK int parley_boundary(struct parley *p, const struct parley_step *step,
                                 struct parley_turn *turn);

/* The same for a trainer that has other things to do, as a loop of its own or signals to see to:
 * where no step is wanted for timeout_us it returns PARLEY_LATER. Come again soon, with a NULL
 * step: until then nothing is done to x, and others wait for what is to be done. 0: it does not
 * wait; UINT64_MAX: as parley_boundary(). */
PARLEY_CHECK int parley_boundary_within(struct parley *p, const struct parley_step *step,
                                        struct parley_turn *turn, uint64_t timeout_us);

/* Ask for the end, with an agreement; the cause travels to all nodes. PARLEY_STOP_NONE asks for
 * nothing, and what is none of the enum's counts as an operator's. A node that no seed has answered
 * yet waits for one for ten seconds more, and ends with PARLEY_ENO_SEED; parley_leave() ends it at
 * once. */
void parley_stop(struct parley *p, enum parley_stop cause);

/* Leave alone: hand the work over by averaging, for half of config.leave_timeout_us at most, say
 * goodbye, end. Nothing is agreed then, unless the agreed model is about to get its name. */
void parley_leave(struct parley *p);

/* The peer list was read again: these are dialled from now on, and no others; links that there are
 * stay. Copied. PARLEY_ENOMEM; PARLEY_EUSAGE for more than PARLEY_SEEDS_MAX, or one that nobody can
 * dial: the list stays as it was. */
PARLEY_CHECK int parley_seeds(struct parley *p, const char *const *seeds, uint32_t count);

/* Names of the members that live, sorted, as of now; once this node has left, as of then, itself
 * included. At most max of them go to names[max], which may be NULL for 0. Returns how many there
 * are. */
uint32_t parley_live(struct parley *p, char (*names)[PARLEY_NAME_SIZE], uint32_t max);

/* A name that no live member has, and the furthest parley_step.place that was heard of it. */
struct parley_gone {
    char name[PARLEY_NAME_SIZE];
    uint64_t place;
};

/* Those of whom a place was heard, each once and sorted by name, never this node itself, as of the
 * newest change among the live: at most max of them go to gone[max], which may be NULL for 0.
 * Returns how many there are. */
uint32_t parley_gone(struct parley *p, struct parley_gone *gone, uint32_t max);

struct parley_stats {
    uint64_t bytes_sent, bytes_received;
    uint64_t bytes_lane;    /* of those sent, what peers on this machine took from shared memory */
    uint64_t bytes_streams; /* of those sent: floats that went over streams */
    uint64_t bytes_membership; /* of those sent: probes, and what is told of members */
    uint64_t bytes_sketches;   /* of those sent: sketches of models, by which drift is judged */
    uint32_t connections;      /* open now, streams among them */
    uint64_t turn_max_us;      /* the longest turn of the loop, waiting apart */
    uint64_t gap_max_us;       /* the longest parley_boundary() between two local steps */
};

void parley_stats(struct parley *p, struct parley_stats *stats);

/* Where the node listens, with the real port. Valid until parley_close(). */
const char *parley_listens(const struct parley *p);

/* Its config as it stands, with what was chosen at the start. seeds and settings are not kept:
 * NULL, and their counts 0. Valid until parley_close(). */
const struct parley_config *parley_config_of(const struct parley *p);

/* The node itself, to look at (parley_node_view(), parley_node_member()): in callbacks only. */
const struct parley_node *parley_node_of(const struct parley *p);

struct parley_result {
    int error;   /* as parley_boundary() returned it */
    bool agreed; /* vectors[0] holds the model whose digest is view.digest, as all live nodes do */
    bool aside;  /* options.out has what others agreed on without this node, no fewer than with it:
                    its own model stands beside that, under that name, a dot and the node's name */
    struct parley_view view; /* as the node ended; view.live no longer counts who is DONE or LEFT,
                                this node included: view.held says by how many the model is held */
    struct parley_stats stats;
};

/* After parley_boundary() has returned PARLEY_END or an error. Before that all is zero, but for the
 * stats. */
void parley_result(struct parley *p, struct parley_result *result);

/* Ends the run without an agreement if it has not ended, sends what is still to be sent (for at
 * most two seconds), joins the threads. Neither the system's resolver nor the closing of what
 * another user of this machine has sent can be interrupted: after a second those go on in threads
 * of their own, and so the library stays in memory after a dlclose(). NULL does nothing. */
void parley_close(struct parley *p);

#ifdef __cplusplus
#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif
}
#endif

#endif
