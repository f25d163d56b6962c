/* membership.c: who is there. SWIM (Das, Gupta, Motivala 2002) with the local health of Lifeguard
 * (Dadgar, Phillips, Currey 2018), over the links that averaging uses.
 *
 *   - each interval one member is probed, in a shuffled round; silence asks others to probe too,
 *     then makes it SUSPECT, then DEAD. Any byte heard in the interval counts as an answer.
 *   - a link that breaks without BYE makes it SUSPECT at once; a refused dial shortens that.
 *   - a suspect that hears of it refutes by a higher incarnation; so does one that was paused and
 *     finds itself DEAD.
 *   - every change travels along all links (gossip.c).
 *
 * Merging takes, part by part, the greater of (incarnation, state) and of clock: commutative,
 * associative and idempotent.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/state.h"

enum { HEALTH_MAX = 8, REDIAL_DEAD_US = 2000000, FAVOUR_US = 2000000 };

/* ---- The table ------------------------------------------------------------------------------- */

int membership_find(const struct parley_node *node, uint64_t boot)
{
    for (uint32_t at = (uint32_t)rng_mix(boot);; at++) {
        int member = node->index[at & node->index_mask];
        if (member == NONE || node->members[member].r.boot == boot) return member;
    }
}

static int member_add(struct parley_node *node, const struct record *record)
{
    if (node->members_count == node->config.members_max) return NONE;
    int member = (int)node->members_count++;
    node->members[member] = (struct member){.link = NONE};
    node->members[member].r.boot = record->boot;
    memcpy(node->members[member].r.name, record->name, sizeof record->name);
    memcpy(node->members[member].r.address, record->address, sizeof record->address);
    node->members[member].r.state = PARLEY_MEMBER_DEAD; /* until the merge says otherwise */
    uint32_t at = (uint32_t)rng_mix(record->boot);
    while (node->index[at & node->index_mask] != NONE)
        at++;
    node->index[at & node->index_mask] = member;
    return member;
}

static bool state_is_live(uint32_t state)
{
    return state == PARLEY_MEMBER_ALIVE || state == PARLEY_MEMBER_SUSPECT;
}

bool membership_is_live(const struct parley_node *node, int member)
{
    return state_is_live(node->members[member].r.state);
}

/* Names ever seen that have not left of their own will; who left after it agreed still counts. */
uint32_t membership_known(const struct parley_node *node)
{
    uint32_t known = 0;
    for (uint32_t i = 0; i < node->members_count; i++) {
        const struct record *r = &node->members[i].r;
        if (r->state == PARLEY_MEMBER_LEFT && r->phase != PARLEY_PHASE_DONE) continue;
        bool again = false; /* a restart: counted with its newest boot */
        for (uint32_t j = 0; j < i && !again; j++)
            again = strcmp(node->members[j].r.name, r->name) == 0 &&
                    !(node->members[j].r.state == PARLEY_MEMBER_LEFT &&
                      node->members[j].r.phase != PARLEY_PHASE_DONE);
        known += !again;
    }
    return known;
}

int membership_pick(struct parley_node *node, bool (*fits)(struct parley_node *, int))
{
    int found = NONE;
    uint32_t seen = 0;
    for (uint32_t i = 1; i < node->members_count; i++) {
        if (node->members[i].r.state != PARLEY_MEMBER_ALIVE || !fits(node, (int)i)) continue;
        if (rng_below(&node->rng, ++seen) == 0) found = (int)i;
    }
    return found;
}

/* ---- States ---------------------------------------------------------------------------------- */

static double scale_of(const struct parley_node *node)
{
    double n = log10((double)(node->live > 1 ? node->live : 1));
    return n > 1 ? n : 1;
}

/* Lifeguard, section IV-B: from the longest to the shortest as confirmations come in. */
static uint64_t suspicion_us(const struct parley_node *node, uint32_t confirmations)
{
    if (PLANTED(SUSPECT_FOR_EVER)) return UINT32_MAX;
    double least = scale_of(node) * (double)node->config.probe_interval_us;
    double most = least * node->config.suspicion_factor;
    double span = most - (most - least) * log(confirmations + 1.0) / log(3 + 1.0);
    return (uint64_t)(span > least ? span : least);
}

