/* cluster.h: a simulation's whole state, and who carries out what.
 *
 *   queue.c     what happens next             host.c       a node's life: start, events, pause, end
 *   cluster.c   options, stepping             faults.c     kill, partition, ... and the hooks
 *   checkers.c  the global truth              byzantine.c  what a lying node sends
 *   transcript.c  lines that a test expects
 *
 *   network/:
 *   network.c, link.c   connections, bytes    route.c      lines, latency, loss
 *   deliver.c   what of them comes to cores
 *
 *   compute/:
 *   operations.c  when TAKE, ADD, ... happen  vectors.c    what they compute
 *   steps.c     a node's local steps          task.c       what the nodes train
 *   program.c   what an embedding program trains
 *   buffers.c   the floats of buffers         gap.c        differences of two blocks
 *   workers.c   threads that compute          blas.c       whether they may use BLAS
 *   pages.c     large pages
 *
 * One rule keeps it repeatable and free of recursion: only the stepping loop gives a core an event;
 * all else puts items into the queue. What takes long is computed by jobs, which know nothing of
 * time: whichever thread makes them, their results are looked at when their events are due.
 */
#ifndef PARLEY_SIM_CLUSTER_H
#define PARLEY_SIM_CLUSTER_H

#include <inttypes.h>

#include "core/rng.h"
#include "core/wire/wire.h"
#include "kernels/codec.h"
#include "parley/sim.h"
#include "world/compute/task.h"
#include "world/compute/workers.h"
#include "world/queue.h"

struct sim_gap;
struct sim_link;
struct sim_message;

/* Virtual time in lines, in seconds: with a point, whatever the locale of the program that asks. */
#define SIM_SECONDS "%" PRIu64 ".%03u"
#define SIM_SECONDS_OF(us) ((us) + 500) / 1000000, (unsigned)(((us) + 500) / 1000 % 1000)

/* A time that may be drawn: low + unit * (high - low), or low * exp(sigma * normal). */
struct sim_time {
    uint64_t low_us, high_us;
    double sigma;
};

enum { SIM_IDLES = 16 };

/* What carries bytes, one after the other. */
struct sim_line {
    uint64_t rate_bytes; /* a second; 0: without limit */
    uint64_t free_us;    /* when all that it has taken is through */
    struct sim_idle {
        uint64_t from_us, to_us;
    } idle[SIM_IDLES]; /* before that, when nothing was on it: the newest, in their order */
    uint32_t idles;
};

/* Where an end is found by its connection's number; conn 0: the place is free. */
struct sim_place {
    struct sim_link *link;
    uint32_t conn;
    uint8_t side;
};

enum { SIM_TRUTH_BLOCK = 1024 };

enum { SIM_LINE = 64 }; /* bytes of a cache line: no two threads write to one */

/* Floats with a count of who holds them (buffers.c). It stands apart from them, beside others of
 * its kind: counting need not wait for a line of the floats, of which each lies somewhere else. */
struct sim_block {
    _Alignas(SIM_LINE) struct sim_block *next; /* among the free ones */
    struct sim_gap *newest; /* of the differences of others less this: the newest, while it lives */
    double norm_sq;         /* ||x||^2 of a snapshot; negative: not known */
    uint32_t users;
    float *x; /* [floats of a buffer], on a line */
};

/* What a buffer holds, counted: a block, a difference of two, or nothing until it is first used. */
struct sim_buffer {
    struct sim_block *block;
    struct sim_gap *gap;
    bool mirrored; /* it is the negative of the gap */
};

/* Local steps are computed in runs of so many, if nothing asks for the model before: more of them
 * don't make the way of a model's floats into a cache and back shorter by much. */
enum { SIM_RUN_STEPS = 8, SIM_STEPS = 2 * SIM_RUN_STEPS };

/* A local step that has begun. */
struct sim_step {
    struct sim_job job;
    struct sim_host *host;
    struct trainer_turn turn;
    struct sim_block *left; /* where x stands before it, or NULL: in `x`; held until it is made */
    struct sim_step *next;  /* of those that hold one */
    float *x;               /* after it */
    double loss, moved_sq;
    uint64_t place;
};

enum sim_host_state {
    SIM_HOST_OFF, /* never started, or killed */
    SIM_HOST_UP,
    SIM_HOST_ENDED /* FINISHED: the core is kept to be looked at, and counts if it is DONE */
};

