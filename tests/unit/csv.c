/* csv.c: tables as text, well-formed and not. */
#include "data/formats/csv.h"

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "damage.h"
#include "data/formats/number.h"

static char why[512];

/* A copy of the exact size, so that the sanitizers see a byte read too far. */
static int load_bytes(struct dataset *set, struct rows_shape *shape, const char *text, size_t size,
                      const char *label, bool test)
{
    uint8_t *copy = malloc(size + !size);
    memcpy(copy, text, size);
    int error =
        csv_load(set, shape, (struct bytes){copy, size, "t.csv"}, label, test, why, sizeof why);
    free(copy);
    return error;
}

static int load(struct dataset *set, struct rows_shape *shape, const char *text, const char *label,
                bool test)
{
    return load_bytes(set, shape, text, strlen(text), label, test);
}

static void expect_set(const char *text, const char *label, uint32_t count, uint32_t features,
                       const float *values, const uint16_t *labels, const char *classes)
{
    struct dataset set;
    struct rows_shape shape = {0};
    char list[200];
    cr_assert_eq(load(&set, &shape, text, label, false), 0, "%s", why);
    cr_assert_eq(set.count, count);
    cr_assert_eq(set.features, features);
    for (uint32_t i = 0; i < count * features; i++)
        cr_expect_eq(set.values[i], values[i], "%s: value %u is %g", text, i,
                     (double)set.values[i]);
    for (uint32_t i = 0; i < count; i++)
        cr_expect_eq(set.labels[i], labels[i], "%s: label %u is %u", text, i, set.labels[i]);
    cr_expect_str_eq(names_list(&shape.classes, list, sizeof list), classes);
    cr_expect_eq(set.classes, shape.classes.count);
    dataset_close(&set);
    rows_shape_close(&shape);
}

static void expect_refused(const char *text, const char *label, const char *expected)
{
    struct dataset set;
    struct rows_shape shape = {0};
    cr_expect_eq(load(&set, &shape, text, label, false), PARLEY_EDATA, "accepted: %s", text);
    cr_expect_str_eq(why, expected);
    cr_expect_null(set.values);
    cr_expect_null(set.labels);
    rows_shape_close(&shape);
}

Test(csv, rows_are_read_with_and_without_header_quotes_blanks_and_line_ends)
{
    /* Proves that all ways to write one table read as that table. */
    static const char *const same[] = {
        "1,2.5,x\n-3,4e2,y\n",
        "1,2.5,x\r\n-3,4e2,y\r\n",
        "1,2.5,x\n-3,4e2,y",
        "\n1 , 2.5,\tx \n\n  \n-3,4e2,\"y\"\n\n",
        "\"1\",\"2.5\",\"x\"\n\"-3\" , \"4e2\" ,y\n",
        "a,b,c\n1,2.5,x\n-3,4e2,y\n",
        "\"a\",,\"c, \"\"d\"\"\ne\"\n1,2.5,x\n-3,+400,y\n",
        "\357\273\2771,2.5,x\n-3,4e2,y\n",
    };
    const float values[] = {1, 2.5f, -3, 400};
    const uint16_t labels[] = {0, 1};
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++)
        expect_set(same[i], NULL, 2, 2, values, labels, "\"x\", \"y\"");
}

