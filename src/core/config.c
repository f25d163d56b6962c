/* config.c: defaults and checks. The defaults are for a local network. */
#include "parley/config.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/plain.h"
#include "core/strategy/strategy.h"
#include "core/training/training.h"
#include "core/transfer/codec.h"
#include "core/wire/message.h"
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
        .outer_rate = 0.7,
        .outer_momentum = 0.5,
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
        .lanes_bytes = 32 * 1024 * 1024,
        .pending_max = 64,
        .hello_timeout_us = 5 * S,
        .queue_bytes_max = 1024 * 1024,
        .chunk_sums = true,
        .log_level = PARLEY_LOG_INFO,
    };
}

/* A line that begins with the setting's name and has its value, without what would end the line or
 * move a terminal's cursor. */
__attribute__((format(printf, 3, 4))) static int refuse(char *why, size_t size, const char *format,
                                                        ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (size > 0) vsnprintf(why, size, format, arguments);
    va_end(arguments);
    if (size > 0) plain_scrub(why);
    return PARLEY_EUSAGE;
}

static int refuse_number(char *why, size_t size, const char *name, uint64_t value,
                         const char *range)
{
    return refuse(why, size, "%s: %" PRIu64 " is out of range (%s)", name, value, range);
}

struct range {
    const char *name;
    uint64_t value, least, most; /* UINT64_MAX: no bound */
};

static int check_range(const struct range *r, char *why, size_t size)
{
    char range[64];
    if (r->value >= r->least && r->value <= r->most) return 0;
    if (r->most == UINT64_MAX)
        snprintf(range, sizeof range, "at least %" PRIu64, r->least);
    else
        snprintf(range, sizeof range, "%" PRIu64 " to %" PRIu64, r->least, r->most);
    return refuse_number(why, size, r->name, r->value, range);
}

static int refuse_real(char *why, size_t size, const char *name, double value, const char *range)
{
    return refuse(why, size, "%s: %g is out of range (%s)", name, value, range);
}

/* Peers would take a message with control characters for malformed (message.c). */
static bool fits(const char *text, size_t size)
{
    return text && *text && strlen(text) < size && plain_text(text, strlen(text));
}

static int refuse_text(char *why, size_t size, const char *name, const char *value, int most)
{
    return refuse(why, size,
                  "%s: \"%.80s\" must have 1 to %d bytes of UTF-8, and no control characters", name,
                  value ? value : "", most);
}

/* NONE does at the end. */
static bool gossips(const struct parley_config *c)
{
    return c->strategy == PARLEY_STRATEGY_GOSSIP || c->strategy == PARLEY_STRATEGY_NONE;
}

/* The first that is out of its own. */
static int check_ranges(const struct range *ranges, size_t count, char *why, size_t size)
{
    int code = 0;
    for (size_t i = 0; !code && i < count; i++)
        code = check_range(&ranges[i], why, size);
    return code;
}

/* Peers compare them as text: what HELLO has no room for would be cut off, and alike; and of two
 * of one name only the first would count. */
static int check_setting(const struct parley_config *c, uint32_t at, char *why, size_t size)
{
    const struct parley_setting *s = &c->settings[at];
    if (!fits(s->name, PARLEY_NAME_SIZE))
        return refuse_text(why, size, "settings: the name", s->name, PARLEY_NAME_SIZE - 1);
    for (uint32_t i = 0; i < at; i++)
        if (strcmp(c->settings[i].name, s->name) == 0)
            return refuse(why, size, "settings: \"%s\" stands twice", s->name);
    if (!s->value)
        return refuse(why, size, "settings: \"%s\" has no value (NULL); give at least \"\"",
                      s->name);
    if (strlen(s->value) >= MESSAGE_VALUE_SIZE)
        return refuse(why, size, "settings: \"%s\" has the value \"%.80s\", of more than %d bytes",
                      s->name, s->value, MESSAGE_VALUE_SIZE - 1);
    if (!plain_text(s->value, strlen(s->value)))
        return refuse(why, size,
                      "settings: \"%s\" has a value that is no UTF-8, or has control characters",
                      s->name);
    return 0;
}

static int check_settings(const struct parley_config *c, char *why, size_t size)
{
    int code = check_range(
        &(struct range){"settings_count", c->settings_count, 0, PARLEY_SETTINGS_MAX}, why, size);
    if (!code && c->settings_count > 0 && !c->settings)
        return refuse(why, size, "settings: NULL, but settings_count is %u", c->settings_count);
    for (uint32_t i = 0; !code && i < c->settings_count; i++)
        code = check_setting(c, i, why, size);
    return code;
}

