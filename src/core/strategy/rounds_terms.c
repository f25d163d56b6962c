/* rounds_terms.c: what is said between neighbours, and their models back and forth; see rounds.h.
 */
#include "core/strategy/rounds.h"

#include "core/transfer/codec.h"

enum what { ROUND = 1, ANSWER, WAIT, PULL, GOT, NO };

/* The two forms of a z, as parts of a stream and of PULL. */
enum { WHOLE, SHORT };

/* Operations of a lane. */
enum { OP_READ, OP_DIFFED = OP_READ + ROUNDS_LANES_MAX, OP_ADDED = OP_DIFFED + ROUNDS_LANES_MAX };
_Static_assert(OP_ADDED + ROUNDS_LANES_MAX <= ROUNDS_NUMBERS, "one number for one thing");

/* Who has the place of one that was in the round is not that one. */
static struct neighbour *find(struct parley_node *node, int member)
{
    struct rounds *s = rounds_of(node);
    for (uint32_t i = 0; s->stage != ROUNDS_RESTING && i < s->count; i++)
        if (s->neighbours[i].member == member &&
            s->neighbours[i].boot == record_of(node, (uint32_t)member)->boot)
            return &s->neighbours[i];
    return NULL;
}

/* ---- Saying ---------------------------------------------------------------------------------- */

static void say(struct parley_node *node, struct conn *conn, enum what what, uint64_t round,
                const struct neighbour *n)
{
    const struct rounds *s = rounds_of(node);
    struct message_strategy message = {.what = what, .round = round, .stamp = s->round};
    if (n) {
        message.weight = (double)n->weight;
        message.before = s->before;
    }
    connection_send(node, conn, WIRE_STRATEGY, &message);
}

void rounds_announce(struct parley_node *node, const struct neighbour *n)
{
    struct conn *conn = connection_want(node, n->member);
    if (conn) say(node, conn, ROUND, rounds_of(node)->round, n);
}

void rounds_refuse(struct parley_node *node, const struct neighbour *n)
{
    struct conn *conn = connection_of(node, n->member);
    if (conn) say(node, conn, NO, rounds_of(node)->round, NULL);
}

static void free_lane(struct rounds *s, struct neighbour *n)
{
    s->lanes[n->lane].neighbour = NONE;
    n->lane = NONE;
}

static void forget_lane(struct parley_node *node, struct neighbour *n)
{
    struct rounds *s = rounds_of(node);
    if (n->lane == NONE || !s->lanes[n->lane].coming) return;
    strategy_forget(node, n->lane);
    free_lane(s, n);
}

void rounds_drop(struct parley_node *node, struct neighbour *n)
{
    n->dropped = true;
    forget_lane(node, n);
}

/* ---- Models back and forth ------------------------------------------------------------------- */

static struct strategy_part part_of(const struct parley_node *node, bool is_short, uint32_t buffer)
{
    const struct parley_config *c = &node->config;
    return (struct strategy_part){
        .tag = (uint32_t)rounds_of(node)->round,
        .part = is_short ? SHORT : WHOLE,
        .buffer = buffer,
        .size = codec_bytes(is_short ? c->codec : PARLEY_CODEC_FP32, c->codec_part, c->parameters)};
}

static void ask(struct parley_node *node, struct neighbour *n, struct conn *conn, int lane)
{
    struct rounds *s = rounds_of(node);
    bool is_short = s->use->fits && s->use->fits(node, n);
    struct strategy_part part = part_of(node, is_short, strategy_lane_buffer(node, lane));
    struct message_strategy message = {
        .what = PULL, .round = s->round, .stamp = s->round, .part = part.part};
    s->lanes[lane] =
        (struct lane){.neighbour = (int)(n - s->neighbours), .coming = true, .is_short = is_short};
    n->lane = lane;
    strategy_expect(node, lane, conn->id, &part);
    connection_send(node, conn, WIRE_STRATEGY, &message);
}

