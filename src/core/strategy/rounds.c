/* rounds.c: when a round begins and ends, and who takes part; see rounds.h. */
#include "core/strategy/rounds.h"

#include "core/link/redial.h"
#include "core/training/joining.h"
#include "core/training/training.h"

enum { ANEW_US = 100000 };

/* ---- A round --------------------------------------------------------------------------------- */

static bool takes_part(const struct parley_node *node, int member)
{
    return member != node->self && training_counts(node, (uint32_t)member);
}

/* Those left out count this node as their neighbour all the same, and go on alone. */
static void say_crowded(struct parley_node *node)
{
    if (rounds_of(node)->crowded) return;
    rounds_of(node)->crowded = true;
    out_log(node, PARLEY_LOG_WARN,
            "has more neighbours than the %u that a round has room for, and leaves the others out, "
            "who hardly average then: take a topology with fewer",
            node->strategy->neighbours);
}

/* Of the live graph as this node sees it now. */
static void find_neighbours(struct parley_node *node)
{
    struct rounds *s = rounds_of(node);
    struct parley_roster *roster = node->roster;
    const struct topology *t = roster_topology(roster, node->config.topology_seed);
    uint32_t own = roster->places[node->self].live;
    s->turnover = roster->turnover;
    s->count = 0;
    for (uint32_t at = 0; at < t->n; at++) {
        int member = (int)roster->live[at];
        double weight = at == own ? 0 : topology_weight(t, s->round, own, at);
        if (weight <= 0 || !takes_part(node, member)) continue;
        if (s->count == node->strategy->neighbours) {
            say_crowded(node);
            return;
        }
        s->neighbours[s->count++] = (struct neighbour){.member = member,
                                                       .boot = record_of(node, member)->boot,
                                                       .weight = (float)weight,
                                                       .lane = NONE,
                                                       .heard_us = node->now_us};
    }
}

/* Rounds that one may be ahead of another who keeps nobody waiting: where partners change from
 * round to round, only a sweep of them binds all together. */
static uint64_t most_apart(const struct parley_node *node)
{
    const struct topology *t = roster_topology(node->roster, node->config.topology_seed);
    return 2 * (topology_rounds(t) - 1);
}

/* Then it goes on with the furthest round; else it leaves out none, as somebody may wait for it. */
static bool is_late(const struct parley_node *node)
{
    const struct rounds *s = rounds_of(node);
    return s->ahead > s->round + most_apart(node);
}

static void start(struct parley_node *node)
{
    struct rounds *s = rounds_of(node);
    if (is_late(node)) s->round = s->ahead;
    s->stage = ROUNDS_MAKING;
    s->next_version = node->training.version + node->config.mix_every;
    find_neighbours(node);
    if (s->count > 0) s->use->make(node);
}

void rounds_made(struct parley_node *node, bool finite, uint64_t before)
{
    struct rounds *s = rounds_of(node);
    s->stage = ROUNDS_MIXING;
    s->before = before;
    s->said_us = 0;
    if (finite) return;
    node->training.diverged++; /* the others go on without it */
    for (uint32_t i = 0; i < s->count; i++)
        rounds_drop(node, &s->neighbours[i]);
}

static bool is_sent(const struct parley_node *node)
{
    bool has_short = node->strategy->buffers > ROUNDS_SHORT;
    return flow_is_sent(node, strategy_buffer(node, ROUNDS_OWN)) ||
           (has_short && flow_is_sent(node, strategy_buffer(node, ROUNDS_SHORT)));
}

static void end_if_over(struct parley_node *node)
{
    struct rounds *s = rounds_of(node);
    if (s->stage == ROUNDS_RESTING || (s->stage == ROUNDS_MAKING && s->count > 0)) return;
    for (uint32_t i = 0; i < s->count; i++)
        if (!rounds_is_over(&s->neighbours[i])) return;
    if (is_sent(node)) return;
    s->stage = ROUNDS_RESTING;
    s->round++;
}

/* Who can't be waited for any more. */
static void drop_lost(struct parley_node *node)
{
    struct rounds *s = rounds_of(node);
    for (uint32_t i = 0; s->stage != ROUNDS_RESTING && i < s->count; i++) {
        struct neighbour *n = &s->neighbours[i];
        if (!rounds_is_awaited(n)) continue;
        bool silent = node->now_us >= n->heard_us + node->config.progress_timeout_us;
        bool gone = !membership_is_live(node, n->member) ||
                    record_of(node, (uint32_t)n->member)->boot != n->boot;
        bool apart = membership_is_unreached(node, n->member); /* as n finds, too */
        if (apart) redial_unreached(node, n->member);
        if (silent || gone || apart) rounds_drop(node, n);
    }
}

/* Where somebody has come or gone a neighbour that said WAIT may begin the round without this node:
 * it says so once it is asked again. */
