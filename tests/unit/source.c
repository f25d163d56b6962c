/* source.c: from --data and --test to two sets, with files that are only in memory. */
#include "data/source.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "core/rng.h"
#include "data/remarks.h"

static struct {
    const char *path;
    uint8_t bytes[8192];
    size_t size;
} files[8];
static int files_count;
static char why[512];

static bool exists(const char *path)
{
    for (int i = 0; i < files_count; i++)
        if (strcmp(files[i].path, path) == 0) return true;
    return false;
}

static int read_file(const char *path, uint64_t bytes_max, uint8_t **bytes, size_t *size,
                     char *reason, size_t reason_size)
{
    (void)bytes_max;
    for (int i = 0; i < files_count; i++) {
        if (strcmp(files[i].path, path) != 0) continue;
        if (strcmp(path, "locked") == 0) break;
        *bytes = malloc(files[i].size + 1);
        memcpy(*bytes, files[i].bytes, files[i].size);
        *size = files[i].size;
        return 0;
    }
    snprintf(reason, reason_size, "%s: %s", path, exists(path) ? "not to be read" : "not there");
    return PARLEY_EDATA;
}

static const struct source_reader reader = {exists, read_file};

static void put(const char *path, const void *bytes, size_t size)
{
    files[files_count].path = path;
    memcpy(files[files_count].bytes, bytes, size);
    files[files_count++].size = size;
}

static void put_packed(const char *path, const void *bytes, size_t size)
{
    z_stream z = {0};
    cr_assert_eq(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)(uintptr_t)bytes;
    z.avail_in = (uInt)size;
    z.next_out = files[files_count].bytes;
    z.avail_out = sizeof files[0].bytes;
    cr_assert_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    files[files_count].path = path;
    files[files_count++].size = z.total_out;
    deflateEnd(&z);
}

/* 100 rows of a normal value, one that never changes, and a class. */
static size_t make_csv(char *text, size_t room)
{
    struct rng rng = rng_init(1, 1);
    size_t at = 0;
    for (int i = 0; i < 100; i++)
        at += (size_t)snprintf(text + at, room - at, "%.4f,7.1,%s\n", 50 + 3 * rng_normal(&rng),
                               i % 3 ? "yes" : "no");
    return at;
}

Test(source, a_packed_file_is_the_same_data_as_a_plain_one)
{
    /* Proves .gz for tables, by name and by content, and that the name tells data, not files. */
    char text[4096];
    size_t size = make_csv(text, sizeof text);
    static const char *const specs[] = {"csv:a.csv", "csv:b.csv", "csv:b.csv.gz", "csv:c.csv",
                                        "csv:a.csv,label=3"};
    struct source first, source;
    put("a.csv", text, size);
    put_packed("b.csv.gz", text, size);
    put_packed("c.csv", text, size);
    cr_assert_eq(source_load(&first, &reader, specs[0], NULL, why, sizeof why), 0, "%s", why);
    for (int i = 1; i < 5; i++) {
        cr_assert_eq(source_load(&source, &reader, specs[i], NULL, why, sizeof why), 0, "%s", why);
        cr_expect_str_eq(source.name, first.name);
        cr_expect_eq(source.test.count, 10);
        cr_expect_eq(memcmp(source.test.values, first.test.values, 20 * sizeof(float)), 0);
        source_close(&source);
    }
    source_close(&first);
}

Test(source, data_that_differ_in_their_labels_alone_are_others)
{
    /* Proves that no two nodes train together that call the same class by another name, or fit the
     * same samples to other numbers. */
    static const char *const specs[] = {"csv:t.csv", "csv:t.csv,numbers"};
    static const char *const labels[][2] = {{"5", "6"}, {"5", "6"}, {"6", "5"}, {"5", "7"}};
    for (int s = 0; s < 2; s++) {
        char names[4][SOURCE_NAME_BYTES];
        for (int i = 0; i < 4; i++) {
            struct source source;
            char table[200];
            int size = 0;
            for (int row = 0; row < 10; row++)
                size += snprintf(table + size, sizeof table - (size_t)size, "%d,2,%s\n", row,
                                 labels[i][row % 2]);
            files_count = 0;
            put("t.csv", table, (size_t)size);
            cr_assert_eq(source_load(&source, &reader, specs[s], NULL, why, sizeof why), 0, "%s",
                         why);
            strcpy(names[i], source.name);
            source_close(&source);
            for (int other = 0; other < i; other++)
                cr_expect_eq(strcmp(names[i], names[other]) == 0, i == 1, "%s: %d and %d", specs[s],
                             i, other);
        }
    }
}

Test(source, data_with_other_names_of_columns_are_others)
{
    /* Proves that no two nodes train together whose model files would say different columns, and
     * that neither the label's name nor its place makes a difference. */
    static const char *const tables[] = {"u,v,k\n1,2,x\n3,4,y\n",    "k,u,v\nx,1,2\ny,3,4\n",
                                         "u,v,kind\n1,2,x\n3,4,y\n", "v,u,k\n1,2,x\n3,4,y\n",
                                         "uv,,k\n1,2,x\n3,4,y\n",    "1,2,x\n3,4,y\n"};
    char names[6][SOURCE_NAME_BYTES];
    for (int i = 0; i < 6; i++) {
        struct source source;
        files_count = 0;
        put("t.csv", tables[i], strlen(tables[i]));
        cr_assert_eq(source_load(&source, &reader, i == 1 ? "csv:t.csv,label=k" : "csv:t.csv", NULL,
                                 why, sizeof why),
                     0, "%s", why);
        strcpy(names[i], source.name);
        source_close(&source);
        for (int other = 0; other < i; other++)
            cr_expect_eq(strcmp(names[i], names[other]) == 0, i < 3, "%d and %d", i, other);
    }
}

