/* node.h: one running node of the command line (inside of cli/node).
 *
 * The main thread trains; parley's loop calls report.c back; the control thread
 * (control.c) takes signals and, under `parley run`, the lines of its pipe. All of them talk,
 * and none waits for who reads it: stderr and --json have a thread each that writes (writer.h).
 */
#ifndef PARLEY_CLI_NODE_H
#define PARLEY_CLI_NODE_H

#include <stdatomic.h>

#include <uv.h>

#include "cli/cli.h"
#include "cli/json_out.h"
#include "cli/node/checkpoint_files.h"
#include "cli/seed_list.h"
#include "file/checkpoint.h"
#include "job/job.h"
#include "parley/parley.h"
#include "report/rate.h"

struct node_control {
    uv_loop_t loop;
    uv_thread_t thread;
    uv_async_t end;
    uv_signal_t signals[SIGNALS_HEARD];
    uv_pipe_t pipe; /* stdin, under `parley run` */
    uv_timer_t late;
    uv_timer_t dns; /* seeds.c's, as the next four */
    uv_async_t looked_up;
    struct seed_lookup *lookup; /* under way, or NULL */
    bool asked_again;           /* by SIGHUP, meanwhile */
    char unread[512];           /* why the list was not read, as last said; "": it was */
    char line[1 << 16];
    size_t line_size;
    struct asked asked; /* to leave */
};

/* checkpoint.c: the trainer's, but for what is atomic; its thread has copy and head while
 * `busy`. */
struct node_checkpoint {
    int lock;          /* on this node's files; above 0: to be closed */
    uint64_t taken_us; /* the newest */
    uint64_t newest;   /* number of the newest file there; 0: there is none */
    uint64_t number;   /* of the file under way */
    float *copy;       /* of all vectors; owned, NULL: none was made yet */
    struct checkpoint head;
    uv_thread_t thread;
    char vote[CHECKPOINT_PATH_BYTES]; /* parley_options.vote, where a majority decides */
    bool started;                     /* the thread is to be joined */
    _Atomic bool busy;
    _Atomic bool asked; /* by SIGUSR1: one now */
};

struct node {
    const struct settings *settings;
    struct job job;
    struct parley *p;
    struct parley_options options;
    struct parley_tensor *tensors; /* for the options; owned */
    float *x, *state[2];           /* trainer_vectors(): in one block; owned */
    struct trainer_node own;       /* its share, and what the newest steps have left */
    struct json_out json;
    char name[PARLEY_NAME_SIZE]; /* drawn, where none was given */
    struct seed_list seeds;
    struct checkpoint resumed; /* what it goes on from; zeroed: nothing */
    struct node_checkpoint checkpoint;
    uint64_t state_steps;     /* that the optimizer's vectors have been through; likewise */
    struct coverage coverage; /* under `parley run`: mapped, the samples of all its nodes */
    struct node_control control;
    uint64_t start_us;      /* `t` counts from here */
    uint64_t train_us;      /* when its training began; 0: not yet */
    uint64_t stop_us;       /* when it ended; likewise */
    uint64_t exchanges;     /* that it had taken part in then */
    bool controlled;        /* `parley run` started it */
    char own_path[4096];    /* of a model that is not what --out is for */
    _Atomic int saves;      /* control.c's: it is at that */
    struct model_meta meta; /* of the files of the model; but for the digest */

    /* Written by one thread, read by another. */
    _Atomic(const char *) model;      /* the file that it is in, agreed or its own; NULL: none */
    _Atomic int at;                   /* leave.c's */
    _Atomic bool left;                /* the node has ended, and all was told */
    _Atomic double loss;              /* smoothed over the newest steps; NAN: no step yet */
    _Atomic double slow;              /* a step takes so many times longer, ... */
    _Atomic uint64_t sleep_us;        /* ... and sleeps so long */
    _Atomic uint64_t samples;         /* of this node */
    _Atomic uint64_t place;           /* in its share: sampler.h */
    uint64_t taken, share;            /* takeovers told; samples of the share */
    _Atomic uint64_t steps;           /* made since this process started */
    _Atomic uint64_t steps_known;     /* parley_view's steps, ... */
    _Atomic uint64_t steps_then;      /* ... and what `steps` was before that; ... */
    _Atomic uint64_t samples_cluster; /* as of the newest timer, or when training started */
    _Atomic uint64_t trained_us;      /* likewise */

    /* report.c's, on parley's loop. */
    uint64_t told_us;      /* of the progress line before, ... */
    double told_progress;  /* ... and what it told of the budget */
    uint64_t spoken_us;    /* of the line for people before */
    struct rate rate;      /* samples a second */
    uv_mutex_t start_lock; /* parley's loop tells nothing before `started` */
    uv_mutex_t error_lock;
    char cause[320], error[320]; /* the first and the newest error that were logged */
};

/* Any thread. NULL: none was given, and none is drawn yet. */
static inline const char *node_name(const struct node *node)
{
    return node->options.config.name;
}

/* report.c */
int node_report_init(struct node *node);
void node_report_started(struct node *node);
void node_report_takeover(struct node *node);
void node_report_end(struct node *node, const struct parley_result *result, double accuracy,
                     double loss);
void node_report_error(struct node *node, int error, const char *message);
/* After which the node goes on. Any thread. */
void node_report_trouble(struct node *node, int error, const char *message);
int node_report_close(struct node *node); /* PARLEY_EFAIL if lines are lost, which is said */
void node_on_update(void *context, struct parley *p, const struct parley_update *update);
void node_on_timer(void *context, struct parley *p);

/* join.c, once parley is open. */
void node_join_say_next(struct node *node);
void node_join_warn(struct node *node);

/* leave.c. The trainer's parley_boundary(). */
int node_leave_boundary(struct node *node, const struct parley_step *step,
                        struct parley_turn *turn);
/* Once --leave-timeout is nearly up, again and again: ends the process if the node has left and the
 * trainer is still in a step. */
void node_leave_late(struct node *node);

/* checkpoint.c. Reads what --resume goes on from, if anything: PARLEY_EUSAGE,
 * PARLEY_EMISMATCH, PARLEY_EDATA with a line in why, PARLEY_ENOMEM. */
int node_checkpoint_init(struct node *node, char *why, size_t why_size);
/* At a boundary: makes one if it is time. */
void node_checkpoint_step(struct node *node);
/* Of a node that has left, with all that it has done: it is written on return, or that is said. */
void node_checkpoint_last(struct node *node);
void node_checkpoint_close(struct node *node);

/* seeds.c, on the control thread, which it never blocks. */
int node_seeds_start(struct node *node);             /* 0 or a libuv error */
void node_seeds_read(struct node *node, bool asked); /* `asked`: says what was read */
void node_seeds_end(struct node *node);

/* control.c. Before all else: whether `parley run` started this process, and when it did itself. */
void node_control_init(struct node *node);
/* The first signal leaves, the second ends the process. PARLEY_EFAIL with a line in
 * why[why_size]. */
int node_control_start(struct node *node, char *why, size_t why_size);
void node_control_end(struct node *node);
/* own_path is to be written. Does not return where the process is to end at once. */
void node_control_saves(struct node *node);

#endif
