/* Merging of member records: the same knowledge in any order, any number of times, is the same. */
#include "lone.h"

enum { BOOTS = 3, RECORDS = 12 };

/* What an honest member says at a clock is one thing; who is alive may be said by anybody. */
static struct record random_record(struct rng *rng)
{
    struct record r = {.boot = 100 + rng_below(rng, BOOTS),
                       .incarnation = rng_below(rng, 3),
                       .state = rng_below(rng, 4),
                       .clock = rng_below(rng, 5)};
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

static struct lone *listener(void)
{
    struct parley_config config = lone_config();
    struct lone *lone = lone_new(&config);
    lone_start(lone);
    lone_tick(lone);
    return lone;
}

static void merge(struct lone *lone, const struct record *record)
{
    lone->updates.count = 0;
    lone->updates.arena_used = 0;
    lone->node->out = &lone->updates;
    membership_merge(lone->node, record, NONE);
    lone->node->out = NULL;
}

static void same_tables(struct lone *a, struct lone *b, uint64_t seed)
{
    cr_assert_eq(live_of(a->node), live_of(b->node), "seed %llu", (unsigned long long)seed);
    cr_assert_eq(a->node->roster->count, b->node->roster->count);
    for (uint64_t boot = 100; boot < 100 + BOOTS; boot++) {
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

Test(merge, the_order_of_records_does_not_matter)
{
    /* Proves commutativity and idempotence: shuffled, and each said twice, the table is the same.
     */
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        struct rng rng = rng_init(seed, 0);
        struct record records[RECORDS];
        struct lone *a = listener(), *b = listener();
        for (int i = 0; i < RECORDS; i++)
            records[i] = random_record(&rng);
        for (int i = 0; i < RECORDS; i++)
            merge(a, &records[i]);
        for (int i = RECORDS - 1; i > 0; i--) {
            uint32_t j = rng_below(&rng, (uint32_t)i + 1);
            struct record swap = records[i];
            records[i] = records[j];
            records[j] = swap;
        }
        for (int i = 0; i < 2 * RECORDS; i++)
            merge(b, &records[i % RECORDS]);
        same_tables(a, b, seed);
        lone_free(a);
        lone_free(b);
    }
}

Test(merge, what_was_merged_elsewhere_counts_the_same)
{
    /* Proves associativity: a third node's table, merged, is as good as the records behind it. */
    for (uint64_t seed = 1; seed <= 1000; seed++) {
        struct rng rng = rng_init(seed, 1);
        struct lone *a = listener(), *b = listener(), *third = listener();
        for (int i = 0; i < RECORDS; i++) {
            struct record record = random_record(&rng);
            merge(a, &record);
            merge(i % 2 ? third : b, &record);
        }
        for (uint32_t i = 1; i < third->node->roster->count; i++)
            merge(b, record_of(third->node, i));
        same_tables(a, b, seed);
        lone_free(a);
        lone_free(b);
        lone_free(third);
    }
}

Test(merge, who_is_called_suspect_or_dead_says_otherwise)
{
    /* Proves that a node outbids every false word about itself, and nobody else's of its age. */
    struct lone *lone = listener();
    struct record r = *record_of(lone->node, 0);
    for (uint32_t incarnation = 1; incarnation < 20; incarnation += 3) {
        r.incarnation = incarnation;
        r.state = incarnation % 2 ? PARLEY_MEMBER_SUSPECT : PARLEY_MEMBER_DEAD;
        merge(lone, &r);
        cr_assert_eq(record_of(lone->node, 0)->incarnation, incarnation + 1);
        cr_assert_eq(record_of(lone->node, 0)->state, PARLEY_MEMBER_ALIVE);
        merge(lone, &r);
        cr_assert_eq(record_of(lone->node, 0)->incarnation, incarnation + 1, "said before");
    }
    lone_free(lone);
}
