/* loop.h: the thread that talks: a libuv loop around the core's node.
 *
 * The happy path: loop_init listens; loop_start runs the thread, which tells the node START; from
 * then on whatever libuv, the trainer and the worker report becomes an event, and the updates that
 * come back are carried out (carry.c) before anything else happens.
 *
 * One turn: timers; in the prepare phase answers and commands of other threads (and what the loop
 * itself carried out); then poll (connections: conn.h); then, in the check phase, TICK. As reading
 * comes before ticking, a process that wakes from SIGSTOP has heard its peers before it judges
 * them; after a late wake-up it goes on reading until nothing is left. FINISHED closes the listener
 * and all connections (flushing them); the thread itself lives on until loop_close(), so that
 * others may still wake it.
 *
 * Failure modes: the world's errors end a connection, never the loop. Events never nest: what
 * fails while updates are carried out is told in the next step.
 * Thread rule: everything belongs to the loop's thread, except where said.
 */
#ifndef PARLEY_PEERS_LOOP_H
#define PARLEY_PEERS_LOOP_H

#include <stdatomic.h>

#include <uv.h>

#include "compute/handoff.h"
#include "compute/mailbox.h"
#include "compute/op.h"
#include "compute/vectors.h"
#include "compute/worker.h"
#include "network/lane.h"
#include "parley/parley.h"
#include "wake.h"

enum {
    LOOP_BUCKETS = 256,         /* of connections by number */
    LOOP_LATER_MAX = 256,       /* events that arise from one step's updates */
    LOOP_READ_BUDGET_US = 4000, /* a turn stops reading after this long */
    LOOP_ACCEPTS_MAX = 16,      /* connections taken in so long: */
    LOOP_ACCEPTS_US = 16000
};

/* What other threads ask for; guarded by the answers' lock. */
struct commands {
    enum parley_stop stop;
    bool leave, close;
    char **seeds; /* [seeds_count]; NULL: not read again */
    uint32_t seeds_count;
};

struct loop {
    uv_loop_t uv;
    uv_tcp_t listener;
    uv_tcp_t away; /* takes a connection that there is no memory for */
    bool away_busy, away_waits;
    struct lane_door door;
    struct wake wake;
    uv_timer_t timer, hook;
    uv_prepare_t prepare;
    uv_check_t check;
    uv_thread_t thread;
    struct parley *parley;

    struct parley_node *node;
    struct parley_updates updates;
    bool running, stepping, finished, closing;
    struct parley_event later[LOOP_LATER_MAX];
    uint32_t later_count;

    struct conn *conns[LOOP_BUCKETS];
    struct lookup *lookups;          /* of names (dial.c) */
    bool lookup_slow;                /* that one takes long was said */
    uint64_t tries_until_us;         /* then one of a name's addresses may be left for the next */
    uint32_t conns_shut;             /* those that are being flushed */
    uint32_t conn_next;              /* number of the next incoming one, even */
    uint32_t streams_most;           /* of a link: config.streams */
    struct tls *tls;                 /* the cluster's key; NULL: there is none */
    uint8_t *sealed;                 /* [CONN_READ_BYTES] that came in, where there is one */
    struct write *sent, **last_sent; /* chunks that have gone out in this turn */

    struct mailbox answers; /* ops from trainer and worker */
    struct commands commands;
    atomic_bool commanded; /* they are new, or a lookup is over */
    struct ops ops;
    struct vectors *vectors;
    struct handoff *handoff;
    struct worker *worker;
    uint64_t version_told; /* of STEPPED */

    uv_mutex_t live_lock; /* guards the next four: names of the live members, sorted; others */
    char (*live)[PARLEY_NAME_SIZE];
    struct parley_gone *gone;
    uint32_t live_count, gone_count;
    const char **live_names;        /* as the node has them, while `live` is made */
    _Atomic uint64_t live_turnover; /* how often those names have changed */

    uint64_t turn_us, idle_us; /* when the turn began; time spent waiting, at that point */
    size_t turn_read_bytes;
    size_t turn_sent_bytes; /* of chunks */
    uint32_t accepts;       /* connections of this time, which lasts until then: */
    uint64_t accepts_until_us;
    bool accept_waits;       /* the next one waits for that */
    uint64_t drain_since_us; /* a late TICK waits for reading since then; 0: none does */
    uint64_t accept_logged_us;
    _Atomic uint64_t bytes_sent, bytes_received, bytes_lane, bytes_streams, turn_max_us;
    _Atomic uint64_t bytes_membership, bytes_sketches;
    _Atomic uint32_t connections; /* open now; streams, which end with their link, are some */
    char listens[PARLEY_ADDRESS_SIZE];
    bool listens_any; /* on all of the machine's addresses */
    uint32_t zone;    /* of the own link-local address, the link's; else 0 */
};

/* Binds and listens: nothing runs yet. PARLEY_EUSAGE, PARLEY_ENETWORK, PARLEY_EFAIL with a line in
 * why[size]; the loop is closed again then. */
int loop_init(struct loop *loop, struct parley *parley, const char *listen, char *why, size_t size);

/* PARLEY_EFAIL. The node, updates and the other parts are set by then. hook_us: between calls of
 * loop_hook(); 0: none. */
int loop_start(struct loop *loop, uint64_t hook_us);

/* Any thread: whether it is the loop's, which must not wait for itself. */
bool loop_runs_here(const struct loop *loop);

/* Any thread: after a command was set under the answers' lock, or a lookup is over. */
void loop_wake(struct loop *loop);

/* Whether a thread that nobody can end has ended by then, on the clock of clock_now_us(). */
bool loop_join(uv_thread_t thread, uint64_t until_us);

/* Ends the thread and closes everything. Nobody may put answers any more. */
void loop_close(struct loop *loop);

/* Tells the node and carries out what it answers. Returns updates.consumed. */
size_t loop_tell(struct loop *loop, struct parley_event *event);

/* The node is told of the steps made so far, if of any. The trainer wakes the loop only for those
 * that it awaits. */
void loop_tell_steps(struct loop *loop);

/* For what fails while updates are carried out: told right after them. Texts must be static. */
void loop_tell_later(struct loop *loop, const struct parley_event *event);

/* How long this turn has lasted, waiting apart. */
uint64_t loop_turn_us(struct loop *loop);

/* A line for people, through the caller's on_update. */
void loop_log(struct loop *loop, enum parley_log level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* carry.c: carries out one step's updates, in order. */
void carry_updates(struct loop *loop, const struct parley_updates *updates);

/* carry.c: starts the ops that may start. */
void carry_ops(struct loop *loop);

/* The node has ended: closes the listener and, flushing, all connections; wakes the trainer. */
void loop_finish(struct loop *loop, int error);

/* parley.c: the caller's callbacks. */
void loop_show(struct loop *loop, const struct parley_update *update);
void loop_hook(struct loop *loop);

#endif
