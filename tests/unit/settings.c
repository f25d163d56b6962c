/* settings.c: flags, environment, file and defaults become one struct, or one line that says why.
 */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parley/config.h"
#include "parley/node.h"
#include "settings/help.h"
#include "settings/list.h"
#include "settings/nearest.h"
#include "settings/settings.h"
#include "train/optimizer.h"

static struct settings settings;
static char why[SETTINGS_WHY_BYTES];

/* Loads a command line (blanks separate), an environment (NULL-terminated) and a file. */
static int load(const char *line, char *const *environment, const char *file)
{
    static char copy[16384];
    static char *argv[64];
    int argc = 0;
    snprintf(copy, sizeof copy, "parley %s", line);
    for (char *word = strtok(copy, " "); word && argc < 63; word = strtok(NULL, " "))
        argv[argc++] = word;
    argv[argc] = NULL;
    why[0] = '\0';
    settings_init(&settings);
    int error = settings_flags(&settings, argc, argv, why);
    if (!error) error = settings_environment(&settings, environment, why);
    if (!error && file) error = settings_file(&settings, "x.yaml", file, strlen(file), why);
    if (!error) error = settings_finish(&settings, why);
    if (error) settings_close(&settings);
    return error;
}

static void expect(const char *line, const char *file, const char *message)
{
    cr_assert_eq(load(line, NULL, file), PARLEY_EUSAGE, "%s %s", line, file ? file : "");
    cr_assert_str_eq(why, message);
}

Test(settings, run_without_arguments_has_the_defaults_of_the_contract)
{
    /* Momentum 0.9, rate 0.05, batch 32, mixing at every step, cosine, four epochs, four nodes. */
    cr_assert_eq(load("run", NULL, NULL), 0, "%s", why);
    cr_assert_eq(settings.verb, VERB_RUN);
    cr_assert_eq(settings.nodes, 4);
    cr_assert_str_eq(settings.data, "digits");
    cr_assert_str_eq(settings.model, "mlp:256,128");
    cr_assert_str_eq(settings.optimizer, "momentum");
    cr_assert_str_eq(settings.schedule, "cosine");
    cr_assert_str_eq(settings.topology, "complete");
    cr_assert_str_eq(settings.partition, "iid");
    cr_assert(settings.rate == 0.05 && settings.momentum == 0.9 && settings.batch == 32);
    cr_assert(settings.mix_every.steps == 1 && settings.epochs == 4 &&
              settings.eval_samples == 6400);
    cr_assert(settings.tolerance == 1e-4 && settings.settle_timeout_us == 60000000);
    cr_assert(settings.leave_timeout_us == 10000000 && settings.steps == 0);
    cr_assert(settings.strategy == PARLEY_STRATEGY_GOSSIP && settings.quorum == PARLEY_QUORUM_LIVE);
    cr_assert(settings.level == PARLEY_LOG_INFO && settings.progress == WHEN_AUTO);
    cr_assert_str_eq(settings.out, "parley-model.safetensors");
    settings_close(&settings);
    cr_assert_eq(load("sim", NULL, NULL), 0);
    cr_assert_null(settings.out);
    cr_assert(settings.compute.low_us == 1000 && settings.latency.low_us == 0);
    settings_close(&settings);
    cr_assert_eq(load("node", NULL, NULL), 0);
    cr_assert(settings.nodes == 0 && settings.listen.port == 0 && settings.min_peers == 0);
    settings_close(&settings);
}

Test(settings, every_fallback_of_the_table_is_a_valid_value)
{
    /* A default that its own parser refuses would make a verb unusable. */
    for (int verb = 0; verb < VERB_COUNT; verb++) {
        settings_init(&settings);
        settings.verb = (enum verb)verb;
        cr_assert_eq(settings_finish(&settings, why), 0, "%s", why);
        settings_close(&settings);
    }
}

Test(settings, a_flag_beats_the_environment_which_beats_the_file_which_beats_the_default)
{
    /* Each rank once with all lower ones present; each value knows where it came from. */
    char *environment[] = {"HOME=/", "PARLEY_LR=0.2", "PARLEY_BATCH=64", NULL};
    char origin[SETTINGS_WHY_BYTES];
    static const char file[] = "lr: 0.3\nbatch: 128\n\nmomentum: 0.5\n";
    cr_assert_eq(load("run --lr 0.1", environment, file), 0, "%s", why);
    cr_assert(settings.rate == 0.1 && settings.batch == 64 && settings.momentum == 0.5);
    cr_assert_str_eq(settings_origin_text(&settings, OPTION_ID_LR, origin), "flag");
    cr_assert_str_eq(settings_origin_text(&settings, OPTION_ID_BATCH, origin),
                     "environment PARLEY_BATCH");
    cr_assert_str_eq(settings_origin_text(&settings, OPTION_ID_MOMENTUM, origin), "file x.yaml:4");
    cr_assert_str_eq(settings_origin_text(&settings, OPTION_ID_SEED, origin), "default");
    cr_assert_str_eq(settings_origin_text(&settings, OPTION_ID_TEST, origin), "unset");
    settings_close(&settings);
}

