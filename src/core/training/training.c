/* training.c: how many steps a node makes, and when it has had enough.
 *
 * The driver is granted a few steps at a time, so that a budget of samples is met closely and the
 * schedule follows the progress of the whole cluster. How training begins is joining.c's.
 *
 * A node whose model is no longer finite takes a live peer's, three times at most; if none has one
 * to give for a while, theirs are not finite either.
 */
#include "core/training/training.h"

#include <math.h>
#include <string.h>

#include "core/agreement/agreement.h"
#include "core/exchange/exchange.h"
#include "core/exchange/slot.h"
#include "core/membership/membership.h"
#include "core/out.h"
#include "core/state.h"
#include "core/training/joining.h"
#include "core/training/stop.h"

enum {
    GRANT_US = 20000,
    GRANT_MIN = 2,
    GRANT_MAX = 64,
    DIVERGED_MAX = 3,
    LOOK_US = 10000,
    SERVED_US = 10000000,
    HEARD_MAX = 12,
    HELPLESS_US = 30000000,
    HELPLESS_STEPS = 8
};

bool training_counts_heard(const struct parley_node *node)
{
    return !node->roster->shared && live_of(node) <= HEARD_MAX;
}

/* Samples that all have used: no more than that, and where few count each by itself, no less than
 * what this node has heard of.
 * Of few members each hears in time (gossip.c). Among many the counts are averaged like the models,
 * or pushed along with them: a node's part, times the number of nodes, is about what all together
 * have used. Where pairs don't average, the others are taken to have made as much as this node
 * since they are there, or what the one model or their records say of them; and no more than that
 * where they do, as a part may be too large for long where they do so rarely. */
static uint64_t samples_used(const struct parley_node *node)
{
    const struct parley_roster *roster = node->roster;
    const struct strategy *strategy = node->strategy;
    const struct training *t = &node->training;
    if (roster->shared || training_counts_heard(node)) return roster->samples;
    double all = t->alike;
    if (strategy->offers) {
        uint32_t waited = roster->counts[ROSTER_WAITED];
        uint32_t among = t->among < waited ? t->among : waited;
        all = fmin(all,
                   fmax(t->part / t->weight - t->behind, 0) * among + (double)roster->samples_gone);
    }
    return all > (double)roster->samples ? (uint64_t)all : roster->samples;
}

/* Who goes on from a file, and has just met those who trained on meanwhile, counts what they have
 * made besides what its file tells of all, until it hears that they knew its former life. */
static bool may_count_twice(const struct parley_node *node)
{
    if (node->roster->kept_all == 0 || !stop_view_begins_to_move(node)) return false;
    for (uint32_t i = 0; i < node->roster->count; i++)
        if (roster_in(node->roster, i, ROSTER_TRAINS) && record_of(node, i)->kept_all == 0)
            return true;
    return false;
}

bool training_made_all(const struct parley_node *node, const struct record *r)
{
    return node->config.steps_budget && r->version >= node->config.steps_budget;
}

/* It was there as this node began to train, and is about to. */
static bool joins_early(const struct parley_node *node, uint32_t member)
{
    const struct record *r = record_of(node, member);
    return record_is_live(r) && r->phase == PARLEY_PHASE_JOINING && member < node->training.early;
}

bool training_counts(const struct parley_node *node, uint32_t member)
{
    const struct record *r = record_of(node, member);
    bool early = node->now_us < node->training.early_us && joins_early(node, member);
    return early || (record_is_live(r) && r->phase == PARLEY_PHASE_TRAIN);
}

/* What this node has made since it last heard of that one, if that one goes on; else 0. */
static uint64_t since_heard(const struct parley_node *node, uint32_t i)
{
    const struct record *r = record_of(node, i);
    uint64_t own = self_of(node)->samples, heard = node->members[i].heard;
    bool trains = r->state == PARLEY_MEMBER_ALIVE && r->phase == PARLEY_PHASE_TRAIN &&
                  !training_made_all(node, r);
    return trains && (int)i != node->self && own > heard ? own - heard : 0;
}

/* Others are heard of now and then, and go on meanwhile as this node does. */
uint64_t training_reckoned(const struct parley_node *node)
{
    uint64_t samples = samples_used(node);
    if (!training_counts_heard(node) || phase_of(node) != PARLEY_PHASE_TRAIN) return samples;
    for (uint32_t i = 0; i < node->roster->count; i++)
        samples += since_heard(node, i);
    return samples;
}

