/* parts.c: one try of a round: stages come in, are added up, and go out.
 *
 * Of n members this one stands at place i, counted from 0 by name. Blocks are named by how far they
 * are from block i; with s(-1) = n, and m stages until s(k) is 1:
 *
 *   stage k           brings 0 .. s(k-1) - s(k) - 1 from s(k) places to the left, to be added to
 *   stage 2m - 1 - k  brings s(k) .. s(k-1) - 1 from s(k) places to the right, done
 *
 * The two are each other's mirror: what one sends, and to whom, is what the other brings, and from
 * whom. Sums in the making are in PARTIAL, those that are done in the next of the two results.
 *
 * Who sends a stage needs nothing from here for it, so many may come before the first; the own
 * contribution is added to what the first one brings, and what the last one brings is where the sum
 * is to be. Between them each has a lane, and as many are asked for as there are lanes. A model too
 * large for any has the room of the result for one, and asks for what is done once that is free.
 */
#include <string.h>

#include "core/strategy/ring/ring_state.h"

enum {
    OWES_US = 1000000, /* then a part may have come that seemed lost with its link */
    NUMBERS = 0xffffff /* of streams, one after the other */
};

static uint32_t mirror_of(const struct ring_try *now, uint32_t stage)
{
    return now->stages - 1 - stage;
}

static bool is_gathered(const struct ring_try *now, uint32_t stage)
{
    return stage >= now->stages / 2;
}

/* ---- Which floats ---------------------------------------------------------------------------- */

struct blocks {
    uint32_t first, count; /* first: from the node's own on */
};

/* What a stage brings. */
static struct blocks blocks_of(const struct ring_try *now, uint32_t stage)
{
    bool gathered = is_gathered(now, stage);
    uint32_t last = now->count, skip = ring_skip(last);
    for (uint32_t k = gathered ? mirror_of(now, stage) : stage; k > 0; k--) {
        last = skip;
        skip = ring_skip(skip);
    }
    return (struct blocks){gathered ? skip : 0, last - skip};
}

/* Blocks may go on at the vector's beginning: the first part of them, from `part` on, that has
 * floats. 2: there is none. */
static uint32_t next_part(const struct parley_node *node, struct blocks blocks, uint32_t part,
                          struct strategy_part *floats)
{
    const struct ring_try *now = &ring_of(node)->now;
    uint64_t n = now->count, from = (now->at + blocks.first) % n, to = from + blocks.count;
    for (; part < 2; part++) {
        uint64_t begin = part == 0 ? from : n, end = part == 0 && to > n ? n : to;
        if (end < begin) continue;
        begin = node->config.parameters * (begin - part * n) / n;
        end = node->config.parameters * (end - part * n) / n;
        floats->offset = begin * sizeof(float);
        floats->size = (end - begin) * sizeof(float);
        if (floats->size > 0) break;
    }
    return part;
}

static bool has_floats(const struct parley_node *node, uint32_t stage)
{
    struct strategy_part floats;
    return next_part(node, blocks_of(&ring_of(node)->now, stage), 0, &floats) < 2;
}

/* Where the sums of the try that is under way, or was the newest, are gathered. */
static uint32_t result_buffer(const struct parley_node *node)
{
    const struct ring *ring = ring_of(node);
    bool over = ring->now.round < ring->round;
    return ring_buffer(node, RING_RESULT + (over ? ring->result : !ring->result));
}

static uint32_t buffer_of(const struct parley_node *node, uint32_t stage)
{
    const struct ring_try *now = &ring_of(node)->now;
    uint32_t lanes = strategy_lanes(&node->config);
    if (stage + 1 >= now->stages / 2) return result_buffer(node);
    if (stage == 0) return ring_buffer(node, RING_PARTIAL);
    return lanes > 0 ? strategy_lane_buffer(node, (int)(stage % lanes)) : result_buffer(node);
}

/* ---- The sum --------------------------------------------------------------------------------- */

bool ring_is_whole(const struct parley_node *node)
{
    const struct ring *ring = ring_of(node);
    const struct ring_try *now = &ring->now;
    return ring->made && ring_is_of_round(ring) && now->here == ring_bit(now->stages) - 1;
}

/* Of the own block. */
static bool is_summed(const struct ring_try *now)
{
    return now->summed == (now->count > 1 ? now->stages / 2 : 1); /* alone: copied */
}

