/* doubt.c: READY was said, the decision not heard. The responder trains on, keeps its delta and
 * asks: at once, over a new dial, through a third peer, from every 0.2 s to every 5 s.
 *
 *   COMMITTED             the delta goes into x: the mean is whole again
 *   ABORTED               forgotten on both sides
 *   UNKNOWN, RESTARTED    given up and counted: that mass went with the initiator
 *
 * Not given up because the other is suspected or dead, it may only be paused; but for a new one
 * that needs the place, or a node would average with nobody any more once two have died on it: then
 * one whose initiator's address refuses (nobody listens, so no process is paused there), or that
 * has been asked for for long. A node that proposes gives up what is left, and so does one that
 * ends.
 */
#include "core/exchange/doubt.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/exchange/exchange.h"
#include "core/exchange/slot.h"
#include "core/link/connection.h"
#include "core/membership/membership.h"
#include "core/out.h"
#include "core/plant.h"
#include "core/state.h"

enum { ASK_MIN_US = 200000, ASK_MAX_US = 5000000, SILENT_US = 10000000, FORGET_US = 600000000 };

uint32_t doubts_open(const struct parley_node *node)
{
    uint32_t count = 0;
    for (int i = 0; i < DOUBTS_MAX; i++)
        count += node->exchange.doubts[i].state != DOUBT_FREE;
    return count;
}

static bool is_linked(struct parley_node *node, int member)
{
    return connection_of(node, member) != NULL;
}

static void ask(struct parley_node *node, struct doubt *doubt)
{
    struct message_outcome_frame frame = {
        .initiator = doubt->initiator, .asker = self_of(node)->boot, .sequence = doubt->sequence};
    struct conn *conn = connection_want(node, doubt->member);
    if (!conn) { /* a third peer may reach it: another one each time, as not all do */
        int third = membership_pick(node, is_linked);
        if (third != NONE) conn = connection_of(node, third);
    }
    if (conn) connection_send(node, conn, WIRE_ASK, &frame);
    doubt->ask_us = node->now_us + doubt->backoff_us;
    doubt->backoff_us = doubt->backoff_us * 2 < ASK_MAX_US ? doubt->backoff_us * 2 : ASK_MAX_US;
}

static void count_dropped(struct parley_node *node, const struct delta *delta)
{
    node->ledger.dropped += !PLANTED(DROP_UNCOUNTED);
    node->ledger.mass_dropped += fabs(delta->mass) * (double)delta_factor(delta);
}

static void drop(struct parley_node *node, struct doubt *doubt)
{
    doubt->state = DOUBT_FREE;
    out_log(node, PARLEY_LOG_DEBUG, "exchange %u with %s is given up", doubt->sequence,
            record_of(node, doubt->member)->name);
    count_dropped(node, &doubt->delta);
}

/* What it had decided went with it: another process has its name by now. */
static bool is_replaced(const struct parley_node *node, const struct doubt *doubt)
{
    const struct record *r = record_of(node, (uint32_t)doubt->member);
    return r->state >= PARLEY_MEMBER_DEAD &&
           roster_namesake(node->roster, r->name, r->boot) != NONE;
}

void doubt_open(struct parley_node *node, struct slot *slot)
{
    if (PLANTED(FORGET_DOUBT)) return;
    for (int i = 0; i < DOUBTS_MAX; i++) {
        struct doubt *doubt = &node->exchange.doubts[i];
        if (doubt->state != DOUBT_FREE) continue;
        uint32_t free_buffer = doubt->buffer;
        *doubt = (struct doubt){.state = DOUBT_ASKED,
                                .initiator = record_of(node, slot->peer)->boot,
                                .member = slot->peer,
                                .sequence = slot->sequence,
                                .delta = slot->delta,
                                .buffer = slot->theirs,
                                .since_us = node->now_us,
                                .backoff_us = ASK_MIN_US};
        slot->theirs = free_buffer;
        out_log(node, PARLEY_LOG_DEBUG, "exchange %u with %s is in doubt", doubt->sequence,
                record_of(node, doubt->member)->name);
        if (is_replaced(node, doubt))
            drop(node, doubt);
        else
            ask(node, doubt);
        return;
    }
    assert(!"an offer is accepted only while a doubt has room");
}

/* A killed process refuses dials and will never answer; a silent one is waited for a while. */
static bool is_gone(const struct parley_node *node, const struct doubt *doubt, uint64_t silent_us)
{
    const struct record *r = record_of(node, (uint32_t)doubt->member);
    const struct member *m = member_of(node, doubt->member);
    return r->state >= PARLEY_MEMBER_DEAD &&
           (!m || m->refused || node->now_us >= doubt->since_us + silent_us);
}

bool doubt_make_room(struct parley_node *node)
{
    if (doubts_open(node) < DOUBTS_MAX) return true;
    for (int i = 0; i < DOUBTS_MAX; i++) {
        struct doubt *doubt = &node->exchange.doubts[i];
        if (doubt->state == DOUBT_ADDING || !is_gone(node, doubt, FORGET_US)) continue;
        drop(node, doubt);
        return true;
    }
    return false;
}