Test(settings, how_much_is_said_goes_by_the_highest_rank_that_says_it)
{
    /* -q, -v and --log-level are one question; of one rank the level is the more exact. */
    static const struct {
        const char *line, *environment, *file;
        int level;
        bool quiet, verbose;
    } rows[] = {
        {"run -q", "PARLEY_LOG_LEVEL=info", NULL, PARLEY_LOG_ERROR, true, false},
        {"run -v", NULL, "log-level: error\n", PARLEY_LOG_DEBUG, false, true},
        {"check -q", "PARLEY_VERBOSE=true", "verbose: true\n", PARLEY_LOG_ERROR, true, false},
        {"sim", "PARLEY_VERBOSE=true", "quiet: true\n", PARLEY_LOG_DEBUG, false, true},
        {"run --log-level warning", "PARLEY_QUIET=true", NULL, PARLEY_LOG_WARN, false, false},
        {"run -q --log-level warning", NULL, NULL, PARLEY_LOG_WARN, true, false},
        {"run", "PARLEY_QUIET=false", "log-level: error\n", PARLEY_LOG_ERROR, false, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char variable[32];
        char *environment[] = {rows[i].environment ? variable : NULL, NULL};
        snprintf(variable, sizeof variable, "%s", rows[i].environment ? rows[i].environment : "");
        cr_assert_eq(load(rows[i].line, environment, rows[i].file), 0, "%zu: %s", i, why);
        cr_assert_eq(settings.level, rows[i].level, "%zu: %d", i, settings.level);
        cr_assert(settings.quiet == rows[i].quiet && settings.verbose == rows[i].verbose, "%zu", i);
        settings_close(&settings);
    }
}

Test(settings, a_value_that_loses_is_judged_all_the_same)
{
    /* A bad value in the file is an error even where a flag overrides it. */
    char *environment[] = {"PARLEY_LR=fast", NULL};
    expect("run --lr 0.1", "lr: fast\n", "x.yaml:1: lr: \"fast\" is not a number");
    expect("run --lr 0.1", "lr: 5%\n", "x.yaml:1: lr: \"5%\" is not a number (write 0.05)");
    cr_assert_eq(load("run --lr 0.1", environment, NULL), PARLEY_EUSAGE);
    cr_assert_str_eq(why, "PARLEY_LR: \"fast\" is not a number");
}

Test(settings, bad_flags_name_themselves_and_the_nearest)
{
    /* One line each: the flag, the value, what is valid, what was meant. */
    expect("run --strategy gosip", NULL,
           "--strategy: \"gosip\" is not a strategy; did you mean \"gossip\"? "
           "(valid: gossip, none, allreduce, local-sgd, diloco, ps-bsp, ps-asp, ps-ssp:S, "
           "gossip-sync, push-sum, noloco, choco)");
    expect("run --strategy allreduce --mix-every 8", NULL,
           "--mix-every: \"8\" local steps, but allreduce averages the gradients of every step; "
           "--strategy local-sgd, diloco or gossip average models so often");
    expect("run --strategy none --mix-every 8", NULL,
           "--mix-every: \"8\" local steps, but none averages nothing until the end; "
           "--strategy local-sgd, diloco or gossip average models so often");
    expect("run --strategy none --topology ring", NULL,
           "--topology: \"ring\" says who exchanges with whom, but none exchanges nothing until "
           "the end, and then with all; --strategy gossip heeds it");
    expect("run --strategy none --codec int8", NULL,
           "--codec: \"int8\" is for models that --strategy gossip averages, and for choco; none "
           "sends fp32");
    expect("run --strategy none --momentum-mode averaged", NULL,
           "--momentum-mode: \"averaged\" is for --strategy gossip, whose exchanges carry it; "
           "none's don't (use local)");
    expect("run --strategy none --momentum-mode reset", NULL,
           "--momentum-mode: \"reset\" follows averaging with neighbours, and --strategy none does "
           "something else; use local");
    expect(
        "node --strategy diloco --topology torus", NULL,
        "--topology: \"torus\" says who exchanges with whom, but the rounds of diloco are of all "
        "nodes; --strategy gossip heeds it");
    expect("run --strateg gossip", NULL,
           "\"--strateg\" is not an option of run; did you mean --strategy? "
           "(parley help run lists them)");
    expect("node --fault kill:n0@5s", NULL, "--fault is an option of run and sim, not of node");
    expect("topology ring --json", NULL,
           "--json is an option of run, node, sim, status, bench and model, not of topology");
    expect("topology ring --json -q", NULL,
           "--json is an option of run, node, sim, status, bench and model, not of topology");
    expect("run --quiet=3", NULL, "--quiet takes no value");
    expect("topology ring --quiet=3", NULL,
           "--quiet is an option of run, node and sim, not of topology");
    expect(
        "sim --json -q", NULL,
        "--json: needs a value, FILE|-, and \"-q\" begins as a flag does; --json=-q if it is the "
        "value");
    expect("run --seeds 1..3", NULL, "--seeds is an option of sim, not of run");
    expect("sim --seeds 5", NULL, "--seeds: \"5\" is not a range (write A..B, like 1..2000)");
    expect("sim --seeds 5..x", NULL,
           "--seeds: \"5..x\" is not a range of counts from 1 (write A..B, like 1..2000)");
    expect("sim --seeds 5..3", NULL, "--seeds: \"5..3\" ends before it begins");
    expect("sim --seeds 1..200000000", NULL,
           "--seeds: \"1..200000000\" is too long (at most 100000000)");
    expect("run --lr", NULL, "--lr: needs a value, RATE");
    expect("run -z", NULL, "\"-z\" is not an option of run (parley help run lists them)");
    expect("run --data idx", NULL,
           "--data: \"idx\" lacks DIR: write idx:DIR (valid: digits, idx:DIR, csv:FILE, "
           "libsvm:FILE, npy:DIR, text:FILE)");
    expect("run --data foo:x", NULL,
           "--data: \"foo:x\" is not a kind of data (valid: digits, idx:DIR, csv:FILE, "
           "libsvm:FILE, npy:DIR, text:FILE)");
    expect("run --model mpl:3", NULL,
           "--model: \"mpl:3\" is not a model; did you mean \"mlp:\"? (valid: softmax, "
           "mlp:WIDTHS, lenet, resnet:N, linear, gpt, gpt:BLOCKS,WIDTH,HEADS, quadratic:D)");
    expect("rnu", NULL, "\"rnu\" is not a verb; did you mean \"run\"? (parley help lists them)");
    expect("run x", NULL, "\"x\": parley run takes no operands; flags begin with --");
    expect("topology rign", NULL,
           "\"rign\" is not a topology; did you mean \"ring\"? "
           "(valid: complete, ring, torus, exponential, star, regular:K, base:K, file:PATH)");
    expect("topology regular:", NULL,
           "\"regular:\" lacks K: write regular:K "
           "(valid: complete, ring, torus, exponential, star, regular:K, base:K, file:PATH)");
    expect("model", NULL, "parley model needs inspect|eval|predict|verify|export|sample FILE");
    expect("status a:1 b:2", NULL, "\"b:2\": parley status takes only HOST:PORT");
}

Test(settings, abbreviated_flags_are_refused_in_every_form)
{
    /* getopt_long alone would take them: with a value apart, attached, missing, and for switches.
     */
    const char *lines[] = {"run --mix 3", "run --mix=3", "run --mix", "run --quie",
                           "run --batc 3 --lr 0.1"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        cr_assert_eq(load(lines[i], NULL, NULL), PARLEY_EUSAGE, "%s", lines[i]);
        cr_assert(strstr(why, "is not an option of run; did you mean --"), "%s", why);
    }
    cr_assert_eq(load("run --mix-every=3 -n 8 -qo m.st --name", NULL, NULL), PARLEY_EUSAGE);
    cr_assert_eq(load("run --mix-every=3 -n 8 -qo m.st --lr --batch", NULL, NULL), PARLEY_EUSAGE);
    cr_assert_str_eq(why, "--lr: \"--batch\" is not a number");
    cr_assert_eq(load("run --mix-every=3 -n 8 -qo m.st", NULL, NULL), 0, "%s", why);
    cr_assert(settings.mix_every.steps == 3 && settings.nodes == 8 && settings.quiet);
    cr_assert_eq(settings.level, PARLEY_LOG_ERROR);
    cr_assert_str_eq(settings.out, "m.st");
    settings_close(&settings);
}

Test(settings, help_and_version_need_nothing)
{
    /* They win over any verb; help knows what it is asked about. */
    cr_assert_eq(load("", NULL, NULL), 0);
    cr_assert(settings.verb == VERB_HELP && settings.topic == -1);
    cr_assert_eq(load("--version", NULL, NULL), 0);
    cr_assert_eq(settings.verb, VERB_VERSION);
    cr_assert_eq(load("model --help", NULL, NULL), 0, "%s", why);
    cr_assert(settings.verb == VERB_HELP && settings.topic == VERB_MODEL);
    settings_close(&settings);
    cr_assert_eq(load("help sim", NULL, NULL), 0);
    cr_assert(settings.verb == VERB_HELP && settings.topic == VERB_SIM);
    settings_close(&settings);
    cr_assert_eq(load("help man", NULL, NULL), 0);
    cr_assert(settings.verb == VERB_HELP && settings.topic == HELP_MANUAL);
    settings_close(&settings);
}

Test(settings, repeatable_flags_gather_and_the_last_of_others_counts)
{
    /* Lists grow within one source and are replaced, not mixed, by a higher one. */
    char *environment[] = {"PARLEY_JOIN=e:1", NULL};
    cr_assert_eq(
        load("node --join a:1,b:2 --lr 0.1 --join c:3 --lr 0.2", environment, "join: [f:1, f:2]\n"),
        0, "%s", why);
    cr_assert_eq(settings.join.count, 3);
    cr_assert_str_eq(settings.join.items[2].address.host, "c");
    cr_assert_eq(settings.rate, 0.2);
    settings_close(&settings);
    cr_assert_eq(load("sim", NULL, "fault: [\"kill:n0@5s\", \"slow=2:1@0s\"]\n"), 0, "%s", why);
    cr_assert_eq(settings.faults.count, 2);
    settings_close(&settings);
}

Test(settings, a_settings_file_is_flat_and_strict)
{
    /* Unknown and repeated names, lists out of place, and YAML beyond plain values, by line. */
    expect("run", "lr: 0.1\nstrateg: gossip\n",
           "x.yaml:2: \"strateg\" is not a setting; did you mean \"strategy\"?");
    expect("run", "lr: 1\nlr: 2\n", "x.yaml:2: lr: is there twice");
    expect("run", "join: [a:1]\njoin: [b:1]\n", "x.yaml:2: join: is there twice");
    expect("run", "lr: [1]\n",
           "x.yaml:1: lr: takes one value, not a list (lists are for parley sim)");
    expect("run", "join: []\n", "x.yaml:1: an empty list sets nothing: leave the line out");
    expect("run", "lr: &a 1\n", "x.yaml:1: anchors are not allowed");
    expect("run", "lr: *a\n", "x.yaml:1: aliases are not allowed");
    expect("run", "lr: !!int 3\n", "x.yaml:1: tags are not allowed");
    expect("run", "lr: {a: b}\n", "x.yaml:1: settings can't be nested");
    expect("run", "join: [[a]]\n", "x.yaml:1: settings can't be nested");
    expect("run", "? [a]\n: b\n", "x.yaml:1: settings can't be nested");
    expect("run", "- lr\n", "x.yaml:1: a settings file is a list of `name: value`");
    expect("run", "lr\n", "x.yaml:1: a settings file is a list of `name: value`");
    expect("run", "lr: 1\n---\nlr: 2\n", "x.yaml:2: a second document is not allowed");
    expect("run", "lr: \"a\\0b\"\n", "x.yaml:1: a zero byte is not allowed");
    expect("run", "lr:\n", "x.yaml:1: lr: \"\" is empty");
    expect("run", "insecure: yes\n", "x.yaml:1: insecure: \"yes\" is neither true nor false");
    expect("run", "config: y.yaml\n", "x.yaml:1: \"config\" is not a setting");
    expect("run", "out: \xff\n", "x.yaml: byte 5: invalid leading UTF-8 octet");
    cr_assert_eq(load("run", NULL, "# nothing\n"), 0);
    settings_close(&settings);
    cr_assert_eq(load("run", NULL, "verbose: false\n"), 0);
    cr_assert_not(settings.verbose);
    settings_close(&settings);
}

Test(settings, a_large_or_deep_file_is_refused_at_once)
{
    /* 10 MB by the limit; a megabyte of brackets and of aliases by their first. */
    size_t size = 10000000;
    char *bytes = malloc(size);
    memset(bytes, '[', size);
    settings_init(&settings);
    settings.verb = VERB_RUN;
    cr_assert_eq(settings_file(&settings, "x.yaml", bytes, size, why), PARLEY_EUSAGE);
    cr_assert_str_eq(why, "x.yaml: a settings file of 10000000 bytes is too large (at most 1 MiB)");
    cr_assert_eq(settings_file(&settings, "x.yaml", bytes, 1 << 20, why), PARLEY_EUSAGE);
    memcpy(bytes, "join: ", 6);
    cr_assert_eq(settings_file(&settings, "x.yaml", bytes, 1 << 20, why), PARLEY_EUSAGE);
    memset(bytes, 'a', 1 << 20);
    cr_assert_eq(settings_file(&settings, "x.yaml", bytes, 1 << 20, why), PARLEY_EUSAGE);
    memcpy(bytes, "out: ", 5);
    cr_assert_eq(settings_file(&settings, "x.yaml", bytes, 1 << 20, why), PARLEY_EUSAGE);
    cr_assert(strstr(why, "aaa…\" is too long"), "%s", why);
    settings_close(&settings);
    free(bytes);
}

Test(settings, no_cut_or_flipped_byte_of_a_file_breaks_the_reader)
{
    /* Every prefix, and every byte with each bit flipped: an error or not, never more. */
    static const char file[] = "lr: 0.1\njoin: [a:1, '[::1]:2']\nfault: \"kill:n0@3s\"\n"
                               "model: mlp:256,128 # all\nout: \"caf\xc3\xa9\\u00e9\"\n";
    for (size_t i = 0; i < sizeof file; i++) {
        for (int bit = -1; bit < 8; bit++) {
            char copy[sizeof file];
            memcpy(copy, file, sizeof file);
            if (bit >= 0) copy[i] = (char)(copy[i] ^ (1 << bit));
            settings_init(&settings);
            settings.verb = VERB_RUN;
            size_t size = bit < 0 ? i : sizeof file - 1;
            int error = settings_file(&settings, "x.yaml", copy, size, why);
            if (!error) error = settings_finish(&settings, why);
            cr_assert(error == 0 || (error == PARLEY_EUSAGE && why[0]));
            settings_close(&settings);
        }
    }
}

Test(settings, hostile_values_are_quoted_short_and_clean)
{
    /* Long values are clipped, control bytes and bad UTF-8 are escaped, in every message. */
    char line[8192];
    size_t length = (size_t)snprintf(line, sizeof line, "run --out ");
    memset(line + length, 'a', 5000);
    line[length + 5000] = '\0';
    cr_assert_eq(load(line, NULL, NULL), PARLEY_EUSAGE);
    cr_assert(strlen(why) < 200 && strstr(why, "too long"), "%s", why);
    expect("run --out a\xff\x1b[31m", NULL,
           "--out: \"a\\xff\\x1b[31m\" is not clean text (UTF-8 without control characters)");
    expect("node --name ../x", NULL,
           "--name: \"../x\" is not a name (1 to 31 letters, digits, '.', '_', '-')");
    expect("run --out=", NULL, "--out: \"\" is empty");
    memset(line, 'x', sizeof line - 1);
    memcpy(line, "run --", 6);
    line[sizeof line - 1] = '\0';
    cr_assert_eq(load(line, NULL, NULL), PARLEY_EUSAGE);
    cr_assert(strlen(why) < 200, "%s", why);
    memset(line, '\x01', sizeof line - 1);
    cr_assert_eq(load(line, NULL, NULL), PARLEY_EUSAGE);
    cr_assert(strlen(why) < 400, "%s", why);
}

Test(settings, settings_that_do_not_go_together_are_refused)
{
    /* Each is right by itself. */
    expect(
        "check -c one.yaml -c two.yaml", NULL,
        "--config: \"two.yaml\" is a second file; put the settings of both into one, or give some "
        "as flags");
    expect("node --quorum majority", NULL,
           "--quorum: \"majority\" needs --nodes N, the number that it is a majority of");
    expect("run --min-peers 4", NULL,
           "--min-peers: \"4\" other nodes can't be alive among 4 (--nodes)");
    expect(
        "node --shard 0/4 --partition all", NULL,
        "--shard: \"0/4\" is one share of 4, and with --partition all each node has all the data");
    expect("run -qv", NULL, "--quiet and --verbose exclude each other");
    expect("node --join-timeout 5s", NULL,
           "--join-timeout: \"5s\" to reach a seed, and there are none; name them with --join or "
           "--peers");
    expect("run --fault kill:n4@5s", NULL, "--fault: \"n4\" is not a node (n0 to n3)");
    expect("run --fault kill:n01@5s", NULL, "--fault: \"n01\" is not a node (n0 to n3)");
    expect("run --fault kill:5@5s", NULL, "--fault: \"kill\" of 5 nodes, but there are 4");
    expect("run --fault clog:n1@5s", NULL, "--fault: \"clog\" is possible in parley sim only");
    expect("sim --fault sleep=1ms:n1@0s", NULL,
           "--fault: \"sleep\" is possible in parley run only");
    expect("sim --membership static --fault pause:n1@5s+9s --fault pause:n1@50%", NULL,
           "--fault: \"pause\" has no end, and with --membership static nobody finds out who is "
           "silent; say for how long, like pause:n1@5s+2s");
    expect("sim --fault partition:n0|n9@5s", NULL, "--fault: \"n9\" is not a node (n0 to n3)");
    expect("sim --swarm", NULL, "--swarm: needs --seeds A..B, like --seeds 1..2000");
    expect("sim --seeds 1..3", NULL, "--seeds: is for --swarm, which is not given");
    expect("run --eval-every 100", NULL,
           "--eval-every: needs --target-accuracy A, for which it looks");
    expect(
        "run --target-accuracy 0.9 --warmup 0.1", NULL,
        "--warmup: \"0.1\" goes by a budget, and --target-accuracy alone is none; give --epochs, "
        "--steps or --time too, or leave it away");
    expect("run --target-accuracy 0.9 --schedule step", NULL,
           "--schedule: \"step\" goes by a budget, and --target-accuracy alone is none; give "
           "--epochs, --steps or --time too, or leave it away");
    expect("run --target-accuracy 0.9 --mix-every 1,8@50%", NULL,
           "--mix-every: \"1,8@50%\" goes by a budget, and --target-accuracy alone is none; give "
           "--epochs, --steps or --time too, or leave it away");
    expect("run --backup-workers 1", NULL,
           "--backup-workers: \"1\" of the slowest are left out of a step by --strategy ps-bsp "
           "only, not by gossip");
    expect("sim --strategy ps-bsp --backup-workers 4", NULL,
           "--backup-workers: \"4\" leaves nobody of 4 nodes (--nodes) to make a step; at most 3");
    expect("run --outer-lr 0.5", NULL,
           "--outer-lr: \"0.5\" is of the outer optimizer of --strategy diloco and noloco; gossip "
           "has nothing of the kind");
    expect("run --strategy noloco --choco-step 0.5", NULL,
           "--choco-step: \"0.5\" is of --strategy choco's averaging; noloco has nothing of the "
           "kind");
    expect("sim --strategy ps-asp --nodes 65", NULL,
           "--strategy: \"ps-asp\" has one node that serves all, at most 64; --nodes is 65 (use "
           "gossip)");
    expect("node --robust --strategy push-sum", NULL,
           "--robust: clips what two nodes of --strategy gossip add to their models; push-sum has "
           "nothing of the kind");
    expect("run --robust --codec int8", NULL,
           "--robust: compares whole models; --codec \"int8\" sends less (use fp32)");
    expect("sim --robust --momentum-mode averaged", NULL,
           "--robust: looks at models, and --momentum-mode averaged adds momenta unseen; use "
           "quasi-global");
    expect("sim --fault byzantine=sign:n1@0s --codec bf16", NULL,
           "--fault: \"byzantine\" lies of floats, and --codec \"bf16\" sends others; use fp32, or "
           "byzantine=labels");
    expect(
        "sim --fault byzantine=alie:n1@0s --momentum-mode averaged", NULL,
        "--fault: \"byzantine=alie\" lies of models, and --momentum-mode averaged sends momenta, "
        "too; use quasi-global");
    expect("sim --fault byzantine=ipm:n1@0s --strategy allreduce", NULL,
           "--fault: \"byzantine=ipm\" lies of whole models, which --strategy allreduce does not "
           "send; use sign, scale, random or labels");
    expect("node --strategy ps-ssp:-1", NULL,
           "--strategy: \"ps-ssp:-1\": the steps that a node may be ahead of the slowest are a "
           "whole number from 0 to 1000000, like ps-ssp:4");
    expect("node --shard 4/4", NULL,
           "--shard: \"4/4\" names a share past the last (I runs from 0 to N-1)");
    expect("node --listen 0.0.0.0:7000", NULL,
           "--listen: \"0.0.0.0:7000\" can be reached from other machines; give a --cluster-key "
           "(parley keygen makes one), or allow it with --insecure");
    expect("node --listen 0.0.0.0:7000 --cluster-key k", NULL,
           "--listen: \"0.0.0.0:7000\" is every address of this machine; say with --advertise "
           "HOST:PORT how others reach it");
    expect("node --listen 0.0.0.0:7000 --insecure", NULL,
           "--listen: \"0.0.0.0:7000\" is every address of this machine; say with --advertise "
           "HOST:PORT how others reach it");
    expect("node --advertise a:0", NULL, "--advertise: \"a:0\" has port 0, which can't be dialled");
    expect("node --advertise 0.0.0.0:7400", NULL,
           "--advertise: \"0.0.0.0:7400\" is no address that others can dial; give this machine's");
    expect("node --advertise [::]:7400", NULL,
           "--advertise: \"[::]:7400\" is no address that others can dial; give this machine's");
    cr_assert_eq(load("node --quorum majority --nodes 5 --shard 3/4 --listen [::]:1 --insecure "
                      "--advertise a:1",
                      NULL, NULL),
                 0, "%s", why);
    cr_assert(settings.shard.index == 3 && settings.shard.count == 4);
    settings_close(&settings);
    cr_assert_eq(load("sim --strategy ps-ssp:3,gossip", NULL, NULL), 0, "%s", why);
    settings_close(&settings);
    cr_assert_eq(load("sim --strategy ps-ssp:3", NULL, NULL), 0, "%s", why);
    cr_assert_eq(settings.staleness, 3);
    settings_close(&settings);
    cr_assert_eq(load("sim --swarm --seeds 7..9", NULL, NULL), 0, "%s", why);
    cr_assert(settings.seeds.first == 7 && settings.seeds.last == 9 && settings.threads == 0);
    settings_close(&settings);
}

/* Where a parameter is after three steps of that optimizer. */
static float after_steps(const char *optimizer, const struct optimizer_numbers *numbers)
{
    static float scratch[OPTIMIZER_RANGE];
    struct optimizer made;
    float x = 1, a = 0, b = 0;
    cr_assert_eq(optimizer_init(&made, optimizer, numbers, why, sizeof why), 0, "%s", why);
    for (int i = 1; i <= 3; i++) {
        float gradient = 0.3F * (float)i;
        struct optimizer_step step = {.optimizer = &made,
                                      .from = &x,
                                      .x = &x,
                                      .count = 1,
                                      .state = (float *[]){&a, &b},
                                      .gradient = scratch,
                                      .rate = 0.1,
                                      .gradient_factor = 1,
                                      .steps = (uint64_t)i - 1};
        optimizer_apply(&step, &gradient);
    }
    return x;
}

Test(settings, a_number_that_an_optimizer_has_not_is_refused)
{
    /* Refused is just what changes nothing in its steps. */
    const struct optimizer_numbers none = {.momentum = 0.9};
    struct optimizer_numbers numbers[3] = {none, none, none};
    static const char *const names[] = {"momentum", "beta2", "epsilon"};
    numbers[0].momentum = numbers[1].beta2 = numbers[2].epsilon = 0.25;
    const char *const *optimizers = option_info(OPTION_ID_OPTIMIZER)->valid;
    for (size_t o = 0; optimizers[o]; o++)
        for (size_t n = 0; n < 3; n++) {
            char line[128];
            snprintf(line, sizeof line, "node --optimizer %s --%s 0.25", optimizers[o], names[n]);
            bool moves =
                after_steps(optimizers[o], &numbers[n]) != after_steps(optimizers[o], &none);
            cr_expect_eq(load(line, NULL, NULL), moves ? 0 : PARLEY_EUSAGE, "%s", line);
            settings_close(&settings);
        }
    expect("run --optimizer sgd --momentum 0.5", NULL,
           "--momentum: \"0.5\" is of --optimizer momentum, nesterov, adam and adamw; sgd has "
           "nothing of the kind");
    cr_expect_eq(load("run --optimizer sgd --momentum 0", NULL, NULL), 0, "which is true of it");
    settings_close(&settings);
}

Test(settings, what_a_swarm_draws_by_itself_is_refused)
{
    static const char *const given[] = {
        "fault kill:n1@5s", "nodes 5",   "model softmax", "strategy choco",
        "epochs 2",         "loss 0.1",  "csv runs",      "report r.html",
        "compare all",      "out model", "curves points",
    };
    char line[128], text[160];
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        snprintf(line, sizeof line, "sim --swarm --seeds 1..3 --%s", given[i]);
        snprintf(text, sizeof text,
                 "--%.*s: is not for --swarm, which draws clusters, settings and faults by itself",
                 (int)strcspn(given[i], " "), given[i]);
        expect(line, NULL, text);
    }
    cr_assert_eq(load("sim --swarm --seeds 7..9 --threads 2 --tally t --json - --progress never -q",
                      NULL, NULL),
                 0, "%s", why);
    settings_close(&settings);
}

