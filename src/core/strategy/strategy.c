/* strategy.c: the table of strategies, and what they all use. */
#include "core/strategy/strategy.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "core/state.h"
#include "core/strategy/ring/ring.h"

/* Pairwise averaging without rounds, while the trainer goes on: exchange.c. */
static const struct strategy gossip = {.name = "gossip", .offers = true, .answers = true};

/* Each node for itself until the end. */
static const struct strategy none = {.name = "none", .answers = true};

static const struct strategy *const strategies[PARLEY_STRATEGIES] = {
    [PARLEY_STRATEGY_GOSSIP] = &gossip,
    [PARLEY_STRATEGY_NONE] = &none,
    [PARLEY_STRATEGY_ALLREDUCE] = &strategy_allreduce,
    [PARLEY_STRATEGY_LOCAL_SGD] = &strategy_local_sgd,
    [PARLEY_STRATEGY_DILOCO] = &strategy_diloco,
    [PARLEY_STRATEGY_PS_BSP] = &strategy_ps_bsp,
    [PARLEY_STRATEGY_PS_ASP] = &strategy_ps_asp,
    [PARLEY_STRATEGY_PS_SSP] = &strategy_ps_ssp,
    [PARLEY_STRATEGY_GOSSIP_SYNC] = &strategy_gossip_sync,
    [PARLEY_STRATEGY_PUSH_SUM] = &strategy_push_sum,
    [PARLEY_STRATEGY_NOLOCO] = &strategy_noloco,
    [PARLEY_STRATEGY_CHOCO] = &strategy_choco,
};

const struct strategy *strategy_of(enum parley_strategy strategy)
{
    return strategies[strategy];
}

static bool is_known(enum parley_strategy strategy)
{
    return (unsigned)strategy < PARLEY_STRATEGIES;
}

const char *strategy_name(uint32_t strategy)
{
    return is_known((enum parley_strategy)strategy) ? strategies[strategy]->name : "an unknown one";
}

bool parley_strategy_splits(enum parley_strategy strategy)
{
    return is_known(strategy) && strategies[strategy]->splits;
}

bool parley_strategy_sums_batches(enum parley_strategy strategy)
{
    return is_known(strategy) && strategies[strategy]->sums_batches;
}

uint32_t parley_strategy_mix_every(enum parley_strategy strategy)
{
    uint32_t every = is_known(strategy) ? strategies[strategy]->mix_every : 0;
    return every > 0 ? every : 1;
}

uint32_t parley_strategy_neighbours(enum parley_strategy strategy)
{
    return is_known(strategy) ? strategies[strategy]->neighbours : 0;
}

/* From TRAIN to SETTLE: who has ended serves those who have not. */
static bool is_at_work(const struct parley_node *node)
{
    enum parley_phase phase = phase_of(node);
    return phase >= PARLEY_PHASE_TRAIN && phase <= PARLEY_PHASE_SETTLE && !node->finished;
}

void strategy_advance(struct parley_node *node)
{
    if (node->strategy->advance && is_at_work(node)) node->strategy->advance(node);
}

uint64_t strategy_deadline(const struct parley_node *node)
{
    return node->strategy->deadline && is_at_work(node) ? node->strategy->deadline(node) : NEVER;
}

uint32_t strategy_nodes(const struct parley_config *config)
{
    uint32_t most = is_known(config->strategy) ? strategy_of(config->strategy)->nodes_max : 0;
    uint32_t room = config->roster ? PARLEY_MEMBERS_MAX : config->members_max;
    return most > 0 && most < room ? most : room;
}

void strategy_say_full(const struct parley_node *node, char text[MESSAGE_TEXT_SIZE])
{
    snprintf(text, MESSAGE_TEXT_SIZE, "%s serves %" PRIu32 " nodes, and all places are taken",
             node->strategy->name, node->strategy->nodes_max);
}

