/* stop.c: see stop.h. */
#include "core/training/stop.h"

#include "core/exchange/slot.h"
#include "core/link/seeds.h"
#include "core/membership/membership.h"
#include "core/out.h"
#include "core/plant.h"
#include "core/state.h"
#include "core/strategy/strategy.h"

enum { MERGE_US = 3000000 };

void stop_tell(struct parley_node *node, enum parley_stop cause)
{
    self_of(node)->stop = cause;
    membership_changed(node, true);
}

bool stop_has_trained(const struct record *r)
{
    return r->stop != PARLEY_STOP_NONE && r->stop_live > 0;
}

static void stop(struct parley_node *node, enum parley_stop cause, uint32_t stop_live)
{
    struct record *self = self_of(node);
    if (self->phase == PARLEY_PHASE_LATE) stop_tell(node, cause);
    if (self->phase > PARLEY_PHASE_TRAIN) return;
    bool spent = cause == PARLEY_STOP_BUDGET || cause == PARLEY_STOP_DEADLINE;
    node->training.reached = spent ? 1 : training_progress(node);
    self->stop = cause;
    self->stop_live = stop_live;
    out_add(node, PARLEY_UPDATE_HALT);
    /* Over long lines an exchange of training takes as long as a better one of settling. */
    struct slot *slot = &node->exchange.slots[INITIATOR];
    if (slot->state >= SLOT_CONNECTING && slot->state < SLOT_ADDING)
        slot_abort(node, slot, EXCHANGE_NOT_TRAINING, slot->state >= SLOT_OFFERED);
    out_log(node, PARLEY_LOG_INFO, "training ends: %s", parley_stop_name(cause));
    node_phase(node, PARLEY_PHASE_STOP);
}

/* What a strategy has under way among several nodes ends first, so that all end with the same. */
static bool may_stop(struct parley_node *node)
{
    return phase_of(node) != PARLEY_PHASE_TRAIN || !node->strategy->stop ||
           node->strategy->stop(node);
}

void stop_raise(struct parley_node *node, enum parley_stop cause)
{
    struct training *t = &node->training;
    if (cause > PARLEY_STOP_OPERATOR) cause = PARLEY_STOP_OPERATOR; /* peers take no other */
    if (phase_of(node) > PARLEY_PHASE_JOINING && may_stop(node)) {
        stop(node, cause, live_of(node));
    } else if (t->stop == PARLEY_STOP_NONE) { /* its untrained model is nothing to agree on */
        t->stop = cause;
        t->stop_us = node->now_us;
        if (phase_of(node) == PARLEY_PHASE_JOINING) seeds_hurry(node);
    }
}

/* Where a cut has healed nodes come back one by one, and each side takes over whom the other had
 * given up, until those refute it: for a moment hardly anybody seems to be live. */
static bool view_moves(struct parley_node *node)
{
    struct training *t = &node->training;
    if (t->turnover != node->roster->turnover) {
        if (t->alone || node->now_us >= t->turnover_us + MERGE_US) t->moves_us = node->now_us;
        t->alone = live_of(node) == 1;
        t->turnover = node->roster->turnover;
        t->turnover_us = node->now_us;
    }
    return node->now_us < t->turnover_us + MERGE_US;
}

bool stop_view_begins_to_move(const struct parley_node *node)
{
    const struct training *t = &node->training;
    return t->turnover != node->roster->turnover || node->now_us < t->moves_us + MERGE_US;
}

/* All who are live; while the view moves, who are known, those who are done and left among them.
 * Who has raised a STOP and left is a voice still: by leaving nobody makes others' weightier. */
static uint32_t voices_of(const struct parley_node *node, bool moves)
{
    uint32_t voices = moves ? roster_known(node->roster) : live_of(node);
    for (uint32_t i = 0; i < node->roster->count; i++) {
        const struct record *r = record_of(node, i);
        bool counted = moves && r->phase == PARLEY_PHASE_DONE;
        voices += r->state == PARLEY_MEMBER_LEFT && r->stop != PARLEY_STOP_NONE && !counted;
    }
    return voices;
}

void stop_obey(struct parley_node *node)
{
    bool moves = view_moves(node);
    if (node->roster->counts[ROSTER_STOPPED] == 0 || PLANTED(STOP_UNHEARD)) return;
    uint32_t voices = voices_of(node, moves);
    for (uint32_t i = 0; i < node->roster->count; i++) {
        const struct record *r = record_of(node, i);
        /* What an operator says holds for all, however few its node saw when it was cut off. */
        bool asked = r->stop == PARLEY_STOP_OPERATOR && membership_is_live(node, (int)i);
        bool counts = r->state != PARLEY_MEMBER_DEAD && r->stop != PARLEY_STOP_NONE &&
                      (asked || 2 * r->stop_live >= voices); /* at least half raised it */
        if (counts && !may_stop(node)) { /* its end has begun, even if who asked for it dies */
            node->training.stop = (enum parley_stop)r->stop;
            return;
        }
        if (counts) {
            stop(node, (enum parley_stop)r->stop, r->stop_live ? r->stop_live : live_of(node));
            return;
        }
    }
}
