/* redial.c: see redial.h. */
#include "core/link/redial.h"

#include <string.h>

#include "core/link/connection.h"
#include "core/membership/membership.h"
#include "core/out.h"
#include "core/state.h"

enum { REDIALS_MAX = 4 /* of the dead, and of the unreached, at a time */ };

/* Drawn, so that those who died at once are not all dialled at once and then for long none. */
static uint64_t redial_wait_us(struct parley_node *node, const struct member *m)
{
    uint64_t wait_us = (node->now_us - m->dead_since_us) / 4;
    if (wait_us < REDIAL_DEAD_US) wait_us = REDIAL_DEAD_US;
    if (wait_us > node->config.redial_max_us) wait_us = node->config.redial_max_us;
    return 1 + (uint64_t)((0.5 + rng_unit(&node->rng) / 2) * (double)wait_us);
}

/* A dead member's name or address is a live one's now, or a later one that died was there: a dial
 * would find that one, which would take it for its own link and end the one it has. */
static bool is_succeeded(const struct parley_node *node, uint32_t member)
{
    const struct record *r = record_of(node, member);
    if (roster_namesake(node->roster, r->name, r->boot) != NONE) return true;
    for (uint32_t i = 0; i < node->roster->count; i++) {
        const struct record *other = record_of(node, i);
        bool later = record_is_live(other) || (other->state == PARLEY_MEMBER_DEAD && i > member);
        if (i != member && later && strcmp(other->address, r->address) == 0) return true;
    }
    return false;
}

static bool is_dead(struct parley_node *node, int member)
{
    return record_of(node, (uint32_t)member)->state == PARLEY_MEMBER_DEAD;
}

static bool is_unreached(struct parley_node *node, int member)
{
    return member_of(node, member)->unreached_us != 0;
}

static uint32_t under_way(struct parley_node *node, bool (*counts)(struct parley_node *, int))
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < node->open_count; i++) {
        const struct conn *conn = connection_at(node, i);
        count += conn->state == CONN_DIALING && conn->member != NONE && counts(node, conn->member);
    }
    return count;
}

void redial_unreached(struct parley_node *node, int member)
{
    if (under_way(node, is_unreached) < REDIALS_MAX) connection_want(node, member);
}

/* Who has waited longest comes first: there may be more of them than are dialled at a time. */
static int next_redial(const struct parley_node *node)
{
    int next = NONE;
    for (uint32_t i = 1; i < node->roster->count; i++)
        if (record_of(node, i)->state == PARLEY_MEMBER_DEAD &&
            (next == NONE || node->members[i].redial_us < node->members[next].redial_us))
            next = (int)i;
    return next;
}

/* The dead are dialled now and then: that is how a healed partition finds together. A link that has
 * been silent since the death is none: what it carries the kernel sends again ever less often, and
 * would go on waiting long after a partition has healed. Few at a time: those that are gone for
 * good may be many, and dials into the void take places that links need. */
static uint64_t redial_dead(struct parley_node *node)
{
    int i;
    uint32_t redials = under_way(node, is_dead);
    while ((i = next_redial(node)) != NONE) {
        struct member *m = &node->members[i];
        if (node->now_us < m->redial_us) return m->redial_us;
        if (redials >= REDIALS_MAX || !out_room(node))
            return node->now_us + node->config.redial_min_us;
        if (!membership_heard(node, i, m->dead_since_us)) connection_drop(node, i);
        if (!node->leaving && !is_succeeded(node, (uint32_t)i)) {
            connection_want(node, i);
            redials++;
        }
        m->redial_us = node->now_us + redial_wait_us(node, m);
    }
    return NEVER;
}

/* A suspect has little time left: it is dialled as soon as may be. */
void redial_timers(struct parley_node *node)
{
    if (node->now_us < node->next_redial_us) return;
    node->next_redial_us = redial_dead(node);
    for (uint32_t i = 1; i < node->roster->count; i++) {
        if (record_of(node, i)->state != PARLEY_MEMBER_SUSPECT || connection_of(node, (int)i))
            continue;
        if (out_room(node)) connection_want(node, (int)i);
        uint64_t at_us = node->now_us + node->config.redial_min_us;
        node->next_redial_us = earlier(node->next_redial_us, at_us);
    }
}
