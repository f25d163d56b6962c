/* records.h: member records merged into nodes that only listen, and the tables compared. */
#ifndef PARLEY_TESTS_RECORDS_H
#define PARLEY_TESTS_RECORDS_H

#include "core/membership/merge.h"
#include "lone.h"

/* What an honest member says at a clock is one thing; who is alive may be said by anybody. */
static inline struct record honest_record(uint64_t boot, uint32_t incarnation, uint32_t state,
                                          uint32_t clock)
{
    struct record r = {.boot = boot, .incarnation = incarnation, .state = state, .clock = clock};
    snprintf(r.name, sizeof r.name, "m%u", (unsigned)r.boot);
    snprintf(r.address, sizeof r.address, "h%u:1", (unsigned)r.boot);
    if (r.clock == 0) return r; /* of a HELLO */
    struct rng words = rng_init(r.boot, r.clock);
    r.phase = rng_below(&words, 10);
    r.stop = rng_below(&words, 5);
    r.version = rng_below(&words, 1000);
    r.samples = rng_below(&words, 1000);
    r.generation = rng_below(&words, 4);
    r.score = rng_unit(&words);
    r.digest[0] = (uint8_t)rng_below(&words, 256);
    r.lock_generation = rng_below(&words, 4);
    return r;
}

static inline struct lone *listener(void)
{
    struct parley_config config = lone_config();
    config.members_max = 16;
    struct lone *lone = lone_new(&config);
    lone_start(lone);
    lone_tick(lone);
    return lone;
}

static inline void merge(struct lone *lone, const struct record *record)
{
    lone->updates.count = 0;
    lone->updates.arena_used = 0;
    lone->node->out = &lone->updates;
    merge_record(lone->node, record, NONE);
    lone->node->out = NULL;
}

static inline void same_tables(struct lone *a, struct lone *b, uint64_t boots, uint64_t seed)
{
    cr_assert_eq(live_of(a->node), live_of(b->node), "seed %llu", (unsigned long long)seed);
    cr_assert_eq(a->node->roster->count, b->node->roster->count);
    for (uint64_t boot = 100; boot < 100 + boots; boot++) {
        int i = roster_find(a->node->roster, boot), j = roster_find(b->node->roster, boot);
        cr_assert_eq(i == NONE, j == NONE);
        if (i == NONE) continue;
        uint8_t one[4096], other[4096];
        struct message_members m = {.records = {*record_of(a->node, i)}, .count = 1};
        size_t size = message_encode(WIRE_MEMBERS, &m, one, sizeof one);
        m.records[0] = *record_of(b->node, j);
        cr_assert_eq(message_encode(WIRE_MEMBERS, &m, other, sizeof other), size);
        cr_assert_eq(memcmp(one, other, size), 0, "seed %llu", (unsigned long long)seed);
    }
    parley_node_check(a->node);
    parley_node_check(b->node);
}

#endif
