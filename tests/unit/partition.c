/* partition.c: who trains on which samples. */
#include "data/partition/partition.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 5000
#define CLASSES 10

static uint16_t labels[COUNT];
static const char *const names[] = {"n3", "n0", "n1", "n10", "n2", "zoë", "n4"};
static const char *const texts[] = {"iid", "shards", "dirichlet:0.3", "dirichlet:0.001"};

static struct partition_task make_task(const char *text, uint32_t members, uint64_t seed)
{
    char why[200];
    struct partition_task task = {.labels = labels, .count = COUNT, .classes = CLASSES};
    for (uint32_t i = 0; i < COUNT; i++)
        labels[i] = (uint16_t)(i * 7 / 5 % CLASSES);
    cr_assert_eq(partition_parse(&task.spec, text, why, sizeof why), 0, "%s", why);
    task.names = names;
    task.members = members;
    task.seed = seed;
    return task;
}

/* Marks a member's samples with their number of owners; returns the share's size. */
static uint32_t mark(const struct partition_task *task, const char *self, uint32_t shard,
                     int *marks)
{
    char why[200];
    uint32_t *share, count;
    cr_assert_eq(partition_share(task, self, shard, &share, &count, why, sizeof why), 0, "%s", why);
    for (uint32_t i = 0; i < count; i++) {
        cr_assert_lt(share[i], task->count);
        cr_assert(i == 0 || share[i - 1] < share[i], "ascending");
        marks[share[i]]++;
    }
    free(share);
    return count;
}

Test(partition, each_sample_has_one_owner_and_each_member_a_sample)
{
    /* Proves that shares are disjoint, cover all data and are never empty, over kinds and seeds. */
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        for (uint64_t seed = 0; seed < 5; seed++) {
            struct partition_task task = make_task(texts[t], 7, seed);
            int marks[COUNT] = {0};
            for (uint32_t m = 0; m < task.members; m++)
                cr_assert_gt(mark(&task, names[m], 0, marks), 0);
            for (uint32_t i = 0; i < COUNT; i++)
                cr_assert_eq(marks[i], 1);
        }
    }
}

Test(partition, shares_do_not_depend_on_the_order_of_the_names)
{
    /* Proves that nodes that learn of each other in any order agree on the owners. */
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        struct partition_task task = make_task(texts[t], 7, 11), turned = task;
        const char *reversed[7];
        for (int m = 0; m < 7; m++)
            reversed[m] = names[6 - m];
        turned.names = reversed;
        static uint32_t a[COUNT], b[COUNT];
        char why[200];
        cr_assert_eq(partition_owners(&task, a, why, sizeof why), 0);
        cr_assert_eq(partition_owners(&turned, b, why, sizeof why), 0);
        cr_assert_eq(memcmp(a, b, sizeof a), 0);
    }
}

Test(partition, in_iid_a_member_that_leaves_moves_its_own_samples_only)
{
    /* Proves the point of rendezvous hashing: of two sets of names, all else stays. */
    struct partition_task seven = make_task("iid", 7, 3), six = make_task("iid", 6, 3);
    for (uint32_t m = 0; m < 6; m++) {
        int marks[COUNT] = {0};
        uint32_t before = mark(&seven, names[m], 0, marks);
        uint32_t after = mark(&six, names[m], 0, marks);
        for (uint32_t i = 0; i < COUNT; i++)
            before -= marks[i] == 2;
        cr_assert_eq(before, 0, "%s keeps what it had", names[m]);
        cr_assert_gt(after, COUNT / 10);
    }
}

Test(partition, iid_shares_are_of_like_size_and_hold_all_classes)
{
    /* Proves balance: within a third of even, for over 800 samples a node, on five seeds. */
    for (uint64_t seed = 0; seed < 5; seed++) {
        struct partition_task task = make_task("iid", 6, seed);
        for (uint32_t m = 0; m < 6; m++) {
            int marks[COUNT] = {0};
            uint32_t seen[CLASSES] = {0}, count = mark(&task, names[m], 0, marks);
            cr_assert(count > COUNT / 6 * 2 / 3 && count < COUNT / 6 * 4 / 3, "%u", count);
            for (uint32_t i = 0; i < COUNT; i++)
                seen[labels[i]] += marks[i] != 0;
            for (int c = 0; c < CLASSES; c++)
                cr_assert(seen[c] > count / 20 && seen[c] < count / 5);
        }
    }
}

Test(partition, shards_give_two_runs_of_labels_and_equal_sizes)
{
    /* Proves McMahan's partition: with as many nodes as classes, at most 4 classes a node. */
    struct partition_task task = make_task("shards", CLASSES, 1);
    task.names = NULL;
    for (uint32_t m = 0; m < CLASSES; m++) {
        int marks[COUNT] = {0};
        uint32_t classes = 0, seen[CLASSES] = {0};
        cr_assert_eq(mark(&task, NULL, m, marks), COUNT / CLASSES);
        for (uint32_t i = 0; i < COUNT; i++)
            seen[labels[i]] += marks[i] != 0;
        for (int c = 0; c < CLASSES; c++)
            classes += seen[c] > 0;
        cr_assert_leq(classes, 4);
    }
}

Test(partition, shards_are_dealt_by_the_seed)
{
    /* Proves that a member's two runs of labels are not just the next two in the row. */
    uint32_t elsewhere = 0;
    for (uint64_t seed = 0; seed < 5; seed++) {
        struct partition_task task = make_task("shards", CLASSES, seed);
        task.names = NULL;
        int marks[COUNT] = {0};
        mark(&task, NULL, 0, marks);
        for (uint32_t i = 0; i < COUNT; i++)
            elsewhere += marks[i] != 0 && labels[i] != 0;
    }
    cr_assert_gt(elsewhere, COUNT / CLASSES);
}

