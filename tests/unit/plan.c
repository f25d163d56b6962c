/* plan.c: the runs that an experiment is made of, and what writes it down again. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../sim/experiment/plan.h"
#include "../../sim/experiment/repeat.h"

static struct settings settings;
static struct plan plan;
static char why[SETTINGS_WHY_BYTES];

static int load(const char *file)
{
    char *argv[] = {"parley", "sim", NULL};
    settings_init(&settings);
    why[0] = '\0';
    int error = settings_flags(&settings, 2, argv, why);
    if (!error) error = settings_file(&settings, "x.yaml", file, strlen(file), why);
    if (!error) error = settings_finish(&settings, why);
    return error ? error : plan_init(&plan, &settings, why);
}

static void unload(void)
{
    plan_close(&plan);
    settings_close(&settings);
}

static void expect_run(uint32_t i, const char *label, uint32_t group)
{
    char *got = plan_label(&plan, plan.runs[i], true);
    cr_assert_str_eq(got, label);
    cr_assert_eq(plan.runs[i]->group, group, "%s: group %u", got, plan.runs[i]->group);
    free(got);
}

Test(plan, every_combination_is_a_run_and_seeds_stand_together)
{
    cr_assert_eq(load("nodes: [2, 4]\nseed: 1..2\nmix-every: [1, 8]\n"), 0, "%s", why);
    cr_assert_eq(plan.count, 8);
    cr_assert_eq(plan.groups, 4);
    expect_run(0, "gossip, nodes 2, mix-every 1, seed 1", 0);
    expect_run(1, "gossip, nodes 2, mix-every 1, seed 2", 0);
    expect_run(2, "gossip, nodes 2, mix-every 8, seed 1", 1);
    expect_run(7, "gossip, nodes 4, mix-every 8, seed 2", 3);
    const struct settings *last = &plan.runs[7]->settings;
    cr_assert(last->nodes == 4 && last->mix_every.steps == 8 && last->seed == 2);
    int error;
    char *json = plan_json(&plan, plan.runs[7], &error);
    cr_assert_str_eq(json, "{\"nodes\":4,\"mix-every\":8,\"seed\":2}");
    free(json);
    unload();
}

/* Proves that of an experiment that was stopped groups without a run are none. */
Test(plan, runs_that_were_not_made_are_dropped_with_their_groups)
{
    cr_assert_eq(load("nodes: [2, 4, 8]\nseed: 1..2\n"), 0, "%s", why);
    plan.runs[0]->made = plan.runs[4]->made = plan.runs[5]->made = true;
    plan_drop_unmade(&plan);
    cr_assert(plan.count == 3 && plan.groups == 2 && plan.planned == 6);
    expect_run(0, "gossip, nodes 2, seed 1", 0);
    expect_run(1, "gossip, nodes 8, seed 1", 1);
    expect_run(2, "gossip, nodes 8, seed 2", 1);
    plan.runs[0]->made = plan.runs[1]->made = plan.runs[2]->made = false;
    plan_drop_unmade(&plan);
    cr_assert(plan.count == 0 && plan.groups == 0);
    unload();
}

/* Proves that a swept setting which a strategy does not heed makes one run of it, a seed. */
Test(plan, what_a_strategy_does_not_heed_is_not_swept_for_it)
{
    cr_assert_eq(load("strategy: [gossip, allreduce]\nmix-every: [1, 4]\nlr: [0.1, 0.2]\n"
                      "seed: 1..2\ncodec: int8\n"),
                 0, "%s", why);
    cr_assert_eq(plan.count, 12);
    cr_assert_eq(plan.groups, 6);
    expect_run(7, "gossip, lr 0.2, mix-every 4, seed 2", 3);
    expect_run(8, "allreduce, lr 0.1, seed 1", 4);
    expect_run(11, "allreduce, lr 0.2, seed 2", 5);
    char *unheeded = plan_unheeded(&plan);
    cr_assert_str_eq(unheeded, "--codec changes nothing for allreduce\n");
    free(unheeded);
    unload();
}

