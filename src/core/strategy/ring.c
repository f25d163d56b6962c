/* ring.c: see ring.h. The places, who is where, and what follows from that.
 *
 *   RESTING   makes a contribution -> MAKING -> RESTING with it: parts go round (ring_parts.c)
 *   USING     the sum is here, and is put to use; then the next round
 *   PULLING, FOLLOWING   where the left is ahead
 */
#include "core/link/redial.h"
#include "core/membership/probe.h"
#include "core/strategy/ring_state.h"
#include "core/training/joining.h"

enum {
    LOOK_US = 100000,      /* while something is waited for */
    AGAIN_US = 1000000,    /* what was said is said again, if nothing moves */
    PULL_US = 5000000,     /* then a sum is asked for again that has not begun to come */
    COMPLAIN_US = 2000000, /* then people are told who keeps all waiting, ... */
    STANDS_US = 10000000,  /* ... and then that somebody does */
};

/* ---- The members of a round ------------------------------------------------------------------ */

/* See stand_aside(). */
static bool is_aside(const struct parley_node *node)
{
    return self_of(node)->aside;
}

static bool is_member(const struct parley_node *node, uint32_t member)
{
    const struct record *r = record_of(node, member);
    if (r->aside) return false;
    if ((int)member == node->self) return true;
    if (!record_is_live(r)) return false;
    if (r->phase == PARLEY_PHASE_JOINING) return member < ring_of(node)->early;
    return r->phase >= PARLEY_PHASE_TRAIN && r->phase <= PARLEY_PHASE_SETTLE;
}

/* Who stands at the distances of the stages, to the left and to the right. */
static void find_peers(struct parley_node *node)
{
    struct ring *ring = ring_of(node);
    uint32_t n = ring->members, right = n - ring->at;
    ring->stages = is_aside(node) ? 0 : ring_stages(n);
    if (is_aside(node)) return;
    for (uint32_t i = 0; i < node->roster->count; i++) {
        uint32_t member = node->roster->line[i], skip = ring_skip(n);
        if (!is_member(node, member)) continue;
        for (uint32_t k = 0; k < ring->stages / 2; k++, skip = ring_skip(skip)) {
            if (right % n + skip == n) ring->peers[k] = (int)member;
            if (right % n == skip) ring->peers[ring->stages - 1 - k] = (int)member;
        }
        right++;
    }
    ring->left = n == 1 ? NONE : ring->peers[ring->stages / 2 - 1];
}

/* Before the first round all who are there are waited for, or else the first to train would be
 * rounds ahead; after it they have trained, whether or not that has been heard of. */
static void look(struct parley_node *node)
{
    struct ring *ring = ring_of(node);
    uint32_t early = ring->now.early;
    if (ring->round == ring->begun) early = node->roster->count;
    if (node->now_us >= node->training.early_us) early = 0;
    if (ring->news == node->roster->news && ring->early == early) return;
    ring->news = node->roster->news;
    ring->early = early;
    ring->members = 0;
    ring->key = 1;
    for (uint32_t i = 0; i < node->roster->count; i++) {
        uint32_t member = node->roster->line[i];
        if (!is_member(node, member)) continue;
        ring->key = rng_mix(ring->key ^ record_of(node, member)->boot);
        if ((int)member == node->self) ring->at = ring->members;
        ring->members++;
    }
    find_peers(node);
    ring->unlinked = true;
    ring->said = 0;
}

const struct ring_heard *ring_heard_of(const struct parley_node *node, int member)
{
    const struct ring *ring = ring_of(node);
    for (uint32_t i = 0; member != NONE && i < ring->heard_count; i++)
        if (ring->heard[i].boot == record_of(node, (uint32_t)member)->boot) return &ring->heard[i];
    return NULL;
}

static const struct message_strategy *place_of(const struct parley_node *node, int member)
{
    const struct ring_heard *heard = ring_heard_of(node, member);
    return heard ? &heard->place : NULL;
}

