/* server.h: a parameter server that is one of the nodes: ps-bsp, ps-asp and ps-ssp:S.
 *
 * One of those who train serves: its x is the model, and only its optimizer's vectors move. Every
 * node is a worker, the server too, whose own gradients go the same way without a link:
 *
 *   worker                              server
 *   PULL  what it holds          ->     enrols it
 *   floats, into x               <-     MODEL  version, clock, time spent: once it is the worker's
 *                                              turn
 *   the gradient at that x
 *   PULL  that version, floats   ->     into the sum, or right into x
 *   ...                          <-     MODEL
 *
 * A version is the number of gradients that are in the model; a clock, that of one worker's. What
 * the strategies differ in is when gradients go into x, and whose turn it is (merge.c, server.c):
 *
 *   ps-bsp    the mean of one gradient of each worker, less K (backup workers: Chen et al. 2016,
 *             arXiv:1604.00981, section 3.1); then it is everybody's turn. Later ones are dropped
 *   ps-asp    each as it comes; at once (Downpour SGD: Dean et al., NIPS 2012, section 4.1)
 *   ps-ssp:S  each as it comes; once the worker is at most S steps ahead of the slowest
 *             (Ho et al., NIPS 2013, section 3)
 *
 * Where each gradient is a step of its own, its rate is divided by its staleness, and by the number
 * of workers at least, which is what that is on average (Zhang, Gupta, Lian, Liu, IJCAI 2016,
 * arXiv:1511.05950). So --lr is that of one batch, as with one node; undivided, the gradients of
 * four nodes and a momentum of 0.9 drive the loss up at rates at which one node trains well.
 *
 * Who serves (election.c) stands in the member records, without a vote: each says whom it follows
 * and which version it holds. Who follows itself serves, as long as it trains. Where nobody does,
 * it is for the one of the newest version, among equals the first by name, once all have said that
 * they follow nobody; or after a while. Of two who serve (a partition that healed) the one of the
 * newer version goes on: versions only grow, so never do both step back. So it does where one comes
 * with a newer file than the one had who serves.
 *
 * Who wrongly thinks that it serves corrupts nothing: a gradient names the reign whose model it was
 * computed at (the server's boot, plus how often it began to serve) and the version of that model;
 * only that server takes it, in that reign. All others are dropped, and answered with the newest.
 *
 * What a death costs. A worker's: its gradient under way. Nobody waits for it any more; nor for one
 * whose link has been silent for progress_timeout_us. The server's: the updates since the newest
 * model that a live worker has (ps-bsp: one at the most), and the optimizer's vectors, which start
 * again from zero.
 * Decision: they are not sent along with each model: that would double or triple what a step sends,
 * to save the momentum of a few steps once in a run.
 * Decision: a worker drops what it has computed for another server or on a link that broke. So no
 * gradient enters a model twice, and nothing needs to be asked. At most one is lost each time.
 * Decision: the server trains as the others do, at the very x that it serves; so gradients enter x
 * between two of its own steps, and its own are always waited for, even with backup workers.
 *
 * Decision: models leave one after the other, to who is furthest behind first. Side by side over
 * the server's line all come late, and all gradients at once: a step of ps-bsp with n nodes took
 * up to 1.4 n times as long as a model over that line, and takes n. Who was slow to take the last
 * one, as its own line is narrow, is sent the next one beside the others.
 * Decision: with ps-asp the server itself makes no more steps than the fastest of the others.
 * Without a link in between it would make most of all, and the model would be one of its share of
 * the data.
 *
 * The end: no step is begun any more, all gradients under way go into x, all workers get that as
 * the last model, and only then does the server raise STOP. Who leaves hands over alike. Who gets
 * none of the server takes that of another worker: its own, which may never have been trained, is
 * nothing to average with.
 *
 * Limits: a link from each worker to the server, which has PARLEY_SERVED_MAX places, its own among
 * them. Gradients come in side by side into SERVER_ARRIVALS buffers, or more where they are small;
 * where workers are more, they wait for SEND.
 * Thread rule: as the node's.
 */
#ifndef PARLEY_CORE_PS_SERVER_H
#define PARLEY_CORE_PS_SERVER_H

#include "core/state.h"

enum {
    SERVER_ARRIVALS = 8,
    SERVER_ARRIVALS_MAX = PARLEY_SERVED_MAX - 1,
    SERVER_OWN = SERVER_ARRIVALS_MAX,     /* the place of this node's own gradient */
    SERVER_MODELS = 2,                    /* snapshots that may be on their way at a time */
    SERVER_STREAMS = SERVER_ARRIVALS_MAX, /* models that are on their way at a time */
    SERVER_INFLOW = SERVER_ARRIVALS_MAX,  /* the model's; those before it are the arrivals' */
    SERVER_BUFFERS = SERVER_MODELS + 3    /* own gradient, sum, model that comes */
};

