/* npy.c: NumPy's arrays, well-formed and not. */
#include "data/formats/npy.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"

static char why[512];

struct file {
    uint8_t bytes[1024];
    size_t size;
};

/* A file of `version` with this dictionary and values[size] behind it. */
static struct file make(int version, const char *dictionary, const void *values, size_t size)
{
    struct file f = {.bytes = {0x93, 'N', 'U', 'M', 'P', 'Y', (uint8_t)version, 0}};
    size_t at = version == 1 ? 10 : 12, length = strlen(dictionary) + 1;
    f.bytes[8] = (uint8_t)length;
    f.bytes[9] = (uint8_t)(length >> 8);
    memcpy(f.bytes + at, dictionary, length - 1);
    f.bytes[at + length - 1] = '\n';
    memcpy(f.bytes + at + length, values, size);
    f.size = at + length + size;
    return f;
}

static int load(struct dataset *set, const struct file *x, const struct file *y, uint32_t classes)
{
    /* Copies of the exact size, so that the sanitizers see a byte read too far. */
    uint8_t *a = malloc(x->size + !x->size), *b = malloc(y->size + !y->size);
    memcpy(a, x->bytes, x->size);
    memcpy(b, y->bytes, y->size);
    int error = npy_load(set, (struct bytes){a, x->size, "x.npy"},
                         (struct bytes){b, y->size, "y.npy"}, classes, why, sizeof why);
    free(a);
    free(b);
    return error;
}

static const int64_t y_values[] = {2, 0, 1};

static struct file labels(void)
{
    return make(1, "{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }", y_values,
                sizeof y_values);
}

Test(npy, every_type_and_version_is_read)
{
    /* Proves the five types, three versions, and keys in any order and either quotes. */
    const float f4[] = {-1.5f, 0, 2, 3, 4, 100};
    const double f8[] = {-1.5, 0, 2, 3, 4, 100};
    const uint8_t u1[] = {0, 1, 2, 3, 4, 255};
    const int32_t i4[] = {-7, 1, INT32_MIN, INT32_MAX, 4, 5};
    const int64_t i8[] = {-7, 1, INT64_MIN, INT64_MAX, 4, -1};
    const struct {
        const char *type;
        const void *values;
        size_t size;
    } types[] = {{"<f4", f4, sizeof f4},
                 {"<f8", f8, sizeof f8},
                 {"|u1", u1, sizeof u1},
                 {"<i4", i4, sizeof i4},
                 {"<i8", i8, sizeof i8}};
    for (int t = 0; t < 15; t++) {
        char dictionary[128];
        struct dataset set;
        struct file x, y = labels();
        snprintf(dictionary, sizeof dictionary,
                 t % 2 ? "{'descr': '%s', 'fortran_order': False, 'shape': (3, 2), }"
                       : "{\"shape\":(3,2),\"fortran_order\":False,\"descr\":\"%s\"}",
                 types[t % 5].type);
        x = make(1 + t / 5, dictionary, types[t % 5].values, types[t % 5].size);
        cr_assert_eq(load(&set, &x, &y, 0), 0, "%s", why);
        cr_assert(set.count == 3 && set.features == 2 && set.classes == 3 && set.channels == 0);
        for (int i = 0; i < 6; i++) {
            const float wanted[] = {f4[i], (float)f8[i], u1[i], (float)i4[i], (float)i8[i]};
            cr_expect_eq(set.values[i], wanted[t % 5], "%s: %g", types[t % 5].type,
                         (double)set.values[i]);
            if (i < 3) cr_expect_eq(set.labels[i], y_values[i]);
        }
        dataset_close(&set);
    }
}