Test(source, tables_are_scaled_by_their_training_set_and_constant_columns_are_safe)
{
    /* Proves mean 0 and variance 1 of what a batch gets, 0 where a column never changes, and the
     * same scaling of the test set. */
    char text[4096];
    size_t size = make_csv(text, sizeof text);
    struct source source;
    uint32_t index[90];
    float inputs[180];
    uint16_t labels[90];
    double mean = 0, square = 0;
    put("a.csv", text, size);
    cr_assert_eq(source_load(&source, &reader, "csv:a.csv", NULL, why, sizeof why), 0, "%s", why);
    cr_assert(source.train.count == 90 && source.test.count == 10);
    for (uint32_t i = 0; i < 90; i++)
        index[i] = i;
    dataset_gather(&source.train, index, 90, inputs, labels);
    for (int i = 0; i < 90; i++) {
        mean += (double)inputs[2 * i] / 90;
        square += (double)inputs[2 * i] * (double)inputs[2 * i] / 90;
        cr_expect_eq(inputs[2 * i + 1], 0);
    }
    cr_expect_lt(fabs(mean), 1e-5);
    cr_expect_lt(fabs(square - 1), 1e-4);
    cr_expect_eq(source.test.shift[0], source.train.shift[0]);
    cr_expect_eq(source.test.scale[0], source.train.scale[0]);
    source_close(&source);
}

Test(source, the_largest_values_that_are_read_are_scaled_to_finite_ones)
{
    /* Proves it of a column that counts for nothing, and of one that has a scale. */
    static const char rows[] = "-1.7e38,-1.7e38,x\n1.7e38,-1.7e38,y\n";
    static char text[60 * (sizeof rows - 1)];
    struct source source;
    const uint32_t index[] = {0, 1, 2};
    float inputs[6];
    uint16_t labels[3];
    size_t size = 0;
    for (int i = 0; i < 60; i++, size += sizeof rows - 1)
        memcpy(text + size, rows, sizeof rows - 1);
    text[strlen("-1.7e38,")] = '+';
    put("a.csv", text, size);
    cr_assert_eq(source_load(&source, &reader, "csv:a.csv", "csv:a.csv", why, sizeof why), 0, "%s",
                 why);
    cr_expect(source.train.scale[0] == 0 && source.train.scale[1] > 0);
    dataset_gather(&source.train, index, 3, inputs, labels);
    for (int i = 0; i < 6; i++)
        cr_expect(isfinite(inputs[i]), "%d: %g", i, (double)inputs[i]);
    source_close(&source);
}

Test(source, a_saved_model_s_vocabulary_and_window_read_the_text_it_is_tried_on)
{
    /* Proves that numbers go by the model's characters, and not by those of the text at hand. */
    struct dataset alone;
    put("text", "cbabcbabc", 9);
    cr_assert_eq(source_load_test(&alone, &reader, "digits", "text:text",
                                  &(struct source_model){"abcd", NULL, 4, 2, false, NULL}, why,
                                  sizeof why),
                 0, "%s", why);
    cr_expect(alone.count == 4 && alone.features == 2 && alone.text && alone.classes == 4);
    cr_expect(alone.bytes[0] == 2 && alone.bytes[1] == 1 && alone.labels[0] == 0);
    dataset_close(&alone);
    cr_assert_eq(source_load_test(&alone, &reader, "text:text,window=4", NULL,
                                  &(struct source_model){"abcd", NULL, 4, 2, false, NULL}, why,
                                  sizeof why),
                 0, "%s", why);
    cr_expect(alone.count == 1 && alone.features == 4, "a tenth");
    dataset_close(&alone);
    cr_expect_eq(source_load_test(&alone, &reader, "text:text", NULL,
                                  &(struct source_model){"abd", NULL, 3, 2, false, NULL}, why,
                                  sizeof why),
                 PARLEY_EDATA);
    cr_expect(strstr(why, "text:1:1: found a character"), "%s", why);
    cr_expect_eq(source_load_test(&alone, &reader, "digits", NULL,
                                  &(struct source_model){"abc", NULL, 3, 2, false, NULL}, why,
                                  sizeof why),
                 PARLEY_EUSAGE);
    cr_expect_str_eq(
        why, "data \"digits\": the model is one of text; name a text with --data text:FILE");
}

Test(source, a_test_text_has_the_windows_of_the_training_text)
{
    /* Proves that a text is tried as it was trained on, unless it says itself how. */
    static const char train[] = "abcabcbacbacbabcabcbacbacabcabc";
    struct source source;
    put("train", train, sizeof train - 1);
    put("test", "cbabcbabc", 9);
    cr_assert_eq(source_load(&source, &reader, "text:train,window=4", "text:test", why, sizeof why),
                 0, "%s", why);
    cr_expect(source.train.features == 4 && source.test.features == 4 && source.test.count > 0);
    source_close(&source);
    cr_expect_eq(
        source_load(&source, &reader, "text:train,window=4", "text:test,window=3", why, sizeof why),
        PARLEY_EDATA);
    cr_expect(strstr(why, "the test data have 3 values a sample, not 4"), "%s", why);
    source_close(&source);
}