/* Mean over members of the share of a member's most frequent label. */
static double skew(const char *text, uint64_t seed)
{
    struct partition_task task = make_task(text, 7, seed);
    double sum = 0;
    for (uint32_t m = 0; m < task.members; m++) {
        int marks[COUNT] = {0};
        uint32_t seen[CLASSES] = {0}, most = 0, count = mark(&task, names[m], 0, marks);
        for (uint32_t i = 0; i < COUNT; i++)
            seen[labels[i]] += marks[i] != 0;
        for (int c = 0; c < CLASSES; c++)
            most = seen[c] > most ? seen[c] : most;
        sum += (double)most / count;
    }
    return sum / task.members;
}

Test(partition, a_smaller_alpha_makes_shares_more_unlike)
{
    /* Proves that alpha does what it says, on the mean of five seeds. */
    double even = 0, mild = 0, strong = 0;
    for (uint64_t seed = 0; seed < 5; seed++) {
        even += skew("dirichlet:1000", seed) / 5;
        mild += skew("dirichlet:1", seed) / 5;
        strong += skew("dirichlet:0.05", seed) / 5;
    }
    cr_assert_lt(even, 0.13);
    cr_assert(mild > 0.2 && mild < strong, "%.3f %.3f %.3f", even, mild, strong);
    cr_assert_gt(strong, 0.5);
}

Test(partition, all_gives_everything_to_everyone)
{
    /* Proves the one kind whose shares overlap. */
    struct partition_task task = make_task("all", 3, 1);
    int marks[COUNT] = {0};
    for (uint32_t m = 0; m < 3; m++)
        cr_assert_eq(mark(&task, names[m], 0, marks), COUNT);
    for (uint32_t i = 0; i < COUNT; i++)
        cr_assert_eq(marks[i], 3);
}

Test(partition, as_many_members_as_samples_get_one_each)
{
    /* Proves that nobody stays empty at the very limit, and that one member more is refused. */
    char why[200];
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        struct partition_task task = make_task(texts[t], 0, 2);
        bool shards = task.spec.kind == PARTITION_SHARDS;
        task.names = NULL;
        task.count = 200;
        task.members = shards ? 100 : 200;
        uint32_t owner[200], has[200] = {0};
        cr_assert_eq(partition_owners(&task, owner, why, sizeof why), 0);
        for (uint32_t i = 0; i < 200; i++)
            has[owner[i]]++;
        for (uint32_t m = 0; m < task.members; m++)
            cr_assert_eq(has[m], shards ? 2 : 1);
        task.members++;
        cr_assert_eq(partition_owners(&task, owner, why, sizeof why), PARLEY_EUSAGE);
    }
}

Test(partition, the_most_members_find_a_block_each_at_every_size_of_data)
{
    /* Proves that blocks never run short, where there are fewest for the samples: as many as these
     * themselves, and as a block has just grown by one. */
    char why[200];
    const uint32_t counts[] = {16384, 32769};
    static uint16_t zeros[32769];
    static uint32_t owner[32769];
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        struct partition_task task = {.labels = zeros, .count = counts[k], .classes = 1};
        task.members = PARTITION_MEMBERS_MAX;
        uint32_t has[PARTITION_MEMBERS_MAX] = {0};
        cr_assert_eq(partition_owners(&task, owner, why, sizeof why), 0);
        for (uint32_t i = 0; i < task.count; i++)
            has[owner[i]]++;
        for (uint32_t m = 0; m < task.members; m++)
            cr_assert_gt(has[m], 0);
    }
}

Test(partition, impossible_members_are_refused_with_a_reason)
{
    /* Proves the errors: nobody, too many, a name twice, a name unknown, a shard that is none. */
    char why[200];
    uint32_t *share, count;
    struct partition_task task = make_task("iid", 0, 1);
    cr_assert_eq(partition_share(&task, "n0", 0, &share, &count, why, sizeof why), PARLEY_EUSAGE);
    task.members = PARTITION_MEMBERS_MAX + 1;
    cr_assert_eq(partition_share(&task, "n0", 0, &share, &count, why, sizeof why), PARLEY_EUSAGE);

    const char *const twice[] = {"b", "a", "b"};
    task.names = twice;
    task.members = 3;
    cr_assert_eq(partition_share(&task, "a", 0, &share, &count, why, sizeof why), PARLEY_EUSAGE);
    cr_assert_str_eq(why, "two members are called b");

    task = make_task("all", 7, 1);
    cr_assert_eq(partition_share(&task, "n9", 0, &share, &count, why, sizeof why), PARLEY_EUSAGE);
    cr_assert_str_eq(why, "n9 is not among the members");
    task.names = NULL;
    cr_assert_eq(partition_share(&task, NULL, 7, &share, &count, why, sizeof why), PARLEY_EUSAGE);
    cr_assert_str_eq(why, "no shard 7 of 7: they count from 0");
}

Test(partition, a_bad_spec_is_refused_with_a_reason)
{
    /* Proves that only the four kinds pass, and alpha only in its range. */
    static const char *const bad[] = {"",
                                      "IID",
                                      "iid ",
                                      "dirichlet",
                                      "dirichlet:",
                                      "dirichlet:0",
                                      "dirichlet:-1",
                                      "dirichlet:nan",
                                      "dirichlet:inf",
                                      "dirichlet:1x",
                                      "dirichlet:1e7",
                                      "dirichlet:0x1",
                                      "dirichlet: 1"};
    char why[200];
    struct partition_spec spec;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        why[0] = '\0';
        cr_assert_eq(partition_parse(&spec, bad[i], why, sizeof why), PARLEY_EUSAGE, "%s", bad[i]);
        cr_assert_gt(strlen(why), 0);
    }
}