/* What belongs to one process: all of it is 0 as that starts. */
struct sim_life {
    int error; /* ENDED: of FINISHED */
    bool stepping;
    bool seals;              /* its chunks carry sums: where options.configure asks for them */
    bool measures;           /* how far steps move x */
    bool written, published; /* its model's file */
    uint32_t conn_next;      /* of the next incoming connection */
    struct codec codec;      /* but for its draw */
    uint64_t steps_left, version, samples;
    uint64_t version_told;    /* of STEPPED */
    uint64_t heard;           /* of so many steps the loss is known */
    struct trainer_turn turn; /* as last granted; its steps are to be added to version, ... */
    struct parley_pace pace;  /* ... and its progress is what this has for that */
    uint64_t averaged;        /* ADDs so far */
    double loss;              /* of the newest step that was heard of */
    double sound_loss;        /* the newest that is finite */
    double moved_sq;          /* of the step that `loss` is of */
    uint64_t set;         /* steps made when x was last replaced: they tell nothing of what it is */
    uint64_t place;       /* in its share, after that step */
    uint64_t turnover;    /* of its live members, when its share of the data was cut */
    uint64_t computed_us; /* when its operations so far are through */
    uint64_t step_end_us; /* of the step under way, with the pauses that it has sat through */
};

struct sim_host {
    struct parley_sim *sim;
    uint32_t index;
    enum sim_host_state state;
    uint32_t epoch;     /* grows at each start and each end */
    uint32_t boots;     /* starts so far */
    uint32_t boots_due; /* more than those while a start that was to be by now is in the queue */
    uint64_t boot;      /* of the newest start */
    bool silent;        /* OFF: the plug was pulled */
    bool paused;
    bool counted; /* its model is part of the truth */
    struct parley_node *node;
    uint64_t paused_us; /* paused: since then */
    uint64_t clock_us;  /* what its clock was at virtual time 0 */
    uint64_t tick_us;   /* virtual time of its tick in the queue, UINT64_MAX: none */

    /* Ends that are ours and not closed, by connection: [links_places], a power of 2 or 0, at most
     * half full, probed from conn on. */
    struct sim_place *links;
    uint32_t links_count, links_places;
    struct sim_line out, in;
    double loss_rate;      /* of packets from and to it */
    double cut_rate;       /* of messages from and to it that end their connection */
    double duplicate_rate; /* of dials from and to it */
    uint64_t extra_us;     /* added to the latency of all it sends and receives */
    uint64_t reorder_us;   /* up to so much more, drawn for each message */
    enum parley_sim_lie lie;

    /* Of the vectors; all or none. That of x is where it will be when all jobs are made. */
    struct sim_block *blocks[PARLEY_VECTORS_MAX];
    float *vectors[PARLEY_VECTORS_MAX]; /* of [parameters], in those; [0]: the jobs' */
    struct sim_buffer *buffers;         /* [buffers_count] */
    uint32_t buffers_count;
    /* [operations_count], in the order given: those on vectors that wait for the trainer's boundary
     * or for an earlier one on their buffers. */
    struct parley_update *operations;
    uint32_t operations_count, operations_capacity;
    struct sim_lane lane;  /* its jobs: steps and operations */
    struct sim_lane aside; /* those on blocks alone */
    struct sim_done *told; /* whose DONE was told and that may not be made yet */

    struct sim_step *leaving; /* steps that hold what x was in */
    struct sim_life life;
    double slow;      /* steps take so many times as long */
    struct rng draws; /* of the time of a step */

    struct sim_item *waiting; /* [waiting_count], came while paused */
    uint32_t waiting_count, waiting_capacity;

    uint64_t bytes_sent, bytes_membership, bytes_sketches;

    /* What is above, most items look at. */
    struct sim_step steps[SIM_STEPS]; /* the newest, by number */
    struct parley_view last;          /* of a killed node */
    bool disk_full, disk_torn;
    uint64_t disk_us; /* that a write takes longer */
    uint8_t file[PARLEY_DIGEST_BYTES];
};

struct sim_options {
    struct parley_sim_options base;
    struct sim_time compute, latency;
    uint64_t float_ps; /* an operation's, beside base.operation_us, for each float */
    /* How long a node's step takes, counted from 0, in place of compute; or NULL. */
    uint64_t (*step_us)(const void *arg, uint32_t node, uint64_t step);
    const void *step_us_arg; /* borrowed */
    bool shares_roster;      /* all nodes have one table of members */
    uint64_t check_events;   /* parley_node_check() after each so many events; 0: never */
};

struct parley_sim {
    struct sim_options options;  /* filled */
    const struct sim_task *task; /* borrowed */
    struct sim_task own_task;    /* of parley_sim_new() */
    struct sim_queue queue;
    struct parley_updates updates; /* of the step being carried out */
    struct sim_host *hosts;        /* [nodes] */
    uint32_t nodes;
    uint64_t parameters;
    uint64_t floats; /* of a buffer: parameters times what is averaged */
    uint64_t run;
    struct rng draws;  /* of latencies */
    char (*names)[16]; /* [nodes] */
    char (*addresses)[24];

