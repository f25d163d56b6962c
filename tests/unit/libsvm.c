/* libsvm.c: sparse tables, well-formed and not. */
#include "data/formats/libsvm.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "damage.h"

static char why[512];

static int load_bytes(struct dataset *set, struct rows_shape *shape, const char *text, size_t size,
                      bool test)
{
    uint8_t *copy = malloc(size + !size);
    memcpy(copy, text, size);
    int error = libsvm_load(set, shape, (struct bytes){copy, size, "t.svm"}, test, why, sizeof why);
    free(copy);
    return error;
}

static int load(struct dataset *set, struct rows_shape *shape, const char *text, bool test)
{
    return load_bytes(set, shape, text, strlen(text), test);
}

Test(libsvm, rows_become_dense_and_labels_classes)
{
    /* Proves zeros where nothing is named, comments, blank lines, and that 1, +1 and 1.0 are one
     * class. */
    static const float values[] = {0.5f, 0, -2, 0, 0, 0, 0, 7, 0};
    static const uint16_t labels[] = {1, 0, 1};
    struct dataset set;
    struct rows_shape shape = {0};
    cr_assert_eq(load(&set, &shape, "+1 1:0.5 3:-2 # so\r\n\n# none\n -1\n1.0\t2:7", false), 0,
                 "%s", why);
    cr_assert_eq(set.count, 3);
    cr_assert_eq(set.features, 3);
    cr_assert_eq(memcmp(set.values, values, sizeof values), 0);
    cr_assert_eq(memcmp(set.labels, labels, sizeof labels), 0);
    cr_assert_str_eq(names_text(&shape.classes, 0), "-1");
    cr_assert_str_eq(names_text(&shape.classes, 1), "1");
    dataset_close(&set);
    rows_shape_close(&shape);
}

Test(libsvm, a_mark_of_utf_8_is_no_part_of_the_first_label)
{
    /* Proves that it is passed over once, at the beginning, and not counted as a column. */
    struct dataset set;
    struct rows_shape shape = {0};
    cr_assert_eq(load(&set, &shape, "\xef\xbb\xbf+1 1:0.5\n-1 1:2\n", false), 0, "%s", why);
    cr_expect(set.count == 2 && set.features == 1 && set.values[0] == 0.5f);
    cr_expect_str_eq(names_text(&shape.classes, 1), "1");
    dataset_close(&set);
    rows_shape_close(&shape);
    cr_expect_eq(load(&set, &shape, "\xef\xbb\xbfz 1:0.5\n", false), PARLEY_EDATA);
    cr_expect_str_eq(why, "t.svm:1:1: found \"z\", expected a number as label");
    cr_expect_eq(load(&set, &shape, "\xef\xbb\xbf\xef\xbb\xbf+1 1:1\n", false), PARLEY_EDATA);
    cr_expect_eq(load(&set, &shape, "\xef\xbb\xbf", false), PARLEY_EDATA);
}