/* All are added to the time, and what is waited for again and again must not be 0. */
static int check_durations(const struct parley_config *c, char *why, size_t size)
{
    const struct range durations[] = {
        {"time_budget_us", c->time_budget_us, 0, DURATION_MAX_US},
        {"settle_timeout_us", c->settle_timeout_us, 0, DURATION_MAX_US},
        {"probe_interval_us", c->probe_interval_us, 1, DURATION_MAX_US},
        {"probe_timeout_us", c->probe_timeout_us, 0, c->probe_interval_us},
        {"broken_suspicion_us", c->broken_suspicion_us, 0, DURATION_MAX_US},
        {"join_timeout_us", c->join_timeout_us == UINT64_MAX ? 0 : c->join_timeout_us, 0,
         DURATION_MAX_US},
        {"leave_timeout_us", c->leave_timeout_us, 0, DURATION_MAX_US},
        {"redial_max_us", c->redial_max_us, 1, DURATION_MAX_US},
        {"redial_min_us", c->redial_min_us, 1, c->redial_max_us},
        {"progress_timeout_us", c->progress_timeout_us, 1, DURATION_MAX_US},
        {"keepalive_us", c->keepalive_us, 1, DURATION_MAX_US},
        {"hello_timeout_us", c->hello_timeout_us, 1, DURATION_MAX_US},
        {"resumed.trained_us", c->resumed.trained_us, 0, DURATION_MAX_US},
    };
    return check_ranges(durations, sizeof durations / sizeof *durations, why, size);
}

static int check_counts(const struct parley_config *c, char *why, size_t size)
{
    const struct range counts[] = {
        {"boot", c->boot, 1, UINT64_MAX},
        {"parameters", c->parameters, 1, PARLEY_PARAMETERS_MAX},
        {"vectors", c->vectors, 1, PARLEY_VECTORS_MAX},
        {"averaged", c->averaged, 1, c->vectors},
        {"batch", c->batch, 1, UINT64_MAX},
        {"mix_every", c->mix_every, 1, UINT64_MAX},
        {"indirect_probes", c->indirect_probes, 0, PARLEY_INDIRECT_PROBES_MAX},
        {"members_max", c->members_max, 2, PARLEY_MEMBERS_MAX},
        {"min_peers", c->min_peers, 0, strategy_nodes(c) - 1},
        {"connections_max", c->connections_max, strategy_connections(c), PARLEY_CONNECTIONS_MAX},
        {"streams", c->streams, 1, PARLEY_STREAMS_MAX},
        {"pending_max", c->pending_max, 1, PARLEY_CONNECTIONS_MAX},
        {"queue_bytes_max", c->queue_bytes_max, 2 * PARLEY_CONTROL_BYTES_MAX, UINT64_MAX},
        {"resumed.steps", c->resumed.steps, 0, TRAINED_MAX},
        {"resumed.samples", c->resumed.samples, 0, TRAINED_MAX},
        {"resumed.samples_cluster", c->resumed.samples_cluster, 0, TRAINED_MAX},
    };
    return check_ranges(counts, sizeof counts / sizeof *counts, why, size);
}

static int check_periods(const struct parley_config *c, char *why, size_t size)
{
    double before = 0;
    if (c->mix_later_count > 0 && c->mix_steered)
        return refuse_number(why, size, "mix_later_count", c->mix_later_count,
                             "0 beside mix_steered");
    if ((c->mix_later_count > 0 || c->mix_steered) && !gossips(c))
        return refuse(why, size, "%s: it is for gossip; %s has one period",
                      c->mix_steered ? "mix_steered" : "mix_later", strategy_name(c->strategy));
    int code = check_range(
        &(struct range){"mix_later_count", c->mix_later_count, 0, PARLEY_PERIODS_MAX}, why, size);
    for (uint32_t i = 0; !code && i < c->mix_later_count; i++) {
        const struct parley_period *p = &c->mix_later[i];
        if (p->steps == 0 || !(p->from > before) || p->from >= 1)
            return refuse(why, size,
                          "mix_later: %" PRIu32 " steps from %g on: steps must be at least 1, and "
                          "shares rise between 0 and 1",
                          p->steps, p->from);
        before = p->from;
    }
    return code;
}

static int check_codec(const struct parley_config *c, char *why, size_t size)
{
    if ((unsigned)c->codec > PARLEY_CODEC_TOPK)
        return refuse_number(why, size, "codec", c->codec, "one of enum parley_codec");
    if (!(c->codec_part > 0 && c->codec_part <= 1))
        return refuse_real(why, size, "codec_part", c->codec_part, "above 0, at most 1");
    if (c->codec == PARLEY_CODEC_TOPK && c->strategy != PARLEY_STRATEGY_CHOCO)
        return refuse(why, size, "codec: topk is for the strategy choco alone");
    if (c->codec != PARLEY_CODEC_FP32 && !gossips(c) && c->strategy != PARLEY_STRATEGY_CHOCO)
        return refuse(why, size, "codec: it is for gossip and choco; %s sends fp32",
                      strategy_name(c->strategy));
    if (c->codec == PARLEY_CODEC_SUBSET && c->strategy == PARLEY_STRATEGY_CHOCO)
        return refuse(why, size, "codec: subset is not for the strategy choco");
    if (c->codec == PARLEY_CODEC_TOPK && c->codec_part > CODEC_TOPK_MAX)
        return refuse_real(why, size, "codec_part", c->codec_part, "of topk: above 0, at most 0.5");
    return 0;
}