/* Of many; and whoever was slower than this node until it was heard of, goes on so. */
static double reckoned_of_many(const struct parley_node *node)
{
    double samples = (double)node->roster->samples;
    for (uint32_t i = 0; i < node->roster->count; i++) {
        double heard = (double)node->members[i].heard, made = (double)record_of(node, i)->samples;
        samples += (double)since_heard(node, i) * (made < heard ? made / heard : 1);
    }
    return samples;
}

/* While many join, who was there first has far more behind it than the rest: its part is the
 * cluster's only for those it has been averaged among, and less what it was above them. */
void training_averaged(struct parley_node *node, double gap, double factor)
{
    struct training *t = &node->training;
    double behind = gap < 0 ? -gap * (1 - factor) : 0;
    t->part += gap * factor;
    t->behind = fmax(behind, t->behind / 2);
    t->among = node->roster->counts[ROSTER_WAITED];
}

/* Whichever part of a budget is the greatest leads. */
static void lead(struct parley_pace *pace, double made, double a_step, double budget)
{
    if (!(budget > 0) || made / budget < pace->progress) return;
    pace->progress = made / budget;
    pace->slope = a_step / budget;
}

uint64_t training_spent_us(const struct parley_node *node)
{
    return node->now_us - node->training.start_us;
}

/* What the living have made of a budget of steps, on average: a slow node's last steps, made while
 * the others wait for it, are not to be those of a beginner. Others are beyond what was heard of
 * them by the samples that they have more, at as many a step as all have, and no fewer than this
 * node: who was started anew may have its former steps without their samples. Where all make steps
 * in common, each node's count is that. */
static void lead_by_steps(const struct parley_node *node, struct parley_pace *pace)
{
    const struct parley_roster *roster = node->roster;
    const struct training *t = &node->training;
    double budget = (double)node->config.steps_budget, live = live_of(node);
    if (node->strategy->steps) {
        lead(pace, (double)self_of(node)->version, 1, budget);
        return;
    }
    double steps = (double)roster->steps;
    double heard = (double)(roster->samples - roster->samples_gone);
    double reckoned = (double)(training_reckoned(node) - roster->samples_gone);
    double a_step = steps > 0 ? heard / steps : 0;
    if (t->version > 0) a_step = fmax(a_step, (double)t->samples / (double)t->version);
    double beyond = a_step > 0 ? (reckoned - heard) / a_step : 0;
    lead(pace, (steps + beyond) / live, roster->counts[ROSTER_UNMADE] / live, budget);
}

/* Others go on as this node does. Who comes late does not take it back. */
static struct parley_pace pace_of(const struct parley_node *node)
{
    const struct parley_config *c = &node->config;
    const struct training *t = &node->training;
    struct parley_pace pace = {.made = t->version, .progress = t->progress};
    if (!t->started) return pace;
    if (t->progress == 0 || !may_count_twice(node))
        lead(&pace, (double)training_reckoned(node), (double)c->batch * live_of(node),
             (double)c->samples_budget);
    lead_by_steps(node, &pace);
    lead(&pace, (double)training_spent_us(node), t->rate > 0 ? 1e6 / t->rate : 0,
         (double)c->time_budget_us);
    return pace;
}

double parley_pace_progress(const struct parley_pace *pace, uint64_t made)
{
    return fmin(pace->progress + pace->slope * (double)(made - pace->made), 1);
}

double training_progress(const struct parley_node *node)
{
    struct parley_pace pace = pace_of(node);
    return parley_pace_progress(&pace, pace.made);
}

void training_share_time(struct parley_node *node, uint64_t spent_us)
{
    if (training_spent_us(node) < spent_us) node->training.start_us = node->now_us - spent_us;
}

/* ---- Training -------------------------------------------------------------------------------- */

void training_counted(struct parley_node *node)
{
    struct record *self = self_of(node);
    uint64_t budget = node->config.steps_budget, before = self->version;
    uint64_t made = node->strategy->steps ? node->strategy->steps(node) : node->training.version;
    self->version = made + node->training.before.steps;
    /* All wait for the last to make it. */
    membership_changed(node, budget && self->version >= budget && before < budget);
}

