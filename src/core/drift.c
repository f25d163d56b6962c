/* drift.c: how far the models are apart, without a leader.
 *
 *   sigma = sqrt(1/n sum_i ||x_i - mean||^2), relative drift = sigma / ||mean||
 *
 * While training, every exchange measures ||s_A - s_B||^2 exactly, whose mean over random pairs is
 * 2n/(n-1) sigma^2 (Kong et al. 2021; on the complete graph). In SETTLE each node sends a
 * CountSketch of its model (linear, so that S x - mean S = S(x - mean) with no cancellation), and
 * says how far it is from the mean of all sketches; drift is the rms of what all say. There are at
 * most SKETCHES_MAX sketches: where there are more nodes, those with the least hash are the sample,
 * and all nodes measure their distance to its mean, so that no outlier hides.
 * In SETTLE nothing but averaging moves the models, and averaging only lowers the distance: an old
 * sketch errs on the safe side.
 */
#include <math.h>
#include <string.h>

#include "core/state.h"

enum { MIXED_PER_SKETCH = 2, SKETCH_INTERVAL_US = 2000, RELAY_INTERVAL_US = 20000 };

/* Weight of the newest pair in the moving means: about the last 20 exchanges. */
static const double PAIR_WEIGHT = 0.1;

/* No sum of 2^40 floats is larger; squares of such sums stay finite. */
static const double BUCKET_MAX = 1e60;

static double relative(double distance_sq, double mean_sq)
{
    if (distance_sq <= 0) return 0;
    return sqrt(distance_sq) / (mean_sq >= 1e-24 ? sqrt(mean_sq) : 1);
}

void drift_pair(struct parley_node *node, double norm_sq, double own_norm_sq)
{
    struct drift *drift = &node->drift;
    double weight = drift->pairs++ < 10 ? 1.0 / (double)drift->pairs : PAIR_WEIGHT;
    drift->pair_sq += weight * (norm_sq - drift->pair_sq);
    drift->own_sq += weight * (own_norm_sq - drift->own_sq);
    if (phase_of(node) != PARLEY_PHASE_TRAIN) return;
    double n = node->live > 1 ? node->live : 2;
    double sigma_sq = drift->pair_sq * (n - 1) / (2 * n);
    drift->value = relative(sigma_sq, drift->own_sq - sigma_sq);
    drift->measured_us = node->now_us;
}

/* ---- The sketches ---------------------------------------------------------------------------- */

static uint64_t rank_of(const struct parley_node *node, uint64_t boot)
{
    return rng_mix(boot ^ node->config.run);
}

static struct sketch *sketch_of(struct parley_node *node, uint64_t boot)
{
    for (int i = 0; i < SKETCHES_MAX; i++)
        if (node->drift.sketches[i].version && node->drift.sketches[i].boot == boot)
            return &node->drift.sketches[i];
    return NULL;
}

static bool is_waited_for(const struct parley_node *node, uint64_t boot)
{
    int member = membership_find(node, boot);
    return member != NONE && agreement_waits_for(node, member);
}

/* A place for a new sketch: a free one, one of somebody gone, or that of the greatest hash. */
static struct sketch *sketch_place(struct parley_node *node, uint64_t boot)
{
    struct sketch *greatest = NULL;
    for (int i = 0; i < SKETCHES_MAX; i++) {
        struct sketch *sketch = &node->drift.sketches[i];
        if (!sketch->version || !is_waited_for(node, sketch->boot)) return sketch;
        if (!greatest || rank_of(node, sketch->boot) > rank_of(node, greatest->boot))
            greatest = sketch;
    }
    return rank_of(node, boot) < rank_of(node, greatest->boot) ? greatest : NULL;
}

static void sketch_put(struct parley_node *node, uint64_t boot, uint32_t version,
                       const double *buckets)
{
    struct sketch *sketch = sketch_of(node, boot);
    if (!sketch) sketch = sketch_place(node, boot);
    if (!sketch || (sketch->boot == boot && sketch->version >= version)) return;
    sketch->boot = boot;
    sketch->version = version;
    sketch->change = ++node->change;
    memcpy(sketch->buckets, buckets, PARLEY_SKETCH_BUCKETS * sizeof *buckets);
}