Test(source, a_test_file_keeps_the_classes_and_the_label_column_of_the_training_file)
{
    /* Proves that a class has its number whichever comes first in the test file, also when a
     * saved model is tried, and that all of the training file is then trained on. */
    static const char train[] = "k,v\nb,1\na,2\nc,3\n", test[] = "k,v\nc,9\nb,9\n";
    struct source source;
    struct dataset alone;
    put("train.csv", train, sizeof train - 1);
    put("test.csv", test, sizeof test - 1);
    put("new.csv", "k,v\nd,1\n", 8);
    cr_assert_eq(
        source_load(&source, &reader, "csv:train.csv,label=k", "csv:test.csv", why, sizeof why), 0,
        "%s", why);
    cr_expect(source.train.count == 3 && source.test.count == 2 && source.test.classes == 3);
    cr_expect(source.test.labels[0] == 2 && source.test.labels[1] == 1);
    source_close(&source);
    cr_assert_eq(source_load_test(&alone, &reader, "csv:train.csv,label=k", "csv:test.csv",
                                  &(struct source_model){"", NULL, 3, 1, false, NULL}, why,
                                  sizeof why),
                 0, "%s", why);
    cr_expect(alone.labels[0] == 2 && alone.labels[1] == 1);
    dataset_close(&alone);
    cr_expect_eq(source_load_test(&alone, &reader, "csv:train.csv,label=k", "csv:new.csv",
                                  &(struct source_model){"", NULL, 3, 1, false, NULL}, why,
                                  sizeof why),
                 PARLEY_EDATA);
    cr_expect(strstr(why, "new.csv:2: column 1 (\"k\"): found \"d\", which is no label"), "%s",
              why);
    cr_expect_eq(source_load_test(&alone, &reader, "digits", "csv:test.csv,label=k",
                                  &(struct source_model){"", NULL, 3, 1, false, NULL}, why,
                                  sizeof why),
                 PARLEY_EDATA);
    cr_expect_str_eq(why, "csv:test.csv,label=k: 2 classes where the model has 3; name the model's "
                          "own training data with --data");
    cr_assert_eq(source_load_test(&alone, &reader, "digits", "csv:train.csv,label=k",
                                  &(struct source_model){"", NULL, 3, 1, false, NULL}, why,
                                  sizeof why),
                 0, "%s", why);
    cr_expect(alone.count == 3 && alone.labels[0] == 1 && alone.labels[1] == 0);
    dataset_close(&alone);
}

Test(source, a_saved_model_s_class_names_read_the_table_it_is_tried_on)
{
    /* Proves that a label has the model's number for it, whichever labels the file has and whatever
     * their order, and that a label which the model has not is refused by name. */
    static const struct source_model model = {"", "a\nb\nc", 3, 1, false, NULL};
    struct dataset alone;
    put("few.csv", "k,v\nc,1\nb,1\n", 12);
    put("other.csv", "k,v\nc,1\nz,1\n", 12);
    put("few.svm", "2 1:1\n", 6);
    cr_assert_eq(source_load_test(&alone, &reader, "csv:other.csv,label=k", "csv:few.csv", &model,
                                  why, sizeof why),
                 0, "%s", why);
    cr_expect(alone.count == 2 && alone.classes == 3);
    cr_expect(alone.labels[0] == 2 && alone.labels[1] == 1);
    dataset_close(&alone);
    cr_assert_eq(
        source_load_test(&alone, &reader, "digits", "csv:few.csv,label=k", &model, why, sizeof why),
        0, "%s", why);
    cr_expect(alone.labels[0] == 2 && alone.labels[1] == 1);
    dataset_close(&alone);
    cr_assert_eq(
        source_load_test(&alone, &reader, "csv:few.csv,label=k", NULL, &model, why, sizeof why), 0,
        "%s", why);
    cr_expect(alone.count == 1 && alone.classes == 3, "a tenth");
    dataset_close(&alone);
    cr_expect_eq(
        source_load_test(&alone, &reader, "csv:other.csv,label=k", NULL, &model, why, sizeof why),
        PARLEY_EDATA);
    cr_expect_str_eq(why, "other.csv:3: column 1 (\"k\"): found \"z\", which is no label of the "
                          "training data: \"a\", \"b\", \"c\"");
    cr_assert_eq(source_load_test(&alone, &reader, "libsvm:few.svm", "libsvm:few.svm",
                                  &(struct source_model){"", "1\n2", 2, 1, false, NULL}, why,
                                  sizeof why),
                 0, "%s", why);
    cr_expect(alone.count == 1 && alone.labels[0] == 1);
    dataset_close(&alone);
}

/* The head of a file of this type and shape; returns its size. */
static size_t put_head(uint8_t *file, const char *type, const char *shape)
{
    int size = sprintf((char *)file + 10, "{'descr': '%s', 'fortran_order': False, 'shape': %s}",
                       type, shape);
    memcpy(file, "\x93NUMPY\1\0", 8);
    file[8] = (uint8_t)size;
    file[9] = 0;
    return 10 + (size_t)size;
}

Test(source, arrays_and_sparse_tables_are_read_too)
{
    /* Proves the way from spec to parser, for a directory and for a file. */
    uint8_t x[128], y[128];
    char rows[2048] = "";
    struct source source;
    size_t x_at = put_head(x, "|u1", "(20, 2)"), y_at = put_head(y, "|u1", "(20,)");
    for (int i = 0; i < 20; i++) {
        x[x_at + 2 * (size_t)i] = (uint8_t)i;
        x[x_at + 2 * (size_t)i + 1] = 3;
        y[y_at + (size_t)i] = (uint8_t)(i % 2);
        sprintf(rows + strlen(rows), "%d 1:%d\n", i % 2 ? 7 : -7, i);
    }
    put_packed("d/x.npy.gz", x, x_at + 40);
    put("d/y.npy", y, y_at + 20);
    put("rows", rows, strlen(rows));
    cr_assert_eq(source_load(&source, &reader, "npy:d", NULL, why, sizeof why), 0, "%s", why);
    cr_expect(source.train.count == 18 && source.test.count == 2 && source.train.features == 2);
    source_close(&source);
    cr_assert_eq(source_load(&source, &reader, "libsvm:rows", NULL, why, sizeof why), 0, "%s", why);
    cr_expect(source.train.count == 18 && source.train.features == 1 && source.train.classes == 2);
    source_close(&source);
}

