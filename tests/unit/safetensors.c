/* safetensors.c: the file format: written bytes, what is read back, and what is refused by name. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file/safetensors.h"

static const struct tensor tensors[] = {{"w", 2, {2, 3}, 0, 6}, {"b", 1, {3}, 6, 3}};
static const struct safetensors_pair pairs[] = {{"model", "softmax"}, {"note", "a \"b\" \xc3\xa9"}};
static const float x[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};

/* The whole file in memory of exactly its size, so that a sanitizer sees a read past it. */
static uint8_t *file_new(size_t *size)
{
    uint8_t *header;
    size_t header_size;
    cr_assert_eq(safetensors_header(tensors, 2, pairs, 2, &header, &header_size), 0);
    *size = header_size + sizeof x;
    uint8_t *bytes = malloc(*size);
    memcpy(bytes, header, header_size);
    memcpy(bytes + header_size, x, sizeof x);
    free(header);
    return bytes;
}

/* Opens a file made of this JSON and `data` zero bytes; the reason is left in `why`. */
static char why[160];

static int open_json(const char *json, size_t data)
{
    struct safetensors file;
    uint64_t length = strlen(json);
    uint8_t *bytes = calloc(1, 8 + length + data);
    memcpy(bytes, &length, 8);
    memcpy(bytes + 8, json, length);
    why[0] = 0;
    int error = safetensors_open(&file, bytes, 8 + length + data, why, sizeof why);
    if (error == 0) safetensors_close(&file);
    free(bytes);
    return error;
}

Test(safetensors, header_has_the_format_s_form_and_never_varies)
{
    /* Length field, JSON, spaces up to 8: the same bytes each time. */
    static const char json[] =
        "{\"__metadata__\":{\"model\":\"softmax\",\"note\":\"a \\\"b\\\" \\u00E9\"},"
        "\"w\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
        "\"b\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[24,36]}}";
    uint8_t *header;
    size_t size;
    uint64_t length;
    cr_assert_eq(safetensors_header(tensors, 2, pairs, 2, &header, &size), 0);
    memcpy(&length, header, 8);
    cr_assert_eq(length, size - 8);
    cr_assert_eq(size % 8, 0);
    cr_assert_lt(size, 8 + sizeof json - 1 + 8);
    cr_assert_arr_eq(header + 8, json, sizeof json - 1);
    for (size_t i = 8 + sizeof json - 1; i < size; i++)
        cr_assert_eq(header[i], ' ');
    free(header);
}

Test(safetensors, what_was_written_is_read_back)
{
    /* Tensors, data and metadata survive the round trip. */
    size_t size;
    uint8_t *bytes = file_new(&size);
    struct safetensors file;
    cr_assert_eq(safetensors_open(&file, bytes, size, why, sizeof why), 0, "%s", why);
    cr_assert_eq(file.tensor_count, 2);
    cr_assert_eq(file.floats, 9);
    cr_assert_arr_eq(file.data, x, sizeof x);
    for (int t = 0; t < 2; t++) {
        cr_assert_str_eq(file.tensors[t].name, tensors[t].name);
        cr_assert_eq(file.tensors[t].rank, tensors[t].rank);
        cr_assert_arr_eq(file.tensors[t].shape, tensors[t].shape, sizeof tensors[t].shape);
        cr_assert_eq(file.tensors[t].offset, tensors[t].offset);
        cr_assert_eq(file.tensors[t].count, tensors[t].count);
    }
    cr_assert_str_eq(safetensors_metadata(&file, "note"), pairs[1].value);
    cr_assert_null(safetensors_metadata(&file, "absent"));
    cr_assert_eq(safetensors_tensor(&file, "b"), &file.tensors[1]);
    cr_assert_null(safetensors_tensor(&file, "c"));
    safetensors_close(&file);
    free(bytes);
}

Test(safetensors, tensors_come_by_offset_and_metadata_may_lack)
{
    /* Files of other programs list tensors in any order. */
    cr_assert_eq(open_json("{\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]},"
                           "\"a\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]}}  ",
                           12),
                 0, "%s", why);
    cr_assert_eq(open_json("{}", 0), 0);
}

Test(safetensors, every_truncation_is_refused)
{
    /* No prefix of a file is a file. */
    size_t size;
    uint8_t *bytes = file_new(&size);
    for (size_t cut = 0; cut < size; cut++) {
        struct safetensors file;
        uint8_t *part = malloc(cut + 1); /* malloc(0) may be NULL */
        memcpy(part + 1, bytes, cut);
        cr_assert_eq(safetensors_open(&file, part + 1, cut, why, sizeof why), PARLEY_EDATA);
        cr_assert_neq(why[0], 0);
        /* jansson is not instrumented, so a sanitizer would not see it read too far. */
        if (cut >= 8 && cut < size - sizeof x)
            cr_assert_not_null(strstr(why, "ends inside its header"), "%s", why);
        if (cut >= size - sizeof x)
            cr_assert_not_null(strstr(why, "the file is cut short: it has"), "%s", why);
        free(part);
    }
    free(bytes);
}