static double read_double(const uint8_t *bytes)
{
    uint64_t bits = 0;
    for (int i = 0; i < 8; i++)
        bits |= (uint64_t)bytes[i] << (8 * i);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* ---- The measure ----------------------------------------------------------------------------- */

/* It proposed before it knew of anybody to measure itself against, and will not any more. */
static bool proposed_unmeasured(const struct record *r)
{
    return r->phase >= PARLEY_PHASE_PROPOSED && !r->measured;
}

/* True if everybody waited for, as far as the sample goes, has a sketch here. */
static bool table_is_complete(struct parley_node *node)
{
    uint32_t missing = 0, waited = 0, held = 0;
    for (uint32_t i = 0; i < node->members_count; i++) {
        if (!agreement_waits_for(node, (int)i) || proposed_unmeasured(&node->members[i].r))
            continue;
        waited++;
        bool here = sketch_of(node, node->members[i].r.boot) != NULL;
        held += here;
        missing += !here;
        if (node->members[i].r.phase < PARLEY_PHASE_SETTLE) return false;
    }
    return missing == 0 || (waited > SKETCHES_MAX && held == SKETCHES_MAX);
}

static void measure_own(struct parley_node *node)
{
    const double *own = node->drift.own;
    struct member *self = self_of(node);
    double mean_sq = 0, distance_sq = 0;
    for (int b = 0; b < PARLEY_SKETCH_BUCKETS; b++) {
        double sum = 0;
        uint32_t count = 0;
        for (int i = 0; i < SKETCHES_MAX; i++) {
            const struct sketch *sketch = &node->drift.sketches[i];
            if (!sketch->version || !is_waited_for(node, sketch->boot)) continue;
            sum += sketch->buckets[b];
            count++;
        }
        double mean = sum / count;
        mean_sq += mean * mean;
        distance_sq += (own[b] - mean) * (own[b] - mean);
    }
    self->r.measured = node->drift.version;
    self->r.distance_sq = distance_sq;
    self->r.mean_sq = mean_sq;
    membership_changed(node, true);
}

/* Who is waited for has changed: what was found of the others says nothing of all. */
static void watch_members(struct parley_node *node)
{
    uint64_t among = 0;
    for (uint32_t i = 0; i < node->members_count; i++)
        if (agreement_waits_for(node, (int)i)) among += rng_mix(node->members[i].r.boot);
    if (among != node->drift.among) node->drift.passed = 0;
    node->drift.among = among;
}

/* What all say of themselves, taken together; false if somebody has said nothing yet. */
static bool judge(struct parley_node *node, double *rms, double *largest)
{
    double sum_sq = 0, largest_sq = 0, mean_sq = self_of(node)->r.mean_sq;
    uint32_t count = 0;
    for (uint32_t i = 0; i < node->members_count; i++) {
        const struct record *r = &node->members[i].r;
        if (!agreement_waits_for(node, (int)i) || proposed_unmeasured(r)) continue;
        if (!r->measured) return false;
        sum_sq += r->distance_sq;
        if (r->distance_sq > largest_sq) largest_sq = r->distance_sq;
        count++;
    }
    if (count == 0) return false;
    *rms = relative(sum_sq / count, mean_sq);
    *largest = relative(largest_sq, mean_sq);
    return true;
}

static void measure(struct parley_node *node)
{
    struct drift *drift = &node->drift;
    double rms, largest;
    if (!drift->version || !table_is_complete(node)) return;
    if (self_of(node)->r.measured != drift->version) measure_own(node);
    if (!judge(node, &rms, &largest)) return;
    drift->value = rms;
    drift->measured_us = node->now_us;
    if (drift->judged == drift->version) return;
    drift->judged = drift->version;
    drift->passed = largest <= node->config.tolerance ? drift->passed + 1 : 0;
}

bool drift_settled(struct parley_node *node)
{
    watch_members(node);
    uint32_t others = 0; /* who joins or is late does not mix: there may be live peers and no one */
    for (uint32_t i = 1; i < node->members_count; i++)
        others += agreement_waits_for(node, (int)i);
    return others == 0 || node->drift.passed >= 2 ||
           (PLANTED(SETTLE_UNMIXED) && node->drift.judged);
}

/* ---- Taking and telling ---------------------------------------------------------------------- */

bool drift_advance(struct parley_node *node)
{
    struct drift *drift = &node->drift;
    struct slot *slot = &node->exchange.slots[INITIATOR];
    if (phase_of(node) != PARLEY_PHASE_SETTLE || node->leaving || node->training.diverged)
        return false;
    watch_members(node);
    measure(node);
    if (drift->sketching) return true;
    bool due = drift->version == 0 || drift->mixed >= MIXED_PER_SKETCH;
    if (!due || slot->state != SLOT_IDLE) return false;
    if (node->now_us < drift->next_us) return true; /* mixing on unmeasured gains nothing */
    drift->sketching = true;
    drift->mixed = 0;
    exchange_reserve(node, INITIATOR);
    out_vector(node, PARLEY_UPDATE_TAKE, OP_SKETCH_TAKE, NONE, slot->own);
    return true;
}

uint64_t drift_deadline(const struct parley_node *node)
{
    bool waits = phase_of(node) == PARLEY_PHASE_SETTLE && node->drift.next_us > node->now_us;
    return waits ? node->drift.next_us : NEVER;
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
    drift->next_us = node->now_us + (uint64_t)SKETCH_INTERVAL_US * node->live;
    drift->version++;
    const double *sketch = event->done.sketch;
    if (PLANTED(STALE_SKETCH) && drift->version > 1) sketch = drift->own;
    self_of(node)->r.sketch = drift->version;
    memcpy(drift->own, sketch, sizeof drift->own);
    sketch_put(node, self_of(node)->r.boot, drift->version, sketch);
    measure(node);
}

void drift_sketches(struct parley_node *node, const struct message_sketches *message)
{
    for (uint32_t i = 0; i < message->count; i++) {
        const struct message_sketch *sketch = &message->sketches[i];
        if (sketch->buckets.size != PARLEY_SKETCH_BUCKETS * 8 || sketch->version == 0 ||
            !is_waited_for(node, sketch->boot) || sketch->boot == self_of(node)->r.boot)
            continue;
        double buckets[PARLEY_SKETCH_BUCKETS];
        bool sane = true;
        for (int b = 0; b < PARLEY_SKETCH_BUCKETS; b++) {
            buckets[b] = read_double(sketch->buckets.bytes + 8 * b);
            sane = sane && fabs(buckets[b]) < BUCKET_MAX;
        }
        if (sane) sketch_put(node, sketch->boot, sketch->version, buckets);
    }
}

static void write_double(uint8_t *bytes, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(bits >> 8 * i);
}

/* The oldest change that has not gone out on this connection. */
static const struct sketch *next_to_send(const struct parley_node *node, uint64_t sent)
{
    const struct sketch *next = NULL;
    for (int i = 0; i < SKETCHES_MAX; i++) {
        const struct sketch *sketch = &node->drift.sketches[i];
        if (sketch->version && sketch->change > sent && (!next || sketch->change < next->change))
            next = sketch;
    }
    return next;
}

static void add_sketch(struct message_sketches *message, uint8_t *bytes, uint64_t boot,
                       uint32_t version, const double *buckets)
{
    for (int b = 0; b < PARLEY_SKETCH_BUCKETS; b++)
        write_double(bytes + 8 * b, buckets[b]);
    message->sketches[message->count++] =
        (struct message_sketch){boot, version, {bytes, PARLEY_SKETCH_BUCKETS * 8}};
}

/* The own sketch goes out at once; those of others now and then, as most come directly. */
void drift_pump(struct parley_node *node, struct conn *conn)
{
    struct drift *drift = &node->drift;
    enum parley_phase phase = phase_of(node);
    if (phase < PARLEY_PHASE_SETTLE || phase > PARLEY_PHASE_LOCKED) return;
    struct message_sketches message = {.count = 0};
    uint8_t bytes[MESSAGE_SKETCHES_MAX][PARLEY_SKETCH_BUCKETS * 8];
    uint64_t self = self_of(node)->r.boot;
    if (drift->version > conn->sketch_sent && sketch_of(node, self)) {
        conn->sketch_sent = drift->version;
        add_sketch(&message, bytes[0], self, drift->version, drift->own);
    }
    const struct sketch *sketch;
    bool relay = node->now_us >= conn->sketches_us;
    while (relay && message.count < MESSAGE_SKETCHES_MAX &&
           (sketch = next_to_send(node, conn->sketches_sent)) != NULL) {
        conn->sketches_sent = sketch->change;
        conn->sketches_us = node->now_us + RELAY_INTERVAL_US * (1 + node->live / 8);
        if (sketch->boot == self || sketch->boot == node->members[conn->member].r.boot) continue;
        add_sketch(&message, bytes[message.count], sketch->boot, sketch->version, sketch->buckets);
    }
    if (message.count > 0) connection_send(node, conn, WIRE_SKETCHES, &message);
}
