/* ring.c: see ring.h. A round of this node's, and what it waits for.
 *
 *   RESTING   makes a contribution -> MAKING -> RESTING with it: parts go round (parts.c)
 *   USING     the sum is here, and is put to use; then the next round
 *   PULLING, FOLLOWING   where the left is ahead (left.c)
 */
#include "core/strategy/ring/ring_state.h"

enum {
    LOOK_US = 100000,      /* while something is waited for */
    COMPLAIN_US = 2000000, /* then people are told who keeps all waiting, ... */
    STANDS_US = 10000000   /* ... and then that somebody does */
};

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
        const struct message_strategy *place = ring_place_of(node, ring->peers[stage]);
        if (place && place->key != 0 && place->round >= ring->round) return true;
    }
    return false;
}

static void rest(struct parley_node *node)
{
    struct ring *ring = ring_of(node);
    uint32_t own = ring_buffer(node, RING_OWN);
    bool soon =
        ring_is_aside(node) && !ring->ending && node->now_us < ring->progress_us + RING_AGAIN_US;
    if (phase_of(node) != PARLEY_PHASE_TRAIN || soon || ring_catches_up(node)) return;
    bool met = ring->left == NONE || ring_place_of(node, ring->left);
    bool wanted = training_wants(node) || (ring->use->goes_on && ring_is_awaited(node));
    if (!ring->made && met && !ring_is_aside(node) && !ring->ending && !node->leaving && wanted &&
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
        const struct message_strategy *place = ring_place_of(node, ring->peers[stage]);
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

void ring_advance(struct parley_node *node)
{
    struct ring *ring = ring_of(node);
    uint64_t news = ring->news;
    bool late = node->now_us >= ring->progress_us + RING_AGAIN_US;
    if (late) ring_mind_links(node);
    if (late || ring_is_aside(node)) ring_mind_reach(node);
    ring_look(node);
    if (news != ring->news) ring_drop_dead_links(node);
    if (ring->unlinked) ring_dial_peers(node);
    if (ring->stage == RING_PULLING && ring_pulls_in_vain(node)) {
        strategy_forget(node, RING_WHOLE);
        ring->stage = RING_RESTING;
    }
    if (ring->stage == RING_FOLLOWING) ring_follow(node);
    if (ring->stage == RING_RESTING) rest(node);
    ring_parts_send(node);
    ring_say(node);
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
        const struct message_strategy *place = ring_place_of(node, ring->peers[stage]);
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
    ring_look(node);
    const struct message_strategy *place = ring_place_of(node, ring->left);
    uint64_t since_us = ring->ending_us > ring->progress_us ? ring->ending_us : ring->progress_us;
    bool late = node->now_us >= since_us + node->config.progress_timeout_us;
    if (ring->stage == RING_FOLLOWING || ring->stage == RING_PULLING) return false;
    if (ring->stage != RING_RESTING || ring->pending > 0) return false;
    if (ring->made && (another_stopped(node) || late)) { /* nobody completes this round any more */
        ring->made = false;
        ring_parts_abandon(node);
    }
    if (ring->made) return false;
    bool ended = !ring_is_aside(node) || (place && place->what == RING_STOPPED);
    return ring->left == NONE || late || (ended && place && !ring_is_ahead(ring, place));
}

/* ---- What is heard --------------------------------------------------------------------------- */

void ring_frame(struct parley_node *node, struct conn *conn, const struct message_strategy *message)
{
    switch (message->what) {
    case RING_PLACE:
    case RING_STOPPED:
        ring_hear(node, conn, message);
        break;
    case RING_TELL:
        ring_parts_told(node, conn, message);
        break;
    case RING_PULL:
        ring_hand(node, conn, message);
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