/* Loads the inputs for a model of two values and these classes, and expects 1, 2 and 3, 4. */
static void expect_inputs(const char *spec, uint32_t classes)
{
    const struct source_model model = {"", "a\nb", classes, 2, classes == 1, NULL};
    struct dataset set;
    cr_assert_eq(source_load_inputs(&set, &reader, spec, &model, why, sizeof why), 0, "%s", why);
    cr_expect(set.count == 2 && set.features == 2 && set.classes == classes, "%s", spec);
    cr_expect((set.targets != NULL) == (classes == 1), "%s", spec);
    for (int i = 0; i < 4; i++)
        cr_expect_eq(set.values ? set.values[i] : set.bytes[i], i + 1, "%s: value %d", spec, i);
    for (int i = 0; i < 2; i++)
        cr_expect_eq(set.labels[i], 0);
    dataset_close(&set);
}

Test(source, a_model_may_be_asked_about_samples_with_labels_of_any_kind_or_none)
{
    /* Proves that all samples come in their order, that what is labelled is passed over wherever it
     * stands, and that a missing label moves no value; of images, too. */
    static const char *const specs[] = {
        "csv:bare.csv",    "csv:headed.csv", "csv:last.csv", "csv:first.csv,label=k",
        "libsvm:bare.svm", "libsvm:odd.svm", "npy:d",        "idx:i"};
    static const uint8_t images[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 1, 2, 3, 4};
    uint8_t x[128];
    size_t at = put_head(x, "|u1", "(2, 2)");
    memcpy(x + at, images + 16, 4);
    put("d/x.npy", x, at + 4);
    put("i/train-images-idx3-ubyte", images, sizeof images);
    put("bare.csv", "1,2\n3,4\n", 8);
    put("headed.csv", "u,v\n1,2\n3,4\n", 12);
    put("last.csv", "u,v,k\n1,2,what\n3,4,\n", 20);
    put("first.csv", "k,u,v\nwhat,1,2\n,3,4\n", 20);
    put("bare.svm", "1:1 2:2\n1:3 2:4\n", 16);
    put("odd.svm", "? 1:1 2:2\n7 1:3 2:4\n", 20);
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        expect_inputs(specs[i], 2);
        expect_inputs(specs[i], 1);
    }
}

Test(source, inputs_have_the_columns_of_the_model_in_their_order)
{
    /* Proves that a table whose columns have changed places, or with one more before them, is no
     * input, be it asked about or tried on; and that the label may stand anywhere, or a header be
     * missing. */
    static const struct source_model model = {"", "x\ny", 2, 2, false, "u\nv"},
                                     number = {"", NULL, 1, 2, true, "u\nv"};
    static const char *const good[] = {"csv:last.csv", "csv:first.csv,label=k", "csv:plain.csv"};
    static const struct {
        const char *spec, *why;
    } bad[] = {
        {"csv:turned.csv",
         "turned.csv:1: column 1: found \"v\", expected \"u\" as in the training data"},
        {"csv:numbered.csv",
         "numbered.csv:1: column 1: found nothing, expected \"u\" as in the training data"},
    };
    struct dataset set;
    put("last.csv", "u,v,k\n1,2,x\n3,4,y\n", 18);
    put("first.csv", "k,u,v\nx,1,2\ny,3,4\n", 18);
    put("plain.csv", "1,2,x\n3,4,y\n", 12);
    put("turned.csv", "v,u,k\n1,2,3\n3,4,3\n", 18);
    put("numbered.csv", ",u,v\n0,1,2\n1,3,4\n", 17);
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        cr_assert_eq(source_load_inputs(&set, &reader, good[i], &model, why, sizeof why), 0, "%s",
                     why);
        cr_expect(set.count == 2 && set.values[0] == 1 && set.values[3] == 4, "%s", good[i]);
        dataset_close(&set);
        cr_assert_eq(source_load_test(&set, &reader, "digits", good[i], &model, why, sizeof why), 0,
                     "%s", why);
        cr_expect(set.values[0] == 1 && set.values[3] == 4 && set.labels[1] == 1, "%s", good[i]);
        dataset_close(&set);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_expect_eq(source_load_inputs(&set, &reader, bad[i].spec, &model, why, sizeof why),
                     PARLEY_EDATA);
        cr_expect_str_eq(why, bad[i].why);
        cr_expect_eq(
            source_load_test(&set, &reader, "digits", bad[i].spec, &model, why, sizeof why),
            PARLEY_EDATA);
        cr_expect_str_eq(why, bad[i].why);
        cr_expect_eq(
            source_load_test(&set, &reader, "digits", bad[i].spec, &number, why, sizeof why),
            PARLEY_EDATA);
        cr_expect_str_eq(why, bad[i].why);
        cr_expect_eq(source_load_test(&set, &reader, bad[i].spec, NULL, &number, why, sizeof why),
                     PARLEY_EDATA);
        cr_expect_str_eq(why, bad[i].why);
    }
}

Test(source, inputs_of_another_width_are_refused)
{
    static const struct source_model wide = {"", NULL, 2, 5, false, NULL},
                                     text = {"\na", NULL, 2, 2, false, NULL};
    struct dataset set;
    put("bare.csv", "1,2\n3,4\n", 8);
    cr_expect_eq(source_load_inputs(&set, &reader, "csv:bare.csv", &wide, why, sizeof why),
                 PARLEY_EDATA);
    cr_expect_str_eq(why,
                     "bare.csv:1: 2 columns, expected 6 as in the training data, or 5 without a "
                     "label");
    put("divided.csv", "1;2;3;4;5\n", 10);
    cr_expect_eq(source_load_inputs(&set, &reader, "csv:divided.csv", &wide, why, sizeof why),
                 PARLEY_EDATA);
    cr_expect_str_eq(why,
                     "divided.csv:1: 1 column, divided by \";\", expected 6 as in the training "
                     "data, or 5 without a label");
    cr_expect_eq(source_load_inputs(&set, &reader, "csv:bare.csv", &text, why, sizeof why),
                 PARLEY_EUSAGE);
    cr_expect_str_eq(why, "the model is one of text: model sample goes on with one");
}

