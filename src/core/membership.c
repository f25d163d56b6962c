/* membership.c: who is there. SWIM (Das, Gupta, Motivala 2002) with the local health of Lifeguard
 * (Dadgar, Phillips, Currey 2018), over the links that averaging uses.
 *
 *   - each interval one member is probed (probe.c); silence makes it SUSPECT, then DEAD. Of whom a
 *     node hears itself, it does not say that it stayed silent.
 *   - a link that breaks without BYE makes it SUSPECT at once; a refused dial shortens that.
 *   - a suspect that hears of it refutes by a higher incarnation; so does one that was paused and
 *     finds itself DEAD.
 *   - every change travels along all links (gossip.c).
 *
 * Merging takes, part by part, the greater of (incarnation, state) and of clock: commutative,
 * associative and idempotent. An incarnation is raised by the member alone, by one for each time it
 * was called gone. So what others tell of it counts only as far as it can be true, and its own word
 * on its own link outbids a lie: else one claim near the last number would leave it none to refute
 * with.
 */
#include "core/membership.h"
#include "core/late.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/connection.h"
#include "core/doubt.h"
#include "core/exchange.h"
#include "core/fetch.h"
#include "core/out.h"
#include "core/plant.h"
#include "core/probe.h"
#include "core/redial.h"
#include "core/state.h"

enum {
    UNREACHED_US = 10000000,
    PICK_TRIES = 8,
    AHEAD_MAX = 1024 /* incarnations beyond those known that others may tell of; generations, too */
};

/* ---- The table ------------------------------------------------------------------------------- */

bool membership_is_live(const struct parley_node *node, int member)
{
    return record_is_live(record_of(node, (uint32_t)member));
}

/* What a process had decided goes with it. */
static void gone_for_good(struct parley_node *node, uint64_t boot)
{
    doubt_restarted(node, boot);
    exchange_forget(node, boot);
}