Test(csv, a_first_line_is_a_header_if_it_names_or_counts_the_columns)
{
    /* Proves that numbered columns are no sample, that two or three numbers are one, and that a
     * sample which lacks a value is not taken for a header and lost. */
    const float values[] = {7, 8, 9, 6}, six[] = {0, 1, 2, 7, 8, 9};
    const uint16_t labels[] = {0, 1};
    expect_set("0,1,2,3,4\n7,8,9,6,x\n", NULL, 1, 4, values, labels, "\"x\"");
    expect_set("0,1,2,3,kind\n7,8,9,6,x\n", NULL, 1, 4, values, labels, "\"x\"");
    expect_set(",0,1,2,3\n7,8,9,6,x\n", NULL, 1, 4, values, labels, "\"x\"");
    expect_set(",0,1\n7,8,x\n", NULL, 1, 2, values, labels, "\"x\"");
    expect_set("kind,0,1,2,3\nx,7,8,9,6\n", "1", 1, 4, values, labels, "\"x\"");
    expect_set("0,1,2,3,4\n7,8,x,9,6\n", "2", 1, 4, values, labels, "\"x\"");
    expect_set(",0,1,2,3\n7,8,x,9,6\n", "1", 1, 4, values, labels, "\"x\"");
    expect_set(",b,?,NA,k\n7,8,9,6,x\n", NULL, 1, 4, values, labels, "\"x\"");
    expect_set(",k\n7,x\n", NULL, 1, 1, values, labels, "\"x\"");
    expect_set("1,2,3,4,5\n7,8,9,6,x\n", NULL, 1, 4, values, labels, "\"x\"");
    expect_set("1,2,3,4,kind\n7,8,9,6,x\n", NULL, 1, 4, values, labels, "\"x\"");
    expect_set(",1,2\n7,8,x\n", NULL, 1, 2, values, labels, "\"x\"");
    expect_set("0,1,2,w\n7,8,9,x\n", NULL, 2, 3, six, labels, "\"w\", \"x\"");
    expect_set("2,3,4,5,x\n", NULL, 1, 4, (const float[]){2, 3, 4, 5}, labels, "\"x\"");
    expect_refused("0,1,3,4,x\n7,8,9,6\n", NULL,
                   "t.csv:2: found 4 columns, expected 5 as in the first line");
    expect_refused("7,,x\n8,9,y\n", NULL,
                   "t.csv:1: column 2: found nothing, expected a number; fill in what is missing, "
                   "or leave the row out");
    expect_refused("7,?,x\n8,9,y\n", NULL,
                   "t.csv:1: column 2: found \"?\", expected a number; fill in what is missing, or "
                   "leave the row out");
    expect_refused("NA,7,x\n8,9,y\n", NULL,
                   "t.csv:1: column 1: found \"NA\", expected a number; fill in what is missing, "
                   "or leave the row out");
    expect_refused("7,-inf,x\n8,9,y\n", NULL,
                   "t.csv:1: column 2: found \"-inf\", expected a number");
    expect_refused("1e99,7,x\n8,9,y\n", NULL,
                   "t.csv:1: column 1: found \"1e99\", expected a number");
}

Test(csv, a_first_line_is_a_header_if_its_label_alone_is_no_number)
{
    /* Proves that columns named by years are no sample and "label" no class, neither in a test
     * file; and that a class which is a name stays one where others are, or it comes again. */
    const float values[] = {7, 8, 9, 6}, six[] = {2020, 2021, 7, 8, 9, 6};
    struct dataset set;
    struct rows_shape shape = {0};
    expect_set("2020,2021,label\n7,8,1\n9,6,0\n", NULL, 2, 2, values, (const uint16_t[]){1, 0},
               "\"0\", \"1\"");
    expect_set("label,2020,2021\n1,7,8\n0,9,6\n", "1", 2, 2, values, (const uint16_t[]){1, 0},
               "\"0\", \"1\"");
    expect_set("2020,2021,b\n7,8,1\n9,6,a\n", NULL, 3, 2, six, (const uint16_t[]){2, 0, 1},
               "\"1\", \"a\", \"b\"");
    expect_set("2020,2021,b\n7,8,1\n9,6,b\n", NULL, 3, 2, six, (const uint16_t[]){1, 0, 1},
               "\"1\", \"b\"");
    expect_set("2020,2021,NA\n7,8,1\n9,6,1\n", NULL, 3, 2, six, (const uint16_t[]){1, 0, 0},
               "\"1\", \"NA\"");
    for (int numbers = 0; numbers < 2; numbers++) {
        shape.numbers = numbers;
        cr_assert_eq(load(&set, &shape, "2020,2021,label\n7,8,1\n", NULL, false), 0, "%s", why);
        cr_expect(set.count == 1 && set.values[0] == 7 && shape.columns.count == 3);
        dataset_close(&set);
        cr_assert_eq(load(&set, &shape, "2020,2021,label\n9,6,1\n", NULL, true), 0, "%s", why);
        cr_expect(set.count == 1 && set.values[0] == 9);
        dataset_close(&set);
        rows_shape_close(&shape);
    }
}

