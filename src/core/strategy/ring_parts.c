/* ring_parts.c: one try of a round: parts come from the left, are added to, and go to the right.
 *
 * Member i of n (counted from 0 by name) sends segment i - p as part p of the reduce-scatter, and
 * gets segment i - p - 1; as part n - 1 + q of the all-gather it sends segment i + 1 - q and gets
 * i - q. Sums in the making are in PARTIAL, those that are done in the next of the two results.
 */
#include "core/strategy/ring_state.h"

static uint32_t parts_of(const struct ring_try *now)
{
    return 2 * now->count - 2;
}

static bool is_gathered(const struct ring_try *now, uint32_t part)
{
    return part >= now->count - 1;
}

/* The segment of a part that comes in, or goes out. */
static uint32_t segment_of(const struct ring_try *now, uint32_t part, bool out)
{
    uint32_t n = now->count, place = now->at + n;
    if (is_gathered(now, part)) return (place + out - (part - (n - 1))) % n;
    return (place - part - !out) % n;
}

static struct strategy_part span_of(const struct parley_node *node, uint32_t segment)
{
    const struct ring_try *now = &ring_of(node)->now;
    uint64_t floats = node->config.parameters;
    uint64_t from = floats * segment / now->count, to = floats * (segment + 1) / now->count;
    return (struct strategy_part){.offset = from * sizeof(float),
                                  .size = (to - from) * sizeof(float)};
}

/* Where the sums of the try that is under way, or was the newest, are gathered. */
static uint32_t result_buffer(const struct parley_node *node)
{
    const struct ring *ring = ring_of(node);
    bool over = ring->now.round < ring->round;
    return ring_buffer(node, RING_RESULT + (over ? ring->result : !ring->result));
}

/* Of that segment alone. */
static void combine(struct parley_node *node, uint32_t buffer, float keep, uint32_t other,
                    uint32_t segment, int number)
{
    struct strategy_part span = span_of(node, segment);
    struct parley_update *update = strategy_combine(node, buffer, keep, other, 1, number);
    update->vector.offset = span.offset;
    update->vector.size = span.size;
    ring_of(node)->pending++;
}

/* ---- A new try ------------------------------------------------------------------------------- */

static void begin(struct parley_node *node)
{
    struct ring *ring = ring_of(node);
    uint32_t next = ring_buffer(node, RING_RESULT + !ring->result);
    if (ring->pending > 0 || ring_owes(node)) return;
    if (strategy_is_sent(node, ring_buffer(node, RING_PARTIAL)) || strategy_is_sent(node, next))
        return;
    strategy_forget(node, RING_PARTS);
    ring->now = (struct ring_try){
        .active = true,
        .round = ring->round,
        .key = ring->key,
        .count = ring->members,
        .at = ring->at,
        .ticket = ++ring->tickets,
        .sum = {.count = ring->members,
                .divisor = ring->divisor > 0 ? ring->divisor : ring->members,
                .progress = training_progress(node)},
        .out_number = ring->now.out_number,
    };
    ring->progress_us = node->now_us;
    if (ring->members == 1) combine(node, next, 0, ring_buffer(node, RING_OWN), 0, RING_COPIED);
}

static void expect(struct parley_node *node, uint32_t conn)
{
    struct ring_try *now = &ring_of(node)->now;
    now->conn = conn;
    if (now->got == parts_of(now)) return;
    struct strategy_part part = span_of(node, segment_of(now, now->got, false));
    part.tag = now->ticket;
    part.part = (uint16_t)now->got;
    part.buffer =
        is_gathered(now, now->got) ? result_buffer(node) : ring_buffer(node, RING_PARTIAL);
    if (part.size > 0)
        strategy_expect(node, RING_PARTS, conn, &part);
    else
        strategy_forget(node, RING_PARTS); /* what is told of it is all */
}

void ring_parts_advance(struct parley_node *node)
{
    struct ring *ring = ring_of(node);
    struct ring_try *now = &ring->now;
    bool same = now->active && now->round == ring->round && now->key == ring->key;
    if (!same) begin(node);
    if (!now->active || now->round != ring->round || now->key != ring->key) return;
    struct conn *left = ring->left == NONE ? NULL : connection_of(node, ring->left);
    if (left && now->conn != left->id) expect(node, left->id);
}

/* ---- What comes in --------------------------------------------------------------------------- */

bool ring_is_whole(const struct parley_node *node)
{
    const struct ring *ring = ring_of(node);
    const struct ring_try *now = &ring->now;
    return ring->made && now->active && now->round == ring->round && now->got == parts_of(now);
}

static void finish_if_whole(struct parley_node *node)
{
    struct ring *ring = ring_of(node);
    struct ring_try *now = &ring->now;
    if (!ring_is_whole(node) || !now->whole || ring->stage != RING_RESTING) return;
    ring_finish(node, &now->sum, rng_mix(ring->stamp ^ now->key));
}

/* One after the other, as the left may be ahead by as many parts as there are. */
static void add_next(struct parley_node *node)
{
    struct ring_try *now = &ring_of(node)->now;
    uint32_t sums = now->count - 1, here = now->got < sums ? now->got : sums;
    if (now->adds || now->added == here) return;
    now->adds = true;
    combine(node, ring_buffer(node, RING_PARTIAL), 1, ring_buffer(node, RING_OWN),
            segment_of(now, now->added, false), RING_ADDED);
}

