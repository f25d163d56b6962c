/* probe.c: see probe.h. Any byte heard in the interval counts as an answer; silence makes the
 * member SUSPECT (membership.c). Lifeguard, section IV-A: who is itself slow probes less often and
 * waits longer; a probe that fails is no sign of that where one of those that are asked to help has
 * answered (there by a nack).
 */
#include "core/membership/probe.h"

#include "core/link/connection.h"
#include "core/link/hello.h"
#include "core/membership/membership.h"
#include "core/state.h"
#include "core/transfer/flow.h"

enum { HEALTH_MAX = 8, FAVOUR_US = 2000000 };

void probe_start(struct parley_node *node)
{
    struct probing *p = &node->probing;
    p->now.member = NONE;
    p->next_us = node->roster->shared ? NEVER : node->now_us + node->config.probe_interval_us;
}

/* ---- Asking ---------------------------------------------------------------------------------- */

static void ping(struct parley_node *node, int member, uint32_t sequence)
{
    struct conn *conn = connection_want(node, member);
    struct message_probe probe = {sequence, record_of(node, member)->boot};
    if (!conn) return;
    if (conn->pinged_us <= conn->heard_us) conn->pinged_us = node->now_us;
    connection_send(node, conn, WIRE_PING, &probe);
}

/* Who has left a ping unanswered may be behind the line that is broken. */
static bool may_help(struct parley_node *node, int member)
{
    const struct conn *link = connection_of(node, member);
    return member != node->probing.now.member && link && link->pinged_us <= link->heard_us;
}

static void ask_others(struct parley_node *node)
{
    const struct probe *now = &node->probing.now;
    struct message_probe probe = {now->sequence, record_of(node, now->member)->boot};
    int asked[PARLEY_INDIRECT_PROBES_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < node->config.indirect_probes; i++) {
        int helper = membership_pick(node, may_help);
        if (helper == NONE) return;
        bool again = false;
        for (uint32_t j = 0; j < count; j++)
            again = again || asked[j] == helper;
        if (again) continue;
        asked[count++] = helper;
        connection_send(node, connection_of(node, helper), WIRE_PING_FOR, &probe);
        ping(node, helper, now->sequence);
    }
}

static void shuffle(struct parley_node *node)
{
    struct probing *p = &node->probing;
    p->at = 0;
    p->count = node->roster->count - 1;
    for (uint32_t i = 0; i < p->count; i++) {
        uint32_t j = rng_below(&node->rng, i + 1);
        p->order[i] = p->order[j];
        p->order[j] = i + 1;
    }
}

/* Of its relays (gossip.c): where all of them are silent this node hears of nothing. */
static int silent_relay(struct parley_node *node)
{
    for (uint32_t i = 0; i < node->open_count; i++) {
        int member = node->open[i].member;
        if (member != NONE && connection_at(node, i)->asked && !membership_hears(node, member))
            return member;
    }
    return NONE;
}

static int next_target(struct parley_node *node)
{
    struct probing *p = &node->probing;
    int relay = rng_below(&node->rng, 2) == 0 ? silent_relay(node) : NONE;
    if (relay != NONE) return relay;
    for (uint32_t tries = 0; tries <= node->roster->count; tries++) {
        if (p->at >= p->count) shuffle(node);
        if (p->count == 0) return NONE;
        int member = (int)p->order[p->at++];
        if (membership_is_live(node, member)) return member;
    }
    return NONE;
}

static void succeed(struct parley_node *node)
{
    if (node->probing.health > 0) node->probing.health--;
    node->probing.now.member = NONE;
}

void probe_unwell(struct parley_node *node)
{
    if (node->probing.health < HEALTH_MAX) node->probing.health++;
}

static uint64_t timeout_us(const struct parley_node *node)
{
    return node->config.probe_timeout_us * (1 + node->probing.health);
}

static void begin(struct parley_node *node)
{
    struct probing *p = &node->probing;
    int target = next_target(node);
    p->now = (struct probe){.member = target, .sequence = ++p->sequence, .sent_us = node->now_us};
    if (target == NONE) return;
    if (membership_hears(node, target))
        succeed(node);
    else
        ping(node, target, p->now.sequence);
}

