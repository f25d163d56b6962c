/* partition_draw.c: who owns which sample, for each kind of partition.
 *
 * Happy path: shuffle the samples by the seed; sort them by label (not in iid); cut the row into
 * units and give each to a member; see that nobody is left with none.
 * Failure: no memory.
 */
#include "data/partition/partition_draw.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "core/rng.h"

/* More blocks make shares more even, fewer make them cheaper to find. Their number must not depend
 * on that of the members, or a change of members would move everything. With this maximum there
 * are always as many blocks as members: each sample its own, or more than half of the maximum. */
#define BLOCKS_MAX (2 * PARTITION_MEMBERS_MAX)

enum stream { STREAM_SAMPLES = 1, STREAM_BLOCKS, STREAM_SHARDS, STREAM_PROPORTIONS };

/* 0 to count - 1 in an order drawn by (seed, stream), for the caller to free; NULL: no memory. */
static uint32_t *shuffled(uint32_t count, uint64_t seed, enum stream stream)
{
    uint32_t *order = malloc(count * sizeof *order);
    if (!order) return NULL;
    struct rng rng = rng_init(seed, stream);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t k = rng_below(&rng, i + 1);
        order[i] = i;
        order[i] = order[k];
        order[k] = i;
    }
    return order;
}

/* The shuffled samples sorted by label: class c in [start[c], start[c + 1]). start: [classes + 1].
 */
static int sorted_by_label(const struct partition_task *task, uint32_t **sorted, uint32_t **start)
{
    uint32_t *order = shuffled(task->count, task->seed, STREAM_SAMPLES);
    uint32_t *out = malloc(task->count * sizeof *out);
    uint32_t *at = calloc(task->classes + (size_t)2, sizeof *at);
    if (!order || !out || !at) {
        free(order);
        free(out);
        free(at);
        return PARLEY_ENOMEM;
    }
    /* Counting sort; counted two places up, so that filling leaves the starts in their places. */
    for (uint32_t i = 0; i < task->count; i++) {
        assert(task->labels[i] < task->classes);
        at[task->labels[i] + 2]++;
    }
    for (uint32_t c = 2; c < task->classes + 2; c++)
        at[c] += at[c - 1];
    for (uint32_t i = 0; i < task->count; i++)
        out[at[task->labels[order[i]] + 1]++] = order[i];
    free(order);
    *sorted = out;
    *start = at;
    return 0;
}

/* Gives each member without a unit the last unit of the member that has most (the first of them).
 */
static int feed_the_empty(uint32_t *owner, uint32_t units, uint32_t members)
{
    uint32_t *has = calloc(members, sizeof *has);
    if (!has) return PARLEY_ENOMEM;
    assert(units >= members);
    for (uint32_t u = 0; u < units; u++)
        has[owner[u]]++;
    for (uint32_t m = 0; m < members; m++) {
        if (has[m] > 0) continue;
        uint32_t richest = 0, last = units - 1;
        for (uint32_t k = 1; k < members; k++)
            if (has[k] > has[richest]) richest = k;
        while (owner[last] != richest)
            last--;
        owner[last] = m;
        has[m]++;
        has[richest]--;
    }
    free(has);
    return 0;
}

uint64_t partition_weight(uint64_t member_key, uint64_t block_key)
{
    return rng_mix(member_key ^ block_key);
}

/* Highest random weight; on equal weights the first name keeps the block. */
static uint32_t rendezvous(const uint64_t *keys, uint32_t members, uint64_t block_key)
{
    uint32_t best = 0;
    uint64_t best_weight = 0;
    for (uint32_t m = 0; m < members; m++) {
        uint64_t weight = partition_weight(keys[m], block_key);
        if (m > 0 && weight <= best_weight) continue;
        best = m;
        best_weight = weight;
    }
    return best;
}

static uint32_t block_size_of(const struct partition_task *task)
{
    return (task->count - 1) / BLOCKS_MAX + 1;
}

int partition_block_keys(const struct partition_task *task, uint64_t *block_key)
{
    uint32_t block_size = block_size_of(task);
    uint32_t *order = shuffled(task->count, task->seed, STREAM_SAMPLES);
    if (!order) return PARLEY_ENOMEM;
    struct rng rng = rng_init(task->seed, STREAM_BLOCKS);
    uint64_t key = 0;
    for (uint32_t i = 0; i < task->count; i++) {
        if (i % block_size == 0) key = rng_next(&rng);
        block_key[order[i]] = key;
    }
    free(order);
    return 0;
}

