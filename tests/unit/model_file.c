/* model_file.c: a parley model there and back, verified, and against a hostile world. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/formats/rows.h"
#include "file/model_file.h"

static const struct tensor tensors[] = {{"w", 2, {2, 3}, 0, 6}, {"b", 1, {3}, 6, 3}};
static const float x[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, shift[2] = {0.5f, 1}, scale[2] = {2, 3};
static char why[256];

static struct model_meta meta_of(const struct tensor *table, uint32_t count, uint32_t scaling)
{
    struct model_meta meta = {.model = "softmax",
                              .data = "csv:t.csv",
                              .features = 2,
                              .classes = 3,
                              .scaling = scaling,
                              .shift = shift,
                              .scale = scale,
                              .run = UINT64_C(0xfedcba9876543210)};
    cr_assert_eq(digest_model(x, 9, table, count, meta.run, meta.digest), 0);
    return meta;
}

static uint8_t *file_new(const struct model_meta *meta, const struct tensor *table, uint32_t count,
                         size_t *size)
{
    struct piece pieces[MODEL_FILE_PIECES];
    uint8_t *bytes = NULL;
    *size = 0;
    cr_assert_eq(model_file_pieces(meta, x, 9, table, count, pieces), 0);
    for (int i = 0; i < MODEL_FILE_PIECES; i++) {
        bytes = realloc(bytes, *size + pieces[i].size + 1);
        if (pieces[i].size > 0) memcpy(bytes + *size, pieces[i].bytes, pieces[i].size);
        *size += pieces[i].size;
    }
    free((void *)pieces[0].bytes);
    return bytes;
}

Test(model_file, what_was_written_is_read_back_and_verifies)
{
    /* With scaling by column, by one pair and with none; with a tensor table and without. */
    for (uint32_t scaling = 0; scaling <= 2; scaling++) {
        for (uint32_t count = 0; count <= 2; count += 2) {
            struct model_meta meta = meta_of(tensors, count, scaling);
            struct model_file file;
            size_t size;
            uint8_t *bytes = file_new(&meta, tensors, count, &size);
            cr_assert_eq(model_file_open(&file, bytes, size, why, sizeof why), 0, "%s", why);
            cr_assert_str_eq(file.meta.model, meta.model);
            cr_assert_str_eq(file.meta.data, meta.data);
            cr_assert_eq(file.meta.features, 2);
            cr_assert_eq(file.meta.classes, 3);
            cr_assert_eq(file.meta.scaling, scaling);
            cr_assert(!file.meta.numbers);
            cr_assert_eq(file.meta.run, meta.run);
            cr_assert_eq(file.n, 9);
            cr_assert_eq(file.tensor_count, count ? 2 : 1);
            cr_assert_arr_eq(file.x, x, sizeof x);
            if (scaling > 0) {
                cr_assert_arr_eq(file.meta.shift, shift, scaling * sizeof(float));
                cr_assert_arr_eq(file.meta.scale, scale, scaling * sizeof(float));
            }
            cr_assert_eq(model_file_verify(&file, why, sizeof why), 0, "%s", why);
            model_file_close(&file);
            free(bytes);
        }
    }
}

Test(model_file, the_scaling_of_a_label_that_is_a_number_comes_back)
{
    /* Proves that it stands behind that of the inputs, if there is one, and must be usable. */
    static const float labels[][2] = {{5000, 0.25f}, {-1, 3},       {0, 0},     {0, -1},
                                      {NAN, 1},      {0, INFINITY}, {0, 1e-40f}};
    for (uint32_t scaling = 0; scaling <= 2; scaling++)
        for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
            struct model_meta meta = meta_of(tensors, 2, scaling);
            struct model_file file;
            size_t size;
            bool good = i < 2;
            meta.numbers = true;
            memcpy(meta.label, labels[i], sizeof meta.label);
            uint8_t *bytes = file_new(&meta, tensors, 2, &size);
            cr_assert_eq(model_file_open(&file, bytes, size, why, sizeof why),
                         good ? 0 : PARLEY_EDATA, "%s", why);
            if (good) {
                cr_expect(file.meta.numbers);
                cr_expect_arr_eq(file.meta.label, labels[i], sizeof labels[i]);
                cr_expect_eq(file.meta.scaling, scaling);
                cr_expect_eq(file.n, 9);
                cr_expect_eq(model_file_verify(&file, why, sizeof why), 0, "%s", why);
                model_file_close(&file);
            } else {
                cr_expect_str_eq(why,
                                 "label.shift and label.scale are not a number and one above 0");
            }
            free(bytes);
        }
}