Test(npy, columns_and_labels_that_vary_by_less_than_floats_tell_apart_are_noted)
{
    /* Proves it of the three types that have more digits; of labels, that they keep them. */
    static const int32_t i4[] = {7, 16777217, 7, 16777216, 7, 16777216};
    static const int64_t i8[] = {7, INT64_MAX, 7, INT64_MAX - 1025, 7, INT64_MAX};
    static const double f8[] = {7, 1e-50, 7, 2e-50, 7, 1e-50};
    static const float f4[] = {7, 3, 7, 3, 7, 3};
    static const double y[] = {1700000000, 1700000001, 1700000002};
    const struct {
        const char *type;
        const void *values;
        size_t size;
        uint32_t flat;
    } cases[] = {{"<i4", i4, sizeof i4, 1},
                 {"<i8", i8, sizeof i8, 1},
                 {"<f8", f8, sizeof f8, 1},
                 {"<f4", f4, sizeof f4, 0}};
    struct file targets =
        make(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }", y, sizeof y);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char dictionary[128];
        struct dataset set;
        snprintf(dictionary, sizeof dictionary,
                 "{'descr': '%s', 'fortran_order': False, 'shape': (3, 2), }", cases[i].type);
        struct file x = make(1, dictionary, cases[i].values, cases[i].size);
        cr_assert_eq(load(&set, &x, &targets, NPY_NUMBERS), 0, "%s", why);
        cr_expect(set.flat == cases[i].flat && set.flat_first == cases[i].flat, "%s: %u",
                  cases[i].type, set.flat);
        cr_expect_eq(set.targets[2], y[2]);
        dataset_close(&set);
    }
}

Test(npy, bytes_of_three_or_four_dimensions_are_images)
{
    /* Proves channels, height and width, and that the bytes stay bytes. */
    const uint8_t u1[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    const float f4[12] = {0};
    struct dataset set;
    struct file y = labels();
    struct file x =
        make(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (3, 1, 4), }", u1, sizeof u1);
    cr_assert_eq(load(&set, &x, &y, 0), 0, "%s", why);
    cr_expect(set.channels == 1 && set.height == 1 && set.width == 4 && set.features == 4);
    cr_expect_eq(memcmp(set.bytes, u1, sizeof u1), 0);
    dataset_close(&set);
    x = make(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (3, 2, 2, 1), }", u1, sizeof u1);
    cr_assert_eq(load(&set, &x, &y, 0), 0, "%s", why);
    cr_expect(set.channels == 2 && set.height == 2 && set.width == 1 && set.features == 4);
    dataset_close(&set);
    x = make(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2, 2, 1), }", f4, sizeof f4);
    cr_assert_eq(load(&set, &x, &y, 0), 0, "%s", why);
    cr_expect(set.channels == 0 && set.features == 4 && set.values != NULL);
    dataset_close(&set);
}

static void expect_refused(const struct file *x, const struct file *y, uint32_t classes,
                           const char *expected)
{
    struct dataset set;
    cr_expect_eq(load(&set, x, y, classes), PARLEY_EDATA, "accepted, not: %s", expected);
    cr_expect_str_eq(why, expected);
    cr_expect_null(set.values);
    cr_expect_null(set.labels);
}

Test(npy, a_bad_header_is_named_with_its_byte_and_what_was_found)
{
    /* Proves the position and the words of each refusal. */
    static const struct {
        const char *dictionary, *why;
    } bad[] = {
        {"[1]", "x.npy: byte 10: found \"[1]?\", expected a dictionary"},
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (3, 2), }",
         "x.npy: byte 20: found \"'>f4', 'fort\", expected a type of <f4, <f8, |u1, <i4, <i8 (save "
         "x.astype('<f4'))"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (3, 2), }",
         "x.npy: byte 44: found \"True, 'shape\", expected False: C order (save "
         "numpy.ascontiguousarray(x))"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 0), }",
         "x.npy: byte 64: found \"0), }?\", expected a size from 1 to 2147483647"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2",
         "x.npy: byte 66: found \"\", expected a comma or the shape's end"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1)}",
         "x.npy: byte 73: found \"1)}?\", expected at most 4 dimensions"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3; 2), }",
         "x.npy: byte 62: found \"; 2), }?\", expected a comma or the shape's end"},
        {"{'descr': '<f4', 'shape': (3, 2), }",
         "x.npy: byte 45: found \"?\", expected descr, fortran_order and shape before the "
         "dictionary's end"},
        {"{'descr': '<f4', 'order': False, 'shape': (3, 2), }",
         "x.npy: byte 27: found \"'order': Fal\", expected 'descr', 'fortran_order' or 'shape'"},
    };
    const float f4[6] = {0};
    struct file y = labels(), x;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        x = make(1, bad[i].dictionary, f4, 0);
        expect_refused(&x, &y, 0, bad[i].why);
    }
    x = make(1, "{}", f4, 0);
    x.bytes[1] = 'M';
    expect_refused(
        &x, &y, 0,
        "x.npy: byte 0: found \"?MUMPY????{}\", expected NumPy's \\x93NUMPY and a header");
    x = make(4, "{}", f4, 0);
    expect_refused(&x, &y, 0,
                   "x.npy: byte 6: found \"??????{}?\", expected version 1.0, 2.0 or 3.0");
    x = make(1, "{}", f4, 0);
    x.bytes[9] = 1;
    expect_refused(&x, &y, 0, "x.npy: a header of 259 bytes at byte 10, the file has 13");
}

