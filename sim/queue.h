/* queue.h: the virtual clock and the heap of what is to happen.
 *
 * Items leave by time, and among equal times in the order they were put in, so one seed makes one
 * run. Time never goes back: an item put in for the past happens now.
 */
#ifndef PARLEY_SIM_QUEUE_H
#define PARLEY_SIM_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "parley/error.h"

enum sim_kind {
    SIM_START,     /* the process of `node` begins */
    SIM_TICK,      /* its core asked for this time */
    SIM_STEP_END,  /* its trainer has made one local step */
    SIM_DONE,      /* data: struct sim_done, owned */
    SIM_STOP,      /* somebody asks `node` to stop; number: enum parley_stop */
    SIM_LEAVE,     /* somebody asks `node` to leave */
    SIM_CONNECTED, /* data: struct sim_link, counted */
    SIM_INCOMING,  /* likewise */
    SIM_CLOSED,    /* likewise; number: enum parley_closed */
    SIM_SENT,      /* likewise; number: bytes */
    SIM_RECEIVED,  /* data: struct sim_message, owned: it came to `node` */
    /* The kinds above are for the process of `node` and wait while that is paused. */
    SIM_SYN,       /* data: struct sim_link, counted: a dial reaches its target */
    SIM_UNREACHED, /* likewise: a dial has had no answer for too long */
    SIM_BREAK,     /* likewise: this end gives up, after resending in vain */
    SIM_LEFT,      /* data: struct sim_message, owned: it has gone through the sender's line */
    SIM_ARRIVED,   /* likewise: it reaches the other machine */
    SIM_CALL       /* data: struct sim_call, owned: a fault or a question of the user's */
};

struct sim_item {
    uint64_t time_us;
    uint64_t sequence;
    uint64_t number;
    void *data;
    uint32_t node;
    uint32_t epoch; /* of that node; an item of an older epoch is void */
    enum sim_kind kind;
    uint8_t side; /* of a link: which end */
};

struct sim_queue {
    struct sim_item *heap; /* [count] of capacity */
    size_t count, capacity;
    uint64_t sequence; /* of the next item put in */
    uint64_t now_us;
};

void sim_queue_init(struct sim_queue *queue);

/* Fills in sequence. PARLEY_ENOMEM: the item was not taken. */
PARLEY_CHECK int sim_queue_put(struct sim_queue *queue, struct sim_item item);

/* Takes the next item and moves the clock to it; false if there is none. */
bool sim_queue_take(struct sim_queue *queue, struct sim_item *item);

/* Time of the next item, UINT64_MAX if there is none. */
uint64_t sim_queue_next_us(const struct sim_queue *queue);

/* Frees the heap; the items' data are the caller's business (take them out first). */
void sim_queue_close(struct sim_queue *queue);

#endif