Test(settings, what_is_of_another_part_of_a_verb_is_refused)
{
    /* Of each flag where it is heeded, and one place where it is not. */
    static const struct {
        const char *flag, *of, *not_of, *text;
    } parts[] = {
        {"--data digits", "model eval m", "model verify m",
         "--data is of model eval and predict, not of model verify"},
        {"--test digits", "model eval m", "model predict m",
         "--test is of model eval, not of model predict"},
        {"--out m.npz", "model export m", "model predict m",
         "--out is of model export, not of model predict, which prints to stdout"},
        {"--prompt x", "model sample m", "model eval m",
         "--prompt is of model sample, not of model eval"},
        {"--length 9", "model sample m", "model eval m",
         "--length is of model sample, not of model eval"},
        {"--temperature 1", "model sample m", "model export m",
         "--temperature is of model sample, not of model export"},
        {"--seed 2", "model sample m", "model predict m",
         "--seed is of model sample, not of model predict"},
        {"--floats 10", "bench wire", "bench mix", "--floats is of bench wire, not of bench mix"},
        {"--data digits", "bench run", "bench step", "--data is of bench run, not of bench step"},
        {"--full", "bench sim", "bench wire", "--full is of bench sim, not of bench wire"},
    };
    char *const variables[] = {(char *)"PARLEY_DATA=digits", NULL};
    char line[128];
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        snprintf(line, sizeof line, "%s %s", parts[i].not_of, parts[i].flag);
        expect(line, NULL, parts[i].text);
        snprintf(line, sizeof line, "%s %s", parts[i].of, parts[i].flag);
        cr_assert_eq(load(line, NULL, NULL), 0, "%s", why);
        settings_close(&settings);
    }
    expect("bench sim --quick --full", NULL, "--quick and --full exclude each other");
    cr_assert_eq(load("bench step", variables, NULL), 0, "%s", why);
    settings_close(&settings);
}

