/* A node alone among peers that say anything: see fuzz/life.h. The seed of a failing run is
 * printed. What a fuzzer makes of the same life: fuzz/step.c. */
#include "../fuzz/life.h"

static struct rng rng;

static uint32_t life_below(uint32_t bound)
{
    return rng_below(&rng, bound);
}

static void life(uint64_t seed, uint32_t acts)
{
    rng = rng_init(seed, 1);
    struct parley_config config;
    if (!any_config(&config, seed)) return;
    struct lone *lone = lone_new(&config);
    lone->seed = seed;
    lone_start(lone);
    for (uint32_t i = 0; i < acts && !lone->finished; i++)
        act(lone);
    cr_assert_lt(lone->updates_most, 512, "seed %llu", (unsigned long long)seed);
    lone_free(lone);
}

Test(node_fuzz, random_lives_among_senseless_peers_break_nothing)
{
    /* Proves that no order of frames, events and failures reaches an assert or stalls time. */
    const char *from = getenv("PARLEY_FUZZ_SEED"), *count = getenv("PARLEY_FUZZ_LIVES");
    uint64_t first = from ? strtoull(from, NULL, 10) : 1;
    uint64_t lives = count ? strtoull(count, NULL, 10) : 250;
    for (uint64_t seed = first; seed < first + lives; seed++) {
        if (from) fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
        life(seed, 700);
    }
}

Test(node_fuzz, random_bytes_before_hello_are_taken_or_end_the_connection)
{
    /* Proves that bytes without sense never make a node wait for more than a frame. */
    struct parley_config config = lone_config();
    struct lone *lone = lone_new(&config);
    rng = rng_init(7, 7);
    lone_start(lone);
    uint8_t bytes[600];
    for (int i = 0; i < 1500; i++) {
        uint32_t conn = lone_incoming(lone, "127.0.0.1:9");
        size_t size = 9 + life_below(sizeof bytes - 9);
        for (size_t b = 0; b < size; b++)
            bytes[b] = (uint8_t)life_below(256);
        if (i % 2)
            wire_header_write(bytes, (enum wire_type)life_below(WIRE_TYPES),
                              life_below(sizeof bytes));
        lone_receive(lone, conn, bytes, size);
        lone_closed(lone, conn, PARLEY_CLOSED_EOF);
    }
    cr_assert(!lone->finished);
    lone_free(lone);
}