static void tell(struct parley_node *node, int member, const char *reason)
{
    const struct member *m = &node->members[member];
    struct parley_update *update = out_add(node, PARLEY_UPDATE_MEMBER);
    update->member.name = m->r.name;
    update->member.boot = m->r.boot;
    update->member.state = (enum parley_member_state)m->r.state;
    update->member.reason = out_text(node, reason);
}

static void mark_urgent(struct parley_node *node, struct member *m)
{
    m->urgent_change = m->lazy_change = ++node->change;
    if (m != self_of(node)) node->news = node->change;
}

/* Every move between states goes through here. */
static void member_state(struct parley_node *node, int member, enum parley_member_state state,
                         const char *reason)
{
    struct member *m = &node->members[member];
    node->live += state_is_live(state);
    node->live -= state_is_live(m->r.state);
    m->r.state = state;
    mark_urgent(node, m);
    if (state == PARLEY_MEMBER_SUSPECT) {
        m->suspect_since_us = node->now_us;
        m->confirmations = 0;
        m->suspect_until_us = node->now_us + suspicion_us(node, 0);
        if (m->suspect_until_us < node->next_suspicion_us)
            node->next_suspicion_us = m->suspect_until_us;
        /* A frame can bring many suspects: they are dialled as far as there is room. */
        if (member != 0 && out_room(node)) connection_want(node, member);
        if (node->now_us + node->config.redial_min_us < node->next_redial_us)
            node->next_redial_us = node->now_us + node->config.redial_min_us;
    }
    if (state == PARLEY_MEMBER_ALIVE) m->refused = false;
    if (state == PARLEY_MEMBER_LEFT) exchange_forget(node, m->r.boot);
    if (state == PARLEY_MEMBER_DEAD) {
        m->dead_since_us = node->now_us;
        m->redial_us = node->now_us + REDIAL_DEAD_US;
        if (m->redial_us < node->next_redial_us) node->next_redial_us = m->redial_us;
    }
    tell(node, member, reason);
}

static void suspect(struct parley_node *node, int member, const char *reason)
{
    if (node->members[member].r.state == PARLEY_MEMBER_ALIVE)
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
    struct member *self = self_of(node);
    self->r.clock++;
    self->lazy_change = ++node->change;
    if (urgent) self->urgent_change = self->lazy_change;
}

void membership_leave(struct parley_node *node)
{
    self_of(node)->r.clock++;
    member_state(node, 0, PARLEY_MEMBER_LEFT, "it is done");
}

void membership_start(struct parley_node *node)
{
    struct record self = self_of(node)->r;
    member_add(node, &self);
    self_of(node)->r.incarnation = 1;
    self_of(node)->r.phase = PARLEY_PHASE_JOINING;
    member_state(node, 0, PARLEY_MEMBER_ALIVE, "this node");
    membership_changed(node, true);
    node->probe.member = NONE;
    node->next_suspicion_us = node->next_redial_us = NEVER;
    node->next_probe_us = node->now_us + node->config.probe_interval_us;
}

/* ---- Merging --------------------------------------------------------------------------------- */

/* Others think wrongly of this node. */
static void refute(struct parley_node *node, const struct record *record)
{
    struct member *self = self_of(node);
    if (self->r.state == PARLEY_MEMBER_LEFT || record->incarnation < self->r.incarnation) return;
    self->r.incarnation = record->incarnation + !PLANTED(REFUTE_IN_VAIN);
    membership_changed(node, true);
    if (node->health < HEALTH_MAX) node->health++;
    if (record->state != PARLEY_MEMBER_DEAD) return;
    out_log(node, PARLEY_LOG_WARN, "the others took this node for dead; it is back");
    enum parley_phase phase = phase_of(node);
    if (phase >= PARLEY_PHASE_STOP && phase < PARLEY_PHASE_DONE) agreement_late(node);
}