static void hear(struct parley_node *node, const struct conn *conn,
                 const struct message_strategy *place)
{
    struct ring *ring = ring_of(node);
    uint64_t boot = record_of(node, (uint32_t)conn->member)->boot;
    uint32_t at = 0;
    while (at < ring->heard_count && ring->heard[at].boot != boot)
        at++;
    if (at == RING_HEARD_MAX) at = ring->heard_next++ % RING_HEARD_MAX;
    if (at == ring->heard_count) ring->heard_count++;
    ring->heard[at] = (struct ring_heard){boot, conn->id, *place};
}

/* ---- Saying where one is --------------------------------------------------------------------- */

static bool has_stopped(const struct parley_node *node)
{
    const struct ring *ring = ring_of(node);
    return phase_of(node) != PARLEY_PHASE_TRAIN ||
           (ring->ending && ring->stage == RING_RESTING && !ring->made);
}

static struct message_strategy own_place(const struct parley_node *node)
{
    const struct ring *ring = ring_of(node);
    const struct ring_try *now = &ring->now;
    bool tries = ring->made && ring_is_of_round(ring);
    return (struct message_strategy){
        .what = has_stopped(node) ? RING_STOPPED : RING_PLACE,
        .round = ring->round,
        .stamp = ring->stamp,
        .before = ring->before,
        .count = ring->sum.count,
        .value = ring->sum.progress,
        .weight = ring->sum.divisor,
        .key = tries ? now->key : 0,
        .tag = tries ? now->ticket : 0,
        .part = tries ? ring_expected(now) : 0,
    };
}

static bool is_among(const int *peers, uint32_t count, int member)
{
    for (uint32_t i = 0; i < count; i++)
        if (peers[i] == member) return true;
    return false;
}

/* To each once, and to none of those who have been told. */
static void tell(struct parley_node *node, const struct message_strategy *place, const int *peers,
                 uint32_t count, const int *told, uint32_t told_count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (is_among(peers, i, peers[i]) || is_among(told, told_count, peers[i])) continue;
        struct conn *conn = connection_of(node, peers[i]);
        if (conn) connection_send(node, conn, WIRE_STRATEGY, place);
    }
}

/* To some it is what they have on their left. */
static void tell_who_stand_aside(struct parley_node *node, const struct message_strategy *place)
{
    for (uint32_t i = 0; i < node->open_count; i++) {
        int member = node->open[i].member;
        if (member != NONE && record_of(node, (uint32_t)member)->aside)
            connection_send(node, connection_at(node, i), WIRE_STRATEGY, place);
    }
}

static void say(struct parley_node *node)
{
    struct ring *ring = ring_of(node);
    const struct ring_try *now = &ring->now;
    struct message_strategy place = own_place(node);
    uint64_t said = rng_mix(place.stamp ^ place.key) ^ place.tag << 8 ^ place.what;
    if (said == ring->said && node->now_us < ring->said_us + AGAIN_US) return;
    if (ring_owes(node)) return;
    ring->said = said;
    ring->said_us = node->now_us;
    tell(node, &place, ring->peers, ring->stages, NULL, 0);
    /* Also to those of a try that the members have changed since: they may wait for this node. */
    if (now->active) tell(node, &place, now->peers, now->stages, ring->peers, ring->stages);
    tell_who_stand_aside(node, &place);
}

/* ---- Where the left is ahead ----------------------------------------------------------------- */

static bool is_ahead(const struct ring *ring, const struct message_strategy *place)
{
    return place->round > ring->round ||
           (place->round == ring->round && place->stamp > ring->stamp);
}

static void abandon(struct parley_node *node)
{
    ring_of(node)->now.active = false;
    ring_parts_forget(node);
}

