/* cluster.h: a simulation's whole state, and who carries out what.
 *
 *   queue.c     what happens next             host.c       a node's life: start, events, pause, end
 *   link.c, network.c   connections, bytes    vectors.c    TAKE, ADD, DIFF, ... on a node's buffers
 *   task.c      what the nodes train          checkers.c   the global truth
 *   cluster.c   options, stepping, lines      faults.c     kill, partition, ... and the hooks
 *
 * One rule keeps it repeatable and free of recursion: only the stepping loop gives a core an event;
 * all else puts items into the queue.
 */
#ifndef PARLEY_SIM_CLUSTER_H
#define PARLEY_SIM_CLUSTER_H

#include "core/rng.h"
#include "core/wire.h"
#include "parley/sim.h"
#include "queue.h"
#include "task.h"

struct sim_link;
struct sim_message;

/* A time that may be drawn: low + unit * (high - low), or low * exp(sigma * normal). */
struct sim_time {
    uint64_t low_us, high_us;
    double sigma;
};

/* A vector operation that waits for the trainer's boundary or for an earlier one on its buffers. */
struct sim_operation {
    struct parley_update update;
};

enum sim_host_state {
    SIM_HOST_OFF, /* never started, or killed */
    SIM_HOST_UP,
    SIM_HOST_ENDED /* FINISHED: the core is kept to be looked at, its model counts unless it left */
};

struct sim_host {
    struct parley_sim *sim;
    uint32_t index;
    enum sim_host_state state;
    uint32_t epoch; /* grows at each start and each end */
    uint32_t boots; /* starts so far */
    bool silent;    /* OFF: the plug was pulled */
    bool paused;
    bool counted; /* its model is part of the truth */
    int error;    /* ENDED: of FINISHED */
    struct parley_node *node;
    struct parley_view last; /* of a killed node */
    uint64_t clock_us;       /* what its clock was at virtual time 0 */
    uint64_t tick_us;        /* virtual time of its tick in the queue, UINT64_MAX: none */

    struct sim_link **links; /* [links_count] where one end is ours and not closed */
    uint32_t links_count, links_capacity;
    uint32_t conn_next; /* of the next incoming connection */
    uint64_t sender_us; /* when its line is free again, out and in */
    uint64_t receiver_us;
    double loss_rate;  /* of messages from and to it */
    uint64_t extra_us; /* added to the latency of all it sends and receives */

    float *vectors[PARLEY_VECTORS_MAX]; /* of [parameters]; owned; all or none */
    float **buffers;                    /* [buffers_count], each NULL until first used; owned */
    uint32_t buffers_count;
    struct sim_operation *operations; /* [operations_count], in the order given */
    uint32_t operations_count, operations_capacity;
    uint64_t computed_us; /* when its operations so far are through */

    uint64_t steps_left, version, samples;
    struct trainer_turn turn; /* as last granted; its steps are to be added to version */
    bool stepping;
    double loss, slow;
    struct rng draws; /* of the time of a step */

    struct sim_item *waiting; /* [waiting_count], came while paused */
    uint32_t waiting_count, waiting_capacity;

    uint64_t bytes_sent;

    bool disk_full, written, published;
    uint8_t file[PARLEY_DIGEST_BYTES];
};

/* What an operation on a buffer costs at least. At no cost, settling nodes without latency would
 * exchange for ever in one moment. */
enum { SIM_OPERATION_US = 20 };

struct sim_call {
    void (*call)(struct parley_sim *sim, void *arg);
    void *arg; /* borrowed */
};

struct sim_options {
    struct parley_sim_options base;
    struct sim_time compute, latency;
    const struct sim_task *task; /* borrowed */
};

struct parley_sim {
    struct sim_options options;
    const struct sim_task *task;
    struct sim_task own_task; /* of parley_sim_new() */
    struct sim_queue queue;
    struct parley_updates updates; /* of the step being carried out */
    struct sim_host *hosts;        /* [nodes] */
    uint32_t nodes;
    uint64_t parameters;
    uint64_t run;
    struct rng draws;  /* of latencies */
    char (*names)[16]; /* [nodes] */
    char (*addresses)[24];

    struct sim_link *links; /* all of them */
    bool *blocked;          /* [from * nodes + to], NULL while nobody is */
    struct sim_item *held;  /* [held_count], stopped by a block */
    uint32_t held_count, held_capacity;

    double *expected; /* [parameters], the sum of the counted models if averaging moved nothing */
    double *scratch;  /* [parameters] */
    float *before;    /* [parameters], a model before a local step */
    double start_spread;

    uint64_t hash, events, events_now; /* events_now: since the clock last moved */
    uint64_t frames[WIRE_TYPES], arrivals[WIRE_TYPES], bytes_sent;
    uint64_t steps, samples; /* of all nodes */
    int error;
    char error_text[160];

    void (*on_frame)(struct parley_sim *, const struct parley_sim_frame *, void *);
    void *on_frame_arg;
    void (*on_line)(const char *, void *);
    void *on_line_arg;
    enum parley_log line_level;
    /* For the command's reports: each update that tells, as it is carried out. */
    void (*on_update)(struct parley_sim *, uint32_t node, const struct parley_update *, void *);
    void *on_update_arg;
};

/* cluster.c */
PARLEY_CHECK int sim_new(struct parley_sim **sim, const struct sim_options *options);
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

/* host.c */
void sim_host_event(struct sim_host *host, struct parley_event *event); /* stepping loop only */
void sim_host_item(struct sim_host *host, struct sim_item *item);
void sim_host_stop(struct sim_host *host); /* killed: forgets all but `last` */
void sim_host_resume(struct sim_host *host);
void sim_host_free(struct sim_host *host);
struct sim_item sim_item_for(const struct sim_host *host, enum sim_kind kind);

/* training, in vectors.c */
void sim_train(struct sim_host *host, const struct parley_update *update);
void sim_step_end(struct sim_host *host);
void sim_operation(struct sim_host *host, const struct parley_update *update);
void sim_operations_run(struct sim_host *host);
float *sim_buffer(struct sim_host *host, uint32_t buffer); /* NULL after sim_fail() */
void sim_store(struct sim_host *host, const struct parley_update *update);

/* What a SIM_DONE brings; owned by its item. */
struct sim_done {
    struct parley_event event;
    uint8_t digest[PARLEY_DIGEST_BYTES];
    double sketch[]; /* of SKETCH */
};
void sim_done_chunk(struct sim_host *host, uint32_t op, bool ok);

/* checkers.c */
void sim_truth_add(struct parley_sim *sim, const float *x,
                   double factor); /* expected += factor x */
void sim_check(struct parley_sim *sim);

#endif
