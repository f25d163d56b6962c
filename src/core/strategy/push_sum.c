/* push_sum.c: stochastic gradient push, with nobody waiting for anybody.
 *
 * Each node has (X_i, w_i), w_i = 1 at first, and its model is z_i = X_i / w_i; gradients are of
 * z_i and applied to X_i; now and then a node gives a part of both away to a neighbour, which adds
 * it to its own (Assran, Loizou, Ballas, Rabbat, "Stochastic Gradient Push for Distributed Deep
 * Learning", ICML 2019, algorithm 1; Kempe, Dobra, Gehrke, FOCS 2003). What leaves one arrives at
 * another, so sum X_i and sum w_i = n are kept, though every push is one-way, and z_i comes near
 * sum X / sum w.
 *
 * Here x, which the trainer has, is z itself, and w stands beside it: training.weight. Then
 *
 *   a step           z -= rate / w * gradient(z): the rate is divided by w (TRAIN's weight)
 *   a push of (W, s) the sender took snapshot s at weight at least W, and made steps since
 *     sender         z <- (w z - W s) / (w - W), w <- w - W
 *     receiver       z <- (w z + W s) / (w + W), w <- w + W
 *
 * which is the same in X, step by step and without rounding off any mass. It goes the way of a
 * pairwise exchange (exchange.c) with one stream only: OFFER names W, READY says that s is there
 * and finite, COMMIT decides, who is in doubt asks. So a loss takes no mass, and none is there
 * twice. It costs half of an exchange's bytes.
 *
 *   a death     takes (X, w) with it, and what was on its way to it or, undecided, from it: sum X
 *               / sum w of the living is still an average of what the living and the dead had
 *   a restart   is a join: a live peer's model, and w = 1
 *   the end     x is z already; settling averages with equal weights, so that what is agreed is the
 *               mean of the z_i: as far from sum X / sum w as they are apart when training ends
 *               (next to nothing where the rate comes down to 0)
 *
 * Nobody keeps less than half a weight: the rate is never more than doubled. Half of what one has
 * goes as long as that allows it. Who gets more than it gives, being slow or asked by all, would
 * come to have most of the weight, and the steps of the others would be of little; so who has two
 * units does not wait for the steps of its period. Where the dead had most of the weight, that
 * would leave the living nothing to push, and all rates doubled: so who has had nothing to push for
 * many periods, and is among fewer than before, counts in a unit of half the size, until it has two
 * of them (training.unit). No mass is made by that, but a gradient counts by the unit.
 */
#include "core/strategy/push_sum.h"

#include "core/exchange/exchange.h"
#include "core/state.h"
#include "core/strategy/strategy.h"

/* In units. */
#define WEIGHT_KEPT_MIN 0.5
#define WEIGHT_PUSHED_MIN 0.0625 /* less is not worth a model's way */
#define WEIGHT_PLENTY 2
#define UNIT_MIN (1.0 / 64)

enum { STARVED_PERIODS = 16, STARVED_US = 10000000 };

struct push_sum {
    uint64_t had_us; /* when there was something to push */
    uint32_t most;   /* live members, since the unit was last halved */
};

double push_sum_weight(const struct parley_node *node)
{
    const struct training *t = &node->training;
    double weight = t->weight / 2, spare = t->weight - WEIGHT_KEPT_MIN * t->unit;
    if (spare < weight) weight = spare;
    return weight >= WEIGHT_PUSHED_MIN * t->unit ? weight : 0;
}

bool push_sum_is_laden(const struct parley_node *node)
{
    const struct training *t = &node->training;
    return t->weight >= WEIGHT_PLENTY * t->unit;
}

/* So long that a death would have been seen, and what those who push to it hold be free again. */
static bool is_starved(const struct parley_node *node, const struct push_sum *s)
{
    uint64_t patience = STARVED_PERIODS * period_steps(node);
    return live_of(node) < s->most && node->now_us >= s->had_us + STARVED_US &&
           node->training.version >= node->exchange.next_version + patience;
}

bool push_sum_may(struct parley_node *node)
{
    struct push_sum *s = node->strategy_state;
    struct training *t = &node->training;
    if (live_of(node) > s->most) s->most = live_of(node);
    if (t->unit < 1 && push_sum_is_laden(node)) t->unit *= 2;
    if (push_sum_weight(node) <= 0 && t->unit > UNIT_MIN && is_starved(node, s)) {
        t->unit /= 2;
        s->most = live_of(node);
    }
    if (push_sum_weight(node) <= 0) return false;
    s->had_us = node->now_us;
    return true;
}

void push_sum_check(struct parley_node *node, int role, uint32_t buffer)
{
    struct parley_update *update = out_vector(node, PARLEY_UPDATE_COMBINE, OP_DIFF, role, buffer);
    update->vector.other = buffer;
    update->vector.size = vector_bytes(node);
    update->vector.keep = 1;
}

const struct strategy strategy_push_sum = {
    .name = "push-sum",
    .offers = true,
    .answers = true,
    .pushes = true,
    .size = sizeof(struct push_sum),
};
