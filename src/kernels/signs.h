/* signs.h: random signs r_j = +-1 for the elements of a vector, 64 from one hash.
 *
 * Blocks of SIGNS_BLOCK elements; element j of a block is lane j % SIGNS_LANES at step
 * j / SIGNS_LANES, and its sign is bit `step` of the lane's word: one shift serves all lanes, so a
 * plain loop over the lanes vectorises on every instruction set.
 * Thread rule: pure; call from any thread.
 */
#ifndef PARLEY_KERNELS_SIGNS_H
#define PARLEY_KERNELS_SIGNS_H

#include <stdint.h>

#include "core/rng.h"

#define SIGNS_LANES 64
#define SIGNS_STEPS 32
#define SIGNS_BLOCK (SIGNS_LANES * SIGNS_STEPS)

/* words: [SIGNS_LANES], for block `block` of the stream `rng` (as rng_init made it). */
static inline void signs_block(struct rng rng, uint64_t block, uint32_t *words)
{
    rng.counter = block * (SIGNS_LANES / 2);
    for (int i = 0; i < SIGNS_LANES; i += 2) {
        uint64_t bits = rng_next(&rng);
        words[i] = (uint32_t)bits;
        words[i + 1] = (uint32_t)(bits >> 32);
    }
}

/* +1 or -1: bit `step` of a lane's word. */
static inline double signs_of(uint32_t word, int step)
{
    return 1 - 2 * (int32_t)(word >> step & 1);
}

#endif
