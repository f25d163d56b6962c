/* dataset.c: scaling, splitting and gathering of samples. */
#include "data/dataset.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

static struct dataset image_set(uint32_t count, uint32_t side)
{
    struct dataset set = {.count = count, .features = side * side, .channels = 1, .classes = 256};
    set.height = set.width = side;
    set.bytes = malloc((size_t)count * set.features);
    set.labels = malloc(count * sizeof *set.labels);
    for (uint32_t i = 0; i < count; i++) {
        set.labels[i] = (uint16_t)(i % 256);
        for (uint32_t f = 0; f < set.features; f++)
            set.bytes[(size_t)i * set.features + f] = (uint8_t)(i * 7 + f * 3);
    }
    return set;
}

static struct dataset table_set(uint32_t count)
{
    struct dataset set = {.count = count, .features = 3, .classes = 2};
    set.values = malloc((size_t)count * 3 * sizeof *set.values);
    set.labels = calloc(count, sizeof *set.labels);
    for (uint32_t i = 0; i < count; i++) {
        set.values[3 * i] = (float)i;
        set.values[3 * i + 1] = 0.1f;                      /* constant, inexact in binary */
        set.values[3 * i + 2] = 1e6f + (float)(i % 2) * 4; /* small changes of a large value */
    }
    return set;
}

static void moments(const struct dataset *set, uint32_t column, uint32_t step, double *mean,
                    double *variance)
{
    uint32_t *index = malloc(set->count * sizeof *index);
    uint16_t *labels = malloc(set->count * sizeof *labels);
    size_t total = (size_t)set->count * set->features;
    float *x = malloc(total * sizeof *x);
    for (uint32_t i = 0; i < set->count; i++)
        index[i] = i;
    dataset_gather(set, index, set->count, x, labels);
    double sum = 0, squares = 0, n = 0;
    for (size_t i = column; i < total; i += step, n++)
        sum += x[i], squares += (double)x[i] * x[i];
    *mean = sum / n;
    *variance = squares / n - *mean * *mean;
    free(index);
    free(labels);
    free(x);
}

Test(dataset, images_are_scaled_to_mean_0_and_variance_1_over_all_pixels)
{
    /* Proves that measure and gather together give what trainers are promised, for images. */
    struct dataset set = image_set(50, 9);
    cr_assert_eq(dataset_measure(&set), 0);
    double mean, variance;
    moments(&set, 0, 1, &mean, &variance);
    cr_assert_float_eq(mean, 0, 1e-5);
    cr_assert_float_eq(variance, 1, 1e-5);
    dataset_close(&set);
}

Test(dataset, tables_are_scaled_column_by_column)
{
    /* Proves the scaling of each column, with a constant one turned to 0 and a large mean kept. */
    struct dataset set = table_set(100);
    cr_assert_eq(dataset_measure(&set), 0);
    for (uint32_t column = 0; column < 3; column++) {
        double mean, variance;
        moments(&set, column, 3, &mean, &variance);
        cr_assert_float_eq(mean, 0, 1e-5);
        cr_assert_float_eq(variance, column == 1 ? 0 : 1, 1e-5);
    }
    cr_assert_eq(set.flat, 0, "a constant column is taken for one that varies");
    for (uint32_t i = 0; i < set.count; i++)
        set.values[3 * i + 2] = i % 2 ? 3e38f : -3e38f; /* 1/sd is below all normal floats */
    cr_assert_eq(dataset_measure(&set), 0);
    cr_assert(set.flat == 1 && set.flat_first == 2 && set.scale[2] == 0);
    dataset_close(&set);
}

Test(dataset, labels_that_are_numbers_are_scaled_as_well)
{
    /* Proves mean, variance and the way back, of tables and images, that a test set has the same,
     * and that numbers which are all one, or too far apart for a scale, are only shifted. */
    for (int images = 0; images < 2; images++) {
        struct dataset set = images ? image_set(100, 3) : table_set(100);
        struct dataset test = images ? image_set(10, 3) : table_set(10);
        double mean = 0, variance = 0;
        test.targets = calloc(test.count, sizeof *test.targets);
        cr_assert_eq(dataset_measure(&set), 0);
        set.targets = calloc(set.count, sizeof *set.targets);
        for (uint32_t i = 0; i < set.count; i++)
            set.targets[i] = 100000 + 700 * (float)(i % 9);
        cr_assert_eq(dataset_measure(&set), 0);
        for (uint32_t i = 0; i < set.count; i++) {
            float scaled = dataset_target(&set, i);
            mean += (double)scaled / set.count;
            variance += (double)(scaled * scaled) / set.count;
            cr_expect_float_eq(dataset_unscale(&set, scaled), set.targets[i], 0.02);
        }
        cr_expect_float_eq(mean, 0, 1e-5);
        cr_expect_float_eq(variance, 1, 1e-5);
        cr_assert_eq(dataset_scale_like(&test, &set), 0);
        cr_expect_arr_eq(test.label, set.label, sizeof set.label);
        for (uint32_t i = 0; i < set.count; i++)
            set.targets[i] = 0.1f;
        cr_assert_eq(dataset_measure(&set), 0);
        cr_expect_eq(set.label[0], 0.1f);
        cr_expect_eq(set.label[1], 1);
        for (uint32_t i = 0; i < set.count; i++)
            set.targets[i] = i % 2 ? 3e38f : -3e38f;
        cr_assert_eq(dataset_measure(&set), 0);
        cr_expect_eq(set.label[1], 1);
        dataset_close(&set);
        dataset_close(&test);
    }
}