void probe_timers(struct parley_node *node)
{
    struct probing *p = &node->probing;
    struct probe *now = &p->now;
    if (now->member != NONE && membership_heard(node, now->member, now->sent_us)) succeed(node);
    if (now->member != NONE && !now->indirect && node->now_us >= now->sent_us + timeout_us(node)) {
        now->indirect = true;
        ask_others(node);
    }
    if (node->now_us < p->next_us) return;
    if (now->member != NONE) {
        membership_suspect(node, now->member, "it did not answer probes");
        if (!now->helped) probe_unwell(node);
    }
    p->next_us = node->now_us + node->config.probe_interval_us * (1 + p->health);
    begin(node);
}

uint64_t probe_deadline(const struct parley_node *node)
{
    const struct probing *p = &node->probing;
    if (p->now.member == NONE || p->now.indirect) return p->next_us;
    return earlier(p->next_us, p->now.sent_us + timeout_us(node));
}

/* ---- Answering, and asking for others -------------------------------------------------------- */

/* The target has answered: so hears who asked. */
static void favour_done(struct parley_node *node, struct favour *favour)
{
    int asker = roster_find(node->roster, favour->asker);
    struct conn *back = asker > 0 ? connection_of(node, asker) : NULL;
    struct message_probe ack = {favour->asker_sequence, favour->target};
    if (back) connection_send(node, back, WIRE_ACK, &ack);
    favour->until_us = 0;
}

void probe_contact(struct parley_node *node, struct conn *conn)
{
    struct favour *favours = node->probing.favours;
    uint64_t boot = record_of(node, (uint32_t)conn->member)->boot;
    for (int i = 0; i < FAVOURS_MAX; i++)
        if (favours[i].target == boot && favours[i].until_us >= node->now_us)
            favour_done(node, &favours[i]);
}

static void favour(struct parley_node *node, const struct conn *conn,
                   const struct message_probe *message)
{
    struct favour *favours = node->probing.favours, *place = favours;
    int target = roster_find(node->roster, message->boot);
    if (target <= 0) return;
    for (int i = 1; i < FAVOURS_MAX; i++) /* the oldest gives way */
        if (favours[i].until_us < place->until_us) place = &favours[i];
    *place = (struct favour){++node->probing.sequence, message->sequence,
                             record_of(node, conn->member)->boot, message->boot,
                             node->now_us + FAVOUR_US};
    ping(node, target, place->sequence);
}

/* It lives, as others say, or is waited for, and over the link to it nothing has come for long: a
 * firewall between them has forgotten it, say, of which TCP learns after a quarter of an hour. What
 * is being sent over it may be what a ping waits behind: that has a limit of its own (flow.c). */
static void doubt_link(struct parley_node *node, int member)
{
    const struct conn *link = connection_of(node, member);
    if (!link || link->pinged_us <= link->heard_us || flow_uses(node, link->id)) return;
    if (node->now_us >= link->pinged_us + node->config.progress_timeout_us)
        connection_stalled(node, link->id);
}

void probe_awaited(struct parley_node *node, int member)
{
    const struct conn *link = connection_of(node, member);
    if (!link || node->now_us < link->heard_us + node->config.probe_interval_us) return;
    if (link->pinged_us <= link->heard_us) ping(node, member, ++node->probing.sequence);
    doubt_link(node, member);
}

/* Number 0: nobody asked (frames.c). */
static void acknowledged(struct parley_node *node, const struct conn *conn,
                         const struct message_probe *message)
{
    struct probe *now = &node->probing.now;
    struct favour *favours = node->probing.favours;
    if (message->sequence == 0) flow_moves(node, conn);
    hello_ack(node, message);
    if (now->member != NONE && message->sequence == now->sequence) {
        now->helped = true;
        if (message->boot != record_of(node, now->member)->boot) return;
        if (conn->member != now->member) doubt_link(node, now->member);
        succeed(node);
        return;
    }
    for (int i = 0; i < FAVOURS_MAX; i++)
        if (favours[i].until_us >= node->now_us && favours[i].sequence == message->sequence &&
            favours[i].target == message->boot)
            favour_done(node, &favours[i]);
}

void probe_received(struct parley_node *node, struct conn *conn, enum wire_type type,
                    const struct message_probe *message)
{
    struct message_probe ack = {message->sequence, self_of(node)->boot};
    if (type == WIRE_PING_FOR)
        favour(node, conn, message);
    else if (type == WIRE_ACK)
        acknowledged(node, conn, message);
    else if (message->boot == ack.boot)
        connection_send(node, conn, WIRE_ACK, &ack);
}