    struct sim_link *links;           /* all of them */
    struct sim_site_link *site_links; /* [site_links_count]; owned */
    uint32_t site_links_count;
    bool *blocked;         /* [from * nodes + to], NULL while nobody is */
    struct sim_item *held; /* [held_count], stopped by a block */
    uint32_t held_count, held_capacity;

    struct parley_roster *roster; /* NULL: each node has its own; owned */
    struct sim_workers *workers;
    struct sim_slab *slabs;     /* all that blocks were cut from */
    uint32_t slab_blocks;       /* of the next */
    struct sim_block *blocks;   /* free ones */
    struct sim_block *arriving; /* whose floats a core is being given, or NULL */

    int64_t **moved; /* [threads] of [parameters]: what averaging added to models (checkers.c) */
    double *scratch; /* [parameters] */
    double start_spread;

    uint64_t hash, events, events_now; /* events_now: since the clock last moved */
    uint64_t frames[WIRE_TYPES], arrivals[WIRE_TYPES], bytes_sent;
    uint64_t steps, samples; /* of all nodes */
    uint64_t steps_gone;     /* of those steps, by processes that were killed */
    /* Of processes that were started anew since: what they had committed, applied and dropped. */
    struct parley_ledger ledger_gone;
    uint32_t standing; /* processes that run, or have ended by themselves */
    bool begun;        /* the first of those steps */
    int error;
    char error_text[160];

    void (*on_frame)(struct parley_sim *, const struct parley_sim_frame *, void *);
    void *on_frame_arg;
    void (*on_line)(const char *, void *);
    void *on_line_arg;
    enum parley_log line_level;
    /* For the command's reports and the swarm: each update that tells, as it is carried out. */
    void (*on_update)(struct parley_sim *, uint32_t node, const struct parley_update *, void *);
    void *on_update_arg;
    /* For who looks at everything: an event that was taken (what came of it is in `updates`), and
     * an update that is about to be carried out. */
    void (*on_event)(struct sim_host *, const struct parley_event *, void *);
    void (*on_due)(struct sim_host *, const struct parley_update *, void *);
    void *on_event_arg; /* of both */
};

/* cluster.c */
void sim_options_fill(struct parley_sim_options *options); /* the defaults, where there is 0 */
/* What the task has too, counts there. */
PARLEY_CHECK int sim_new(struct parley_sim **sim, const struct sim_options *options,
                         const struct sim_task *task);
void sim_put(struct parley_sim *sim, struct sim_item item);   /* releases the item if it can't */
void sim_drop(struct parley_sim *sim, struct sim_item *item); /* releases what it owns */
void sim_fail(struct parley_sim *sim, int error, const char *text); /* the first one stays */
void sim_hash(struct parley_sim *sim, uint64_t value);
uint64_t sim_draw_us(struct rng *rng, const struct sim_time *time);
PARLEY_CHECK int sim_call_at(struct parley_sim *sim, uint64_t time_us,
                             void (*call)(struct parley_sim *, void *), void *arg);
/* array: pointer to the pointer to the first of `capacity` elements of `size` bytes; makes room for
 * one more after `count`. False after sim_fail(). */
bool sim_grow(struct parley_sim *sim, void *array, uint32_t count, uint32_t *capacity, size_t size);
/* `us` from now on: where that is for ever, before PARLEY_SIM_NEVER all the same. */
uint64_t sim_later_us(const struct parley_sim *sim, uint64_t us);

/* host.c */
void sim_host_event(struct sim_host *host, struct parley_event *event); /* stepping loop only */
void sim_host_item(struct sim_host *host, struct sim_item *item);
void sim_host_stop(struct sim_host *host);    /* killed: forgets all but `last` */
void sim_waiting_drop(struct sim_host *host); /* what came while it was paused */
void sim_host_resume(struct sim_host *host);
void sim_host_free(struct sim_host *host);
struct sim_item sim_item_for(const struct sim_host *host, enum sim_kind kind);
/* Cuts the node's share of the data among those it sees alive, if they have changed. */
void sim_share(struct sim_host *host, bool first);

/* steps.c, operations.c */
void sim_train(struct sim_host *host, const struct parley_update *update);
struct sim_done;
void sim_steps_tell(struct sim_host *host); /* of those that the core has not heard of, if any */
void sim_step_end(struct sim_host *host, struct sim_done *gradient); /* NULL: a whole step */
/* The end of a step that begins now is put into the queue; a GRADIENT's, with what its DONE brings.
 */
void sim_step_lasts(struct sim_host *host, struct sim_done *gradient);
/* The next operation replaces x. */
void sim_steps_set(struct sim_host *host);
/* Of so many steps all are made: the loss of the newest, if its place holds no later one. */
void sim_steps_hear(struct sim_host *host, uint64_t steps);
void sim_steps_leave(struct sim_host *host); /* lets go what those that are made have held */
/* The next job is to write x. Where that is somebody's snapshot, x gets another block, which the
 * job has to fill, and the old one is returned, for the caller to release once the job is made.
 * Else NULL. The job begins with host->vectors[0] = the floats of host->blocks[0] as of now. */
