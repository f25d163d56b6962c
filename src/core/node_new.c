/* node_new.c: a node is made, and freed. */
#include <stdlib.h>
#include <string.h>

#include "core/exchange/exchange.h"
#include "core/link/seeds.h"
#include "core/membership/roster.h"
#include "core/state.h"
#include "core/transfer/flow.h"

static bool allocate_flows(struct parley_node *node)
{
    const struct strategy *s = node->strategy;
    node->outflows_count = OUTFLOWS_MAX + s->outflows;
    node->ops_count = OPS_MAX + OPS_PER_OUTFLOW * s->outflows;
    node->outflows = calloc(node->outflows_count, sizeof *node->outflows);
    node->ops = calloc(node->ops_count, sizeof *node->ops);
    node->inflows = calloc(s->inflows + 1, sizeof *node->inflows);
    node->strategy_state = calloc(1, s->size + 1);
    if (!node->outflows || !node->ops || !node->inflows || !node->strategy_state) return false;
    for (uint32_t i = 0; i < s->inflows; i++)
        node->inflows[i].slot = FLOW_STRATEGY;
    struct inflow *in;
    for (uint32_t i = 0; (in = flow_in(node, i)); i++)
        if (!(in->sum = XXH3_createState())) return false;
    return true;
}

static bool allocate(struct parley_node *node)
{
    struct parley_config *c = &node->config;
    node->strategy = strategy_of(c->strategy);
    node->conns_count = c->connections_max + c->pending_max;
    node->conns = calloc(node->conns_count, sizeof *node->conns);
    node->open = calloc(node->conns_count, sizeof *node->open);
    node->seeds = calloc(seeds_room(c), sizeof *node->seeds);
    if (!node->conns || !node->open || !node->seeds) return false;
    node->roster = c->roster ? c->roster : &node->own_roster;
    if (!c->roster) {
        node->members = calloc(c->members_max, sizeof *node->members);
        node->probing.order = calloc(c->members_max, sizeof *node->probing.order);
        if (!node->members || !node->probing.order ||
            roster_init(node->roster, c->members_max, c->steps_budget) != 0)
            return false;
    }
    if (roster_use_topology(node->roster, c) != 0) return false;
    return allocate_flows(node);
}

int parley_node_new(struct parley_node **result, const struct parley_config *config)
{
    char why[1];
    *result = NULL;
    if (parley_config_check(config, why, sizeof why)) return PARLEY_EUSAGE;
    struct parley_node *node = calloc(1, sizeof *node);
    if (!node) return PARLEY_ENOMEM;
    node->config = *config;
    node->training.weight = node->training.unit = 1;
    if (!allocate(node)) {
        parley_node_free(node);
        return PARLEY_ENOMEM;
    }
    memcpy(node->cluster, config->cluster, strlen(config->cluster) + 1);
    for (uint32_t i = 0; i < config->settings_count; i++) {
        strncpy(node->settings[i].name, config->settings[i].name, PARLEY_NAME_SIZE - 1);
        strncpy(node->settings[i].value, config->settings[i].value, MESSAGE_VALUE_SIZE - 1);
    }
    for (uint32_t i = 0; i < config->seeds_count; i++)
        memcpy(node->seeds[node->seeds_count++].address, config->seeds[i],
               strlen(config->seeds[i]) + 1);
    struct record self = {.boot = config->boot};
    memcpy(self.name, config->name, strlen(config->name) + 1);
    memcpy(self.address, config->address, strlen(config->address) + 1);
    node->self = roster_add(node->roster, &self);
    if (node->self == NONE) {
        parley_node_free(node);
        return PARLEY_ELIMIT;
    }
    node->config.cluster = node->cluster;
    node->config.name = self_of(node)->name;
    node->config.address = self_of(node)->address;
    node->config.settings = NULL;
    node->config.seeds = NULL;
    node->rng = rng_init(config->seed, config->boot);
    node->next_conn = 1;
    node->deadline_us = node->next_conn_us = node->gossip.next_us = NEVER;
    node->fetch.in.slot = NONE;
    node->drift.value = -1;
    exchange_init(node);
    *result = node;
    return 0;
}

void parley_node_free(struct parley_node *node)
{
    if (!node) return;
    struct inflow *in;
    for (uint32_t i = 0; (in = flow_in(node, i)); i++)
        XXH3_freeState(in->sum);
    free(node->strategy_state);
    free(node->inflows);
    free(node->ops);
    free(node->outflows);
    roster_close(&node->own_roster);
    free(node->probing.order);
    free(node->members);
    free(node->seeds);
    free(node->open);
    free(node->conns);
    free(node);
}
