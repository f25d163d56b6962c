/* config.c: defaults and checks. The defaults are for a local network. */
#include "parley/config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/codec.h"
#include "parley/node.h"

#define MS UINT64_C(1000)
#define S UINT64_C(1000000)
#define DURATION_MAX_US (UINT64_C(1) << 48) /* nine years */

void parley_config_defaults(struct parley_config *config)
{
    *config = (struct parley_config){
        .cluster = "parley",
        .name = "",
        .address = "",
        .run = 1,
        .seed = 1,
        .vectors = 1,
        .averaged = 1,
        .batch = 1,
        .codec_part = 1,
        .mix_every = 1,
        .behind_steps_max = 64,
        .tolerance = 1e-4,
        .settle_timeout_us = 60 * S,
        .probe_interval_us = 1 * S,
        .probe_timeout_us = 500 * MS,
        .indirect_probes = 3,
        .suspicion_factor = 4,
        .broken_suspicion_us = 500 * MS,
        .join_timeout_us = UINT64_MAX,
        .leave_timeout_us = 10 * S,
        .redial_min_us = 500 * MS,
        .redial_max_us = 30 * S,
        .progress_timeout_us = 10 * S,
        .keepalive_us = 2 * S,
        .members_max = 1024,
        .connections_max = 64,
        .streams = 1,
        .pending_max = 64,
        .hello_timeout_us = 5 * S,
        .queue_bytes_max = 1024 * 1024,
        .chunk_sums = true,
        .log_level = PARLEY_LOG_INFO,
    };
}

static int refuse(char *why, size_t size, const char *name, const char *rule)
{
    if (size > 0) snprintf(why, size, "%s %s", name, rule);
    return PARLEY_EUSAGE;
}

static bool fits(const char *text, size_t size)
{
    return text && *text && strlen(text) < size;
}

/* All are added to the time, and what is waited for again and again must not be 0. */
static const char *bad_duration(const struct parley_config *c)
{
    const struct {
        const char *name;
        uint64_t us, least_us;
    } durations[] = {
        {"time_budget_us", c->time_budget_us, 0},
        {"settle_timeout_us", c->settle_timeout_us, 0},
        {"probe_interval_us", c->probe_interval_us, 1},
        {"probe_timeout_us", c->probe_timeout_us, 0},
        {"broken_suspicion_us", c->broken_suspicion_us, 0},
        {"join_timeout_us", c->join_timeout_us == UINT64_MAX ? 0 : c->join_timeout_us, 0},
        {"leave_timeout_us", c->leave_timeout_us, 0},
        {"redial_min_us", c->redial_min_us, 1},
        {"redial_max_us", c->redial_max_us, 1},
        {"progress_timeout_us", c->progress_timeout_us, 1},
        {"keepalive_us", c->keepalive_us, 1},
        {"hello_timeout_us", c->hello_timeout_us, 1},
    };
    for (size_t i = 0; i < sizeof durations / sizeof *durations; i++)
        if (durations[i].us < durations[i].least_us || durations[i].us > DURATION_MAX_US)
            return durations[i].name;
    return NULL;
}