Test(source, an_empty_line_that_may_be_an_input_is_refused_not_passed_over)
{
    /* Proves it where a sample without a label may have nothing on its line, and that no line at
     * the end, of a note, or among labelled ones is one. */
    static const struct source_model model = {"", NULL, 2, 1, false, NULL};
    static const struct {
        const char *spec, *bytes, *why;
    } cases[] = {
        {"libsvm:t", "1:1\n \n1:3\n",
         "t:2: an empty line among samples without labels; if it is one of zeros, write 0 there"},
        {"csv:t", "x\n1\n\n3\n",
         "t:3: column 1 (\"x\"): found nothing, expected a number; fill in what is missing, or "
         "leave the row out"},
        {"libsvm:t", "1:1\n# a note\n1:3\n\n\n", NULL},
        {"libsvm:t", "5 1:1\n\n6 1:3\n", NULL},
        {"csv:t", "x\n1\n3\n\n\n", NULL},
        {"csv:t", "x,k\n1,a\n\n3,b\n", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dataset set;
        files_count = 0;
        put("t", cases[i].bytes, strlen(cases[i].bytes));
        int error = source_load_inputs(&set, &reader, cases[i].spec, &model, why, sizeof why);
        cr_expect_eq(error, cases[i].why ? PARLEY_EDATA : 0, "%zu: %s", i, why);
        if (cases[i].why) cr_expect_str_eq(why, cases[i].why);
        if (!cases[i].why) cr_expect_eq(set.count, 2, "%zu: %u", i, set.count);
        dataset_close(&set);
    }
}

Test(source, specs_that_can_not_be_are_refused_by_name)
{
    /* Proves the words for test sets of another kind, empty options, files that are not there. */
    static const struct {
        const char *data, *test;
        int error;
        const char *why;
    } bad[] = {
        {"csv:a", "digits", PARLEY_EUSAGE,
         "data \"digits\": a test set of another kind than the training data, whose classes can't "
         "be told to be the same"},
        {"csv:a,label=", NULL, PARLEY_EUSAGE,
         "data \"csv:a,label=\": nothing follows the last \"=\""},
        {"csv:one,header=1", NULL, PARLEY_EUSAGE,
         "data \"csv:one,header=1\": \"header\" is unknown (valid behind the name: label=NAME, "
         "header=yes, header=no, numbers)"},
        {"text:a,window=x", NULL, PARLEY_EUSAGE,
         "data \"text:a,window=x\": a window is a number of characters from 1 to 65536"},
        {"tsv:a", NULL, PARLEY_EUSAGE,
         "data \"tsv:a\": not one of digits, idx:, csv:, libsvm:, npy:, text:"},
        {"npy:d", NULL, PARLEY_EDATA, "--data: d/x.npy: not there, nor with .gz"},
        {"text:t", NULL, PARLEY_EDATA, "--data: t: not there, nor with .gz"},
        {"text:locked", NULL, PARLEY_EDATA, "--data: locked: not to be read"},
        {"csv:one", NULL, PARLEY_EDATA, "csv:one: too few samples to hold a tenth out"},
    };
    put("one", "1,a\n", 4);
    put("locked", "1", 1);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct source source;
        cr_expect_eq(source_load(&source, &reader, bad[i].data, bad[i].test, why, sizeof why),
                     bad[i].error);
        cr_expect_str_eq(why, bad[i].why);
        source_close(&source);
    }
}

Test(source, digits_are_no_test_of_what_has_fewer_classes)
{
    /* Proves it of a training set and of a model, and that inputs are taken as they are; of a model
     * of numbers, who scales the set says it. */
    static const struct source_model three = {"", NULL, 3, 400, false, NULL};
    static const struct source_model narrow = {"", NULL, 3, 5, false, NULL};
    static const struct source_model alike = {"", NULL, 3, 1, false, NULL};
    static const struct source_model number = {"", NULL, 1, 400, true, NULL};
    static uint8_t x[8192];
    uint8_t y[512] = {0};
    struct source source;
    struct dataset set;
    put("d/x.npy", x, put_head(x, "|u1", "(20, 400)") + 8000);
    size_t at = put_head(y, "|u1", "(20,)");
    for (size_t i = 0; i < 20; i++)
        y[at + i] = (uint8_t)(i % 3);
    put("d/y.npy", y, at + 20);
    cr_expect_eq(source_load(&source, &reader, "npy:d", "digits", why, sizeof why), PARLEY_EDATA);
    cr_expect_str_eq(why, "digits: labels 0 to 9, the classes are 0 to 2");
    cr_expect_null(source.test.bytes);
    source_close(&source);
    cr_expect_eq(source_load_test(&set, &reader, "digits", NULL, &three, why, sizeof why),
                 PARLEY_EDATA);
    cr_expect_str_eq(why, "digits: labels 0 to 9, the classes are 0 to 2");
    /* Of another shape, whose labels are not what to blame, they are left to who compares shapes.
     */
    cr_expect_eq(source_load_test(&set, &reader, "digits", NULL, &narrow, why, sizeof why), 0);
    dataset_close(&set);
    y[at + 19] = 3;
    put("e/x.npy", x, put_head(x, "|u1", "(20, 1)") + 20);
    put("e/y.npy", y, at + 20);
    cr_expect_eq(source_load(&source, &reader, "npy:e", "digits", why, sizeof why), PARLEY_EDATA);
    cr_expect(strstr(why, "400 values a sample, not 1"), "%s", why);
    source_close(&source);
    cr_expect_eq(source_load_test(&set, &reader, "npy:d", "npy:e", &narrow, why, sizeof why), 0);
    cr_expect(set.features == 1 && set.count == 20);
    dataset_close(&set);
    cr_expect_eq(source_load_test(&set, &reader, "npy:d", "npy:e", &alike, why, sizeof why),
                 PARLEY_EDATA);
    cr_expect(strstr(why, "label 3 of sample 19"), "%s", why);
    cr_expect_eq(source_load_inputs(&set, &reader, "digits", &three, why, sizeof why), 0);
    dataset_close(&set);
    cr_expect_eq(source_load_test(&set, &reader, "digits", NULL, &number, why, sizeof why), 0);
    dataset_close(&set);
}

