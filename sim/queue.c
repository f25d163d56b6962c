/* queue.c: a binary heap, ordered by (time, sequence). */
#include "queue.h"

#include <stdlib.h>
#include <string.h>

void sim_queue_init(struct sim_queue *queue)
{
    memset(queue, 0, sizeof *queue);
}

static bool before(const struct sim_item *a, const struct sim_item *b)
{
    if (a->time_us != b->time_us) return a->time_us < b->time_us;
    return a->sequence < b->sequence;
}

int sim_queue_put(struct sim_queue *queue, struct sim_item item)
{
    if (queue->count == queue->capacity) {
        size_t capacity = queue->capacity ? 2 * queue->capacity : 256;
        struct sim_item *heap = realloc(queue->heap, capacity * sizeof *heap);
        if (!heap) return PARLEY_ENOMEM;
        queue->heap = heap;
        queue->capacity = capacity;
    }
    if (item.time_us < queue->now_us) item.time_us = queue->now_us;
    item.sequence = queue->sequence++;
    size_t hole = queue->count++;
    while (hole > 0) {
        size_t parent = (hole - 1) / 2;
        if (!before(&item, &queue->heap[parent])) break;
        queue->heap[hole] = queue->heap[parent];
        hole = parent;
    }
    queue->heap[hole] = item;
    return 0;
}

bool sim_queue_take(struct sim_queue *queue, struct sim_item *item)
{
    if (queue->count == 0) return false;
    *item = queue->heap[0];
    queue->now_us = item->time_us;
    struct sim_item last = queue->heap[--queue->count];
    size_t hole = 0;
    for (;;) {
        size_t child = 2 * hole + 1;
        if (child >= queue->count) break;
        if (child + 1 < queue->count && before(&queue->heap[child + 1], &queue->heap[child]))
            child++;
        if (!before(&queue->heap[child], &last)) break;
        queue->heap[hole] = queue->heap[child];
        hole = child;
    }
    if (queue->count > 0) queue->heap[hole] = last;
    return true;
}

uint64_t sim_queue_next_us(const struct sim_queue *queue)
{
    return queue->count > 0 ? queue->heap[0].time_us : UINT64_MAX;
}

void sim_queue_close(struct sim_queue *queue)
{
    free(queue->heap);
    sim_queue_init(queue);
}