Test(dataset, labels_are_scaled_though_floats_do_not_tell_them_apart)
{
    /* Proves that the mean is taken off before anything is rounded, that equal labels have no scale
     * however their mean is rounded, and that what even so carries nothing is noted. */
    static const struct {
        double base, step;
        bool flat;
        double error; /* of the way back, in steps */
    } cases[] = {
        {1700000000, 1000, false, 1e-6}, {1700000000, 100, false, 1e-5}, {16777216, 1, false, 1e-5},
        {1e12, 1, true, 1e12},           {0.1, 0, false, 1e12},          {1e-50, 1e-50, true, 1e12},
        {1.0 / 3, 0, false, 1e12},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct dataset set = table_set(99);
        double mean = 0, squares = 0;
        set.targets = calloc(set.count, sizeof *set.targets);
        for (uint32_t i = 0; i < set.count; i++)
            set.targets[i] = cases[c].base + cases[c].step * (i % 3);
        cr_assert_eq(dataset_measure(&set), 0);
        cr_expect_eq(set.label_flat, cases[c].flat, "%zu", c);
        for (uint32_t i = 0; i < set.count; i++) {
            double back = dataset_unscale(&set, dataset_target(&set, i));
            mean += (double)dataset_target(&set, i) / set.count;
            squares += pow((double)dataset_target(&set, i), 2) / set.count;
            cr_expect_float_eq(back, set.targets[i], cases[c].error * cases[c].step + 1e-7, "%zu",
                               c);
        }
        if (cases[c].step > 0 && !cases[c].flat)
            cr_expect_float_eq(squares - mean * mean, 1, 1e-5, "%zu", c);
        if (cases[c].step == 0) cr_expect_eq(set.label[1], 1, "%zu", c);
        dataset_close(&set);
    }
}

Test(dataset, a_value_that_is_not_finite_is_refused)
{
    /* Proves that NaN and infinity are found before they reach a model. */
    const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) {
        struct dataset set = table_set(10);
        set.values[3 * 4 + 2] = bad[i];
        cr_assert_eq(dataset_measure(&set), PARLEY_EDATA);
        dataset_close(&set);
    }
}

Test(dataset, a_value_far_from_all_others_of_its_column_is_noted)
{
    /* Proves it of either end and of the first of two columns; not of one that is merely large, of
     * two that are far, and of columns that are equal but for one value. */
    static const struct {
        float values[5];
        float far; /* 0: none is */
    } columns[] = {
        {{1, 2, 3, 1e30f, 2}, 1e30f}, {{-2e5f, 2, 3, 4, 5}, -2e5f}, {{1, 2, 3, 9e3f, 2}, 0},
        {{1, 2, 1e30f, 1e30f, 3}, 0}, {{0, 0, 0, 1e30f, 0}, 0},     {{0, 1, 0, 0, 0}, 0},
        {{0, 0, 1, 1e3f, 0}, 0},      {{7, 7, 7, 7, 7}, 0},
    };
    enum { COLUMNS = sizeof columns / sizeof *columns };
    for (uint32_t c = 0; c < COLUMNS; c++) {
        struct dataset set = {.count = 5, .features = 2, .classes = 2};
        set.values = malloc(10 * sizeof *set.values);
        set.labels = calloc(5, sizeof *set.labels);
        for (uint32_t i = 0; i < 5; i++) {
            set.values[2 * i] = columns[c].values[i];
            set.values[2 * i + 1] = i == 2 ? -1e20f : (float)i;
        }
        cr_assert_eq(dataset_find_far(&set), 0);
        bool is = columns[c].far != 0;
        cr_expect_eq(set.far, 1 + is, "column %u: %u", c, set.far);
        cr_expect_eq(set.far_first, !is);
        cr_expect_eq(set.far_value, is ? columns[c].far : -1e20f);
        cr_expect_eq(set.values[2 * (set.far_sample - 1) + !is], set.far_value);
        dataset_close(&set);
    }
}

