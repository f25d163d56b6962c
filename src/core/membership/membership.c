/* membership.c: who is there. SWIM (Das, Gupta, Motivala 2002) with the local health of Lifeguard
 * (Dadgar, Phillips, Currey 2018), over the links that averaging uses.
 *
 *   - each interval one member is probed (probe.c); silence makes it SUSPECT, then DEAD. Of whom a
 *     node hears itself, it does not say that it stayed silent, nor believe it (merge.c).
 *   - a link that breaks without BYE makes it SUSPECT at once; a refused dial shortens that.
 *   - a suspect that hears of it refutes by a higher incarnation; so does one that was paused and
 *     finds itself DEAD.
 *   - every change travels along all links (gossip.c).
 *
 * What records say is merged in merge.c; where they stand is place.c's.
 */
#include "core/membership/membership.h"

#include <math.h>
#include <string.h>

#include "core/exchange/doubt.h"
#include "core/exchange/exchange.h"
#include "core/link/connection.h"
#include "core/link/redial.h"
#include "core/membership/probe.h"
#include "core/out.h"
#include "core/plant.h"
#include "core/state.h"

enum { UNREACHED_US = 10000000, DYING_US = 200000, DYING_REDIAL_US = 20000, PICK_TRIES = 8 };

/* ---- The table ------------------------------------------------------------------------------- */

bool membership_is_live(const struct parley_node *node, int member)
{
    return record_is_live(record_of(node, (uint32_t)member));
}

bool membership_is_unreached(struct parley_node *node, int member)
{
    const struct member *m = member_of(node, member);
    return m && m->unreached_us == NEVER && !connection_of(node, member);
}

void membership_gone(struct parley_node *node, uint64_t boot)
{
    doubt_restarted(node, boot);
    exchange_forget(node, boot);
}

static bool is_peer(struct parley_node *node, uint32_t i, bool (*fits)(struct parley_node *, int))
{
    return (int)i != node->self && record_of(node, i)->state == PARLEY_MEMBER_ALIVE &&
           fits(node, (int)i);
}

/* Where most fit, a few draws find one; only where few do, all are looked at. */
int membership_pick(struct parley_node *node, bool (*fits)(struct parley_node *, int))
{
    uint32_t count = node->roster->count, seen = 0;
    int found = NONE;
    for (int tries = 0; tries < PICK_TRIES; tries++) {
        uint32_t i = rng_below(&node->rng, count);
        if (is_peer(node, i, fits)) return (int)i;
    }
    for (uint32_t i = 0; i < count; i++)
        if (is_peer(node, i, fits) && rng_below(&node->rng, ++seen) == 0) found = (int)i;
    return found;
}

/* ---- States ---------------------------------------------------------------------------------- */

static double scale_of(const struct parley_node *node)
{
    double n = log10((double)(live_of(node) > 1 ? live_of(node) : 1));
    return n > 1 ? n : 1;
}

/* Lifeguard, section IV-B: from the longest to the shortest as confirmations come in. As those who
 * only pass a suspicion on confirm it too, the shortest is soon reached: it must leave the suspect
 * time to hear of it and to answer where a message takes 300 ms. */
static uint64_t suspicion_us(const struct parley_node *node, uint32_t confirmations)
{
    if (PLANTED(SUSPECT_FOR_EVER)) return UINT32_MAX;
    double interval = scale_of(node) * (double)node->config.probe_interval_us;
    double most = interval * node->config.suspicion_factor, least = fmax(interval, most / 2);
    double span = most - (most - least) * log(confirmations + 1.0) / log(CONFIRMERS_MAX + 1.0);
    return (uint64_t)(span > least ? span : least);
}

/* So long it has to be heard of, if that is less than it had. */
static void shorten(struct parley_node *node, struct member *m, uint64_t until_us)
{
    m->suspect_until_us = earlier(m->suspect_until_us, until_us);
    node->next_suspicion_us = earlier(node->next_suspicion_us, m->suspect_until_us);
}

static void tell(struct parley_node *node, int member, bool suspected, const char *reason)
{
    const struct record *r = record_of(node, (uint32_t)member);
    struct parley_update *update = out_add(node, PARLEY_UPDATE_MEMBER);
    update->member.name = r->name;
    update->member.boot = r->boot;
    update->member.state = (enum parley_member_state)r->state;
    update->member.suspected = suspected;
    update->member.reason = out_text(node, reason);
}

bool membership_tell(struct parley_node *node, int member, const struct record *record)
{
    struct conn *conn = connection_of(node, member);
    if (!conn || !out_room(node)) return false;
    struct message_members message;
    message.count = 1;
    message.complete = message.ask = 0;
    message.records[0] = *record;
    connection_send(node, conn, WIRE_MEMBERS, &message);
    return true;
}

