/* sampler.h: the endless order in which a node visits its share: anew each pass.
 *
 * A pass is cut in slices, by a draw of (seed, pass, sample): which slice a sample is in does not
 * depend on whose it is. So one number, the *place*, tells of a node what it has visited: all of
 * its share that comes before. Where all nodes have one seed, who takes samples over from another
 * goes on from the other's place with them, even if that is in a pass that it has ended itself: it
 * goes back for what is left of it.
 *
 * Pure function of (share, seed, pass), as long as the share stays what it is.
 * Thread rule: belongs to one thread.
 */
#ifndef PARLEY_DATA_SAMPLER_H
#define PARLEY_DATA_SAMPLER_H

#include <stdint.h>

#include "data/partition/coverage.h"
#include "parley/error.h"

/* Of a pass. A place is SAMPLER_SLICES * pass + slice. */
enum { SAMPLER_SLICES = 64 };

#define SAMPLER_THIS_PASS UINT64_MAX

struct sampler {
    uint32_t *order;   /* [left], what this pass holds: indices in the share, by slice; owned */
    uint64_t *due;     /* [count], the place from which on each sample is to be visited; owned */
    uint32_t *share;   /* [count], ascending; owned; NULL: 0 to count - 1 */
    uint32_t count;    /* size of the share, at least 1 */
    uint32_t left;     /* of the share, to be visited in this pass, at most count */
    uint32_t position; /* next to be drawn, in [0, left] */
    uint32_t taken_at; /* where in the order the first sample is that was another's; left: none */
    uint64_t taken;    /* how often such a first one has been drawn */
    uint64_t pass;
    uint64_t seed;
    struct coverage *coverage; /* what is visited is marked there; borrowed, may be NULL */
};

/* Copies share[count], which is ascending; NULL is all numbers below count, and takes no memory.
 * PARLEY_EDATA if count is 0, PARLEY_ENOMEM. */
PARLEY_CHECK int sampler_init(struct sampler *sampler, const uint32_t *share, uint32_t count,
                              uint64_t seed);

/* A new share in place of the old one. What it has of the old one goes on as it was; the rest is
 * due from the place due[i] on, or from the beginning of this pass where that is SAMPLER_THIS_PASS
 * or due is NULL. Who had it was perhaps ahead: it is not left alone until then, but due at once.
 * Errors as above: it stays as it was then. */
PARLEY_CHECK int sampler_share(struct sampler *sampler, const uint32_t *share, uint32_t count,
                               const uint64_t *due);

/* The whole share is due from this place on. */
void sampler_seek(struct sampler *sampler, uint64_t place);

/* All of the share that comes before has been visited. */
uint64_t sampler_place(const struct sampler *sampler);

/* The whole share is to be visited in this pass, or if that is over in the next, whatever of it was
 * visited before: a full batch is one pass. */
void sampler_whole(struct sampler *sampler);

/* The next n sample numbers; a share smaller than n is cycled. Allocates nothing. */
void sampler_next(struct sampler *sampler, uint32_t *index, uint32_t n);

void sampler_close(struct sampler *sampler);

#endif
