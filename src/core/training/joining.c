/* joining.c: see joining.h. */
#include "core/training/joining.h"

#include <math.h>

#include "core/agreement/late.h"
#include "core/agreement/quorum.h"
#include "core/exchange/exchange.h"
#include "core/exchange/slot.h"
#include "core/link/connection.h"
#include "core/link/seeds.h"
#include "core/membership/membership.h"
#include "core/out.h"
#include "core/plant.h"
#include "core/state.h"
#include "core/training/stop.h"
#include "core/transfer/fetch.h"

enum { MEET_US = 10000000, EARLY_US = 10000000, BRING_US = 10000000, WORD_US = 2000000 };

/* The most steps that are in the model of a node in that phase: made by it, or those of the state
 * that it has taken over or brought along. */
static uint64_t furthest(const struct parley_node *node, enum parley_phase phase)
{
    uint64_t steps = 0;
    for (uint32_t i = 0; i < node->roster->count; i++) {
        const struct record *r = record_of(node, i);
        uint64_t in_model = r->version > r->holds ? r->version : r->holds;
        if (record_is_live(r) && r->phase == phase && in_model > steps) steps = in_model;
    }
    return steps;
}

static bool has_state(struct parley_node *node, int member)
{
    uint32_t phase = record_of(node, member)->phase;
    return phase >= PARLEY_PHASE_TRAIN && phase <= PARLEY_PHASE_PROPOSED;
}

/* Over a link through which something came just now: what a line has swallowed for long TCP says
 * again after as long a pause. */
static bool has_state_near(struct parley_node *node, int member)
{
    enum { NEAR_US = 2000000 };
    const struct conn *conn = connection_of(node, member);
    return has_state(node, member) && conn && conn->heard_us + NEAR_US >= node->now_us;
}

/* Samples that the others count of this node's lives before it was started anew; `made`: but for
 * those that its file told of. */
static uint64_t counted(const struct parley_node *node, bool made)
{
    uint64_t samples = 0;
    int other;
    for (uint32_t at = 0; (other = roster_named(node->roster, self_of(node)->name, &at)) != NONE;) {
        const struct record *r = record_of(node, (uint32_t)other);
        if (other == node->self) continue;
        samples += made && r->kept <= r->samples ? r->samples - r->kept : r->samples;
    }
    return samples;
}

/* Who has much more in its file brings it from another run, or from this one's start on, as it was
 * started without --resume first. */
static bool is_counted(const struct parley_node *node)
{
    uint64_t samples = counted(node, false);
    return samples > 0 && samples >= node->config.resumed.samples / 2;
}

bool joining_is_merged(const struct parley_node *node)
{
    return is_counted(node) && counted(node, true) > 0;
}

/* Whether what this node brings along is older than what the others have. Nodes that were all
 * killed and come back are not of one age, either: files are written now and then. */
static bool is_behind(const struct parley_node *node)
{
    const struct parley_resumed *resumed = &node->config.resumed;
    return resumed->steps == 0 || is_counted(node) ||
           node->roster->samples > resumed->samples_cluster + resumed->samples_cluster / 2;
}

static bool has_stranger(const struct parley_node *node)
{
    for (uint32_t i = 0; !node->roster->shared && i < node->roster->count; i++)
        if (record_is_stranger(record_of(node, i))) return true;
    return false;
}

/* A stranger may train, and be far; so may whom a seed's dial is yet to reach. Its word is on its
 * way, or else it is not waited for for long. */
static bool awaits_word(struct parley_node *node)
{
    struct training *t = &node->training;
    if (t->stop || node->strategy->catches_up) return false;
    if (!has_stranger(node) && seeds_met(node)) return false;
    if (t->word_us == 0) t->word_us = node->now_us + WORD_US;
    return node->now_us < t->word_us;
}

/* Who has nothing does not begin beside those who go on: their models would be averaged with a
 * beginner's. They may wait for more than it does, for ever, or lie: so it waits a while only. */