/* Those that had the name of a live process before it. */
static void forget_earlier(struct parley_node *node, int member)
{
    const struct record *r = record_of(node, (uint32_t)member);
    int earlier;
    for (uint32_t at = 0; (earlier = roster_named(node->roster, r->name, &at)) != NONE;) {
        const struct record *other = record_of(node, (uint32_t)earlier);
        if (other->state == PARLEY_MEMBER_DEAD) membership_gone(node, other->boot);
    }
}

void membership_state(struct parley_node *node, int member, enum parley_member_state state,
                      const char *reason)
{
    struct record *r = record_of(node, (uint32_t)member);
    struct member *m = member_of(node, member);
    bool suspected = m && m->doubted, lived = suspected || r->state == PARLEY_MEMBER_ALIVE;
    if (m) m->doubted = state == PARLEY_MEMBER_SUSPECT && lived;
    r->state = state;
    roster_changed(node->roster, member, true);
    if (state == PARLEY_MEMBER_SUSPECT) {
        m->suspect_since_us = node->now_us;
        m->confirmations = 0;
        m->suspect_until_us = NEVER;
        shorten(node, m, node->now_us + suspicion_us(node, 0));
        /* A frame can bring many suspects: they are dialled as far as there is room. */
        if (out_room(node)) connection_want(node, member);
        membership_tell(node, member, r);
        if (node->now_us + node->config.redial_min_us < node->next_redial_us)
            node->next_redial_us = node->now_us + node->config.redial_min_us;
    }
    if (state == PARLEY_MEMBER_ALIVE) {
        membership_forgive(node, member);
        connection_renew(node, member);
        if (!node->roster->shared) forget_earlier(node, member);
    }
    if (state == PARLEY_MEMBER_LEFT) exchange_forget(node, r->boot);
    if (state == PARLEY_MEMBER_DEAD) {
        m->dead_since_us = node->now_us;
        m->redial_us = node->now_us + REDIAL_DEAD_US;
        node->next_redial_us = earlier(node->next_redial_us, m->redial_us);
        if (roster_namesake(node->roster, r->name, r->boot) != NONE) membership_gone(node, r->boot);
    }
    if (reason) tell(node, member, suspected, reason);
}

void membership_suspect(struct parley_node *node, int member, const char *reason)
{
    if (record_of(node, member)->state == PARLEY_MEMBER_ALIVE)
        membership_state(node, member, PARLEY_MEMBER_SUSPECT, reason);
}

void membership_confirm(struct parley_node *node, int member, uint64_t by)
{
    struct member *m = &node->members[member];
    for (uint32_t i = 0; i < m->confirmations; i++)
        if (m->confirmers[i] == by) return;
    if (m->confirmations == CONFIRMERS_MAX) return;
    m->confirmers[m->confirmations++] = by;
    shorten(node, m, m->suspect_since_us + suspicion_us(node, m->confirmations));
}

void membership_changed(struct parley_node *node, bool urgent)
{
    self_of(node)->clock++;
    roster_changed(node->roster, node->self, urgent);
    if (!urgent) return;
    node->gossip.due = true;
    node->gossip.own_news = self_of(node)->clock;
}

void membership_leave(struct parley_node *node)
{
    node->gossip.own_news = ++self_of(node)->clock;
    membership_state(node, node->self, PARLEY_MEMBER_LEFT, "it is done");
}

/* In gradients, as the one who serves counts. Of nodes that go on from their files the furthest is
 * to serve (ps/election.c), and is known from its first word on. */
static uint64_t gradients_kept(const struct parley_config *config)
{
    const struct parley_resumed *resumed = &config->resumed;
    return resumed->steps > 0 ? 1 + resumed->samples_cluster / config->batch : 0;
}

void membership_start(struct parley_node *node)
{
    self_of(node)->incarnation = 1;
    self_of(node)->holds = gradients_kept(&node->config);
    self_of(node)->earlier = node->config.earlier;
    self_of(node)->phase = PARLEY_PHASE_JOINING;
    membership_state(node, node->self, PARLEY_MEMBER_ALIVE, "this node");
    membership_changed(node, true);
    node->next_suspicion_us = node->next_redial_us = NEVER;
    probe_start(node);
}

/* ---- Evidence from links --------------------------------------------------------------------- */

void membership_forgive(struct parley_node *node, int member)
{
    struct member *m = member_of(node, member);
    if (!m) return;
    m->redial_us = 0;
    m->refused = false;
}

bool membership_seek(struct parley_node *node, int member)
{
    const struct member *m = member_of(node, member);
    if (!m || record_of(node, (uint32_t)member)->state != PARLEY_MEMBER_DEAD || m->refused)
        return false;
    if (out_room(node)) connection_want(node, member);
    return true;
}

