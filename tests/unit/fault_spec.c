/* fault_spec.c: how faults are written. */
#include <criterion/criterion.h>

#include <string.h>

#include "settings/values/fault.h"

Test(fault_spec, every_part_of_a_fault_is_read)
{
    /* Kind and value, the four targets, the two moments, the length. */
    struct fault_spec fault;
    units_why why;
    cr_assert_eq(fault_parse("kill:n3@5s", &fault, why), 0);
    cr_assert(fault.kind == FAULT_KILL && fault.target == FAULT_NAME);
    cr_assert_str_eq(fault.name, "n3");
    cr_assert(fault.when.kind == FAULT_TIME && fault.when.time_us == 5000000);
    cr_assert_eq(fault.lasting.kind, FAULT_NEVER);
    cr_assert_eq(fault_parse("slow=4:50%@40%+2s", &fault, why), 0);
    cr_assert(fault.kind == FAULT_SLOW && fault.value == 4 && fault.target == FAULT_SHARE);
    cr_assert(fault.share == 0.5 && fault.when.kind == FAULT_BUDGET && fault.when.share == 0.4);
    cr_assert(fault.lasting.kind == FAULT_TIME && fault.lasting.time_us == 2000000);
    cr_assert_eq(fault_parse("pause:2@0%+10%", &fault, why), 0);
    cr_assert(fault.target == FAULT_NUMBER && fault.number == 2);
    cr_assert(fault.when.kind == FAULT_BUDGET && fault.when.share == 0);
    cr_assert(fault.lasting.kind == FAULT_BUDGET && fault.lasting.share == 0.1);
    cr_assert_eq(fault_parse("latency=300ms:n0@1s", &fault, why), 0);
    cr_assert_eq(fault.time_us, 300000);
    cr_assert_eq(fault_parse("loss=0.3:1@1s", &fault, why), 0);
    cr_assert_eq(fault.value, 0.3);
    cr_assert_eq(fault_parse("partition:n0,n1|n2,n3@10s+5s", &fault, why), 0);
    cr_assert_eq(fault.target, FAULT_GROUPS);
    cr_assert_str_eq(fault.name, "n0,n1|n2,n3");
    cr_assert_eq(fault_parse("sleep=30ms:n3@0s", &fault, why), 0);
    cr_assert_eq(fault.time_us, 30000);
    cr_assert_eq(fault_parse("cut=0.5:n0@1s", &fault, why), 0);
    cr_assert_eq(fault.value, 0.5);
    cr_assert_eq(fault_parse("reorder=2s:n0@1s", &fault, why), 0);
    cr_assert_eq(fault.time_us, 2000000);
    cr_assert_eq(fault_parse("bandwidth=8Mbit:n0@1s+5s", &fault, why), 0);
    cr_assert_eq(fault.rate_bytes, 1000000);
    cr_assert_eq(fault_parse("byzantine=nan:n0@0s", &fault, why), 0);
    cr_assert_eq(fault.lie, FAULT_LIE_NAN);
}

Test(fault_spec, what_is_no_fault_is_refused_with_the_part_that_is_wrong)
{
    /* The clause names the kind, value, target or moment. */
    const struct {
        const char *text, *names;
    } bad[] = {{"", "KIND:TARGET@WHEN"},
               {"kill", "KIND:TARGET@WHEN"},
               {"kill:n3", "KIND:TARGET@WHEN"},
               {"kill@5s:n3", "KIND:TARGET@WHEN"},
               {"kil:n3@5s", "did you mean \"kill\""},
               {"kill=3:n3@5s", "value after '='"},
               {"slow:n3@5s", "how slow"},
               {"slow=x:n3@5s", "factor"},
               {"slow=0.5:n3@5s", "factor"},
               {"loss=2:n3@5s", "probability"},
               {"latency=5:n3@5s", "time"},
               {"cut:n3@5s", "probability"},
               {"bandwidth=0:n3@5s", "nothing through"},
               {"bandwidth=5:n3@5s", "rate"},
               {"byzantine:n3@5s", "sign, scale, random, nan, alie, ipm, labels"},
               {"byzantine=evil:n3@5s", "\"evil\""},
               {"kill:@5s", "target"},
               {"kill:0@5s", "target"},
               {"kill:0%@5s", "target"},
               {"kill:n 3@5s", "target"},
               {"join:a-name-of-one-character-too-many@5s", "target"},
               {"kill:n3@", "moment"},
               {"kill:n3@5", "moment"},
               {"kill:n3@150%", "moment"},
               {"kill:n3@5s+2s", "+FOR"},
               {"pause:n3@5s+", "moment"},
               {"partition:n0@5s", "groups"},
               {"partition:n0|@5s", "groups"},
               {"partition:n0|n0@5s", "groups"},
               {"partition:@5s", "groups"},
               {"partition:n0-n4|n4@5s", "groups"},
               {"partition:n4-n0|n5@5s", "groups"},
               {"partition:a|b@5s", "groups"},
               {"partition:n0,n1@5s", "groups"},
               {"kill:\xff@5s", "clean"}};
    struct fault_spec fault;
    units_why why;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_assert_eq(fault_parse(bad[i].text, &fault, why), PARLEY_EUSAGE, "%s", bad[i].text);
        cr_assert(strstr(why, bad[i].names), "%s: %s", bad[i].text, why);
    }
    char text[4000];
    memset(text, 'n', sizeof text);
    memcpy(text, "kill:", 5);
    strcpy(text + sizeof text - 4, "@5s");
    cr_assert_eq(fault_parse(text, &fault, why), PARLEY_EUSAGE);
    memset(text, '|', 300);
    strcpy(text + 300, "@5s");
    memcpy(text, "partition:", 10);
    cr_assert_eq(fault_parse(text, &fault, why), PARLEY_EUSAGE);
}

