/* holding.c: see holding.h.
 *
 * Happy path: holding_obtain() starts a fetch, or finds the model here; it is hashed, looked at,
 * written and read back, and then the node is HELD. What does not pass is not held, and whose word
 * it was is not trusted for it (agreement.c).
 */
#include "core/agreement/holding.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/agreement/agreement.h"
#include "core/agreement/said.h"
#include "core/exchange/robust.h"
#include "core/membership/membership.h"
#include "core/out.h"
#include "core/plant.h"
#include "core/state.h"
#include "core/transfer/fetch.h"

enum { RETRY_US = 100000 };

/* Honest models are within this many radii of clipping (robust.c); and settled ones, each within
 * the tolerance of their mean, within this many tolerances. */
static const double FAR = 2, FAR_TOLERANCES = 3;

/* ---- The buffers ----------------------------------------------------------------------------- */

void holding_reserve(struct parley_node *node)
{
    struct slot *slot = &node->exchange.slots[INITIATOR];
    struct agreement *a = &node->agreement;
    exchange_reserve(node, INITIATOR);
    a->buffer = slot->own;
    a->other = slot->theirs;
    a->since_us = a->progress_us = node->now_us;
    a->patience_us = AGREEMENT_PATIENCE_US;
    a->heard_us = 0;
    a->drift_before = live_of(node) == 1 ? 0 : node->drift.value;
    doubt_drop_all(node);
    a->alone_news = 0;
    for (uint32_t i = 0; node->members && i < node->roster->count; i++) {
        const struct record *r = record_of(node, i);
        node->members[i].counted = record_is_waited_for(r) && r->phase >= PARLEY_PHASE_SETTLE;
    }
}

/* Others still fetch from the buffers that this node is about to use for something else: they are
 * to ask again, somebody else or for another model. False once the last chunk is out of its hands.
 */
static bool is_read(struct parley_node *node)
{
    bool read = false;
    for (uint32_t i = 0; i < node->outflows_count; i++) {
        const struct outflow *out = &node->outflows[i];
        bool ours =
            out->buffers[0] == node->agreement.buffer || out->buffers[0] == node->agreement.other;
        if (!out->active || out->slot != NONE || !ours) continue;
        flow_abort(node, (int)i);
        read = read || out->active;
    }
    return read;
}

bool holding_let_go(struct parley_node *node)
{
    struct agreement *a = &node->agreement;
    if (is_read(node)) return false;
    exchange_release(node, INITIATOR);
    a->candidate = CANDIDATE_NONE;
    memset(a->own, 0, sizeof a->own);
    memset(self_of(node)->digest, 0, sizeof a->own); /* or as LATE it would seem to have it still */
    return true;
}

/* ---- Getting hold ---------------------------------------------------------------------------- */

static void write_candidate(struct parley_node *node)
{
    struct agreement *a = &node->agreement;
    a->candidate = CANDIDATE_WRITING;
    out_vector(node, PARLEY_UPDATE_WRITE, OP_WRITE, NONE, a->buffer);
}

static void hold(struct parley_node *node)
{
    struct agreement *a = &node->agreement;
    struct record *self = self_of(node);
    a->candidate = CANDIDATE_HELD;
    memcpy(self->digest, a->own, sizeof self->digest);
    self->score = a->score;
    if (self->phase == PARLEY_PHASE_PROPOSED || self->phase == PARLEY_PHASE_SETTLE)
        node_phase(node, PARLEY_PHASE_HELD);
    else
        membership_changed(node, true);
}

bool holding_obtain(struct parley_node *node, const uint8_t *digest)
{
    struct agreement *a = &node->agreement;
    if (node->now_us < node->fetch.retry_us) return true;
    int holder = said_holder(node, digest);
    if (holder == NONE) return false;
    /* What is fetched goes over what somebody still reads. */
    if (holder != node->self && flow_is_sent(node, a->other)) return true;
    memcpy(a->pick, digest, sizeof a->pick);
    if (holder == node->self) {
        if (!said_none(a->written) && said_same(a->written, digest))
            hold(node);
        else
            write_candidate(node);
        return true;
    }
    a->candidate = CANDIDATE_FETCHING;
    fetch_start(node, holder, digest);
    return true;
}