/* Proves that what one has of its own is a column for all: theirs is the value of all. */
Test(plan, settings_of_one_that_is_compared_stand_beside_the_swept_ones)
{
    cr_assert_eq(load("compare: [gossip, choco lr=0.1 codec=topk:0.02, allreduce, single lr=0.01]\n"
                      "lr: 0.2\nbatch: [8, 16]\nseed: 1..2\n"),
                 0, "%s", why);
    cr_assert_eq(plan.count, 16);
    cr_assert_eq(plan.groups, 8);
    expect_run(0, "gossip, lr 0.2, batch 8, codec fp32, seed 1", 0);
    expect_run(1, "gossip, lr 0.2, batch 8, codec fp32, seed 2", 0);
    expect_run(6, "choco, lr 0.1, batch 16, codec topk:0.02, seed 1", 3);
    expect_run(8, "allreduce, lr 0.2, batch 8, seed 1", 4);
    expect_run(15, "single, lr 0.01, batch 16, seed 2", 7);
    cr_assert_float_eq(plan.runs[6]->settings.rate, 0.1, 1e-12);
    cr_assert_float_eq(plan.runs[8]->settings.rate, 0.2, 1e-12);
    unload();
}

static void expect_rates(const char *file, const char *expected)
{
    cr_assert_eq(load(file), 0, "%s", why);
    char *rates = plan_rates(&plan);
    cr_expect_str_eq(rates, expected, "%s: %s", file, rates);
    free(rates);
    unload();
}

/* Proves that rates which some strategies multiply by default are told where others don't, with the
 * range where nodes are swept, and that nothing is told where all are alike or only a column's. */
Test(plan, who_multiplies_the_rate_is_told_beside_those_who_do_not)
{
    const char *both = "compare: [gossip, allreduce, ps-bsp, choco]\n";
    char file[200];
    snprintf(file, sizeof file, "%sseed: 1..2\nnodes: 16\n", both);
    expect_rates(file, "allreduce, ps-bsp: --lr times 8 (--lr-scale cluster), --warmup 0.05\n");
    snprintf(file, sizeof file, "%snodes: [2, 4]\nwarmup: [0, 0.1]\n", both);
    expect_rates(file, "allreduce, ps-bsp: --lr times 2 to 4 (--lr-scale cluster)\n");
    snprintf(file, sizeof file, "%slr-scale: none\nwarmup: 0\n", both);
    expect_rates(file, "");
    expect_rates("strategy: allreduce\nseed: 1..2\n", "");
    expect_rates("strategy: gossip\nwarmup: [0, 0.1]\n", "");
}

Test(plan, what_one_has_of_its_own_is_not_swept_and_goes_together)
{
    cr_assert_eq(load("compare: [gossip, choco lr=0.1]\nlr: [0.1, 0.2]\n"), PARLEY_EUSAGE);
    cr_assert_str_eq(why, "--lr: \"0.1,0.2\" is for all that are compared, and \"choco lr=0.1\" "
                          "(--compare) has one of its own; give it in one place");
    unload();
    cr_assert_eq(load("compare: [none, gossip robust=true codec=int8]\n"), PARLEY_EUSAGE);
    cr_assert(strstr(why, "--compare: \"gossip robust=true codec=int8\": --robust: "), "%s", why);
    unload();
}

