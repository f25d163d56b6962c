/* settling.c: see settling.h. */
#include "core/agreement/settling.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

#include "core/agreement/holding.h"
#include "core/agreement/said.h"
#include "core/drift/drift.h"
#include "core/exchange/doubt.h"
#include "core/exchange/pairing.h"
#include "core/exchange/robust.h"
#include "core/exchange/slot.h"
#include "core/link/seeds.h"
#include "core/out.h"
#include "core/state.h"

enum { JOINING_US = 3000000 };

/* It counts from when the last one came to settle: who comes late, as after a cut, brings all that
 * mixing has done back to its beginning. And from the end of the first sweep, which lasts as long
 * as the line makes it: the exchange under way is waited for in any case, so that to give up then
 * saves little and picks a model that is hardly averaged. Who comes and goes for ever delays it so
 * often at most. */
static bool is_timed_out(struct parley_node *node)
{
    struct agreement *a = &node->agreement;
    uint32_t settlers = node->roster->counts[ROSTER_WAITED] - node->roster->counts[ROSTER_TRAINS];
    if (settlers > a->settlers) a->mixes_us = node->now_us;
    a->settlers = settlers;
    if (pairing_is_first(node) && node->roster->counts[ROSTER_PROPOSED] == 0)
        a->sweeps_us = node->now_us;
    uint64_t settle_us = node->config.settle_timeout_us, from_us = a->mixes_us;
    if (pairing_is_kept(node) && a->sweeps_us > from_us) from_us = a->sweeps_us;
    return node->now_us >= from_us + settle_us ||
           node->now_us >= a->since_us + SETTLE_TIMES * settle_us;
}

/* Somebody is here, and nobody who ever trained: who comes anew may be all that leads to those. */
static bool met_latecomers_alone(const struct parley_node *node)
{
    for (uint32_t i = 0; i < node->roster->count; i++) {
        const struct record *r = record_of(node, i);
        bool late = r->phase == PARLEY_PHASE_JOINING || r->phase == PARLEY_PHASE_LATE;
        if ((int)i != node->self && !(late && record_is_live(r))) return false;
    }
    return node->roster->count > 1;
}

static void say_unsettled(struct parley_node *node)
{
    char drift[32] = "not known", own[32] = "nobody knows how far";
    if (self_of(node)->measured) snprintf(own, sizeof own, "%.2e", drift_own(node));
    if (node->drift.value >= 0) snprintf(drift, sizeof drift, "%.2e", node->drift.value);
    out_log(node, PARLEY_LOG_WARN,
            "drift is %s after %.0f s, and this model %s from the mean: not within the "
            "tolerance of %.2e; agreeing all the same",
            drift, (double)(node->now_us - node->agreement.since_us) / 1e6, own,
            node->config.tolerance);
}

void settling_advance(struct parley_node *node)
{
    struct agreement *a = &node->agreement;
    bool late = is_timed_out(node);
    /* What is locked will be picked: no mixing changes that, and who locked mixes no more. */
    bool locked = said_locked(node);
    if (node->training.diverged || (!drift_settled(node) && !late && !locked)) return;
    /* Who is about to come, or is yet to be met, may have mixed with others. */
    bool meets = said_joining(node) || !seeds_met(node) || met_latecomers_alone(node);
    if (meets && node->now_us < a->since_us + JOINING_US) return;
    if (node->now_us < a->rejoin_us) return; /* the others follow */
    struct slot *slot = &node->exchange.slots[INITIATOR];
    /* Who only says that it will answer may do so for ever. */
    if (late && slot->state >= SLOT_CONNECTING && slot->state <= SLOT_OFFERED)
        slot_abort(node, slot, EXCHANGE_STALLED, slot->state == SLOT_OFFERED);
    if (node->drift.sketching || slot->state != SLOT_IDLE) return;
    if (doubt_blocks(node) && !late) return;
    if (!drift_settled(node) && !locked) say_unsettled(node);
    holding_reserve(node);
    /* Who has not measured itself against others does not win against those who have. */
    a->score = self_of(node)->measured ? sqrt(self_of(node)->distance_sq) : DBL_MAX;
    a->candidate = CANDIDATE_TAKING;
    out_vector(node, PARLEY_UPDATE_TAKE, OP_CANDIDATE_TAKE, NONE, a->buffer);
}

void settling_begin(struct parley_node *node)
{
    self_of(node)->near = 0;
    node_phase(node, PARLEY_PHASE_SETTLE);
    node->agreement.settlers = 0;
    slots_stale(node);
    pairing_start(node);
    robust_settles(node);
}
