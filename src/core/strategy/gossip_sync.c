/* gossip_sync.c: D-PSGD: synchronous rounds in which each node averages with all its neighbours.
 *
 * x_i <- sum_j w_ij x_j - rate * gradient(x_i) (Lian et al., "Can Decentralized Algorithms
 * Outperform Centralized Algorithms?", NeurIPS 2017, algorithm 1), in the rounds of rounds.h: z is
 * the snapshot itself.
 */
#include "core/strategy/rounds.h"

enum { OP_TAKEN = ROUNDS_NUMBERS };

static void make(struct parley_node *node)
{
    strategy_op(node, PARLEY_UPDATE_TAKE, strategy_buffer(node, ROUNDS_OWN), OP_TAKEN);
}

static void done(struct parley_node *node, int number, const struct parley_event *event)
{
    if (number == OP_TAKEN)
        rounds_made(node, event->done.finite, 0);
    else
        rounds_done(node, number, event);
}

static void begin(struct parley_node *node)
{
    static const struct rounds_use use = {.make = make};
    rounds_begin(node, &use);
}

const struct strategy strategy_gossip_sync = {
    .name = "gossip-sync",
    .neighbours = PARLEY_NEIGHBOURS_MAX,
    .size = sizeof(struct rounds),
    .buffers = ROUNDS_COMMON,
    .begin = begin,
    .done = done,
    .adopted = rounds_adopted,
    ROUNDS_STRATEGY,
};