Test(csv, columns_that_vary_by_less_than_floats_tell_apart_are_counted)
{
    /* Proves that neither a constant column nor one that varies is among them, whatever row is the
     * first to differ, or is a header that was read as a row. */
    static const struct {
        const char *text;
        uint32_t flat, first;
    } cases[] = {
        {"7,1700000000,1,x\n7,1700000001,2,y\n7.0,1700000000,1,x\n", 1, 1},
        {"1,1e-50,x\n1,1e-50,y\n1,2e-50,x\n", 1, 1},
        {"100000001,100000001,x\n100000001,100000000,x\n100000002,100000900,x\n", 1, 0},
        {"1700000000,5,x\n17e8,5,y\n", 0, 0},
        {"2020,2021,label\n7,1700000000,1\n7,1700000000,2\n", 0, 0},
        {"2020,2021,label\n7,1700000000,1\n7,1700000001,2\n", 1, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dataset set;
        struct rows_shape shape = {0};
        cr_assert_eq(load(&set, &shape, cases[i].text, NULL, false), 0, "%s", why);
        cr_expect(set.flat == cases[i].flat && set.flat_first == cases[i].first, "%zu: %u, from %u",
                  i, set.flat, set.flat_first);
        dataset_close(&set);
        rows_shape_close(&shape);
    }
}

Test(csv, the_label_is_a_column_by_name_or_number)
{
    /* Proves each way to name it, and that the values beside it keep their order. */
    const float values[] = {1, 2, 3, 4};
    const uint16_t labels[] = {1, 0};
    expect_set("x,1,2\na,3,4\n", "1", 2, 2, values, labels, "\"a\", \"x\"");
    expect_set("k,a,b\nx,1,2\na,3,4\n", "k", 2, 2, values, labels, "\"a\", \"x\"");
    expect_set("a,k,b\n1,x,2\n3,a,4\n", "k", 2, 2, values, labels, "\"a\", \"x\"");
    expect_set("a,k,b\n1,x,2\n3,a,4\n", "2", 2, 2, values, labels, "\"a\", \"x\"");
    expect_set("0,1,k\n1,2,x\n3,4,a\n", "k", 2, 2, values, labels, "\"a\", \"x\"");
    expect_set("1,2,x\n3,4,a\n", "3", 2, 2, values, labels, "\"a\", \"x\"");
    /* A year is no number of a column. */
    expect_set("m,2019,2020\n1,2,x\n3,4,a\n", "2020", 2, 2, values, labels, "\"a\", \"x\"");
    expect_set("2020,m,n\nx,1,2\na,3,4\n", "2020", 2, 2, values, labels, "\"a\", \"x\"");
    expect_set("m,2,1\n1,x,2\n3,a,4\n", "2", 2, 2, values, labels, "\"a\", \"x\"");
    /* What begins with a sign is a name. */
    expect_set("m,+1,1\n1,x,2\n3,a,4\n", "+1", 2, 2, values, labels, "\"a\", \"x\"");
}

Test(csv, classes_are_in_order_of_value_or_of_bytes_whatever_the_order_of_rows)
{
    /* Proves that two files with the same rows in other orders have the same classes. */
    const float values[] = {0, 0, 0};
    expect_set("0,10\n0,9\n0,b\n", NULL, 3, 1, values, (const uint16_t[]){0, 1, 2},
               "\"10\", \"9\", \"b\"");
    expect_set("0,10\n0,9\n0,11\n", NULL, 3, 1, values, (const uint16_t[]){1, 0, 2},
               "\"9\", \"10\", \"11\"");
}

Test(csv, labels_that_are_numbers_are_told_apart_by_value)
{
    /* Proves that equal numbers are one class, called as it was first written, unless others are
     * no numbers; and that a test set, and a model's own list, are read so, too. */
    const float values[] = {0, 0, 0, 0};
    struct dataset set, test;
    struct rows_shape shape = {0}, known = {0};
    char *lines;
    expect_set("0,+1\n0,-0\n0,1.0\n0,0\n", NULL, 4, 1, values, (const uint16_t[]){1, 0, 1, 0},
               "\"-0\", \"+1\"");
    expect_set("0,1\n0,1.0\n0,x\n", NULL, 3, 1, values, (const uint16_t[]){0, 1, 2},
               "\"1\", \"1.0\", \"x\"");
    cr_assert_eq(load(&set, &shape, "0,2\n0,0\n0,1\n", NULL, false), 0, "%s", why);
    cr_assert_eq(rows_write_lines(&shape.classes, &lines), 0);
    cr_assert_eq(rows_read_lines(&known.classes, lines), 0);
    known.features = 1;
    for (int own = 0; own < 2; own++) {
        struct rows_shape *as = own ? &known : &shape;
        cr_assert_eq(load(&test, as, "0,1.0\n0,0.0\n0,2e0\n0,1\n", NULL, true), 0, "%s", why);
        cr_expect_arr_eq(test.labels, ((uint16_t[]){1, 0, 2, 1}), 4 * sizeof *test.labels);
        dataset_close(&test);
        cr_expect_eq(load(&test, as, "0,1.5\n", NULL, true), PARLEY_EDATA);
        cr_expect_eq(load(&test, as, "0,3\n", NULL, true), PARLEY_EDATA);
    }
    free(lines);
    dataset_close(&set);
    rows_shape_close(&shape);
    rows_shape_close(&known);
}

Test(csv, a_bad_field_or_row_is_named_with_line_column_and_what_was_found)
{
    /* Proves the position and the words of each refusal. */
    expect_refused("", NULL, "t.csv: nothing in it, expected rows of values and a label");
    expect_refused("a,k\r1,x\r2,y\r", NULL,
                   "t.csv: its lines end with CR alone, expected LF or CR LF");
    expect_refused("\377\376a", NULL, "t.csv: a file in UTF-16, expected UTF-8");
    expect_refused("\n \n", NULL, "t.csv: nothing in it, expected rows of values and a label");
    expect_refused("a,b\n", NULL, "t.csv: a header and no rows");
    expect_refused("1\n", NULL,
                   "t.csv:1: found 1 column, expected values and a label with commas between");
    expect_refused("1;2;x\n", NULL,
                   "t.csv:1: found 1 column, divided by \";\", expected values and a label with "
                   "commas between");
    expect_refused("a\tb\tk\n1\t2\tx\n", NULL,
                   "t.csv:1: found 1 column, divided by tabs, expected values and a label with "
                   "commas between");
    expect_refused(
        "1,2,x\n\n3,abc,x\n", NULL,
        "t.csv:3: column 2: found \"abc\", expected a number; write a text column as one of "
        "0 and 1 for each value");
    expect_refused("len,wid,k\n1,,x\n", NULL,
                   "t.csv:2: column 2 (\"wid\"): found nothing, expected a number; fill in what is "
                   "missing, or leave the row out");
    expect_refused("a,k\n1,\"x\ny\"\nnan,x\n", NULL,
                   "t.csv:4: column 1 (\"a\"): found \"nan\", expected a number; fill in what is "
                   "missing, or leave the row out");
    expect_refused("1,x\n1e39,x\n", NULL, "t.csv:2: column 1: found \"1e39\", expected a number");
    expect_refused("1,x\n2,\n", NULL, "t.csv:2: column 2: found nothing, expected a label");
    expect_refused("1,2,x\n3,x\n", NULL,
                   "t.csv:2: found 2 columns, expected 3 as in the first line");
    expect_refused("1,x\n3\n", NULL, "t.csv:2: found 1 column, expected 2 as in the first line");
    expect_refused("1,x\n3,x,4\n", NULL, "t.csv:2: more than 2 columns, which the first line has");
    expect_refused("1,x\n3,\"x\n\n", NULL, "t.csv:2: column 2: a quote is opened and never closed");
    expect_refused("1,x\n\"3\"4,x\n", NULL,
                   "t.csv:2: column 1: found \"4\" after a closing quote, expected a comma");
    expect_refused("a,b,k\n1,2,x\n", "kind",
                   "t.csv: no column \"kind\" for the label; there are 3, by number or by what "
                   "stands in line 1: \"a\", \"b\", \"k\"");
    expect_refused("\na,b,k\n1,2,x\n", "4",
                   "t.csv: no column \"4\" for the label; there are 3, by number or by what stands "
                   "in line 2: \"a\", \"b\", \"k\"");
    expect_refused("\na,k,b,k\n1,2,3,x\n", "k",
                   "t.csv:2: \"k\" stands twice in the header, over columns 2 and 4; say by its "
                   "number which is the label, like label=4");
    expect_refused("7,8,1\n9,6,0\n", "8",
                   "t.csv: no column \"8\" for the label; there are 3, by number or by what stands "
                   "in line 1: \"7\", \"8\", \"1\"");
}

Test(csv, what_was_found_is_shown_in_its_own_letters)
{
    /* Proves that UTF-8 comes through, is cut between two characters only, and that what is none,
     * would move a terminal or could not be seen does not. */
    static const float values[] = {0, 0, 0};
    char found[64];
    expect_set("0,gr\xc3\xbcn\n0,\xd0\xb6\n0,\x1b[1m\xff\n", NULL, 3, 1, values,
               (const uint16_t[]){1, 2, 0}, "\"\\x1b[1m\\xff\", \"gr\xc3\xbcn\", \"\xd0\xb6\"");
    expect_refused("h\xc3\xb6he,k\n1,x\nzw\xc3\xb6lf,x\n", NULL,
                   "t.csv:3: column 1 (\"h\xc3\xb6he\"): found \"zw\xc3\xb6lf\", expected a "
                   "number; write a text column as one of 0 and 1 for each value");
    cr_expect_str_eq(number_found(found, "1\xe2\x80\x8b", 4), "\"1\\xe2\\x80\\x8b\"");
    cr_expect_str_eq(number_found(found, "\357\273\2771", 4), "\"\\xef\\xbb\\xbf1\"");
    static const char longest[] = "123456789012345678901234567890123456789\xc3\xbc";
    cr_expect_str_eq(number_found(found, longest, sizeof longest - 1),
                     "\"123456789012345678901234567890123456789...\"");
    cr_expect_str_eq(number_found(found, longest + 1, sizeof longest - 2),
                     "\"23456789012345678901234567890123456789\xc3\xbc\"");
    cr_expect_str_eq(number_found(found, longest, sizeof longest - 2),
                     "\"123456789012345678901234567890123456789...\"");
    cr_expect_str_eq(number_found(found, "\"?\\", 3), "\"\\\"?\\\\\"");
}

Test(csv, a_test_set_has_the_columns_and_classes_of_its_training_set)
{
    /* Proves that classes keep their numbers, and each way in which the two may not fit. */
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"1,2,z\n", "t.csv:1: column 3 (\"k\"): found \"z\", which is no label of the training "
                    "data: \"x\", \"y\""},
        {"1,x\n", "t.csv:1: 2 columns, expected 3 as in the training data"},
        {"b,a,k\n1,2,x\n",
         "t.csv:1: column 1 (\"a\"): found \"b\", expected \"a\" as in the training data"},
        {"a,k,b\n1,x,2\n",
         "t.csv:1: column 2 (\"b\"): found \"k\", expected \"b\" as in the training data"},
    };
    struct dataset set, test;
    struct rows_shape shape = {0};
    cr_assert_eq(load(&set, &shape, "a,b,k\n1,2,y\n3,4,x\n", NULL, false), 0);
    cr_assert_eq(load(&test, &shape, "9,9,y\n", NULL, true), 0, "%s", why);
    cr_assert_eq(test.labels[0], 1);
    cr_assert_eq(test.classes, 2);
    dataset_close(&test);
    cr_assert_eq(load(&test, &shape, "a,b,k\n9,9,x\n", NULL, true), 0, "%s", why);
    cr_assert_eq(test.labels[0], 0);
    dataset_close(&test);
    cr_assert_eq(load(&test, &shape, "k,a,b\nx,8,9\n", "k", true), 0, "%s", why);
    cr_assert(test.labels[0] == 0 && test.values[0] == 8 && test.values[1] == 9);
    dataset_close(&test);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_expect_eq(load(&test, &shape, bad[i].text, NULL, true), PARLEY_EDATA);
        cr_expect_str_eq(why, bad[i].why);
    }
    dataset_close(&set);
    rows_shape_close(&shape);
    shape = (struct rows_shape){0};
    cr_assert_eq(load(&set, &shape, "k,a,b\nx,3,4\n", "k", false), 0);
    cr_expect_eq(load(&test, &shape, "b,a,k\n1,2,x\n", "k", true), PARLEY_EDATA);
    cr_expect_str_eq(why, "t.csv:1: column 1: found \"b\", expected \"a\" as in the training data");
    dataset_close(&set);
    rows_shape_close(&shape);
}

