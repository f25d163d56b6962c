/* agreement.c: see agreement.h. */
#include "disk/agreement.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct record_member *member_called(const struct record *record, const char *name)
{
    for (uint32_t m = 0; m < record->member_count; m++)
        if (strcmp(record->members[m].name, name) == 0) return &record->members[m];
    return NULL;
}

/* It has agreed without this node, on another model. */
static bool holds_another(const struct parley_member *member)
{
    return member->phase >= PARLEY_PHASE_HELD && member->phase <= PARLEY_PHASE_DONE &&
           !member->holds;
}

/* Known are those who were ever alive and have not left, or have agreed before; nobody waits for
 * who joins or came late. The writer, the first of them, is as good as done. Of who was restarted
 * under its name the boot that lives counts; of several that live one, before all the writer. */
static void add_members(struct record *record, const struct parley_node *node, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct parley_member from;
        parley_node_member(node, i, &from);
        bool lives = from.state <= PARLEY_MEMBER_SUSPECT, writer = i == 0;
        if (from.state == PARLEY_MEMBER_LEFT && from.phase != PARLEY_PHASE_DONE) continue;
        struct record_member *to = member_called(record, from.name);
        if (to && (to == record->members || (!lives && !from.holds))) continue;
        if (!to) to = &record->members[record->member_count++];
        snprintf(to->name, sizeof to->name, "%s", from.name);
        bool waited_for = from.phase != PARLEY_PHASE_JOINING && from.phase != PARLEY_PHASE_LATE;
        to->live =
            writer || (from.state != PARLEY_MEMBER_DEAD && waited_for && !holds_another(&from));
        to->boot = from.boot;
        to->held = from.holds;
        to->locked = from.holds && (writer || from.phase != PARLEY_PHASE_HELD);
    }
    record->known = record->member_count;
    for (uint32_t m = 0; m < record->member_count; m++) {
        record->live += record->members[m].live;
        record->held += record->members[m].held;
    }
}

struct record *agreement_record(struct loop *loop)
{
    const struct parley_config *config = parley_config_of(loop->parley);
    struct parley_view view;
    parley_node_view(loop->node, &view);
    uint32_t count = parley_node_members(loop->node);
    struct record *record = calloc(1, sizeof *record);
    struct record_member *members = calloc(count, sizeof *members);
    if (!record || !members || count > RECORD_MEMBERS_MAX) {
        loop_log(loop, PARLEY_LOG_WARN, "no record of the agreement: %s",
                 parley_error_text(count > RECORD_MEMBERS_MAX ? PARLEY_ELIMIT : PARLEY_ENOMEM));
        free(record);
        free(members);
        return NULL;
    }
    record->members = members;
    memcpy(record->digest, view.digest, sizeof record->digest);
    record->run = config->run;
    snprintf(record->node, sizeof record->node, "%s", config->name);
    snprintf(record->cause, sizeof record->cause, "%s", parley_stop_name(view.stop));
    record->generation = view.generation;
    record->majority_of = config->quorum == PARLEY_QUORUM_MAJORITY ? config->nodes : 0;
    record->drift_before = view.drift_before >= 0 ? view.drift_before : NAN;
    add_members(record, loop->node, count);
    return record;
}