static void combine(struct parley_node *node, uint32_t buffer, float keep, uint32_t other,
                    struct blocks blocks)
{
    struct ring *ring = ring_of(node);
    struct strategy_part floats;
    for (uint32_t part = 0; (part = next_part(node, blocks, part, &floats)) < 2; part++) {
        struct parley_update *update = strategy_combine(node, buffer, keep, other, 1, RING_SUMMED);
        update->vector.offset = floats.offset;
        update->vector.size = floats.size;
        ring->pending++;
        ring->now.summing++;
    }
}

/* What a stage has brought goes into the sum. */
static void add(struct parley_node *node, uint32_t stage)
{
    const struct ring_try *now = &ring_of(node)->now;
    uint32_t partial = ring_buffer(node, RING_PARTIAL), own = ring_buffer(node, RING_OWN);
    struct blocks blocks = blocks_of(now, stage);
    if (stage + 1 == now->stages / 2) {
        combine(node, buffer_of(node, stage), 1, stage == 0 ? own : partial, blocks);
    } else if (stage == 0) {
        /* Of an odd number nobody brings the last one. */
        struct blocks rest = {blocks.count, ring_skip(now->count) - blocks.count};
        combine(node, partial, 1, own, blocks);
        combine(node, partial, 0, own, rest);
    } else {
        combine(node, partial, 1, buffer_of(node, stage), blocks);
    }
}

/* One after the other, so that a sum's order is given by the members. */
static void sum_up(struct parley_node *node)
{
    struct ring_try *now = &ring_of(node)->now;
    while (now->summing == 0 && !is_summed(now) && now->here & ring_bit(now->summed)) {
        add(node, now->summed);
        if (now->summing == 0) now->summed++; /* of no floats */
    }
}

static void finish_if_whole(struct parley_node *node)
{
    struct ring *ring = ring_of(node);
    struct ring_try *now = &ring->now;
    if (!ring_is_whole(node) || !is_summed(now) || ring->stage != RING_RESTING) return;
    ring_finish(node, &now->sum, rng_mix(ring->stamp ^ now->key));
}

void ring_done(struct parley_node *node)
{
    struct ring *ring = ring_of(node);
    struct ring_try *now = &ring->now;
    ring->pending--;
    if (!ring_is_of_round(ring)) return; /* of a try that was given up */
    if (--now->summing > 0) return;
    now->summed++;
    sum_up(node);
    finish_if_whole(node);
}

/* ---- What comes in --------------------------------------------------------------------------- */

static void stage_is_here(struct parley_node *node, uint32_t stage)
{
    struct ring *ring = ring_of(node);
    ring->now.here |= ring_bit(stage);
    ring->progress_us = node->now_us;
    sum_up(node);
    finish_if_whole(node);
}

static void expect(struct parley_node *node, uint32_t stage, uint32_t conn)
{
    struct ring_try *now = &ring_of(node)->now;
    struct strategy_part floats;
    now->conns[stage] = conn;
    uint32_t part = next_part(node, blocks_of(now, stage), now->got[stage], &floats);
    if (part == 2) return; /* what is told of it is all */
    floats.tag = now->ticket;
    floats.part = (uint16_t)(2 * stage + part);
    floats.buffer = buffer_of(node, stage);
    strategy_expect(node, (int)stage, conn, &floats);
}

static void part_is_here(struct parley_node *node, uint32_t stage)
{
    struct ring_try *now = &ring_of(node)->now;
    struct blocks blocks = blocks_of(now, stage);
    struct strategy_part floats;
    now->got[stage] = (uint8_t)(next_part(node, blocks, now->got[stage], &floats) + 1);
    if (next_part(node, blocks, now->got[stage], &floats) < 2)
        expect(node, stage, now->conns[stage]);
    else
        stage_is_here(node, stage);
}

void ring_received(struct parley_node *node, int inflow)
{
    if (inflow == RING_WHOLE)
        ring_pulled(node);
    else
        part_is_here(node, (uint32_t)inflow);
}

void ring_progress(struct parley_node *node, int inflow)
{
    (void)inflow;
    ring_of(node)->progress_us = node->now_us;
}

void ring_parts_told(struct parley_node *node, struct conn *conn,
                     const struct message_strategy *tell)
{
    struct ring_try *now = &ring_of(node)->now;
    uint32_t stage = tell->part;
    if (!now->active || tell->tag != now->ticket || stage >= now->stages / 2 ||
        conn->id != now->conns[stage] || now->here & ring_bit(stage))
        return;
    struct ring_sum *sum = &now->sum;
    if (tell->value > sum->progress && tell->value <= 1) sum->progress = tell->value;
    if (!has_floats(node, stage)) stage_is_here(node, stage);
}