/* Something goes on with it still. */
static bool is_in_use(struct parley_node *node, int member)
{
    for (uint32_t i = 0; i < node->open_count; i++)
        if (connection_at(node, i)->member == member || node->open[i].member == member) return true;
    for (int role = 0; role < ROLES; role++) {
        const struct slot *slot = &node->exchange.slots[role];
        if (slot->state != SLOT_IDLE && slot->state != SLOT_RESERVED && slot->peer == member)
            return true;
    }
    for (int i = 0; i < DOUBTS_MAX; i++)
        if (node->exchange.doubts[i].adding && node->exchange.doubts[i].member == member)
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

static int member_add(struct parley_node *node, const struct record *record)
{
    int member = roster_add(node->roster, record);
    if (member == NONE && record_is_live(record)) {
        member = spare_place(node, record->name);
        if (member == NONE) return NONE;
        gone_for_good(node, record_of(node, (uint32_t)member)->boot);
        roster_replace(node->roster, member, record);
    }
    if (member != NONE) node->members[member] = (struct member){0};
    return member;
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
    double span = most - (most - least) * log(confirmations + 1.0) / log(3 + 1.0);
    return (uint64_t)(span > least ? span : least);
}

static void tell(struct parley_node *node, int member, const char *reason)
{
    const struct record *r = record_of(node, (uint32_t)member);
    struct parley_update *update = out_add(node, PARLEY_UPDATE_MEMBER);
    update->member.name = r->name;
    update->member.boot = r->boot;
    update->member.state = (enum parley_member_state)r->state;
    update->member.reason = out_text(node, reason);
}

/* Lifeguard, section IV-C: whom this node takes for silent or gone hears of it on its own link, if
 * there is one, and refutes. What others relay may have to come a long way, and late. */
static void warn(struct parley_node *node, int member)
{
    struct conn *conn = connection_of(node, member);
    if (!conn || !out_room(node)) return;
    struct message_members message;
    message.count = 1;
    message.complete = message.ask = 0;
    message.records[0] = *record_of(node, (uint32_t)member);
    connection_send(node, conn, WIRE_MEMBERS, &message);
}

/* Those that had the name of a live process before it. */
static void forget_earlier(struct parley_node *node, int member)
{
    const struct record *r = record_of(node, (uint32_t)member);
    int earlier;
    for (uint32_t at = 0; (earlier = roster_named(node->roster, r->name, &at)) != NONE;) {
        const struct record *other = record_of(node, (uint32_t)earlier);
        if (other->state == PARLEY_MEMBER_DEAD) gone_for_good(node, other->boot);
    }
}

/* Every move between states goes through here. reason NULL: it is not told. */
static void member_state(struct parley_node *node, int member, enum parley_member_state state,
                         const char *reason)
{
    struct record *r = record_of(node, (uint32_t)member);
    struct member *m = member_of(node, member);
    r->state = state;
    roster_changed(node->roster, member, true);
    if (state == PARLEY_MEMBER_SUSPECT) {
        m->suspect_since_us = node->now_us;
        m->confirmations = 0;
        m->suspect_until_us = node->now_us + suspicion_us(node, 0);
        if (m->suspect_until_us < node->next_suspicion_us)
            node->next_suspicion_us = m->suspect_until_us;
        /* A frame can bring many suspects: they are dialled as far as there is room. */
        if (out_room(node)) connection_want(node, member);
        warn(node, member);
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
        if (m->redial_us < node->next_redial_us) node->next_redial_us = m->redial_us;
        if (roster_namesake(node->roster, r->name, r->boot) != NONE) gone_for_good(node, r->boot);
    }
    if (reason) tell(node, member, reason);
}

void membership_suspect(struct parley_node *node, int member, const char *reason)
{
    if (record_of(node, member)->state == PARLEY_MEMBER_ALIVE)
        member_state(node, member, PARLEY_MEMBER_SUSPECT, reason);
}

static void confirm(struct parley_node *node, int member, uint64_t by)
{
    struct member *m = &node->members[member];
    for (uint32_t i = 0; i < m->confirmations; i++)
        if (m->confirmers[i] == by) return;
    if (m->confirmations == 3) return;
    m->confirmers[m->confirmations++] = by;
    uint64_t until_us = m->suspect_since_us + suspicion_us(node, m->confirmations);
    if (until_us < m->suspect_until_us) m->suspect_until_us = until_us;
    if (m->suspect_until_us < node->next_suspicion_us)
        node->next_suspicion_us = m->suspect_until_us;
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
    member_state(node, node->self, PARLEY_MEMBER_LEFT, "it is done");
}

/* In gradients, as the one who serves counts. Of nodes that go on from their files the furthest is
 * to serve (election.c), and is known from its first word on. */
static uint64_t gradients_kept(const struct parley_config *config)
{
    const struct parley_resumed *resumed = &config->resumed;
    return resumed->steps > 0 ? 1 + resumed->samples_cluster / config->batch : 0;
}

void membership_start(struct parley_node *node)
{
    self_of(node)->incarnation = 1;
    self_of(node)->holds = gradients_kept(&node->config);
    self_of(node)->phase = PARLEY_PHASE_JOINING;
    member_state(node, node->self, PARLEY_MEMBER_ALIVE, "this node");
    membership_changed(node, true);
    node->next_suspicion_us = node->next_redial_us = NEVER;
    probe_start(node);
}

/* ---- Merging --------------------------------------------------------------------------------- */

static bool is_far_ahead(uint32_t number, uint32_t known)
{
    return number > known && number - known > AHEAD_MAX;
}

/* Others think wrongly of this node. */
static void refute(struct parley_node *node, const struct record *record)
{
    struct record *self = self_of(node);
    if (self->state == PARLEY_MEMBER_LEFT || record->incarnation < self->incarnation) return;
    if (!is_far_ahead(record->incarnation, self->incarnation))
        self->incarnation = record->incarnation + !PLANTED(REFUTE_IN_VAIN);
    membership_changed(node, true);
    probe_unwell(node);
    if (record->state != PARLEY_MEMBER_DEAD) return;
    out_log(node, PARLEY_LOG_WARN, "the others took this node for dead; it is back");
    enum parley_phase phase = phase_of(node);
    if (phase >= PARLEY_PHASE_STOP && phase < PARLEY_PHASE_DONE) late_begin(node);
}

static void merge_state(struct parley_node *node, int member, const struct record *record, int from)
{
    struct record *r = record_of(node, member);
    uint64_t theirs = (uint64_t)record->incarnation << 2 | record->state;
    uint64_t ours = (uint64_t)r->incarnation << 2 | r->state;
    bool lied = from == member && is_far_ahead(r->incarnation, record->incarnation);
    if (theirs == ours && r->state == PARLEY_MEMBER_SUSPECT && from != NONE)
        confirm(node, member, record_of(node, from)->boot);
    if (theirs <= ours && !lied) return;
    if (from != member && is_far_ahead(record->incarnation, r->incarnation)) return;
    r->incarnation = record->incarnation;
    if (record->state == r->state) {
        roster_changed(node->roster, member, true);
        return;
    }
    char reason[80];
    snprintf(reason, sizeof reason, "%s says so",
             from == NONE || from == member ? "it" : record_of(node, from)->name);
    member_state(node, member, (enum parley_member_state)record->state, reason);
}

/* What may change without being urgent: progress. All else is news. */
static bool is_news(const struct parley_node *node, const struct record *old,
                    const struct record *new)
{
    uint64_t budget = node->config.steps_budget; /* all wait for the last to make it */
    bool made = old->version < budget && new->version >= budget;
    return made || old->phase != new->phase || old->stop != new->stop ||
           old->follows != new->follows || old->generation != new->generation ||
           old->fetched != new->fetched || old->measured != new->measured ||
           old->near != new->near || memcmp(old->digest, new->digest, sizeof old->digest) != 0 ||
           memcmp(old->distrusts, new->distrusts, sizeof old->distrusts) != 0 ||
           old->lock_generation != new->lock_generation;
}

static bool is_sane(const struct record *r)
{
    return r->boot != 0 && *r->name && *r->address && r->state <= PARLEY_MEMBER_LEFT &&
           r->phase <= PARLEY_PHASE_LEFT && r->stop <= PARLEY_STOP_OPERATOR &&
           r->distance_sq >= 0 && r->mean_sq >= 0 && isfinite(r->distance_sq) &&
           isfinite(r->mean_sq) && isfinite(r->score) && r->incarnation < UINT32_MAX / 2 &&
           r->generation < UINT32_MAX / 2 && r->lock_generation < UINT32_MAX / 2;
}

static void merge_own_words(struct parley_node *node, int member, const struct record *record)
{
    struct record *r = record_of(node, member), old = *r;
    *r = *record;
    memcpy(r->name, old.name, sizeof old.name);
    r->incarnation = old.incarnation;
    r->state = old.state;
    /* All follow the newest: nobody is led to the last number at a bound. Who joins takes it as it
     * is: the others may have come far. */
    uint32_t most = node->roster->generation + AHEAD_MAX;
    bool bounded = phase_of(node) > PARLEY_PHASE_JOINING;
    if (bounded && r->generation > most) r->generation = most;
    if (bounded && r->lock_generation > most) r->lock_generation = 0;
    member_of(node, member)->heard = self_of(node)->samples;
    bool settles = record->phase >= PARLEY_PHASE_SETTLE && record->phase <= PARLEY_PHASE_PROPOSED;
    if (old.phase == PARLEY_PHASE_LATE && settles) node->agreement.follows = true;
    roster_changed(node->roster, member, is_news(node, &old, record));
}

int membership_merge(struct parley_node *node, const struct record *record, int from)
{
    if (!is_sane(record)) return NONE;
    if (record->boot == self_of(node)->boot) {
        if (record->state != PARLEY_MEMBER_ALIVE) refute(node, record);
        return node->self;
    }
    int member = roster_find(node->roster, record->boot);
    bool added = member == NONE;
    if (node->roster->shared) return member; /* what it says stands there already */
    if (added) {
        member = member_add(node, record);
        if (member == NONE) return NONE;
        record_of(node, member)->incarnation = record->incarnation;
        const char *reason = from == NONE ? "it connected" : "a peer told of it";
        /* Who was gone before it was heard of is no news: former lives of a name, mostly. */
        member_state(node, member, (enum parley_member_state)record->state,
                     record_is_live(record) ? reason : NULL);
    }
    if (record->clock > record_of(node, member)->clock) merge_own_words(node, member, record);
    if (!added) merge_state(node, member, record, from);
    return member;
}

void membership_members(struct parley_node *node, struct conn *conn,
                        struct message_members *message)
{
    for (uint32_t i = 0; i < message->count; i++)
        membership_merge(node, &message->records[i], conn->member);
    if (message->complete) node->met_all = true;
    if (message->ask == MESSAGE_ASKS && !conn->asks) {
        conn->asks = node->gossip.due = true;
        conn->synced = false;
        conn->any_sent = 0;
    }
    if (message->ask == MESSAGE_ASKS_NO_MORE) conn->asks = false;
}

/* ---- Evidence from links --------------------------------------------------------------------- */

void membership_forgive(struct parley_node *node, int member)
{
    struct member *m = member_of(node, member);
    if (!m) return;
    m->redial_us = 0;
    m->refused = false;
}

void membership_contact(struct parley_node *node, struct conn *conn)
{
    struct member *m = member_of(node, conn->member);
    membership_forgive(node, conn->member);
    if (m) m->unreached_us = 0;
    node->gossip.due = node->drift.due = true;
    probe_contact(node, conn);
    uint32_t state = record_of(node, conn->member)->state;
    if (state == PARLEY_MEMBER_SUSPECT || state == PARLEY_MEMBER_DEAD) warn(node, conn->member);
    if (state != PARLEY_MEMBER_DEAD) return;
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
    uint64_t until_us = node->now_us + node->config.broken_suspicion_us;
    if (until_us < m->suspect_until_us) m->suspect_until_us = until_us;
    if (m->suspect_until_us < node->next_suspicion_us)
        node->next_suspicion_us = m->suspect_until_us;
}

/* As others reach it, it goes on, and whoever needs a link with it waits: as behind NAT. */
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
        out_log(
            node, PARLEY_LOG_WARN,
            "%s lives, as others say, but this node can't reach it at %s: %s; what needs a link "
            "between the two waits",
            r->name, r->address, why);
    }
}

