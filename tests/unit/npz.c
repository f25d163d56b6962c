/* npz.c: archives taken apart again by the offsets that they state. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "data/formats/npy.h"
#include "file/npz.h"

static const struct tensor tensors[] = {{"layer0.weight", 2, {2, 3}, 0, 6},
                                        {"layer0.bias", 1, {3}, 6, 3},
                                        {"c", 4, {1, 2, 1, 2}, 9, 4}};
static const float x[13] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13};

static uint32_t get(const uint8_t *from, int bytes)
{
    uint32_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint32_t)from[i] << 8 * i;
    return value;
}

Test(npz, every_member_is_where_the_directory_says_and_holds_its_tensor)
{
    /* Proves both headers of a member, its sum and its floats. */
    static const char *const heads[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, )}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3, )}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 1, 2, )}"};
    uint8_t *bytes;
    size_t size;
    cr_assert_eq(npz_write(tensors, 3, (const uint8_t *)x, &bytes, &size), 0);
    const uint8_t *end = bytes + size - 22;
    cr_assert_arr_eq(end, "PK\x05\x06\0\0\0\0\x03\0\x03\0", 12);
    const uint8_t *entry = bytes + get(end + 16, 4);
    cr_assert_eq(entry + get(end + 12, 4), end);
    for (int t = 0; t < 3; t++) {
        char name[40];
        uint32_t length = (uint32_t)snprintf(name, sizeof name, "%s.npy", tensors[t].name);
        const uint8_t *local = bytes + get(entry + 42, 4), *npy = local + 30 + length;
        size_t floats = tensors[t].count * sizeof(float);
        cr_assert_arr_eq(entry, "PK\x01\x02", 4);
        cr_assert_arr_eq(local, "PK\x03\x04", 4);
        cr_assert_arr_eq(entry + 6, local + 4, 26, "both headers state the same");
        cr_assert_eq(get(local + 26, 2), length);
        cr_assert_arr_eq(local + 30, name, length);
        cr_assert_arr_eq(entry + 46, name, length);
        cr_assert_eq(get(local + 18, 4), 128 + floats);
        cr_assert_eq(get(local + 22, 4), 128 + floats);
        cr_assert_eq(get(local + 14, 4), crc32(0, npy, (uInt)(128 + floats)));
        cr_assert_arr_eq(npy, "\x93NUMPY\x01\0\x76\0", 10);
        cr_assert_eq(strncmp((const char *)npy + 10, heads[t], strlen(heads[t])), 0);
        cr_assert_eq(npy[127], '\n');
        cr_assert_arr_eq(npy + 128, x + tensors[t].offset, floats);
        entry += 46 + length;
    }
    cr_assert_eq(entry, end);
    free(bytes);
}

Test(npz, a_member_is_read_by_the_reader_of_npy_files)
{
    /* Proves that the NPY header is one, to a reader that was written apart. */
    static const uint8_t labels[] =
        "\x93NUMPY\x01\0\x38\0{'descr': '|u1', 'fortran_order': False, 'shape': (2,)}\n\0\1";
    struct dataset set;
    uint8_t *bytes;
    size_t size;
    char why[256] = "";
    cr_assert_eq(npz_write(tensors, 1, (const uint8_t *)x, &bytes, &size), 0);
    struct bytes member = {bytes + 30 + strlen("layer0.weight.npy"), 128 + 24, "x"};
    struct bytes classes = {labels, sizeof labels - 1, "y"};
    cr_assert_eq(npy_load(&set, member, classes, 0, why, sizeof why), 0, "%s", why);
    cr_assert(set.count == 2 && set.features == 3);
    cr_assert_arr_eq(set.values, x, 24);
    dataset_close(&set);
    free(bytes);
}

Test(npz, what_does_not_fit_a_plain_archive_is_refused)
{
    /* Proves that a 32-bit size is never cut. The data is not looked at: it need not be there. */
    struct tensor *many = calloc(65536, sizeof *many);
    uint8_t *bytes;
    size_t size;
    cr_assert_eq(npz_write(many, 65536, (const uint8_t *)x, &bytes, &size), PARLEY_ELIMIT);
    cr_assert_null(bytes);
    if (SIZE_MAX > UINT32_MAX) { /* elsewhere no tensor is as large */
        many[0] = (struct tensor){"w", 1, {1 << 30}, 0, (size_t)1 << 30};
        cr_assert_eq(npz_write(many, 1, (const uint8_t *)x, &bytes, &size), PARLEY_ELIMIT);
        cr_assert_null(bytes);
    }
    free(many);
}
