/* The table of members: what is counted over it, its order of changes, and who has which name. */
#include "core/membership/roster.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "core/rng.h"

enum { MEMBERS = 40, BUDGET = 100 };

static struct parley_roster roster_of(uint32_t max)
{
    struct parley_roster roster;
    cr_assert_eq(roster_init(&roster, max, BUDGET), 0);
    return roster;
}

static int add(struct parley_roster *roster, uint64_t boot, const char *name)
{
    struct record record = {.boot = boot};
    snprintf(record.name, sizeof record.name, "%s", name);
    return roster_add(roster, &record);
}

/* In pairs of one name. */
static void add_many(struct parley_roster *roster)
{
    for (uint64_t i = 0; i < MEMBERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%u", (unsigned)i / 2);
        cr_assert_eq(add(roster, 1000 + i, name), (int)i);
    }
}

/* What is counted of a record where the newest generation is that one, as roster.h says it. */
static bool is_in(const struct record *r, enum roster_class class, uint32_t newest)
{
    bool live = record_is_live(r), waited = record_is_waited_for(r);
    bool here = r->state != PARLEY_MEMBER_DEAD;
    switch (class) {
    case ROSTER_LIVE:
        return live;
    case ROSTER_KNOWN:
        return r->state != PARLEY_MEMBER_LEFT || r->phase == PARLEY_PHASE_DONE;
    case ROSTER_WAITED:
        return waited;
    case ROSTER_JOINING:
        return live && r->phase == PARLEY_PHASE_JOINING;
    case ROSTER_TRAINS:
        return live && r->phase == PARLEY_PHASE_TRAIN;
    case ROSTER_ENDING:
        return live && r->phase >= PARLEY_PHASE_STOP && r->phase <= PARLEY_PHASE_DONE;
    case ROSTER_STOPPED:
        return here && r->stop != PARLEY_STOP_NONE;
    case ROSTER_DONE:
        return here && r->phase == PARLEY_PHASE_DONE;
    case ROSTER_SERVES:
        return live && r->phase == PARLEY_PHASE_DONE;
    case ROSTER_UNMADE:
        return live && r->phase <= PARLEY_PHASE_TRAIN && !r->aside && r->version < BUDGET;
    case ROSTER_SETTLES:
        return waited && r->phase >= PARLEY_PHASE_SETTLE;
    case ROSTER_FAR:
        return waited && r->phase == PARLEY_PHASE_SETTLE && r->near == 0;
    case ROSTER_UNMEASURED:
        return waited && r->phase >= PARLEY_PHASE_PROPOSED && r->measured == 0;
    case ROSTER_DISTRUSTS:
        return waited && r->distrusts[MESSAGE_DISTRUSTS_MAX - 1] != 0;
    case ROSTER_HAS_LOCK:
        return waited && r->lock_generation > 0;
    case ROSTER_PROPOSED:
        return waited && r->phase >= PARLEY_PHASE_PROPOSED && r->generation == newest;
    case ROSTER_HELD:
        return waited && r->phase >= PARLEY_PHASE_HELD && r->generation == newest;
    case ROSTER_LOCKED:
        return waited && r->phase == PARLEY_PHASE_LOCKED && r->generation == newest;
    case ROSTER_CLASSES:
        break;
    }
    return false;
}

static void expect_classes(const struct parley_roster *roster)
{
    uint32_t newest = 1;
    for (uint32_t i = 0; i < roster->count; i++)
        if (record_is_waited_for(&roster->records[i]) && roster->records[i].generation > newest)
            newest = roster->records[i].generation;
    cr_assert_eq(roster->generation, newest);
    for (int class = 0; class < ROSTER_CLASSES; class ++) {
        uint32_t count = 0;
        for (uint32_t i = 0; i < roster->count; i++) {
            bool in = is_in(&roster->records[i], (enum roster_class) class, newest);
            cr_assert_eq(roster_in(roster, i, (enum roster_class) class), in);
            count += in;
        }
        cr_assert_eq(roster->counts[class], count);
    }
}

/* Each name counts as often as live members have it, or once. */
static void expect_known(struct parley_roster *roster)
{
    uint32_t known = 0;
    for (uint32_t i = 0; i < roster->count; i++) {
        uint32_t live = 0;
        bool first = true, named = false;
        for (uint32_t other = 0; other < roster->count; other++) {
            if (strcmp(roster->records[other].name, roster->records[i].name) != 0) continue;
            first = first && other >= i;
            named = named || roster_in(roster, other, ROSTER_KNOWN);
            live += roster_in(roster, other, ROSTER_LIVE);
        }
        if (first) known += live > 0 ? live : named;
    }
    cr_assert_eq(roster_known(roster), known);
}

