/* chart.c: the scales of the report's charts, and what their SVG holds. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../sim/experiment/chart.h"

#define NEAR(a, b) (fabs((a) - (b)) < 1e-9)

/* The labels joined by blanks. */
static void expect_labels(const struct axis *axis, const char *expected)
{
    char joined[400] = "", label[AXIS_LABEL_BYTES];
    for (uint32_t i = 0; i < axis->count; i++) {
        if (i) strcat(joined, " ");
        strcat(joined, axis_label(axis, axis->ticks[i], label));
    }
    cr_assert_str_eq(joined, expected);
}

static double middle(const struct axis *axis, double low, double high)
{
    return axis_place(axis, low) + axis_place(axis, high);
}

Test(chart, a_linear_axis_begins_and_ends_at_round_ticks)
{
    /* Steps of 1, 2 or 5 times a power of ten; every value lies between the ends. */
    struct axis axis = axis_fit(AXIS_LINEAR, AXIS_PLAIN, 0.13, 0.97);
    cr_assert(NEAR(axis.low, 0) && NEAR(axis.high, 1));
    expect_labels(&axis, "0 0.2 0.4 0.6 0.8 1");
    cr_assert(NEAR(axis_place(&axis, 0.25), 0.25));
    axis = axis_fit(AXIS_LINEAR, AXIS_PLAIN, 3, 3);
    cr_assert(axis.low < 3 && axis.high > 3, "one value gets room around it");
    axis = axis_fit(AXIS_LINEAR, AXIS_PLAIN, INFINITY, -INFINITY);
    cr_assert(axis.low < axis.high, "no value at all is an axis still");
    axis = axis_fit(AXIS_LINEAR, AXIS_BYTES, 0, 0);
    cr_assert(NEAR(axis.low, 0) && NEAR(axis.high, 1), "nothing is less than none");
    srand(1);
    for (int i = 0; i < 1000; i++) {
        double scale = pow(10, rand() % 13 - 6), a = scale * rand() / RAND_MAX;
        double b = a + scale * (rand() + 1.0) / RAND_MAX;
        axis = axis_fit(AXIS_LINEAR, (enum axis_unit)(i % 3), a, b);
        cr_assert(axis.count >= 3 && axis.count <= AXIS_TICKS_MAX, "%g %g: %u", a, b, axis.count);
        cr_assert(axis.low <= a + 1e-9 * scale && axis.high >= b - 1e-9 * scale, "%g %g", a, b);
        cr_assert(NEAR(middle(&axis, axis.low, axis.high), 1));
    }
}

Test(chart, times_and_bytes_are_labelled_in_a_unit_of_their_size)
{
    struct axis axis = axis_fit(AXIS_LINEAR, AXIS_SECONDS, 0, 0.1);
    cr_assert_str_eq(axis.unit_text, "ms");
    expect_labels(&axis, "0 20 40 60 80 100");
    axis = axis_fit(AXIS_LINEAR, AXIS_SECONDS, 0, 600);
    cr_assert_str_eq(axis.unit_text, "min");
    expect_labels(&axis, "0 2 4 6 8 10");
    axis = axis_fit(AXIS_LINEAR, AXIS_BYTES, 0, 1.1e9);
    cr_assert_str_eq(axis.unit_text, "GB");
    axis = axis_fit(AXIS_LOG, AXIS_BYTES, 2e3, 3e9);
    expect_labels(&axis, "10 kB 100 kB 1 MB 10 MB 100 MB 1 GB");
    axis = axis_fit(AXIS_LOG, AXIS_SECONDS, 1e-3, 15);
    expect_labels(&axis, "1 ms 10 ms 100 ms 1 s 10 s");
}