Test(csv, long_names_and_many_classes_stay_within_their_limits)
{
    /* Proves the limits of a name (1024 bytes) and of classes (65536), from both sides. */
    size_t size = 0, room = 1 << 20;
    char *text = malloc(room);
    struct dataset set;
    struct rows_shape shape = {0};
    for (uint32_t i = 0; i < 65536; i++)
        size += (size_t)snprintf(text + size, room - size, "0,c%u\n", i);
    cr_assert_eq(load_bytes(&set, &shape, text, size, NULL, false), 0, "%s", why);
    cr_assert_eq(set.classes, 65536);
    dataset_close(&set);
    rows_shape_close(&shape);
    size += (size_t)snprintf(text + size, room - size, "0,more\n");
    cr_assert_eq(load_bytes(&set, &shape, text, size, NULL, false), PARLEY_EDATA);
    cr_assert(strstr(why, "t.csv:65537: column 2: found \"more\", after 65536"), "%s", why);
    rows_shape_close(&shape);
    static const size_t lengths[] = {1023, 1024, 1025, 1026, 5000};
    for (int l = 0; l < 5; l++) {
        size_t length = lengths[l];
        for (int quoted = 0; quoted < 2; quoted++) {
            size = (size_t)sprintf(text, quoted ? "0,\"" : "0,");
            memset(text + size, 'a', length);
            strcpy(text + size + length, quoted ? "\"\n" : "\n");
            int error = load(&set, &shape, text, NULL, false);
            cr_assert_eq(error, length <= 1024 ? 0 : PARLEY_EDATA, "%zu: %s", length, why);
            if (error) cr_assert_str_eq(why, "t.csv:1: column 2: longer than 1024 bytes");
            dataset_close(&set);
            rows_shape_close(&shape);
        }
    }
    size = (size_t)sprintf(text, "0,\"");
    for (int row = 0; row < 1000; row++)
        size += (size_t)sprintf(text + size, "0,x\n");
    expect_refused(text, NULL,
                   "t.csv:1: column 2: a quote is opened and not closed within 1024 bytes");
    free(text);
}

