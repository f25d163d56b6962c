/* drift.c: how far the models are apart, without a leader.
 *
 *   sigma = sqrt(1/n sum_i ||x_i - mean||^2), relative drift = sigma / ||mean||
 *
 * While training, every exchange measures ||s_A - s_B||^2 exactly, whose mean over random pairs is
 * 2n/(n-1) sigma^2 (Kong et al. 2021; on the complete graph). In SETTLE each node sends a
 * CountSketch of its model (linear, so that S x - mean S = S(x - mean) with no cancellation); drift
 * is the rms of their distances from the mean of all. There are at most SKETCHES_MAX sketches:
 * where there are more nodes, those with the least hash are the sample. Every node measures its own
 * distance to the sample's mean and says whether that is within tolerance, and where there are more
 * than are sketched no table is before all have said so: no outlier hides.
 *
 *   sweep   of averagings, after which all models are equal if all went well (pairing.c)
 *   sketch
 *   hold    no averaging is begun until the sketches of all are here: a table
 *   sketch  once more, if the table is within tolerance; else a sweep
 *   hold    until there is a newer sketch of everybody; if that table is within tolerance, too,
 *           this node has settled
 *
 * Nothing but averaging moves the models here. Sketches are of different moments, though, and a
 * model may stand where the others stood a while ago: hence the second table, of sketches that were
 * all taken after the first. And each exchange measures two models exactly: once a node meets one
 * farther from it than two can be that are both within tolerance, no table counts that it has seen,
 * nor a sketch from before this sweep.
 * No sketch is taken while somebody trains, as no table could be of use, nor one that can't be
 * afforded (sketches.c).
 */
#include "core/drift/drift.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "core/drift/sketches.h"
#include "core/exchange/doubt.h"
#include "core/exchange/exchange.h"
#include "core/exchange/pairing.h"
#include "core/exchange/slot.h"
#include "core/membership/membership.h"
#include "core/out.h"
#include "core/plant.h"
#include "core/state.h"

enum {
    TURNS_PER_TIME = 64, /* in as long as it has been settling, at most so many sketches */
    HOLD_US = 2000000,   /* longer than a table takes over all but the worst lines */
    FAR_US = 5000000,    /* for so long many nodes take none while they meet far ones */
    WORDS = 4            /* that all are near comes within so many exchanges, or not soon */
};

/* Weight of the newest pair in the moving means: about the last 20 exchanges. */
static const double PAIR_WEIGHT = 0.1;

static double relative(double distance_sq, double mean_sq)
{
    if (distance_sq <= 0) return 0;
    return sqrt(distance_sq) / (mean_sq >= 1e-24 ? sqrt(mean_sq) : 1);
}

/* This table is not waited for any more: what is averaged from here on is the next sweep. */
static void see(struct parley_node *node)
{
    struct drift *drift = &node->drift;
    if (drift->seen == drift->version) return;
    drift->seen = drift->version;
    drift->swept = node->roster->sketched;
}

/* Nor looked at: what it tells of is over. */
static void drop_table(struct parley_node *node)
{
    see(node);
    node->drift.judged = node->drift.version;
}

void drift_pair(struct parley_node *node, double norm_sq, double own_norm_sq)
{
    struct drift *drift = &node->drift;
    double distance = relative(norm_sq, own_norm_sq);
    bool kept = pairing_is_kept(node), settles = phase_of(node) == PARLEY_PHASE_SETTLE;
    if (distance > node->config.tolerance && settles && !kept) drift->far = true;
    if (distance > 2 * node->config.tolerance) {
        uint64_t stale = kept ? drift->swept : node->roster->sketched;
        if (!node->roster->shared && stale > drift->stale) drift->stale = stale;
        drop_table(node);
        drift->passed = 0;
        if (self_of(node)->near) {
            self_of(node)->near = 0;
            membership_changed(node, true);
        }
    }
    double weight = drift->pairs++ < 10 ? 1.0 / (double)drift->pairs : PAIR_WEIGHT;
    drift->pair_sq += weight * (norm_sq - drift->pair_sq);
    drift->own_sq += weight * (own_norm_sq - drift->own_sq);
    if (phase_of(node) != PARLEY_PHASE_TRAIN) return;
    double n = live_of(node) > 1 ? live_of(node) : 2;
    double sigma_sq = drift->pair_sq * (n - 1) / (2 * n);
    drift->value = relative(sigma_sq, drift->own_sq - sigma_sq);
    drift->measured_us = node->now_us;
}

/* ---- The measure ----------------------------------------------------------------------------- */

static bool all_settle(const struct parley_node *node)
{
    return node->roster->counts[ROSTER_SETTLES] == node->roster->counts[ROSTER_WAITED];
}

/* Who is waited for has changed: what was found of the others says nothing of all. */
static void watch_members(struct parley_node *node)
{
    struct drift *drift = &node->drift;
    if (drift->among == node->roster->among) return;
    drift->among = node->roster->among;
    drift->passed = 0;
    drift->late = drift->sketching;
    drop_table(node);
}