Test(chart, a_logarithmic_axis_has_a_tick_a_decade_or_less)
{
    /* Wide ones skip decades, narrow ones have 1, 2, 5; zero has no place and breaks nothing. */
    struct axis axis = axis_fit(AXIS_LOG, AXIS_PLAIN, 1e-5, 1);
    expect_labels(&axis, "10⁻⁵ 10⁻⁴ 10⁻³ 0.01 0.1 1");
    cr_assert(NEAR(axis_place(&axis, 1e-5), 0) && NEAR(axis_place(&axis, 1), 1));
    cr_assert(NEAR(axis_place(&axis, 1e-3), 0.4));
    axis = axis_fit(AXIS_LOG, AXIS_PLAIN, 1, 100); /* the least that has a tick for each alone */
    expect_labels(&axis, "1 10 100");
    axis = axis_fit(AXIS_LOG, AXIS_PLAIN, 0.4, 2.3);
    expect_labels(&axis, "0.5 1 2");
    axis = axis_fit(AXIS_LOG, AXIS_BYTES, 2.2e6, 3.5e6); /* between two of those */
    expect_labels(&axis, "2.2 MB 2.4 MB 2.6 MB 2.8 MB 3 MB 3.2 MB 3.4 MB");
    for (double ratio = 1.001; ratio < 100; ratio *= 1.03) {
        axis = axis_fit(AXIS_LOG, AXIS_PLAIN, 0.7, 0.7 * ratio);
        cr_assert(axis.count >= 3 && axis.count <= 9, "%g: %u", ratio, axis.count);
    }
    /* Where two decades would be the only ticks, and where values hardly differ, too. */
    axis = axis_fit(AXIS_LOG, AXIS_PLAIN, 0.02, 2.5);
    expect_labels(&axis, "0.02 0.05 0.1 0.2 0.5 1 2");
    axis = axis_fit(AXIS_LOG, AXIS_SECONDS, 1.01, 1.02);
    expect_labels(&axis, "950 ms 1 s 1.05 s 1.1 s");
    axis = axis_fit(AXIS_LOG, AXIS_PLAIN, 1e-30, 1);
    cr_assert(axis.count >= 3 && axis.count <= 8);
    cr_assert(NEAR(axis.ticks[axis.count - 1], 1));
    axis = axis_fit(AXIS_LOG, AXIS_PLAIN, 0, 1);
    cr_assert(axis.low > 0 && axis.low < axis.high);
    cr_assert(NEAR(axis_place(&axis, 0), 0));
    axis = axis_fit(AXIS_LOG, AXIS_PLAIN, 0, 0);
    cr_assert(axis.low > 0 && axis.low < axis.high);
}

Test(chart, accuracies_are_drawn_by_their_error)
{
    /* From 0.9 to 0.99 is as far as from 0.99 to 0.999; 1 has a place, too. */
    struct axis axis = axis_fit(AXIS_ACCURACY, AXIS_PLAIN, 0.91, 0.9985);
    cr_assert(NEAR(axis.low, 0.9) && NEAR(axis.high, 0.999));
    expect_labels(&axis, "0.9 0.95 0.98 0.99 0.995 0.998 0.999");
    cr_assert(NEAR(axis_place(&axis, 0.99), 0.5));
    axis = axis_fit(AXIS_ACCURACY, AXIS_PLAIN, 0.1, 1);
    cr_assert(NEAR(axis.low, 0) && NEAR(axis_place(&axis, 1), 1));
    axis = axis_fit(AXIS_ACCURACY, AXIS_PLAIN, 1, 1);
    cr_assert(axis.low < axis.high);
    axis = axis_fit(AXIS_ACCURACY, AXIS_PLAIN, INFINITY, -INFINITY);
    cr_assert(axis.low < axis.high);
}

static uint32_t count_of(const char *text, const char *what)
{
    uint32_t count = 0;
    for (; (text = strstr(text, what)); text++)
        count++;
    return count;
}

/* 400 by 300, with the frame from 52 to 386 and from 26 to 260. */
static char *drawn(const struct chart *chart)
{
    struct text svg;
    text_init(&svg, 1 << 20);
    chart_draw(&svg, chart, 0, 0, 400, 300);
    char *bytes = text_take(&svg);
    cr_assert_not_null(bytes);
    return bytes;
}

static void expect_part(const char *bytes, const char *part)
{
    cr_expect_not_null(strstr(bytes, part), "no %s in %s", part, bytes);
}

Test(chart, what_lies_past_the_ends_of_an_axis_is_cut_off)
{
    /* A line falls from 1 over 0.1, where it crosses the end of the axis, to 0.01 and comes back.
     */
    const double x[] = {0, 1, 2, 3, 4}, y[] = {1, 0.01, 1e-9, 0.01, 1};
    struct chart_line line = {.x = x, .y = y, .count = 5};
    struct chart chart = {
        .title = "t", .x_title = "x", .y_scale = AXIS_LOG, .lines = &line, .count = 1};
    char *bytes = drawn(&chart);
    expect_part(bytes, ">10⁻⁸</text>");
    free(bytes);
    chart.y_least = 0.1;
    const double fall[] = {1, 0.1, 0, 0.001, 1};
    line.y = fall;
    bytes = drawn(&chart);
    cr_expect_null(strstr(bytes, "0.01</text>"));
    expect_part(bytes, "d=\"M52.0 26.0L135.5 260.0L135.5 260.0M358.2 260.0L386.0 26.0\"");
    expect_part(bytes, "cx=\"386.0\" cy=\"26.0\"");
    free(bytes);
    /* No dot where the line goes on; none past the end, where 0 is as well. */
    line.goes_on = true;
    bytes = drawn(&chart);
    cr_expect_null(strstr(bytes, "<circle"));
    free(bytes);
    line.goes_on = false;
    for (line.count = 3; line.count <= 4; line.count++) {
        bytes = drawn(&chart);
        cr_expect_null(strstr(bytes, "<circle"), "%u points", line.count);
        free(bytes);
    }
    /* An axis that is to reach further does. */
    chart.x_least = 2;
    chart.x_most = 10;
    bytes = drawn(&chart);
    expect_part(bytes, ">10</text>");
    free(bytes);
}