Test(settings, what_a_quadratic_would_not_heed_is_refused)
{
    /* Each number of an optimizer, wherever it was given; but not what is the default of something
     * else, nor what says how a quadratic trains anyway. */
    static const char *const given[][2] = {
        {"optimizer", "adam"}, {"optimizer", "momentum"},  {"lr-scale", "cluster"},
        {"momentum", "0.5"},   {"momentum-mode", "reset"}, {"beta2", "0.9"},
        {"epsilon", "0.1"},    {"weight-decay", "0.1"},    {"clip-norm", "1"},
        {"clip-value", "1"},
    };
    char line[128], text[128];
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        snprintf(line, sizeof line, "sim --model quadratic:8 --%s %s", given[i][0], given[i][1]);
        snprintf(text, sizeof text,
                 "--%s: \"%s\" changes nothing: quadratic makes plain gradient steps", given[i][0],
                 given[i][1]);
        expect(line, NULL, text);
        snprintf(line, sizeof line, "sim --compare all --model quadratic:8,softmax --%s %s",
                 given[i][0], given[i][1]);
        expect(line, NULL, text);
    }
    expect("sim --model quadratic:8 --partition shards", NULL,
           "--partition: \"shards\" changes nothing: quadratic has no data to divide");
    cr_assert_eq(load("sim --model quadratic:8 --optimizer sgd --lr-scale none --lr 0.1 --warmup 0 "
                      "--momentum-mode local --strategy allreduce",
                      NULL, NULL),
                 0, "%s", why);
    settings_close(&settings);
    cr_assert_eq(load("sim --model quadratic:8 --compare all", NULL, NULL), 0, "%s", why);
    settings_close(&settings);
    cr_assert_eq(load("sim --model softmax --optimizer adam", NULL, NULL), 0, "%s", why);
    settings_close(&settings);
}