static void merge_state(struct parley_node *node, int member, const struct record *record, int from)
{
    struct member *m = &node->members[member];
    uint64_t theirs = (uint64_t)record->incarnation << 2 | record->state;
    uint64_t ours = (uint64_t)m->r.incarnation << 2 | m->r.state;
    if (theirs == ours && m->r.state == PARLEY_MEMBER_SUSPECT && from != NONE)
        confirm(node, member, node->members[from].r.boot);
    if (theirs <= ours) return;
    m->r.incarnation = record->incarnation;
    if (record->state == m->r.state) {
        mark_urgent(node, m);
        return;
    }
    char reason[80];
    snprintf(reason, sizeof reason, "%s says so",
             from == NONE || from == member ? "it" : node->members[from].r.name);
    member_state(node, member, (enum parley_member_state)record->state, reason);
}

/* What may change without being urgent: progress. All else is news. */
static bool is_news(const struct record *old, const struct record *new)
{
    return old->phase != new->phase || old->stop != new->stop ||
           old->generation != new->generation || old->measured != new->measured ||
           memcmp(old->digest, new->digest, sizeof old->digest) != 0 ||
           old->lock_generation != new->lock_generation;
}

static bool is_sane(const struct record *r)
{
    return r->boot != 0 && *r->name && *r->address && r->state <= PARLEY_MEMBER_LEFT &&
           r->phase <= PARLEY_PHASE_LEFT && r->stop <= PARLEY_STOP_OPERATOR &&
           r->distance_sq >= 0 && r->mean_sq >= 0 && isfinite(r->distance_sq) &&
           isfinite(r->mean_sq) && isfinite(r->score) && r->incarnation < UINT32_MAX / 2;
}

static void merge_own_words(struct parley_node *node, int member, const struct record *record)
{
    struct member *m = &node->members[member];
    struct record old = m->r;
    m->r = *record;
    memcpy(m->r.name, old.name, sizeof old.name);
    m->r.incarnation = old.incarnation;
    m->r.state = old.state;
    m->lazy_change = ++node->change;
    if (old.phase == PARLEY_PHASE_LATE && record->phase == PARLEY_PHASE_SETTLE)
        node->agreement.follows = true;
    if (is_news(&old, record)) m->urgent_change = node->change;
}

int membership_merge(struct parley_node *node, const struct record *record, int from)
{
    if (!is_sane(record)) return NONE;
    if (record->boot == self_of(node)->r.boot) {
        if (record->state != PARLEY_MEMBER_ALIVE) refute(node, record);
        return 0;
    }
    int member = membership_find(node, record->boot);
    bool added = member == NONE;
    if (added) {
        member = member_add(node, record);
        if (member == NONE) return NONE;
        struct member *m = &node->members[member];
        m->r.incarnation = record->incarnation;
        member_state(node, member, (enum parley_member_state)record->state,
                     from == NONE ? "it connected" : "a peer told of it");
    }
    if (record->clock > node->members[member].r.clock) merge_own_words(node, member, record);
    if (!added) merge_state(node, member, record, from);
    return member;
}

void membership_members(struct parley_node *node, struct conn *conn,
                        struct message_members *message)
{
    for (uint32_t i = 0; i < message->count; i++)
        membership_merge(node, &message->records[i], conn->member);
    if (message->complete) node->met_all = true;
}

/* ---- Evidence from links --------------------------------------------------------------------- */

void membership_contact(struct parley_node *node, int member)
{
    node->members[member].redial_us = 0;
    if (node->members[member].r.state == PARLEY_MEMBER_DEAD)
        /* It hears of it through the record that goes out now, and refutes. */
        mark_urgent(node, &node->members[member]);
}

void membership_lost(struct parley_node *node, int member)
{
    if (node->leaving || node->members[member].r.state == PARLEY_MEMBER_LEFT) return;
    suspect(node, member, "its connection broke");
    connection_want(node, member);
}

void membership_refused(struct parley_node *node, int member)
{
    struct member *m = &node->members[member];
    m->refused = true;
    if (m->r.state != PARLEY_MEMBER_SUSPECT) return;
    uint64_t until_us = node->now_us + node->config.broken_suspicion_us;
    if (until_us < m->suspect_until_us) m->suspect_until_us = until_us;
    if (m->suspect_until_us < node->next_suspicion_us)
        node->next_suspicion_us = m->suspect_until_us;
}

