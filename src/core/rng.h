/* rng.h: counter-based random streams.
 *
 * A draw is a pure function of (seed, stream, counter), so that a run repeats to the last bit and
 * two parts never disturb each other's draws. The mixing function is the finalizer of SplitMix64
 * (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014, fig. 16).
 * Thread rule: a struct rng belongs to one thread.
 */
#ifndef PARLEY_CORE_RNG_H
#define PARLEY_CORE_RNG_H

#include <stdint.h>

struct rng {
    uint64_t key;
    uint64_t counter;
};

/* Any 64 bits to 64 well mixed bits; a bijection. */
uint64_t rng_mix(uint64_t value);

/* The stream named by (seed, stream), at its start. */
struct rng rng_init(uint64_t seed, uint64_t stream);

uint64_t rng_next(struct rng *rng);

/* Uniform in [0, bound); bound >= 1. The bias is below 2^-32 for bounds below 2^32. */
uint32_t rng_below(struct rng *rng, uint32_t bound);

/* Uniform in [0, 1), with 53 bits. */
double rng_unit(struct rng *rng);

/* Standard normal (Box and Muller 1958; two draws each, none kept). */
double rng_normal(struct rng *rng);

#endif
