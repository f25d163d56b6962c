/* sampler.c: draws a node's share in shuffled passes.
 *
 * Happy path: init copies and shuffles; next hands out numbers and, at the end of a pass, shuffles
 * the share anew from (seed, pass), never from the last order.
 * Failure: an empty share, no memory.
 */
#include "data/sampler.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"

/* Fisher and Yates, in Durstenfeld's form: what is still to be visited. */
static void shuffle(struct sampler *sampler)
{
    struct rng rng = rng_init(sampler->seed, sampler->pass);
    uint32_t *rest = sampler->order + sampler->position;
    for (uint32_t i = sampler->count - sampler->position; i > 1; i--) {
        uint32_t k = rng_below(&rng, i);
        uint32_t moved = rest[i - 1];
        rest[i - 1] = rest[k];
        rest[k] = moved;
    }
}

void sampler_seek(struct sampler *sampler, uint64_t pass, uint64_t position)
{
    sampler->pass = pass;
    for (uint32_t i = 0; i < sampler->count; i++)
        sampler->order[i] = sampler->share ? sampler->share[i] : i;
    sampler->position = 0;
    shuffle(sampler);
    sampler->position = position < sampler->count ? (uint32_t)position : sampler->count;
}

int sampler_init(struct sampler *sampler, const uint32_t *share, uint32_t count, uint64_t seed)
{
    *sampler = (struct sampler){.count = count, .seed = seed};
    if (count == 0) return PARLEY_EDATA;
    sampler->order = malloc(count * sizeof *sampler->order);
    if (share) sampler->share = malloc(count * sizeof *sampler->share);
    if (!sampler->order || (share && !sampler->share)) {
        sampler_close(sampler);
        return PARLEY_ENOMEM;
    }
    if (share) memcpy(sampler->share, share, count * sizeof *share);
    sampler_seek(sampler, 0, 0);
    return 0;
}

/* Who of the share was visited in this pass comes first, as if it had been all of the old one. */
static int keep_visited(struct sampler *sampler, const struct sampler *before)
{
    uint32_t size = 1;
    for (uint32_t i = 0; i < sampler->count; i++)
        if (sampler->order[i] >= size) size = sampler->order[i] + 1;
    bool *visited = calloc(size, sizeof *visited);
    if (!visited) return PARLEY_ENOMEM;
    for (uint32_t i = 0; i < before->position; i++)
        if (before->order[i] < size) visited[before->order[i]] = true;
    for (uint32_t i = 0; i < sampler->count; i++) {
        uint32_t sample = sampler->order[i];
        if (!visited[sample]) continue;
        sampler->order[i] = sampler->order[sampler->position];
        sampler->order[sampler->position++] = sample;
    }
    free(visited);
    return 0;
}

int sampler_share(struct sampler *sampler, const uint32_t *share, uint32_t count)
{
    struct sampler next;
    int error = sampler_init(&next, share, count, sampler->seed);
    if (error) return error;
    next.pass = sampler->pass;
    next.coverage = sampler->coverage;
    error = keep_visited(&next, sampler);
    shuffle(&next);
    sampler_close(error ? &next : sampler);
    if (!error) *sampler = next;
    return error;
}

void sampler_next(struct sampler *sampler, uint32_t *index, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (sampler->position == sampler->count) sampler_seek(sampler, sampler->pass + 1, 0);
        index[i] = sampler->order[sampler->position++];
        if (sampler->coverage) coverage_mark(sampler->coverage, sampler->pass, index[i]);
    }
}

void sampler_close(struct sampler *sampler)
{
    free(sampler->order);
    free(sampler->share);
    *sampler = (struct sampler){0};
}
