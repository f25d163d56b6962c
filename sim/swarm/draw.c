/* draw.c: a cluster drawn from a seed. */
#include <math.h>

#include "core/agreement/said.h"
#include "swarm/state.h"
#include "world/network/route.h"

enum { RARE_ONE_IN = 4 };

uint64_t swarm_between(struct rng *rng, uint64_t low, uint64_t high)
{
    return low + (uint64_t)(rng_unit(rng) * (double)(high - low));
}

bool swarm_chance(struct rng *rng, uint32_t one_in)
{
    return rng_below(rng, one_in) == 0;
}

static void configure_rare(struct parley_config *config, const struct swarm_rare *rare)
{
    config->members_max = rare->members_max;
    config->behind_steps_max = rare->behind_steps_max;
    config->topology_degree = rare->topology_degree;
    config->mix_steered = rare->steered;
    config->robust = rare->robust;
    config->mix_later[0] = rare->later;
    config->mix_later_count = rare->later.steps > 0;
}

static void configure(struct parley_config *config, uint32_t node, void *arg)
{
    const struct swarm *s = arg;
    config->min_peers = s->min_peers;
    config->mix_every = s->mix_every;
    config->strategy = s->strategy;
    config->staleness = s->staleness;
    config->backup_workers = s->backup_workers;
    config->topology = s->topology;
    config->codec = s->codec;
    config->codec_part = 0.3;
    config->quorum = s->quorum;
    config->nodes = s->nodes;
    if (s->remembers)
        config->earlier =
            said_none(s->held[node]) ? PARLEY_EARLIER_NEVER_HELD : PARLEY_EARLIER_HELD;
    config->tolerance = s->tolerance;
    config->steps_budget = s->steps;
    config->samples_budget = s->samples;
    config->time_budget_us = s->time_us;
    if (s->room > 0) config->connections_max = s->room;
    if (s->narrow) config->lanes_bytes = 0;
    if (s->rare.is_drawn) configure_rare(config, &s->rare);
}

static void draw_starts(struct swarm *s)
{
    uint32_t kind = rng_below(&s->rng, 3);
    for (uint32_t i = 0; i < s->nodes; i++) {
        if (kind > 0) s->start_us[i] = swarm_between(&s->rng, 0, kind == 1 ? 50000 : 10 * SECOND);
        s->up[i] = s->joins[i] = true;
        if (i < s->seeds || !swarm_chance(&s->rng, 12)) continue;
        s->start_us[i] = PARLEY_SIM_NEVER;
        s->up[i] = s->joins[i] = false;
    }
}

static void draw_settings(struct swarm *s)
{
    struct rng *rng = &s->rng;
    uint32_t peers = s->nodes - 1;
    s->min_peers = swarm_chance(rng, 3) ? 0 : swarm_chance(rng, 3) ? peers / 2 : peers;
    s->mix_every = swarm_chance(rng, 2) ? 1 : 1 + rng_below(rng, 50);
    s->topology =
        swarm_chance(rng, 2) ? PARLEY_TOPOLOGY_COMPLETE : (enum parley_topology)rng_below(rng, 4);
    s->quorum = swarm_chance(rng, 5) ? PARLEY_QUORUM_MAJORITY : PARLEY_QUORUM_LIVE;
    s->tolerance = pow(10, -2 - 4 * rng_unit(rng));
    uint32_t budget = rng_below(rng, 5);
    if (budget == 0) s->steps = swarm_between(rng, 10, 2000);
    if (budget == 1) s->samples = swarm_between(rng, 10, 10000);
    if (budget == 2) s->time_us = swarm_between(rng, 1000, 30 * SECOND);
}

/* Drawn from streams of their own: a seed that lives by gossip on plain links lives as it did
 * before there were others. Of the streams for links, sizes, room, lanes, rares, votes and walls
 * one was taken by which that goes for the seeds that tests name. */
enum {
    STREAM_STRATEGY = 0x5379,
    STREAM_LINKS = 0x538c,
    STREAM_COPIES = 0x53c0,
    STREAM_SIZE = 0x5400,
    STREAM_ROOM = 0x55dd,
    STREAM_LANES = 0x6fe3,
    STREAM_RARES = 0xdc2665,
    STREAM_VOTES = 0x13db,
    STREAM_WALLS = 0xfb
};

