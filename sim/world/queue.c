/* queue.c: see queue.h.
 *
 * What can fail is memory: in put, and in take while a bucket is dealt out, which makes room in all
 * buckets before it moves an item.
 */
#include "world/queue.h"

#include <stdlib.h>
#include <string.h>

enum { ITEMS_MIN = 16 };

void sim_queue_init(struct sim_queue *queue)
{
    memset(queue, 0, sizeof *queue);
}

static int bucket_of(const struct sim_queue *queue, uint64_t time_us)
{
    uint64_t differs = time_us ^ queue->last_us;
    return differs ? 64 - __builtin_clzll(differs) : 0;
}

static bool reserve(struct sim_bucket *bucket, size_t more)
{
    if (bucket->taken > bucket->capacity / 2) {
        bucket->count -= bucket->taken;
        memmove(bucket->items, bucket->items + bucket->taken,
                bucket->count * sizeof *bucket->items);
        bucket->taken = 0;
    }
    if (bucket->count + more <= bucket->capacity) return true;
    size_t capacity = bucket->capacity ? bucket->capacity : ITEMS_MIN;
    while (capacity < bucket->count + more)
        capacity *= 2;
    struct sim_item *items = realloc(bucket->items, capacity * sizeof *items);
    if (!items) return false;
    bucket->items = items;
    bucket->capacity = capacity;
    return true;
}

/* There is room. */
static void append(struct sim_queue *queue, int b, const struct sim_item *item)
{
    struct sim_bucket *bucket = &queue->bucket[b];
    if (bucket->count == 0 || item->time_us < bucket->least_us) bucket->least_us = item->time_us;
    bucket->items[bucket->count++] = *item;
    if (b > 0) queue->filled |= UINT64_C(1) << (b - 1);
}

int sim_queue_put(struct sim_queue *queue, struct sim_item item)
{
    if (item.time_us < queue->now_us) item.time_us = queue->now_us;
    int b = bucket_of(queue, item.time_us);
    if (!reserve(&queue->bucket[b], 1)) return PARLEY_ENOMEM;
    append(queue, b, &item);
    return 0;
}

static int lowest(const struct sim_queue *queue)
{
    return 1 + __builtin_ctzll(queue->filled);
}

/* Deals out the lowest bucket with items, counted from its least time: all go into lower ones. */
static bool deal(struct sim_queue *queue)
{
    size_t going[SIM_BUCKETS] = {0};
    int from = lowest(queue);
    struct sim_bucket *bucket = &queue->bucket[from];
    uint64_t before_us = queue->last_us;
    queue->last_us = bucket->least_us;
    for (size_t i = 0; i < bucket->count; i++)
        going[bucket_of(queue, bucket->items[i].time_us)]++;
    for (int b = 0; b < from; b++) {
        if (reserve(&queue->bucket[b], going[b])) continue;
        queue->last_us = before_us;
        queue->error = PARLEY_ENOMEM;
        return false;
    }
    for (size_t i = 0; i < bucket->count; i++)
        append(queue, bucket_of(queue, bucket->items[i].time_us), &bucket->items[i]);
    bucket->count = 0;
    queue->filled &= ~(UINT64_C(1) << (from - 1));
    return true;
}

bool sim_queue_take(struct sim_queue *queue, struct sim_item *item)
{
    struct sim_bucket *now = &queue->bucket[0];
    if (now->count == 0 && (!queue->filled || !deal(queue))) return false;
    *item = now->items[now->taken++];
    if (now->taken == now->count) now->taken = now->count = 0;
    queue->now_us = item->time_us;
    return true;
}

const struct sim_item *sim_queue_ahead(const struct sim_queue *queue, size_t places)
{
    const struct sim_bucket *now = &queue->bucket[0];
    return places < now->count - now->taken ? &now->items[now->taken + places] : NULL;
}

uint64_t sim_queue_next_us(const struct sim_queue *queue)
{
    if (queue->bucket[0].count > 0) return queue->last_us;
    return queue->filled ? queue->bucket[lowest(queue)].least_us : UINT64_MAX;
}

void sim_queue_close(struct sim_queue *queue)
{
    for (int b = 0; b < SIM_BUCKETS; b++)
        free(queue->bucket[b].items);
    sim_queue_init(queue);
}