static int draw_iid(const struct partition_task *task, const uint64_t *keys, uint32_t *owner)
{
    uint32_t block_size = block_size_of(task);
    uint32_t blocks = (task->count - 1) / block_size + 1;
    uint32_t *order = shuffled(task->count, task->seed, STREAM_SAMPLES);
    uint32_t *block_owner = malloc(blocks * sizeof *block_owner);
    int error = order && block_owner ? 0 : PARLEY_ENOMEM;
    if (error) goto out;

    struct rng rng = rng_init(task->seed, STREAM_BLOCKS);
    for (uint32_t b = 0; b < blocks; b++)
        block_owner[b] = rendezvous(keys, task->members, rng_next(&rng));
    error = feed_the_empty(block_owner, blocks, task->members);
    if (error) goto out;
    for (uint32_t i = 0; i < task->count; i++)
        owner[order[i]] = block_owner[i / block_size];
out:
    free(block_owner);
    free(order);
    return error;
}

static int draw_shards(const struct partition_task *task, uint32_t *owner)
{
    uint32_t shards = 2 * task->members;
    uint32_t *sorted = NULL, *start = NULL;
    uint32_t *deal = shuffled(shards, task->seed, STREAM_SHARDS);
    int error = deal ? sorted_by_label(task, &sorted, &start) : PARLEY_ENOMEM;
    if (error) goto out;

    for (uint32_t s = 0; s < shards; s++) {
        uint32_t from = (uint32_t)((uint64_t)task->count * s / shards);
        uint32_t to = (uint32_t)((uint64_t)task->count * (s + 1) / shards);
        for (uint32_t i = from; i < to; i++)
            owner[sorted[i]] = deal[s] / 2;
    }
out:
    free(start);
    free(sorted);
    free(deal);
    return error;
}

/* Logarithm of a draw from Gamma(alpha, 1): Marsaglia and Tsang, "A simple method for generating
 * gamma variables", ACM TOMS 26(3), 2000; below 1 by their boost, whose U^(1/alpha) is too small
 * for a double at small alpha, hence the logarithm. */
static double log_gamma_draw(struct rng *rng, double alpha)
{
    double boost = 0;
    if (alpha < 1) {
        boost = log(1 - rng_unit(rng)) / alpha;
        alpha += 1;
    }
    double d = alpha - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        double x = rng_normal(rng), v = 1 + c * x;
        if (v <= 0) continue;
        v = v * v * v;
        if (log(1 - rng_unit(rng)) < 0.5 * x * x + d - d * v + d * log(v))
            return log(d * v) + boost;
    }
}

/* weight: [n], a draw from Dirichlet(alpha, ..., alpha). */
static void dirichlet_draw(struct rng *rng, double alpha, double *weight, uint32_t n)
{
    double largest = -INFINITY, sum = 0;
    for (uint32_t m = 0; m < n; m++) {
        weight[m] = log_gamma_draw(rng, alpha);
        if (weight[m] > largest) largest = weight[m];
    }
    for (uint32_t m = 0; m < n; m++)
        sum += weight[m] = exp(weight[m] - largest);
    for (uint32_t m = 0; m < n; m++)
        weight[m] /= sum;
}

static int draw_dirichlet(const struct partition_task *task, uint32_t *owner)
{
    uint32_t *sorted = NULL, *start = NULL;
    double *weight = malloc(task->members * sizeof *weight);
    int error = weight ? sorted_by_label(task, &sorted, &start) : PARLEY_ENOMEM;
    if (error) goto out;

    struct rng rng = rng_init(task->seed, STREAM_PROPORTIONS);
    for (uint32_t c = 0; c < task->classes; c++) {
        dirichlet_draw(&rng, task->spec.alpha, weight, task->members);
        uint32_t size = start[c + 1] - start[c], at = 0;
        double until = 0;
        for (uint32_t m = 0; m < task->members; m++) {
            until += weight[m];
            /* The last takes the rest, whatever rounding left. */
            double edge = m + 1 < task->members ? rint(until * size) : size;
            for (; at < size && at < edge; at++)
                owner[sorted[start[c] + at]] = m;
        }
    }
    error = feed_the_empty(owner, task->count, task->members);
out:
    free(weight);
    free(start);
    free(sorted);
    return error;
}

int partition_draw(const struct partition_task *task, const uint64_t *keys, uint32_t *owner)
{
    switch (task->spec.kind) {
    case PARTITION_SHARDS:
        return draw_shards(task, owner);
    case PARTITION_DIRICHLET:
        return draw_dirichlet(task, owner);
    case PARTITION_IID:
        return draw_iid(task, keys, owner);
    case PARTITION_ALL:
        break;
    }
    assert(!"`all` has no owners");
    return PARLEY_EFAIL;
}