struct sim_block *sim_x_leave(struct sim_host *host);
void sim_operation(struct sim_host *host, const struct parley_update *update);
void sim_operations_run(struct sim_host *host);

/* buffers.c; NULL after sim_fail() */
struct sim_block *sim_block_new(struct parley_sim *sim);
struct sim_block *sim_block_hold(struct sim_block *block);               /* NULL is none */
void sim_block_release(struct parley_sim *sim, struct sim_block *block); /* NULL is none */
void sim_blocks_free(struct parley_sim *sim);
struct sim_block *sim_buffer(struct sim_host *host, uint32_t buffer);       /* to be read */
struct sim_block *sim_buffer_fresh(struct sim_host *host, uint32_t buffer); /* to be overwritten */
struct sim_block *sim_buffer_own(struct sim_host *host, uint32_t buffer);   /* to be changed */
/* The buffer becomes that block, too, which is returned. */
struct sim_block *sim_buffer_share(struct sim_host *host, uint32_t buffer, struct sim_block *block);
/* Makes `buffer` the difference of it and `other`; NULL after sim_fail(). */
struct sim_buffer *sim_buffer_subtract(struct sim_host *host, uint32_t buffer, uint32_t other);
/* Empties the buffer: what it held is the caller's. */
struct sim_buffer sim_buffer_move(struct sim_host *host, uint32_t buffer);
void sim_buffer_release(struct parley_sim *sim, struct sim_buffer *buffer);
/* into: [parameters]. Changes nothing, for who looks on. */
void sim_buffer_read(struct sim_host *host, uint32_t buffer, float *into);
void sim_store(struct sim_host *host, const struct parley_update *update);

/* What a SIM_DONE brings; owned by its item. */
struct sim_done {
    struct sim_job job;
    struct sim_done *next; /* among the told ones */
    struct sim_host *host;
    uint64_t steps; /* that began before it */
    struct parley_update update;
    struct sim_block *from[PARLEY_VECTORS_MAX], *to[PARLEY_VECTORS_MAX]; /* held */
    struct sim_block *left; /* of one that writes x: as a step's, and held */
    float *x;
    struct sim_gap *gap; /* of DIFF and ADD; held */
    bool mirrored;       /* likewise */
    struct parley_event event;
    double loss;     /* of GRADIENT */
    uint32_t failed; /* the connection of a chunk that was not sent; 0: none */
    int error;
    uint8_t digest[PARLEY_DIGEST_BYTES];
    double sketch[]; /* of SKETCH */
};
void sim_done_tell(struct sim_host *host, struct sim_done *done); /* and frees it */
void sim_done_put(struct sim_host *host, struct sim_done *done, uint64_t time_us);
void sim_done_free(struct sim_done *done);
void sim_told_free(struct sim_host *host); /* of those told, what is made */
void sim_done_chunk(struct sim_host *host, uint32_t op, uint32_t failed); /* as in sim_done */
/* vectors.c: the job of an operation. */
void sim_done_make(struct sim_job *job, uint32_t thread);

/* byzantine.c: it lies, and has not frozen a lie as its candidate yet. */
bool sim_lies(const struct sim_host *host);
/* x, [count], stands at `at` in a model that the host tells of. */
void sim_byzantine(struct sim_host *host, float *x, uint64_t at, size_t count);

/* checkers.c */
void sim_settle(const struct parley_sim *sim, uint32_t node); /* waits for its jobs */
/* Whether the truth is kept of the block from `at` on, a multiple of SIM_TRUTH_BLOCK. */
bool sim_truth_samples(const struct parley_sim *sim, uint64_t at);
/* An averaging in the given thread has moved that block of a counted model; before, after: [n]. */
void sim_truth_moved(struct parley_sim *sim, uint32_t thread, uint64_t at, const float *before,
                     const float *after, uint64_t n);
void sim_check(struct parley_sim *sim);
/* Over the models of those nodes that count: their sum into sum[parameters], and how many they are;
 * the spread over the norm of the mean, which is left in sim->scratch; 0 of none. */
typedef bool sim_counts(const struct parley_sim *sim, uint32_t node);
uint32_t sim_sum(const struct parley_sim *sim, sim_counts *counts, double *sum);
double sim_drift(const struct parley_sim *sim, sim_counts *counts);
/* To that node, whose core is there, so many are alive, and nobody is suspect. */
bool sim_sees(const struct parley_sim *sim, uint32_t node, uint32_t count);

#endif
