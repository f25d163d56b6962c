/* members.c: who the members of a round are, and how far each of them has come.
 *
 * All look at the roster by themselves, and say where they are to those whom a stage brings
 * something from, or takes something to.
 */
#include "core/strategy/ring/ring_state.h"

/* ---- The members of a round ------------------------------------------------------------------ */

bool ring_is_member(const struct parley_node *node, uint32_t member)
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
    ring->stages = ring_is_aside(node) ? 0 : ring_stages(n);
    if (ring_is_aside(node)) return;
    for (uint32_t i = 0; i < node->roster->count; i++) {
        uint32_t member = node->roster->line[i], skip = ring_skip(n);
        if (!ring_is_member(node, member)) continue;
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
void ring_look(struct parley_node *node)
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
        if (!ring_is_member(node, member)) continue;
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

const struct message_strategy *ring_place_of(const struct parley_node *node, int member)
{
    const struct ring_heard *heard = ring_heard_of(node, member);
    return heard ? &heard->place : NULL;
}

void ring_hear(struct parley_node *node, const struct conn *conn,
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

bool ring_is_among(const int *peers, uint32_t count, int member)
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
        if (ring_is_among(peers, i, peers[i]) || ring_is_among(told, told_count, peers[i]))
            continue;
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

void ring_say(struct parley_node *node)
{
    struct ring *ring = ring_of(node);
    const struct ring_try *now = &ring->now;
    struct message_strategy place = own_place(node);
    uint64_t said = rng_mix(place.stamp ^ place.key) ^ place.tag << 8 ^ place.what;
    if (said == ring->said && node->now_us < ring->said_us + RING_AGAIN_US) return;
    if (ring_owes(node)) return;
    ring->said = said;
    ring->said_us = node->now_us;
    tell(node, &place, ring->peers, ring->stages, NULL, 0);
    /* Also to those of a try that the members have changed since: they may wait for this node. */
    if (now->active) tell(node, &place, now->peers, now->stages, ring->peers, ring->stages);
    tell_who_stand_aside(node, &place);
}
