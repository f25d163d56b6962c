/* late.c: see late.h. */
#include "core/agreement/late.h"

#include "core/agreement/agreement.h"
#include "core/agreement/holding.h"
#include "core/agreement/quorum.h"
#include "core/agreement/said.h"
#include "core/agreement/settling.h"
#include "core/membership/membership.h"
#include "core/out.h"
#include "core/state.h"
#include "core/training/stop.h"

enum { ALONE_US = 30000000, REJOIN_US = 2000000, MEET_US = 3000000 };

/* It can't settle with a proposal that it had no part in. Where config.robust, nor can one that has
 * proposed apart from this node: each would take the other's model for a liar's. */
static bool is_apart(const struct parley_node *node, const struct record *r)
{
    bool proposed = r->phase == PARLEY_PHASE_PROPOSED || r->phase == PARLEY_PHASE_HELD;
    return r->phase == PARLEY_PHASE_SETTLE ||
           (node->config.robust && proposed && !r->lock_generation);
}

bool late_is_somebody_back(struct parley_node *node)
{
    struct agreement *a = &node->agreement;
    const struct record *self = self_of(node);
    const struct roster_place *places = node->roster->places;
    if (!node->members || self->phase > PARLEY_PHASE_HELD || self->lock_generation ||
        (a->candidate != CANDIDATE_OWN && a->candidate != CANDIDATE_HELD))
        return false;
    for (int i = node->roster->newest[ROSTER_NEWS];
         i != NONE && places[i].change[ROSTER_NEWS] > a->alone_news;
         i = places[i].older[ROSTER_NEWS]) {
        const struct record *r = record_of(node, (uint32_t)i);
        if (i != node->self && record_is_waited_for(r) && !node->members[i].counted &&
            is_apart(node, r))
            return true;
    }
    a->alone_news = node->roster->news;
    return false;
}

void late_begin(struct parley_node *node)
{
    node->agreement.progress_us = node->now_us;
    node->agreement.follows = false;
    node->training.helpless_us = 0; /* who could help is met only now */
    node_phase(node, PARLEY_PHASE_LATE);
    if (node->training.stop != PARLEY_STOP_NONE) stop_tell(node, node->training.stop);
}

/* Who never trained has no say, but those it waits for wait for a majority, and long: it tells so
 * once, as soon as it has had time to hear of all. */
static void tell_waiting(struct parley_node *node, bool enough)
{
    struct agreement *a = &node->agreement;
    char lacks[QUORUM_TEXT_BYTES];
    if (enough) {
        a->verify_since_us = 0;
    } else if (a->verify_since_us == 0) {
        a->verify_since_us = node->now_us;
    } else if (!a->waits && node->now_us >= a->verify_since_us + MEET_US) {
        a->waits = true;
        quorum_lacks(node, lacks, sizeof lacks);
        out_log(node, PARLEY_LOG_WARN, "%s: they wait for others, and this node for their model",
                lacks);
    }
}

bool late_comes_back(const struct parley_node *node, uint32_t member, bool others)
{
    const struct record *r = record_of(node, member);
    bool alone = r->lock_generation && node->config.quorum != PARLEY_QUORUM_MAJORITY &&
                 r->lock_voters <= node->roster->counts[ROSTER_WAITED];
    return r->phase == PARLEY_PHASE_LATE && membership_is_live(node, (int)member) &&
           stop_has_trained(r) && !(others && alone);
}

/* Taken for dead, then back: a LATE node adopts what the others agree on. But where all are late (a
 * partition that healed), or the others have ended their training and are no majority
 * (quorum_is_most()), the one of least id that may come back goes back to SETTLE, and who sees that
 * follows. */
void late_advance(struct parley_node *node)
{
    struct agreement *a = &node->agreement;
    const struct record *first = NULL, *self = self_of(node);
    const uint32_t *counts = node->roster->counts;
    bool others = counts[ROSTER_TRAINS] + counts[ROSTER_ENDING] > 0; /* not late, nor just come */
    bool enough = quorum_is_most(node) || counts[ROSTER_TRAINS] > 0;
    bool may_lead = stop_has_trained(self);
    for (uint32_t i = 0; i < node->roster->count; i++) {
        const struct record *r = record_of(node, i);
        if (late_comes_back(node, i, others) && (!first || r->boot < first->boot)) first = r;
    }
    if (others && (enough || !late_comes_back(node, (uint32_t)node->self, others)))
        a->progress_us = node->now_us;
    if (!may_lead) tell_waiting(node, quorum_is_here(node) || !others);
    /* Where all are here nobody is about to come who would change that. */
    bool misses = live_of(node) < roster_known(node->roster);
    uint64_t wait_us = misses ? AGREEMENT_PATIENCE_US : MEET_US;
    bool leads = first == self && node->now_us >= a->progress_us + wait_us;
    if (leads || (a->follows && may_lead))
        late_rejoin(node);
    else if (!first && node->now_us >= a->progress_us + ALONE_US)
        agreement_give_up(node);
    else if (node->roster->generation > 1) /* earlier it would be in the way of who is waited for */
        agreement_pass_on(node);
}

/* Back to SETTLE, to mix and propose anew. Not so who has locked: others may be done with that
 * model and gone, so it stays the one to be picked, and is held, and proposed at once; but it
 * decides nothing before others have had time to follow (agreement.c). */
void late_rejoin(struct parley_node *node)
{
    struct agreement *a = &node->agreement;
    struct record *self = self_of(node);
    bool idle = a->candidate == CANDIDATE_OWN || a->candidate == CANDIDATE_HELD;
    bool keeps = idle && self->lock_generation && said_same(a->own, self->lock_digest);
    if (a->candidate != CANDIDATE_NONE && !idle) return;
    if (idle && !keeps && !holding_let_go(node)) return;
    a->since_us = node->now_us;
    a->verify_since_us = 0; /* that was of who was here, and of the model, before */
    a->rejoin_us = node->now_us + REJOIN_US;
    /* What this node held of its generation may be counted already: it speaks anew in the next. */
    if (self->generation) self->generation++;
    a->follows = false;
    node->drift.passed = 0;
    if (!keeps) {
        settling_begin(node);
        return;
    }
    a->candidate = CANDIDATE_OWN;
    agreement_propose(node, self->generation);
}
