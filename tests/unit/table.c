/* table.c: what people see: the summary, the live table, human figures. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/human.h"
#include "report/summary.h"
#include "report/table.h"
#include "report/text.h"

Test(summary, an_agreed_run_ends_with_the_four_lines_of_the_contract)
{
    /* Labels, figures and columns as promised. */
    const struct report_summary line = {.agreed = 4,
                                        .digest = "sha256:9f2c00112233445566",
                                        .test_accuracy = 0.9762,
                                        .test_loss = 0.0791,
                                        .epochs = 4,
                                        .steps = 7500,
                                        .exchanges = 1872,
                                        .exchanges_trained = 1790,
                                        .bytes_sent = 1500000000};
    struct summary summary = {.line = &line,
                              .nodes = 4,
                              .drift = 0,
                              .test_samples = 10000,
                              .trained_s = 12.4,
                              .path = "parley-model.safetensors"};
    char *text = summary_text(&summary);
    cr_assert_str_eq(
        text, "agreed    4 of 4 nodes     digest sha256:9f2c00112233…    drift 0\n"
              "accuracy  0.9762 on 10000 test samples             loss 0.0791\n"
              "training  4.0 epochs, 7500 steps, 12.4 s           exchanges 1872, 1.5 GB\n"
              "model     parley-model.safetensors                 check it: parley model verify "
              "parley-model.safetensors\n");
    free(text);
}

Test(summary, exchanges_of_a_run_whose_training_had_none_are_those_of_its_end)
{
    /* Else they would stand beside bytes that others than they have cost. */
    const struct report_summary line = {.exchanges = 4, .bytes_sent = 457600000};
    char *text = summary_text(&(struct summary){.line = &line});
    cr_expect(strstr(text, " exchanges 4 at the end, 457.6 MB in all\n"), "%s", text);
    free(text);
}

Test(summary, a_model_that_guesses_is_remarked_on)
{
    /* Both accuracy and loss are a guess's, it has had its chance, and there is something to guess.
     */
    static const struct {
        double accuracy, loss, epochs, rate;
        uint32_t classes;
        bool remarked;
    } runs[] = {{0.0885, 2.3029, 60, 0.05, 10, true},
                {0.1135, 2.3012, 1, 0.05, 10, true},
                {0.0885, 2.3029, 0.9, 0.05, 10, false},
                {0.0885, 2.3029, 60, 0, 10, false},
                {0.6, 2.9, 60, 0.05, 10, false},
                {0.1, 2.2, 60, 0.05, 10, false},
                {1, 0, 60, 0.05, 1, false},
                {NAN, 9, 60, 0.05, 1, false},
                {NAN, NAN, 60, 0.05, 10, false}};
    char out[SUMMARY_REMARK_BYTES];
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        const struct report_summary line = {
            .test_accuracy = runs[i].accuracy, .test_loss = runs[i].loss, .epochs = runs[i].epochs};
        const struct summary summary = {
            .line = &line, .classes = runs[i].classes, .rate = runs[i].rate};
        cr_expect_eq(summary_remark(&summary, out) != NULL, runs[i].remarked, "%zu", i);
        if (i == 0)
            cr_expect_str_eq(out, "the model does no better than guessing (accuracy 0.0885 of "
                                  "0.1000, loss 2.3029 of ln 10 = 2.3026): a smaller --lr or "
                                  "--clip-norm 1 may help");
    }
}

Test(summary, what_is_not_known_is_left_out)
{
    /* No common digest, no test data, no file. */
    const struct report_summary line = {.agreed = 2, .test_accuracy = NAN};
    struct summary summary = {.line = &line, .nodes = 4, .drift = 3e-4};
    char *text = summary_text(&summary);
    cr_assert(strstr(text, "agreed    2 of 4 nodes     no common digest    drift 3.0e-04\n"));
    cr_assert_null(strstr(text, "accuracy"));
    cr_assert_null(strstr(text, "model"));
    free(text);
}

