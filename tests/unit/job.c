/* job.c: what becomes of settings: which must match across the cluster, as they are told to peers,
 * and which numbers are gone by. */
#include "job/job.h"

#include <criterion/criterion.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "settings/settings.h"

enum { ARGUMENTS = 12 };

/* In place of the digits, which take longer to draw than all that is looked at here. */
static uint16_t two_labels[] = {0, 1};
static float two_values[] = {0, 1};
static const struct source two_samples = {
    .train = {.count = 2, .features = 1, .classes = 2, .labels = two_labels, .values = two_values}};

static void job_open(struct job *job, struct settings *settings, const char *const *flags)
{
    char *argv[ARGUMENTS] = {"parley", "node", "--model", "softmax"};
    char why[SETTINGS_WHY_BYTES] = "";
    int count = 4;
    for (int i = 0; flags[i]; i++)
        argv[count++] = (char *)flags[i];
    settings_init(settings);
    cr_assert_eq(settings_flags(settings, count, argv, why), 0, "%s", why);
    cr_assert_eq(settings_finish(settings, why), 0, "%s", why);
    cr_assert_eq(job_init(job, settings, &two_samples, NULL, why, sizeof why), 0, "%s", why);
}

/* The value of `setting`, and the run, of a job with the given flags. */
static uint64_t run_of(const char *setting, const char *const *flags, char value[64])
{
    struct settings settings;
    struct job job;
    job_open(&job, &settings, flags);
    for (uint32_t i = 0; i < job.shared_count; i++)
        if (strcmp(job.shared[i].name, setting) == 0) snprintf(value, 64, "%s", job.values[i]);
    uint64_t run = job.run;
    job_close(&job);
    settings_close(&settings);
    return run;
}

/* What a job's numbers have come to. */
struct met {
    struct optimizer_numbers numbers;
    double rate; /* of a step at a quarter of the budget */
    struct parley_config config;
};

static void meet(const char *const *flags, struct met *met)
{
    struct settings settings;
    struct job job;
    float *state[2], gradient[4] = {0};
    struct trainer_node node = {0};
    const struct trainer_turn turn = {.progress = 0.25, .live = 1};

    job_open(&job, &settings, flags);
    float *x = trainer_vectors(job.trainer, state);
    cr_assert(x && trainer_parameters(job.trainer) == 4);
    trainer_apply(job.trainer, &node, x, state, gradient, 1, &turn);
    met->numbers = *trainer_numbers(job.trainer);
    met->rate = node.rate;
    parley_config_defaults(&met->config);
    job_config(&job, &met->config);
    free(x);
    job_close(&job);
    settings_close(&settings);
}

Test(job, a_number_that_is_given_is_what_is_gone_by_and_what_peers_are_told)
{
    /* Each flag alone, behind what it needs: without it the number is another. */
    static const struct {
        const char *needs[5], *flag, *value;
        size_t at; /* in struct met */
        double expected;
    } cases[] = {
#define NUMBER(field) offsetof(struct met, numbers.field)
#define FIELD(field) offsetof(struct met, config.field)
        {{NULL}, "momentum", "0.5", NUMBER(momentum), 0.5},
        {{"--optimizer", "adam"}, "beta2", "0.75", NUMBER(beta2), 0.75},
        {{"--optimizer", "adam"}, "epsilon", "0.001", NUMBER(epsilon), 0.001},
        {{"--optimizer", "adamw"}, "weight-decay", "0", NUMBER(weight_decay), 0},
        {{NULL}, "clip-norm", "3", NUMBER(clip_norm), 3},
        {{NULL}, "clip-value", "2", NUMBER(clip_value), 2},
        {{"--schedule", "constant"}, "lr", "0.25", offsetof(struct met, rate), 0.25},
        {{"--schedule", "constant", "--lr", "1"}, "warmup", "0.5", offsetof(struct met, rate), 0.5},
        {{"--strategy", "diloco"}, "outer-lr", "0.25", FIELD(outer_rate), 0.25},
        {{"--strategy", "noloco"}, "outer-momentum", "0.25", FIELD(outer_momentum), 0.25},
        {{"--strategy", "choco"}, "choco-step", "0.25", FIELD(choco_step), 0.25},
        {{NULL}, "tolerance", "0.001", FIELD(tolerance), 0.001},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char flag[32], told[64] = "", untold[64] = "";
        const char *flags[ARGUMENTS] = {NULL};
        struct met with, without;
        double number[2];
        int count = 0;

        while (cases[i].needs[count]) {
            flags[count] = cases[i].needs[count];
            count++;
        }
        meet(flags, &without);
        uint64_t run = run_of(cases[i].flag, flags, untold);
        snprintf(flag, sizeof flag, "--%s", cases[i].flag);
        flags[count] = flag;
        flags[count + 1] = cases[i].value;
        meet(flags, &with);
        memcpy(&number[0], (char *)&with + cases[i].at, sizeof number[0]);
        memcpy(&number[1], (char *)&without + cases[i].at, sizeof number[1]);
        cr_expect_eq(number[0], cases[i].expected, "%s is %g", flag, number[0]);
        cr_expect_neq(number[1], cases[i].expected, "%s is so anyway", flag);
        cr_expect_neq(run_of(cases[i].flag, flags, told), run, "%s", flag);
        cr_expect_str_eq(told, cases[i].value, "%s", flag);
        cr_expect_str_neq(untold, told);
    }
}