Test(settings, a_budget_given_replaces_the_four_epochs)
{
    /* Four epochs are the budget only where there is none. */
    const char *lines[] = {"run --steps 10", "run --time 10s",
                           "run --target-accuracy 0.97 --schedule cosine"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        cr_assert_eq(load(lines[i], NULL, NULL), 0, "%s", why);
        cr_assert_eq(settings.epochs, 0);
        settings_close(&settings);
    }
    cr_assert_eq(load("run --steps 10 --epochs 2", NULL, NULL), 0);
    cr_assert(settings.epochs == 2 && settings.steps == 10);
    settings_close(&settings);
}

Test(settings, the_environment_is_strict_in_values_and_patient_in_names)
{
    /* Foreign PARLEY_ names pass; a near miss leaves a note; NO_COLOR holds unless overruled. */
    char *foreign[] = {"PARLEY_PORT_7000_TCP=tcp://10.0.0.1:7000",
                       "PARLEY_LR",
                       "PARLEY_=x",
                       "PARLEY_HELP=true",
                       "PARLEY_FAULT=nonsense",
                       "NO_COLOR=1",
                       NULL};
    cr_assert_eq(load("node", foreign, NULL), 0, "%s", why);
    cr_assert_eq(settings.note[0], '\0');
    cr_assert_eq(settings.color, WHEN_NEVER);
    settings_close(&settings);
    cr_assert_eq(load("node --color always", foreign, NULL), 0);
    cr_assert_eq(settings.color, WHEN_ALWAYS);
    settings_close(&settings);
    char *near[] = {"PARLEY_MIX_EVRY=3", "NO_COLOR=", NULL};
    cr_assert_eq(load("node", near, NULL), 0);
    cr_assert(strstr(settings.note, "did you mean PARLEY_MIX_EVERY"), "%s", settings.note);
    cr_assert_eq(settings.color, WHEN_AUTO);
    settings_close(&settings);
}