Test(csv, damaged_files_are_refused_or_read_but_never_overrun)
{
    /* Proves by 20,000 random changes and every cut, under the sanitizers, that nothing is read or
     * written past its end, and that each refusal says why. */
    static const char good[] = "a,\"b \"\"c\"\"\",k\n1,2,x\n3.5,-4e1,\"y, z\"\n\n5,6,x\n";
    static const char pool[] = ",,\"\"\n\n\r ae0-.+19";
    struct rng rng = rng_init(1, 1);
    for (uint32_t t = 0; t < 20000; t++) {
        char text[sizeof good - 1];
        size_t size = damage(text, good, sizeof text, pool, t, &rng);
        struct dataset set;
        struct rows_shape shape = {0};
        why[0] = 0;
        int error = load_bytes(&set, &shape, text, size, t % 3 ? NULL : "2", false);
        cr_assert(error == 0 || (error == PARLEY_EDATA && strncmp(why, "t.csv:", 6) == 0));
        for (size_t i = 0; i < (size_t)set.count * set.features; i++)
            cr_assert(isfinite(set.values[i]));
        for (size_t i = 0; i < set.count; i++)
            cr_assert_lt(set.labels[i], set.classes);
        dataset_close(&set);
        rows_shape_close(&shape);
    }
}