uint32_t ring_expected(const struct ring_try *now)
{
    uint32_t mask = 0;
    for (uint32_t stage = 0; stage < now->stages; stage++)
        if (now->conns[stage]) mask |= ring_bit(stage);
    return mask & ~now->here;
}

static void forget(struct parley_node *node, uint32_t stage)
{
    strategy_forget(node, (int)stage);
    ring_of(node)->now.conns[stage] = 0;
}

void ring_parts_abandon(struct parley_node *node)
{
    ring_of(node)->now.active = false;
    for (uint32_t stage = 0; stage < RING_STAGES_MAX; stage++)
        forget(node, stage);
}

void ring_parts_closed(struct parley_node *node, uint32_t conn)
{
    const struct ring_try *now = &ring_of(node)->now;
    for (uint32_t stage = 0; stage < now->stages; stage++)
        if (now->conns[stage] == conn) forget(node, stage);
}

/* ---- A try ----------------------------------------------------------------------------------- */

static void begin(struct parley_node *node)
{
    struct ring *ring = ring_of(node);
    uint32_t next = ring_buffer(node, RING_RESULT + !ring->result);
    if (ring->pending > 0 || ring_owes(node) || flow_is_sent(node, next) ||
        flow_is_sent(node, ring_buffer(node, RING_OWN)) ||
        flow_is_sent(node, ring_buffer(node, RING_PARTIAL)))
        return;
    ring_parts_abandon(node);
    ring->now = (struct ring_try){
        .active = true,
        .round = ring->round,
        .key = ring->key,
        .early = ring->early,
        .count = ring->members,
        .at = ring->at,
        .stages = ring->stages,
        .ticket = ++ring->tickets,
        .sum = {.count = ring->members,
                .divisor = ring->divisor > 0 ? ring->divisor : ring->members,
                .progress = ring->progress},
        .out = {.number = ring->now.out.number},
    };
    memcpy(ring->now.peers, ring->peers, sizeof ring->peers);
    ring->progress_us = node->now_us;
    for (uint32_t stage = ring->stages / 2; stage < ring->stages; stage++) {
        if (!has_floats(node, stage)) ring->now.here |= ring_bit(stage);
        if (!has_floats(node, mirror_of(&ring->now, stage))) ring->now.done |= ring_bit(stage);
    }
    if (ring->members == 1)
        combine(node, next, 0, ring_buffer(node, RING_OWN), (struct blocks){0, 1});
}

uint32_t ring_lacks(const struct parley_node *node)
{
    const struct ring_try *now = &ring_of(node)->now;
    uint32_t lanes = strategy_lanes(&node->config), sums = now->stages / 2;
    uint32_t room = now->summed + (lanes > 0 ? lanes : 1);
    uint32_t mask = ring_bit(room < sums ? room : sums) - 1;
    if (lanes > 0 || is_summed(now)) mask |= ring_bit(now->stages) - ring_bit(sums);
    return mask & ~now->here;
}

void ring_parts_advance(struct parley_node *node)
{
    struct ring *ring = ring_of(node);
    const struct ring_try *now = &ring->now;
    if (!ring_tries(ring)) begin(node);
    if (!ring_tries(ring)) return;
    uint32_t lacks = ring_lacks(node);
    for (uint32_t stage = 0; stage < now->stages; stage++) {
        if (!(lacks & ring_bit(stage)) || now->conns[stage]) continue;
        const struct conn *conn = connection_of(node, now->peers[stage]);
        if (!conn) continue;
        expect(node, stage, conn->id);
        ring->said = 0;
    }
}

/* ---- What goes out --------------------------------------------------------------------------- */

/* What it needs is here. The own contribution may be that to the next round once this one is
 * over; who is still without any sum of it then began anew, and takes it from the left. */
static bool is_ready(const struct ring *ring, uint32_t stage)
{
    const struct ring_try *now = &ring->now;
    if (!is_gathered(now, stage)) return now->round == ring->round && now->summed >= stage;
    uint32_t earlier = ring_bit(stage) - ring_bit(now->stages / 2);
    return is_summed(now) && (now->here & earlier) == earlier;
}

static bool is_live(struct parley_node *node, uint32_t id)
{
    const struct conn *conn = connection_find(node, id);
    return conn && conn->state == CONN_LIVE;
}