Test(model_file, a_scaling_of_inputs_that_are_no_numbers_is_refused_by_name)
{
    /* Proves that no model is tried on inputs that it makes nothing of; a scale of 0, that of a
     * constant column, is good. */
    static const float pairs[][2] = {{0, 0},        {-1, 3},       {NAN, 1}, {0, NAN},
                                     {INFINITY, 1}, {0, INFINITY}, {0, -1},  {0, -1e-40f}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct model_meta meta = meta_of(tensors, 2, 2);
        struct model_file file;
        size_t size;
        const float shifts[2] = {1, pairs[i][0]}, scales[2] = {2, pairs[i][1]};
        meta.shift = shifts;
        meta.scale = scales;
        uint8_t *bytes = file_new(&meta, tensors, 2, &size);
        int error = model_file_open(&file, bytes, size, why, sizeof why);
        cr_expect_eq(error, i < 2 ? 0 : PARLEY_EDATA, "%zu", i);
        if (error == 0)
            model_file_close(&file);
        else
            cr_expect_str_eq(why,
                             "input.shift and input.scale are not numbers, and ones from 0 on");
        free(bytes);
    }
}

Test(model_file, a_vocabulary_comes_back_and_has_a_character_a_class)
{
    /* Proves that a model of text carries what its numbers mean; other models have none. */
    struct model_meta meta = meta_of(tensors, 2, 1);
    struct model_file file;
    struct piece pieces[MODEL_FILE_PIECES];
    size_t size;
    strcpy(meta.vocabulary, "\n\"\xe2\x82\xac");
    uint8_t *bytes = file_new(&meta, tensors, 2, &size);
    cr_assert_eq(model_file_open(&file, bytes, size, why, sizeof why), 0, "%s", why);
    cr_assert_str_eq(file.meta.vocabulary, meta.vocabulary);
    model_file_close(&file);
    memcpy(strstr((char *)bytes + 8, "u20AC") - 1, "aabbcc", 6);
    cr_assert_eq(model_file_open(&file, bytes, size, why, sizeof why), PARLEY_EDATA);
    cr_assert(strstr(why, "vocabulary"), "%s", why);
    free(bytes);
    strcpy(meta.vocabulary, "ab");
    cr_assert_eq(model_file_pieces(&meta, x, 9, tensors, 2, pieces), PARLEY_EUSAGE);
    strcpy(meta.vocabulary, "ab\xff");
    cr_assert_eq(model_file_pieces(&meta, x, 9, tensors, 2, pieces), PARLEY_EUSAGE);
    memset(meta.vocabulary, 'a', sizeof meta.vocabulary);
    cr_assert_eq(model_file_pieces(&meta, x, 9, tensors, 2, pieces), PARLEY_EUSAGE);
}

Test(model_file, names_come_back_and_are_a_line_a_class_or_a_column)
{
    /* Proves that a model of a table carries what its numbers and inputs are, whatever is in the
     * names. */
    struct model_meta meta = meta_of(tensors, 2, 1);
    struct model_file file;
    struct piece pieces[MODEL_FILE_PIECES];
    size_t size;
    meta.class_names = "a \"b\"\\n\t\r\n\x01/\xe2\x82\xac\n{}";
    meta.features = 3;
    meta.columns = "\nlength, cm\n";
    uint8_t *bytes = file_new(&meta, tensors, 2, &size);
    cr_assert_eq(model_file_open(&file, bytes, size, why, sizeof why), 0, "%s", why);
    cr_assert_str_eq(file.meta.class_names, meta.class_names);
    cr_assert_str_eq(file.meta.columns, meta.columns);
    cr_assert_eq(model_file_verify(&file, why, sizeof why), 0, "%s", why);
    model_file_close(&file);
    memcpy(strstr((char *)bytes + 8, "u20AC") - 1, "aa\\nbb", 6);
    cr_assert_eq(model_file_open(&file, bytes, size, why, sizeof why), PARLEY_EDATA);
    cr_assert(strstr(why, "class_names"), "%s", why);
    free(bytes);
    meta.class_names = "a\nb";
    cr_assert_eq(model_file_pieces(&meta, x, 9, tensors, 2, pieces), PARLEY_EUSAGE);
    meta.class_names = "a\nb\n\xff";
    cr_assert_eq(model_file_pieces(&meta, x, 9, tensors, 2, pieces), PARLEY_EUSAGE);
    meta.class_names = NULL;
    meta.columns = "u\nv";
    cr_assert_eq(model_file_pieces(&meta, x, 9, tensors, 2, pieces), PARLEY_EUSAGE);
    meta.columns = NULL;
    bytes = file_new(&meta, tensors, 2, &size);
    cr_assert_eq(model_file_open(&file, bytes, size, why, sizeof why), 0, "%s", why);
    cr_assert_null(file.meta.class_names);
    cr_assert_null(file.meta.columns);
    model_file_close(&file);
    free(bytes);
}

