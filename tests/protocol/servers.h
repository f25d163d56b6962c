/* servers.h: clusters of which one node serves the model. */
#ifndef PARLEY_TESTS_SERVERS_H
#define PARLEY_TESTS_SERVERS_H

#include "core/strategy/ps/server.h"
#include "scene.h"
#include "world/cluster.h"

enum { NODES = 4, FLOATS = 64 };

struct cast {
    enum parley_strategy strategy;
    uint32_t nodes, backups, staleness;
    uint64_t steps;         /* budget; 0: none */
    uint64_t step_us;       /* what one takes; 0: 10 ms */
    bool resumed;           /* all go on from files, n2 from the newest */
    bool narrow;            /* as few gradients as can be come in at a time */
    const uint64_t *starts; /* n0 begins alone, n1 comes with an old file, n2 with the newest */
    bool forgets;           /* but not if this is set when it starts */
};

static inline void configure(struct parley_config *config, uint32_t node, void *arg)
{
    const struct cast *cast = arg;
    config->strategy = cast->strategy;
    config->min_peers = cast->nodes - 1;
    config->backup_workers = cast->backups;
    config->staleness = cast->staleness;
    config->steps_budget = cast->steps;
    if (cast->narrow) config->lanes_bytes = 0;
    static const struct parley_resumed newest = {550, 17600, 440, 70400, 0},
                                       kept = {500, 16000, 400, 64000, 0},
                                       old = {1, 16000, 400, 1, 0};
    if (cast->resumed) config->resumed = node == 2 ? newest : kept;
    if (!cast->starts) return;
    config->min_peers = 0;
    if (node == 1) config->resumed = old;
    if (node == 2 && !cast->forgets) config->resumed = newest;
}

static inline struct parley_sim *play(struct cast *cast, uint64_t seed)
{
    return scene(&(struct parley_sim_options){.nodes = cast->nodes,
                                              .seed = seed,
                                              .seeds = cast->starts ? 1 : 2,
                                              .rate = 0.01,
                                              .step_us = cast->step_us ? cast->step_us : 10000,
                                              .latency_us = 300,
                                              .bandwidth_bytes = 2000000,
                                              .start_us = cast->starts,
                                              .configure = configure,
                                              .arg = cast});
}

static inline const struct record *said_by(struct parley_sim *sim, uint32_t node)
{
    return self_of(sim->hosts[node].node);
}

/* How many live nodes say that they serve; the last of them. */
static inline uint32_t servers(struct parley_sim *sim, uint32_t nodes, uint32_t *which)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < nodes; i++) {
        if (!parley_sim_live(sim, i) || said_by(sim, i)->follows != said_by(sim, i)->boot) continue;
        *which = i;
        count++;
    }
    return count;
}

static inline bool one_serves_all(struct parley_sim *sim, void *arg)
{
    const uint32_t *nodes = arg;
    uint32_t server = 0;
    if (servers(sim, *nodes, &server) != 1) return false;
    for (uint32_t i = 0; i < *nodes; i++)
        if (parley_sim_live(sim, i) && said_by(sim, i)->follows != said_by(sim, server)->boot)
            return false;
    return true;
}

static inline uint32_t server_of_all(struct parley_sim *sim, uint32_t nodes)
{
    uint32_t server = 0;
    scene_until(sim, nodes, one_serves_all, &nodes, 60);
    servers(sim, nodes, &server);
    return server;
}

/* All that live make steps: everybody's count of them grows. */
static inline void scene_steps(struct parley_sim *sim, uint32_t nodes, uint64_t least)
{
    struct parley_view before[32], after;
    for (uint32_t i = 0; i < nodes; i++)
        before[i] = scene_view(sim, i);
    scene_run(sim, 2 * SECOND);
    for (uint32_t i = 0; i < nodes; i++) {
        after = scene_view(sim, i);
        if (parley_sim_live(sim, i))
            cr_assert_geq(after.version, before[i].version + least, "n%u makes no steps", i);
    }
}

static inline uint64_t version_of(struct parley_sim *sim, uint32_t node)
{
    return scene_view(sim, node).version;
}

static const struct cast casts[] = {
    {.strategy = PARLEY_STRATEGY_PS_BSP, .nodes = NODES},
    {.strategy = PARLEY_STRATEGY_PS_BSP, .nodes = NODES, .backups = 1},
    {.strategy = PARLEY_STRATEGY_PS_ASP, .nodes = NODES},
    {.strategy = PARLEY_STRATEGY_PS_SSP, .nodes = NODES, .staleness = 2},
};
enum { CASTS = sizeof casts / sizeof *casts };

#endif