Test(csv, numbers_are_read_as_strtod_reads_them)
{
    /* Proves the short way to a number against the C library's, digit by digit and power by power,
     * and what is no number here. */
    static const char *const none[] = {"",    "-",  ".",  "e1", "1e",  "1e+",   "inf",  "nan",
                                       "0x1", "1 ", " 1", "1,", "--1", "1.2.3", "1e5.", "1.8e38"};
    struct rng rng = rng_init(2, 1);
    double value;
    for (int t = 0; t < 20000; t++) {
        char text[64];
        int digits = 1 + (int)rng_below(&rng, 19), point = (int)rng_below(&rng, 20), at = 0;
        if (t % 3 == 0) text[at++] = t % 2 ? '-' : '+';
        for (int d = 0; d < digits; d++) {
            if (d == point) text[at++] = '.';
            text[at++] = (char)('0' + rng_below(&rng, 10));
        }
        if (t % 2) at += sprintf(text + at, "e%d", (int)rng_below(&rng, 36) - 30);
        text[at] = 0;
        double wanted = strtod(text, NULL);
        cr_assert_eq(number_parse(text, (size_t)at, &value), fabs(wanted) <= (double)FLT_MAX / 2,
                     "%s", text);
        if (isfinite((float)wanted)) cr_assert_eq(value, wanted, "%s: %.17g", text, value);
    }
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        cr_expect(!number_parse(none[i], strlen(none[i]), &value), "%s", none[i]);
}