/* `count` of them, of `repeats` times what `text` is. */
static struct names names_of(const char *text, int repeats, int count)
{
    struct names names = {0};
    char name[NAMES_BYTES_MAX + 1] = "";
    for (int i = 0; i < repeats; i++)
        strcat(name, text);
    for (int i = 0; i < count; i++)
        cr_assert_eq(names_add(&names, name, strlen(name)), 0);
    return names;
}

static char *lines_of(const char *text, int repeats, int count)
{
    struct names names = names_of(text, repeats, count);
    char *lines;
    cr_assert_eq(rows_write_lines(&names, &lines), 0);
    names_close(&names);
    return lines;
}

/* A file whose classes and whose columns these are. */
static uint8_t *file_with(char *lines, int count, size_t *size)
{
    struct model_meta meta = meta_of(tensors, 2, 0);
    meta.classes = meta.features = (uint32_t)count;
    meta.class_names = meta.columns = lines;
    return file_new(&meta, tensors, 2, size);
}

Test(model_file, names_as_long_as_rows_writes_them_fit_a_header)
{
    /* Proves that nothing is lost of which nothing is said: at the limit of rows.h classes and
     * columns fit together; beyond it there are none. Whatever it takes to write a character:
     * rows.h counts what the header has of it, so the largest of those is written of one alone. */
    static const struct {
        const char *text;
        int json; /* bytes of it */
    } cases[] = {{"a", 1}, {"\x01", 6}, {"\xf0\x9f\x98\x80", 12}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int repeats = 170, line = repeats * cases[i].json + 2; /* with its "\n" */
        int count = (int)ROWS_LINES_BYTES_MAX / line;
        char *lines = lines_of(cases[i].text, repeats, count);
        size_t sizes[2];
        cr_assert_not_null(lines, "%s", cases[i].text);
        if (cases[i].json == 12) {
            struct model_file file;
            uint8_t *bytes = file_with(lines, count, &sizes[0]);
            cr_assert_eq(model_file_open(&file, bytes, sizes[0], why, sizeof why), 0, "%s", why);
            cr_assert_not_null(file.meta.columns);
            cr_expect(strcmp(file.meta.columns, lines) == 0);
            model_file_close(&file);
            free(bytes);
        }
        free(lines);
        lines = lines_of(cases[i].text, repeats, count + 1);
        cr_expect_null(lines, "%s", cases[i].text);
        free(lines);
        for (int k = 0; k < 2; k++) { /* by eight: a header is padded to so many bytes */
            lines = lines_of(cases[i].text, repeats, 16 + 8 * k);
            free(file_with(lines, 16 + 8 * k, &sizes[k]));
            free(lines);
        }
        cr_expect_eq(sizes[1] - sizes[0], (size_t)(2 * 8 * line), "%s", cases[i].text);
    }
}

Test(model_file, no_truncation_and_no_flipped_bit_goes_unseen)
{
    /* Proves that all of a file is checked: its frame, the parameters by their digest, and texts
     * and scaling by their seal. */
    struct model_meta meta = meta_of(tensors, 2, 2);
    struct model_file file;
    size_t size;
    meta.numbers = true;
    meta.label[1] = 0.25f;
    meta.class_names = "a\nb\nc";
    meta.columns = "u\nv";
    uint8_t *bytes = file_new(&meta, tensors, 2, &size);
    for (size_t cut = 0; cut < size; cut++)
        cr_assert_eq(model_file_open(&file, bytes, cut, why, sizeof why), PARLEY_EDATA);
    size_t scaling_at = size - sizeof shift - sizeof scale - sizeof meta.label;
    for (size_t bit = 0; bit < size * 8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        int error = model_file_open(&file, bytes, size, why, sizeof why);
        if (bit / 8 >= scaling_at) cr_expect_eq(error, PARLEY_EDATA, "byte %zu", bit / 8);
        if (error == 0) {
            error = model_file_verify(&file, why, sizeof why);
            model_file_close(&file);
        }
        cr_expect_eq(error, PARLEY_EDATA, "byte %zu", bit / 8);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    free(bytes);
}

Test(model_file, each_text_is_under_the_seal)
{
    /* Proves it of changes that are good in themselves. */
    static const char *const changes[][2] = {{"softmax", "softmix"},
                                             {"csv:t.csv", "csv:u.csv"},
                                             {"a\\nb\\nc", "a\\nc\\nb"},
                                             {"u\\nv", "v\\nu"},
                                             {"\"classes\":\"3", "\"classes\":\"4"},
                                             {"\"seal\"", "\"sea1\""},
                                             {"\"columns\"", "\"colomns\""},
                                             {"fedcba98", "fedcba99"}};
    struct model_meta meta = meta_of(tensors, 2, 2);
    struct model_file file;
    size_t size;
    meta.columns = "u\nv";
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        meta.class_names = strchr(changes[i][0], '3') ? NULL : "a\nb\nc";
        uint8_t *bytes = file_new(&meta, tensors, 2, &size);
        char *at = strstr((char *)bytes + 8, changes[i][0]);
        cr_assert_not_null(at, "%s", changes[i][0]);
        memcpy(at, changes[i][1], strlen(changes[i][1]));
        cr_expect_eq(model_file_open(&file, bytes, size, why, sizeof why), PARLEY_EDATA, "%s",
                     changes[i][1]);
        cr_expect_not_null(strstr(why, "seal"), "%s: %s", changes[i][1], why);
        free(bytes);
    }
}