/* Peers take no greater numbers, and would turn away what this node says. */
static bool is_countable(const struct training *t, const struct parley_event *event)
{
    return event->stepped.version <= TRAINED_MAX - t->before.steps &&
           event->stepped.samples <= TRAINED_MAX - t->before.samples;
}

/* What all have made meanwhile, by what this node has: as much each, or in the model that it was
 * given last are so many gradients more, each of as many samples as its own. That model may be the
 * first with any, or that of a new server, which lacks some. */
static double made_by_all(struct parley_node *node, const struct parley_event *event,
                          double samples)
{
    uint64_t holds = self_of(node)->holds, before = node->training.held;
    uint64_t steps = event->stepped.version;
    node->training.held = holds;
    if (!node->strategy->merges_each || before == 0 || holds < before || steps == 0)
        return samples * node->roster->counts[ROSTER_WAITED];
    return (double)event->stepped.samples / (double)steps * (double)(holds - before);
}

void training_stepped(struct parley_node *node, const struct parley_event *event)
{
    struct training *t = &node->training;
    struct record *self = self_of(node);
    if (!is_countable(t, event)) {
        out_log(
            node, PARLEY_LOG_ERROR,
            "this node alone would have 10^18 steps or samples: its trainer gives a wrong number");
        out_finish(node, PARLEY_EUSAGE);
        return;
    }
    uint64_t steps = event->stepped.version - t->version;
    uint64_t took_us = node->now_us - t->stepped_us;
    if (steps > 0 && took_us > 0) {
        double rate = (double)steps * 1e6 / (double)took_us;
        t->rate = t->rate > 0 ? 0.9 * t->rate + 0.1 * rate : rate;
        t->stepped_us = node->now_us;
    }
    t->version = event->stepped.version;
    if (t->granted < t->version) t->granted = t->version; /* after HALT one step completes */
    double samples = (double)(event->stepped.samples - t->samples);
    t->part += samples;
    t->alike += made_by_all(node, event, samples);
    double moved_sq = event->stepped.moved_sq;
    if (moved_sq > 0 && isfinite(moved_sq))
        t->moved_sq = t->moved_sq > 0 ? 0.9 * t->moved_sq + 0.1 * moved_sq : moved_sq;
    t->samples = event->stepped.samples;
    self->samples = t->samples + t->before.samples;
    /* No models that come in tell of it in time. */
    bool rarely = node->strategy->answers && (!node->strategy->offers || node->strategy->due);
    if (rarely && !node->roster->shared) t->alike = fmin(t->alike, reckoned_of_many(node));
    self->place = event->stepped.place;
    training_counted(node);
    t->progress = training_progress(node);
    if (!isfinite(event->stepped.loss) && t->diverged == 0) t->diverged = 1;
}

static uint64_t time_left_us(const struct parley_node *node)
{
    uint64_t budget_us = node->config.time_budget_us, spent_us = training_spent_us(node);
    return spent_us < budget_us ? budget_us - spent_us : 0;
}

static bool time_is_spent(const struct parley_node *node)
{
    return node->config.time_budget_us && time_left_us(node) == 0;
}

static bool budget_is_spent(const struct parley_node *node)
{
    const struct parley_config *c = &node->config;
    if (c->samples_budget && samples_used(node) >= c->samples_budget && !may_count_twice(node))
        return true;
    if (time_is_spent(node)) return true;
    /* Who is about to train counts, too: else a start-up race would make it late. */
    return c->steps_budget && node->roster->counts[ROSTER_UNMADE] == 0;
}

/* Who was there as this node began is about to train: a budget that is spent by then, as where all
 * go on from files of its end, would make it late, and who has never trained counts for no
 * majority.
 */
static bool awaits_joiners(const struct parley_node *node)
{
    const struct training *t = &node->training;
    bool gives = node->now_us < node->fetch.served_us + SERVED_US;
    if (node->config.quorum != PARLEY_QUORUM_MAJORITY) return false;
    if (node->roster->counts[ROSTER_JOINING] == 0) return false;
    if (node->now_us >= t->early_us && !gives) return false;
    for (uint32_t i = 0; i < node->roster->count; i++)
        if (joins_early(node, i)) return true;
    return false;
}

/* Steps that may be outstanding: about 20 ms of them, and never more than this node's part of what
 * is left of the budget. */