static void expect_lines(const char *text, const char *lines)
{
    struct dataset set;
    struct rows_shape shape = {0}, back = {0};
    char *written;
    cr_assert_eq(load(&set, &shape, text, NULL, false), 0, "%s", why);
    cr_assert_eq(rows_write_lines(&shape.classes, &written), 0);
    if (lines) {
        cr_assert_not_null(written, "%s", text);
        cr_expect_str_eq(written, lines);
        cr_assert_eq(rows_read_lines(&back.classes, written), 0);
        cr_assert_eq(back.classes.size, shape.classes.size);
        cr_expect_arr_eq(back.classes.text, shape.classes.text, shape.classes.size);
    } else
        cr_expect_null(written, "%s", text);
    free(written);
    dataset_close(&set);
    rows_shape_close(&shape);
    rows_shape_close(&back);
}

Test(csv, equal_names_are_not_looked_through_one_by_one)
{
    /* Proves that of equal cells of a first line one alone takes a place in the table that they are
     * looked up in, however often that has grown: else each further one passes by all before. */
    struct names names = {0};
    uint32_t taken = 0;
    for (int i = 0; i < 1000; i++)
        cr_assert_eq(names_add(&names, i == 500 ? "b" : "a", 1), 0);
    for (uint32_t s = 0; s < names.slots_count; s++)
        taken += names.slots[s] != 0;
    cr_expect_eq(taken, 2);
    cr_expect_eq(names_find(&names, "a", 1), 0);
    cr_expect_eq(names_find(&names, "b", 1), 500);
    cr_expect_eq(names_find(&names, "c", 1), NAMES_NONE);
    names_close(&names);
}

Test(csv, names_of_classes_are_written_as_lines_and_read_back)
{
    /* Proves that a model's file gets the names in their order, or none of them where one is of two
     * lines, has a zero byte or is not UTF-8. */
    expect_lines("1,b\n2,a\n", "a\nb");
    expect_lines("1,10\n2,9\n3,11\n", "9\n10\n11");
    expect_lines("1,a\n", "a");
    expect_lines("1,\"x \"\"y\"\"\"\n2,\xe2\x82\xac\t\\\r.\n", "x \"y\"\n\xe2\x82\xac\t\\\r.");
    expect_lines("1,\"a\nb\"\n", NULL);
    expect_lines("1,caf\xe9\n", NULL);
    struct names none = {0}, zero = {0};
    char *written;
    cr_assert_eq(names_add(&zero, "a\0b", 3), 0);
    cr_assert_eq(rows_write_lines(&zero, &written), 0);
    cr_expect_null(written);
    names_close(&zero);
    cr_assert_eq(rows_write_lines(&none, &written), 0);
    cr_expect_null(written);
}