static void part_is_here(struct parley_node *node)
{
    struct ring *ring = ring_of(node);
    struct ring_try *now = &ring->now;
    uint32_t part = now->got++;
    ring->progress_us = node->now_us;
    expect(node, now->conn);
    if (is_gathered(now, part))
        finish_if_whole(node);
    else
        add_next(node);
}

void ring_received(struct parley_node *node, int inflow)
{
    if (inflow == RING_PARTS)
        part_is_here(node);
    else
        ring_pulled(node);
}

void ring_progress(struct parley_node *node, int inflow)
{
    (void)inflow;
    ring_of(node)->progress_us = node->now_us;
}

void ring_done(struct parley_node *node, int number, const struct parley_event *event)
{
    struct ring *ring = ring_of(node);
    struct ring_try *now = &ring->now;
    (void)event;
    ring->pending--;
    if (!now->active || now->round != ring->round) return; /* of a try that was given up */
    if (number == RING_COPIED) {
        now->whole = true;
        finish_if_whole(node);
        return;
    }
    now->adds = false;
    now->added++;
    add_next(node);
    if (now->added == now->count - 1) {
        combine(node, result_buffer(node), 0, ring_buffer(node, RING_PARTIAL),
                segment_of(now, now->count - 1, true), RING_COPIED);
    }
}

void ring_parts_told(struct parley_node *node, struct conn *conn,
                     const struct message_strategy *tell)
{
    struct ring_try *now = &ring_of(node)->now;
    if (!now->active || conn->id != now->conn || tell->tag != now->ticket ||
        tell->part != now->got || now->got == parts_of(now))
        return;
    struct ring_sum *sum = &now->sum;
    if (tell->value > sum->progress && tell->value <= 1) sum->progress = tell->value;
    if (span_of(node, segment_of(now, now->got, false)).size == 0) part_is_here(node);
}

/* ---- What goes out --------------------------------------------------------------------------- */

/* What the right has said, perhaps before this try began here. */
static void look_right(struct parley_node *node)
{
    struct ring *ring = ring_of(node);
    struct ring_try *now = &ring->now;
    const struct ring_heard *right = ring_heard_of(node, ring->right);
    if (!right || right->place.key != now->key || right->place.round != now->round ||
        right->place.part > parts_of(now))
        return;
    if (now->out_conn == right->conn && now->out_ticket == right->place.tag) return;
    const struct conn *conn = connection_find(node, right->conn);
    if (!conn || conn->state != CONN_LIVE) return;
    now->out_conn = right->conn;
    now->out_ticket = right->place.tag;
    now->out_part = right->place.part;
    now->out_busy = false;
    now->out_number++;
}

/* What the next part to be sent needs is here. */
static bool is_ready(const struct ring_try *now)
{
    uint32_t sums = now->count - 1;
    return now->out_part <= (now->added < sums ? now->added : now->got);
}

static void send_part(struct parley_node *node)
{
    struct ring_try *now = &ring_of(node)->now;
    struct strategy_part part = span_of(node, segment_of(now, now->out_part, true));
    bool shares = !is_gathered(now, now->out_part);
    struct conn *conn = connection_find(node, now->out_conn);
    struct message_strategy tell = {.what = RING_TELL,
                                    .tag = now->out_ticket,
                                    .part = now->out_part,
                                    .value = now->sum.progress};
    if (!conn) return;
    if (shares || part.size == 0) connection_send(node, conn, WIRE_STRATEGY, &tell);
    if (part.size == 0) {
        now->out_part++;
        return;
    }
    part.tag = now->out_ticket;
    part.part = (uint16_t)now->out_part;
    part.buffer = now->out_part == 0           ? ring_buffer(node, RING_OWN)
                  : now->out_part < now->count ? ring_buffer(node, RING_PARTIAL)
                                               : result_buffer(node);
    now->out_busy = strategy_send(node, conn->id, &part, RING_SENT + now->out_number);
}

void ring_parts_send(struct parley_node *node)
{
    struct ring_try *now = &ring_of(node)->now;
    if (!now->active) return;
    look_right(node);
    while (now->active && now->out_conn && !now->out_busy && now->out_part < parts_of(now) &&
           is_ready(now)) {
        uint32_t part = now->out_part;
        send_part(node);
        if (now->out_part == part) return;
    }
}

void ring_sent(struct parley_node *node, int number, bool ok)
{
    struct ring_try *now = &ring_of(node)->now;
    if (number != RING_SENT + now->out_number || !now->out_busy) return;
    now->out_busy = false;
    if (ok)
        now->out_part++;
    else
        now->out_conn = 0; /* it says again what it wants */
}

bool ring_owes(const struct parley_node *node)
{
    const struct ring *ring = ring_of(node);
    const struct ring_try *now = &ring->now;
    const struct ring_heard *right = ring_heard_of(node, ring->right);
    return now->active && now->round < ring->round && now->key == ring->key &&
           now->out_part < parts_of(now) && !(right && right->place.round > now->round);
}