/* By whom it is asked for, perhaps before this try began here. */
static const struct ring_heard *who_asks(struct parley_node *node, uint32_t stage)
{
    const struct ring *ring = ring_of(node);
    const struct ring_try *now = &ring->now;
    const struct ring_heard *heard = ring_heard_of(node, now->peers[mirror_of(now, stage)]);
    uint64_t stamp = now->round == ring->round ? ring->stamp : ring->before;
    if (!heard || heard->place.key != now->key || heard->place.round != now->round ||
        heard->place.stamp != stamp || !(heard->place.part & ring_bit(stage)))
        return NULL;
    if (now->sent[stage].conn == heard->conn && now->sent[stage].ticket == heard->place.tag)
        return NULL;
    return is_live(node, heard->conn) ? heard : NULL;
}

static void begin_stage(struct parley_node *node, uint32_t stage, const struct ring_heard *heard)
{
    struct ring_try *now = &ring_of(node)->now;
    struct message_strategy tell = {
        .what = RING_TELL, .tag = heard->place.tag, .part = stage, .value = now->sum.progress};
    now->out = (struct ring_out){.active = true, .stage = stage, .number = now->out.number};
    now->sent[stage].conn = heard->conn;
    now->sent[stage].ticket = heard->place.tag;
    now->done &= ~ring_bit(stage);
    if (!is_gathered(now, stage))
        connection_send(node, connection_find(node, heard->conn), WIRE_STRATEGY, &tell);
}

static void choose_stage(struct parley_node *node)
{
    const struct ring *ring = ring_of(node);
    const struct ring_try *now = &ring->now;
    for (uint32_t stage = 0; stage < now->stages && !now->out.active; stage++) {
        const struct ring_heard *heard = is_ready(ring, stage) ? who_asks(node, stage) : NULL;
        if (heard) begin_stage(node, stage, heard);
    }
}

/* Asked for again, it is sent again. */
static void lose_stage(struct ring_try *now)
{
    now->out.active = now->out.busy = false;
    now->sent[now->out.stage].conn = 0;
}

static void send_part(struct parley_node *node)
{
    struct ring_try *now = &ring_of(node)->now;
    struct ring_out *out = &now->out;
    uint32_t conn = now->sent[out->stage].conn;
    struct strategy_part floats;
    out->part = next_part(node, blocks_of(now, mirror_of(now, out->stage)), out->part, &floats);
    if (out->part == 2) {
        out->active = false;
        now->done |= ring_bit(out->stage);
    } else if (!is_live(node, conn)) {
        lose_stage(now);
    } else {
        out->number = (out->number + 1) & NUMBERS;
        floats.tag = now->sent[out->stage].ticket;
        floats.part = (uint16_t)(2 * out->stage + out->part);
        floats.buffer = out->stage == 0                ? ring_buffer(node, RING_OWN)
                        : is_gathered(now, out->stage) ? result_buffer(node)
                                                       : ring_buffer(node, RING_PARTIAL);
        out->busy = strategy_send(node, conn, &floats, RING_SENT + out->number);
    }
}

void ring_parts_send(struct parley_node *node)
{
    struct ring_try *now = &ring_of(node)->now;
    while (now->active && !now->out.busy) {
        if (!now->out.active) choose_stage(node);
        if (!now->out.active) return;
        send_part(node);
        if (now->out.active && !now->out.busy) return; /* no room */
    }
}

void ring_sent(struct parley_node *node, int number, bool ok)
{
    struct ring_try *now = &ring_of(node)->now;
    if (number != RING_SENT + now->out.number || !now->out.busy) return;
    now->out.busy = false;
    now->out.part++;
    if (!ok) lose_stage(now);
}

bool ring_owes(const struct parley_node *node)
{
    const struct ring *ring = ring_of(node);
    const struct ring_try *now = &ring->now;
    bool moves = now->out.busy || node->now_us < ring->progress_us + OWES_US;
    if (!now->active || now->round == ring->round || !moves) return false;
    for (uint32_t stage = 0; stage < now->stages; stage++) {
        int to = now->peers[mirror_of(now, stage)];
        const struct ring_heard *heard = ring_heard_of(node, to);
        bool left = heard && (heard->place.round > now->round || heard->place.key != now->key);
        if (!(now->done & ring_bit(stage)) && !left && membership_is_live(node, to)) return true;
    }
    return false;
}