static uint64_t grant_target(const struct parley_node *node)
{
    const struct parley_config *c = &node->config;
    const struct training *t = &node->training;
    double target = t->rate * GRANT_US / 1e6;
    target = target < GRANT_MIN ? GRANT_MIN : target > GRANT_MAX ? GRANT_MAX : target;
    if (c->samples_budget) {
        double left = (double)c->samples_budget - (double)samples_used(node);
        double share = ceil(left / ((double)c->batch * live_of(node)));
        if (share < target) target = share > 0 ? share : 0;
    }
    if (c->steps_budget) {
        double left = (double)c->steps_budget - (double)self_of(node)->version;
        if (left < target) target = left > 0 ? left : 0;
    }
    return (uint64_t)target;
}

bool training_wants(const struct parley_node *node)
{
    return grant_target(node) > 0 && node->training.diverged == 0;
}

static void allow(struct parley_node *node, uint64_t steps)
{
    struct parley_update *update = out_add(node, PARLEY_UPDATE_TRAIN);
    update->train.steps = steps;
    update->train.pace = pace_of(node);
    update->train.live = live_of(node);
    update->train.inherited = node->training.inherited;
    update->train.weight = node->training.weight / node->training.unit;
}

static void grant(struct parley_node *node)
{
    struct training *t = &node->training;
    if (node->strategy->splits) return; /* it asks by itself */
    /* A step that was under way at a HALT is made all the same. */
    uint64_t outstanding = t->granted > t->version ? t->granted - t->version : 0;
    uint64_t target = grant_target(node);
    uint64_t limit = node->strategy->limit ? node->strategy->limit(node) : NEVER;
    if (limit < t->version + target) target = limit > t->version ? limit - t->version : 0;
    if (2 * outstanding >= target) return;
    allow(node, target - outstanding);
    t->granted = t->version + target;
}

/* More is granted when less than half of what may be outstanding is left; a period may end before
 * that. An exchange that is due already waits for something else. Most strategies look at each
 * step.
 */
uint64_t training_awaits(const struct parley_node *node)
{
    const struct training *t = &node->training;
    const struct strategy *s = node->strategy;
    const struct exchange *e = &node->exchange;
    uint64_t next = t->version + 1;
    bool each = s->advance || s->due || s->limit || s->splits || node->config.mix_steered;
    if (each || phase_of(node) != PARLEY_PHASE_TRAIN || node->leaving || t->diverged) return next;
    uint64_t target = grant_target(node), left = target > 0 ? (target - 1) / 2 : 0;
    uint64_t at = t->granted > left ? t->granted - left : 0;
    bool starts = s->offers && e->slots[INITIATOR].state == SLOT_IDLE;
    if (starts && e->next_version > t->version && e->next_version < at) at = e->next_version;
    return at > next ? at : next;
}

void training_weigh(struct parley_node *node, enum op_kind kind, int owner, uint32_t buffer,
                    double weight, double part)
{
    double sum = node->training.weight + weight;
    struct parley_update *update = out_vector(node, PARLEY_UPDATE_MIX, kind, owner, buffer);
    update->vector.factor = (float)(weight / sum);
    update->vector.keep = 1 - update->vector.factor;
    node->training.weight = sum;
    node->training.part += part;
    allow(node, 0); /* steps already allowed go by it too */
}

static const char diverged_text[] =
    "the loss or the model is no longer finite after %llu steps; try a smaller learning rate";

/* Until then help must have come. A peer gives its state at the end of a step, and before that is
 * through with its exchange, and maybe with another, which take two ends each. */
static uint64_t helpless_us(const struct parley_node *node)
{
    double rate = node->training.rate;
    uint64_t steps_us = rate > 0 ? (uint64_t)(HELPLESS_STEPS * 1e6 / rate) : 0;
    return node->now_us + (steps_us > HELPLESS_US ? steps_us : HELPLESS_US);
}