Test(libsvm, columns_that_vary_by_less_than_floats_tell_apart_are_counted)
{
    /* Proves that what is left out counts as 0, and that a constant column is none of them. */
    static const struct {
        const char *text;
        uint32_t flat, first;
    } cases[] = {
        {"1 1:7 2:16777217\n2 1:7 2:16777216\n", 1, 1},
        {"1 1:1e-50 2:7\n2 2:8\n", 1, 0},
        {"1 2:7\n2 1:1e-50 2:8\n", 1, 0},
        {"1 1:16777217\n2 2:1\n", 0, 0},
        {"1 1:16777217\n2 1:16777217\n", 0, 0},
        {"1 1:0 2:5\n2 2:5\n", 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dataset set;
        struct rows_shape shape = {0};
        cr_assert_eq(load(&set, &shape, cases[i].text, false), 0, "%s", why);
        cr_expect(set.flat == cases[i].flat && set.flat_first == cases[i].first, "%zu: %u, from %u",
                  i, set.flat, set.flat_first);
        dataset_close(&set);
        rows_shape_close(&shape);
    }
}

Test(libsvm, zero_is_one_class_whatever_its_sign)
{
    struct dataset set;
    struct rows_shape shape = {0};
    cr_assert_eq(load(&set, &shape, "0 1:1\n-0 1:1\n-0.0 1:1\n1 1:1\n", false), 0, "%s", why);
    cr_expect_eq(set.classes, 2);
    cr_expect_str_eq(names_text(&shape.classes, 0), "0");
    dataset_close(&set);
    rows_shape_close(&shape);
}

Test(libsvm, long_labels_that_differ_are_different_classes)
{
    /* Proves that labels are not rounded to fewer digits than they have. */
    struct dataset set;
    struct rows_shape shape = {0};
    cr_assert_eq(load(&set, &shape, "12345678901 1:1\n12345678902 1:1\n0.1 1:1\n", false), 0);
    cr_assert_eq(set.classes, 3);
    cr_assert_str_eq(names_text(&shape.classes, 0), "0.1");
    cr_assert_str_eq(names_text(&shape.classes, 2), "12345678902");
    dataset_close(&set);
    rows_shape_close(&shape);
}

Test(libsvm, a_test_set_has_the_features_and_classes_of_its_training_set)
{
    /* Proves that it may name fewer features or more, and no new class. */
    static const float values[] = {0, 2, 3, 0};
    struct dataset set, test;
    struct rows_shape shape = {0};
    cr_assert_eq(load(&set, &shape, "5 1:1 2:1\n4 1:1\n", false), 0);
    cr_assert(set.unseen == 0 && set.unseen_index == 0);
    cr_assert_eq(load(&test, &shape, "5 2:2 9:9\n4 1:3 7:1\n", true), 0, "%s", why);
    cr_assert_eq(test.features, 2);
    cr_assert(test.unseen == 2 && test.unseen_index == 9, "what is left out is not counted");
    cr_assert_eq(memcmp(test.values, values, sizeof values), 0);
    cr_assert_eq(test.labels[0], 1);
    dataset_close(&test);
    cr_assert_eq(load(&test, &shape, "5 1:1\n  6 1:1\n", true), PARLEY_EDATA);
    cr_assert_str_eq(why, "t.svm:2:3: found \"6\", expected a label of the training data: \"4\", "
                          "\"5\"");
    dataset_close(&set);
    rows_shape_close(&shape);
}

Test(libsvm, a_bad_word_is_named_with_line_and_column)
{
    /* Proves the position and the words of each refusal. */
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"", "t.svm: nothing in it, expected lines of LABEL INDEX:VALUE ..."},
        {"1 1:2\r2 1:3\r", "t.svm: its lines end with CR alone, expected LF or CR LF"},
        {"1\n2\n", "t.svm: labels alone, expected lines of LABEL INDEX:VALUE ..."},
        {"x 1:1\n", "t.svm:1:1: found \"x\", expected a number as label"},
        {"1 1:1\n1 7\n",
         "t.svm:2:3: found \"7\", expected INDEX:VALUE, INDEX a whole number from 1 to 16777216"},
        {"1 0:1\n",
         "t.svm:1:3: found \"0:1\", expected INDEX:VALUE, INDEX a whole number from 1 to 16777216"},
        {"1 1.5:1\n", "t.svm:1:3: found \"1.5:1\", expected INDEX:VALUE, INDEX a whole number from "
                      "1 to 16777216"},
        {"1 16777217:1\n", "t.svm:1:3: found \"16777217:1\", expected INDEX:VALUE, INDEX a whole "
                           "number from 1 to 16777216"},
        {"1 qid:3 1:1\n", "t.svm:1:3: found \"qid:3\", expected INDEX:VALUE, INDEX a whole number "
                          "from 1 to 16777216"},
        {"1 2:1 2:1\n", "t.svm:1:7: found \"2:1\", expected a larger index than the one before"},
        {"1 2:1 3:x\n", "t.svm:1:9: found \"x\", expected a number"},
        {"1 2:1 3:\n", "t.svm:1:9: found nothing, expected a number"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct dataset set;
        struct rows_shape shape = {0};
        cr_expect_eq(load(&set, &shape, bad[i].text, false), PARLEY_EDATA, "%s", bad[i].text);
        cr_expect_str_eq(why, bad[i].why);
        cr_expect_null(set.values);
        rows_shape_close(&shape);
    }
}

Test(libsvm, a_zero_byte_is_no_blank)
{
    /* Proves that it is refused within a line, and in front of one. */
    static const struct {
        char text[16];
        const char *why;
    } bad[] = {
        {"1 1:1\0002:5\n", "t.svm:1:5: found \"1\\x002:5\", expected a number"},
        {"1 1:1 \0\n",
         "t.svm:1:7: found \"\\x00\", expected INDEX:VALUE, INDEX a whole number from 1 "
         "to 16777216"},
        {"\0001 1:1\n", "t.svm:1:1: found \"\\x001\", expected a number as label"},
    };
    static const size_t sizes[] = {10, 8, 7};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct dataset set;
        struct rows_shape shape = {0};
        cr_expect_eq(load_bytes(&set, &shape, bad[i].text, sizes[i], false), PARLEY_EDATA);
        cr_expect_str_eq(why, bad[i].why);
        rows_shape_close(&shape);
    }
}

Test(libsvm, a_small_file_can_not_claim_much_memory)
{
    /* Proves the limit on dense rows before they are made. */
    struct dataset set;
    struct rows_shape shape = {0};
    char text[1024] = "1 16777216:1\n";
    for (int i = 0; i < 64; i++)
        strcat(text, "1 1:1\n");
    cr_assert_eq(load(&set, &shape, text, false), PARLEY_EDATA);
    char expected[96];
    snprintf(expected, sizeof expected,
             "t.svm: 65 rows of 16777216 values are kept dense, and more than %" PRIu64 " GiB",
             BYTES_MAX >> 30);
    cr_assert_str_eq(why, expected);
    rows_shape_close(&shape);
}

Test(libsvm, damaged_files_are_refused_or_read_but_never_overrun)
{
    /* Proves by 20,000 random changes and every cut, under the sanitizers, that nothing is read or
     * written past its end. */
    static const char good[] = "+1 1:0.5 3:-2e1 # so\n-1 2:7 12:1\r\n\n3 1:1\n";
    static const char pool[] = "::  \n#.-+e0129";
    struct rng rng = rng_init(1, 1);
    for (uint32_t t = 0; t < 20000; t++) {
        char text[sizeof good - 1];
        size_t size = damage(text, good, sizeof text, pool, t, &rng);
        struct dataset set;
        struct rows_shape shape = {0};
        int error = load_bytes(&set, &shape, text, size, false);
        cr_assert(error == 0 || (error == PARLEY_EDATA && strncmp(why, "t.svm:", 6) == 0));
        for (size_t i = 0; i < set.count; i++)
            cr_assert_lt(set.labels[i], set.classes);
        dataset_close(&set);
        rows_shape_close(&shape);
    }
}