Test(npy, sizes_shapes_and_values_that_do_not_fit_are_refused)
{
    /* Proves the checks between header and file, and between the two files. */
    const float f4[] = {0, 1, 2, 3, NAN, 5};
    const float halves[] = {0, 0.5f, 1};
    const char *form = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }";
    const char *flat = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }";
    struct file y = labels(), x = make(1, form, f4, sizeof f4 - 1);
    expect_refused(&x, &y, 0,
                   "x.npy: the header says 6 values of <f4 = 24 bytes behind byte 70, the file has "
                   "23");
    x.size += 2;
    expect_refused(&x, &y, 0,
                   "x.npy: the header says 6 values of <f4 = 24 bytes behind byte 70, the file has "
                   "25");
    x = make(1, form, f4, sizeof f4);
    expect_refused(&x, &y, 0,
                   "x.npy: value 0 of sample 2 is nan, expected a number of at most 1.7e38");
    x = make(1, flat, f4, 12);
    expect_refused(&x, &y, 0, "x.npy: its shape is (3), expected (samples, values ...)");
    x = make(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }", f4, 16);
    expect_refused(&x, &y, 0, "y.npy: 3 labels for 2 samples");
    x = make(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 1), }", f4, 12);
    expect_refused(&x, &y, 2, "y.npy: label 2 of sample 0, expected a class from 0 to 1");
    y = make(1, flat, halves, sizeof halves);
    expect_refused(&x, &y, 0, "y.npy: label 0.5 of sample 1, expected a class from 0 to 65535");
    x = make(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 5, 1, 4), }", f4, 20);
    expect_refused(&x, &y, 0,
                   "x.npy: its shape is (1, 5, 1, 4), expected (samples, channels, height, width) "
                   "(save x.transpose(0, 3, 1, 2))");
    x = make(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (2147483647, 2147483647), }", f4,
             0);
    char expected[64];
    snprintf(expected, sizeof expected, "x.npy: more than %" PRIu64 " values, the limit",
             BYTES_MAX / sizeof(float));
    expect_refused(&x, &y, 0, expected);
}

Test(npy, damaged_files_are_refused_or_read_but_never_overrun)
{
    /* Proves by 20,000 random changes and every cut, under the sanitizers, that nothing is read or
     * written past its end. */
    static const char pool[] = "{}()',: 0129<>|fui48TF\n";
    const float f4[6] = {1, 2, 3, 4, 5, 6};
    struct file good_y = labels(),
                good_x = make(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }", f4,
                              sizeof f4);
    struct rng rng = rng_init(1, 1);
    for (uint32_t t = 0; t < 20000; t++) {
        struct file x = good_x, y = good_y, *f = t % 2 ? &x : &y;
        struct dataset set;
        if (t < 2 * f->size)
            f->size = t / 2;
        else
            for (uint32_t c = 0; c <= t % 3; c++)
                f->bytes[rng_below(&rng, (uint32_t)f->size)] =
                    t % 5 ? (uint8_t)pool[rng_below(&rng, sizeof pool - 1)]
                          : (uint8_t)rng_below(&rng, 256);
        int error = load(&set, &x, &y, 0);
        cr_assert(error == 0 || (error == PARLEY_EDATA && strstr(why, ".npy")));
        for (size_t i = 0; i < set.count; i++)
            cr_assert_lt(set.labels[i], set.classes);
        dataset_close(&set);
    }
}