Test(dataset, a_label_far_from_all_others_is_noted)
{
    /* Proves it beside values of either kind. */
    for (int images = 0; images < 2; images++) {
        struct dataset set = images ? image_set(10, 3) : table_set(10);
        set.targets = calloc(set.count, sizeof *set.targets);
        for (uint32_t i = 0; i < set.count; i++)
            set.targets[i] = i;
        cr_assert_eq(dataset_find_far(&set), 0);
        cr_expect_eq(set.far_label, 0);
        set.targets[6] = -1e6;
        cr_assert_eq(dataset_find_far(&set), 0);
        cr_expect(set.far_label == 7 && set.far_label_value == -1e6, "%u", set.far_label);
        dataset_close(&set);
    }
}

Test(dataset, a_test_set_takes_the_scaling_of_its_training_set)
{
    /* Proves that the pair is copied, may be replaced, and that another shape is refused. */
    struct dataset train = image_set(20, 4), test = image_set(5, 4), other = image_set(5, 5);
    cr_assert_eq(dataset_measure(&train), 0);
    cr_assert_eq(dataset_measure(&test), 0);
    cr_assert_eq(dataset_scale_like(&test, &train), 0);
    cr_assert_eq(test.shift[0], train.shift[0]);
    cr_assert_eq(test.scale[0], train.scale[0]);
    cr_assert_eq(dataset_scale_like(&other, &train), PARLEY_EDATA);
    test.height = 2, test.width = 8; /* as many values */
    cr_assert_eq(dataset_scale_like(&test, &train), PARLEY_EDATA);
    test.channels = 4, test.height = 4, test.width = 1;
    cr_assert_eq(dataset_scale_like(&test, &train), PARLEY_EDATA);
    dataset_close(&train);
    dataset_close(&test);
    dataset_close(&other);
}

Test(dataset, gather_takes_the_rows_asked_for_in_their_order)
{
    /* Proves index, label and value of each gathered row, a row drawn twice included. */
    struct dataset set = image_set(30, 3);
    cr_assert_eq(dataset_measure(&set), 0);
    const uint32_t index[] = {29, 0, 7, 7};
    float x[4 * 9];
    uint16_t labels[4];
    dataset_gather(&set, index, 4, x, labels);
    for (uint32_t i = 0; i < 4; i++) {
        cr_assert_eq(labels[i], index[i]);
        for (uint32_t f = 0; f < 9; f++) {
            float value = ((uint8_t)(index[i] * 7 + f * 3) - set.shift[0]) * set.scale[0];
            cr_assert_float_eq(x[i * 9 + f], value, 1e-6);
        }
    }
    dataset_close(&set);
}

Test(dataset, gathered_pixels_are_the_bytes_and_say_what_they_mean)
{
    struct dataset set = image_set(30, 3);
    cr_assert_eq(dataset_measure(&set), 0);
    const uint32_t index[] = {29, 0, 7, 7, 3, 12};
    float x[6 * 9];
    uint8_t bytes[6 * 9];
    uint16_t labels[6];
    dataset_gather(&set, index, 6, x, labels);
    memset(labels, 0xff, sizeof labels);
    struct pixels pixels = dataset_gather_pixels(&set, index, 6, bytes, labels);
    cr_assert_eq(pixels.bytes, bytes);
    for (uint32_t i = 0; i < 6; i++)
        cr_assert_eq(labels[i], index[i]);
    for (uint32_t i = 0; i < 6 * 9; i++)
        cr_assert_eq(((float)bytes[i] - pixels.shift) * pixels.scale, x[i]);
    dataset_close(&set);
}

Test(dataset, a_split_moves_a_tenth_and_loses_nothing)
{
    /* Proves that both parts together are the set, in order, and that the held part is spread. */
    struct dataset set = image_set(250, 2), held;
    cr_assert_eq(dataset_split(&set, &held), 0);
    cr_assert_eq(set.count + held.count, 250);
    cr_assert_eq(held.count, 25);
    bool seen[250] = {false};
    for (uint32_t i = 0; i < set.count; i++)
        seen[set.labels[i]] = true;
    for (uint32_t i = 0; i < held.count; i++) {
        cr_assert_not(seen[held.labels[i]]);
        seen[held.labels[i]] = true;
        cr_assert_eq(held.labels[i] / 10, i, "one of each ten");
        cr_assert_eq(held.bytes[4 * i], (uint8_t)(held.labels[i] * 7), "bytes go with labels");
    }
    for (uint32_t i = 0; i < 250; i++)
        cr_assert(seen[i]);
    dataset_close(&set);
    dataset_close(&held);
}

Test(dataset, a_split_leaves_something_on_both_sides)
{
    /* Proves the smallest sets: one sample can't be split, two to thirty can, tables as images. */
    for (uint32_t count = 1; count <= 30; count++) {
        struct dataset set = table_set(count), held;
        int error = dataset_split(&set, &held);
        cr_assert_eq(error, count < 2 ? PARLEY_EDATA : 0);
        if (!error) {
            cr_assert(set.count > 0 && held.count > 0 && set.count + held.count == count);
            dataset_close(&held);
        }
        dataset_close(&set);
    }
}
