/* sampler.c: the order in which a node visits its share. */
#include "data/sampler.h"

#include <criterion/criterion.h>
#include <string.h>

static const uint32_t share[] = {3, 14, 15, 92, 65, 35, 89, 79, 32, 38};
#define COUNT (sizeof share / sizeof *share)

static uint32_t place(uint32_t sample)
{
    for (uint32_t i = 0; i < COUNT; i++)
        if (share[i] == sample) return i;
    return COUNT;
}

static void check_pass(const uint32_t *drawn)
{
    int seen[COUNT + 1] = {0};
    for (uint32_t i = 0; i < COUNT; i++)
        seen[place(drawn[i])]++;
    for (uint32_t i = 0; i < COUNT; i++)
        cr_assert_eq(seen[i], 1);
}

Test(sampler, each_pass_visits_every_sample_once_in_a_new_order)
{
    /* Proves that passes are permutations of the share, and differ, whatever the batch. */
    struct sampler sampler;
    cr_assert_eq(sampler_init(&sampler, share, COUNT, 7), 0);
    uint32_t drawn[6 * COUNT];
    for (uint32_t i = 0; i < 6 * COUNT; i += 4)
        sampler_next(&sampler, drawn + i, 4);
    for (uint32_t p = 0; p < 6; p++)
        check_pass(drawn + p * COUNT);
    cr_assert_neq(memcmp(drawn, drawn + COUNT, COUNT * sizeof *drawn), 0);
    cr_assert_eq(sampler.pass, 5);
    sampler_close(&sampler);
}

Test(sampler, a_share_smaller_than_the_batch_is_cycled)
{
    /* Proves that one call may run over several passes, down to a share of one sample. */
    struct sampler sampler;
    uint32_t drawn[3 * COUNT];
    cr_assert_eq(sampler_init(&sampler, share, COUNT, 1), 0);
    sampler_next(&sampler, drawn, 3 * COUNT);
    for (uint32_t p = 0; p < 3; p++)
        check_pass(drawn + p * COUNT);
    sampler_close(&sampler);

    cr_assert_eq(sampler_init(&sampler, share, 1, 1), 0);
    sampler_next(&sampler, drawn, COUNT);
    for (uint32_t i = 0; i < COUNT; i++)
        cr_assert_eq(drawn[i], share[0]);
    sampler_close(&sampler);
}

Test(sampler, another_seed_gives_another_order)
{
    /* Proves that nodes with the same share do not march in step. */
    struct sampler a, b;
    uint32_t from_a[COUNT], from_b[COUNT];
    cr_assert_eq(sampler_init(&a, share, COUNT, 1), 0);
    cr_assert_eq(sampler_init(&b, share, COUNT, 2), 0);
    sampler_next(&a, from_a, COUNT);
    sampler_next(&b, from_b, COUNT);
    cr_assert_neq(memcmp(from_a, from_b, sizeof from_a), 0);
    sampler_close(&a);
    sampler_close(&b);
}

Test(sampler, an_empty_share_is_refused)
{
    /* Proves the error that settings from outside can cause. */
    struct sampler sampler;
    cr_assert_eq(sampler_init(&sampler, share, 0, 1), PARLEY_EDATA);
    sampler_close(&sampler);
}

Test(sampler, a_share_that_changes_in_a_pass_is_completed_in_it)
{
    /* Proves that what came new is visited before the pass ends, what was visited is not again, and
     * what went is not any more. */
    static const uint32_t next[] = {3, 14, 15, 92, 65, 7, 8, 9};
    struct sampler sampler;
    uint32_t drawn[2 * COUNT];
    for (uint32_t before = 0; before <= COUNT; before++) {
        int seen[100] = {0};
        cr_assert_eq(sampler_init(&sampler, share, COUNT, 5), 0);
        sampler_seek(&sampler, 3, 0);
        sampler_next(&sampler, drawn, before);
        for (uint32_t i = 0; i < before; i++)
            seen[drawn[i]]++;
        cr_assert_eq(sampler_share(&sampler, next, 8), 0);
        while (sampler.position < sampler.count) {
            sampler_next(&sampler, drawn, 1);
            seen[drawn[0]]++;
        }
        cr_assert_eq(sampler.pass, 3);
        for (uint32_t i = 0; i < 8; i++)
            cr_expect_eq(seen[next[i]], 1, "%u after %u", next[i], before);
        for (uint32_t i = 5; i < COUNT; i++)
            cr_expect_leq(seen[share[i]], 1);
        sampler_close(&sampler);
    }
}

Test(sampler, a_share_that_is_refused_leaves_the_old_one)
{
    /* Proves that a node with nothing to take over goes on with what it has. */
    struct sampler sampler;
    uint32_t drawn[COUNT];
    cr_assert_eq(sampler_init(&sampler, share, COUNT, 5), 0);
    cr_expect_eq(sampler_share(&sampler, share, 0), PARLEY_EDATA);
    sampler_next(&sampler, drawn, COUNT);
    check_pass(drawn);
    sampler_close(&sampler);
}

Test(sampler, what_is_visited_is_marked_for_its_pass)
{
    /* Proves that coverage counts each sample once a pass, over several samplers. */
    uint64_t words[COVERAGE_PASSES * 2] = {0};
    struct coverage coverage = {(_Atomic uint64_t *)words, 100};
    struct sampler a, b;
    uint32_t drawn[COUNT];
    double parts[COVERAGE_PASSES];
    cr_assert_eq(coverage_bytes(100), sizeof words);
    cr_assert_eq(sampler_init(&a, share, 6, 5), 0);
    cr_assert_eq(sampler_init(&b, share + 4, COUNT - 4, 5), 0);
    a.coverage = b.coverage = &coverage;
    sampler_next(&a, drawn, 6);
    cr_expect_eq(coverage_part(&coverage, 0), 0.06);
    sampler_next(&b, drawn, COUNT - 4);
    cr_expect_eq(coverage_part(&coverage, 0), 0.10);
    sampler_next(&b, drawn, 2);
    cr_expect_eq(coverage_part(&coverage, 1), 0.02);
    cr_expect_eq(coverage_parts(&coverage, 2.5, parts), 3);
    cr_expect_eq(parts[0], 0.10);
    cr_expect_eq(parts[2], 0);
    sampler_seek(&a, COVERAGE_PASSES, 0); /* is not looked at any more */
    sampler_next(&a, drawn, 6);
    sampler_close(&a);
    sampler_close(&b);
}

Test(sampler, a_place_in_a_pass_is_found_again)
{
    /* Proves that a node that starts anew visits just what it had left. */
    struct sampler a, b;
    uint32_t drawn[2 * COUNT], again[2 * COUNT];
    cr_assert_eq(sampler_init(&a, share, COUNT, 5), 0);
    cr_assert_eq(sampler_init(&b, share, COUNT, 5), 0);
    sampler_next(&a, drawn, 2 * COUNT);
    sampler_next(&a, drawn, 4);
    sampler_seek(&b, a.pass, a.position);
    sampler_next(&a, drawn, COUNT);
    sampler_next(&b, again, COUNT);
    cr_expect_arr_eq(drawn, again, COUNT * sizeof *drawn);
    sampler_seek(&b, 0, COUNT + 1); /* a share that was larger */
    cr_expect_eq(b.position, COUNT);
    sampler_close(&a);
    sampler_close(&b);
}