/* Most are few, where little hides; some are more than a node keeps sketches of. */
static uint32_t draw_nodes(struct rng *rng, uint64_t seed)
{
    enum { FEW = 9, MANY = 17 };
    uint32_t few = 1 + rng_below(rng, FEW);
    struct rng size = rng_init(seed, STREAM_SIZE);
    return swarm_chance(&size, 40) ? MANY + rng_below(&size, SWARM_NODES_MAX + 1 - MANY) : few;
}

/* Of links: fewer than to all. A server has to have one to each worker. */
static uint32_t draw_room(const struct swarm *s, uint64_t seed)
{
    struct rng rng = rng_init(seed, STREAM_ROOM);
    const uint32_t least = PARLEY_CONNECTIONS_MIN;
    bool gossips = s->strategy <= PARLEY_STRATEGY_NONE;
    if (!gossips || s->nodes <= least || !swarm_chance(&rng, 8)) return 0;
    return least + rng_below(&rng, s->nodes - least);
}

/* Those that came first, and those that came later. */
enum {
    EARLIER = PARLEY_STRATEGY_PS_SSP + 1,
    LATER = PARLEY_STRATEGY_NOLOCO + 1 - EARLIER,
};

static void draw_strategy(struct swarm *s, uint64_t seed, int strategy)
{
    struct rng rng = rng_init(seed, STREAM_STRATEGY);
    bool drawn = swarm_chance(&rng, 4);
    s->strategy = drawn ? (enum parley_strategy)rng_below(&rng, EARLIER) : PARLEY_STRATEGY_GOSSIP;
    s->staleness = rng_below(&rng, 5);
    s->backup_workers = rng_below(&rng, 3);
    if (swarm_chance(&s->links, 12))
        s->strategy = (enum parley_strategy)(EARLIER + rng_below(&s->links, LATER));
    if (s->strategy == PARLEY_STRATEGY_GOSSIP_SYNC && swarm_chance(&s->copies, 2))
        s->strategy = PARLEY_STRATEGY_CHOCO;
    if (strategy != SWARM_DRAWN) s->strategy = (enum parley_strategy)strategy;
}

/* Settings that most leave as they are, and acts (life.c) that most are spared. */
static void draw_rare(struct swarm *s)
{
    struct rng *rng = &s->rares;
    struct swarm_rare *rare = &s->rare;
    bool gossips = s->strategy == PARLEY_STRATEGY_GOSSIP;
    if (!swarm_chance(rng, RARE_ONE_IN)) return;
    rare->is_drawn = true;
    rare->vectors = 1 + rng_below(rng, PARLEY_VECTORS_MAX);
    rare->averaged = gossips ? 1 + rng_below(rng, rare->vectors) : 1;
    /* Of each name also the process before is remembered. */
    rare->members_max = 2 * s->nodes + 2 + rng_below(rng, 60);
    rare->behind_steps_max = rng_below(rng, 100);
    rare->topology_degree = 3 + rng_below(rng, 3);
    if (swarm_chance(rng, 2))
        s->topology = (enum parley_topology)rng_below(rng, PARLEY_TOPOLOGY_GRAPH);
    if (swarm_chance(rng, 2)) rare->fragment_bytes = 1 + rng_below(rng, 2000);
    if (swarm_chance(rng, 3))
        rare->later = (struct parley_period){rng_unit(rng) * 0.9 + 0.05, 1 + rng_below(rng, 50)};
    if (s->strategy > PARLEY_STRATEGY_NONE) rare->later.steps = 0; /* they have one period */
    rare->steered = rare->later.steps == 0 && gossips && swarm_chance(rng, 3);
    rare->robust =
        gossips && rare->averaged == 1 && s->codec == PARLEY_CODEC_FP32 && swarm_chance(rng, 2);
    if (swarm_chance(rng, 2)) rare->slower = 1 + rng_below(rng, 8);
    rare->acts = rng_below(rng, 1u << SWARM_RARE_ACTS);
}

