/* step.c: a node's life (life.h) in which the input says what happens next. */
#include "fuzz.h"

static struct fuzz_bytes input;

#include "life.h"

static uint32_t life_below(uint32_t bound)
{
    return fuzz_below(&input, bound);
}

void fuzz_step(const uint8_t *bytes, size_t size)
{
    input = (struct fuzz_bytes){bytes, size};
    struct parley_config config;
    if (!any_config(&config, 1)) return;
    struct lone *lone = lone_new(&config);
    lone_start(lone);
    while (input.left > 0 && !lone->finished && lone->highest < LONE_CONNS_MAX - 8)
        act(lone);
    FUZZ_CHECK(lone->updates_most < 512);
    lone_free(lone);
}

void fuzz_step_seeds(fuzz_emit *emit, void *context)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct rng rng = rng_init(seed, 0);
        uint8_t bytes[3000];
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (uint8_t)rng_below(&rng, 256);
        emit(context, bytes, 30 * seed + 100 * (seed % 12));
    }
}