Test(source, a_packed_file_that_lies_about_its_size_is_read_or_refused)
{
    /* Proves that the stated size is only a hint: too small, too large, and of two members. */
    char text[4096];
    size_t size = make_csv(text, sizeof text);
    struct source source;
    put_packed("two.gz", text, size / 2);
    put_packed("more.gz", text + size / 2, size - size / 2);
    memcpy(files[0].bytes + files[0].size, files[1].bytes, files[1].size);
    files[0].size += files[1].size;
    cr_assert_eq(source_load(&source, &reader, "csv:two.gz", NULL, why, sizeof why), 0, "%s", why);
    cr_expect_eq(source.train.count, 90);
    source_close(&source);
    for (int lie = 0; lie < 2; lie++) {
        memset(files[0].bytes + files[0].size - 4, lie ? 0xff : 0, 4);
        cr_expect_eq(source_load(&source, &reader, "csv:two.gz", NULL, why, sizeof why),
                     PARLEY_EDATA);
        cr_expect(strstr(why, "two.gz: damaged gzip data"), "%s", why);
        source_close(&source);
    }
}

Test(source, with_numbers_behind_a_spec_labels_are_targets_as_they_stand)
{
    /* Proves each format, a header, splits, test files with other values, and what is refused. */
    static const char x[] = "x,price\n", more[] = "x,price\n1,-8.25\n";
    char csv[2048] = "", rows[2048] = "";
    uint8_t samples[512] = {0}, npy[512];
    struct source source;
    size_t at;

    strcpy(csv, x);
    for (int i = 0; i < 20; i++) {
        sprintf(csv + strlen(csv), "%d,%g\n", i, i + 0.5);
        sprintf(rows + strlen(rows), "%g 1:%d\n", i + 0.5, i);
    }
    at = put_head(samples, "|u1", "(20, 1)");
    for (int i = 0; i < 20; i++)
        samples[at + (size_t)i] = (uint8_t)i;
    put("d/x.npy", samples, at + 20);
    at = put_head(npy, "<f4", "(20,)");
    for (int i = 0; i < 20; i++)
        memcpy(npy + at + 4 * (size_t)i, &(float){(float)i + 0.5f}, 4);
    put("d/y.npy", npy, at + 80);
    put("a.csv", csv, strlen(csv));
    put("b.csv", more, strlen(more));
    put("rows", rows, strlen(rows));
    static const char *const specs[] = {"csv:a.csv,numbers", "csv:a.csv,label=price,numbers",
                                        "csv:a.csv,numbers,label=price", "libsvm:rows,numbers",
                                        "npy:d,numbers"};
    for (size_t s = 0; s < sizeof specs / sizeof *specs; s++) {
        cr_assert_eq(source_load(&source, &reader, specs[s], NULL, why, sizeof why), 0, "%s", why);
        cr_expect(source.train.count == 18 && source.test.count == 2 && source.train.classes == 1);
        for (uint32_t i = 0; i < 18; i++) {
            float value = source.train.values ? source.train.values[i] : source.train.bytes[i];
            cr_expect_eq(source.train.targets[i], value + 0.5f, "%s", specs[s]);
            cr_expect_eq(source.train.labels[i], 0);
        }
        cr_expect_eq(source.test.targets[1], source.test.values[1] + 0.5f);
        source_close(&source);
    }
    cr_assert_eq(source_load(&source, &reader, specs[0], "csv:b.csv", why, sizeof why), 0, "%s",
                 why);
    cr_expect(source.test.count == 1 && source.test.targets[0] == -8.25f);
    source_close(&source);
    static const char *const others[] = {"csv:b.csv", "libsvm:few"};
    put("few", "-8.25 1:1\n", 10);
    for (size_t i = 0; i < 2; i++) {
        int error = source_load(&source, &reader, "npy:d,numbers", others[i], why, sizeof why);
        cr_assert_eq(error, 0, "%s", why);
        cr_expect(source.test.features == 1 && source.test.targets[0] == -8.25f);
        source_close(&source);
    }
    cr_expect_eq(source_load(&source, &reader, specs[0], "digits", why, sizeof why), PARLEY_EUSAGE);
    source_close(&source);
    put("c.csv", "1,2\n2,yes\n3,4\n", 14);
    cr_expect_eq(source_load(&source, &reader, "csv:c.csv,numbers", NULL, why, sizeof why),
                 PARLEY_EDATA);
    cr_expect_str_eq(why, "c.csv:2: column 2: found \"yes\", expected a number as label");
    source_close(&source);
}