static uint64_t say_again_us(const struct parley_node *node)
{
    const struct rounds *s = rounds_of(node);
    bool anew = s->turnover != node->roster->turnover;
    return s->said_us == 0 ? node->now_us
                           : s->said_us + (anew ? ANEW_US : node->config.keepalive_us);
}

static void say_again(struct parley_node *node)
{
    struct rounds *s = rounds_of(node);
    if (s->stage != ROUNDS_MIXING || node->now_us < say_again_us(node)) return;
    s->said_us = node->now_us;
    for (uint32_t i = 0; i < s->count; i++)
        if (rounds_is_awaited(&s->neighbours[i])) rounds_announce(node, &s->neighbours[i]);
}

/* ---- When ------------------------------------------------------------------------------------ */

void rounds_begin(struct parley_node *node, const struct rounds_use *use)
{
    struct rounds *s = rounds_of(node);
    s->use = use;
    s->next_version = node->training.version + node->config.mix_every;
    s->lanes_count = (int)strategy_lanes(&node->config);
    s->lanes_open = ROUNDS_LANES;
    for (int lane = 0; lane < s->lanes_count; lane++)
        s->lanes[lane].neighbour = NONE;
}

/* Steps are made, or all of its budget are and others wait. */
static bool is_due(const struct parley_node *node)
{
    const struct rounds *s = rounds_of(node);
    if (node->training.version >= s->next_version) return true;
    return training_made_all(node, self_of(node)) && s->ahead >= s->round;
}

/* So many that another's model is worth more than its own: more than partners may be apart by, and
 * one more, as a graph may just have been laid anew. Who has brought a model of its own has missed
 * none of the rounds made before it came: it takes the others' number in start(). */
static bool has_missed_rounds(const struct parley_node *node)
{
    const struct rounds *s = rounds_of(node);
    bool new = s->round == 0 || node->now_us < node->training.early_us;
    if (new && node->training.before.steps > 0 && node->ledger.joins == 0) return false;
    uint64_t apart = most_apart(node) + 1;
    uint64_t old = node->config.behind_steps_max / node->config.mix_every;
    return s->ahead > s->round + (old > apart ? old : apart);
}

/* What it was ahead by is gone with it, or was never there: it gives no state. Others that are
 * ahead will say so: every frame tells. */
static bool has_lost_leader(const struct parley_node *node)
{
    const struct rounds *s = rounds_of(node);
    bool in_vain = node->now_us >= s->follows_us + node->config.progress_timeout_us;
    return node->fetch.state == FETCH_IDLE && (in_vain || !membership_is_live(node, s->leader));
}

void rounds_advance(struct parley_node *node)
{
    struct rounds *s = rounds_of(node);
    drop_lost(node);
    say_again(node);
    rounds_pump(node);
    end_if_over(node);
    if (s->stage != ROUNDS_RESTING || s->ending || node->training.diverged ||
        phase_of(node) != PARLEY_PHASE_TRAIN)
        return;
    if (!s->follows && has_missed_rounds(node)) {
        s->follows = true;
        s->follows_us = node->now_us;
    }
    if (s->follows && has_lost_leader(node)) {
        s->follows = false;
        s->ahead = 0;
    }
    if (s->follows)
        joining_follow(node, s->leader);
    else if (is_due(node))
        start(node);
}

uint64_t rounds_deadline(const struct parley_node *node)
{
    const struct rounds *s = rounds_of(node);
    if (s->stage != ROUNDS_MIXING) return NEVER;
    uint64_t at = say_again_us(node);
    for (uint32_t i = 0; i < s->count; i++) {
        const struct neighbour *n = &s->neighbours[i];
        if (rounds_is_awaited(n)) at = earlier(at, n->heard_us + node->config.progress_timeout_us);
    }
    return at;
}

uint64_t rounds_limit(const struct parley_node *node)
{
    return rounds_of(node)->next_version;
}

void rounds_give(struct parley_node *node, struct message_fetch *answer)
{
    answer->round = rounds_of(node)->round;
}

void rounds_adopted(struct parley_node *node, const struct message_fetch *answer)
{
    struct rounds *s = rounds_of(node);
    s->follows = false;
    if (answer->round > s->round) s->round = answer->round;
    s->next_version = node->training.version + node->config.mix_every;
}

/* Neighbours that are in the next round already shall not wait. */
static void refuse_next(struct parley_node *node)
{
    struct rounds *s = rounds_of(node);
    find_neighbours(node);
    for (uint32_t i = 0; i < s->count; i++)
        rounds_refuse(node, &s->neighbours[i]);
    s->refused = true;
}

bool rounds_stop(struct parley_node *node)
{
    struct rounds *s = rounds_of(node);
    s->ending = true;
    s->follows = false;
    bool rests = s->stage == ROUNDS_RESTING;
    if (rests && !s->refused) refuse_next(node);
    return rests;
}
