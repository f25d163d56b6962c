/* digits.c: the built-in data set. */
#include "data/digits.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>
#include <xxhash.h>

static uint64_t digest(const struct dataset *set)
{
    size_t size = (size_t)set->count * set->features;
    return XXH64(set->bytes, size, XXH64(set->labels, set->count * sizeof *set->labels, 0));
}

static void make(struct dataset *train, struct dataset *test, uint64_t seed)
{
    cr_assert_eq(digits_make(train, false, seed), 0);
    cr_assert_eq(digits_make(test, true, seed), 0);
}

Test(digits, the_same_seed_draws_the_same_sets_on_every_machine)
{
    /* Proves with written-down digests that compilers, libraries and machines change nothing. */
    struct dataset train, test;
    make(&train, &test, 1);
    cr_assert_eq(digest(&train), UINT64_C(0xea0838baffb764f0), "train %016llx",
                 (unsigned long long)digest(&train));
    cr_assert_eq(digest(&test), UINT64_C(0x05fd7df9e16754c1), "test %016llx",
                 (unsigned long long)digest(&test));
    dataset_close(&train);
    dataset_close(&test);
}

Test(digits, another_seed_draws_other_digits)
{
    /* Proves that the seed reaches the drawing, and that test samples are not training samples. */
    struct dataset a, b, test_a, test_b;
    make(&a, &test_a, 1);
    make(&b, &test_b, UINT64_MAX);
    cr_assert_neq(digest(&a), digest(&b));
    cr_assert_neq(digest(&test_a), digest(&test_b));
    for (uint32_t i = 0; i < test_a.count; i++)
        cr_assert_neq(memcmp(a.bytes + (size_t)i * a.features,
                             test_a.bytes + (size_t)i * a.features, a.features),
                      0);
    dataset_close(&a);
    dataset_close(&b);
    dataset_close(&test_a);
    dataset_close(&test_b);
}

Test(digits, both_sets_are_whole_and_hold_all_classes_in_mixed_order)
{
    /* Proves the shape, that no class is rare, and that labels come shuffled. */
    struct dataset sets[2];
    make(&sets[0], &sets[1], 4);
    cr_assert_eq(sets[0].count, DIGITS_TRAIN);
    cr_assert_eq(sets[1].count, DIGITS_TEST);
    for (int s = 0; s < 2; s++) {
        const struct dataset *set = &sets[s];
        cr_assert_eq(set->features, set->channels * set->height * set->width);
        cr_assert_eq(set->classes, 10);
        uint32_t seen[10] = {0}, repeats = 0;
        for (uint32_t i = 0; i < set->count; i++) {
            cr_assert_lt(set->labels[i], 10);
            seen[set->labels[i]]++;
            repeats += i > 0 && set->labels[i] == set->labels[i - 1];
        }
        for (int c = 0; c < 10; c++)
            cr_assert_gt(seen[c], set->count / 14);
        cr_assert_lt(repeats, set->count / 7);
        cr_assert_gt(repeats, set->count / 14);
    }
    dataset_close(&sets[0]);
    dataset_close(&sets[1]);
}

/* Share of test samples whose nearest class mean is that of their class. */
static double nearest_mean_accuracy(const struct dataset *train, const struct dataset *test)
{
    static double mean[10][DIGITS_SIDE * DIGITS_SIDE];
    uint32_t seen[10] = {0}, right = 0;
    memset(mean, 0, sizeof mean);
    for (uint32_t i = 0; i < train->count; i++) {
        seen[train->labels[i]]++;
        for (uint32_t f = 0; f < train->features; f++)
            mean[train->labels[i]][f] += train->bytes[(size_t)i * train->features + f];
    }
    for (uint32_t i = 0; i < test->count; i++) {
        int best = 0;
        double best_distance = INFINITY;
        for (int c = 0; c < 10; c++) {
            double distance = 0;
            for (uint32_t f = 0; f < test->features; f++) {
                double d = test->bytes[(size_t)i * test->features + f] - mean[c][f] / seen[c];
                distance += d * d;
            }
            if (distance >= best_distance) continue;
            best = c;
            best_distance = distance;
        }
        right += best == test->labels[i];
    }
    return (double)right / test->count;
}

Test(digits, they_can_be_told_apart_but_not_by_their_mean_images)
{
    /* Proves, over three seeds, that there is a task: far above chance, far from solved by means.
     */
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct dataset train, test;
        make(&train, &test, seed);
        double accuracy = nearest_mean_accuracy(&train, &test);
        cr_assert(accuracy > 0.5 && accuracy < 0.9, "accuracy %.3f", accuracy);
        dataset_close(&train);
        dataset_close(&test);
    }
}
