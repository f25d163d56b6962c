/* gossip.c: which member records go out on a link, and when.
 *
 *   - own record: urgent changes at once, progress now and then
 *   - news of others (state, phase): now and then; their progress: seldom
 *   - a new link is sent the whole table, page by page: that is anti-entropy and join
 *
 * Each record goes out once a change and link; `change` numbers order them.
 */
#include "core/state.h"

enum {
    OWN_INTERVAL_US = 20000,  /* own progress, to each link; times 1 + n / 8, as the next */
    RELAY_INTERVAL_US = 5000, /* news of others */
    MESSAGE_RECORDS_OTHERS = MESSAGE_RECORDS_MAX - 1, /* and the own one */
    LAZY_INTERVAL_US = 1000000                        /* the progress of others */
};

/* The more links there are, the less often each is used. */
static uint64_t scaled(const struct parley_node *node, uint64_t interval_us)
{
    return interval_us * (1 + node->live / 8);
}

/* The records of others whose change is newer than `since`, oldest change first, at most a frame
 * full. */
static uint32_t page(const struct parley_node *node, const struct conn *conn, bool lazy,
                     uint64_t since, uint32_t *order)
{
    uint32_t count = 0;
    for (uint32_t i = 1; i < node->members_count; i++) {
        const struct member *m = &node->members[i];
        uint64_t change = lazy ? m->lazy_change : m->urgent_change;
        if (change <= since) continue;
        /* A member need not hear what it said of itself; but what others say of it. */
        if ((int)i == conn->member && m->r.state == PARLEY_MEMBER_ALIVE) continue;
        uint32_t at = count < MESSAGE_RECORDS_OTHERS ? count++ : MESSAGE_RECORDS_OTHERS;
        for (; at > 0; at--) {
            const struct member *before = &node->members[order[at - 1]];
            if ((lazy ? before->lazy_change : before->urgent_change) < change) break;
            if (at < MESSAGE_RECORDS_OTHERS) order[at] = order[at - 1];
        }
        if (at < MESSAGE_RECORDS_OTHERS) order[at] = i;
    }
    return count;
}

static void add_others(struct parley_node *node, struct conn *conn, bool lazy,
                       struct message_members *message)
{
    uint64_t *sent = lazy ? &conn->lazy_sent : &conn->urgent_sent;
    uint32_t order[MESSAGE_RECORDS_OTHERS];
    uint32_t count = page(node, conn, lazy, *sent, order);
    for (uint32_t i = 0; i < count; i++)
        message->records[message->count++] = node->members[order[i]].r;
    if (count == MESSAGE_RECORDS_OTHERS) { /* a frame full: the rest in the next step */
        const struct member *last = &node->members[order[count - 1]];
        *sent = lazy ? last->lazy_change : last->urgent_change;
        node->more = true;
        return;
    }
    *sent = node->change;
    conn->urgent_us = node->now_us + scaled(node, RELAY_INTERVAL_US);
    if (!lazy) return;
    conn->urgent_sent = node->change;
    conn->lazy_us = node->now_us + LAZY_INTERVAL_US;
    message->complete = !conn->synced;
    conn->synced = true;
}

void gossip_pump(struct parley_node *node, struct conn *conn)
{
    const struct member *self = self_of(node);
    bool lazy = node->now_us >= conn->lazy_us || !conn->synced;
    bool urgent = node->news > conn->urgent_sent && node->now_us >= conn->urgent_us;
    bool own = self->urgent_change > conn->own_sent ||
               (self->lazy_change > conn->own_sent && node->now_us >= conn->own_us);
    if (!own && !urgent && !lazy) return;

    struct message_members message;
    message.count = message.complete = 0;
    if (own) {
        message.records[message.count++] = self->r;
        conn->own_sent = self->lazy_change;
        conn->own_us = node->now_us + scaled(node, OWN_INTERVAL_US);
    }
    if (lazy || urgent) add_others(node, conn, lazy, &message);
    if (message.count > 0 || message.complete) connection_send(node, conn, WIRE_MEMBERS, &message);
}