static void pull(struct parley_node *node, const struct message_strategy *place)
{
    struct ring *ring = ring_of(node);
    struct conn *conn = connection_of(node, ring->left);
    uint32_t buffer = ring_buffer(node, RING_RESULT + !ring->result);
    bool sane = place->count > 0 && place->weight > 0 && place->value >= 0 && place->value <= 1;
    if (!conn || ring->pending > 0 || flow_is_sent(node, buffer) || !sane) return;
    abandon(node);
    ring->pull = *place;
    ring->pull_conn = conn->id;
    ring->progress_us = node->now_us;
    ring->stage = RING_PULLING;
    struct message_strategy ask = {.what = RING_PULL, .round = ring->round, .tag = ++ring->tickets};
    strategy_expect(
        node, RING_WHOLE, conn->id,
        &(struct strategy_part){
            .tag = ask.tag, .part = RING_WHOLE_PART, .buffer = buffer, .size = vector_bytes(node)});
    connection_send(node, conn, WIRE_STRATEGY, &ask);
}

/* Who has gone on gives another sum; over long lines this one may be on its way all the same. */
static bool pulls_in_vain(struct parley_node *node)
{
    const struct ring *ring = ring_of(node);
    const struct message_strategy *place = place_of(node, ring->left);
    bool gives = place && place->stamp == ring->pull.stamp;
    return !connection_find(node, ring->pull_conn) ||
           node->now_us >= ring->progress_us + (gives ? PULL_US : AGAIN_US);
}

/* The left has completed the try that is under way here: what lacks is on its way from others. */
static bool is_about_to(const struct parley_node *node, const struct message_strategy *place)
{
    const struct ring *ring = ring_of(node);
    return ring->made && ring_tries(ring) && place->stamp == rng_mix(ring->stamp ^ ring->key) &&
           node->now_us < ring->progress_us + AGAIN_US;
}

/* True: nothing else is to be done. */
static bool catches_up(struct parley_node *node)
{
    struct ring *ring = ring_of(node);
    const struct message_strategy *place = place_of(node, ring->left);
    if (!place || !is_ahead(ring, place) || ring_is_whole(node) || is_about_to(node, place))
        return false;
    if (place->round == ring->round + 1 && place->before == ring->stamp)
        pull(node, place);
    else
        ring->stage = RING_FOLLOWING;
    return true;
}

static void follow(struct parley_node *node)
{
    struct ring *ring = ring_of(node);
    const struct message_strategy *place = place_of(node, ring->left);
    if (node->fetch.state != FETCH_IDLE) return;
    abandon(node);
    if (ring->pending > 0) return;
    if (place && is_ahead(ring, place))
        joining_follow(node, ring->left);
    else
        ring->stage = RING_RESTING;
}

void ring_give(struct parley_node *node, struct message_fetch *answer)
{
    answer->round = ring_of(node)->round;
    answer->stamp = ring_of(node)->stamp;
}

void ring_adopted(struct parley_node *node, const struct message_fetch *answer)
{
    struct ring *ring = ring_of(node);
    abandon(node);
    ring->stage = RING_RESTING;
    ring->made = false;
    ring->round = answer->round;
    ring->stamp = answer->stamp;
    ring->before = 0;
    ring->sum.count = 0;
    ring->progress_us = node->now_us;
    training_counted(node);
}

/* The other end lacks the sum of a round. */
static void hand(struct parley_node *node, const struct conn *conn,
                 const struct message_strategy *ask)
{
    const struct ring *ring = ring_of(node);
    if (ring->sum.count == 0 || ask->round + 1 != ring->round) return;
    for (uint32_t i = 0; i < node->outflows_count; i++) { /* it asks again before that has come */
        const struct outflow *out = &node->outflows[i];
        if (out->active && out->slot == FLOW_STRATEGY && out->conn == conn->id &&
            out->part == RING_WHOLE_PART)
            return;
    }
    strategy_send(node, conn->id,
                  &(struct strategy_part){.tag = ask->tag,
                                          .part = RING_WHOLE_PART,
                                          .buffer = ring_buffer(node, RING_RESULT + ring->result),
                                          .size = vector_bytes(node)},
                  RING_HANDED);
}