Test(model_file, a_writer_s_mistakes_are_usage_errors)
{
    /* Tensors that do not cover x, a tensor with a reserved name, unprintable text. */
    struct piece pieces[MODEL_FILE_PIECES];
    struct model_meta meta = meta_of(tensors, 2, 2);
    cr_assert_eq(model_file_pieces(&meta, x, 10, tensors, 2, pieces), PARLEY_EUSAGE);
    struct tensor reserved = {"label.scale", 1, {9}, 0, 9};
    cr_assert_eq(model_file_pieces(&meta, x, 9, &reserved, 1, pieces), PARLEY_EUSAGE);
    strcpy(reserved.name, "input.shift");
    cr_assert_eq(model_file_pieces(&meta, x, 9, &reserved, 1, pieces), PARLEY_EUSAGE);
    meta.scaling = 0;
    cr_assert_eq(model_file_pieces(&meta, x, 9, &reserved, 1, pieces), PARLEY_EUSAGE);
    strcpy(meta.data, "a\nb");
    cr_assert_eq(model_file_pieces(&meta, x, 9, tensors, 2, pieces), PARLEY_EUSAGE);
    memset(meta.data, 'a', sizeof meta.data);
    cr_assert_eq(model_file_pieces(&meta, x, 9, tensors, 2, pieces), PARLEY_EUSAGE);
}

Test(model_file, foreign_and_broken_metadata_is_refused_by_name)
{
    /* A plain safetensors file is not a parley model; each key is checked. */
    static const struct {
        const char *key, *value, *reason;
    } cases[] = {
        {"parley", "2", "format version"},
        {"features", "-1", "features"},
        {"features", "4294967296", "features"},
        {"classes", "", "classes"},
        {"width", " 1", "width"},
        {"run", "xyz", "run"},
        {"run", "00112233445566778", "run"},
        {"digest", "sha256:00", "digest"},
        {"model", "a\x1b[2J", "model"},
        {"features", "3", "input"},
        {NULL, NULL, "\"seal\" is missing"},
    };
    const char *digest = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    const struct tensor all[] = {
        {"w", 1, {3}, 0, 3}, {"input.shift", 1, {2}, 3, 2}, {"input.scale", 1, {2}, 5, 2}};
    for (int i = 0; i < 11; i++) {
        struct safetensors_pair pairs[] = {
            {"parley", "1"},  {"model", "softmax"}, {"data", "digits"}, {"features", "2"},
            {"classes", "3"}, {"channels", "0"},    {"height", "0"},    {"width", "0"},
            {"run", "1"},     {"digest", digest}};
        uint8_t *header;
        size_t size;
        struct model_file file;
        for (int p = 0; p < 10 && cases[i].key != NULL; p++)
            if (strcmp(pairs[p].key, cases[i].key) == 0) pairs[p].value = cases[i].value;
        cr_assert_eq(safetensors_header(all, 3, pairs, 10, &header, &size), 0);
        uint8_t *bytes = calloc(1, size + 28);
        memcpy(bytes, header, size);
        int error = model_file_open(&file, bytes, size + 28, why, sizeof why);
        cr_assert_eq(error, PARLEY_EDATA, "%s=%s", cases[i].key, cases[i].value);
        cr_assert_not_null(strstr(why, cases[i].reason), "%s", why);
        free(header);
        free(bytes);
    }
}