static int check_strategy(const struct parley_config *c, char *why, size_t size)
{
    if ((unsigned)c->strategy >= PARLEY_STRATEGIES)
        return refuse_number(why, size, "strategy", c->strategy, "one of enum parley_strategy");
    if (!(c->outer_rate > 0 && c->outer_rate <= 10))
        return refuse_real(why, size, "outer_rate", c->outer_rate, "above 0, at most 10");
    if (!(c->outer_momentum >= 0 && c->outer_momentum < 1))
        return refuse_real(why, size, "outer_momentum", c->outer_momentum, "0 to below 1");
    if (!(c->choco_step >= 0 && c->choco_step <= 1))
        return refuse_real(why, size, "choco_step", c->choco_step, "0 to 1");
    if (c->averaged > 1 && !gossips(c))
        return refuse(why, size,
                      "averaged: %" PRIu32 " vectors are for gossip and none, not for %s",
                      c->averaged, strategy_name(c->strategy));
    if (c->robust &&
        (c->strategy != PARLEY_STRATEGY_GOSSIP || c->averaged > 1 || c->codec != PARLEY_CODEC_FP32))
        return refuse(why, size, "robust: it needs gossip of one vector in fp32");
    return 0;
}

static int check_topology(const struct parley_config *c, char *why, size_t size)
{
    bool regular = c->topology == PARLEY_TOPOLOGY_REGULAR;
    if ((unsigned)c->topology > PARLEY_TOPOLOGY_GRAPH)
        return refuse_number(why, size, "topology", c->topology, "one of enum parley_topology");
    if (regular || c->topology == PARLEY_TOPOLOGY_BASE)
        return check_range(&(struct range){"topology_degree", c->topology_degree, regular ? 3 : 1,
                                           PARLEY_DEGREE_MAX},
                           why, size);
    if (c->topology == PARLEY_TOPOLOGY_GRAPH && (!c->graph || c->graph->nodes > PARLEY_MEMBERS_MAX))
        return refuse(why, size, "topology: it needs a graph, of at most %d nodes",
                      PARLEY_MEMBERS_MAX);
    return 0;
}

static int check_texts(const struct parley_config *c, char *why, size_t size)
{
    if (!fits(c->cluster, PARLEY_NAME_SIZE))
        return refuse_text(why, size, "cluster", c->cluster, PARLEY_NAME_SIZE - 1);
    if (!fits(c->name, PARLEY_NAME_SIZE))
        return refuse_text(why, size, "name", c->name, PARLEY_NAME_SIZE - 1);
    if (!plain_name(c->name, strlen(c->name)))
        return refuse(why, size, "name: \"%.80s\" must have no blanks, and ASCII alone", c->name);
    if (!fits(c->address, PARLEY_ADDRESS_SIZE))
        return refuse_text(why, size, "address", c->address, PARLEY_ADDRESS_SIZE - 1);
    if (c->seeds_count > 0 && !c->seeds)
        return refuse(why, size, "seeds: NULL, but seeds_count is %u", c->seeds_count);
    int code =
        check_range(&(struct range){"seeds_count", c->seeds_count, 0, PARLEY_SEEDS_MAX}, why, size);
    for (uint32_t i = 0; !code && i < c->seeds_count; i++)
        if (!fits(c->seeds[i], PARLEY_ADDRESS_SIZE))
            return refuse_text(why, size, "seeds", c->seeds[i], PARLEY_ADDRESS_SIZE - 1);
    return code;
}

static int check_rest(const struct parley_config *c, char *why, size_t size)
{
    if (!(c->tolerance > 0) || !isfinite(c->tolerance))
        return refuse_real(why, size, "tolerance", c->tolerance, "above 0, and finite");
    if (!(c->suspicion_factor >= 1) || c->suspicion_factor > 1000)
        return refuse_real(why, size, "suspicion_factor", c->suspicion_factor, "1 to 1000");
    if ((unsigned)c->quorum > PARLEY_QUORUM_MAJORITY)
        return refuse_number(why, size, "quorum", c->quorum, "one of enum parley_quorum");
    if (c->quorum == PARLEY_QUORUM_MAJORITY && c->nodes == 0)
        return refuse_number(why, size, "nodes", c->nodes, "at least 1 for a majority");
    if ((unsigned)c->earlier > PARLEY_EARLIER_HELD)
        return refuse_number(why, size, "earlier", c->earlier, "one of enum parley_earlier");
    if (c->log_level < PARLEY_LOG_ERROR || c->log_level > PARLEY_LOG_DEBUG)
        return refuse(why, size, "log_level: %d is out of range (one of enum parley_log)",
                      c->log_level);
    return 0;
}

int parley_config_check(const struct parley_config *c, char *why, size_t size)
{
    int (*const checks[])(const struct parley_config *c, char *why, size_t size) = {
        check_texts,   check_counts,    check_settings, check_strategy, check_codec,
        check_periods, check_durations, check_topology, check_rest,
    };
    int code = 0;
    for (size_t i = 0; !code && i < sizeof checks / sizeof *checks; i++)
        code = checks[i](c, why, size);
    return code;
}