/* ---- Rounds ---------------------------------------------------------------------------------- */

void ring_finish(struct parley_node *node, const struct ring_sum *sum, uint64_t stamp)
{
    struct ring *ring = ring_of(node);
    ring->before = ring->stamp;
    ring->stamp = stamp;
    ring->round++;
    ring->sum = *sum;
    ring->result = !ring->result;
    ring->made = false;
    ring->stage = RING_USING;
    ring->progress_us = node->now_us;
    ring->complained = false;
    if (ring->use->use)
        ring->use->use(node, ring_buffer(node, RING_RESULT + ring->result), &ring->sum);
}

void ring_pulled(struct parley_node *node)
{
    const struct message_strategy *of = &ring_of(node)->pull;
    struct ring_sum sum = {.count = of->count, .divisor = of->weight, .progress = of->value};
    ring_finish(node, &sum, of->stamp);
}

void ring_made(struct parley_node *node, double divisor)
{
    struct ring *ring = ring_of(node);
    ring->divisor = divisor;
    ring->progress = training_progress(node);
    ring->made = true;
    ring->stage = RING_RESTING;
    ring->progress_us = node->now_us;
}

void ring_used(struct parley_node *node)
{
    ring_of(node)->stage = RING_RESTING;
    training_counted(node);
}

uint64_t ring_steps(const struct parley_node *node)
{
    return ring_of(node)->round - ring_of(node)->begun;
}

bool ring_is_awaited(const struct parley_node *node)
{
    const struct ring *ring = ring_of(node);
    for (uint32_t stage = 0; stage < ring->stages; stage++) {
        const struct message_strategy *place = place_of(node, ring->peers[stage]);
        if (place && place->key != 0 && place->round >= ring->round) return true;
    }
    return false;
}

static void rest(struct parley_node *node)
{
    struct ring *ring = ring_of(node);
    uint32_t own = ring_buffer(node, RING_OWN);
    bool soon = is_aside(node) && !ring->ending && node->now_us < ring->progress_us + AGAIN_US;
    if (phase_of(node) != PARLEY_PHASE_TRAIN || soon || catches_up(node)) return;
    bool met = ring->left == NONE || place_of(node, ring->left);
    bool wanted = training_wants(node) || (ring->use->goes_on && ring_is_awaited(node));
    if (!ring->made && met && !is_aside(node) && !ring->ending && !node->leaving && wanted &&
        !flow_is_sent(node, own)) {
        ring->stage = RING_MAKING;
        ring->use->make(node, own);
    } else if (ring->made) {
        ring_parts_advance(node);
    }
}

/* Who waits tells whom for, if that one is the cause: others wait, too. */
static void complain(struct parley_node *node)
{
    struct ring *ring = ring_of(node);
    bool waits = ring->made && ring->stage == RING_RESTING && ring_tries(ring);
    if (!waits || ring->complained || node->now_us < ring->progress_us + COMPLAIN_US) return;
    unsigned long long round = (unsigned long long)ring->round + 1;
    for (uint32_t stage = 0; stage < ring->stages && !ring->complained; stage++) {
        const struct message_strategy *place = place_of(node, ring->peers[stage]);
        bool linked = connection_of(node, ring->peers[stage]), waits_too = place && place->key != 0;
        if (!(ring_lacks(node) & ring_bit(stage)) || (linked && waits_too)) continue;
        ring->complained = true;
        out_log(node, PARLEY_LOG_INFO, "round %llu waits for %s%s", round,
                record_of(node, (uint32_t)ring->peers[stage])->name,
                linked ? "" : ": there is no connection");
    }
    if (ring->complained || node->now_us < ring->progress_us + STANDS_US) return;
    ring->complained = true;
    out_log(node, PARLEY_LOG_INFO, "round %llu stands still: whom this node waits for waits, too",
            round);
}