Test(chart, an_accuracy_of_one_is_drawn)
{
    /* At the top of the frame, beside its own label; and where all are 1, too. */
    const double x[] = {0, 1, 2}, y[] = {0.9, 1, 1}, best[] = {1, 1, 1};
    struct chart_line line = {.x = x, .y = y, .count = 3};
    struct chart chart = {
        .title = "t", .x_title = "x", .y_scale = AXIS_ACCURACY, .lines = &line, .count = 1};
    char *bytes = drawn(&chart);
    expect_part(bytes, "x=\"46.0\" y=\"30.0\">1</text>");
    expect_part(bytes, "d=\"M52.0 260.0L219.0 26.0L386.0 26.0\"");
    expect_part(bytes, "<circle class=\"f0\" cx=\"386.0\" cy=\"26.0\"");
    free(bytes);
    line.y = best;
    bytes = drawn(&chart);
    expect_part(bytes, "d=\"M52.0 26.0L219.0 26.0L386.0 26.0\"");
    expect_part(bytes, "<circle class=\"f0\" cx=\"386.0\" cy=\"26.0\"");
    free(bytes);
    struct axis whole = axis_fit(AXIS_ACCURACY, AXIS_PLAIN, 0, 1);
    cr_expect(NEAR(whole.ticks[whole.count - 1], 1));
}

Test(chart, a_band_has_its_line_s_colour_and_its_points_may_have_their_own)
{
    /* A band goes along its upper edge and back along the lower one, which counts for the axis; a
     * level one is a box from side to side. Zero has no place on the axis: the band ends there. */
    const double x[] = {0, 1}, y[] = {0.3, 0.3}, low[] = {0, 0.1}, high[] = {1, 0.5};
    const uint32_t dots[] = {6, 11};
    struct chart_line line = {
        .x = x, .y = y, .low = low, .high = high, .dots = dots, .count = 2, .style = 3};
    struct chart chart = {
        .title = "t", .x_title = "x", .y_scale = AXIS_LOG, .lines = &line, .count = 1};
    char *bytes = drawn(&chart);
    expect_part(bytes, "class=\"band f3\" d=\"M52.0 26.0L386.0 96.4L386.0 260.0L52.0 260.0Z\"");
    expect_part(bytes, "<circle class=\"f6\" cx=\"52.0\"");
    expect_part(bytes, "<circle class=\"f3\" cx=\"386.0\"");
    cr_expect_eq(count_of(bytes, "<circle"), 2);
    free(bytes);
    line.level = true;
    bytes = drawn(&chart);
    cr_expect_eq(count_of(bytes, "<circle"), 0);
    expect_part(bytes, "class=\"band f3\" d=\"M52.0 26.0h334.0L386.0 260.0h-334.0Z\"");
    free(bytes);
}

Test(chart, what_can_not_be_drawn_is_left_out)
{
    /* What is not finite, nothing but zeros on a log axis, lines without points; a level line is
     * one stroke. */
    const double x[] = {0, 1, 2, 3, NAN}, y[] = {INFINITY, NAN, 0.5, 0.1, 1},
                 none[] = {0, 0, 0, 0, 0};
    const struct chart_line lines[] = {{.x = x, .y = y, .count = 5},
                                       {.x = x, .y = none, .count = 5, .style = 1},
                                       {.x = x, .y = y, .count = 0, .style = 2},
                                       {.x = x, .y = y, .count = 4, .style = 3, .level = true}};
    struct chart chart = {.title = "t",
                          .x_title = "x",
                          .y_scale = AXIS_LOG,
                          .x_unit = AXIS_SECONDS,
                          .lines = lines,
                          .count = 4};
    char *bytes = drawn(&chart);
    cr_assert_eq(count_of(bytes, "class=\"line"), 2);
    cr_assert_eq(count_of(bytes, "class=\"line c0 d0\" d=\"M"), 1);
    cr_assert_eq(count_of(bytes, "class=\"line c3 d3\""), 1);
    const char *path = strstr(bytes, "d0\" d=\"M"), *end = path + strcspn(path, "/");
    cr_assert_eq(strcspn(path, "L") + 1 + strcspn(strchr(path, 'L') + 1, "L/"),
                 (size_t)(end - path), "two points are one stroke");
    cr_assert_null(strstr(bytes, "nan"));
    cr_assert_null(strstr(bytes, "inf"));
    free(bytes);
}