int parley_config_check(const struct parley_config *c, char *why, size_t size)
{
    if (!fits(c->cluster, PARLEY_NAME_SIZE))
        return refuse(why, size, "cluster", "must have 1 to 31 bytes");
    if (!fits(c->name, PARLEY_NAME_SIZE))
        return refuse(why, size, "name", "must have 1 to 31 bytes");
    if (!fits(c->address, PARLEY_ADDRESS_SIZE))
        return refuse(why, size, "address", "must have 1 to 71 bytes");
    if (c->boot == 0) return refuse(why, size, "boot", "must not be 0");
    if (c->seeds_count > PARLEY_SEEDS_MAX) return refuse(why, size, "seeds", "are more than 256");
    for (uint32_t i = 0; i < c->seeds_count; i++)
        if (!fits(c->seeds[i], PARLEY_ADDRESS_SIZE))
            return refuse(why, size, "seeds",
                          "hold an address that is empty or longer than 71 bytes");
    if (c->parameters == 0 || c->parameters > UINT64_C(1) << 40)
        return refuse(why, size, "parameters", "must lie in 1 to 2^40");
    if (c->vectors == 0 || c->vectors > PARLEY_VECTORS_MAX)
        return refuse(why, size, "vectors", "must lie in 1 to 3");
    if (c->averaged == 0 || c->averaged > c->vectors)
        return refuse(why, size, "averaged", "must lie in 1 to vectors");
    if (c->settings_count > PARLEY_SETTINGS_MAX)
        return refuse(why, size, "settings", "are more than 32");
    if (c->batch == 0) return refuse(why, size, "batch", "must be at least 1");
    if (c->mix_every == 0) return refuse(why, size, "mix_every", "must be at least 1");
    for (uint32_t i = 0; i < c->mix_later_count && i < PARLEY_PERIODS_MAX; i++) {
        double before = i > 0 ? c->mix_later[i - 1].from : 0;
        if (c->mix_later[i].steps == 0 || !(c->mix_later[i].from > before) ||
            c->mix_later[i].from >= 1)
            return refuse(why, size, "mix_later",
                          "must have steps, and shares that rise to below 1");
    }
    if (c->mix_later_count > PARLEY_PERIODS_MAX || (c->mix_later_count > 0 && c->mix_steered))
        return refuse(why, size, "mix_later", "are more than 8, or beside mix_steered");
    if (!(c->tolerance > 0) || !isfinite(c->tolerance))
        return refuse(why, size, "tolerance", "must be above 0");
    if (c->quorum == PARLEY_QUORUM_MAJORITY && c->nodes == 0)
        return refuse(why, size, "nodes", "must be given for a majority");
    if (c->members_max < 2 || c->members_max > PARLEY_MEMBERS_MAX)
        return refuse(why, size, "members_max", "must lie in 2 to 16384");
    if (c->connections_max < 2 || c->connections_max > PARLEY_CONNECTIONS_MAX)
        return refuse(why, size, "connections_max", "must lie in 2 to 1024");
    if (c->streams == 0 || c->streams > PARLEY_STREAMS_MAX)
        return refuse(why, size, "streams", "must lie in 1 to 64");
    if (c->pending_max == 0 || c->pending_max > PARLEY_CONNECTIONS_MAX)
        return refuse(why, size, "pending_max", "must lie in 1 to 1024");
    const char *duration = bad_duration(c);
    if (duration) return refuse(why, size, duration, "must lie in 1 us to nine years");
    if (!(c->suspicion_factor >= 1) || c->suspicion_factor > 1000)
        return refuse(why, size, "suspicion_factor", "must lie in 1 to 1000");
    if (c->queue_bytes_max < 2 * PARLEY_CONTROL_BYTES_MAX)
        return refuse(why, size, "queue_bytes_max", "must be at least 128 KiB");
    if ((unsigned)c->codec > PARLEY_CODEC_TOPK)
        return refuse(why, size, "codec", "is none of ours");
    if (!(c->codec_part > 0 && c->codec_part <= 1))
        return refuse(why, size, "codec_part", "must lie above 0, and at most 1");
    if (c->codec == PARLEY_CODEC_TOPK && c->strategy != PARLEY_STRATEGY_CHOCO)
        return refuse(why, size, "codec", "topk is for the strategy choco alone");
    if (c->codec == PARLEY_CODEC_SUBSET && c->strategy == PARLEY_STRATEGY_CHOCO)
        return refuse(why, size, "codec", "subset is not for the strategy choco");
    if (c->codec == PARLEY_CODEC_TOPK && c->codec_part > CODEC_TOPK_MAX)
        return refuse(why, size, "codec_part", "of topk must lie above 0, and at most 0.5");
    if (c->robust &&
        (c->strategy != PARLEY_STRATEGY_GOSSIP || c->averaged > 1 || c->codec != PARLEY_CODEC_FP32))
        return refuse(why, size, "robust", "needs gossip of one vector in fp32");
    if ((unsigned)c->topology > PARLEY_TOPOLOGY_GRAPH)
        return refuse(why, size, "topology", "is none of ours");
    uint32_t least_degree = c->topology == PARLEY_TOPOLOGY_REGULAR ? 3 : 1;
    if ((c->topology == PARLEY_TOPOLOGY_REGULAR || c->topology == PARLEY_TOPOLOGY_BASE) &&
        (c->topology_degree < least_degree || c->topology_degree > PARLEY_DEGREE_MAX))
        return refuse(why, size, "topology_degree", "must lie in 1 (regular: 3) to 64");
    if (c->topology == PARLEY_TOPOLOGY_GRAPH && (!c->graph || c->graph->nodes > PARLEY_MEMBERS_MAX))
        return refuse(why, size, "topology", "needs a graph, of at most 16384 nodes");
    if ((unsigned)c->strategy >= PARLEY_STRATEGIES)
        return refuse(why, size, "strategy", "is none of ours");
    if ((unsigned)c->quorum > PARLEY_QUORUM_MAJORITY)
        return refuse(why, size, "quorum", "is none of ours");
    if (c->probe_timeout_us > c->probe_interval_us)
        return refuse(why, size, "probe_timeout_us", "must not exceed probe_interval_us");
    if (c->redial_min_us > c->redial_max_us)
        return refuse(why, size, "redial_min_us", "must lie in 1 to redial_max_us");
    return 0;
}