/* Proves the same of optimizers, with the run of a single node among them. */
Test(plan, what_an_optimizer_does_not_heed_is_left_out_for_it)
{
    cr_assert_eq(load("optimizer: [sgd, momentum]\nmomentum: [0.5, 0.9]\ncompare: gossip\n"), 0,
                 "%s", why);
    cr_assert_eq(plan.count, 6);
    expect_run(0, "gossip, optimizer sgd", 0);
    expect_run(2, "gossip, optimizer momentum, momentum 0.9", 2);
    expect_run(3, "single, optimizer sgd", 3);
    expect_run(4, "single, optimizer momentum, momentum 0.5", 4);
    unload();
    cr_assert_eq(load("optimizer: [adam, gd]\nbeta2: 0.5\n"), 0, "%s", why);
    char *unheeded = plan_unheeded(&plan);
    cr_assert_str_eq(unheeded, "--beta2 changes nothing for gd\n");
    free(unheeded);
    unload();
    cr_assert_eq(load("compare: [gossip, gossip optimizer=gd, single optimizer=sgd]\n"
                      "optimizer: adam\nbeta2: 0.5\n"),
                 0, "%s", why);
    unheeded = plan_unheeded(&plan);
    cr_assert_str_eq(unheeded,
                     "--beta2 changes nothing for gossip optimizer=gd, single optimizer=sgd\n");
    free(unheeded);
    unload();
    cr_assert_eq(load("optimizer: [adam, momentum]\nmomentum-mode: reset\n"), 0, "%s", why);
    unload();
}

/* Proves that what is for one strategy of a list is not held against the one that stands first. */
Test(plan, of_a_list_of_strategies_each_run_is_judged_by_itself)
{
    cr_assert_eq(load("strategy: [allreduce, gossip]\nmix-every: [1, 4]\ncodec: int8\n"), 0, "%s",
                 why);
    cr_assert_eq(plan.count, 3);
    expect_run(0, "allreduce", 0);
    unload();
    cr_assert_eq(load("strategy: [allreduce, gossip]\nrobust: true\n"), 0, "%s", why);
    unload();
    cr_assert_eq(load("strategy: [gossip, choco]\nmix-every: auto\n"), PARLEY_EUSAGE);
    cr_assert(strstr(why, "; choco takes one number"), "%s", why);
    unload();
}

/* Proves that nodes that train apart have no mixing period, wherever they stand in the list, nor
 * what else is of averaging. */
Test(plan, who_does_not_average_is_one_run_of_all_mixing_periods)
{
    char *unheeded;
    cr_assert_eq(load("strategy: [none, gossip]\nmix-every: [1, 4]\n"), 0, "%s", why);
    cr_assert_eq(plan.count, 3);
    expect_run(0, "none", 0);
    expect_run(1, "gossip, mix-every 1", 1);
    unload();
    cr_assert_eq(load("compare: [none, gossip]\nmix-every: 4\n"), 0, "%s", why);
    unheeded = plan_unheeded(&plan);
    cr_assert_str_eq(unheeded, "--mix-every changes nothing for none\n");
    free(unheeded);
    unload();
    cr_assert_eq(load("strategy: [none, gossip]\ntopology: ring\ncodec: int8\n"
                      "momentum-mode: [averaged, reset]\n"),
                 0, "%s", why);
    cr_assert_eq(plan.count, 3);
    expect_run(0, "none", 0);
    expect_run(1, "gossip, momentum-mode averaged", 1);
    unload();
    cr_assert_eq(
        load("compare: [none, gossip]\ntopology: ring\ncodec: int8\nmomentum-mode: reset\n"), 0,
        "%s", why);
    unheeded = plan_unheeded(&plan);
    cr_assert_str_eq(unheeded, "--momentum-mode changes nothing for none\n"
                               "--codec changes nothing for none\n"
                               "--topology changes nothing for none\n");
    free(unheeded);
    unload();
}

Test(plan, one_setting_is_one_run)
{
    cr_assert_eq(load("nodes: 3\n"), 0, "%s", why);
    cr_assert_eq(plan.count, 1);
    expect_run(0, "gossip", 0);
    int error;
    cr_assert_null(plan_json(&plan, plan.runs[0], &error));
    unload();
}

