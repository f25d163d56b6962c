/* sampler.c: draws a node's share in shuffled passes.
 *
 * Happy path: init copies, and lays out the first pass; next hands out numbers and, at the end of a
 * pass, lays out the next from (seed, pass), never from the last order.
 * Failure: an empty share, no memory.
 */
#include "data/sampler.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"

static uint32_t sample_at(const struct sampler *sampler, uint32_t index)
{
    return sampler->share ? sampler->share[index] : index;
}

static uint64_t place_of(const struct sampler *sampler, uint32_t index)
{
    uint64_t pass = rng_mix(sampler->seed + sampler->pass);
    uint64_t slice = rng_mix(pass + sample_at(sampler, index)) % SAMPLER_SLICES;
    return sampler->pass * SAMPLER_SLICES + slice;
}

/* Fisher and Yates, in Durstenfeld's form. */
static void shuffle(struct rng *rng, uint32_t *order, uint32_t count)
{
    for (uint32_t i = count; i > 1; i--) {
        uint32_t k = rng_below(rng, i);
        uint32_t moved = order[i - 1];
        order[i - 1] = order[k];
        order[k] = moved;
    }
}

/* What this pass holds: a counting sort by slice, then each slice is shuffled. */
static void lay_out(struct sampler *sampler)
{
    struct rng rng = rng_init(sampler->seed, sampler->pass);
    uint32_t at[SAMPLER_SLICES + 2] = {0};
    /* Counted two places up, so that filling leaves the starts in their places. */
    for (uint32_t i = 0; i < sampler->count; i++) {
        uint64_t place = place_of(sampler, i);
        if (place >= sampler->due[i]) at[place % SAMPLER_SLICES + 2]++;
    }
    for (uint32_t s = 2; s < SAMPLER_SLICES + 2; s++)
        at[s] += at[s - 1];
    for (uint32_t i = 0; i < sampler->count; i++) {
        uint64_t place = place_of(sampler, i);
        if (place >= sampler->due[i]) sampler->order[at[place % SAMPLER_SLICES + 1]++] = i;
    }
    for (uint32_t s = 0; s < SAMPLER_SLICES; s++)
        shuffle(&rng, sampler->order + at[s], at[s + 1] - at[s]);
    sampler->left = sampler->taken_at = at[SAMPLER_SLICES];
    sampler->position = 0;
}

/* From the pass on in which something is due first. */
static void begin(struct sampler *sampler)
{
    uint64_t least = sampler->due[0];
    for (uint32_t i = 1; i < sampler->count; i++)
        if (sampler->due[i] < least) least = sampler->due[i];
    sampler->pass = least / SAMPLER_SLICES;
    lay_out(sampler);
}

void sampler_seek(struct sampler *sampler, uint64_t place)
{
    for (uint32_t i = 0; i < sampler->count; i++)
        sampler->due[i] = place;
    begin(sampler);
}

uint64_t sampler_place(const struct sampler *sampler)
{
    if (sampler->position == sampler->left) return (sampler->pass + 1) * SAMPLER_SLICES;
    return place_of(sampler, sampler->order[sampler->position]);
}

int sampler_init(struct sampler *sampler, const uint32_t *share, uint32_t count, uint64_t seed)
{
    *sampler = (struct sampler){.count = count, .seed = seed};
    if (count == 0) return PARLEY_EDATA;
    sampler->order = malloc(count * sizeof *sampler->order);
    sampler->due = malloc(count * sizeof *sampler->due);
    if (share) sampler->share = malloc(count * sizeof *sampler->share);
    if (!sampler->order || !sampler->due || (share && !sampler->share)) {
        sampler_close(sampler);
        return PARLEY_ENOMEM;
    }
    if (share) memcpy(sampler->share, share, count * sizeof *share);
    sampler_seek(sampler, 0);
    return 0;
}

/* From where on each of its samples is to be visited, with those of this pass behind it. */
static void settle_due(struct sampler *sampler)
{
    uint64_t begun = sampler->pass * SAMPLER_SLICES, ended = begun + SAMPLER_SLICES;
    for (uint32_t i = 0; i < sampler->count; i++)
        if (sampler->due[i] < begun) sampler->due[i] = begun;
    for (uint32_t i = 0; i < sampler->position; i++)
        sampler->due[sampler->order[i]] = ended;
}

static bool has(const struct sampler *sampler, uint32_t sample)
{
    uint32_t from = 0, to = sampler->count;
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if (sample_at(sampler, middle) < sample)
            from = middle + 1;
        else
            to = middle;
    }
    return from < sampler->count && sample_at(sampler, from) == sample;
}

int sampler_share(struct sampler *sampler, const uint32_t *share, uint32_t count,
                  const uint64_t *due)
{
    struct sampler next;
    int error = sampler_init(&next, share, count, sampler->seed);
    if (error) return error;
    uint64_t place = sampler_place(sampler);
    settle_due(sampler);
    next.coverage = sampler->coverage;
    for (uint32_t i = 0, had = 0; i < count; i++) {
        uint32_t sample = sample_at(&next, i);
        while (had < sampler->count && sample_at(sampler, had) < sample)
            had++;
        if (had < sampler->count && sample_at(sampler, had) == sample)
            next.due[i] = sampler->due[had];
        else if (due && due[i] != SAMPLER_THIS_PASS)
            next.due[i] = due[i] < place ? due[i] : place;
        else
            next.due[i] = sampler->pass * SAMPLER_SLICES;
    }
    begin(&next);
    next.taken = sampler->taken;
    for (uint32_t i = 0; i < next.left && next.taken_at == next.left; i++)
        if (!has(sampler, sample_at(&next, next.order[i]))) next.taken_at = i;
    sampler_close(sampler);
    *sampler = next;
    return 0;
}

void sampler_next(struct sampler *sampler, uint32_t *index, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        while (sampler->position == sampler->left) {
            sampler->pass++;
            lay_out(sampler);
        }
        sampler->taken += sampler->position == sampler->taken_at;
        index[i] = sample_at(sampler, sampler->order[sampler->position++]);
        if (sampler->coverage) coverage_mark(sampler->coverage, sampler->pass, index[i]);
    }
}

void sampler_whole(struct sampler *sampler)
{
    bool takes = sampler->position <= sampler->taken_at && sampler->taken_at < sampler->left;
    sampler_seek(sampler, sampler_place(sampler) / SAMPLER_SLICES * SAMPLER_SLICES);
    if (takes) sampler->taken_at = 0; /* what was another's is in it, wherever */
}

void sampler_close(struct sampler *sampler)
{
    free(sampler->order);
    free(sampler->due);
    free(sampler->share);
    *sampler = (struct sampler){0};
}
