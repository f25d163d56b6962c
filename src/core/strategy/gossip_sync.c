/* gossip_sync.c: D-PSGD: synchronous rounds in which each node averages with all its neighbours.
 *
 * x_i <- sum_j w_ij x_j - rate * gradient(x_i) (Lian et al., "Can Decentralized Algorithms
 * Outperform Centralized Algorithms?", NeurIPS 2017, algorithm 1), with W symmetric, so doubly
 * stochastic (topology_weight()). Every --mix-every local steps a round:
 *
 *   snapshot s_i           TAKE; the local steps up to the next round go on meanwhile
 *   ROUND(r, weight) ->    to each neighbour; who is in round r, too, answers with its own
 *   PULL(r) ->             then s_j is asked for, and comes; d = s_j - s_i
 *   GOT(r) ->              x_i += w d, w the smaller of what both ends named
 *
 * A round ends when each neighbour's term is in, and it has ours: nobody is more than a round ahead
 * of a neighbour. As both ends add the same d with the same w, one with the other sign, the mean of
 * the live stays where it is, whatever the order. Either both ends of a link take its term or none,
 * but for deaths:
 *
 *   a neighbour dies or stops      its term is dropped; the others' weights stay, and what is left
 *                                  over counts as own weight. From the next round on the weights
 *                                  are those of the live graph. If it had sent its model to some:
 *                                  these keep that, and the mean of the living has moved by
 *                                  w (s_dead - s_i) / n for each, as if it had left them a part of
 *                                  its model.
 *   it only seemed dead, or was    the same, and it may have taken ours: the mean of the two moves
 *   silent for 10 s                once by w (s_j - s_i) / n. When it is back it goes on with the
 *                                  round that the others are in.
 *   a link breaks                  both say again what matters on the next one; no harm
 *   the two see different graphs   who is asked by somebody who is no neighbour says NO
 *   a node is late                 it joins the round that the others are in; if it is further
 *                                  behind than an exchange may be old, with another's model
 *
 * Nobody waits for who is ahead, so there is no circle of waiting.
 */
#include <assert.h>

#include "core/strategy/strategy.h"

#include "core/state.h"

enum { LANES = 2, SENDS = 4, SNAPSHOT = LANES /* buffer */ };

enum what { ROUND = 1, ANSWER, WAIT, PULL, GOT, NO };

/* Operations: the snapshot, or of a lane. */
enum { OP_SNAPSHOT, OP_DIFFED, OP_ADDED = OP_DIFFED + LANES };

struct neighbour {
    int member;
    float weight;
    bool met;     /* it is in this round, and has named its weight */
    bool dropped; /* it takes no part any more */
    bool pulled;  /* it waits for our snapshot */
    bool sending;
    bool got;   /* it has it for good */
    bool mixed; /* its term is in x, or decided to be */
    bool counted;
    int lane;    /* that its snapshot comes in; NONE */
    double part; /* of the cluster's samples, as it said */
    uint64_t heard_us;
};

struct lane {
    int neighbour; /* NONE: free */
    bool coming;
    double mass;
};

struct sync {
    uint64_t round;        /* the one under way, or the next */
    uint64_t next_version; /* own step count from which it may start */
    bool open, taken;
    bool ending, refused; /* no more rounds, and the neighbours know */
    bool follows;
    uint64_t ahead; /* the furthest round heard of */
    int leader;     /* from whom */
    uint64_t say_us;
    double part;
    struct neighbour neighbours[NEIGHBOURS_MAX];
    uint32_t count;
    struct lane lanes[LANES];
};

static struct sync *sync_of(const struct parley_node *node)
{
    return node->strategy_state;
}

static bool is_over(const struct neighbour *n)
{
    return (n->dropped || (n->mixed && n->got)) && n->lane == NONE;
}

static struct neighbour *find(struct sync *s, int member)
{
    for (uint32_t i = 0; s->open && i < s->count; i++)
        if (s->neighbours[i].member == member) return &s->neighbours[i];
    return NULL;
}

/* ---- Saying ---------------------------------------------------------------------------------- */

static void say(struct parley_node *node, struct conn *conn, enum what what, uint64_t round,
                const struct neighbour *n)
{
    const struct sync *s = sync_of(node);
    struct message_strategy message = {
        .what = what, .round = round, .stamp = s->round, .value = s->part};
    if (n) message.weight = (double)n->weight;
    connection_send(node, conn, WIRE_STRATEGY, &message);
}

static void announce(struct parley_node *node, struct neighbour *n)
{
    struct conn *conn = connection_want(node, n->member);
    if (conn) say(node, conn, ROUND, sync_of(node)->round, n);
}