Test(plan, the_single_node_is_there_once_where_nothing_it_knows_is_swept)
{
    /* Its settings leave out network, mixing and faults; what it does know is a run each. */
    cr_assert_eq(load("nodes: 8\ncompare: [gossip, none]\nmix-every: [1, 8]\nseed: 1..3\n"
                      "lr: [0.1, 0.2]\nfault: kill:2@50%\nlatency: 5ms\nepochs: 2\n"),
                 0, "%s", why);
    cr_assert_eq(plan.count, 2 * 2 * 3 + 2 * 3 + 2 * 3);
    cr_assert_eq(plan.groups, 2 * 2 + 2 + 2);
    const struct plan_run *single = plan.runs[18];
    expect_run(18, "single, lr 0.1, seed 1", 6);
    expect_run(20, "single, lr 0.1, seed 3", 6);
    expect_run(21, "single, lr 0.2, seed 1", 7);
    cr_assert(single->settings.nodes == 1 && single->settings.faults.count == 0);
    cr_assert(single->settings.latency.low_us == 0 && single->settings.epochs == 2);
    unload();
}

Test(plan, the_single_node_does_the_steps_of_all)
{
    cr_assert_eq(load("nodes: [2, 8]\nsteps: 100\ncompare: all\n"), 0, "%s", why);
    const struct plan_run *last = plan.runs[plan.count - 1];
    cr_assert_str_eq(last->strategy, "single");
    cr_assert_eq(last->settings.steps, 800);
    cr_assert_str_eq(last->values[0], "8");
    unload();
}

Test(plan, what_makes_no_sense_is_refused_before_any_run)
{
    cr_assert_eq(load("strategy: gossip\ncompare: none\n"), PARLEY_EUSAGE);
    cr_assert(strstr(why, "--strategy and --compare exclude each other"), "%s", why);
    unload();
    cr_assert_eq(load("seed: 1..5000\nmix-every: 1..100\n"), PARLEY_EUSAGE);
    cr_assert(strstr(why, "more than 10000 runs"), "%s", why);
    unload();
    cr_assert_eq(load("nodes: [8, 4]\nfault: kill:n6@5s\n"), PARLEY_EUSAGE);
    cr_assert(strstr(why, "\"n6\" is not a node"), "%s", why);
    unload();
}

Test(plan, an_experiment_written_down_is_the_same_experiment)
{
    /* The file of a report, read again, gives the same file and the same command line. */
    static const char file[] = "nodes: [2, 4..8x2]\nmodel: [softmax, 'mlp:256,128']\n"
                               "fault: none or kill:1@50%\ncompare: all\nthreads: 2\n"
                               "test: 'idx:it''s here'\n";
    cr_assert_eq(load(file), 0, "%s", why);
    char *one = repeat_file(&settings), *line = repeat_line(&settings);
    cr_assert_str_eq(line, "parley sim --nodes=2,4..8x2 '--test=idx:it'\\''s here' "
                           "--model=softmax,mlp:256,128 --compare=all "
                           "'--fault=none or kill:1@50%'");
    uint32_t runs = plan.count;
    unload();
    cr_assert_eq(load(one), 0, "%s", why);
    char *two = repeat_file(&settings);
    cr_assert_str_eq(one, two);
    cr_assert_eq(plan.count, runs);
    unload();
    free(one);
    free(two);
    free(line);
}

Test(plan, the_defaults_that_a_file_names_may_be_written_into_it)
{
    static const char *const files[] = {"steps: 3\n", "optimizer: adam\n", "optimizer: sgd\n",
                                        "strategy: choco\n", "target-accuracy: 0.9\n"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        cr_assert_eq(load(files[i]), 0, "%s", why);
        char *file = repeat_file(&settings);
        unload();
        char *at = strchr(file, '\n'); /* behind the line that says whose it is */
        for (; at; at = strchr(at + 1, '\n'))
            if (at[1] == '#') at[1] = at[2] = '\n'; /* the comment is a setting then */
        cr_expect_eq(load(file), 0, "%s%s", files[i], why);
        unload();
        free(file);
    }
}
