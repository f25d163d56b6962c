/* drift.c: how far the models are apart, without a leader.
 *
 *   sigma = sqrt(1/n sum_i ||x_i - mean||^2), relative drift = sigma / ||mean||
 *
 * While training, every exchange measures ||s_A - s_B||^2 exactly, whose mean over random pairs is
 * 2n/(n-1) sigma^2 (Kong et al. 2021; on the complete graph). In SETTLE each node sends a
 * CountSketch of its model (linear, so that S x - mean S = S(x - mean) with no cancellation), and
 * says how far it is from the mean of all sketches; drift is the rms of what all say. There are at
 * most SKETCHES_MAX sketches: where there are more nodes, those with the least hash are the sample.
 * Every node measures its own distance to the sample's mean and proposes only once that is within
 * tolerance, so no outlier hides; of the others' distances it judges the sample's.
 * In SETTLE nothing but averaging moves the models. Sketches are of different moments, though, and
 * a model may stand where the others stood a while ago. What proves that wrong is at hand: each
 * exchange measures two models exactly. Once a node meets one farther from it than two can be that
 * are both within tolerance, what was told before counts no more.
 */
#include <math.h>
#include <string.h>

#include "core/exchange.h"

enum {
    MIXED_PER_SKETCH = 2,      /* exchanges between two sketches, ... */
    MIXED_PER_SKETCH_MANY = 8, /* and where only a sample is sketched */
    SKETCH_INTERVAL_US = 2000,
    SKETCHES_QUICK = 32, /* of a node; settling that takes more of them is slowed down */
    RELAY_INTERVAL_US = 20000
};

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
    if (relative(norm_sq, own_norm_sq) > 2 * node->config.tolerance) {
        drift->passed = 0;
        drift->judged = drift->version;
        if (!node->roster->shared) drift->stale = drift->change; /* else each is the newest */
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

/* ---- The sketches ---------------------------------------------------------------------------- */

static uint64_t rank_of(const struct parley_node *node, uint64_t boot)
{
    return rng_mix(boot ^ node->config.run);
}

static struct sketch *sketch_of(struct parley_node *node, uint64_t boot)
{
    for (int i = 0; i < SKETCHES_MAX; i++)
        if (node->roster->sketches[i].version && node->roster->sketches[i].boot == boot)
            return &node->roster->sketches[i];
    return NULL;
}

/* It proposed before it knew of anybody to measure itself against, and will not any more. */
static bool proposed_unmeasured(const struct record *r)
{
    return r->phase >= PARLEY_PHASE_PROPOSED && !r->measured;
}

/* Puts a member into the sample if its rank is among the least. */
static void sample_add(struct roster_sample *sample, int member, uint64_t rank)
{
    uint32_t at = sample->count;
    if (at == SKETCHES_MAX && rank > sample->ranks[at - 1]) return;
    if (at < SKETCHES_MAX)
        sample->count++;
    else
        at--;
    for (; at > 0 && sample->ranks[at - 1] > rank; at--) {
        sample->members[at] = sample->members[at - 1];
        sample->ranks[at] = sample->ranks[at - 1];
    }
    sample->members[at] = member;
    sample->ranks[at] = rank;
}

/* Drawn anew after each news. */
static const struct roster_sample *sample_of(const struct parley_node *node)
{
    struct roster_sample *sample = &node->roster->sample;
    if (sample->news == node->roster->news) return sample;
    *sample = (struct roster_sample){.news = node->roster->news, .all_settle = true};
    for (uint32_t i = 0; i < node->roster->count; i++) {
        const struct record *r = record_of(node, i);
        if (!record_is_waited_for(r)) continue;
        sample->among += rng_mix(r->boot);
        if (r->phase < PARLEY_PHASE_SETTLE) sample->all_settle = false;
        if (!proposed_unmeasured(r)) sample_add(sample, (int)i, rank_of(node, r->boot));
    }
    return sample;
}

static bool is_sampled(const struct parley_node *node, int member)
{
    const struct roster_sample *sample = sample_of(node);
    for (uint32_t i = 0; i < sample->count; i++)
        if (sample->members[i] == member) return true;
    return false;
}

/* Who is waited for has changed: what was found of the others says nothing of all. */
static void watch_members(struct parley_node *node)
{
    uint64_t among = sample_of(node)->among;
    if (among != node->drift.among) node->drift.passed = 0;
    node->drift.among = among;
}

static bool is_waited_for(const struct parley_node *node, uint64_t boot)
{
    int member = roster_find(node->roster, boot);
    return member != NONE && agreement_waits_for(node, member);
}

/* A place for a new sketch: a free one, one of somebody gone, or that of the greatest hash. */
static struct sketch *sketch_place(struct parley_node *node, uint64_t boot)
{
    struct sketch *greatest = NULL;
    for (int i = 0; i < SKETCHES_MAX; i++) {
        struct sketch *sketch = &node->roster->sketches[i];
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
    sketch->change = ++node->drift.change;
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

/* True if the whole sample has a sketch here, and nobody trains any more. */
static bool table_is_complete(struct parley_node *node)
{
    const struct roster_sample *sample = sample_of(node);
    for (uint32_t i = 0; i < sample->count; i++)
        if (!sketch_of(node, record_of(node, (uint32_t)sample->members[i])->boot)) return false;
    return sample->all_settle;
}

/* True if of the whole sample there is a sketch that counts. Who has proposed tells no other. */
static bool table_is_fresh(struct parley_node *node)
{
    const struct roster_sample *sample = sample_of(node);
    for (uint32_t i = 0; i < sample->count; i++) {
        const struct record *r = record_of(node, (uint32_t)sample->members[i]);
        if (r->phase <= PARLEY_PHASE_SETTLE &&
            sketch_of(node, r->boot)->change <= node->drift.stale)
            return false;
    }
    return true;
}

static void measure_own(struct parley_node *node)
{
    const struct drift *drift = &node->drift;
    const struct roster_sample *sample = sample_of(node);
    const struct sketch *sketches[SKETCHES_MAX];
    struct record *self = self_of(node);
    double mean_sq = 0, distance_sq = 0;
    for (uint32_t i = 0; i < sample->count; i++)
        sketches[i] = sketch_of(node, record_of(node, (uint32_t)sample->members[i])->boot);
    for (int b = 0; b < PARLEY_SKETCH_BUCKETS; b++) {
        double sum = 0;
        for (uint32_t i = 0; i < sample->count; i++)
            sum += sketches[i]->buckets[b];
        double mean = sum / sample->count;
        mean_sq += mean * mean;
        distance_sq += (drift->own[b] - mean) * (drift->own[b] - mean);
    }
    self->measured = drift->version;
    self->distance_sq = distance_sq;
    self->mean_sq = mean_sq;
    membership_changed(node, is_sampled(node, node->self));
}

/* What the sample and this node say of themselves, taken together; false if one of them has said
 * nothing yet. */
static bool judge(struct parley_node *node, double *rms, double *largest)
{
    const struct roster_sample *sample = sample_of(node);
    const struct record *self = self_of(node);
    double sum_sq = 0, largest_sq = self->distance_sq;
    if (sample->count == 0) return false;
    for (uint32_t i = 0; i < sample->count; i++) {
        const struct record *r = record_of(node, (uint32_t)sample->members[i]);
        if (!r->measured) return false;
        sum_sq += r->distance_sq;
        if (r->distance_sq > largest_sq) largest_sq = r->distance_sq;
    }
    *rms = relative(sum_sq / sample->count, self->mean_sq);
    *largest = relative(largest_sq, self->mean_sq);
    return true;
}

static void measure(struct parley_node *node)
{
    struct drift *drift = &node->drift;
    double rms, largest;
    watch_members(node);
    if (!drift->version || !table_is_complete(node)) return;
    if (self_of(node)->measured != drift->version) measure_own(node);
    if (!judge(node, &rms, &largest)) return;
    drift->value = rms;
    drift->measured_us = node->now_us;
    if (drift->judged == drift->version || !table_is_fresh(node)) return;
    drift->judged = drift->version;
    drift->passed = largest <= node->config.tolerance ? drift->passed + 1 : 0;
}

bool drift_settled(struct parley_node *node)
{
    watch_members(node);
    /* Who joins or is late does not mix: there may be live peers and no one else here. */
    uint32_t self = agreement_waits_for(node, node->self);
    return node->roster->counts[ROSTER_WAITED] == self || node->drift.passed >= 2 ||
           (PLANTED(SETTLE_UNMIXED) && node->drift.judged);
}

/* ---- Taking and telling ---------------------------------------------------------------------- */

/* How many sketches are under way. */
static uint32_t sketchers(const struct parley_node *node)
{
    return live_of(node) < SKETCHES_MAX ? live_of(node) : SKETCHES_MAX;
}

bool drift_advance(struct parley_node *node)
{
    struct drift *drift = &node->drift;
    struct slot *slot = &node->exchange.slots[INITIATOR];
    if (phase_of(node) != PARLEY_PHASE_SETTLE || node->leaving || node->training.diverged)
        return false;
    measure(node);
    if (drift->sketching) return true;
    bool many = sample_of(node)->count == SKETCHES_MAX;
    uint32_t mixed = many ? MIXED_PER_SKETCH_MANY : MIXED_PER_SKETCH;
    if (drift->version == 1 && pairing_sweep(node) > mixed) mixed = pairing_sweep(node);
    bool due = drift->version == 0 || drift->mixed >= mixed;
    if (!due || slot->state != SLOT_IDLE) return false;
    if (node->now_us < drift->next_us) return true; /* mixing on unmeasured gains nothing */
    /* What is decided and not added yet would move the model after its sketch. */
    if (slot_is_open(&node->exchange.slots[RESPONDER]) || doubt_blocks(node)) return true;
    drift->sketching = true;
    drift->mixed = 0;
    exchange_reserve(node, INITIATOR);
    out_vector(node, PARLEY_UPDATE_TAKE, OP_SKETCH_TAKE, NONE, slot->own);
    return true;
}

uint64_t drift_deadline(const struct parley_node *node)
{
    const struct drift *drift = &node->drift;
    if (phase_of(node) != PARLEY_PHASE_SETTLE) return NEVER;
    uint64_t at_us = drift->next_us > node->now_us ? drift->next_us : NEVER;
    if (drift->change > drift->relayed && drift->relay_us < at_us) at_us = drift->relay_us;
    return at_us;
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
    /* What is still apart by then waits for something that haste does not bring. */
    uint32_t slower = 1 + drift->version / SKETCHES_QUICK;
    drift->next_us = node->now_us + (uint64_t)SKETCH_INTERVAL_US * sketchers(node) * slower;
    self_of(node)->sketch = drift->version;
    drift->due = true;
    const double *sketch = event->done.sketch;
    if (PLANTED(STALE_SKETCH) && drift->version > 1) sketch = drift->own;
    memcpy(drift->own, sketch, sizeof drift->own);
    sketch_put(node, self_of(node)->boot, drift->version, sketch);
    measure(node);
}

void drift_sketches(struct parley_node *node, const struct message_sketches *message)
{
    for (uint32_t i = 0; i < message->count; i++) {
        const struct message_sketch *sketch = &message->sketches[i];
        if (sketch->buckets.size != PARLEY_SKETCH_BUCKETS * 8 || sketch->version == 0 ||
            !is_waited_for(node, sketch->boot) || sketch->boot == self_of(node)->boot)
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
        const struct sketch *sketch = &node->roster->sketches[i];
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

static void pump(struct parley_node *node, struct conn *conn, bool relay)
{
    struct drift *drift = &node->drift;
    struct message_sketches message = {.count = 0};
    uint8_t bytes[MESSAGE_SKETCHES_MAX][PARLEY_SKETCH_BUCKETS * 8];
    uint64_t self = self_of(node)->boot;
    if (drift->version > conn->sketch_sent && is_sampled(node, node->self)) {
        conn->sketch_sent = drift->version;
        add_sketch(&message, bytes[0], self, drift->version, drift->own);
    }
    const struct sketch *sketch = NULL;
    while (relay && message.count < MESSAGE_SKETCHES_MAX &&
           (sketch = next_to_send(node, conn->sketches_sent)) != NULL) {
        conn->sketches_sent = sketch->change;
        if (sketch->boot == self || sketch->boot == record_of(node, conn->member)->boot) continue;
        add_sketch(&message, bytes[message.count], sketch->boot, sketch->version, sketch->buckets);
    }
    if (sketch) drift->due = node->more = true; /* a frame full: the rest in the next step */
    if (message.count > 0) connection_send(node, conn, WIRE_SKETCHES, &message);
}

/* The own sketch goes out at once; those of others now and then, as most come directly. */
void drift_pump(struct parley_node *node)
{
    struct drift *drift = &node->drift;
    enum parley_phase phase = phase_of(node);
    if (phase < PARLEY_PHASE_SETTLE || phase > PARLEY_PHASE_LOCKED) return;
    bool relay = drift->change > drift->relayed && node->now_us >= drift->relay_us;
    if (!drift->due && !relay) return;
    drift->due = false;
    for (uint32_t i = 0; i < node->open_count; i++) {
        if (node->open[i].member == NONE) continue;
        struct conn *conn = connection_at(node, i);
        if (out_room(node))
            pump(node, conn, relay && conn->asks);
        else
            drift->due = true;
    }
    if (!relay || drift->due) return;
    drift->relay_us = node->now_us + RELAY_INTERVAL_US * (1 + sketchers(node) / 8);
    drift->relayed = drift->change;
}
