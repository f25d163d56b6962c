/* tally.c: means over the seeds of one setting. */
#include <criterion/criterion.h>
#include <math.h>

#include "experiment/tally.h"

enum { RUNS = 4 };

static const double accuracies[RUNS] = {0.5, 0.1, 0.7, 0.2}, epochs[RUNS] = {1, 0.25, 2, 0.5};

/* The cells of a group of four runs, of which the second and the fourth failed, or all did. */
static void tally(bool all_failed, bool guesses, char cells[TALLY_COLUMNS][64])
{
    struct plan_run run = {0}, *runs[RUNS] = {&run, &run, &run, &run};
    struct plan plan = {.runs = runs, .count = RUNS};
    struct sim_outcome outcomes[RUNS];
    for (int i = 0; i < RUNS; i++)
        outcomes[i] = (struct sim_outcome){.error = i % 2 || all_failed ? PARLEY_EDIVERGED : 0,
                                           .summary = {.strategy = "gossip",
                                                       .nodes = 3,
                                                       .agreed = i % 2 ? 0 : 3,
                                                       .test_accuracy = accuracies[i],
                                                       .exchanges = 90,
                                                       .exchanges_trained = i < 2 ? 50 : 60,
                                                       .bytes_trained = 1000,
                                                       .bytes_sent = 3000,
                                                       .epochs = epochs[i]}};
    outcomes[0].guesses = outcomes[2].guesses = guesses;
    outcomes[1].summary.test_accuracy = NAN; /* it broke before it had one */
    for (int c = 0; c < TALLY_COLUMNS; c++)
        tally_cell(&plan, outcomes, 0, (enum tally_column)c, cells[c]);
}

Test(tally, figures_of_runs_that_failed_are_in_no_mean)
{
    char cells[TALLY_COLUMNS][64];
    tally(false, false, cells);
    cr_expect_str_eq(cells[TALLY_ACCURACY], "0.6000 \u00b10.1414");
    cr_expect_str_eq(cells[TALLY_EPOCHS], "1.50");
    cr_expect_str_eq(cells[TALLY_EXCHANGES], "55", "as bytes, those of training");
    cr_expect_str_eq(cells[TALLY_BYTES], "1.0 kB");
    cr_expect_str_eq(cells[TALLY_BYTES_ALL], "3.0 kB");
    cr_expect_str_eq(cells[TALLY_AGREED], "6 of 12 ! mean of 2");
}

Test(tally, exchanges_of_the_end_alone_are_not_those_of_a_strategy)
{
    struct plan_run run = {0}, *runs[] = {&run};
    struct plan plan = {.runs = runs, .count = 1};
    struct sim_outcome outcome = {.summary = {.strategy = "allreduce", .exchanges = 32}};
    char out[64];
    cr_expect_str_eq(tally_cell(&plan, &outcome, 0, TALLY_EXCHANGES, out), "-");
}

Test(tally, a_setting_that_a_result_is_called_by_is_headed_by_its_flag)
{
    struct plan plan = {.axes = {OPTION_ID_LOSS, OPTION_ID_EPOCHS, OPTION_ID_LATENCY}};
    static const char *const titles[] = {"--loss", "--epochs", "latency"};
    char out[64];
    for (uint32_t i = 0; i < 3; i++)
        cr_expect_str_eq(tally_axis_title(&plan, i, out), titles[i]);
}

Test(tally, a_row_whose_models_guess_has_a_mark)
{
    char cells[TALLY_COLUMNS][64];
    tally(false, true, cells);
    cr_expect_str_eq(cells[TALLY_AGREED], "6 of 12 ? ! mean of 2");
}

/* The time to the target of a group whose runs took so long; negative: not met. failed: the first.
 */
static const char *to_target(const double *took_s, uint32_t count, bool failed, char out[64])
{
    struct plan_run run = {.settings.accuracy = 0.9}, *runs[RUNS] = {&run, &run, &run, &run};
    struct plan plan = {.runs = runs, .count = count};
    struct sim_outcome outcomes[RUNS] = {{0}};
    for (uint32_t i = 0; i < count; i++)
        outcomes[i].summary = (struct report_summary){
            .strategy = "gossip", .time_to_target_s = took_s[i] >= 0 ? took_s[i] : NAN};
    if (failed) outcomes[0].error = PARLEY_EDIVERGED;
    cr_expect(tally_shows(&plan, TALLY_TARGET));
    run.settings.accuracy = 0;
    cr_expect_not(tally_shows(&plan, TALLY_TARGET));
    return tally_cell(&plan, outcomes, 0, TALLY_TARGET, out);
}

Test(tally, how_many_met_the_target_stands_beside_the_mean_of_their_times)
{
    /* Who missed it is in no mean, and who failed is not among those of whom it is told. */
    char out[64];
    cr_expect_str_eq(to_target((double[]){1.5, -1, 0.5}, 3, false, out), "1.00 s (2 of 3)");
    cr_expect_str_eq(to_target((double[]){1.5, -1, 0.5}, 3, true, out), "0.50 s (1 of 2)");
    cr_expect_str_eq(to_target((double[]){-1, -1}, 2, false, out), "-");
    cr_expect_str_eq(to_target((double[]){1.5}, 1, false, out), "1.50 s");
    cr_expect_str_eq(to_target((double[]){-1}, 1, false, out), "-");
}

Test(tally, where_all_failed_they_are_told_all_the_same)
{
    char cells[TALLY_COLUMNS][64];
    tally(true, false, cells);
    cr_expect_str_eq(cells[TALLY_EPOCHS], "0.94");
    cr_expect_str_eq(cells[TALLY_AGREED], "6 of 12 !");
}