Test(job, long_settings_that_differ_at_their_end_are_not_equal)
{
    /* Proves that nodes whose schedules, budgets or models agree in what a value has room for, and
     * no further, refuse each other; and that what fits is told as it is. */
#define WIDE "mlp:100,101,102,103,104,105,106,107,108,109,110,111,112,113,114"
#define SCHEDULE "1,2@10.125%,3@20.125%,4@30.125%,5@40.125%,6@50.125%,7@60.125%,"
    static const struct {
        const char *setting, *flags[2][9];
    } cases[] = {
        {"mix-every", {{"--mix-every", SCHEDULE "8@70%"}, {"--mix-every", SCHEDULE "9@70%"}}},
        {"model", {{"--model", WIDE ",1"}, {"--model", WIDE ",2"}}},
        {"budget",
         {{"--epochs", "1.12345678901234", "--steps", "1000000000", "--time", "1234567891us",
           "--target-accuracy", "0.912345678901234"},
          {"--epochs", "1.12345678901234", "--steps", "1000000000", "--time", "1234567891us",
           "--target-accuracy", "0.912345678901235"}}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char values[2][64];
        cr_expect_neq(run_of(cases[i].setting, cases[i].flags[0], values[0]),
                      run_of(cases[i].setting, cases[i].flags[1], values[1]));
        cr_expect_str_neq(values[0], values[1]);
        cr_expect_eq(memcmp(values[0], values[1], 40), 0, "%s", values[0]);
        cr_expect_eq(strlen(values[0]), 40 + strlen("... ") + 16, "%s", values[0]);
    }
    static const char *const plain[] = {"--mix-every", "1,8@50%", NULL};
    char value[64];
    run_of("mix-every", plain, value);
    cr_expect_str_eq(value, "1,8@50%");
}

Test(job, a_number_is_told_as_it_is_however_it_is_written)
{
    /* Nodes whose settings are spelled differently train together; the usual spelling is the one
     * that is told, so that runs keep their names. */
    static const struct {
        const char *setting, *flags[2][5], *told;
    } cases[] = {
        {"partition",
         {{"--partition", "dirichlet:0.5"}, {"--partition", "dirichlet:0.50"}},
         "dirichlet:0.5"},
        {"partition",
         {{"--partition", "dirichlet:0.001", "--shard", "0/4"},
          {"--partition", "dirichlet:1e-3", "--shard", "0/4"}},
         "dirichlet:0.001 by --shard of 4"},
        {"strategy", {{"--strategy", "ps-ssp:4"}, {"--strategy", "ps-ssp:04"}}, "ps-ssp:4"},
        {"topology", {{"--topology", "regular:4"}, {"--topology", "regular:04"}}, "regular:4"},
        {"mix-every",
         {{"--mix-every", "1,8@50%,9@66.7%"}, {"--mix-every", "01,8@50.0%,9@66.70%"}},
         "1,8@50%,9@66.7%"},
        {"mix-every", {{"--mix-every", "8"}, {"--mix-every", "08@0%"}}, "8"},
        {"mix-every", {{"--mix-every", "auto"}, {"--mix-every", "auto"}}, "auto"},
        {"lr", {{"--lr", "0"}, {"--lr", "-0"}}, "0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char told[2][64];
        cr_expect_eq(run_of(cases[i].setting, cases[i].flags[0], told[0]),
                     run_of(cases[i].setting, cases[i].flags[1], told[1]));
        cr_expect_str_eq(told[0], cases[i].told);
        cr_expect_str_eq(told[1], cases[i].told);
    }
}

Test(job, fixed_shares_of_the_data_are_to_be_of_one_number)
{
    /* Beside shares of another number, or drawn by who is there, some samples would be nobody's. */
    static const char *const flags[][3] = {
        {"--shard", "1/4"}, {"--shard", "3/4"}, {"--shard", "1/3"}, {NULL}};
    uint64_t runs[4];
    char values[4][64];
    for (size_t i = 0; i < 4; i++)
        runs[i] = run_of("partition", flags[i], values[i]);
    cr_expect_str_eq(values[0], "iid by --shard of 4");
    cr_expect_str_eq(values[3], "iid");
    cr_expect_eq(runs[0], runs[1]);
    cr_expect_neq(runs[0], runs[2]);
    cr_expect_neq(runs[0], runs[3]);
}

Test(job, gradients_of_full_batches_are_parts_unless_each_is_of_the_whole_set)
{
    static const struct {
        const char *flags[5];
        bool shared;
    } cases[] = {
        {{"--optimizer", "gd"}, true},
        {{"--optimizer", "gd", "--shard", "0/2"}, true},
        {{"--optimizer", "gd", "--shard", "0/1"}, false},
        {{"--optimizer", "gd", "--partition", "all"}, false},
        {{"--optimizer", "sgd"}, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct settings settings;
        struct job job;
        job_open(&job, &settings, cases[i].flags);
        cr_expect_eq(job_batch_is_shared(&job), cases[i].shared, "case %zu", i);
        job_close(&job);
        settings_close(&settings);
    }
}

Test(job, of_what_follows_from_the_strategy_the_strategy_is_told)
{
    /* Whoever joins is told the first setting that differs, and gave no other. */
    static const char *const flags[][3] = {{NULL}, {"--strategy", "allreduce"}};
    struct settings settings[2];
    struct job jobs[2];
    uint32_t i = 0;
    for (int j = 0; j < 2; j++)
        job_open(&jobs[j], &settings[j], flags[j]);
    while (i < jobs[0].shared_count && strcmp(jobs[0].values[i], jobs[1].values[i]) == 0)
        i++;
    cr_expect_str_eq(jobs[0].shared[i].name, "strategy");
    for (int j = 0; j < 2; j++) {
        job_close(&jobs[j]);
        settings_close(&settings[j]);
    }
}
