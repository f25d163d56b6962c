/* noloco.c: an outer optimizer in pairs: few exchanges, and nobody waits for all.
 *
 * Each node has slow weights phi beside x. Every H = --mix-every local steps (50 by default) two
 * nodes that are due meet, and each makes a step of the outer optimizer (Kolehmainen et al.,
 * "NoLoCo: No-all-reduce Low Communication Training Method for Large Models", 2025, section 3):
 *
 *   m <- alpha m + beta mean(x - phi) + gamma (mean(phi) - phi)       means over the two
 *   phi <- phi + m,  x <- phi
 *
 * with alpha = config.outer_momentum and beta = gamma = config.outer_rate. As those two are equal,
 * mean(phi) drops out: m <- alpha m + beta (mean(x) - phi). So one vector each way is enough, by
 * the pairwise exchange as it is (exchange.c): with its d = x_peer - x at the two snapshots,
 * mean(x) = s + d / 2. Steps made since the snapshot are kept: x gets phi - s added. phi and m
 * travel to joiners with x; a node that gives them makes no exchange until they are sent, and lets
 * what is in doubt wait.
 *
 * The mean of the models is not kept: it moves by the outer momentum, on purpose. An exchange in
 * doubt that turns out to be decided adds only the peer's part, beta d / 2, to m, phi and x, since
 * the own part, x - phi, is counted by the next step anyway. A death costs an exchange at most. Who
 * finds nobody that is due trains on until somebody is. The last x, not phi, is what is averaged at
 * the end: so the steps since the last exchange count.
 *
 * Who has had its steps asks nobody any more, and is there for those who have not: each outer step
 * is of a whole period, of which there is none any more, so the two models' mean takes its place.
 * An outer momentum would carry it on and on, with nothing learned.
 */
#include "core/strategy/strategy.h"

#include "core/state.h"
#include "core/training/training.h"

enum { SLOW, MOMENTUM, KEPT };

struct noloco {
    bool has; /* slow weights */
};

/* A little early, so that equals find each other. */
static bool is_whole(const struct parley_node *node)
{
    return node->training.version + node->config.mix_every / 10 >= node->exchange.next_version;
}

static float mix(struct parley_node *node, int own, uint32_t theirs, float factor)
{
    uint32_t phi = strategy_buffer(node, SLOW), m = strategy_buffer(node, MOMENTUM);
    float alpha = (float)node->config.outer_momentum, beta = (float)node->config.outer_rate;
    if (own != NONE && !is_whole(node)) {
        strategy_combine(node, phi, 1, theirs, factor, 0);
        return factor;
    }
    if (own == NONE) {
        strategy_combine(node, m, 1, theirs, beta * factor, 0);
        strategy_combine(node, phi, 1, theirs, beta * factor, 0);
        return beta * factor;
    }
    node->exchange.next_version = node->training.version + node->config.mix_every;
    strategy_combine(node, m, alpha, (uint32_t)own, beta, 0);
    strategy_combine(node, m, 1, theirs, beta * factor, 0);
    strategy_combine(node, m, 1, phi, -beta, 0);
    strategy_combine(node, phi, 1, m, 1, 0);
    strategy_combine(node, theirs, 0, phi, 1, 0);
    strategy_combine(node, theirs, 1, (uint32_t)own, -1, 0);
    return 1;
}

/* Not just after its own step. Who has made all its steps is there for those who have not. */
static bool due(const struct parley_node *node)
{
    return !training_wants(node) || is_whole(node);
}

static void begin(struct parley_node *node)
{
    struct noloco *noloco = node->strategy_state;
    if (noloco->has) return;
    noloco->has = true;
    strategy_op(node, PARLEY_UPDATE_TAKE, strategy_buffer(node, SLOW), 0);
    strategy_combine(node, strategy_buffer(node, MOMENTUM), 0, strategy_buffer(node, MOMENTUM), 0,
                     0);
}

static void adopted(struct parley_node *node, const struct message_fetch *answer)
{
    struct noloco *noloco = node->strategy_state;
    (void)answer;
    noloco->has = true;
}

const struct strategy strategy_noloco = {.name = "noloco",
                                         .offers = true,
                                         .answers = true,
                                         .mix_every = 50, /* Kolehmainen et al. 2025 */
                                         .size = sizeof(struct noloco),
                                         .buffers = KEPT,
                                         .kept = KEPT,
                                         .begin = begin,
                                         .due = due,
                                         .mix = mix,
                                         .adopted = adopted};