static bool awaits_model(struct parley_node *node)
{
    struct training *t = &node->training;
    if (node->config.resumed.steps > 0 || t->stop || node->strategy->catches_up) return false;
    if (node->roster->counts[ROSTER_TRAINS] > 0) return false;
    if (furthest(node, PARLEY_PHASE_JOINING) <= node->config.behind_steps_max) return false;
    if (t->bring_us == 0) {
        t->bring_us = node->now_us + BRING_US;
        out_log(node, PARLEY_LOG_INFO, "waits for those who have kept a model to go on with it");
    }
    if (node->now_us < t->bring_us) return true;
    out_log(node, PARLEY_LOG_WARN,
            "begins with the first model: those who have kept one have not gone on with it");
    return false;
}

void joining_goes_on(struct parley_node *node)
{
    self_of(node)->kept_all = node->training.before.samples_cluster;
}

/* With the vectors it has brought along. */
static void resume(struct parley_node *node)
{
    struct training *t = &node->training;
    t->before = node->config.resumed;
    bool begins = node->roster->counts[ROSTER_TRAINS] == 0 || node->roster->kept_all > 0;
    /* On the ring all follow whoever is furthest. */
    bool leads =
        node->strategy->on_ring && t->before.state_steps > furthest(node, PARLEY_PHASE_TRAIN);
    if (is_counted(node))
        t->before.samples = 0;
    else if (begins || leads)
        joining_goes_on(node);
    self_of(node)->kept = t->before.samples;
    t->inherited = t->before.state_steps;
    t->part += (double)t->before.samples;
    self_of(node)->version = t->before.steps;
    self_of(node)->samples = t->before.samples;
    for (uint32_t i = 0; node->members && i < node->roster->count; i++)
        node->members[i].heard = t->before.samples; /* it made these before it heard of anybody */
    out_log(node, PARLEY_LOG_INFO, "goes on from its step %llu",
            (unsigned long long)t->before.steps);
}

/* Said by itself this holds for those, too, who come later and hear of either life as of a dead
 * one. */
void joining_recount(struct parley_node *node)
{
    struct training *t = &node->training;
    struct record *self = self_of(node);
    uint64_t twice = self->kept;
    if (twice == 0 || !node->roster->places[node->self].twice) return;
    t->before.samples = self->kept = self->kept_all = 0;
    self->samples -= twice;
    t->part -= (double)twice;
    for (uint32_t i = 0; node->members && i < node->roster->count; i++) {
        struct member *m = member_of(node, (int)i);
        m->heard = m->heard > twice ? m->heard - twice : 0;
    }
    membership_changed(node, true);
    out_log(node, PARLEY_LOG_INFO, "what its file tells of is counted by the others");
}

/* A peer's model is in the place of its own. Of a budget of steps, which is each node's, it has
 * made those of its file all the same. */
static void resume_counting(struct parley_node *node)
{
    node->training.before.steps = node->config.resumed.steps;
    self_of(node)->version = node->training.before.steps;
}

static void begin(struct parley_node *node)
{
    struct training *t = &node->training;
    if (node->ledger.joins > 0)
        resume_counting(node);
    else if (node->config.resumed.steps > 0)
        resume(node);
    t->started = true;
    t->stepped_us = node->now_us;
    t->early = node->roster->count;
    t->early_us = node->now_us + EARLY_US;
    t->start_us = node->now_us - t->before.trained_us;
    if (node->ledger.joins > 0) training_share_time(node, node->fetch.answer.trained_us);
    period_start(node);
    period_begin(node);
    node_phase(node, PARLEY_PHASE_TRAIN);
    t->alike = (double)node->roster->samples; /* with what this node's file tells of */
    if (node->ledger.joins > 0) t->alike = fmax(t->alike, (double)node->fetch.answer.samples);
    node->more = true; /* steps are granted in the next step: perhaps nothing else calls for one */
    if (node->strategy->begin) node->strategy->begin(node);
    if (t->stop != PARLEY_STOP_NONE) stop_raise(node, t->stop);
    if (node->config.quorum == PARLEY_QUORUM_MAJORITY && quorum_has_forgotten(node, node->self))
        out_log(node, PARLEY_LOG_WARN,
                "an earlier start of this node may have agreed on a model: it does not count for "
                "the majority");
}