Test(fault_spec, a_list_is_taken_whole_or_not_at_all)
{
    /* One bad fault leaves the list as it was; the number of faults has a limit. */
    struct faults faults = {0};
    units_why why;
    cr_assert_eq(faults_add_list(&faults, "kill:n3@5s  pause:1@40%+2s ", why), 0);
    cr_assert_eq(faults.count, 2);
    cr_assert_eq(faults_add_list(&faults, "kill:n1@5s kill:n2", why), PARLEY_EUSAGE);
    cr_assert_eq(faults.count, 2);
    cr_assert_eq(faults_add_list(&faults, "  ", why), PARLEY_EUSAGE);
    int error = 0;
    for (int i = 0; i < FAULTS_MAX + 1 && !error; i++)
        error = faults_add_list(&faults, "kill:n3@5s", why);
    cr_assert_eq(error, PARLEY_EUSAGE);
    cr_assert_eq(faults.count, FAULTS_MAX);
    faults_close(&faults);
}

/* Whom the fault at `index` strikes first of eight nodes. */
static uint32_t first_struck(const char *list, size_t index, uint64_t seed)
{
    struct faults faults = {0};
    uint32_t targets[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    units_why why;
    cr_assert_eq(faults_add_list(&faults, list, why), 0);
    struct rng rng = fault_rng(&faults, index, seed);
    cr_assert_eq(fault_draw(&faults.items[index], &rng, 8, targets, 8), 2);
    faults_close(&faults);
    return targets[0];
}

Test(fault_spec, who_is_struck_is_drawn_by_the_seed_whatever_other_kinds_stand_beside_it)
{
    /* A number and a share draw alike; a second of the same kind, and another seed, strike others.
     */
    uint32_t others = 0, seeds = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        uint32_t alone = first_struck("kill:2@50%", 0, seed);
        cr_assert_eq(first_struck("slow=2:25%@0s kill:2@50%", 1, seed), alone);
        cr_assert_eq(first_struck("pause:2@1s kill:25%@50% kill:2@60%", 1, seed), alone);
        others += first_struck("kill:2@50% kill:2@60%", 1, seed) != alone;
        seeds += first_struck("kill:2@50%", 0, seed + 1) != alone;
    }
    cr_assert(others > 10 && seeds > 10);
}

Test(fault_spec, no_more_are_struck_than_there_are_and_at_least_one)
{
    struct fault_spec fault = {.target = FAULT_NUMBER, .number = 5};
    struct rng rng = rng_init(1, 1);
    uint32_t targets[3] = {4, 5, 6};
    cr_assert_eq(fault_draw(&fault, &rng, 9, targets, 3), 3);
    cr_assert_eq(targets[0] + targets[1] + targets[2], 15);
    cr_assert_eq(fault_draw(&fault, &rng, 9, targets, 0), 0);
    fault = (struct fault_spec){.target = FAULT_SHARE, .share = 0.01};
    cr_assert_eq(fault_draw(&fault, &rng, 9, targets, 3), 1);
}