void membership_replaced(struct parley_node *node, int member)
{
    uint64_t boot = node->members[member].r.boot;
    struct conn *conn = connection_of(node, member);
    if (membership_is_live(node, member))
        member_state(node, member, PARLEY_MEMBER_DEAD, "it was started anew");
    if (conn) connection_goodbye(node, conn, MESSAGE_BYE_DUPLICATE);
    doubt_restarted(node, boot);
    exchange_forget(node, boot);
}

/* ---- Probing --------------------------------------------------------------------------------- */

static bool heard_since(struct parley_node *node, int member, uint64_t since_us)
{
    struct conn *conn = connection_of(node, member);
    return conn && conn->heard_us >= since_us;
}

static void ping(struct parley_node *node, int member, uint32_t sequence)
{
    struct conn *conn = connection_want(node, member);
    struct message_probe probe = {sequence, node->members[member].r.boot};
    if (conn) connection_send(node, conn, WIRE_PING, &probe);
}

static bool is_linked(struct parley_node *node, int member)
{
    return member != node->probe.member && connection_of(node, member) != NULL;
}

static void ask_others(struct parley_node *node)
{
    struct message_probe probe = {node->probe.sequence, node->members[node->probe.member].r.boot};
    int asked[8];
    uint32_t count = 0;
    for (uint32_t i = 0; i < node->config.indirect_probes && count < 8; i++) {
        int helper = membership_pick(node, is_linked);
        if (helper == NONE) return;
        bool again = false;
        for (uint32_t j = 0; j < count; j++)
            again = again || asked[j] == helper;
        if (again) continue;
        asked[count++] = helper;
        connection_send(node, connection_of(node, helper), WIRE_PING_FOR, &probe);
    }
}

/* The next in a shuffled round over all live members. */
static int next_target(struct parley_node *node)
{
    for (uint32_t tries = 0; tries <= node->members_count; tries++) {
        if (node->probe_at >= node->probe_count) {
            node->probe_at = 0;
            node->probe_count = node->members_count - 1;
            for (uint32_t i = 0; i < node->probe_count; i++) {
                uint32_t j = rng_below(&node->rng, i + 1);
                node->probe_order[i] = node->probe_order[j];
                node->probe_order[j] = i + 1;
            }
            if (node->probe_count == 0) return NONE;
        }
        int member = (int)node->probe_order[node->probe_at++];
        if (membership_is_live(node, member)) return member;
    }
    return NONE;
}

static void probe_success(struct parley_node *node)
{
    if (node->health > 0) node->health--;
    node->probe.member = NONE;
}

void membership_ping(struct parley_node *node, struct conn *conn, enum wire_type type,
                     struct message_probe *message)
{
    if (type == WIRE_PING) {
        struct message_probe ack = {message->sequence, self_of(node)->r.boot};
        if (message->boot == ack.boot) connection_send(node, conn, WIRE_ACK, &ack);
        return;
    }
    if (type == WIRE_PING_FOR) {
        int target = membership_find(node, message->boot);
        if (target <= 0) return;
        struct favour *favour = &node->favours[0];
        for (int i = 1; i < 8; i++) /* the oldest gives way */
            if (node->favours[i].until_us < favour->until_us) favour = &node->favours[i];
        *favour = (struct favour){++node->probe_sequence, message->sequence,
                                  node->members[conn->member].r.boot, message->boot,
                                  node->now_us + FAVOUR_US};
        ping(node, target, favour->sequence);
        return;
    }
    if (node->name_check.active && message->sequence == node->name_check.sequence &&
        message->boot == node->members[node->name_check.member].r.boot)
        node->name_check.answered = true;
    if (node->probe.member != NONE && message->sequence == node->probe.sequence &&
        message->boot == node->members[node->probe.member].r.boot) {
        probe_success(node);
        return;
    }
    for (int i = 0; i < 8; i++) {
        struct favour *favour = &node->favours[i];
        if (favour->until_us < node->now_us || favour->sequence != message->sequence ||
            favour->target != message->boot)
            continue;
        int asker = membership_find(node, favour->asker);
        struct conn *back = asker > 0 ? connection_of(node, asker) : NULL;
        struct message_probe ack = {favour->asker_sequence, message->boot};
        if (back) connection_send(node, back, WIRE_ACK, &ack);
        favour->until_us = 0;
    }
}