static void expect_sums(const struct parley_roster *roster)
{
    uint64_t samples = 0, gone = 0, among = 0;
    for (uint32_t i = 0; i < roster->count; i++) {
        const struct record *r = &roster->records[i];
        samples += r->samples;
        if (!record_is_live(r)) gone += r->samples;
        if (record_is_waited_for(r)) among += rng_mix(r->boot);
    }
    cr_assert_eq(roster->samples, samples);
    cr_assert_eq(roster->samples_gone, gone);
    cr_assert_eq(roster->among, among);
}

/* In a few generations, as one seldom needs more; and few digests. */
static void change_at_random(struct record *r, struct rng *rng)
{
    r->state = rng_below(rng, PARLEY_MEMBER_LEFT + 1);
    r->phase = rng_below(rng, PARLEY_PHASE_LEFT + 1);
    r->stop = rng_below(rng, PARLEY_STOP_OPERATOR + 1);
    r->version = rng_below(rng, 2 * BUDGET);
    r->samples = rng_below(rng, 1000);
    r->measured = rng_below(rng, 2);
    r->near = rng_below(rng, 2);
    r->aside = rng_below(rng, 2);
    r->distrusts[MESSAGE_DISTRUSTS_MAX - 1] = rng_below(rng, 2);
    r->generation = rng_below(rng, 20) == 0 ? rng_below(rng, 9) : rng_below(rng, 3);
    r->lock_generation = rng_below(rng, 2);
    r->digest[0] = (uint8_t)rng_below(rng, 3);
}

Test(roster, counts_are_those_of_a_look_at_every_record)
{
    /* Proves that no change of a record is lost on the counts, whatever changes in which order. */
    struct parley_roster roster = roster_of(MEMBERS);
    struct rng rng = rng_init(7, 1);
    add_many(&roster);
    for (int change = 0; change < 5000; change++) {
        int member = (int)rng_below(&rng, MEMBERS);
        change_at_random(&roster.records[member], &rng);
        roster_changed(&roster, member, rng_below(&rng, 2) == 0);
        expect_classes(&roster);
        expect_sums(&roster);
        expect_known(&roster);
    }
    roster_close(&roster);
}

static uint32_t digests_held(const struct parley_roster *roster)
{
    uint32_t set = 0;
    for (uint32_t i = 0; i < roster->count; i++)
        if (roster_in(roster, i, ROSTER_HELD)) set |= 1u << roster->records[i].digest[0];
    return set;
}

Test(roster, what_was_found_of_the_digests_that_are_held_is_good_until_one_changes)
{
    /* said.c and drift.c look at all again only if these numbers have changed. */
    struct parley_roster roster = roster_of(MEMBERS);
    struct rng rng = rng_init(9, 1);
    add_many(&roster);
    for (int change = 0; change < 5000; change++) {
        int member = (int)rng_below(&rng, MEMBERS);
        uint32_t before = digests_held(&roster);
        uint64_t holds = roster.holds, sampled = roster.sampled;
        bool counts = roster_in(&roster, (uint32_t)member, ROSTER_WAITED) &&
                      !roster_in(&roster, (uint32_t)member, ROSTER_UNMEASURED);
        change_at_random(&roster.records[member], &rng);
        roster_changed(&roster, member, true);
        bool does = roster_in(&roster, (uint32_t)member, ROSTER_WAITED) &&
                    !roster_in(&roster, (uint32_t)member, ROSTER_UNMEASURED);
        if (digests_held(&roster) != before) cr_assert_neq(roster.holds, holds);
        if (counts != does) cr_assert_neq(roster.sampled, sampled);
        holds = roster.holds;
        sampled = roster.sampled;
        roster.records[member].clock++;
        roster_changed(&roster, member, true);
        cr_assert_eq(roster.holds, holds);
        cr_assert_eq(roster.sampled, sampled);
    }
    roster_close(&roster);
}

Test(roster, members_stand_in_the_order_of_their_newest_change)
{
    /* Proves that gossip, which walks from the newest change back, meets each member once and in
     * order, and that progress alone does not bring a member forward among the news. */
    struct parley_roster roster = roster_of(MEMBERS);
    struct rng rng = rng_init(8, 1);
    add_many(&roster);
    for (int change = 0; change < 1000; change++)
        roster_changed(&roster, (int)rng_below(&rng, MEMBERS), rng_below(&rng, 4) == 0);
    for (int list = 0; list < ROSTER_LISTS; list++) {
        uint32_t met = 0;
        uint64_t before = UINT64_MAX;
        for (int i = roster.newest[list]; i != NONE; i = roster.places[i].older[list]) {
            cr_assert_leq(roster.places[i].change[list], before);
            before = roster.places[i].change[list];
            met++;
        }
        cr_assert_eq(met, MEMBERS);
    }
    int member = roster.places[roster.newest[ROSTER_NEWS]].older[ROSTER_NEWS];
    roster_changed(&roster, member, false);
    cr_assert_eq(roster.newest[ROSTER_ANY], member);
    cr_assert_neq(roster.newest[ROSTER_NEWS], member);
    roster_close(&roster);
}