/* What a peer's state is to overwrite is in use: the strategy writes what it keeps beside x, or is
 * about to find x not finite, which is not to be said of the x that comes. */
static bool state_is_used(const struct parley_node *node)
{
    if (exchange_mixes_kept(node) && slot_is_open(&node->exchange.slots[RESPONDER])) return true;
    for (uint32_t i = 0; i < node->ops_count; i++)
        if (node->ops[i].kind == OP_STRATEGY) return true;
    return false;
}

void joining_follow(struct parley_node *node, int peer)
{
    struct slot *slot = &node->exchange.slots[INITIATOR];
    if (node->fetch.state != FETCH_IDLE || node->now_us < node->fetch.retry_us) return;
    if (slot->state != SLOT_IDLE || node->fetch.serving) return; /* it would change what is given */
    if (state_is_used(node)) return;
    /* Who joins asks anybody: else those few that it has links with would have to serve all. */
    if (peer == NONE && node->training.diverged > 0) peer = membership_pick(node, has_state_near);
    if (peer == NONE) peer = membership_pick(node, has_state);
    if (peer == NONE) return;
    exchange_reserve(node, INITIATOR);
    fetch_start(node, peer, NULL);
}

void joining_advance(struct parley_node *node)
{
    const struct parley_config *c = &node->config;
    const struct training *t = &node->training;
    bool met = node->roster->shared || node->met_all;
    if (!met && !(seeds_only_self(node) && (live_of(node) == 1 || node->contacted))) {
        if (t->stop == PARLEY_STOP_NONE || node->now_us < t->stop_us + MEET_US) return;
        out_log(node, PARLEY_LOG_ERROR, "stopped before any seed was reached");
        out_finish(node, PARLEY_ENO_SEED);
        return;
    }
    uint32_t training = node->roster->counts[ROSTER_TRAINS];
    if (node->roster->counts[ROSTER_ENDING] > 0 && node->fetch.state == FETCH_IDLE) {
        late_begin(node);
        return;
    }
    /* Who trains has met that many; told of it before being told of them, one waits. */
    if (training > 0 && node->roster->count <= c->min_peers && !t->stop) return;
    bool behind = furthest(node, PARLEY_PHASE_TRAIN) > c->behind_steps_max && is_behind(node) &&
                  !PLANTED(JOIN_UNTRAINED);
    if (training > 0 && behind && !node->strategy->catches_up)
        joining_follow(node, NONE);
    else if (node->fetch.state == FETCH_IDLE &&
             (training > 0 || live_of(node) > c->min_peers || t->stop) && !awaits_word(node) &&
             !awaits_model(node))
        begin(node);
}

uint64_t joining_deadline(const struct parley_node *node)
{
    const struct training *t = &node->training;
    if (node->roster->shared) return node->now_us + ROSTER_LOOK_US;
    if (t->stop && t->stop_us + MEET_US > node->now_us) return t->stop_us + MEET_US;
    if (t->word_us > node->now_us) return t->word_us;
    return t->bring_us > node->now_us ? t->bring_us : NEVER;
}

void joining_adopted(struct parley_node *node, uint64_t steps, uint64_t version)
{
    node->training.inherited = steps - version;
    if (!node->strategy->catches_up && self_of(node)->holds < steps) self_of(node)->holds = steps;
    if (node->strategy->adopted) node->strategy->adopted(node, &node->fetch.answer);
    exchange_release(node, INITIATOR);
    node->ledger.joins++;
    node->exchange.decided++; /* snapshots taken before are of another model */
    node->exchange.added++;
    out_log(node, PARLEY_LOG_INFO, "took model and optimizer state of %s at its step %llu",
            record_of(node, node->fetch.member)->name, (unsigned long long)steps);
    node->training.recovered += node->training.diverged > 0;
    node->training.diverged = 0;
    node->training.moved_sq = 0; /* of the model that was lost */
    node->training.helpless_us = 0;
    if (phase_of(node) == PARLEY_PHASE_JOINING)
        begin(node);
    else
        training_share_time(node, node->fetch.answer.trained_us); /* it has begun first */
}
