/* picture.c: what the axes of a report's curves reach for. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "experiment/picture.h"

enum { RUNS = 2, POINTS = 3 };

static struct plan_run runs[RUNS];
static struct sim_outcome outcomes[RUNS];

/* A run whose time and bytes end there, and whose drift is at last that; no bytes were sent at its
 * first point. */
static void run_to(uint32_t run, uint32_t group, double end, double drift)
{
    struct curve *curve = &outcomes[run].curve;
    runs[run].strategy = outcomes[run].summary.strategy = "gossip";
    runs[run].group = group;
    outcomes[run].summary.trained_s = end;
    curve->count = POINTS;
    for (int p = 0; p < POINTS; p++)
        curve->points[p] = (struct curve_point){.time_s = end * (p + 1) / POINTS,
                                                .bytes = end * p / (POINTS - 1),
                                                .accuracy = 0.5,
                                                .loss = 0.5,
                                                .drift = p + 1 < POINTS ? 1 : drift};
}

static char *curves(uint32_t groups)
{
    struct plan_run *of[RUNS] = {&runs[0], &runs[1]};
    struct plan plan = {.runs = of, .count = RUNS, .groups = groups};
    struct text svg;
    text_init(&svg, 1 << 20);
    picture_curves(&svg, &plan, outcomes, 0);
    char *bytes = text_take(&svg);
    cr_assert_not_null(bytes);
    return bytes;
}

Test(picture, a_point_without_bytes_stretches_no_logarithmic_axis)
{
    run_to(0, 0, 1e6, 0.5);
    run_to(1, 1, 64e6, 0.5);
    char *bytes = curves(2);
    cr_expect_not_null(strstr(bytes, ">1 MB</text>"));
    cr_expect_null(strstr(bytes, " B</text>"), "%s", bytes);
    free(bytes);
}

Test(picture, a_run_that_failed_beside_others_changes_no_axis)
{
    /* Its group is drawn without it, be it a hundred times as long or as close together. */
    char *drawn[4];
    for (int i = 0; i < 4; i++) {
        run_to(0, 0, 1e6, 0.5);
        run_to(1, 0, i % 2 ? 1e8 : 1e6, i % 2 ? 1e-9 : 0.5);
        outcomes[1].error = i < 2 ? PARLEY_EDIVERGED : 0;
        drawn[i] = curves(1);
    }
    cr_expect_str_eq(drawn[0], drawn[1]);
    cr_expect_str_neq(drawn[2], drawn[3], "one that did not fail does");
    for (int i = 0; i < 4; i++)
        free(drawn[i]);
}