Test(summary, whether_and_when_the_target_was_met_is_told_where_there_was_one)
{
    /* A missed one looks like no other. */
    struct report_summary line = {.test_accuracy = 0.86, .time_to_target_s = 1.25};
    struct summary summary = {.line = &line, .target = 0.85};
    char *met = summary_text(&summary);
    cr_expect(strstr(met, "\ntarget    0.85 met after 1.25 s\n"), "%s", met);
    line.time_to_target_s = NAN;
    char *missed = summary_text(&summary);
    cr_expect(strstr(missed, "\ntarget    0.85 not met\n"), "%s", missed);
    summary.target = 0;
    char *none = summary_text(&summary);
    cr_expect_null(strstr(none, "target"), "%s", none);
    free(met);
    free(missed);
    free(none);
}

/* The line of the summary. */
static void check_coverage(const struct report_summary *line, const char *expected)
{
    char *text = summary_text(&(struct summary){.line = line}), *at = strstr(text, "coverage  ");
    cr_assert(at ? !strncmp(at + 10, expected, strlen(expected)) : !*expected, "%s", text);
    free(text);
}

Test(summary, what_was_covered_is_told_by_the_numbers_of_the_epochs)
{
    /* Those that all nodes have ended, and apart those that the end has cut; 0 is not known. */
    struct report_summary line = {.coverage = {1, 1, 0.99999, 0.7735, 0.2},
                                  .coverage_count = 5,
                                  .epochs = 3.9,
                                  .epochs_whole = 2};
    check_coverage(&line, "100 % of the samples in epochs 1 to 2;\n          99.9 % in epoch 3, "
                          "cut short by the end\n");
    line.epochs = 5;
    line.epochs_whole = 3;
    check_coverage(&line,
                   "at least 99.9 % of the samples in epochs 1 to 3;\n          at least 20 % in "
                   "epochs 4 to 5, cut short by the end\n");
    line.epochs = line.epochs_whole = 1;
    check_coverage(&line, "100 % of the samples in epoch 1\n");
    line.epochs_whole = 0;
    check_coverage(&line, "100 % of the samples in epoch 1, cut short by the end\n");
    line.epochs = line.epochs_whole = 7;
    check_coverage(&line, "at least 20 % of the samples in epochs 1 to 5, and not counted after\n");
    line.coverage_count = 0;
    check_coverage(&line, "");
}

static const struct table_row rows[] = {
    {"n0", 12345, "train", 1234, 0.2134, 3.1e-4, 23400, 4},
    {"a-machine-of-a-long-name", 4194304, "settle", 123456789, 1e9, 1e-300, 1e12, 1000},
    {"n2", 0, "dead", 0, NAN, NAN, NAN, 0},
    {"\xc3\xa9t\xc3\xa9", 1, "done", 1, -INFINITY, INFINITY, -1, 4}};

/* Columns of the widest line. */
static size_t width_of(const char *text)
{
    size_t widest = 0;
    while (*text) {
        char line[4096];
        size_t length = strcspn(text, "\n");
        cr_assert_lt(length, sizeof line);
        memcpy(line, text, length);
        line[length] = '\0';
        if (text_width(line) > widest) widest = text_width(line);
        text += length + 1;
    }
    return widest;
}

Test(table, no_line_is_wider_than_the_terminal)
{
    /* Long names, large and unknown figures, at every width from 80. */
    for (unsigned columns = 80; columns <= 200; columns++) {
        char *text = table_text(&(struct table){rows, 4, 10, columns, false});
        cr_assert_leq(width_of(text), columns);
        cr_assert_null(strchr(text, '\x1b'));
        free(text);
    }
}

Test(table, a_row_shows_its_node)
{
    /* The header once, then a line a node; rows past the limit are counted. */
    char *text = table_text(&(struct table){rows, 1, 10, 80, false});
    cr_assert_str_eq(text, "node   pid state     step      loss   drift samples/s live\n"
                           "n0   12345 train     1234    0.2134 3.1e-04     23.4k    4\n");
    free(text);
    text = table_text(&(struct table){rows, 4, 1, 80, true});
    cr_assert(strstr(text, "and 3 more\n"));
    cr_assert(strchr(text, '\x1b'));
    free(text);
}

Test(table, a_node_that_has_ended_sees_no_others)
{
    /* Not what it saw last, when others had ended before it. */
    struct table_row ended = rows[0];
    ended.live = 0;
    char *text = table_text(&(struct table){&ended, 1, 10, 80, false});
    cr_assert(strstr(text, "   -\n"));
    free(text);
}