/* True while this node waits for another's model in place of its own. */
static bool recovers(struct parley_node *node)
{
    struct training *t = &node->training;
    if (t->diverged == 0) return false;
    bool news = t->helpless_us == 0;
    if (news) t->helpless_us = helpless_us(node);
    bool fetching = node->fetch.state >= FETCH_ASKED; /* which comes to an end, if nothing comes */
    bool helpless = live_of(node) == 1 || (node->now_us >= t->helpless_us && !fetching);
    /* Where gradients are averaged all have the same model, or had: there is none to take. */
    if (t->recovered == DIVERGED_MAX || helpless || node->strategy->splits) {
        out_log(node, PARLEY_LOG_ERROR, diverged_text, (unsigned long long)t->version);
        out_finish(node, PARLEY_EDIVERGED);
        return true;
    }
    if (news) out_log(node, PARLEY_LOG_WARN, "the model is no longer finite: taking a live peer's");
    if (t->granted > t->version) {
        out_add(node, PARLEY_UPDATE_HALT);
        t->granted = t->version;
    }
    joining_follow(node, NONE);
    return true;
}

/* Nothing of this node is under way, and what it has learnt is with a few others. */
static bool has_parted(struct parley_node *node)
{
    const struct exchange *e = &node->exchange;
    const struct strategy *s = node->strategy;
    uint32_t others = live_of(node) - 1;
    uint32_t wanted = !s->answers ? 0 : others < LEAVE_EXCHANGES ? others : LEAVE_EXCHANGES;
    if (e->slots[INITIATOR].state != SLOT_IDLE || e->slots[RESPONDER].state != SLOT_IDLE)
        return false;
    if (phase_of(node) == PARLEY_PHASE_TRAIN && s->stop && !s->stop(node)) return false;
    return e->left_count >= wanted;
}

static void leave(struct parley_node *node)
{
    enum parley_phase phase = phase_of(node);
    bool late = node->now_us >= node->leave_us + node->config.leave_timeout_us / 2;
    bool mixes = phase == PARLEY_PHASE_TRAIN || phase == PARLEY_PHASE_SETTLE;
    if (!has_parted(node) && mixes && !late) return;
    /* It has what all have, and is done soon. */
    if (node->agreement.candidate == CANDIDATE_PUBLISHING && !late) return;
    if (phase != PARLEY_PHASE_DONE && phase != PARLEY_PHASE_LEFT)
        node_phase(node, PARLEY_PHASE_LEFT);
    bool lost = phase == PARLEY_PHASE_DONE && node->agreement.failed_write;
    agreement_finish(node, lost ? PARLEY_ENOT_WRITTEN : PARLEY_OK);
}

void training_advance(struct parley_node *node)
{
    enum parley_phase phase = phase_of(node);
    if (node->leaving) {
        leave(node);
    } else if (phase == PARLEY_PHASE_JOINING) {
        joining_advance(node);
    } else if (phase == PARLEY_PHASE_TRAIN && !recovers(node)) {
        joining_recount(node);
        if (node->training.stop != PARLEY_STOP_NONE)
            stop_raise(node, node->training.stop);
        else if (!budget_is_spent(node))
            grant(node);
        else if (!awaits_joiners(node))
            stop_raise(node, time_is_spent(node) ? PARLEY_STOP_DEADLINE : PARLEY_STOP_BUDGET);
    } else if ((phase == PARLEY_PHASE_STOP || phase == PARLEY_PHASE_SETTLE) &&
               node->agreement.candidate == CANDIDATE_NONE) {
        recovers(node);
    }
}

void training_leave(struct parley_node *node)
{
    if (node->leaving) return;
    node->leaving = true;
    node->leave_us = node->now_us;
    slots_stale(node);
    out_add(node, PARLEY_UPDATE_HALT);
}

uint64_t training_deadline(const struct parley_node *node)
{
    const struct training *t = &node->training;
    uint64_t at = NEVER;
    if (node->leaving) return node->now_us + LOOK_US;
    if (phase_of(node) == PARLEY_PHASE_JOINING) return joining_deadline(node);
    if (t->helpless_us > node->now_us) return t->helpless_us;
    if (phase_of(node) == PARLEY_PHASE_TRAIN && awaits_joiners(node) && budget_is_spent(node))
        return node->now_us + LOOK_US;
    if (phase_of(node) == PARLEY_PHASE_TRAIN && node->config.time_budget_us && !t->diverged &&
        t->stop == PARLEY_STOP_NONE)
        at = node->now_us + time_left_us(node);
    bool looks = node->roster->shared && training_made_all(node, self_of(node));
    if (phase_of(node) == PARLEY_PHASE_TRAIN && looks)
        at = earlier(at, node->now_us + ROSTER_LOOK_US);
    return at;
}