/* ---- A round --------------------------------------------------------------------------------- */

static bool takes_part(const struct parley_node *node, int member)
{
    return member != node->self && membership_is_live(node, member) &&
           record_of(node, (uint32_t)member)->phase == PARLEY_PHASE_TRAIN;
}

/* Of the live graph as this node sees it now. */
static void find_neighbours(struct parley_node *node)
{
    struct sync *s = sync_of(node);
    struct parley_roster *roster = node->roster;
    const struct topology *t = roster_topology(roster, node->config.topology_seed);
    uint32_t own_place = 0, place = 0;
    for (uint32_t i = 0; roster->line[i] != (uint32_t)node->self; i++)
        own_place += record_is_live(record_of(node, roster->line[i]));
    s->count = 0;
    for (uint32_t i = 0; i < roster->count && s->count < NEIGHBOURS_MAX; i++) {
        int member = (int)roster->line[i];
        if (!membership_is_live(node, member)) continue;
        double weight = place == own_place ? 0 : topology_weight(t, s->round, own_place, place);
        place++;
        if (weight <= 0 || !takes_part(node, member)) continue;
        s->neighbours[s->count++] = (struct neighbour){
            .member = member, .weight = (float)weight, .lane = NONE, .heard_us = node->now_us};
    }
}

static void start(struct parley_node *node)
{
    struct sync *s = sync_of(node);
    if (s->ahead > s->round) s->round = s->ahead;
    s->open = true;
    s->taken = false;
    s->next_version = node->training.version + node->config.mix_every;
    find_neighbours(node);
    if (s->count > 0)
        strategy_op(node, PARLEY_UPDATE_TAKE, strategy_buffer(node, SNAPSHOT), OP_SNAPSHOT);
}

static void end_if_over(struct parley_node *node)
{
    struct sync *s = sync_of(node);
    if (!s->open || (s->count > 0 && !s->taken)) return;
    for (uint32_t i = 0; i < s->count; i++)
        if (!is_over(&s->neighbours[i])) return;
    if (strategy_is_sent(node, strategy_buffer(node, SNAPSHOT))) return;
    s->open = false;
    s->round++;
}

static void drop(struct parley_node *node, struct neighbour *n)
{
    struct sync *s = sync_of(node);
    n->dropped = true;
    if (n->lane == NONE || !s->lanes[n->lane].coming) return;
    strategy_forget(node, n->lane);
    s->lanes[n->lane].neighbour = NONE;
    n->lane = NONE;
}

/* Who can't be waited for any more. */
static void drop_lost(struct parley_node *node)
{
    struct sync *s = sync_of(node);
    for (uint32_t i = 0; s->open && i < s->count; i++) {
        struct neighbour *n = &s->neighbours[i];
        bool silent = node->now_us >= n->heard_us + node->config.progress_timeout_us;
        if (!n->dropped && !is_over(n) && (silent || !membership_is_live(node, n->member)))
            drop(node, n);
    }
}

static void say_again(struct parley_node *node)
{
    struct sync *s = sync_of(node);
    if (!s->open || !s->taken || node->now_us < s->say_us) return;
    s->say_us = node->now_us + node->config.keepalive_us;
    for (uint32_t i = 0; i < s->count; i++)
        if (!is_over(&s->neighbours[i]) && !s->neighbours[i].dropped)
            announce(node, &s->neighbours[i]);
}

/* ---- Models back and forth ------------------------------------------------------------------- */

static struct strategy_part whole(const struct parley_node *node, uint64_t round, uint32_t buffer)
{
    return (struct strategy_part){
        .tag = (uint32_t)round, .buffer = buffer, .size = node->config.parameters * sizeof(float)};
}

static void pull(struct parley_node *node, struct neighbour *n)
{
    struct sync *s = sync_of(node);
    struct conn *conn = connection_of(node, n->member);
    for (int lane = 0; conn && lane < LANES && n->lane == NONE; lane++) {
        if (s->lanes[lane].neighbour != NONE) continue;
        struct strategy_part part = whole(node, s->round, strategy_buffer(node, (uint32_t)lane));
        s->lanes[lane] = (struct lane){.neighbour = (int)(n - s->neighbours), .coming = true};
        n->lane = lane;
        strategy_expect(node, lane, conn->id, &part);
        say(node, conn, PULL, s->round, n);
    }
}

/* The end of the smaller boot counts the two as one exchange, before any of them can be applied. */
static void count_once(struct parley_node *node, struct neighbour *n)
{
    if (n->counted || self_of(node)->boot > record_of(node, n->member)->boot) return;
    n->counted = true;
    node->ledger.started++;
    node->ledger.committed++;
}

