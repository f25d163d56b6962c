/* delta.c: what an exchange adds to x, and what is counted once it is there. */
#include "core/exchange/delta.h"

#include "core/exchange/exchange.h"
#include "core/exchange/pairing.h"
#include "core/state.h"
#include "core/training/training.h"

float delta_factor(const struct delta *delta)
{
    return delta->weight > 0 ? 1 : (float)(delta->share * delta->clip);
}

void delta_add(struct parley_node *node, const struct delta *delta, enum op_kind kind, int owner,
               int own, uint32_t theirs)
{
    if (delta->weight > 0) {
        training_weigh(node, kind, owner, theirs, delta->weight, delta->gap);
        return;
    }
    float factor = delta_factor(delta);
    if (delta->trains && node->strategy->mix)
        factor = node->strategy->mix(node, own, theirs, factor);
    struct parley_update *update = out_vector(node, PARLEY_UPDATE_ADD, kind, owner, theirs);
    update->vector.factor = factor;
    update->vector.wide = delta->wide;
}

void delta_added(struct parley_node *node, const struct delta *delta, int peer)
{
    double gap = node->strategy->pushes ? 0 : delta->gap; /* a part goes with its weight alone */
    exchange_applied(node, peer, delta_factor(delta), delta->mass);
    training_averaged(node, gap, (double)delta_factor(delta));
    if (!delta->trains) pairing_mixed(node, peer, delta->round, delta->line);
}