void membership_replaced(struct parley_node *node, int member)
{
    if (node->roster->shared) return; /* the driver tells who died */
    uint64_t boot = record_of(node, member)->boot;
    struct conn *conn = connection_of(node, member);
    if (membership_is_live(node, member))
        member_state(node, member, PARLEY_MEMBER_DEAD, "it was started anew");
    if (conn) connection_goodbye(node, conn, MESSAGE_BYE_DUPLICATE);
    gone_for_good(node, boot);
}

/* ---- Timers ---------------------------------------------------------------------------------- */

bool membership_heard(struct parley_node *node, int member, uint64_t since_us)
{
    const struct conn *conn = connection_of(node, member);
    const struct member *m = member_of(node, member);
    return (conn && conn->heard_us >= since_us) || (m && m->alive_us > since_us);
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
            warn(node, (int)i);
        }
        if (node->now_us >= m->suspect_until_us) {
            member_state(node, (int)i, PARLEY_MEMBER_DEAD,
                         m->refused ? "its connection broke and its address refuses"
                                    : "it stayed silent");
            connection_drop(node, (int)i);
        } else if (m->suspect_until_us < node->next_suspicion_us) {
            node->next_suspicion_us = m->suspect_until_us;
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
    uint64_t at = probe_deadline(node);
    if (node->next_suspicion_us < at) at = node->next_suspicion_us;
    if (node->next_redial_us < at) at = node->next_redial_us;
    if (node->gossip.next_us < at) at = node->gossip.next_us;
    return at;
}