static void probe_timers(struct parley_node *node)
{
    struct probe *probe = &node->probe;
    uint64_t stretch = 1 + node->health;
    if (probe->member != NONE && heard_since(node, probe->member, probe->sent_us))
        probe_success(node);
    if (probe->member != NONE && !probe->indirect &&
        node->now_us >= probe->sent_us + node->config.probe_timeout_us * stretch) {
        probe->indirect = true;
        ask_others(node);
    }
    if (node->now_us < node->next_probe_us) return;
    if (probe->member != NONE) {
        suspect(node, probe->member, "it did not answer probes");
        if (node->health < HEALTH_MAX) node->health++;
    }
    node->next_probe_us = node->now_us + node->config.probe_interval_us * (1 + node->health);
    int target = next_target(node);
    *probe = (struct probe){target, ++node->probe_sequence, node->now_us, false};
    if (target == NONE || heard_since(node, target, node->now_us - node->config.probe_interval_us))
        probe->member = NONE;
    else
        ping(node, target, probe->sequence);
}

static void suspicion_timers(struct parley_node *node)
{
    if (node->now_us < node->next_suspicion_us) return;
    node->next_suspicion_us = NEVER;
    for (uint32_t i = 1; i < node->members_count; i++) {
        struct member *m = &node->members[i];
        if (m->r.state != PARLEY_MEMBER_SUSPECT) continue;
        if (!out_room(node)) {
            node->next_suspicion_us = node->now_us;
            return;
        }
        if (node->now_us >= m->suspect_until_us) {
            member_state(node, (int)i, PARLEY_MEMBER_DEAD,
                         m->refused ? "its connection broke and its address refuses"
                                    : "it stayed silent");
            struct conn *conn = connection_of(node, (int)i);
            if (conn) {
                conn->goodbye = true; /* judged already */
                connection_close(node, conn);
            }
        } else if (m->suspect_until_us < node->next_suspicion_us) {
            node->next_suspicion_us = m->suspect_until_us;
        }
    }
}

/* The dead are dialled now and then: that is how a healed partition finds together. A suspect has
 * little time left: it is dialled as soon as may be. */
static void redial_timers(struct parley_node *node)
{
    if (node->now_us < node->next_redial_us) return;
    node->next_redial_us = NEVER;
    for (uint32_t i = 1; i < node->members_count; i++) {
        struct member *m = &node->members[i];
        if (m->r.state == PARLEY_MEMBER_SUSPECT && m->link == NONE) {
            if (out_room(node)) connection_want(node, (int)i);
            uint64_t at_us = node->now_us + node->config.redial_min_us;
            if (at_us < node->next_redial_us) node->next_redial_us = at_us;
        }
        if (m->r.state != PARLEY_MEMBER_DEAD) continue;
        if (node->now_us >= m->redial_us && out_room(node)) {
            if (!node->leaving) connection_want(node, (int)i);
            uint64_t wait_us = (node->now_us - m->dead_since_us) / 4;
            if (wait_us < REDIAL_DEAD_US) wait_us = REDIAL_DEAD_US;
            if (wait_us > node->config.redial_max_us) wait_us = node->config.redial_max_us;
            m->redial_us = node->now_us + wait_us;
        }
        if (m->redial_us < node->next_redial_us) node->next_redial_us = m->redial_us;
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
    uint64_t at = node->next_probe_us;
    if (node->next_suspicion_us < at) at = node->next_suspicion_us;
    if (node->next_redial_us < at) at = node->next_redial_us;
    if (node->probe.member != NONE && !node->probe.indirect) {
        uint64_t timeout_us = node->config.probe_timeout_us * (1 + node->health);
        if (node->probe.sent_us + timeout_us < at) at = node->probe.sent_us + timeout_us;
    }
    for (uint32_t i = 0; i < node->conns_count; i++) {
        const struct conn *conn = &node->conns[i];
        if (conn->state != CONN_LIVE) continue;
        if (node->members[0].lazy_change > conn->own_sent && conn->own_us < at) at = conn->own_us;
        if (node->news > conn->urgent_sent && conn->urgent_us < at) at = conn->urgent_us;
    }
    return at;
}
