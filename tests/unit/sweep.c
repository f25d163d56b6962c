/* sweep.c: lists and ranges of parley sim: what they stand for, and what is refused with which
 * words. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "settings/settings.h"

/* The values joined by blanks, or "!" and the clause. */
static const char *values_of(enum option_id id, const char *text, char out[2048])
{
    struct sweep sweep;
    char clause[SWEEP_CLAUSE_BYTES] = "";
    size_t length = 0;
    if (sweep_parse(&sweep, id, text, clause) != 0) {
        snprintf(out, 2048, "!%s", clause);
        return out;
    }
    out[0] = '\0';
    for (size_t i = 0; i < sweep.count; i++)
        length +=
            (size_t)snprintf(out + length, 2048 - length, "%s%s", i ? " | " : "", sweep.values[i]);
    sweep_close(&sweep);
    return out;
}

static void expect(enum option_id id, const char *text, const char *expected)
{
    char got[2048];
    cr_assert_str_eq(values_of(id, text, got), expected, "\"%s\" gave \"%s\"", text, got);
}

static void expect_refused(enum option_id id, const char *text, const char *clause)
{
    char got[2048];
    values_of(id, text, got);
    cr_assert(got[0] == '!' && strstr(got, clause), "\"%s\" gave \"%s\"", text, got);
}

Test(sweep, lists_and_ranges_stand_for_their_values_in_order)
{
    expect(OPTION_ID_NODES, "8", "8");
    expect(OPTION_ID_MIX_EVERY, "1,4,16", "1 | 4 | 16");
    expect(OPTION_ID_SEED, "1..5", "1 | 2 | 3 | 4 | 5");
    expect(OPTION_ID_SEED, "3..3", "3");
    expect(OPTION_ID_NODES, "4..64x2", "4 | 8 | 16 | 32 | 64");
    expect(OPTION_ID_NODES, "4..63x2", "4 | 8 | 16 | 32");
    expect(OPTION_ID_NODES, "1,2,10..30+10", "1 | 2 | 10 | 20 | 30");
    expect(OPTION_ID_SEED, "18446744073709551614..18446744073709551615",
           "18446744073709551614 | 18446744073709551615");
    expect(OPTION_ID_LR, "0.1..0.5+0.1", "0.1 | 0.2 | 0.3 | 0.4 | 0.5");
    expect(OPTION_ID_LR, "1e-3..1x10", "0.001 | 0.01 | 0.1 | 1");
    expect(OPTION_ID_LR, "1e-3..1e+0x10", "0.001 | 0.01 | 0.1 | 1");
    expect(OPTION_ID_LR, "1E-3..1E+0x10", "0.001 | 0.01 | 0.1 | 1");
    expect(OPTION_ID_TIME, "500ms..2sx2", "500ms | 1s | 2s");
    expect(OPTION_ID_TIME, "10s..30s+10s", "10s | 20s | 30s");
}

Test(sweep, a_comma_inside_a_value_is_told_from_one_between_two)
{
    expect(OPTION_ID_MODEL, "mlp:256,128", "mlp:256,128");
    expect(OPTION_ID_MODEL, "softmax,mlp:256,128,mlp:64", "softmax | mlp:256,128 | mlp:64");
    expect(OPTION_ID_LATENCY, "lognormal:5ms,0.3", "lognormal:5ms,0.3");
    expect(OPTION_ID_LATENCY, "1ms,uniform:1ms,9ms,20ms", "1ms | uniform:1ms,9ms | 20ms");
    expect(OPTION_ID_LATENCY, "0,1ms..4msx2,lognormal:5ms,0.3",
           "0 | 1ms | 2ms | 4ms | lognormal:5ms,0.3");
    expect(OPTION_ID_PARTITION, "iid,dirichlet:0.1", "iid | dirichlet:0.1");
    expect(OPTION_ID_DATA, "idx:../a,b,digits", "idx:../a,b | digits");
    expect(OPTION_ID_FAULT, "none or kill:1@50% pause:2@5s or partition:n0,n1|n2@1s",
           "none | kill:1@50% pause:2@5s | partition:n0,n1|n2@1s");
}