static void pull(struct parley_node *node, struct neighbour *n)
{
    struct rounds *s = rounds_of(node);
    struct conn *conn = connection_of(node, n->member);
    int used = 0;
    for (int lane = 0; lane < s->lanes_count; lane++)
        used += s->lanes[lane].neighbour != NONE;
    for (int lane = 0; conn && used < s->lanes_open && n->lane == NONE; lane++)
        if (s->lanes[lane].neighbour == NONE) ask(node, n, conn, lane);
}

/* The end of the smaller boot counts the two as one exchange, before any of them can be applied. */
static void count_once(struct parley_node *node, struct neighbour *n)
{
    if (n->counted || self_of(node)->boot > record_of(node, (uint32_t)n->member)->boot) return;
    n->counted = true;
    node->ledger.started++;
    node->ledger.committed++;
}

static void give(struct parley_node *node, struct neighbour *n)
{
    struct rounds *s = rounds_of(node);
    struct conn *conn = connection_of(node, n->member);
    uint32_t buffer = strategy_buffer(node, n->pulls_short ? ROUNDS_SHORT : ROUNDS_OWN);
    struct strategy_part part = part_of(node, n->pulls_short, buffer);
    if (!conn || !strategy_send(node, conn->id, &part, (int)(n - s->neighbours))) return;
    n->pulled = false;
    n->sending = true;
    count_once(node, n);
}

void rounds_pump(struct parley_node *node)
{
    struct rounds *s = rounds_of(node);
    for (uint32_t i = 0; s->stage == ROUNDS_MIXING && i < s->count; i++) {
        struct neighbour *n = &s->neighbours[i];
        if (n->dropped) continue;
        if (n->met && !n->mixed && n->lane == NONE) pull(node, n);
        if (n->pulled && !n->sending) give(node, n);
    }
}

/* Where a model comes fast once it comes, it is the way there and back that takes time, and others
 * may come meanwhile. Where it is the line, probes would be held up by a queue before it. */
static void open_lanes(struct rounds *s, uint64_t took_us)
{
    enum { LONG_US = 200000 };
    if (took_us <= LONG_US && s->lanes_open < s->lanes_count) s->lanes_open++;
    if (took_us > LONG_US && s->lanes_open > ROUNDS_LANES) s->lanes_open--;
}

void rounds_received(struct parley_node *node, int lane)
{
    struct rounds *s = rounds_of(node);
    struct lane *l = &s->lanes[lane];
    open_lanes(s, node->now_us - l->first_us);
    uint32_t buffer = strategy_lane_buffer(node, lane);
    l->coming = false;
    if (s->use->read)
        s->use->read(node, &s->neighbours[l->neighbour], l->is_short, buffer, OP_READ + lane);
    strategy_op(node, PARLEY_UPDATE_DIFF, buffer, OP_DIFFED + lane)->vector.other =
        strategy_buffer(node, ROUNDS_OWN);
}

void rounds_progress(struct parley_node *node, int lane)
{
    struct rounds *s = rounds_of(node);
    struct lane *l = &s->lanes[lane];
    if (l->first_us == 0) l->first_us = node->now_us;
    if (l->neighbour != NONE) s->neighbours[l->neighbour].heard_us = node->now_us;
}

static void add(struct parley_node *node, uint32_t buffer, float factor, int number)
{
    const struct rounds *s = rounds_of(node);
    if (s->use->add)
        s->use->add(node, buffer, factor, number);
    else
        strategy_op(node, PARLEY_UPDATE_ADD, buffer, number)->vector.factor = factor;
}

static void diffed(struct parley_node *node, int lane, const struct parley_event *event)
{
    struct rounds *s = rounds_of(node);
    struct lane *l = &s->lanes[lane];
    struct neighbour *n = &s->neighbours[l->neighbour];
    struct conn *conn = connection_of(node, n->member);
    bool ok = event->done.finite && !l->broken && !n->dropped;
    if (s->use->mixed) s->use->mixed(node, n, ok);
    if (!ok) {
        if (conn) say(node, conn, NO, s->round, NULL);
        n->dropped = true;
        free_lane(s, n);
        return;
    }
    n->mixed = true;
    count_once(node, n);
    l->mass = event->done.mass;
    drift_pair(node, event->done.norm_sq, event->done.own_norm_sq);
    if (conn) say(node, conn, GOT, s->round, NULL);
    if (s->use->step) n->weight *= s->use->step(node);
    add(node, strategy_lane_buffer(node, lane), n->weight, OP_ADDED + lane);
}

