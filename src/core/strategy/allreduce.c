/* allreduce.c: gradients averaged over all live nodes each step (ring.h), as Horovod and DDP do.
 *
 *   GRADIENT of the next batch -> the ring's sum -> APPLY of the sum over the number of nodes
 *
 * Every node makes the same step from the same model with the same optimizer vectors: the models
 * are equal to the bit, and as if one node had made a batch as large as all together. Rate and
 * schedule go by what the members agreed on. All wait for the slowest.
 * Buffers: 4 (own gradient, partial sums, the sums of this and of the last round).
 */
#include "core/strategy/ring/ring_state.h"

enum { GRADIENT_MADE, SCALED, APPLIED };

struct allreduce {
    struct ring ring;
    uint64_t samples; /* of this node, before the gradient */
};

static void make(struct parley_node *node, uint32_t buffer)
{
    struct allreduce *self = node->strategy_state;
    self->samples = node->training.samples;
    strategy_op(node, PARLEY_UPDATE_GRADIENT, buffer, GRADIENT_MADE);
}

/* A gradient is a mean over the samples it took, and counts as one. That of a node's share (gd)
 * counts by its part of the whole set: their sum is the mean over that, less the terms of samples
 * that nobody holds (of a dead node's own data, of a --shard that nobody has), whose number no node
 * knows: steps are shorter by their part. Which of the two is not for one step to say: all divide
 * by the same. */
static void made(struct parley_node *node, bool finite)
{
    const struct allreduce *self = node->strategy_state;
    if (!finite) { /* it ends, and the others go on: in the sum it would be the end of all */
        node->training.diverged++;
        return;
    }
    uint64_t samples = node->training.samples - self->samples;
    if (!node->config.batch_is_shared) {
        ring_made(node, 0);
        return;
    }
    uint32_t any = ring_buffer(node, RING_PARTIAL); /* times 0 */
    strategy_combine(node, ring_buffer(node, RING_OWN),
                     (float)((double)samples / node->config.batch), any, 0, SCALED);
}

static void use(struct parley_node *node, uint32_t buffer, const struct ring_sum *sum)
{
    struct parley_update *update = strategy_op(node, PARLEY_UPDATE_APPLY, buffer, APPLIED);
    update->vector.factor = (float)(1 / sum->divisor);
    update->vector.progress = sum->progress;
    update->vector.live = sum->count;
    update->vector.steps = ring_of(node)->round - 1;
}

static void begin(struct parley_node *node)
{
    static const struct ring_use rounds = {.make = make, .use = use};
    /* A round is a step that all make. */
    ring_begin(node, &rounds, node->training.before.steps);
}

static void done(struct parley_node *node, int number, const struct parley_event *event)
{
    if (number >= RING_NUMBERS)
        ring_done(node);
    else if (number == GRADIENT_MADE)
        made(node, event->done.finite);
    else if (number == SCALED)
        ring_made(node, 1);
    else
        ring_used(node);
}

const struct strategy strategy_allreduce = {
    .name = "allreduce",
    .splits = true,
    .sums_batches = true,
    .size = sizeof(struct allreduce),
    .buffers = RING_BUFFERS,
    .begin = begin,
    .advance = ring_advance,
    .steps = ring_steps,
    .done = done,
    RING_STRATEGY,
    .give = ring_give,
    .stop = ring_stop,
};