/* A peer that is gone need not get what it was being sent, and its buffer is wanted. */
static void drop_dead_links(struct parley_node *node)
{
    for (uint32_t i = 0; i < node->outflows_count; i++) {
        const struct outflow *out = &node->outflows[i];
        if (!out->active || out->slot != FLOW_STRATEGY) continue;
        struct conn *conn = connection_find(node, out->conn);
        if (conn && conn->member != NONE && !membership_is_live(node, conn->member))
            connection_close(node, conn);
    }
}

/* Those to the left: the others dial this node. */
static void dial_peers(struct parley_node *node)
{
    struct ring *ring = ring_of(node);
    ring->unlinked = false;
    for (uint32_t k = 0; k < ring->stages / 2; k++)
        if (!connection_want(node, ring->peers[k])) ring->unlinked = true;
}

/* ---- Two that don't reach each other --------------------------------------------------------- */

/* Of the members before this one in the line. Who stands aside would need any of them. */
static int out_of_reach(struct parley_node *node)
{
    const struct ring *ring = ring_of(node);
    const uint32_t *line = node->roster->line;
    for (uint32_t i = 0; (int)line[i] != node->self; i++) {
        bool needed = is_aside(node) || is_among(ring->peers, ring->stages, (int)line[i]);
        if (needed && is_member(node, line[i]) && membership_is_unreached(node, (int)line[i]))
            return (int)line[i];
    }
    return NONE;
}

/* The left one, as long as that is one. */
static int member_in_reach(struct parley_node *node)
{
    int left = ring_of(node)->left;
    if (left != NONE && is_member(node, (uint32_t)left) && connection_of(node, left)) return left;
    for (uint32_t i = 0; i < node->open_count; i++) {
        int member = node->open[i].member;
        if (member != NONE && is_member(node, (uint32_t)member)) return member;
    }
    return NONE;
}

/* What it has in hand goes into no sum. */
static void stand_aside(struct parley_node *node, int lost)
{
    struct ring *ring = ring_of(node);
    int left = member_in_reach(node);
    if (left == NONE) return;
    if (!is_aside(node)) {
        out_log(node, PARLEY_LOG_WARN,
                "stands aside until it reaches %s: takes the sums of the others' rounds from %s, "
                "and adds nothing to them",
                record_of(node, (uint32_t)lost)->name, record_of(node, (uint32_t)left)->name);
        ring->made = false;
        abandon(node);
        strategy_stand_aside(node, true);
    }
    ring->left = left;
}

/* Nothing may have been said over a link since it died. */
static void mind_links(struct parley_node *node)
{
    const struct ring *ring = ring_of(node);
    bool waits = ring->stage == RING_RESTING || ring->stage == RING_PULLING;
    bool tries = ring->made && ring_tries(ring);
    if (phase_of(node) != PARLEY_PHASE_TRAIN || !waits || ring->left == NONE) return;
    if (!tries) probe_awaited(node, ring->left);
    for (uint32_t stage = 0; tries && stage < ring->stages; stage++)
        if (ring_lacks(node) & ring_bit(stage)) probe_awaited(node, ring->peers[stage]);
}

/* A round of two that don't reach each other would wait for their link for ever. */
static void mind_reach(struct parley_node *node)
{
    const struct ring *ring = ring_of(node);
    /* Perhaps for a first word of who is on its left, or for the model of one. */
    bool waits = ring->stage == RING_RESTING || ring->stage == RING_FOLLOWING;
    if (phase_of(node) != PARLEY_PHASE_TRAIN || !(waits || is_aside(node))) return;
    int lost = out_of_reach(node);
    if (lost != NONE) {
        redial_unreached(node, lost);
        stand_aside(node, lost);
    } else if (is_aside(node)) {
        out_log(node, PARLEY_LOG_INFO, "takes part in the rounds again");
        strategy_stand_aside(node, false);
    }
}

