/* figures.c: medians, ratios, and how bench prints them. */
#include <criterion/criterion.h>

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/figures.h"

Test(figures, a_figure_is_of_medians_and_one_is_the_limit_in_both_senses)
{
    /* A single outlier moves nothing; 1 is the limit and less is worse, of times and of rates. */
    const double values[] = {4, 5, 1000}, limits[] = {4, 4, 4};
    struct figure figure;
    figure_of(&figure, "a/b", "us", FIGURE_LESS_IS_BETTER, values, limits, 3);
    cr_assert_eq(figure.value, 5);
    cr_assert_eq(figure.limit, 4);
    cr_assert_eq(figure.ratio, 0.8);
    cr_assert(figure.low < 0.8 && figure.high > 0.8 && figure.high <= 1);
    figure_of(&figure, "a/b", "GB/s", FIGURE_MORE_IS_BETTER, limits, values, 3);
    cr_assert_eq(figure.ratio, 0.8);
}

Test(figures, a_ratio_lies_between_its_quartiles)
{
    /* The medians of the figure and of its limit may be of different turns. */
    const double values[] = {2, 4, 8}, limits[] = {4, 8, 2};
    struct figure figure;
    figure_of(&figure, "a/b", "us", FIGURE_LESS_IS_BETTER, values, limits, 3);
    cr_assert(figure.value == 4 && figure.limit == 4);
    cr_assert(figure.ratio == 2 && figure.low <= 2 && figure.high >= 2);
}

Test(figures, a_figure_without_a_limit_has_the_spread_of_its_values)
{
    /* Rows that are there for scale. */
    const double values[] = {3, 1, 2, 5, 4};
    struct figure figure;
    figure_of(&figure, "a", "us", FIGURE_LESS_IS_BETTER, values, NULL, 5);
    cr_assert(figure.value == 3 && figure.low == 2 && figure.high == 4);
    cr_assert(isnan(figure.limit) && isnan(figure.ratio));
}

Test(figures, json_has_the_fields_of_the_contract_and_null_where_there_is_no_limit)
{
    /* Scripts read name, value, unit, limit, ratio. */
    const double values[] = {0.000123456}, limits[] = {0.0001};
    struct figure x, y;
    figure_of(&x, "x", "us", FIGURE_LESS_IS_BETTER, values, limits, 1);
    figure_of(&y, "y", "us", FIGURE_LESS_IS_BETTER, values, NULL, 1);
    char *first = figure_json(&x, true), *second = figure_json(&y, false), text[1024];
    snprintf(text, sizeof text, "%s%s" FIGURES_JSON_END, first, second);
    json_t *all = json_loads(text, 0, NULL);
    cr_assert_eq(json_array_size(all), 2);
    json_t *one = json_array_get(all, 0), *two = json_array_get(all, 1);
    cr_assert_str_eq(json_string_value(json_object_get(one, "name")), "x");
    cr_assert_str_eq(json_string_value(json_object_get(one, "unit")), "us");
    cr_assert_float_eq(json_real_value(json_object_get(one, "value")), 0.000123456, 1e-9);
    cr_assert_float_eq(json_real_value(json_object_get(one, "ratio")), 0.81, 1e-3);
    cr_assert(json_is_null(json_object_get(two, "limit")));
    cr_assert(json_is_null(json_object_get(two, "ratio")));
    json_decref(all);
    free(first);
    free(second);
}

Test(figures, the_table_has_a_line_a_figure_within_100_columns)
{
    /* Also where figures are large and names long. */
    const double values[] = {1234567.8}, limits[] = {2345678.9};
    struct figure one, two;
    figure_of(&one, "wire/tcp/1e8", "ms", FIGURE_MORE_IS_BETTER, values, limits, 1);
    figure_of(&two, "wire/tcp/1e8/far", "ms", FIGURE_LESS_IS_BETTER, limits, NULL, 1);
    char *first = figure_text(&one, true), *second = figure_text(&two, false), text[1024];
    snprintf(text, sizeof text, "%s%s", first, second);
    int lines = 0;
    for (const char *at = text; *at; at += strcspn(at, "\n") + 1) {
        cr_assert_leq(strcspn(at, "\n"), 100);
        lines++;
    }
    cr_assert_eq(lines, 3);
    free(first);
    free(second);
}