Test(settings, what_was_given_is_forwarded_to_a_child_and_loads_the_same)
{
    /* run's settings reach its nodes, without defaults and without those of run itself. */
    char **arguments;
    size_t count;
    cr_assert_eq(load("run --lr 0.1 -n 8 --json - -v --model mlp:64 --fault kill:n0@1s", NULL,
                      "momentum: 0.5\nquiet: false\n"),
                 0, "%s", why);
    cr_assert_eq(settings_forward(&settings, &arguments, &count), 0);
    const char *expected[] = {"--model=mlp:64", "--lr=0.1", "--momentum=0.5", "--verbose"};
    cr_assert_eq(count, 4);
    for (size_t i = 0; i < count; i++)
        cr_assert_str_eq(arguments[i], expected[i]);
    cr_assert_null(arguments[count]);
    free(arguments);
    settings_close(&settings);
}

Test(settings, a_file_of_all_nodes_has_the_join_timeout_of_those_with_seeds)
{
    /* The first node has none, and takes the same file. */
    static const char file[] = "join-timeout: 5s\n";
    const char *lines[] = {"node", "node --join a:1", "check --peers x"};
    for (size_t i = 0; i < 3; i++) {
        cr_assert_eq(load(lines[i], NULL, file), 0, "%s: %s", lines[i], why);
        settings_close(&settings);
    }
    for (size_t i = 1; i < 3; i++) {
        char line[64];
        snprintf(line, sizeof line, "%s --join-timeout 5s", lines[i]);
        cr_assert_eq(load(line, NULL, NULL), 0, "%s: %s", line, why);
        settings_close(&settings);
    }
}