Test(source, numbers_are_no_test_of_classes)
{
    /* Proves that ",numbers" behind --test alone is refused, for training and for a model's trial.
     */
    const struct source_model model = {.vocabulary = "", .classes = 2, .features = 1};
    static const char table[] = "x,y\n1,5\n2,7\n";
    struct source source;
    struct dataset test;
    put("t.csv", table, strlen(table));
    int error = source_load(&source, &reader, "csv:t.csv", "csv:t.csv,numbers", why, sizeof why);
    cr_expect_eq(error, PARLEY_EUSAGE);
    cr_expect(strstr(why, "\"csv:t.csv,numbers\": a test set of another kind"), "%s", why);
    source_close(&source);
    error =
        source_load_test(&test, &reader, "csv:t.csv", "csv:t.csv,numbers", &model, why, sizeof why);
    cr_expect_eq(error, PARLEY_EUSAGE);
    cr_expect(strstr(why, "\"csv:t.csv,numbers\": a test set of another kind"), "%s", why);
}

Test(source, many_different_numbers_are_no_classes)
{
    /* Proves that who forgets ",numbers" is told, also of a table that lacks some; and that few of
     * them, or as many samples of each (of whole numbers two), or names, are taken as classes. */
    static const struct {
        int rows, classes;
        double step;
        const char *odd; /* every 25th */
        bool taken;
    } cases[] = {
        {40, 40, 0.25, NULL, false}, {40, 40, 0.25, "NA", false}, {40, 40, 1, NULL, false},
        {40, 20, 0.25, NULL, true},  {600, 24, 0.25, NULL, true}, {40, 22, 0.25, "a", true},
        {44, 22, 1, NULL, true},     {43, 22, 1, NULL, false},    {20, 20, 1, NULL, true}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        char csv[8192] = "x,y\n", rows[8192] = "";
        struct source source;
        for (int i = 0; i < cases[c].rows; i++) {
            char label[32];
            snprintf(label, sizeof label, "%g", i % cases[c].classes * cases[c].step);
            if (c == 5 && i % 2) snprintf(label, sizeof label, "kind %d", i);
            bool odd = cases[c].odd && i % 25 == 0;
            sprintf(csv + strlen(csv), "%d,%s\n", i, odd ? cases[c].odd : label);
            sprintf(rows + strlen(rows), "%s 1:%d\n", label, i + 1);
        }
        files_count = 0;
        put("f.csv", csv, strlen(csv));
        put("f.svm", rows, strlen(rows));
        int error = source_load(&source, &reader, "csv:f.csv", NULL, why, sizeof why);
        cr_expect_eq(error, cases[c].taken ? 0 : PARLEY_EDATA, "%zu: %s", c, why);
        source_close(&source);
        if (cases[c].taken || cases[c].odd) continue;
        char expected[200];
        snprintf(
            expected, sizeof expected,
            "data \"csv:f.csv\": %d classes, which are numbers such as %g and %g; to fit labels "
            "as numbers write \"csv:f.csv,numbers\"",
            cases[c].classes, cases[c].classes / 2 * cases[c].step,
            (cases[c].classes / 2 + 1) * cases[c].step);
        cr_expect_str_eq(why, expected);
        error = source_load(&source, &reader, "libsvm:f.svm", NULL, why, sizeof why);
        cr_expect_eq(error, PARLEY_EDATA);
        source_close(&source);
    }
}

Test(source, a_file_may_be_called_like_an_option)
{
    /* Proves that ",numbers" is a part of the name where there is such a file. */
    static const char table[] = "x,y\n1,5\n2,7\n", other[] = "x,y\n1,0.5\n2,0.5\n";
    struct source source;
    files_count = 0;
    put("t,numbers", table, strlen(table));
    put("o", other, strlen(other));
    static const char *const specs[] = {"csv:t,numbers", "csv:t,numbers,label=y", "csv:o,numbers",
                                        "csv:o,numbers,label=y"};
    for (size_t s = 0; s < 4; s++) {
        cr_assert_eq(source_load(&source, &reader, specs[s], NULL, why, sizeof why), 0, "%s", why);
        cr_expect_eq(source.train.targets != NULL, s >= 2, "%s", specs[s]);
        source_close(&source);
    }
}

Test(source, a_first_line_is_a_header_or_a_sample_as_is_said)
{
    /* Proves that numbers which nobody spoke of are remarked where they are taken for a header,
     * all or some, once, and that what is said of the training set holds for its test set, unless
     * that says other. */
    static const char counted[] = "0,1,2,3\n7,8,9,0\n6,5,4,1\n1,2,4,1\n";
    static const char plain[] = "5,8,9,3\n6,5,4,0\n6,5,3,1\n";
    static const char lacks[] = "0.1,na,a\n6,5,a\n6,4,b\n1,2,b\n";
    static const char named[] = ",0,1,kind\n6,5,1,0\n6,5,2,1\n";
    static const struct {
        const char *data, *test;
        uint32_t train, held;
        bool remarked;
    } cases[] = {
        {"csv:c", NULL, 2, 1, true},
        {"csv:c", "csv:c", 3, 3, true},
        {"csv:p", "csv:c", 3, 3, true},
        {"csv:c,header=yes", "csv:c", 3, 3, false},
        {"csv:c,header=no", "csv:c", 4, 4, false},
        {"csv:c,header=no,label=4", "csv:c", 4, 4, false},
        {"csv:c,label=4,header=no", "csv:c,header=yes", 4, 3, false},
        {"csv:p,header=yes", "csv:p", 2, 2, false},
        {"csv:l", NULL, 2, 1, true},
        {"csv:l", "csv:l", 3, 3, true},
        {"csv:l,header=yes", "csv:l", 3, 3, false},
        {"csv:l,label=a", "csv:l", 3, 3, false},
        {"csv:n", NULL, 1, 1, false},
    };
    struct source source;
    struct remarks remarks;
    files_count = 0;
    put("c", counted, strlen(counted));
    put("p", plain, strlen(plain));
    put("l", lacks, strlen(lacks));
    put("n", named, strlen(named));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *data = cases[i].data;
        int error = source_load(&source, &reader, data, cases[i].test, why, sizeof why);
        cr_assert_eq(error, 0, "%s: %s", data, why);
        cr_expect_eq(source.train.count, cases[i].train, "%s", data);
        cr_expect_eq(source.test.count, cases[i].held, "%s", data);
        remarks_of(&remarks, &source);
        cr_expect_eq(remarks.count, cases[i].remarked, "%s: %u", data, remarks.count);
        if (cases[i].remarked)
            cr_expect(strstr(remarks.text[0], "line 1, with numbers in it, is taken for a header"),
                      "%s", remarks.text[0]);
        source_close(&source);
    }
}