Test(table, a_node_without_a_process_has_no_pid_and_a_long_name_is_shown_as_far_as_there_is_room)
{
    /* Two machines whose names begin alike are told apart where the terminal is wide. */
    char *text = table_text(&(struct table){rows, 4, 10, 160, false});
    cr_assert(strstr(text, "\na-machine-of-"));
    cr_assert(strstr(text, "\nn2                    -  dead "));
    free(text);
}

Test(table, a_state_has_the_colour_of_how_it_goes)
{
    static const char *const colours[][2] = {{"done", "32"},  {"held", "32"},  {"late", "33"},
                                             {"left", "33"},  {"dead", "31"},  {"killed", "31"},
                                             {"train", "36"}, {"settle", "36"}};
    for (size_t i = 0; i < sizeof colours / sizeof *colours; i++) {
        struct table_row row = rows[0];
        char expected[32];
        row.state = colours[i][0];
        snprintf(expected, sizeof expected, "\x1b[%sm %s", colours[i][1], colours[i][0]);
        char *text = table_text(&(struct table){&row, 1, 10, 80, true});
        cr_assert(strstr(text, expected), "%s", row.state);
        free(text);
    }
}

Test(table, without_a_terminal_there_is_one_plain_line)
{
    /* For logs: no colour. A rate that is not known is not 0. */
    char *text = table_plain_text(
        &(struct table_plain){12, 4, 4, 1.82, 0.2134, 3.1e-4, 23400, 0.45, NULL, false});
    cr_assert_str_eq(text, "12.0 s  4 of 4 alive  epoch 1.82 45%  loss 0.2134  drift 3.1e-04  "
                           "23.4k/s");
    free(text);
    text = table_plain_text(&(struct table_plain){12, 1, 4, 0, NAN, NAN, 0, 0, "joining", true});
    cr_assert_str_eq(text, "12.0 s  1 of 4 alive, joining  epoch 0.00 0%  loss -  drift -  "
                           "-/s here");
    free(text);
}

Test(text, of_a_line_whole_fields_are_shown)
{
    /* No figure without its unit. */
    cr_assert_eq(text_fit("4 of 4  34%  9.6k/s", 19), 19);
    cr_assert_eq(text_fit("4 of 4  34%  9.6k/s", 18), 11);
    cr_assert_eq(text_fit("4 of 4  34%  9.6k/s", 11), 11);
    cr_assert_eq(text_fit("4 of 4  34%  9.6k/s", 10), 6);
    cr_assert_eq(text_fit("4 of 4  34%  9.6k/s", 5), 5);
}

Test(human, figures_have_units_and_never_overflow)
{
    /* At the edges of each unit. */
    char out[HUMAN_BYTES];
    cr_assert_str_eq(human_bytes(out, 812), "812 B");
    cr_assert_str_eq(human_bytes(out, 1500000000), "1.5 GB");
    cr_assert_str_eq(human_bytes(out, 999960), "1.0 MB");
    cr_assert_str_eq(human_bytes(out, UINT64_MAX), "18.4 EB");
    cr_assert_str_eq(human_seconds(out, 0.314), "0.31 s");
    cr_assert_str_eq(human_seconds(out, 12.44), "12.4 s");
    cr_assert_str_eq(human_seconds(out, 192), "3 min 12 s");
    cr_assert_str_eq(human_seconds(out, 3599.9), "1 h 00 min");
    cr_assert_str_eq(human_seconds(out, NAN), "-");
    cr_assert_str_eq(human_loss(out, 0.21344), "0.2134");
    cr_assert_str_eq(human_loss(out, 0), "0.0000");
    cr_assert_str_eq(human_loss(out, 0.00021), "2.1e-04");
    cr_assert_str_eq(human_loss(out, 12345678), "1.235e+07");
    cr_assert_str_eq(human_drift(out, 0), "0");
    cr_assert_str_eq(human_drift(out, 3.14e-4), "3.1e-04");
    cr_assert_str_eq(human_rate(out, 950), "950");
    cr_assert_str_eq(human_rate(out, 1.2e6), "1.20M");
    cr_assert_str_eq(human_rate(out, 999960), "1.00M");
}

Test(human, a_line_comes_each_second_at_first_and_then_each_fifth)
{
    cr_assert_eq(human_pause_s(0), 1);
    cr_assert_eq(human_pause_s(2.9), 1);
    cr_assert_eq(human_pause_s(3), 5);
}
