/* sampler.c: the order in which a node visits its share. */
#include "data/sampler.h"

#include <criterion/criterion.h>
#include <stdbool.h>
#include <string.h>

static const uint32_t share[] = {3, 14, 15, 32, 35, 38, 65, 79, 89, 92};
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
    static const uint32_t next[] = {3, 7, 8, 9, 14, 15, 32, 35};
    struct sampler sampler;
    uint32_t drawn[2 * COUNT];
    for (uint32_t before = 0; before <= COUNT; before++) {
        int seen[100] = {0};
        cr_assert_eq(sampler_init(&sampler, share, COUNT, 5), 0);
        sampler_seek(&sampler, 3 * 64); /* as in files of old */
        sampler_next(&sampler, drawn, before);
        for (uint32_t i = 0; i < before; i++)
            seen[drawn[i]]++;
        cr_assert_eq(sampler_share(&sampler, next, 8, NULL), 0);
        while (sampler.position < sampler.left) {
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

Test(sampler, a_share_that_changes_is_marked_and_what_came_new_is_counted_when_it_is_drawn)
{
    /* Proves that coverage goes on after a takeover, and that a second one forgets none of the
     * first: what a node takes over is told by these counts. */
    static const uint32_t more[] = {3, 7, 8, 9, 14, 15, 32, 35}, most[] = {3, 7, 8, 9, 14, 15, 32};
    uint64_t words[COVERAGE_PASSES * 2] = {0};
    struct coverage coverage = {(_Atomic uint64_t *)words, 100};
    struct sampler sampler;
    uint32_t drawn[COUNT];
    cr_assert_eq(sampler_init(&sampler, share, 2, 5), 0);
    sampler.coverage = &coverage;
    cr_assert_eq(sampler_share(&sampler, more, 8, NULL), 0);
    cr_expect_eq(sampler.taken, 0);
    sampler_next(&sampler, drawn, 8);
    cr_expect_eq(sampler.taken, 1);
    cr_expect_eq(coverage_part(&coverage, 0), 0.08);
    cr_assert_eq(sampler_share(&sampler, most, 7, NULL), 0);
    cr_expect_eq(sampler.taken, 1);
    sampler_next(&sampler, drawn, 7);
    cr_expect_eq(sampler.taken, 1, "nothing was new");
    cr_expect_eq(coverage_part(&coverage, 1), 0.07);
    sampler_close(&sampler);
}

Test(sampler, a_share_that_is_refused_leaves_the_old_one)
{
    /* Proves that a node with nothing to take over goes on with what it has. */
    struct sampler sampler;
    uint32_t drawn[COUNT];
    cr_assert_eq(sampler_init(&sampler, share, COUNT, 5), 0);
    cr_expect_eq(sampler_share(&sampler, share, 0, NULL), PARLEY_EDATA);
    sampler_next(&sampler, drawn, COUNT);
    check_pass(drawn);
    sampler_close(&sampler);
}

Test(sampler, a_whole_share_is_visited_in_one_pass_wherever_the_sampler_is)
{
    /* Proves that a full batch has each sample once, is marked, counts what is new in it, and
     * leaves the sampler where the next pass begins. */
    static const uint32_t more[] = {3, 7, 8, 9, 14, 15, 32, 35, 38, 65};
    for (uint32_t before = 0; before <= 2 * COUNT; before++) {
        uint64_t words[COVERAGE_PASSES * 2] = {0};
        struct coverage coverage = {(_Atomic uint64_t *)words, 100};
        struct sampler sampler;
        uint32_t drawn[2 * COUNT];
        cr_assert_eq(sampler_init(&sampler, share, COUNT, 5), 0);
        sampler_next(&sampler, drawn, before);
        uint64_t pass = sampler_place(&sampler) / SAMPLER_SLICES;
        sampler_whole(&sampler);
        sampler_next(&sampler, drawn, COUNT);
        check_pass(drawn);
        cr_expect_eq(sampler_place(&sampler), (pass + 1) * SAMPLER_SLICES);
        cr_assert_eq(sampler_share(&sampler, more, COUNT, NULL), 0);
        sampler.coverage = &coverage;
        for (uint64_t again = 0; again < 3; again++) {
            int seen[100] = {0};
            sampler_whole(&sampler);
            sampler_next(&sampler, drawn, COUNT);
            for (uint32_t i = 0; i < COUNT; i++)
                seen[drawn[i]]++;
            for (uint32_t i = 0; i < COUNT; i++)
                cr_expect_eq(seen[more[i]], 1, "%u after %u", more[i], before);
            cr_expect_eq(coverage_part(&coverage, pass + again), COUNT / 100.0);
        }
        cr_expect_eq(sampler.taken, 1);
        sampler_close(&sampler);
    }
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
    sampler_seek(&a, COVERAGE_PASSES * SAMPLER_SLICES); /* is not looked at any more */
    sampler_next(&a, drawn, 6);
    sampler_close(&a);
    sampler_close(&b);
}

Test(sampler, an_epoch_that_lacks_samples_at_the_end_is_not_whole)
{
    /* Proves that what a dead node owed at the end counts, and neither what was lost before it nor
     * what is gone with a node that had data of its own. */
    const double dead[] = {1, 0.9, 1, 0.8, 0.7};
    double long_run[COVERAGE_PASSES];
    for (uint32_t i = 0; i < COVERAGE_PASSES; i++)
        long_run[i] = i < COVERAGE_PASSES - 1 ? 1 : 0.5;
    cr_expect_eq(coverage_whole(dead, 5, 5, 6, true), 3);
    cr_expect_eq(coverage_whole(dead, 5, 4.9, UINT64_MAX, true), 3);
    cr_expect_eq(coverage_whole(dead, 5, 5, 6, false), 5);
    cr_expect_eq(coverage_whole(dead, 5, 4.9, 4, false), 4);
    cr_expect_eq(coverage_whole(dead + 3, 1, 1, 1, true), 0);
    cr_expect_eq(coverage_whole(long_run, COVERAGE_PASSES, 80, 70, true), 70);
    cr_expect_eq(coverage_whole(long_run, COVERAGE_PASSES, 80, 63, true), 63);
}

Test(sampler, a_place_in_a_pass_is_found_again)
{
    /* Proves that a node that starts anew visits what it had left, and at most a slice again. */
    struct sampler a, b;
    uint32_t drawn[COUNT];
    for (uint32_t before = 0; before <= 2 * COUNT; before++) {
        int seen[100] = {0};
        cr_assert_eq(sampler_init(&a, share, COUNT, 5), 0);
        cr_assert_eq(sampler_init(&b, share, COUNT, 5), 0);
        for (uint32_t i = 0; i < before; i++)
            sampler_next(&a, drawn, 1);
        sampler_seek(&b, sampler_place(&a));
        uint32_t left = a.left - a.position, again = 0;
        while (b.pass == a.pass && b.position < b.left) {
            bool same_slice = sampler_place(&b) == sampler_place(&a);
            sampler_next(&b, drawn, 1);
            seen[drawn[0]]++;
            again += same_slice;
        }
        sampler_next(&a, drawn, left);
        for (uint32_t i = 0; i < left; i++)
            cr_expect_eq(seen[drawn[i]], 1);
        if (left > 0) cr_expect_leq(b.left, left + again);
        sampler_close(&a);
        sampler_close(&b);
    }
}

/* Three nodes of 20 samples each; the first has made `gone` draws when it is no more, the others
 * `ahead` and `ahead` + 3. Returns how many visits there were too many in the first three passes.
 */
static uint32_t lose_one(uint32_t gone, uint32_t ahead)
{
    enum { EACH = 20, PASSES = 3 };
    struct sampler nodes[3];
    uint32_t shares[3][EACH], larger[2 * EACH], drawn[1], visits[PASSES][3 * EACH] = {{0}};
    uint64_t due[2 * EACH];
    for (uint32_t n = 0; n < 3; n++) {
        for (uint32_t i = 0; i < EACH; i++)
            shares[n][i] = 3 * i + n;
        cr_assert_eq(sampler_init(&nodes[n], shares[n], EACH, 5), 0);
    }
    for (uint32_t n = 0; n < 3; n++) {
        uint32_t draws[3] = {gone, ahead, ahead + 3};
        for (uint32_t i = 0; i < draws[n]; i++) {
            sampler_next(&nodes[n], drawn, 1);
            if (nodes[n].pass < PASSES) visits[nodes[n].pass][drawn[0]]++;
        }
    }
    for (uint32_t n = 1; n < 3; n++) {
        uint32_t count = 0;
        for (uint32_t sample = 0; sample < 3 * EACH; sample++)
            if (sample % 3 == n || sample % 6 == 3 * (n - 1)) larger[count++] = sample;
        for (uint32_t i = 0; i < count; i++)
            due[i] = sampler_place(&nodes[0]);
        cr_assert_eq(sampler_share(&nodes[n], larger, count, due), 0);
        while (sampler_place(&nodes[n]) < PASSES * SAMPLER_SLICES) {
            sampler_next(&nodes[n], drawn, 1);
            if (nodes[n].pass < PASSES) visits[nodes[n].pass][drawn[0]]++;
        }
    }
    uint32_t more = 0;
    for (uint32_t pass = 0; pass < PASSES; pass++)
        for (uint32_t sample = 0; sample < 3 * EACH; sample++) {
            cr_assert_gt(visits[pass][sample], 0, "%u of pass %u, %u and %u", sample, pass, gone,
                         ahead);
            more += visits[pass][sample] - 1;
        }
    for (uint32_t n = 0; n < 3; n++)
        sampler_close(&nodes[n]);
    return more;
}

Test(sampler, what_a_node_leaves_is_visited_in_the_pass_it_was_in)
{
    /* Proves that no sample is left out of a pass, wherever in it a node is lost and wherever the
     * others are, in an earlier or a later one: what is visited twice is of the slice it was in,
     * and what it was ahead. */
    for (uint32_t gone = 0; gone <= 45; gone++)
        for (uint32_t ahead = 0; ahead <= 45; ahead++)
            cr_expect_leq(lose_one(gone, ahead), 3 + (gone > ahead ? gone - ahead : 0), "%u and %u",
                          gone, ahead);
}
