#include "core/rng.h"

#include <math.h>

uint64_t rng_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

struct rng rng_init(uint64_t seed, uint64_t stream)
{
    return (struct rng){rng_mix(rng_mix(seed + UINT64_C(0x9e3779b97f4a7c15)) ^ stream), 0};
}

uint64_t rng_next(struct rng *rng)
{
    return rng_mix(rng->key + UINT64_C(0x9e3779b97f4a7c15) * ++rng->counter);
}

uint32_t rng_below(struct rng *rng, uint32_t bound)
{
    return (uint32_t)(((rng_next(rng) >> 32) * bound) >> 32);
}

double rng_unit(struct rng *rng)
{
    return (double)(rng_next(rng) >> 11) * 0x1p-53;
}

double rng_normal(struct rng *rng)
{
    double radius = sqrt(-2 * log(1 - rng_unit(rng)));
    return radius * cos(6.283185307179586 * rng_unit(rng));
}