static void give(struct parley_node *node, struct neighbour *n)
{
    struct sync *s = sync_of(node);
    struct conn *conn = connection_of(node, n->member);
    struct strategy_part part = whole(node, s->round, strategy_buffer(node, SNAPSHOT));
    if (!conn || !strategy_send(node, conn->id, &part, (int)(n - s->neighbours))) return;
    n->pulled = false;
    n->sending = true;
    count_once(node, n);
}

static void pump(struct parley_node *node)
{
    struct sync *s = sync_of(node);
    for (uint32_t i = 0; s->open && s->taken && i < s->count; i++) {
        struct neighbour *n = &s->neighbours[i];
        if (n->dropped) continue;
        if (n->met && !n->mixed && n->lane == NONE) pull(node, n);
        if (n->pulled && !n->sending) give(node, n);
    }
}

static void received(struct parley_node *node, int lane)
{
    struct lane *l = &sync_of(node)->lanes[lane];
    l->coming = false;
    strategy_op(node, PARLEY_UPDATE_DIFF, strategy_buffer(node, (uint32_t)lane), OP_DIFFED + lane)
        ->vector.other = strategy_buffer(node, SNAPSHOT);
}

static void progress(struct parley_node *node, int lane)
{
    struct sync *s = sync_of(node);
    int at = s->lanes[lane].neighbour;
    if (at != NONE) s->neighbours[at].heard_us = node->now_us;
}

static void diffed(struct parley_node *node, int lane, const struct parley_event *event)
{
    struct sync *s = sync_of(node);
    struct lane *l = &s->lanes[lane];
    struct neighbour *n = &s->neighbours[l->neighbour];
    struct conn *conn = connection_of(node, n->member);
    if (!event->done.finite || n->dropped) {
        if (conn) say(node, conn, NO, s->round, NULL);
        n->dropped = true;
        n->lane = l->neighbour = NONE;
        return;
    }
    n->mixed = true;
    count_once(node, n);
    l->mass = event->done.mass;
    drift_pair(node, event->done.norm_sq, event->done.own_norm_sq);
    if (conn) say(node, conn, GOT, s->round, NULL);
    strategy_op(node, PARLEY_UPDATE_ADD, strategy_buffer(node, (uint32_t)lane), OP_ADDED + lane)
        ->vector.factor = n->weight;
}

static void added(struct parley_node *node, int lane)
{
    struct sync *s = sync_of(node);
    struct lane *l = &s->lanes[lane];
    struct neighbour *n = &s->neighbours[l->neighbour];
    exchange_applied(node, n->member, n->weight, l->mass, n->part - s->part);
    n->lane = l->neighbour = NONE;
}

static void done(struct parley_node *node, int number, const struct parley_event *event)
{
    struct sync *s = sync_of(node);
    if (number >= OP_ADDED)
        added(node, number - OP_ADDED);
    else if (number >= OP_DIFFED)
        diffed(node, number - OP_DIFFED, event);
    else {
        s->taken = true;
        s->say_us = node->now_us;
        s->part = node->training.part;
        if (event->done.finite) return;
        node->training.diverged++; /* the others go on without it */
        for (uint32_t i = 0; i < s->count; i++)
            drop(node, &s->neighbours[i]);
    }
}

static void sent(struct parley_node *node, int number, bool ok)
{
    sync_of(node)->neighbours[number].sending = false;
    (void)ok; /* if it was cut off it will be pulled again */
}

/* ---- Hearing --------------------------------------------------------------------------------- */

static void on_round(struct parley_node *node, struct conn *conn, struct neighbour *n,
                     const struct message_strategy *m)
{
    struct sync *s = sync_of(node);
    if (m->round > s->round || (m->round == s->round && (!s->open || !s->taken))) {
        if (n && m->round > s->round) drop(node, n); /* it went on without us */
        bool never = s->ending && (!s->open || m->round > s->round);
        say(node, conn, never ? NO : WAIT, m->round, NULL);
        return;
    }
    if (m->round < s->round || !n || n->dropped) {
        say(node, conn, NO, m->round, NULL);
        return;
    }
    if (!n->met && (float)m->weight < n->weight && m->weight > 0) n->weight = (float)m->weight;
    n->met = true;
    n->part = m->value;
    if (m->what == ROUND) say(node, conn, ANSWER, s->round, n);
    if (n->mixed) say(node, conn, GOT, s->round, NULL);
}

