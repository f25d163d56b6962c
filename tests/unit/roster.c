/* The table of members: what is counted over it, its order of changes, and who has which name. */
#include "core/roster.h"

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

static void add_many(struct parley_roster *roster)
{
    for (uint64_t i = 0; i < MEMBERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%u", (unsigned)i);
        cr_assert_eq(add(roster, 1000 + i, name), (int)i);
    }
}

static uint32_t counted(const struct parley_roster *roster, bool (*is)(const struct record *))
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < roster->count; i++)
        count += is(&roster->records[i]);
    return count;
}

static bool is_unmade(const struct record *r)
{
    bool joins = record_is_live(r) && r->phase == PARLEY_PHASE_JOINING;
    return (joins || record_is_waited_for(r)) && r->version < BUDGET;
}

static bool is_done(const struct record *r)
{
    return r->state != PARLEY_MEMBER_DEAD && r->phase == PARLEY_PHASE_DONE;
}

static bool is_stopped(const struct record *r)
{
    return r->state != PARLEY_MEMBER_DEAD && r->stop != PARLEY_STOP_NONE;
}

Test(roster, counts_are_those_of_a_look_at_every_record)
{
    /* Proves that no change of a record is lost on the counts, whatever changes in which order. */
    struct parley_roster roster = roster_of(MEMBERS);
    struct rng rng = rng_init(7, 1);
    add_many(&roster);
    for (int change = 0; change < 5000; change++) {
        int member = (int)rng_below(&rng, MEMBERS);
        struct record *r = &roster.records[member];
        r->state = rng_below(&rng, PARLEY_MEMBER_LEFT + 1);
        r->phase = rng_below(&rng, PARLEY_PHASE_LEFT + 1);
        r->stop = rng_below(&rng, PARLEY_STOP_OPERATOR + 1);
        r->version = rng_below(&rng, 2 * BUDGET);
        r->samples = rng_below(&rng, 1000);
        roster_changed(&roster, member, rng_below(&rng, 2) == 0);
        uint64_t samples = 0, gone = 0;
        for (uint32_t i = 0; i < roster.count; i++) {
            samples += roster.records[i].samples;
            if (!record_is_live(&roster.records[i])) gone += roster.records[i].samples;
        }
        cr_assert_eq(roster.samples, samples);
        cr_assert_eq(roster.samples_gone, gone);
        cr_assert_eq(roster.counts[ROSTER_LIVE], counted(&roster, record_is_live));
        cr_assert_eq(roster.counts[ROSTER_WAITED], counted(&roster, record_is_waited_for));
        cr_assert_eq(roster.counts[ROSTER_UNMADE], counted(&roster, is_unmade));
        cr_assert_eq(roster.counts[ROSTER_DONE], counted(&roster, is_done));
        cr_assert_eq(roster.counts[ROSTER_STOPPED], counted(&roster, is_stopped));
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
    roster.records[other].state = PARLEY_MEMBER_LEFT;
    roster_changed(&roster, other, true);
    cr_assert_eq(roster_known(&roster), 1, "who left of its own will is not missing");
    cr_assert_eq(roster_find(&roster, 1), first);
    cr_assert_eq(roster_find(&roster, 5), NONE);
    cr_assert_neq(add(&roster, 4, "c"), NONE);
    cr_assert_eq(add(&roster, 5, "d"), NONE, "the table is full");
    roster_close(&roster);
}

Test(roster, the_line_is_by_name_whoever_came_first)
{
    struct parley_roster roster = roster_of(MEMBERS);
    struct rng rng = rng_init(9, 1);
    for (uint64_t i = 0; i < MEMBERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "%u", 100 + rng_below(&rng, 900));
        add(&roster, 1000 + i, name);
    }
    for (uint32_t i = 1; i < roster.count; i++)
        cr_assert_leq(
            strcmp(roster.records[roster.line[i - 1]].name, roster.records[roster.line[i]].name),
            0);
    roster_close(&roster);
}