void doubt_drop_all(struct parley_node *node)
{
    for (int i = 0; i < DOUBTS_MAX; i++)
        if (node->exchange.doubts[i].state == DOUBT_ASKED) drop(node, &node->exchange.doubts[i]);
}

void doubt_finish(struct parley_node *node)
{
    const struct slot *slot = &node->exchange.slots[RESPONDER];
    doubt_drop_all(node);
    if (slot->state == SLOT_READY) count_dropped(node, &slot->delta);
}

void doubt_ask(struct parley_node *node, struct conn *conn,
               const struct message_outcome_frame *frame)
{
    struct message_outcome_frame answer = *frame;
    int initiator = roster_find(node->roster, frame->initiator);
    if (initiator == node->self) {
        answer.outcome = exchange_outcome(node, frame->asker, frame->sequence);
    } else if (initiator != NONE &&
               strcmp(record_of(node, initiator)->name, self_of(node)->name) == 0) {
        answer.outcome = MESSAGE_RESTARTED;
    } else {
        struct conn *next = initiator == NONE ? NULL : connection_of(node, initiator);
        if (next && record_of(node, conn->member)->boot == frame->asker)
            connection_send(node, next, WIRE_ASK, frame);
        return;
    }
    connection_send(node, conn, WIRE_OUTCOME, &answer);
}

static void resolve(struct parley_node *node, int index, uint32_t outcome)
{
    struct doubt *doubt = &node->exchange.doubts[index];
    if (outcome == MESSAGE_COMMITTED) {
        doubt->state = DOUBT_ADDING;
        node->exchange.decided++;
        delta_add(node, &doubt->delta, OP_DOUBT_ADD, index, NONE, doubt->buffer);
    } else if (outcome == MESSAGE_ABORTED) {
        doubt->state = DOUBT_FREE;
        node->ledger.aborted++;
    } else {
        drop(node, doubt);
    }
}

void doubt_outcome(struct parley_node *node, const struct message_outcome_frame *frame)
{
    if (frame->asker != self_of(node)->boot) {
        int asker = roster_find(node->roster, frame->asker);
        struct conn *conn = asker != NONE ? connection_of(node, asker) : NULL;
        if (conn) connection_send(node, conn, WIRE_OUTCOME, frame);
        return;
    }
    if (frame->outcome < MESSAGE_COMMITTED || frame->outcome > MESSAGE_RESTARTED) return;
    for (int i = 0; i < DOUBTS_MAX; i++) {
        struct doubt *doubt = &node->exchange.doubts[i];
        bool open =
            doubt->state == DOUBT_ASKED || (PLANTED(APPLY_AGAIN) && doubt->state == DOUBT_ADDING);
        if (doubt->delta.trains && !exchange_may_mix(node)) continue; /* it is asked again */
        if (open && doubt->initiator == frame->initiator && doubt->sequence == frame->sequence)
            resolve(node, i, frame->outcome);
    }
}

void doubt_done(struct parley_node *node, int index)
{
    struct doubt *doubt = &node->exchange.doubts[index];
    doubt->state = DOUBT_FREE;
    node->exchange.added++;
    delta_added(node, &doubt->delta, doubt->member);
    exchange_say_applied(node, doubt->member, doubt->sequence);
}

void doubt_live(struct parley_node *node, struct conn *conn)
{
    for (int i = 0; i < DOUBTS_MAX; i++) {
        struct doubt *doubt = &node->exchange.doubts[i];
        if (doubt->state == DOUBT_ASKED && doubt->member == conn->member) ask(node, doubt);
    }
}

void doubt_restarted(struct parley_node *node, uint64_t boot)
{
    for (int i = 0; i < DOUBTS_MAX; i++) {
        struct doubt *doubt = &node->exchange.doubts[i];
        if (doubt->state == DOUBT_ASKED && doubt->initiator == boot) drop(node, doubt);
    }
}

bool doubt_blocks(const struct parley_node *node)
{
    for (int i = 0; i < DOUBTS_MAX; i++) {
        const struct doubt *doubt = &node->exchange.doubts[i];
        if (doubt->state == DOUBT_ADDING ||
            (doubt->state == DOUBT_ASKED && !is_gone(node, doubt, SILENT_US)))
            return true;
    }
    return false;
}

void doubt_timers(struct parley_node *node)
{
    for (int i = 0; i < DOUBTS_MAX; i++) {
        struct doubt *doubt = &node->exchange.doubts[i];
        if (doubt->state == DOUBT_ASKED && node->now_us >= doubt->ask_us) ask(node, doubt);
    }
}

uint64_t doubt_deadline(const struct parley_node *node)
{
    uint64_t at = NEVER;
    for (int i = 0; i < DOUBTS_MAX; i++) {
        const struct doubt *doubt = &node->exchange.doubts[i];
        if (doubt->state == DOUBT_ASKED) at = earlier(at, doubt->ask_us);
    }
    return at;
}