uint32_t strategy_connections(const struct parley_config *config)
{
    bool on_ring = is_known(config->strategy) && strategy_of(config->strategy)->on_ring;
    uint32_t least = on_ring ? 2 * ring_stages(config->members_max) : 0;
    return least > PARLEY_CONNECTIONS_MIN ? least : PARLEY_CONNECTIONS_MIN;
}

/* Those of two exchanges and two doubts come first. */
static uint32_t exchange_buffers(const struct parley_config *config)
{
    return 2 * (config->vectors > 2 ? config->vectors : 2) + 2;
}

uint32_t strategy_lanes(const struct parley_config *config)
{
    const struct strategy *s = strategy_of(config->strategy);
    uint64_t fit = config->lanes_bytes / sizeof(float) / config->parameters;
    return fit < s->lanes ? s->lanes : fit < s->lanes_max ? (uint32_t)fit : s->lanes_max;
}

uint32_t parley_config_buffers(const struct parley_config *config)
{
    return exchange_buffers(config) + strategy_of(config->strategy)->buffers +
           strategy_lanes(config) + config->robust;
}

uint32_t strategy_buffer(const struct parley_node *node, uint32_t index)
{
    assert(index < node->strategy->buffers);
    return exchange_buffers(&node->config) + index;
}

uint32_t strategy_lane_buffer(const struct parley_node *node, int lane)
{
    assert(lane >= 0 && (uint32_t)lane < strategy_lanes(&node->config));
    return exchange_buffers(&node->config) + node->strategy->buffers + (uint32_t)lane;
}

void strategy_stand_aside(struct parley_node *node, bool aside)
{
    if (self_of(node)->aside == aside) return;
    self_of(node)->aside = aside;
    membership_changed(node, true);
}

struct parley_update *strategy_op(struct parley_node *node, enum parley_update_type type,
                                  uint32_t buffer, int number)
{
    struct parley_update *update = out_vector(node, type, OP_STRATEGY, number, buffer);
    update->vector.size = vector_bytes(node);
    update->vector.progress = training_progress(node);
    update->vector.live = live_of(node);
    update->vector.steps = node->training.version + node->training.inherited;
    return update;
}

struct parley_update *strategy_combine(struct parley_node *node, uint32_t buffer, float keep,
                                       uint32_t other, float factor, int number)
{
    struct parley_update *update = strategy_op(node, PARLEY_UPDATE_COMBINE, buffer, number);
    update->vector.keep = keep;
    update->vector.other = other;
    update->vector.factor = factor;
    return update;
}

bool strategy_send(struct parley_node *node, uint32_t conn, const struct strategy_part *part,
                   int number)
{
    uint32_t taken = 0;
    for (uint32_t i = 0; i < node->outflows_count; i++)
        taken += node->outflows[i].active && node->outflows[i].slot == FLOW_STRATEGY;
    if (taken == node->strategy->outflows) return false;
    int place =
        flow_send(node, conn, WIRE_STREAM_STRATEGY, part->tag, &part->buffer, 1, FLOW_STRATEGY);
    assert(place != NONE && part->size > 0);
    struct outflow *out = &node->outflows[place];
    out->part = part->part;
    out->number = number;
    out->from = out->offset = part->offset;
    out->end = part->offset + part->size;
    return true;
}

void strategy_expect(struct parley_node *node, int inflow, uint32_t conn,
                     const struct strategy_part *part)
{
    assert(inflow >= 0 && (uint32_t)inflow < node->strategy->inflows);
    struct inflow *in = &node->inflows[inflow];
    flow_forget(node, in);
    flow_expect(node, in, conn, WIRE_STREAM_STRATEGY, part->tag, &part->buffer, 1);
    in->part = part->part;
    in->from = in->offset = part->offset;
    in->end = part->offset + part->size;
}

void strategy_forget(struct parley_node *node, int inflow)
{
    flow_forget(node, &node->inflows[inflow]);
}
