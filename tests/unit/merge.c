/* Merging of member records: the same knowledge in any order, any number of times, is the same. */
#include "records.h"

enum { BOOTS = 3, RECORDS = 12 };

static struct record random_record(struct rng *rng)
{
    uint64_t boot = 100 + rng_below(rng, BOOTS);
    uint32_t incarnation = rng_below(rng, 3), state = rng_below(rng, 4);
    return honest_record(boot, incarnation, state, rng_below(rng, 5));
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
        same_tables(a, b, BOOTS, seed);
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
        same_tables(a, b, BOOTS, seed);
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
