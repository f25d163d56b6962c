/* damage.h: texts that were cut, or changed in some places, for what reads them. */
#ifndef PARLEY_TESTS_DAMAGE_H
#define PARLEY_TESTS_DAMAGE_H

#include <string.h>

#include "core/rng.h"

/* The t-th damaged copy of good[size] in text[size]: all the cuts first, then one to four places
 * changed, mostly to a character of the pool. Returns the length. */
static inline size_t damage(char *text, const char *good, size_t size, const char *pool, uint32_t t,
                            struct rng *rng)
{
    memcpy(text, good, size);
    if (t <= size) return t;
    for (uint32_t c = 0; c <= t % 4; c++)
        text[rng_below(rng, (uint32_t)size)] =
            t % 7 ? pool[rng_below(rng, (uint32_t)strlen(pool))] : (char)rng_below(rng, 256);
    return size;
}

#endif