static void frame(struct parley_node *node, struct conn *conn,
                  const struct message_strategy *message)
{
    struct sync *s = sync_of(node);
    struct neighbour *n = find(s, conn->member);
    bool now = s->open && message->round == s->round;
    if (n) n->heard_us = node->now_us;
    if (message->stamp > s->ahead && message->stamp < UINT64_MAX / 2) {
        s->ahead = message->stamp;
        s->leader = conn->member;
    }
    switch (message->what) {
    case ROUND:
    case ANSWER:
        if (message->value >= 0 && message->value < 1e18) on_round(node, conn, n, message);
        return;
    case PULL:
        if (now && s->taken && n && !n->dropped)
            n->pulled = true;
        else
            say(node, conn, NO, message->round, NULL);
        return;
    case GOT:
        if (now && n) n->got = true;
        return;
    case NO:
        if (now && n) drop(node, n);
        return;
    default:
        return;
    }
}

static void live(struct parley_node *node, struct conn *conn)
{
    struct sync *s = sync_of(node);
    struct neighbour *n = find(s, conn->member);
    if (n && s->taken && !n->dropped && !is_over(n)) say(node, conn, ROUND, s->round, n);
}

static void closed(struct parley_node *node, uint32_t conn, int member)
{
    struct sync *s = sync_of(node);
    struct neighbour *n = find(s, member);
    (void)conn;
    if (!n) return;
    n->pulled = false;
    if (n->lane == NONE || !s->lanes[n->lane].coming) return;
    strategy_forget(node, n->lane);
    s->lanes[n->lane].neighbour = NONE;
    n->lane = NONE;
}

/* ---- When ------------------------------------------------------------------------------------ */

static void begin(struct parley_node *node)
{
    struct sync *s = sync_of(node);
    s->next_version = node->training.version + node->config.mix_every;
    for (int lane = 0; lane < LANES; lane++)
        s->lanes[lane].neighbour = NONE;
}

/* Steps are made, or all of its budget are and others wait. */
static bool is_due(const struct parley_node *node)
{
    const struct sync *s = sync_of(node);
    uint64_t budget = node->config.steps_budget;
    if (node->training.version >= s->next_version) return true;
    return budget && node->training.version >= budget && s->ahead >= s->round;
}

static void advance(struct parley_node *node)
{
    struct sync *s = sync_of(node);
    uint64_t behind = s->ahead > s->round ? s->ahead - s->round : 0;
    drop_lost(node);
    say_again(node);
    pump(node);
    end_if_over(node);
    if (s->open || s->ending || node->training.diverged || phase_of(node) != PARLEY_PHASE_TRAIN)
        return;
    if (behind * node->config.mix_every > node->config.behind_steps_max) s->follows = true;
    if (s->follows)
        training_follow(node, membership_is_live(node, s->leader) ? s->leader : NONE);
    else if (is_due(node))
        start(node);
}

static uint64_t deadline(const struct parley_node *node)
{
    const struct sync *s = sync_of(node);
    if (!s->open || !s->taken) return NEVER;
    uint64_t at = s->say_us;
    for (uint32_t i = 0; i < s->count; i++) {
        const struct neighbour *n = &s->neighbours[i];
        uint64_t silent = n->heard_us + node->config.progress_timeout_us;
        if (!n->dropped && !is_over(n) && silent < at) at = silent;
    }
    return at;
}

static uint64_t limit(const struct parley_node *node)
{
    return sync_of(node)->next_version;
}

static void give_state(struct parley_node *node, struct message_fetch *answer)
{
    answer->round = sync_of(node)->round;
}

static void adopted(struct parley_node *node, const struct message_fetch *answer)
{
    struct sync *s = sync_of(node);
    s->follows = false;
    if (answer->round > s->round) s->round = answer->round;
    s->next_version = node->training.version + node->config.mix_every;
}

/* Neighbours that are in the next round already shall not wait. */
static void refuse_next(struct parley_node *node)
{
    struct sync *s = sync_of(node);
    find_neighbours(node);
    for (uint32_t i = 0; i < s->count; i++) {
        struct conn *conn = connection_of(node, s->neighbours[i].member);
        if (conn) say(node, conn, NO, s->round, NULL);
    }
    s->refused = true;
}

static bool stop(struct parley_node *node)
{
    struct sync *s = sync_of(node);
    s->ending = true;
    s->follows = false;
    if (!s->open && !s->refused) refuse_next(node);
    return !s->open;
}

const struct strategy strategy_gossip_sync = {
    .name = "gossip-sync",
    .size = sizeof(struct sync),
    .buffers = LANES + 1,
    .inflows = LANES,
    .outflows = SENDS,
    .begin = begin,
    .advance = advance,
    .deadline = deadline,
    .limit = limit,
    .done = done,
    .received = received,
    .progress = progress,
    .sent = sent,
    .frame = frame,
    .live = live,
    .closed = closed,
    .give = give_state,
    .adopted = adopted,
    .stop = stop,
};
