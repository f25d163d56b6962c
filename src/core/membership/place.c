/* place.c: see place.h. */
#include "core/membership/place.h"

#include <string.h>

#include "core/agreement/quorum.h"
#include "core/state.h"

/* Something goes on with it still, but for a dial that nobody has answered. */
static bool is_in_use(struct parley_node *node, int member)
{
    for (uint32_t i = 0; i < node->open_count; i++) {
        const struct conn *conn = connection_at(node, i);
        if (conn->member == member && conn->state != CONN_DIALING) return true;
    }
    for (int role = 0; role < ROLES; role++) {
        const struct slot *slot = &node->exchange.slots[role];
        if (slot->state != SLOT_IDLE && slot->state != SLOT_RESERVED && slot->peer == member)
            return true;
    }
    for (int i = 0; i < DOUBTS_MAX; i++)
        if (node->exchange.doubts[i].state == DOUBT_ADDING &&
            node->exchange.doubts[i].member == member)
            return true;
    return node->probing.now.member == member ||
           (node->name_check.active && node->name_check.member == member) ||
           (node->fetch.state != FETCH_IDLE && node->fetch.member == member);
}

/* Whether two records have that name. */
static bool is_twice(const struct parley_node *node, const char *name)
{
    uint32_t at = 0;
    return roster_named(node->roster, name, &at) != NONE &&
           roster_named(node->roster, name, &at) != NONE;
}

/* The place of whom is not live any more, of those whose name another record has too, or is to
 * have, and of those who never said a word of themselves: so no name that counts is forgotten, and
 * neither a node that is started anew again and again nor one who just says hello fills the table.
 */
static int spare_place(struct parley_node *node, const char *name)
{
    int spare = NONE;
    for (uint32_t i = 1; i < node->roster->count; i++) {
        const struct member *m = &node->members[i];
        const struct record *r = record_of(node, i);
        if (record_is_live(r) || is_in_use(node, (int)i)) continue;
        if (!is_twice(node, r->name) && strcmp(r->name, name) != 0 && r->clock > 0) continue;
        if (spare == NONE || m->dead_since_us < node->members[spare].dead_since_us) spare = (int)i;
    }
    return spare;
}

/* Whoever answers is not taken for who has its place by then. */
static void forget_dials(struct parley_node *node, int member)
{
    for (uint32_t i = 0; i < node->open_count; i++)
        if (connection_at(node, i)->member == member) connection_at(node, i)->member = NONE;
}

int place_new(struct parley_node *node, const struct record *record)
{
    int member = roster_add(node->roster, record);
    if (member == NONE && record_is_live(record)) {
        member = spare_place(node, record->name);
        if (member == NONE) return NONE;
        const struct record old = *record_of(node, (uint32_t)member);
        membership_gone(node, old.boot);
        forget_dials(node, member);
        roster_replace(node->roster, member, record);
        quorum_forget(node, &old);
    }
    if (member != NONE)
        node->members[member] = (struct member){0};
    else
        quorum_forget(node, record);
    return member;
}