Test(roster, a_restarted_name_is_known_once_and_its_live_owner_is_found)
{
    struct parley_roster roster = roster_of(4);
    int first = add(&roster, 1, "a"), other = add(&roster, 2, "b"), second = add(&roster, 3, "a");
    cr_assert_eq(roster_known(&roster), 2);
    cr_assert_eq(roster_namesake(&roster, "a", 9), NONE, "both are dead");
    roster.records[second].state = PARLEY_MEMBER_ALIVE;
    roster_changed(&roster, second, true);
    cr_assert_eq(roster_namesake(&roster, "a", 9), second);
    cr_assert_eq(roster_namesake(&roster, "a", 3), NONE, "a boot is not its own namesake");
    roster.records[first].state = PARLEY_MEMBER_ALIVE;
    roster_changed(&roster, first, true);
    cr_assert_eq(roster_known(&roster), 3, "two live ones have one name");
    roster.records[first].state = PARLEY_MEMBER_DEAD;
    roster_changed(&roster, first, true);
    cr_assert_eq(roster_known(&roster), 2);
    roster.records[other].state = PARLEY_MEMBER_LEFT;
    roster_changed(&roster, other, true);
    cr_assert_eq(roster_known(&roster), 1, "who left of its own will is not missing");
    cr_assert_eq(roster_find(&roster, 1), first);
    cr_assert_eq(roster_find(&roster, 5), NONE);
    cr_assert_neq(add(&roster, 4, "c"), NONE);
    cr_assert_eq(add(&roster, 5, "d"), NONE, "the table is full");
    roster_close(&roster);
}

static void train(struct parley_roster *roster, int member, uint64_t samples)
{
    roster->records[member].state = PARLEY_MEMBER_ALIVE;
    roster->records[member].samples = samples;
    roster_changed(roster, member, false);
}

Test(roster, who_was_forgotten_and_is_back_counts_once)
{
    /* As after a partition, where a node that others took for dead was forgotten for another. */
    struct parley_roster roster = roster_of(2);
    int a = add(&roster, 1, "a"), b = add(&roster, 2, "a");
    train(&roster, a, 1000);
    train(&roster, b, 10);
    roster.records[a].state = PARLEY_MEMBER_DEAD;
    roster_changed(&roster, a, true);
    roster_replace(&roster, a, &(struct record){.boot = 3, .name = "a"});
    train(&roster, a, 5);
    cr_assert_eq(roster.samples, 1015, "what it has used counts on");
    roster_replace(&roster, b, &(struct record){.boot = 1, .name = "a"});
    train(&roster, b, 1001);
    cr_assert_eq(roster.samples, 1016, "%d", (int)roster.samples);
    cr_assert_eq(roster.samples_forgotten, 10);
    roster_close(&roster);
}

Test(roster, the_oldest_that_was_forgotten_and_is_back_counts_once)
{
    struct parley_roster roster = roster_of(1);
    int member = add(&roster, 1, "a");
    train(&roster, member, 5);
    for (uint64_t boot = 2; boot <= ROSTER_FORGOTTEN + 1; boot++)
        roster_replace(&roster, member, &(struct record){.boot = boot, .name = "a"});
    roster_replace(&roster, member, &(struct record){.boot = 1, .name = "a"});
    train(&roster, member, 5);
    cr_assert_eq(roster.samples, 5);
    roster_close(&roster);
}

static void go_on(struct parley_roster *roster, int member, uint64_t kept, uint64_t kept_all)
{
    roster->records[member].kept = kept;
    roster->records[member].kept_all = kept_all;
    train(roster, member, kept);
}