void holding_fetched(struct parley_node *node)
{
    node->agreement.candidate = CANDIDATE_CHECKING;
    out_vector(node, PARLEY_UPDATE_HASH, OP_FETCHED_HASH, NONE, node->agreement.other);
}

void holding_fetch_failed(struct parley_node *node)
{
    if (node->agreement.candidate == CANDIDATE_FETCHING) node->agreement.candidate = CANDIDATE_OWN;
}

void holding_distrust(struct parley_node *node, uint64_t boot, const char *why)
{
    struct agreement *a = &node->agreement;
    struct record *self = self_of(node);
    int member = roster_find(node->roster, boot);
    if (a->candidate == CANDIDATE_CHECKING) a->candidate = CANDIDATE_OWN;
    node->fetch.retry_us = node->now_us + RETRY_US;
    if (said_is_distrusted(node, boot) || boot == self->boot || member == NONE) return;
    out_log(node, PARLEY_LOG_WARN, "%s is not trusted: %s", record_of(node, member)->name, why);
    memmove(self->distrusts, self->distrusts + 1, sizeof self->distrusts - sizeof *self->distrusts);
    self->distrusts[MESSAGE_DISTRUSTS_MAX - 1] = boot;
    membership_changed(node, true);
}

static void accept(struct parley_node *node)
{
    struct agreement *a = &node->agreement;
    uint32_t swap = a->buffer;
    if (!PLANTED(FETCH_UNUSED)) {
        a->buffer = a->other;
        a->other = swap;
    }
    memcpy(a->own, a->pick, sizeof a->own);
    write_candidate(node);
}

/* How far is it from what this node proposed itself? */
static void compare(struct parley_node *node)
{
    const struct agreement *a = &node->agreement;
    uint32_t copy = parley_config_buffers(&node->config) - 1;
    struct parley_update *update =
        out_vector(node, PARLEY_UPDATE_COMBINE, OP_FETCHED_COPY, NONE, copy);
    update->vector.other = a->other;
    update->vector.factor = 1;
    update->vector.size = vector_bytes(node);
    out_vector(node, PARLEY_UPDATE_DIFF, OP_FETCHED_DIFF, NONE, copy)->vector.other = a->buffer;
}

static void compared(struct parley_node *node, const struct parley_event *event)
{
    double far = fmax(FAR * robust_radius(node),
                      FAR_TOLERANCES * node->config.tolerance * sqrt(event->done.own_norm_sq));
    if (event->done.finite && event->done.norm_sq <= far * far)
        accept(node);
    else
        holding_distrust(node, node->agreement.proposer, "its model is far from this node's");
}

static void checked(struct parley_node *node, const struct parley_event *event)
{
    struct agreement *a = &node->agreement;
    if (!said_same(event->done.digest, a->pick))
        holding_distrust(node, record_of(node, node->fetch.member)->boot,
                         "it sent a model of another digest than it announced");
    else if (!event->done.finite)
        holding_distrust(node, a->proposer, "its model is not finite");
    else if (!node->config.robust || a->proposer == 0 || said_none(a->own) ||
             said_is_distrusted(node, a->proposer))
        accept(node); /* most are DONE with it, or hold it though this node has said no */
    else
        compare(node);
}

static void written(struct parley_node *node, const struct parley_event *event)
{
    struct agreement *a = &node->agreement;
    bool ok = event->done.ok && (!event->done.digest || said_same(event->done.digest, a->own));
    if (!ok && !a->failed_write)
        out_log(node, PARLEY_LOG_ERROR, "the model could not be written; it is held in memory");
    a->failed_write = !ok;
    memcpy(a->written, a->own, sizeof a->written);
    hold(node);
}

void holding_done(struct parley_node *node, const struct op *op, const struct parley_event *event)
{
    switch (op->kind) {
    case OP_FETCHED_HASH:
        checked(node, event);
        break;
    case OP_FETCHED_COPY:
        break;
    case OP_FETCHED_DIFF:
        compared(node, event);
        break;
    case OP_WRITE:
        written(node, event);
        break;
    default:
        assert(0);
    }
}