Test(settings, what_run_does_not_take_reaches_no_child)
{
    /* A file may be a node's as well: what only that takes is left out. */
    char **arguments;
    size_t count;
    cr_assert_eq(load("run", NULL, "join-timeout: 1ms\nmin-peers: 1\n"), 0, "%s", why);
    cr_assert_eq(settings_forward(&settings, &arguments, &count), 0);
    cr_assert_eq(count, 1);
    cr_assert_str_eq(arguments[0], "--min-peers=1");
    free(arguments);
    settings_close(&settings);
}

Test(settings, what_a_file_has_for_another_verb_changes_nothing_and_is_still_judged)
{
    /* One file for all verbs: as if the line were not there, in fields and in judges. */
    static const char *const lines[][2] = {{"node", "compare: [gossip, diloco]\n"},
                                           {"run", "compare: all\n"},
                                           {"sim", "min-peers: 7\n"},
                                           {"sim", "shard: 0/8\n"},
                                           {"sim", "cluster: other\n"}};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        cr_assert_eq(load(lines[i][0], NULL, lines[i][1]), 0, "%s: %s", lines[i][1], why);
        cr_expect(!settings.compare && settings.min_peers == 0 && settings.shard.count == 0);
        cr_expect(settings.verb != VERB_SIM || !settings.cluster);
        settings_close(&settings);
    }
    cr_assert_eq(load("node --strategy diloco", NULL, "compare: all\n"), 0, "%s", why);
    cr_expect_eq(settings.mix_every.steps, 50);
    settings_close(&settings);
    expect("sim", "shard: 8/8\n",
           "x.yaml:1: shard: \"8/8\" names a share past the last (I runs from 0 to N-1)");
}