Test(roster, what_a_killed_cluster_had_used_is_counted_whoever_of_it_is_back)
{
    /* Of four, in files of different age. What one has used that is not back is of nobody here; it
     * is no more than what all had, less what those brought along who are, in whatever order. */
    struct parley_roster roster = roster_of(3);
    int a = add(&roster, 1, "a");
    go_on(&roster, a, 100, 1000);
    cr_assert_eq(roster.samples, 1000);
    cr_assert_eq(roster.samples_gone, 900);
    int b = add(&roster, 2, "b");
    go_on(&roster, b, 200, 1010);
    cr_assert_eq(roster.samples, 1010);
    train(&roster, b, 250);
    cr_assert_eq(roster.samples, 1060);
    cr_assert_eq(roster.samples_gone, 710);

    /* Who is new adds what it uses; so does one of them that has died since, or was forgotten. */
    int c = add(&roster, 3, "c");
    train(&roster, c, 7);
    cr_assert_eq(roster.samples, 1067);
    roster.records[a].state = PARLEY_MEMBER_DEAD;
    roster_changed(&roster, a, true);
    roster_replace(&roster, a, &(struct record){.boot = 4, .name = "a"});
    train(&roster, a, 5);
    cr_assert_eq(roster.samples, 1072);
    roster_replace(&roster, c, &(struct record){.boot = 1, .name = "a"});
    go_on(&roster, c, 100, 1000);
    cr_assert_eq(roster.samples, 1072);

    /* And if they bring along more than was known of: no less than that. */
    go_on(&roster, a, 2000, 900);
    cr_assert_eq(roster.samples, 2000 + 250 + 7 + 100);
    roster_close(&roster);
}

/* Of a live process named a that goes on from a file. */
static int goes_on(struct parley_roster *roster, uint64_t boot, uint64_t kept, uint64_t made)
{
    int known = roster_find(roster, boot), member = known == NONE ? add(roster, boot, "a") : known;
    roster->records[member].state = PARLEY_MEMBER_ALIVE;
    go_on(roster, member, kept, 3 * kept);
    train(roster, member, made);
    return member;
}

static void dies(struct parley_roster *roster, int member)
{
    roster->records[member].state = PARLEY_MEMBER_DEAD;
    roster_changed(roster, member, true);
}

Test(roster, what_a_file_tells_of_is_counted_once_where_the_life_that_wrote_it_is_known)
{
    /* Whichever of them is heard of first; where its place has gone to the later one; and where its
     * last words have not come. */
    enum { FORMER_FIRST, LATER_FIRST, REPLACED, UNHEARD, ORDERS };
    for (int order = 0; order < ORDERS; order++) {
        uint64_t former = order == UNHEARD ? 60 : 110;
        struct parley_roster roster = roster_of(order == REPLACED ? 2 : 3);
        train(&roster, add(&roster, 9, "b"), 1000);
        if (order != LATER_FIRST) dies(&roster, goes_on(&roster, 1, 0, former));
        if (order == REPLACED) roster_replace(&roster, 1, &(struct record){.boot = 2, .name = "a"});
        goes_on(&roster, 2, 100, 520);
        if (order == LATER_FIRST) dies(&roster, goes_on(&roster, 1, 0, former));
        cr_expect_eq(roster.samples, 1000 + former + 420, "%d: %d", order, (int)roster.samples);
        cr_expect_eq(roster.samples_absent, 0);
        roster_close(&roster);
    }
}

Test(roster, what_a_file_tells_of_stays_counted_whatever_a_later_life_makes)
{
    /* That one met those who count the former life, and so tells of nothing. */
    struct parley_roster roster = roster_of(4);
    int former = goes_on(&roster, 1, 100, 160);
    cr_assert_eq(roster.samples, 360);
    dies(&roster, former);
    int later = goes_on(&roster, 2, 0, 500);
    cr_assert_eq(roster.samples, 360 + 500);
    dies(&roster, later);
    goes_on(&roster, 3, 0, 7);
    cr_assert_eq(roster.samples, 360 + 500 + 7);
    roster_close(&roster);
}

Test(roster, what_a_file_brings_from_elsewhere_is_counted_beside_a_short_former_life)
{
    struct parley_roster roster = roster_of(2);
    train(&roster, add(&roster, 1, "a"), 40);
    int member = add(&roster, 2, "a");
    go_on(&roster, member, 100, 300);
    cr_assert_eq(roster.samples, 300 + 40);
    roster_close(&roster);
}

Test(roster, the_line_is_by_name_and_boot_whoever_came_first)
{
    struct parley_roster roster = roster_of(MEMBERS);
    struct rng rng = rng_init(9, 1);
    for (uint64_t i = 0; i < MEMBERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "%u", 100 + rng_below(&rng, 20));
        add(&roster, rng_next(&rng), name);
    }
    for (uint32_t i = 1; i < roster.count; i++) {
        const struct record *before = &roster.records[roster.line[i - 1]];
        const struct record *after = &roster.records[roster.line[i]];
        int order = strcmp(before->name, after->name);
        cr_assert(order < 0 || (order == 0 && before->boot < after->boot));
    }
    roster_close(&roster);
}