static void draw_codec(struct swarm *s)
{
    static const enum parley_codec of_copies[] = {PARLEY_CODEC_FP32, PARLEY_CODEC_BF16,
                                                  PARLEY_CODEC_INT8, PARLEY_CODEC_TOPK};
    bool codes = swarm_chance(&s->asides, 2);
    if (codes) s->codec = (enum parley_codec)rng_below(&s->asides, 5);
    if (s->strategy > PARLEY_STRATEGY_NONE) s->codec = PARLEY_CODEC_FP32; /* they have none */
    if (s->strategy == PARLEY_STRATEGY_CHOCO) s->codec = of_copies[rng_below(&s->copies, 4)];
}

/* Where a majority decides, nobody starts anew but in a life that is about that. */
static void draw_votes(struct swarm *s)
{
    bool majority = s->quorum == PARLEY_QUORUM_MAJORITY;
    s->votes_again = majority && s->nodes > 2 && swarm_chance(&s->votes, 2);
    s->remembers = s->votes_again && swarm_chance(&s->votes, 2);
    if (majority && !s->votes_again) s->kinds &= ~(1u << SWARM_RESTART);
}

static void draw_machines(struct swarm *s, struct parley_sim_options *options)
{
    struct rng *rng = &s->rng;
    options->rate = swarm_chance(rng, 2) ? 0.001 : 0;
    options->step_us = s->step_us = swarm_between(rng, 500, 30000);
    options->operation_us = swarm_chance(rng, 4) ? swarm_between(rng, 1000, 500000) : 0;
    options->latency_us =
        swarm_chance(rng, 4) ? swarm_between(rng, 5000, 100000) : swarm_between(rng, 1, 2000);
    /* Losses as of an older Linux, and connections that give up soon: harder than what is usual. */
    options->again = sim_again_hard;
    options->bandwidth_bytes = swarm_chance(rng, 3) ? swarm_between(rng, 1000000, 20000000) : 0;
}

int swarm_draw(struct swarm *s, uint64_t seed, int strategy)
{
    *s = (struct swarm){.rng = rng_init(seed, 0x5377),
                        .asides = rng_init(seed, 0x5378),
                        .links = rng_init(seed, STREAM_LINKS),
                        .copies = rng_init(seed, STREAM_COPIES),
                        .rares = rng_init(seed, STREAM_RARES),
                        .votes = rng_init(seed, STREAM_VOTES),
                        .walls = rng_init(seed, STREAM_WALLS)};
    struct rng *rng = &s->rng, lanes = rng_init(seed, STREAM_LANES);
    s->nodes = draw_nodes(rng, seed);
    draw_settings(s);
    draw_strategy(s, seed, strategy);
    s->room = draw_room(s, seed);
    s->narrow = swarm_chance(&lanes, 2);
    s->links_fail = swarm_chance(&s->links, 4);
    s->walled = swarm_chance(&s->walls, 12);
    draw_codec(s);
    draw_rare(s);
    if (swarm_chance(rng, 3)) s->stop_at_train = rng_below(rng, 1u << s->nodes);
    /* Every kind in half of the seeds, so that most of them are not mere chaos. */
    s->kinds = rng_below(rng, 1u << (SWARM_ACTS + 1)); /* the last: cuts may be long */
    draw_votes(s);
    s->seeds = 1 + rng_below(rng, s->nodes < 4 ? s->nodes : 4);
    s->spares = !swarm_chance(rng, 4);
    draw_starts(s);
    struct parley_sim_options options = {
        .nodes = s->nodes,
        .parameters = SWARM_PARAMETERS,
        .seed = seed,
        .seeds = s->seeds,
        .start_us = s->start_us,
        .configure = configure,
        .arg = s,
        .vectors = s->rare.vectors,
        .averaged = s->rare.averaged,
        .fragment_bytes = s->rare.fragment_bytes,
    };
    draw_machines(s, &options);
    int error = parley_sim_new(&s->sim, &options);
    return error ? error : sim_watch_new(&s->watch, s->sim);
}
