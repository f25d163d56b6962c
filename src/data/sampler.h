/* sampler.h: the endless order in which a node visits its share: reshuffled each pass.
 *
 * Pure function of (share, seed, pass), as long as the share stays what it is. It may change in the
 * middle of a pass, as nodes come and go: what was visited in this pass is not visited again, and
 * what came new is, before the pass ends.
 * Thread rule: belongs to one thread.
 */
#ifndef PARLEY_DATA_SAMPLER_H
#define PARLEY_DATA_SAMPLER_H

#include <stdint.h>

#include "data/coverage.h"
#include "parley/error.h"

struct sampler {
    uint32_t *order;   /* [count], this pass's order of sample numbers; owned */
    uint32_t *share;   /* [count], as given; owned; NULL: 0 to count - 1 */
    uint32_t count;    /* size of the share, at least 1 */
    uint32_t position; /* next to be drawn, in [0, count] */
    uint64_t pass;     /* completed passes */
    uint64_t seed;
    struct coverage *coverage; /* what is visited is marked there; borrowed, may be NULL */
};

/* Copies share[count]; NULL is all numbers below count, and takes no memory. PARLEY_EDATA if count
 * is 0, PARLEY_ENOMEM. */
PARLEY_CHECK int sampler_init(struct sampler *sampler, const uint32_t *share, uint32_t count,
                              uint64_t seed);

/* A new share in place of the old one. Errors as above: it stays as it was then. */
PARLEY_CHECK int sampler_share(struct sampler *sampler, const uint32_t *share, uint32_t count);

/* In this pass, `position` samples on (at most all of the share). */
void sampler_seek(struct sampler *sampler, uint64_t pass, uint64_t position);

/* The next n sample numbers; a share smaller than n is cycled. Allocates nothing. */
void sampler_next(struct sampler *sampler, uint32_t *index, uint32_t n);

void sampler_close(struct sampler *sampler);

#endif