Test(sweep, what_is_no_sweep_is_refused_by_name)
{
    expect_refused(OPTION_ID_NODES, "5..1", "is an empty range: 5 is over 1");
    expect_refused(OPTION_ID_NODES, "2,5..1", "has \"5..1\", which is an empty range");
    expect_refused(OPTION_ID_NODES, "0..8x2", "never ends");
    expect_refused(OPTION_ID_NODES, "1..8x1", "never ends");
    expect_refused(OPTION_ID_NODES, "1..8+0", "never ends");
    expect_refused(OPTION_ID_NODES, "1..8+0.5", "is not a whole number");
    expect_refused(OPTION_ID_NODES, "1..x", "is not a range of whole numbers");
    expect_refused(OPTION_ID_NODES, "0,1", "has \"0\", which is out of range");
    expect_refused(OPTION_ID_NODES, "1,,2", "empty value");
    expect_refused(OPTION_ID_NODES, "1,", "empty value");
    expect_refused(OPTION_ID_NODES, "1,2,1..3", "has \"1\" twice");
    expect_refused(OPTION_ID_SEED, "1..1000000", "more than 10000 values");
    expect_refused(OPTION_ID_LR, "0.1..0.5", "needs a step, as in 0.1..0.5+0.1");
    expect_refused(OPTION_ID_LR, "0..0.5x2", "never ends");
    expect_refused(OPTION_ID_LR, "0.5..0.1+0.1", "is an empty range");
    expect_refused(OPTION_ID_TIME, "1s..9s", "needs a step");
    expect_refused(OPTION_ID_TOPOLOGY, "ring..torus", "it has no ranges: list the values");
    expect_refused(OPTION_ID_TOPOLOGY, "ring,complet", "did you mean \"complete\"?");
    expect_refused(OPTION_ID_MODEL, "sofmax,mlp:8", "did you mean \"softmax\"?");
    expect_refused(OPTION_ID_FAULT, "none or ", "on both sides");
    expect_refused(OPTION_ID_FAULT, "none or kil:1@5s", "has \"kil:1@5s\"");
    expect_refused(OPTION_ID_SEED, "1-3", "a range is written like 1..5");
    expect_refused(OPTION_ID_FAULT, "none kill:1@50%", "has none beside others");
    expect_refused(OPTION_ID_FAULT, "kill:1@50% none", "has none beside others");
    expect_refused(OPTION_ID_FAULT, "kill:1@5s none kill:1@6s or none", "has none beside others");
}

static int load(struct settings *settings, const char *flag, const char *file, char *why)
{
    char *argv[] = {"parley", "sim", (char *)flag, NULL};
    settings_init(settings);
    why[0] = '\0';
    int error = settings_flags(settings, flag ? 3 : 2, argv, why);
    if (!error && file) error = settings_file(settings, "x.yaml", file, strlen(file), why);
    return error ? error : settings_finish(settings, why);
}

Test(sweep, a_file_holds_the_lists_of_an_experiment)
{
    /* Lists of the file and texts with commas are the same; a flag beats the file's list. */
    struct settings settings;
    char why[SETTINGS_WHY_BYTES];
    static const char file[] = "model: [softmax, 'mlp:256,128']\nseed: 1..3\nnodes: [2, 4..8x2]\n"
                               "compare: [gossip, none]\nfault: ['kill:1@5s', 'kill:1@6s']\n";
    cr_assert_eq(load(&settings, "--seed=7", file, why), 0, "%s", why);
    cr_assert_eq(settings.sweeps[OPTION_ID_MODEL].count, 2);
    cr_assert_str_eq(settings.sweeps[OPTION_ID_MODEL].values[1], "mlp:256,128");
    cr_assert_str_eq(settings.model, "softmax");
    cr_assert_eq(settings.sweeps[OPTION_ID_NODES].count, 3);
    cr_assert_eq(settings.sweeps[OPTION_ID_SEED].count, 1);
    cr_assert_eq(settings.seed, 7);
    cr_assert_str_eq(settings.compare, "gossip or none");
    cr_assert_eq(settings.sweeps[OPTION_ID_FAULT].count, 1);
    cr_assert_eq(settings.faults.count, 2, "a list of faults is one run with both");
    settings_close(&settings);
    cr_assert_eq(load(&settings, NULL, "seed: []\n", why), PARLEY_EUSAGE);
    cr_assert_str_eq(why, "x.yaml:1: an empty list sets nothing: leave the line out");
    settings_close(&settings);
}

Test(sweep, a_comma_before_a_share_goes_on_with_a_schedule)
{
    struct settings settings;
    char why[SETTINGS_WHY_BYTES];
    cr_assert_eq(load(&settings, "--mix-every=2..4,1,8@50%,auto", NULL, why), 0, "%s", why);
    cr_assert_eq(settings.sweeps[OPTION_ID_MIX_EVERY].count, 5);
    cr_assert_str_eq(settings.sweeps[OPTION_ID_MIX_EVERY].values[3], "1,8@50%");
    settings_close(&settings);
}

Test(sweep, a_copy_is_one_run_and_its_values_are_judged_together)
{
    /* Texts replace, "" leaves the default; a fault on a node that is not there is named. */
    struct settings settings, copy;
    char why[SETTINGS_WHY_BYTES];
    const char *texts[OPTION_ID_COUNT] = {0};
    static const char file[] = "nodes: [8, 4]\nfault: kill:n6@5s\nmix-every: 3\n";
    cr_assert_eq(load(&settings, NULL, file, why), 0, "%s", why);
    texts[OPTION_ID_NODES] = "8";
    cr_assert_eq(settings_copy(&copy, &settings, texts, why), 0, "%s", why);
    cr_assert(copy.nodes == 8 && copy.mix_every.steps == 3 && copy.faults.count == 1);
    settings_close(&copy);
    texts[OPTION_ID_NODES] = "4";
    cr_assert_eq(settings_copy(&copy, &settings, texts, why), PARLEY_EUSAGE);
    cr_assert(strstr(why, "\"n6\" is not a node"), "%s", why);
    settings_close(&copy);
    texts[OPTION_ID_FAULT] = "";
    texts[OPTION_ID_MIX_EVERY] = "";
    cr_assert_eq(settings_copy(&copy, &settings, texts, why), 0, "%s", why);
    cr_assert(copy.nodes == 4 && copy.mix_every.steps == 1 && copy.faults.count == 0);
    settings_close(&copy);
    settings_close(&settings);
}