enum server_word { /* message_strategy.what */
                   /* tag: of this request and its floats; round: the version held; key: the reign
                      that gave it; stamp: the clock; count: PULL_...; part: with PULL_STOP its
                      cause */
                   SERVER_PULL = 1,
                   /* tag: of the request; round: the version; key: the reign; before: updates it
                      has been through; stamp: the clock; count: MODEL_...; part: with MODEL_LAST
                      the cause of STOP */
                   SERVER_MODEL,
                   SERVER_SEND, /* tag: of the request: its floats may come */
                   SERVER_HERE  /* nothing; that it is there */
};

enum { PULL_GRADIENT = 1, PULL_WAITS = 2, PULL_RESTS = 4, PULL_STOP = 8 };
enum { MODEL_SAME = 1, MODEL_ROOM = 2, MODEL_LAST = 4, MODEL_NO_PLACE = 8 };

/* One who trains, as the server sees it. */
struct server_worker {
    uint64_t boot;
    int member;
    uint32_t conn;     /* over which it has enrolled; 0: it has not */
    uint32_t sequence; /* of its newest request */
    bool asks;         /* it is to get a model, once it is its turn */
    bool rests;        /* it computes no more */
    bool in;           /* ps-bsp: its gradient is in the sum */
    bool queued;       /* its gradient waits for SEND, ... */
    uint64_t place;    /* ... in this order */
    uint64_t clock;
    uint64_t wants;    /* the least version that will do */
    uint64_t holds;    /* the version of this reign that it has; NEVER: none of it */
    uint64_t since_us; /* first seen to train, or its link lost */
    uint64_t took_us;  /* the newest model to it */
};

enum arrival_state {
    ARRIVAL_FREE,
    ARRIVAL_KEPT, /* for the next gradient of `boot` */
    ARRIVAL_RECEIVING,
    ARRIVAL_FULL,
    ARRIVAL_MERGING /* an operation reads it */
};

/* A gradient at the server. */
struct server_arrival {
    enum arrival_state state;
    uint64_t boot;    /* whose */
    uint32_t conn;    /* over which it comes */
    uint64_t version; /* of the model it was computed at */
    uint32_t buffer;
};

enum snapshot_state { SNAPSHOT_NONE, SNAPSHOT_TAKING, SNAPSHOT_HERE };

/* A snapshot of x at the server. */
struct server_model {
    enum snapshot_state state;
    uint32_t buffer;
    uint32_t users;   /* streams that read it */
    uint64_t version; /* NEVER: it is being taken, and has been given up */
    uint64_t rounds;
    uint64_t slowest; /* ps-ssp: clock of the worker furthest behind, as it was taken */
};

/* A model on its way to a worker. */
struct server_stream {
    uint64_t boot; /* whose; 0: none */
    int model;
    uint64_t begun_us;
    bool slow; /* the line to it was, and not that of all */
};

enum worker_state {
    WORKER_IDLE,
    WORKER_ASKING,    /* PULL is out, perhaps with a gradient */
    WORKER_RECEIVING, /* the model comes in */
    WORKER_SETTING,   /* ... and goes into x */
    WORKER_READY,     /* it is its turn, at the model in x */
    WORKER_COMPUTING
};

struct server {
    int leader;       /* who serves: a member; NONE */
    int former;       /* who did before that was NONE, ... */
    uint64_t lost_us; /* ... since then */
    bool ends;        /* no step is begun any more; */
    uint64_t ends_us; /* ... since then */
    bool closed;      /* as the server: x is the last model, ... */
    bool last;        /* ... and all have it; as a worker: x is the last model */

    /* As the server. What was asked of the trainer counts as done: it does all in that order. */
    uint64_t reign;   /* 0 before the first */
    uint64_t version; /* of x */
    uint64_t rounds;  /* updates that x has been through, whoever made them */
    uint64_t merged;  /* updates that the optimizer's vectors have been through */
    uint64_t queue;   /* places given to those who wait for SEND */
    uint64_t seen;    /* the roster's news when `workers` was made, ... */
    bool early;       /* ... and whether those who are about to train are in it */
    uint32_t pending; /* operations under way */
    uint32_t sum;     /* buffer; */
    uint32_t summed;  /* ... gradients in it */
    uint32_t summing; /* ... that are still being added */
    uint32_t applied; /* ... when it was last applied */
    struct server_worker workers[PARLEY_SERVED_MAX];
    uint32_t count; /* of workers: all who train and live, this node among them */
    struct server_arrival arrivals[SERVER_ARRIVALS_MAX + 1];
    int lanes; /* of them, but for the own one: those that have a buffer */
    struct server_model models[SERVER_MODELS];
    struct server_stream streams[SERVER_STREAMS];
    uint64_t pace_us; /* what one takes that has the line for itself */

    /* As a worker. */
    enum worker_state state;
    uint32_t conn, sequence;        /* of the newest request */
    bool room;                      /* the next gradient may follow its PULL at once */
    bool unsent;                    /* it waits for SEND */
    bool sending;                   /* its floats are under way */
    bool given;                     /* ... and no answer has come since */
    bool told;                      /* that it rests, or that the run is to end */
    bool takes;                     /* another worker's model, if one has it */
    uint64_t giver, from;           /* boot and reign that gave the model in x; 0: none */
    uint64_t clock;                 /* that came with it */
    uint64_t base;                  /* the version that the gradient is computed at */
    struct message_strategy answer; /* of the model that comes in */
    uint64_t answerer;              /* boot */
    uint64_t said_us;               /* when the server was last told something */
    uint64_t heard_us;              /* when something of a model last came in */
    uint32_t incoming;              /* buffer */
};

