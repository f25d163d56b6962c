/* sampler.c: draws a node's share in shuffled passes.
 *
 * Happy path: init copies and shuffles; next hands out numbers and, at the end of a pass, shuffles
 * the share anew from (seed, pass), never from the last order: so seek needs no history.
 * Failure: an empty share, no memory, a position behind the share's end.
 */
#include "data/sampler.h"

#include <stdlib.h>
#include <string.h>

#include "core/rng.h"

/* Fisher and Yates, in Durstenfeld's form. */
static void shuffle(struct sampler *sampler)
{
    struct rng rng = rng_init(sampler->seed, sampler->pass);
    for (uint32_t i = 0; i < sampler->count; i++)
        sampler->order[i] = sampler->share ? sampler->share[i] : i;
    for (uint32_t i = sampler->count; i > 1; i--) {
        uint32_t k = rng_below(&rng, i);
        uint32_t moved = sampler->order[i - 1];
        sampler->order[i - 1] = sampler->order[k];
        sampler->order[k] = moved;
    }
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
    shuffle(sampler);
    return 0;
}

void sampler_next(struct sampler *sampler, uint32_t *index, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (sampler->position == sampler->count) {
            sampler->pass++;
            sampler->position = 0;
            shuffle(sampler);
        }
        index[i] = sampler->order[sampler->position++];
    }
}

void sampler_close(struct sampler *sampler)
{
    free(sampler->order);
    free(sampler->share);
    *sampler = (struct sampler){0};
}