void membership_contact(struct parley_node *node, struct conn *conn)
{
    struct member *m = member_of(node, conn->member);
    membership_forgive(node, conn->member);
    if (m) m->unreached_us = 0;
    node->gossip.due = node->drift.due = true;
    probe_contact(node, conn);
    const struct record *r = record_of(node, conn->member);
    if (r->state == PARLEY_MEMBER_SUSPECT || r->state == PARLEY_MEMBER_DEAD)
        membership_tell(node, conn->member, r);
    if (r->state != PARLEY_MEMBER_DEAD) return;
    /* As it may come from another part of a divided cluster, both tell each other all they know. */
    roster_changed(node->roster, conn->member, true);
    conn->wanted = true;
}

void membership_lost(struct parley_node *node, int member)
{
    if (node->leaving || record_of(node, member)->state == PARLEY_MEMBER_LEFT) return;
    if (node->roster->shared) return; /* the driver tells who died */
    membership_suspect(node, member, "its connection broke");
    connection_want(node, member);
}

void membership_refused(struct parley_node *node, int member)
{
    struct member *m = member_of(node, member);
    if (!m) return;
    m->refused = true;
    if (record_of(node, member)->state != PARLEY_MEMBER_SUSPECT) return;
    shorten(node, m, node->now_us + node->config.broken_suspicion_us);
}

/* A dying process's listener outlives its links by a moment: the next dial is refused. */
void membership_hung_up(struct parley_node *node, int member)
{
    struct member *m = member_of(node, member);
    bool suspect = record_of(node, member)->state == PARLEY_MEMBER_SUSPECT;
    if (!m || !suspect || node->now_us >= m->suspect_since_us + DYING_US) return;
    m->redial_us = node->now_us + DYING_REDIAL_US;
    node->next_redial_us = earlier(node->next_redial_us, m->redial_us);
}

/* As others reach it, it goes on: as behind NAT. */
void membership_unreached(struct parley_node *node, int member, const char *why)
{
    struct member *m = member_of(node, member);
    const struct record *r = record_of(node, member);
    if (!m || m->unreached_us == NEVER) return;
    if (r->state != PARLEY_MEMBER_ALIVE || node->leaving || connection_of(node, member))
        m->unreached_us = 0;
    else if (m->unreached_us == 0)
        m->unreached_us = node->now_us;
    else if (node->now_us >= m->unreached_us + UNREACHED_US) {
        m->unreached_us = NEVER;
        out_log(node, PARLEY_LOG_WARN,
                "%s lives, as others say, but this node can't reach it at %s: %s", r->name,
                r->address, why);
    }
}

void membership_replaced(struct parley_node *node, int member)
{
    if (node->roster->shared) return; /* the driver tells who died */
    uint64_t boot = record_of(node, member)->boot;
    struct conn *conn = connection_of(node, member);
    if (membership_is_live(node, member))
        membership_state(node, member, PARLEY_MEMBER_DEAD, "it was started anew");
    if (conn) connection_goodbye(node, conn, MESSAGE_BYE_DUPLICATE);
    membership_gone(node, boot);
}

/* ---- Timers ---------------------------------------------------------------------------------- */

bool membership_heard(struct parley_node *node, int member, uint64_t since_us)
{
    const struct conn *conn = connection_of(node, member);
    const struct member *m = member_of(node, member);
    return (conn && conn->heard_us >= since_us) || (m && m->alive_us > since_us);
}

bool membership_hears(struct parley_node *node, int member)
{
    uint64_t interval_us = node->config.probe_interval_us;
    uint64_t since_us = node->now_us > interval_us ? node->now_us - interval_us : 0;
    return membership_heard(node, member, since_us);
}

static void suspicion_timers(struct parley_node *node)
{
    if (node->now_us < node->next_suspicion_us) return;
    node->next_suspicion_us = NEVER;
    for (uint32_t i = 1; i < node->roster->count; i++) {
        struct member *m = &node->members[i];
        if (record_of(node, i)->state != PARLEY_MEMBER_SUSPECT) continue;
        if (!out_room(node)) {
            node->next_suspicion_us = node->now_us;
            return;
        }
        if (node->now_us >= m->suspect_until_us &&
            membership_heard(node, (int)i, m->suspect_since_us)) {
            m->suspect_since_us = node->now_us;
            m->suspect_until_us = node->now_us + suspicion_us(node, m->confirmations);
            membership_tell(node, (int)i, record_of(node, i));
        }
        if (node->now_us >= m->suspect_until_us) {
            membership_state(node, (int)i, PARLEY_MEMBER_DEAD,
                             m->refused ? "its connection broke and its address refuses"
                                        : "it stayed silent");
            connection_drop(node, (int)i);
        } else {
            node->next_suspicion_us = earlier(node->next_suspicion_us, m->suspect_until_us);
        }
    }
}

void membership_timers(struct parley_node *node)
{
    probe_timers(node);
    suspicion_timers(node);
    redial_timers(node);
}

uint64_t membership_deadline(const struct parley_node *node)
{
    uint64_t at = earlier(probe_deadline(node), node->next_suspicion_us);
    return earlier(at, earlier(node->next_redial_us, node->gossip.next_us));
}