static inline struct server *server_of(const struct parley_node *node)
{
    return node->strategy_state;
}

static inline bool server_serves(const struct parley_node *node)
{
    return server_of(node)->leader == node->self;
}

/* Operations and streams, by the number that comes back. */
enum server_task { TASK_GRADIENT, TASK_SET, TASK_SUM, TASK_APPLY, TASK_TAKE, TASK_RESET, TASKS };

static inline int server_task(enum server_task task, int index)
{
    return (int)task + TASKS * index;
}

/* election.c */
void election_advance(struct parley_node *node);
uint64_t election_deadline(const struct parley_node *node);

/* The mean of one gradient of each worker goes into x, instead of each as it comes. */
static inline bool server_sums(const struct parley_node *node)
{
    return node->config.strategy == PARLEY_STRATEGY_PS_BSP;
}

/* crew.c, merge.c, models.c, server.c: called only while this node serves, unless it says
 * otherwise. */

/* crew.c */
void crew_muster(struct parley_node *node);                           /* as the records are now */
struct server_worker *crew_find(struct server *s, uint64_t boot);     /* NULL: it is not there */
struct server_worker *crew_add(struct parley_node *node, int member); /* NULL: no place is left */
/* A round, or the others' clocks, wait for it. */
bool crew_waits_for(struct parley_node *node, const struct server_worker *w);
/* A gradient of it is on its way, or not in the model yet. */
bool crew_is_pending(const struct server *s, const struct server_worker *w);
/* The clock of the slowest; 0 as long as one who is waited for has not said its own. */
uint64_t crew_slowest(struct parley_node *node);
/* ps-ssp: by more than the staleness. */
bool crew_is_ahead(const struct parley_node *node, const struct server_worker *w, uint64_t slowest);
/* The most steps that anybody else has made; NEVER: there is nobody. */
uint64_t crew_fastest_other(struct parley_node *node);
/* The least and the most steps of all but `w` that have enrolled and are waited for; false: there
 * is nobody. */
bool crew_clocks(struct parley_node *node, const struct server_worker *w, uint64_t *low,
                 uint64_t *high);

/* merge.c */
void merge_advance(struct parley_node *node);
/* Too late, or of another's model: its sender, if any, gets the newest. */
void merge_drop(struct parley_node *node, struct server_worker *w);
void merge_finish_round(struct parley_node *node);

/* models.c */
/* The newest snapshot that will do, if any; NONE: *comes tells whether one is on its way. */
int models_find(const struct parley_node *node, const struct server_worker *w, bool *comes);
void models_take(struct parley_node *node);
void models_taken(struct parley_node *node, int model, bool finite); /* anybody */
uint64_t models_next_us(const struct parley_node *node);             /* when another may leave */
void models_send(struct parley_node *node, struct server_worker *w, struct conn *conn, int model);
void models_sent(struct parley_node *node, int stream, bool ok); /* anybody */
uint32_t models_streams(const struct server *s);
void models_forget(struct parley_node *node);

/* server.c */
void server_release(struct parley_node *node, int arrival); /* unless an operation reads it */
bool server_is_idle(const struct parley_node *node);        /* anybody: may open */
void server_open(struct parley_node *node);
void server_shut(struct parley_node *node);
void server_advance(struct parley_node *node);
uint64_t server_deadline(const struct parley_node *node);
void server_pulled(struct parley_node *node, struct conn *conn,
                   const struct message_strategy *message);
void server_computed(struct parley_node *node);
void server_received(struct parley_node *node, int arrival);             /* anybody */
void server_merged(struct parley_node *node, int arrival, bool applied); /* anybody */
void server_closed(struct parley_node *node, uint32_t conn);             /* anybody */

/* worker.c */
void worker_advance(struct parley_node *node);
bool worker_may_compute(const struct parley_node *node); /* the run still wants steps of it */
void worker_lose(struct parley_node *node);              /* what it asked for will not come */
void worker_computed(struct parley_node *node, bool finite);
void worker_ready(struct parley_node *node); /* what the answer says holds for x now */
void worker_answered(struct parley_node *node, struct conn *conn,
                     const struct message_strategy *message);
void worker_may_send(struct parley_node *node, struct conn *conn,
                     const struct message_strategy *message);
void worker_received(struct parley_node *node);
void worker_closed(struct parley_node *node, uint32_t conn);
bool worker_stops(struct parley_node *node);
/* False: nobody has a better model that could be had. Else that is under way, as the last one. */
bool worker_takes(struct parley_node *node);
/* Another's model is in x. */
void worker_adopted(struct parley_node *node, const struct message_fetch *answer);

#endif