Test(settings, check_judges_one_strategy_as_node_does_whatever_sim_would_compare)
{
    /* It takes what sim takes, and shows what a node would do. */
    cr_assert_eq(load("check --compare all --strategy diloco", NULL, NULL), 0, "%s", why);
    cr_expect_str_eq(settings.compare, "all");
    cr_expect_eq(settings.mix_every.steps, 50);
    settings_close(&settings);
    expect("check --compare all --strategy allreduce --mix-every 4", NULL,
           "--mix-every: \"4\" local steps, but allreduce averages the gradients of every step; "
           "--strategy local-sgd, diloco or gossip average models so often");
}

Test(settings, check_lists_each_setting_with_its_origin)
{
    /* A line a setting: name, value, origin. */
    cr_assert_eq(load("check --lr 0.1", NULL, "batch: 8\n"), 0, "%s", why);
    char *text = settings_list_text(&settings);
    cr_assert(strstr(text, "lr               0.1                             flag\n"), "%s", text);
    cr_assert(strstr(text, "batch            8                               file x.yaml:1\n"));
    cr_assert(strstr(text, "compute          -                               unset\n"));
    free(text);
    settings_close(&settings);
}

static void expect_default(enum option_id id, const char *text, const char *origin)
{
    char out[SETTINGS_WHY_BYTES];
    cr_expect_str_eq(settings.values[id].text, text);
    cr_expect_str_eq(settings_origin_text(&settings, id, out), origin);
}

Test(settings, what_a_strategy_is_meant_for_is_the_default_and_named_as_its_own)
{
    /* What is used is what check shows, and each run of a comparison has its strategy's. */
    const char *texts[OPTION_ID_COUNT] = {[OPTION_ID_STRATEGY] = "diloco"};
    struct settings copy;
    cr_assert_eq(load("node --strategy allreduce", NULL, NULL), 0, "%s", why);
    cr_expect_eq(settings.warmup, 0.05);
    expect_default(OPTION_ID_LR_SCALE, "cluster", "default of allreduce");
    expect_default(OPTION_ID_WARMUP, "0.05", "default of allreduce");
    expect_default(OPTION_ID_MIX_EVERY, "1", "default");
    settings_close(&settings);
    cr_assert_eq(load("node --strategy allreduce --lr-scale cluster", NULL, NULL), 0, "%s", why);
    expect_default(OPTION_ID_WARMUP, "0.05", "default of allreduce");
    settings_close(&settings);
    cr_assert_eq(load("node --strategy allreduce --lr-scale none", NULL, NULL), 0, "%s", why);
    expect_default(OPTION_ID_WARMUP, "0", "default");
    settings_close(&settings);
    cr_assert_eq(load("node --strategy allreduce --target-accuracy 0.9", NULL, NULL), 0, "%s", why);
    expect_default(OPTION_ID_LR_SCALE, "cluster", "default of allreduce");
    expect_default(OPTION_ID_WARMUP, "0", "default"); /* there is nothing to take a part of */
    settings_close(&settings);
    cr_assert_eq(load("node --strategy ps-bsp --target-accuracy 0.9 --time 1h", NULL, NULL), 0,
                 "%s", why);
    expect_default(OPTION_ID_WARMUP, "0.05", "default of ps-bsp");
    settings_close(&settings);
    cr_assert_eq(load("node --optimizer gd", NULL, "strategy: ps-bsp\n"), 0, "%s", why);
    expect_default(OPTION_ID_LR_SCALE, "none", "default");
    settings_close(&settings);
    cr_assert_eq(load("sim --strategy ps-bsp --model quadratic:8", NULL, NULL), 0, "%s", why);
    expect_default(OPTION_ID_LR_SCALE, "none", "default");
    expect_default(OPTION_ID_WARMUP, "0", "default");
    settings_close(&settings);
    cr_assert_eq(load("run --strategy noloco", NULL, NULL), 0, "%s", why);
    expect_default(OPTION_ID_MOMENTUM_MODE, "local", "default of noloco");
    settings_close(&settings);
    cr_assert_eq(load("sim --compare choco,diloco", NULL, NULL), 0, "%s", why);
    expect_default(OPTION_ID_CODEC, "fp32", "default");
    settings_close(&settings);
    cr_assert_eq(load("sim --strategy choco", NULL, NULL), 0, "%s", why);
    expect_default(OPTION_ID_CODEC, "topk:0.01", "default of choco");
    cr_assert_eq(settings_copy(&copy, &settings, texts, why), 0, "%s", why);
    cr_expect_str_eq(copy.codec, "fp32");
    cr_expect_eq(copy.mix_every.steps, 50);
    settings_close(&copy);
    settings_close(&settings);
}

Test(nearest, a_slip_is_near_and_another_word_is_not)
{
    /* Swaps cost one; what differs in more than a third of its letters is no guess. */
    cr_assert_eq(nearest_distance("gossip", "gossip"), 0);
    cr_assert_eq(nearest_distance("gosip", "gossip"), 1);
    cr_assert_eq(nearest_distance("gosspi", "gossip"), 1);
    cr_assert_eq(nearest_distance("", "abc"), 3);
    struct nearest nearest = nearest_start("wombat");
    nearest_try(&nearest, "gossip");
    nearest_try(&nearest, "none");
    cr_assert_null(nearest_take(&nearest));
    char word[10000];
    memset(word, 'g', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    nearest = nearest_start(word);
    nearest_try(&nearest, "gossip");
    cr_assert_null(nearest_take(&nearest));
}