Test(source, a_value_far_from_all_others_is_remarked_with_its_column)
{
    /* Proves it of one that is held out, too, beside a label that stands before it. */
    static const char table[] = "k,a,b\nx,1,5\ny,2,7\nx,3,6\ny,2,1e30\n";
    struct source source;
    struct remarks remarks;
    files_count = 0;
    put("t", table, strlen(table));
    cr_assert_eq(source_load(&source, &reader, "csv:t,label=k", NULL, why, sizeof why), 0, "%s",
                 why);
    remarks_of(&remarks, &source);
    cr_assert_eq(remarks.count, 1);
    cr_expect_str_eq(remarks.text[0],
                     "sample 4 has 1e+30 in column 3 (\"b\"), over 10000 times as far from all "
                     "others there as they are from each other: a slip?");
    source_close(&source);
}

Test(source, labels_that_carry_nothing_or_lie_far_are_remarked)
{
    /* Proves it of numbers alone, with the sample's place in the file. */
    static const char far[] = "1,5\n2,7\n3,1e30\n4,6\n", alike[] = "1,0\n2,1e-50\n3,0\n4,1e-50\n";
    struct source source;
    struct remarks remarks;
    files_count = 0;
    put("far", far, strlen(far));
    put("alike", alike, strlen(alike));
    cr_assert_eq(source_load(&source, &reader, "csv:far,numbers", NULL, why, sizeof why), 0, "%s",
                 why);
    remarks_of(&remarks, &source);
    cr_assert_eq(remarks.count, 1);
    cr_expect_str_eq(
        remarks.text[0],
        "sample 3 has the label 1e+30, over 10000 times as far from all others as they "
        "are from each other: a slip?");
    source_close(&source);
    cr_assert_eq(source_load(&source, &reader, "csv:alike,numbers", NULL, why, sizeof why), 0, "%s",
                 why);
    remarks_of(&remarks, &source);
    cr_assert_eq(remarks.count, 1);
    cr_expect(strstr(remarks.text[0], "the labels count for little or nothing"), "%s",
              remarks.text[0]);
    source_close(&source);
}

Test(source, a_last_column_that_is_taken_for_the_label_is_remarked)
{
    /* Proves it where nothing but its place tells: neither a name, nor a header as in training. */
    static const struct {
        const char *spec, *columns;
        uint32_t column;
    } cases[] = {
        {"csv:bare", NULL, 0},    {"csv:plain", NULL, 3},        {"csv:plain,label=3", NULL, 0},
        {"csv:head", "u\nv", 0},  {"csv:head", NULL, 3},         {"csv:plain", "u\nv", 3},
        {"libsvm:rows", NULL, 0}, {"csv:head,label=k", NULL, 0},
    };
    files_count = 0;
    put("bare", "1,2\n3,4\n", 8);
    put("plain", "1,2,5\n3,4,6\n", 12);
    put("head", "u,v,k\n1,2,5\n3,4,6\n", 18);
    put("rows", "1 1:1 2:2\n", 10);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct source_model model = {"", "5\n6", 2, 2, false, cases[i].columns};
        struct remarks remarks;
        struct dataset set;
        cr_assert_eq(source_load_inputs(&set, &reader, cases[i].spec, &model, why, sizeof why), 0,
                     "%s", why);
        cr_expect_eq(set.last_column, cases[i].column, "%zu: %u", i, set.last_column);
        remarks_of_test(&remarks, &set);
        cr_expect_eq(remarks.count, cases[i].column > 0, "%zu: %s", i, remarks.text[0]);
        dataset_close(&set);
        cr_assert_eq(
            source_load_test(&set, &reader, "digits", cases[1].spec, &model, why, sizeof why), 0,
            "%s", why);
        cr_expect_eq(set.last_column, 0);
        dataset_close(&set);
    }
}

Test(source, labels_are_read_as_a_model_of_numbers_has_them)
{
    /* Proves that ",numbers" need not be said to try such a model, of any format. */
    const struct source_model model = {
        .vocabulary = "", .classes = 1, .features = 1, .numbers = true};
    static const char table[] = "x,y\n1,0.5\n2,1.5\n3,2.5\n4,3.5\n", rows[] = "0.5 1:1\n";
    struct dataset test;
    put("t.csv", table, strlen(table));
    put("t.svm", rows, strlen(rows));
    static const char *const specs[][2] = {
        {"csv:t.csv", NULL}, {"csv:t.csv", "csv:t.csv"}, {"csv:t.csv", "libsvm:t.svm"}};
    for (size_t s = 0; s < sizeof specs / sizeof *specs; s++) {
        int error =
            source_load_test(&test, &reader, specs[s][0], specs[s][1], &model, why, sizeof why);
        cr_assert_eq(error, 0, "%zu: %s", s, why);
        cr_expect(test.targets && test.targets[0] == test.values[0] - 0.5f, "%zu", s);
        dataset_close(&test);
    }
}
