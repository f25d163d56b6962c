/* Settings of a node: each limit is held and named. And the table of errors. */
#include "parley/config.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "parley/node.h"

static const char *const long_seed[] = {
    "a-host-name-that-is-much-too-long-for-an-address-of-seventy-one-bytes:70000"};

static struct parley_config good(void)
{
    struct parley_config config;
    parley_config_defaults(&config);
    config.name = "a";
    config.address = "127.0.0.1:1";
    config.boot = 1;
    config.parameters = 1;
    return config;
}

/* Refused, and the text begins with the setting's name. */
static void refused(const struct parley_config *config, const char *name)
{
    char why[160] = "";
    struct parley_node *node;
    cr_assert_eq(parley_config_check(config, why, sizeof why), PARLEY_EUSAGE, "%s", name);
    cr_assert_eq(strncmp(why, name, strlen(name)), 0, "%s: \"%s\"", name, why);
    cr_assert_eq(parley_node_new(&node, config), PARLEY_EUSAGE);
    cr_assert_null(node);
    char tiny[2] = "xy";
    cr_assert_eq(parley_config_check(config, tiny, 0), PARLEY_EUSAGE);
    cr_assert_eq(tiny[0], 'x');
}

#define REFUSED(field, value)                                                                      \
    do {                                                                                           \
        struct parley_config bad = good();                                                         \
        bad.field = value;                                                                         \
        refused(&bad, #field);                                                                     \
    } while (0)

Test(config, each_limit_is_refused_by_name)
{
    /* Proves that no value out of range passes, and that the line names the setting. */
    REFUSED(cluster, "");
    REFUSED(cluster, NULL);
    REFUSED(cluster, "a cluster's name of 32 characters");
    REFUSED(name, "");
    REFUSED(name, "a name that has thirty-two bytes");
    REFUSED(address, "");
    REFUSED(address, long_seed[0]);
    REFUSED(boot, 0);
    REFUSED(parameters, 0);
    REFUSED(parameters, (UINT64_C(1) << 40) + 1);
    REFUSED(vectors, 0);
    REFUSED(vectors, PARLEY_VECTORS_MAX + 1);
    REFUSED(batch, 0);
    REFUSED(mix_every, 0);
    REFUSED(topology, (enum parley_topology)8);
    REFUSED(topology, PARLEY_TOPOLOGY_REGULAR); /* without a degree */
    REFUSED(topology, PARLEY_TOPOLOGY_BASE);
    REFUSED(topology, PARLEY_TOPOLOGY_GRAPH); /* without one */
    REFUSED(strategy, PARLEY_STRATEGIES);
    REFUSED(outer_rate, 0);
    REFUSED(outer_rate, 10.1);
    REFUSED(outer_momentum, -0.1);
    REFUSED(outer_momentum, 1);
    REFUSED(choco_step, 1.1);
    REFUSED(choco_step, NAN);
    REFUSED(quorum, (enum parley_quorum)2);
    REFUSED(tolerance, 0);
    REFUSED(tolerance, -1);
    REFUSED(tolerance, NAN);
    REFUSED(tolerance, INFINITY);
    REFUSED(indirect_probes, PARLEY_INDIRECT_PROBES_MAX + 1);
    REFUSED(members_max, 1);
    REFUSED(members_max, PARLEY_MEMBERS_MAX + 1);
    REFUSED(min_peers, 1024); /* of 1024 members, one of them this node */
    struct parley_config served = good();
    served.strategy = PARLEY_STRATEGY_PS_BSP;
    served.min_peers = PARLEY_SERVED_MAX;
    refused(&served, "min_peers");
    REFUSED(connections_max, PARLEY_CONNECTIONS_MIN - 1);
    REFUSED(connections_max, PARLEY_CONNECTIONS_MAX + 1);
    REFUSED(streams, 0);
    REFUSED(streams, PARLEY_STREAMS_MAX + 1);
    REFUSED(pending_max, 0);
    REFUSED(pending_max, PARLEY_CONNECTIONS_MAX + 1);
    REFUSED(queue_bytes_max, 0);
    REFUSED(suspicion_factor, 0);
    REFUSED(suspicion_factor, NAN);
    REFUSED(probe_interval_us, 0);
    REFUSED(probe_timeout_us, 1000001);
    REFUSED(redial_min_us, 0);
    REFUSED(redial_min_us, 30000001);
    REFUSED(redial_max_us, UINT64_MAX);
    REFUSED(progress_timeout_us, 0);
    REFUSED(keepalive_us, 0);
    REFUSED(hello_timeout_us, 0);
    REFUSED(time_budget_us, UINT64_MAX);
    REFUSED(settle_timeout_us, UINT64_MAX);
    REFUSED(join_timeout_us, UINT64_MAX - 1);
    REFUSED(leave_timeout_us, UINT64_MAX);
    REFUSED(resumed.trained_us, (UINT64_C(1) << 48) + 1);
    REFUSED(resumed.steps, UINT64_C(1000000000000000000));
    REFUSED(resumed.samples, UINT64_C(1000000000000000000));
    REFUSED(resumed.samples_cluster, UINT64_C(1000000000000000000));
    REFUSED(log_level, -1);
    REFUSED(log_level, 4);
    REFUSED(averaged, 0);
    REFUSED(averaged, 2);
    REFUSED(codec, (enum parley_codec)6);
    REFUSED(codec, PARLEY_CODEC_TOPK); /* of gossip */
    REFUSED(codec_part, 0);
    REFUSED(codec_part, 1.01);
    REFUSED(codec_part, NAN);
    struct parley_config bad = good();
    bad.robust = true;
    bad.strategy = PARLEY_STRATEGY_NOLOCO;
    refused(&bad, "robust");
    bad.codec = PARLEY_CODEC_INT8;
    refused(&bad, "robust");
    bad = good();
    bad.mix_later_count = 2;
    bad.mix_later[0] = (struct parley_period){0.5, 8};
    bad.mix_later[1] = (struct parley_period){0.5, 4};
    refused(&bad, "mix_later");
    bad.mix_later[1] = (struct parley_period){0.7, 0};
    refused(&bad, "mix_later");
    bad.mix_later[1] = (struct parley_period){1, 4};
    refused(&bad, "mix_later");
    bad.mix_later_count = PARLEY_PERIODS_MAX + 1;
    refused(&bad, "mix_later");
    bad.mix_later_count = 1;
    bad.mix_steered = true;
    refused(&bad, "mix_later");
    bad = good();
    bad.settings_count = 1;
    refused(&bad, "settings: NULL");
    bad.settings_count = PARLEY_SETTINGS_MAX + 1;
    refused(&bad, "settings_count: 33 is out of range (0 to 32)");
    bad = good();
    bad.seeds_count = 1;
    refused(&bad, "seeds: NULL");
    bad = good();
    bad.quorum = PARLEY_QUORUM_MAJORITY;
    refused(&bad, "nodes");
    bad = good();
    bad.seeds = long_seed;
    bad.seeds_count = 1;
    refused(&bad, "seeds");
    bad.seeds_count = PARLEY_SEEDS_MAX + 1;
    refused(&bad, "seeds");
}

static void says(const struct parley_config *config, const char *value)
{
    char why[240] = "";
    cr_assert_eq(parley_config_check(config, why, sizeof why), PARLEY_EUSAGE);
    cr_assert(strstr(why, value), "\"%s\" lacks %s", why, value);
}

Test(config, a_line_has_the_value_that_is_refused)
{
    /* Proves what the header says: setting, value and range; of a number, a real one, a text. */
    struct parley_config bad = good();
    bad.connections_max = 5000;
    says(&bad, "connections_max: 5000 is out of range (6 to 1024)");
    bad.strategy = PARLEY_STRATEGY_LOCAL_SGD;
    bad.members_max = 17;
    bad.connections_max = 19;
    says(&bad, "connections_max: 19 is out of range (20 to 1024)");
    bad = good();
    bad.tolerance = -0.5;
    says(&bad, "-0.5");
    bad = good();
    bad.keepalive_us = UINT64_C(1) << 50;
    says(&bad, "keepalive_us: 1125899906842624");
    bad = good();
    bad.seeds = long_seed;
    bad.seeds_count = 1;
    says(&bad, long_seed[0]);
    bad = good();
    bad.name = "a b";
    says(&bad, "name: \"a b\" must have no blanks");
    bad.name = "a\n\033[2J\x7f";
    says(&bad, "name: \"a??[2J?\" must have 1 to 31 bytes of UTF-8, and no control "
               "characters");
    bad.name = "k\xc3\xb6ln";
    says(&bad, "name: \"k\xc3\xb6ln\" must have no blanks, and ASCII alone");
}

Test(config, further_vectors_are_averaged_by_gossip_and_none_alone)
{
    /* Proves that no other strategy is let in with them, and that the line says which. */
    char why[160];
    struct parley_config config = good();
    config.vectors = config.averaged = 2;
    for (int s = 0; s < PARLEY_STRATEGIES; s++) {
        config.strategy = (enum parley_strategy)s;
        if (s == PARLEY_STRATEGY_GOSSIP || s == PARLEY_STRATEGY_NONE)
            cr_assert_eq(parley_config_check(&config, why, sizeof why), 0, "%s", why);
        else
            refused(&config, "averaged");
    }
    config.strategy = PARLEY_STRATEGY_PUSH_SUM;
    says(&config, "averaged: 2 vectors are for gossip and none, not for push-sum");
}

Test(config, what_a_strategy_would_ignore_is_refused)
{
    for (int strategy = 0; strategy < PARLEY_STRATEGIES; strategy++) {
        bool gossips = strategy == PARLEY_STRATEGY_GOSSIP || strategy == PARLEY_STRATEGY_NONE;
        struct parley_config base = good(), config;
        base.strategy = (enum parley_strategy)strategy;
        config = base;
        config.codec = PARLEY_CODEC_INT8;
        bool taken = parley_config_check(&config, NULL, 0) == 0;
        cr_expect_eq(taken, gossips || strategy == PARLEY_STRATEGY_CHOCO, "int8: %d", strategy);
        config = base;
        config.mix_later_count = 1;
        config.mix_later[0] = (struct parley_period){0.5, 8};
        cr_expect_eq(parley_config_check(&config, NULL, 0) == 0, gossips, "later: %d", strategy);
        config = base;
        config.mix_steered = true;
        cr_expect_eq(parley_config_check(&config, NULL, 0) == 0, gossips, "steered: %d", strategy);
    }
}

Test(config, a_setting_that_would_be_cut_off_is_refused)
{
    /* Proves that no two nodes are let in whose settings differ behind what HELLO has room for. */
    char value[65];
    memset(value, 'v', sizeof value);
    value[64] = 0;
    struct parley_setting setting = {"dataset", value};
    struct parley_config config = good();
    config.settings = &setting;
    config.settings_count = 1;
    refused(&config, "settings");
    says(&config, "dataset");
    says(&config, value);
    value[63] = 0;
    char why[160];
    cr_assert_eq(parley_config_check(&config, why, sizeof why), 0);
    setting.name = "a setting's name of 32 characters";
    refused(&config, "settings");
    setting.name = NULL;
    refused(&config, "settings");
    setting = (struct parley_setting){"dataset", NULL};
    refused(&config, "settings: \"dataset\" has no value");
}

Test(config, a_setting_that_stands_twice_is_refused)
{
    /* Proves that no two nodes with the same options refuse each other, each by another value. */
    const struct parley_setting settings[] = {{"a", "1"}, {"b", "1"}, {"a", "2"}};
    struct parley_config config = good();
    config.settings = settings;
    config.settings_count = 2;
    cr_assert_eq(parley_config_check(&config, NULL, 0), 0);
    config.settings_count = 3;
    refused(&config, "settings: \"a\" stands twice");
}

Test(config, the_defaults_need_only_who_and_what)
{
    /* Proves that defaults, a name, an address, a boot and a size make a node, text copied. */
    struct parley_config config = good();
    char why[160], name[] = "gone", seed[] = "b:1";
    const char *seeds[] = {seed};
    cr_assert_eq(parley_config_check(&config, why, sizeof why), 0);
    config.name = name;
    config.seeds = seeds;
    config.seeds_count = 1;
    struct parley_node *node;
    struct parley_member member;
    struct parley_updates updates;
    cr_assert_eq(parley_node_new(&node, &config), 0);
    memset(name, '#', sizeof name - 1);
    cr_assert_eq(parley_updates_init(&updates), 0);
    parley_node_step(node, &(struct parley_event){.type = PARLEY_EVENT_START}, &updates);
    parley_node_member(node, 0, &member);
    cr_assert_str_eq(member.name, "gone");
    parley_updates_close(&updates);
    parley_node_free(node);
}

Test(config, buffers_are_two_a_slot_at_least_and_two_in_doubt)
{
    /* Proves the stated number of buffers for 1 to 3 vectors. */
    struct parley_config config = good();
    const uint32_t expected[] = {0, 6, 6, 8};
    for (config.vectors = 1; config.vectors <= 3; config.vectors++)
        cr_assert_eq(parley_config_buffers(&config), expected[config.vectors]);
    config.vectors = 1;
    config.robust = true; /* a proposed model is compared with the own */
    cr_assert_eq(parley_config_buffers(&config), 7);
}

Test(config, buffers_for_others_models_are_many_only_where_these_are_small)
{
    /* Proves that beside its snapshot gossip-sync has room for 16 small models, and for two large
     * ones; a parameter server beside what it has of its own for 63 gradients, and for 8;
     * all-reduce for four parts of a sum. */
    const struct {
        enum parley_strategy strategy;
        uint64_t parameters;
        uint32_t own, others;
    } all[] = {
        {PARLEY_STRATEGY_GOSSIP_SYNC, 1000, 1, 16},    {PARLEY_STRATEGY_GOSSIP_SYNC, 1000000, 1, 8},
        {PARLEY_STRATEGY_GOSSIP_SYNC, 10000000, 1, 2}, {PARLEY_STRATEGY_PS_BSP, 1000, 5, 63},
        {PARLEY_STRATEGY_PS_BSP, 235146, 5, 35},       {PARLEY_STRATEGY_PS_BSP, 10000000, 5, 8},
        {PARLEY_STRATEGY_ALLREDUCE, 1000, 4, 4},       {PARLEY_STRATEGY_DILOCO, 4000000, 6, 2}};
    struct parley_config config = good();
    config.vectors = 1;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        config.strategy = all[i].strategy;
        config.parameters = all[i].parameters;
        cr_expect_eq(parley_config_buffers(&config), 6 + all[i].own + all[i].others, "%zu", i);
    }
    config.strategy = PARLEY_STRATEGY_PS_BSP;
    config.parameters = 1000;
    config.lanes_bytes = 0;
    cr_assert_eq(parley_config_buffers(&config), 6 + 5 + 8);
}

Test(config, each_error_has_a_name_a_text_and_a_status)
{
    /* Proves that the table is whole and that what is no error of ours is said so. */
    cr_assert_str_eq(parley_error_name(PARLEY_OK), "PARLEY_OK");
    cr_assert_eq(parley_error_status(PARLEY_OK), 0);
    for (int error = -1; error >= PARLEY_EKEY; error--) {
        cr_assert_eq(strncmp(parley_error_name(error), "PARLEY_E", 8), 0);
        cr_assert_neq(parley_error_name(error)[8], '?');
        cr_assert_gt(strlen(parley_error_text(error)), 5);
        int status = parley_error_status(error);
        cr_assert(status >= 1 && status <= 10);
    }
    const int unknown[] = {1, 77, PARLEY_EKEY - 1, -1000, -2147483647 - 1, 2147483647};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        cr_assert_str_eq(parley_error_name(unknown[i]), "PARLEY_E?");
        cr_assert_str_eq(parley_error_text(unknown[i]), "unknown error");
        cr_assert_eq(parley_error_status(unknown[i]), 1);
    }
    cr_assert_eq(parley_error_status(PARLEY_EMISMATCH), 6);
    cr_assert_eq(parley_error_status(PARLEY_EINVARIANT), 10);
}