/* How far the sample and this node's newest sketch are from the sample's mean. */
static void look(struct parley_node *node)
{
    struct drift *drift = &node->drift;
    const struct roster_sample *sample = sketches_sample(node);
    const float *sketches[SKETCHES_MAX];
    double each_sq[SKETCHES_MAX] = {0}, sum_sq = 0, largest_sq, own_sq = 0, mean_sq = 0;
    for (uint32_t i = 0; i < sample->count; i++)
        sketches[i] =
            sketches_of(node, record_of(node, (uint32_t)sample->members[i])->boot)->buckets;
    for (int b = 0; b < MESSAGE_BUCKETS; b++) {
        double sum = 0;
        for (uint32_t i = 0; i < sample->count; i++)
            sum += (double)sketches[i][b];
        double mean = sum / sample->count, own = (double)drift->own[b] - mean;
        mean_sq += mean * mean;
        own_sq += own * own;
        for (uint32_t i = 0; i < sample->count; i++) {
            double gap = (double)sketches[i][b] - mean;
            each_sq[i] += gap * gap;
        }
    }
    largest_sq = own_sq;
    for (uint32_t i = 0; i < sample->count; i++) {
        sum_sq += each_sq[i];
        if (each_sq[i] > largest_sq) largest_sq = each_sq[i];
    }
    drift->value = relative(sum_sq / sample->count, mean_sq);
    drift->largest = relative(largest_sq, mean_sq);
    drift->distance_sq = own_sq;
    drift->mean_sq = mean_sq;
    drift->measured_us = node->now_us;
}

static void say_own(struct parley_node *node)
{
    const struct drift *drift = &node->drift;
    struct record *self = self_of(node);
    bool near = relative(drift->distance_sq, drift->mean_sq) <= node->config.tolerance;
    bool urgent = near != self->near || sketches_samples(node, node->self);
    self->measured = drift->version;
    self->distance_sq = drift->distance_sq;
    self->mean_sq = drift->mean_sq;
    self->near = near;
    membership_changed(node, urgent);
}

/* Somebody of whom there is no sketch, as there are too many, has not said that it is near. */
static bool one_is_far(const struct parley_node *node)
{
    const uint32_t *counts = node->roster->counts;
    return counts[ROSTER_WAITED] > SKETCHES_MAX && counts[ROSTER_FAR] > 0;
}

/* That it is so may be under way. */
static void wait_for_words(struct parley_node *node)
{
    uint64_t until_us = node->now_us + WORDS * sketches_interval_us(node);
    node->drift.hold_us = earlier(node->drift.hold_us, until_us);
}

static void measure(struct parley_node *node)
{
    struct drift *drift = &node->drift;
    const struct parley_roster *roster = node->roster;
    watch_members(node);
    if (!drift->version || !all_settle(node) || !sketches_are_complete(node) ||
        sketches_sample(node)->count == 0)
        return;
    uint64_t there = roster->sketched + roster->sampled + drift->version;
    if (there != drift->looked) look(node);
    drift->looked = there;
    /* A table in which some are yet to come says little; but something is said in the end. */
    bool fresh = sketches_are_fresh(node);
    uint32_t measured = self_of(node)->measured;
    if (measured != drift->version && (fresh || drift->version > measured + 1)) say_own(node);
    if (drift->judged == drift->version || !fresh) return;
    bool near = drift->largest <= node->config.tolerance;
    if (near && !self_of(node)->near) say_own(node); /* it had looked before all were there */
    if (near && one_is_far(node)) {
        wait_for_words(node);
        return;
    }
    see(node);
    drift->passed = near ? drift->passed + 1 : 0;
    if (!near) return; /* of those who are behind, sketches may be on their way */
    drift->judged = drift->version;
    drift->stale = roster->sketched; /* the next table is of newer ones */
}

double drift_own(const struct parley_node *node)
{
    const struct record *self = self_of(node);
    return relative(self->distance_sq, self->mean_sq);
}

/* No other sketch will come: what is to be picked is among what they have proposed, and neither
 * mixing nor waiting changes that. */
static bool others_have_proposed(const struct parley_node *node)
{
    const struct roster_sample *sample = sketches_sample(node);
    uint32_t others = 0;
    for (uint32_t i = 0; i < sample->count; i++) {
        if (sample->members[i] == node->self) continue;
        if (record_of(node, (uint32_t)sample->members[i])->phase < PARLEY_PHASE_PROPOSED)
            return false;
        others++;
    }
    return others > 0;
}

bool drift_settled(struct parley_node *node)
{
    watch_members(node);
    if (self_of(node)->measured && others_have_proposed(node)) return true;
    /* Who joins or is late does not mix: there may be live peers and no one else here. */
    uint32_t self = record_is_waited_for(self_of(node));
    return node->roster->counts[ROSTER_WAITED] == self || node->drift.passed >= 2 ||
           (PLANTED(SETTLE_UNMIXED) && node->drift.judged);
}