static void added(struct parley_node *node, int lane)
{
    struct rounds *s = rounds_of(node);
    struct lane *l = &s->lanes[lane];
    struct neighbour *n = &s->neighbours[l->neighbour];
    exchange_applied(node, n->member, n->weight, l->mass);
    free_lane(s, n);
}

int rounds_lane_added(int number)
{
    return number >= OP_ADDED && number < ROUNDS_NUMBERS ? number - OP_ADDED : NONE;
}

void rounds_done(struct parley_node *node, int number, const struct parley_event *event)
{
    if (number >= OP_ADDED)
        added(node, number - OP_ADDED);
    else if (number >= OP_DIFFED)
        diffed(node, number - OP_DIFFED, event);
    else if (!event->done.finite)
        rounds_of(node)->lanes[number - OP_READ].broken = true;
}

void rounds_sent(struct parley_node *node, int number, bool ok)
{
    rounds_of(node)->neighbours[number].sending = false;
    (void)ok; /* if it was cut off it will be pulled again */
}

/* ---- Hearing --------------------------------------------------------------------------------- */

static void on_round(struct parley_node *node, struct conn *conn, struct neighbour *n,
                     const struct message_strategy *m)
{
    struct rounds *s = rounds_of(node);
    if (m->round > s->round || (m->round == s->round && s->stage != ROUNDS_MIXING)) {
        if (n && m->round > s->round) rounds_drop(node, n); /* it went on without us */
        bool ends = s->ending || phase_of(node) == PARLEY_PHASE_LATE;
        bool never = ends && (s->stage == ROUNDS_RESTING || m->round > s->round);
        say(node, conn, never ? NO : WAIT, m->round, NULL);
        return;
    }
    if (m->round < s->round || !n || n->dropped) {
        say(node, conn, NO, m->round, NULL);
        return;
    }
    if (!n->met && (float)m->weight < n->weight && m->weight > 0) n->weight = (float)m->weight;
    n->met = true;
    n->before = m->before;
    if (m->what == ROUND) say(node, conn, ANSWER, s->round, n);
    if (n->mixed) say(node, conn, GOT, s->round, NULL);
}

static void on_pull(struct parley_node *node, struct conn *conn, struct neighbour *n,
                    const struct message_strategy *m)
{
    const struct rounds *s = rounds_of(node);
    bool has = m->part == WHOLE || (m->part == SHORT && s->before > 0);
    if (m->round == s->round && s->stage == ROUNDS_MIXING && n && !n->dropped && has) {
        n->pulled = true;
        n->pulls_short = m->part == SHORT;
    } else {
        say(node, conn, NO, m->round, NULL);
    }
}

void rounds_frame(struct parley_node *node, struct conn *conn,
                  const struct message_strategy *message)
{
    struct rounds *s = rounds_of(node);
    struct neighbour *n = find(node, conn->member);
    bool now = n && message->round == s->round;
    if (n) n->heard_us = node->now_us;
    if (message->stamp > s->ahead && message->stamp < UINT64_MAX / 2) {
        s->ahead = message->stamp;
        s->leader = conn->member;
    }
    switch (message->what) {
    case ROUND:
    case ANSWER:
        on_round(node, conn, n, message);
        return;
    case PULL:
        on_pull(node, conn, n, message);
        return;
    case GOT:
        if (now) n->got = true;
        return;
    case NO:
        if (now) rounds_drop(node, n);
        return;
    default:
        return;
    }
}

void rounds_live(struct parley_node *node, struct conn *conn)
{
    struct rounds *s = rounds_of(node);
    struct neighbour *n = find(node, conn->member);
    if (n && s->stage == ROUNDS_MIXING && rounds_is_awaited(n)) say(node, conn, ROUND, s->round, n);
}

void rounds_closed(struct parley_node *node, uint32_t conn, int member)
{
    struct neighbour *n = find(node, member);
    (void)conn;
    if (!n) return;
    n->pulled = false;
    forget_lane(node, n);
}
