/* holders.c: what a node's record says of the others, over a core of this test's own.
 *
 *   - who has locked the model of the record is counted, be it live or dead by then
 *   - who has locked another one is not, nor was it in the view that decided
 *   - who is late or joins is not waited for, and who has left before the end is known no more
 *   - the writer has locked it and was there, even if it was late to the agreement itself
 *
 * Plain main(), so that it runs under ThreadSanitizer.
 */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "disk/agreement.h"
#include "file/record.h"

static const struct parley_member members[] = {
    {.name = "own", .boot = 1, .phase = PARLEY_PHASE_LATE, .holds = true},
    {.name = "same", .boot = 2, .phase = PARLEY_PHASE_LOCKED, .holds = true},
    {.name = "dead",
     .boot = 3,
     .phase = PARLEY_PHASE_HELD,
     .state = PARLEY_MEMBER_DEAD,
     .holds = true},
    {.name = "other", .boot = 4, .phase = PARLEY_PHASE_DONE},
    {.name = "gone", .boot = 5, .phase = PARLEY_PHASE_LOCKED, .state = PARLEY_MEMBER_DEAD},
    {.name = "late", .boot = 6, .phase = PARLEY_PHASE_LATE},
    {.name = "left", .boot = 7, .phase = PARLEY_PHASE_LEFT, .state = PARLEY_MEMBER_LEFT},
    {.name = "ended",
     .boot = 8,
     .phase = PARLEY_PHASE_DONE,
     .state = PARLEY_MEMBER_LEFT,
     .holds = true},
};

const struct parley_config *parley_config_of(const struct parley *p)
{
    static const struct parley_config config = {.name = "own"};
    (void)p;
    return &config;
}

void loop_log(struct loop *loop, enum parley_log level, const char *format, ...)
{
    (void)loop;
    (void)level;
    check(false, format);
}

void parley_node_view(const struct parley_node *node, struct parley_view *view)
{
    (void)node;
    memset(view, 0, sizeof *view);
}

const char *parley_stop_name(enum parley_stop cause)
{
    (void)cause;
    return "budget";
}

uint32_t parley_node_members(const struct parley_node *node)
{
    (void)node;
    return sizeof members / sizeof *members;
}

void parley_node_member(const struct parley_node *node, uint32_t index,
                        struct parley_member *member)
{
    (void)node;
    *member = members[index];
}

int main(void)
{
    static struct loop loop;
    static const struct record_member expected[] = {
        {"own", true, true, true, 1},     {"same", true, true, true, 2},
        {"dead", false, true, false, 3},  {"other", false, false, false, 4},
        {"gone", false, false, false, 5}, {"late", false, false, false, 6},
        {"ended", true, true, true, 8}};
    struct record *record = agreement_record(&loop);
    check(record, "there is a record");
    check(record->member_count == 7 && record->known == 7, "who has left early is not in it");
    check(record->held == 4 && record->live == 3, "it counts those of its model");
    for (uint32_t i = 0; i < record->member_count; i++) {
        const struct record_member *member = &record->members[i];
        check(strcmp(member->name, expected[i].name) == 0 && member->live == expected[i].live &&
                  member->held == expected[i].held && member->locked == expected[i].locked &&
                  member->boot == expected[i].boot,
              expected[i].name);
    }
    char why[100] = "";
    check(record_check(record, why, sizeof why) == 0, why);
    record_close(record);
    free(record);
    return failures > 0;
}
