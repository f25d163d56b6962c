/* points.c: curves as CSV. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiment/points.h"

Test(points, a_row_has_the_run_what_was_swept_and_what_is_known_of_the_point)
{
    /* The names of options become names of columns; what is not known, or says nothing to the run,
     * is empty; a value with a comma is one field; bytes have all their digits. */
    struct plan_run run = {.strategy = "gossip", .values = {NULL, "lognormal:1ms,2", "3"}};
    struct plan_run *runs[] = {&run, &run};
    struct plan plan = {.runs = runs,
                        .count = 2,
                        .axes = {OPTION_ID_MIX_EVERY, OPTION_ID_LATENCY, OPTION_ID_SEED},
                        .axes_count = 3};
    struct sim_outcome outcome = {.summary = {.strategy = "gossip", .trained_s = 2, .agreed_s = 3},
                                  .curve = {.count = 3,
                                            .points = {{1, 4, 5, 0.25, 0.5, 0.75, 1e-3},
                                                       {2.5, 9, 5, 0.25, NAN, NAN, 1e-6},
                                                       {3, 98765432101.0, 5, 0.25, 0.5, NAN, 0}}}};
    char *head = points_csv_head(&plan), *rows = points_csv_rows(&plan, 1, &outcome);
    cr_assert_str_eq(head, "run,strategy,mix_every,latency,seed,phase,t,epoch,samples,bytes_sent,"
                           "test_accuracy,test_loss,drift\n");
    cr_assert_str_eq(rows,
                     "2,gossip,,\"lognormal:1ms,2\",3,train,1.000000,0.25,5,4,0.5,0.75,0.001\n"
                     "2,gossip,,\"lognormal:1ms,2\",3,settle,2.500000,0.25,5,9,,,1e-06\n"
                     "2,gossip,,\"lognormal:1ms,2\",3,done,3.000000,0.25,5,98765432101,0.5,,0\n");
    free(head);
    free(rows);
    /* Who never agreed is not done. */
    outcome.summary.agreed_s = NAN;
    rows = points_csv_rows(&plan, 1, &outcome);
    cr_assert_null(strstr(rows, "done"));
    free(rows);
    /* A run that broke before its first point has no rows. */
    outcome.curve.count = 0;
    rows = points_csv_rows(&plan, 1, &outcome);
    cr_assert_str_eq(rows, "");
    free(rows);
}

Test(points, no_swept_setting_has_the_name_of_another_column)
{
    struct plan plan = {0};
    char *head = points_csv_head(&plan);
    for (int id = 0; id < OPTION_ID_COUNT; id++) {
        char column[64];
        snprintf(column, sizeof column, ",%s,", option_info((enum option_id)id)->name);
        for (char *at = column; *at; at++)
            if (*at == '-') *at = '_';
        cr_expect(id == OPTION_ID_STRATEGY || !strstr(head, column), "%s", column);
    }
    free(head);
}