Test(safetensors, no_flipped_bit_does_harm)
{
    /* A flipped bit is refused with a reason, or leaves tensors that lie inside the data. */
    size_t size;
    uint8_t *bytes = file_new(&size);
    for (size_t bit = 0; bit < size * 8; bit++) {
        struct safetensors file;
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        why[0] = 0;
        int error = safetensors_open(&file, bytes, size, why, sizeof why);
        if (error == 0) {
            cr_assert_leq(file.data + file.floats * 4, bytes + size);
            safetensors_close(&file);
        } else {
            cr_assert_neq(why[0], 0);
        }
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    free(bytes);
}

#define A(shape, offsets)                                                                          \
    "{\"a\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

Test(safetensors, hostile_headers_are_refused_with_the_reason)
{
    /* Each fault of a header is named; none is read past. */
    static const struct {
        const char *json;
        size_t data;
        const char *reason;
    } cases[] = {
        {"", 0, "header"},
        {"[]", 0, "no JSON object"},
        {"{\"a\":1}", 0, "tensor a"},
        {A("[2]", "[0,8]") ",\"a\":1}", 8, "duplicate"},
        {A("[2]", "[0,4]") "}", 8, "do not fit"},
        {A("[2]", "[8,0]") "}", 8, "do not fit"},
        {A("[2]", "[-8,0]") "}", 8, "do not fit"},
        {A("[2]", "[0,9]") "}", 9, "no whole floats"},
        {A("[2]", "[0,9]") "}", 8, "bytes, and its header asks for"},
        {A("[1]", "[0,9223372036854775807]") "}", 4, "asks for 9223372036854775"},
        {A("[1]", "[2,6]") "}", 8, "do not fit"},
        {A("[1]", "[4,8]") "}", 8, "gap"},
        {A("[1]", "[0,4]") "}", 8, "belong to no tensor"},
        {A("[1]", "[9223372036854775804,4]") "}", 8, "do not fit"},
        {A("[1]", "[0,99999999999999999999]") "}", 8, "header"},
        {A("[2]", "[0,8]") ",\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8,
         "overlaps"},
        {A("[2]", "[0,8,8]") "}", 8, "tensor a"},
        {A("[2]", "[0.0,8.0]") "}", 8, "tensor a"},
        {A("[]", "[0,4]") "}", 4, "dimensions"},
        {A("{}", "[0,4]") "}", 4, "dimensions"},
        {A("[1,1,1,1,1]", "[0,4]") "}", 4, "dimensions"},
        {A("[0]", "[0,0]") "}", 0, "dimension 0"},
        {A("[-1]", "[0,4]") "}", 4, "dimension 0"},
        {A("[\"1\"]", "[0,4]") "}", 4, "dimension 0"},
        {A("[4294967296]", "[0,4]") "}", 4, "dimension 0"},
        {A("[1,4294967295,4294967295,4294967295]", "[0,4]") "}", 4, "dimension 1"},
        {"{\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]}}", 8, "type F64"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"z\":1}}", 4, "tensor a"},
        {"{\"a b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "printable"},
        {"{\"\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "printable"},
        {"{\"abcdefghijklmnopqrstuvwxyzabcdef\":1}", 4, "printable"},
        {"{\"__metadata__\":[]}", 0, "no JSON object"},
        {"{\"__metadata__\":{\"k\":1}}", 0, "no string"},
        {"{} x", 0, "header"},
        {A("[1]", "[0,4]") "}", 5, "no whole floats"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cr_assert_eq(open_json(cases[i].json, cases[i].data), PARLEY_EDATA, "%s", cases[i].json);
        cr_assert_not_null(strstr(why, cases[i].reason), "%s: %s", cases[i].json, why);
    }
}

Test(safetensors, sizes_beyond_the_limits_are_refused)
{
    /* A huge length field, a header above 1 MiB, deep nesting, too many tensors. */
    struct safetensors file;
    uint8_t huge[16];
    memset(huge, 255, sizeof huge);
    cr_assert_eq(safetensors_open(&file, huge, sizeof huge, why, sizeof why), PARLEY_EDATA);
    char *text = malloc(1200000);
    memset(text, '[', 1048576);
    text[1048576] = 0;
    cr_assert_eq(open_json(text, 0), PARLEY_EDATA);
    memset(text, ' ', 1048577);
    text[1048577] = 0;
    cr_assert_eq(open_json(text, 0), PARLEY_EDATA);
    char *at = text;
    for (int i = 0; i < SAFETENSORS_TENSORS_MAX + 2; i++)
        at += sprintf(at, "%c\"t%d\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[%d,%d]}",
                      i ? ',' : '{', i, i * 4, i * 4 + 4);
    strcpy(at, "}");
    cr_assert_eq(open_json(text, (SAFETENSORS_TENSORS_MAX + 2) * 4), PARLEY_EDATA);
    cr_assert_not_null(strstr(why, "more than 4096"), "%s", why);
    free(text);
}

Test(safetensors, reasons_hold_nothing_that_a_terminal_obeys)
{
    /* An escape sequence in a name is shown as question marks. */
    cr_assert_eq(open_json("{\"\\u001b[31mred\":1}", 0), PARLEY_EDATA);
    for (char *c = why; *c != 0; c++)
        cr_assert(*c >= ' ' && *c <= '~');
}

Test(safetensors, a_writer_s_mistakes_are_usage_errors)
{
    /* Gaps, equal names, equal keys and text that is not UTF-8 make no file. */
    uint8_t *header;
    size_t size;
    struct tensor bad[2] = {tensors[0], tensors[1]};
    bad[1].offset = 7;
    cr_assert_eq(safetensors_header(bad, 2, pairs, 2, &header, &size), PARLEY_EUSAGE);
    bad[1] = tensors[1];
    strcpy(bad[1].name, "w");
    cr_assert_eq(safetensors_header(bad, 2, pairs, 2, &header, &size), PARLEY_EUSAGE);
    const struct safetensors_pair twice[] = {{"k", "1"}, {"k", "2"}}, raw[] = {{"k", "\xff"}};
    cr_assert_eq(safetensors_header(tensors, 2, twice, 2, &header, &size), PARLEY_EUSAGE);
    cr_assert_eq(safetensors_header(tensors, 2, raw, 1, &header, &size), PARLEY_EUSAGE);
}
