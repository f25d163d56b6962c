/* left.c: where the left is ahead: the sum of the round that it has completed is taken from there,
 * or its state.
 */
#include "core/strategy/ring/ring_state.h"
#include "core/training/joining.h"

enum { PULL_US = 5000000 }; /* then a sum is asked for again that has not begun to come */

bool ring_is_ahead(const struct ring *ring, const struct message_strategy *place)
{
    return place->round > ring->round ||
           (place->round == ring->round && place->stamp > ring->stamp);
}

static void pull(struct parley_node *node, const struct message_strategy *place)
{
    struct ring *ring = ring_of(node);
    struct conn *conn = connection_of(node, ring->left);
    uint32_t buffer = ring_buffer(node, RING_RESULT + !ring->result);
    bool sane = place->count > 0 && place->weight > 0 && place->value >= 0 && place->value <= 1;
    if (!conn || ring->pending > 0 || flow_is_sent(node, buffer) || !sane) return;
    ring_parts_abandon(node);
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

void ring_pulled(struct parley_node *node)
{
    const struct message_strategy *of = &ring_of(node)->pull;
    struct ring_sum sum = {.count = of->count, .divisor = of->weight, .progress = of->value};
    ring_finish(node, &sum, of->stamp);
}

/* Who has gone on gives another sum; over long lines this one may be on its way all the same. */
bool ring_pulls_in_vain(struct parley_node *node)
{
    const struct ring *ring = ring_of(node);
    const struct message_strategy *place = ring_place_of(node, ring->left);
    bool gives = place && place->stamp == ring->pull.stamp;
    return !connection_find(node, ring->pull_conn) ||
           node->now_us >= ring->progress_us + (gives ? PULL_US : RING_AGAIN_US);
}

/* The left has completed the try that is under way here: what lacks is on its way from others. */
static bool is_about_to(const struct parley_node *node, const struct message_strategy *place)
{
    const struct ring *ring = ring_of(node);
    return ring->made && ring_tries(ring) && place->stamp == rng_mix(ring->stamp ^ ring->key) &&
           node->now_us < ring->progress_us + RING_AGAIN_US;
}

bool ring_catches_up(struct parley_node *node)
{
    struct ring *ring = ring_of(node);
    const struct message_strategy *place = ring_place_of(node, ring->left);
    if (!place || !ring_is_ahead(ring, place) || ring_is_whole(node) || is_about_to(node, place))
        return false;
    if (place->round == ring->round + 1 && place->before == ring->stamp)
        pull(node, place);
    else
        ring->stage = RING_FOLLOWING;
    return true;
}

void ring_follow(struct parley_node *node)
{
    struct ring *ring = ring_of(node);
    const struct message_strategy *place = ring_place_of(node, ring->left);
    if (node->fetch.state != FETCH_IDLE) return;
    ring_parts_abandon(node);
    if (ring->pending > 0) return;
    if (place && ring_is_ahead(ring, place))
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
    ring_parts_abandon(node);
    ring->stage = RING_RESTING;
    ring->made = false;
    ring->round = answer->round;
    ring->stamp = answer->stamp;
    ring->before = 0;
    ring->sum.count = 0;
    ring->progress_us = node->now_us;
    training_counted(node);
}

void ring_hand(struct parley_node *node, const struct conn *conn,
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