/* ---- Taking ---------------------------------------------------------------------------------- */

/* The newest sketch was in a table within tolerance, the first one: a second says whether it lasts.
 */
static bool is_near(const struct drift *drift)
{
    return drift->passed == 1 && drift->judged == drift->version;
}

/* A table is about to be whole. */
static bool holds(const struct parley_node *node)
{
    const struct drift *drift = &node->drift;
    return drift->seen != drift->version && node->now_us < drift->hold_us;
}

/* True if a sketch is to be taken now. */
static bool is_due(struct parley_node *node)
{
    struct drift *drift = &node->drift;
    bool many = sketches_sample(node)->count == SKETCHES_MAX;
    bool early = many && drift->far && node->now_us < drift->mixes_us + FAR_US;
    return all_settle(node) && sketches_affordable(node) && !early;
}

static void take(struct parley_node *node)
{
    struct slot *slot = &node->exchange.slots[INITIATOR];
    node->drift.sketching = true;
    node->drift.late = false;
    exchange_reserve(node, INITIATOR);
    out_vector(node, PARLEY_UPDATE_TAKE, OP_SKETCH_TAKE, NONE, slot->own);
}

bool drift_advance(struct parley_node *node)
{
    struct drift *drift = &node->drift;
    if (phase_of(node) != PARLEY_PHASE_SETTLE || node->leaving || node->training.diverged)
        return false;
    measure(node);
    if (drift->sketching) return true;
    if (drift->mixes_us != node->agreement.mixes_us) { /* somebody has come to settle */
        drift->mixes_us = node->agreement.mixes_us;
        if (!pairing_is_kept(node)) pairing_sweep(node);
    }
    if (node->exchange.slots[INITIATOR].state != SLOT_IDLE) return false;
    if (drift->passed >= 2 || holds(node)) return true;
    see(node);
    if (!is_near(drift)) {
        if (!pairing_is_swept(node)) return false;
        if (node->now_us < drift->next_us) return true; /* later, haste helps less */
    }
    /* All have made this sweep, so all settle: the news of it is under way. */
    if (pairing_is_kept(node) && !all_settle(node)) return true;
    /* What is decided and not added yet would move the model after its sketch. */
    if (slot_is_open(&node->exchange.slots[RESPONDER]) || doubt_blocks(node)) return true;
    bool due = is_due(node);
    pairing_sweep(node);
    drift->far = false;
    drift->next_us = node->now_us + (node->now_us - node->agreement.mixes_us) / TURNS_PER_TIME;
    if (due) take(node);
    return due;
}

uint64_t drift_deadline(const struct parley_node *node)
{
    const struct drift *drift = &node->drift;
    const uint64_t ends[] = {drift->next_us, drift->hold_us, drift->ask_us};
    uint64_t at_us = NEVER;
    if (phase_of(node) != PARLEY_PHASE_SETTLE) return NEVER;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (ends[i] > node->now_us) at_us = earlier(at_us, ends[i]);
    return at_us;
}

/* Of two buckets each the sum: a sketch of half as many, a squared distance by which has an error
 * of 12.5 %; and as floats, like the models themselves. What rounding adds is the same for equal
 * models. Two elements of one row that are so many apart always meet: half of the time models that
 * differ in such two alone, and in both by as much, look equal. */
static void fold(const double *sketch, float *buckets)
{
    for (int b = 0; b < MESSAGE_BUCKETS; b++) {
        double sum = 0;
        for (int i = b; i < PARLEY_SKETCH_BUCKETS; i += MESSAGE_BUCKETS)
            sum += sketch[i];
        buckets[b] = (float)fmax(fmin(sum, (double)FLT_MAX), -(double)FLT_MAX);
    }
}

void drift_done(struct parley_node *node, const struct op *op, const struct parley_event *event)
{
    struct drift *drift = &node->drift;
    struct slot *slot = &node->exchange.slots[INITIATOR];
    if (op->kind == OP_SKETCH_TAKE && !event->done.finite) {
        drift->sketching = false;
        exchange_release(node, INITIATOR);
        node->training.diverged++;
        return;
    }
    if (op->kind == OP_SKETCH_TAKE) {
        out_vector(node, PARLEY_UPDATE_SKETCH, OP_SKETCH, NONE, slot->own);
        return;
    }
    drift->sketching = false;
    exchange_release(node, INITIATOR);
    drift->version++;
    drift->hold_us = node->now_us + HOLD_US;
    if (drift->late) drop_table(node); /* all have begun a new sweep since it was begun */
    self_of(node)->sketch = drift->version;
    drift->due = true;
    if (!PLANTED(STALE_SKETCH) || drift->version == 1) fold(event->done.sketch, drift->own);
    sketches_put(node, self_of(node)->boot, drift->version, drift->own);
    measure(node);
}
