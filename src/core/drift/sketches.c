/* sketches.c: see sketches.h.
 *
 * What it costs: a sketch is 128 floats, 540 bytes as sent. Who is in the sample sends its own over
 * each of its links once; it is sent on only to those who say that they have no link with its
 * owner. All that a node sends is paid for by SKETCH_BYTES a second. Who has met nobody far by
 * chance since the last one may owe what SKETCH_DEBT_US bring; else none is taken while anything is
 * owed.
 */
#include "core/drift/sketches.h"

#include <math.h>
#include <string.h>

#include "core/link/connection.h"
#include "core/out.h"
#include "core/state.h"
#include "core/wire/wire.h"

enum {
    SKETCH_BYTES = 16000,      /* a second, on all links together */
    SKETCH_DEBT_US = 10000000, /* of that, so much time's may be spent beforehand */
    ASK_INTERVAL_US = 20000    /* between asking one link for what is lacking, and another */
};

/* ---- Whose ----------------------------------------------------------------------------------- */

static uint64_t rank_of(const struct parley_node *node, uint64_t boot)
{
    return rng_mix(boot ^ node->config.run);
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

/* Who proposed before it knew of anybody to measure itself against will send no sketch any more. */
const struct roster_sample *sketches_sample(const struct parley_node *node)
{
    struct parley_roster *roster = node->roster;
    struct roster_sample *sample = &roster->sample;
    if (sample->sampled == roster->sampled) return sample;
    *sample = (struct roster_sample){.sampled = roster->sampled};
    for (uint32_t i = 0; i < roster->count; i++)
        if (roster_in(roster, i, ROSTER_WAITED) && !roster_in(roster, i, ROSTER_UNMEASURED))
            sample_add(sample, (int)i, rank_of(node, roster->records[i].boot));
    return sample;
}

bool sketches_samples(const struct parley_node *node, int member)
{
    const struct roster_sample *sample = sketches_sample(node);
    for (uint32_t i = 0; i < sample->count; i++)
        if (sample->members[i] == member) return true;
    return false;
}

/* ---- Keeping them ---------------------------------------------------------------------------- */

struct sketch *sketches_of(struct parley_node *node, uint64_t boot)
{
    for (int i = 0; i < SKETCHES_MAX; i++)
        if (node->roster->sketches[i].version && node->roster->sketches[i].boot == boot)
            return &node->roster->sketches[i];
    return NULL;
}

static bool is_waited_for(const struct parley_node *node, uint64_t boot)
{
    int member = roster_find(node->roster, boot);
    return member != NONE && record_is_waited_for(record_of(node, (uint32_t)member));
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

void sketches_put(struct parley_node *node, uint64_t boot, uint32_t version, const float *buckets)
{
    struct sketch *sketch = sketches_of(node, boot);
    if (!sketch) sketch = sketch_place(node, boot);
    if (!sketch || (sketch->boot == boot && sketch->version >= version)) return;
    sketch->boot = boot;
    sketch->version = version;
    sketch->change = ++node->roster->sketched;
    memcpy(sketch->buckets, buckets, MESSAGE_BUCKETS * sizeof *buckets);
}

bool sketches_are_complete(struct parley_node *node)
{
    const struct roster_sample *sample = sketches_sample(node);
    for (uint32_t i = 0; i < sample->count; i++)
        if (!sketches_of(node, record_of(node, (uint32_t)sample->members[i])->boot)) return false;
    return true;
}

/* Who has proposed takes no other sketch than its newest. */
static bool counts(const struct parley_node *node, const struct record *r,
                   const struct sketch *sketch)
{
    if (r->phase > PARLEY_PHASE_SETTLE) return sketch->version >= r->sketch;
    return sketch->change > node->drift.stale;
}

bool sketches_are_fresh(struct parley_node *node)
{
    const struct roster_sample *sample = sketches_sample(node);
    for (uint32_t i = 0; i < sample->count; i++) {
        const struct record *r = record_of(node, (uint32_t)sample->members[i]);
        if (!counts(node, r, sketches_of(node, r->boot))) return false;
    }
    return true;
}

/* ---- Telling --------------------------------------------------------------------------------- */

bool sketches_affordable(const struct parley_node *node)
{
    uint64_t debt_us = node->drift.far ? 0 : SKETCH_DEBT_US;
    return node->drift.paid_us <= node->now_us + debt_us;
}

uint64_t sketches_interval_us(const struct parley_node *node)
{
    uint64_t longest_us = node->exchange.pairing.longest_us;
    return longest_us > ASK_INTERVAL_US ? longest_us : ASK_INTERVAL_US;
}

static float read_float(const uint8_t *bytes)
{
    uint32_t bits = (uint32_t)wire_get(bytes, 4);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void write_float(uint8_t *bytes, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    wire_put(bytes, bits, 4);
}

/* What the other end lacks from now on; of that, some may have gone out already. */
static void take_lacks(struct conn *conn, const struct message_sketches *message)
{
    struct lack lacks[MESSAGE_SKETCHES_MAX];
    for (uint32_t i = 0; i < message->lacks_count; i++) {
        lacks[i] = (struct lack){message->lacks[i].boot, 0};
        for (uint32_t j = 0; j < conn->lacks_count; j++)
            if (conn->lacks[j].boot == lacks[i].boot) lacks[i] = conn->lacks[j];
    }
    conn->lacks_count = message->lacks_count;
    memcpy(conn->lacks, lacks, conn->lacks_count * sizeof *lacks);
}

void sketches_received(struct parley_node *node, struct conn *conn,
                       const struct message_sketches *message)
{
    for (uint32_t i = 0; i < message->count; i++) {
        const struct message_sketch *sketch = &message->sketches[i];
        if (sketch->buckets.size != MESSAGE_BUCKETS * 4 || sketch->version == 0 ||
            !is_waited_for(node, sketch->boot) || sketch->boot == self_of(node)->boot)
            continue;
        float buckets[MESSAGE_BUCKETS];
        bool sane = true;
        for (int b = 0; b < MESSAGE_BUCKETS; b++) {
            buckets[b] = read_float(sketch->buckets.bytes + 4 * b);
            sane = sane && isfinite(buckets[b]);
        }
        if (sane) sketches_put(node, sketch->boot, sketch->version, buckets);
    }
    node->drift.due = true; /* somebody may lack them */
    if (message->lacks_count > 0) take_lacks(conn, message);
}

static void add_sketch(struct message_sketches *message, uint8_t *bytes, uint64_t boot,
                       uint32_t version, const float *buckets)
{
    for (int b = 0; b < MESSAGE_BUCKETS; b++)
        write_float(bytes + 4 * b, buckets[b]);
    message->sketches[message->count++] =
        (struct message_sketch){boot, version, {bytes, MESSAGE_BUCKETS * 4}};
}

/* Of the sample, those that this node hears nothing of by itself, and that count here no more. */
static void add_lacks(struct parley_node *node, struct message_sketches *message)
{
    const struct roster_sample *sample = sketches_sample(node);
    for (uint32_t i = 0; i < sample->count; i++) {
        const struct record *r = record_of(node, (uint32_t)sample->members[i]);
        if (sample->members[i] == node->self || connection_of(node, sample->members[i])) continue;
        const struct sketch *sketch = sketches_of(node, r->boot);
        if (!sketch || !counts(node, r, sketch))
            message->lacks[message->lacks_count++].boot = r->boot;
    }
}

static void pump(struct parley_node *node, struct conn *conn, bool asks)
{
    struct drift *drift = &node->drift;
    struct message_sketches message = {.count = 0};
    uint8_t bytes[MESSAGE_SKETCHES_MAX][MESSAGE_BUCKETS * 4];
    if (drift->version > conn->sketch_sent && sketches_samples(node, node->self)) {
        conn->sketch_sent = drift->version;
        add_sketch(&message, bytes[0], self_of(node)->boot, drift->version, drift->own);
    }
    bool relays =
        drift->paid_us <= node->now_us + SKETCH_DEBT_US / 2; /* the rest is for own ones */
    for (uint32_t i = 0; relays && i < conn->lacks_count && message.count < MESSAGE_SKETCHES_MAX;
         i++) {
        struct lack *lack = &conn->lacks[i];
        const struct sketch *sketch = sketches_of(node, lack->boot);
        if (!sketch || sketch->change <= lack->sent) continue;
        lack->sent = sketch->change;
        add_sketch(&message, bytes[message.count], sketch->boot, sketch->version, sketch->buckets);
    }
    if (asks) add_lacks(node, &message);
    if (message.count == 0 && message.lacks_count == 0) return;
    uint32_t queued = conn->queued;
    connection_send(node, conn, WIRE_SKETCHES, &message);
    charge(node, &drift->paid_us, conn->queued - queued, SKETCH_BYTES);
}

/* The own sketch goes to all who have a link with this node. Who has none with one of the sample
 * asks others for that one, link after link until somebody has it, and is sent it from then on. */
void sketches_pump(struct parley_node *node)
{
    struct drift *drift = &node->drift;
    enum parley_phase phase = phase_of(node);
    if (phase < PARLEY_PHASE_SETTLE || phase > PARLEY_PHASE_LOCKED) return;
    bool asks = phase == PARLEY_PHASE_SETTLE && drift->version > 0 && node->now_us >= drift->ask_us;
    if (!drift->due && !asks) return;
    /* Each begins with another: all have links with a seed. */
    uint64_t turn = self_of(node)->boot + drift->ask_turn;
    struct conn *asked =
        asks && node->open_count ? connection_at(node, (uint32_t)(turn % node->open_count)) : NULL;
    drift->due = false;
    for (uint32_t i = 0; i < node->open_count; i++) {
        if (node->open[i].member == NONE) continue;
        struct conn *conn = connection_at(node, i);
        if (out_room(node))
            pump(node, conn, conn == asked);
        else
            drift->due = true;
    }
    if (!asks) return;
    drift->ask_turn++;
    drift->ask_us = node->now_us + sketches_interval_us(node);
}
