/* queue.h: the virtual clock and what is to happen.
 *
 * Items leave by time, and among equal times in the order they were put in, so one seed makes one
 * run. Time never goes back: an item put in for the past happens now.
 *
 * A radix heap (Ahuja, Mehlhorn, Orlin, Tarjan, "Faster algorithms for the shortest path problem",
 * 1990, section 2), made for clocks that only advance: bucket b > 0 holds the times whose highest
 * bit that differs from the time taken last is bit b - 1; bucket 0 holds that time itself. When
 * bucket 0 is empty, the lowest bucket with items is dealt out anew. An item moves once a bit of
 * its distance at most, in rows, whatever the number of items; and since equal times always lie in
 * one bucket, in the order they came, no tie needs a number.
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
    SIM_SENT,      /* likewise */
    SIM_RECEIVED,  /* data: struct sim_message, owned: it came to `node` */
    /* The kinds above are for the process of `node` and wait while that is paused. */
    SIM_SYN,     /* data: struct sim_link, counted: a dial reaches its target */
    SIM_BREAK,   /* likewise: this end gives up, after resending in vain */
    SIM_LEFT,    /* data: struct sim_message, owned: it has gone through the sender's line */
    SIM_ARRIVED, /* likewise: it reaches the other machine */
    SIM_CALL     /* data: struct sim_call, owned: a fault or a question of the user's */
};

struct sim_item {
    uint64_t time_us;
    uint64_t number;
    void *data;
    uint32_t node;
    uint32_t epoch; /* of that node; an item of an older epoch is void */
    enum sim_kind kind;
    uint8_t side; /* of a link: which end */
};

enum { SIM_BUCKETS = 65 }; /* one a bit of a time, and bucket 0 */

struct sim_bucket {
    struct sim_item *items; /* [count] of capacity, of which `taken` are gone */
    size_t taken, count, capacity;
    uint64_t least_us; /* of its items */
};

struct sim_queue {
    struct sim_bucket bucket[SIM_BUCKETS];
    uint64_t filled;  /* bit b - 1: bucket b > 0 has items */
    uint64_t last_us; /* of the item taken last, from which the buckets count; at most now_us */
    uint64_t now_us;
    int error; /* PARLEY_ENOMEM: an item could not be moved; nothing was lost, nothing is taken */
};

void sim_queue_init(struct sim_queue *queue);

/* PARLEY_ENOMEM: the item was not taken. */
PARLEY_CHECK int sim_queue_put(struct sim_queue *queue, struct sim_item item);

/* Takes the next item and moves the clock to it; false if there is none, or queue->error. */
bool sim_queue_take(struct sim_queue *queue, struct sim_item *item);

/* The item that comes `places` after the next one, if that is at the same time as the one taken
 * last; else NULL. For who wants to have at hand what it will need. */
const struct sim_item *sim_queue_ahead(const struct sim_queue *queue, size_t places);

/* Time of the next item, UINT64_MAX if there is none. */
uint64_t sim_queue_next_us(const struct sim_queue *queue);

/* Frees the queue; the items' data are the caller's business (take them out first). */
void sim_queue_close(struct sim_queue *queue);

#endif