void ring_advance(struct parley_node *node)
{
    struct ring *ring = ring_of(node);
    uint64_t news = ring->news;
    bool late = node->now_us >= ring->progress_us + AGAIN_US;
    if (late) mind_links(node);
    if (late || is_aside(node)) mind_reach(node);
    look(node);
    if (news != ring->news) drop_dead_links(node);
    if (ring->unlinked) dial_peers(node);
    if (ring->stage == RING_PULLING && pulls_in_vain(node)) {
        strategy_forget(node, RING_WHOLE);
        ring->stage = RING_RESTING;
    }
    if (ring->stage == RING_FOLLOWING) follow(node);
    if (ring->stage == RING_RESTING) rest(node);
    ring_parts_send(node);
    say(node);
    complain(node);
}

uint64_t ring_deadline(const struct parley_node *node)
{
    const struct ring *ring = ring_of(node);
    bool waits = ring->stage != RING_MAKING && ring->stage != RING_USING;
    return waits || ring->ending ? node->now_us + LOOK_US : NEVER;
}

/* ---- Beginning and ending -------------------------------------------------------------------- */

void ring_begin(struct parley_node *node, const struct ring_use *use, uint64_t begun)
{
    struct ring *ring = ring_of(node);
    bool resumed = node->training.before.steps > 0;
    ring->use = use;
    /* Of nodes that go on from what they had kept, the furthest is followed by all. */
    ring->round = ring->begun = begun;
    ring->stamp = rng_mix(node->config.run ^ (resumed ? self_of(node)->boot : 0));
    ring->progress_us = node->now_us;
    ring->news = UINT64_MAX;
}

/* A round takes all of its members. */
static bool another_stopped(const struct parley_node *node)
{
    const struct ring *ring = ring_of(node);
    for (uint32_t stage = 0; stage < ring->stages; stage++) {
        const struct message_strategy *place = place_of(node, ring->peers[stage]);
        if (place && place->what == RING_STOPPED && place->round == ring->round &&
            place->stamp == ring->stamp)
            return true;
    }
    return false;
}

bool ring_stop(struct parley_node *node)
{
    struct ring *ring = ring_of(node);
    if (!ring->ending) ring->ending_us = node->now_us;
    ring->ending = true;
    look(node);
    const struct message_strategy *place = place_of(node, ring->left);
    uint64_t since_us = ring->ending_us > ring->progress_us ? ring->ending_us : ring->progress_us;
    bool late = node->now_us >= since_us + node->config.progress_timeout_us;
    if (ring->stage == RING_FOLLOWING || ring->stage == RING_PULLING) return false;
    if (ring->stage != RING_RESTING || ring->pending > 0) return false;
    if (ring->made && (another_stopped(node) || late)) { /* nobody completes this round any more */
        ring->made = false;
        abandon(node);
    }
    if (ring->made) return false;
    bool ended = !is_aside(node) || (place && place->what == RING_STOPPED);
    return ring->left == NONE || late || (ended && place && !is_ahead(ring, place));
}

/* ---- What is heard --------------------------------------------------------------------------- */

void ring_frame(struct parley_node *node, struct conn *conn, const struct message_strategy *message)
{
    switch (message->what) {
    case RING_PLACE:
    case RING_STOPPED:
        hear(node, conn, message);
        break;
    case RING_TELL:
        ring_parts_told(node, conn, message);
        break;
    case RING_PULL:
        hand(node, conn, message);
        break;
    default:
        break;
    }
}

void ring_live(struct parley_node *node, struct conn *conn)
{
    (void)conn;
    ring_of(node)->said = 0;
}

void ring_closed(struct parley_node *node, uint32_t conn, int member)
{
    struct ring *ring = ring_of(node);
    (void)member;
    ring->said = 0; /* what was said over it may not have come, and there may be another link */
    ring->unlinked = true;
    ring_parts_closed(node, conn);
    if (ring->pull_conn == conn) strategy_forget(node, RING_WHOLE);
}
