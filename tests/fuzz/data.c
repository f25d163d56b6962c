/* data.c: the files that training data come in. What loads, is a set that can be trained on: its
 * labels lie below its classes, all its values can be gathered. An error has a line.
 *
 * Inputs of two files: a length (2 bytes) and so many bytes of the first, then the second.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "data/formats/chars.h"
#include "data/formats/csv.h"
#include "data/formats/gzip.h"
#include "data/formats/idx.h"
#include "data/formats/libsvm.h"
#include "data/formats/npy.h"
#include "fuzz.h"

static char why[400];

static struct bytes file_new(struct fuzz_bytes part, const char *name)
{
    /* Exactly as large, so that the sanitizers see a byte read too far. */
    uint8_t *copy = malloc(part.left + !part.left);
    FUZZ_CHECK(copy != NULL);
    if (part.left > 0) memcpy(copy, part.at, part.left);
    why[0] = 0;
    return (struct bytes){copy, part.left, name};
}

static void file_free(struct bytes file)
{
    free((void *)(uintptr_t)file.data);
}

/* True if it loaded; it is closed by the caller. */
static bool judge(struct dataset *set, int error)
{
    FUZZ_CHECK(error == 0 || error == PARLEY_ENOMEM || why[0]);
    if (error) {
        FUZZ_CHECK(!set->bytes && !set->values && !set->labels && !set->targets);
        return false;
    }
    FUZZ_CHECK(set->count > 0 && set->features > 0 && set->classes > 0);
    FUZZ_CHECK(!set->bytes != !set->values);
    for (uint32_t i = 0; i < set->count; i++) {
        FUZZ_CHECK(set->labels[i] < set->classes);
        FUZZ_CHECK(!set->targets || isfinite(set->targets[i]));
    }
    if (dataset_measure(set) != 0) return true;
    float *inputs = malloc(set->features * sizeof *inputs);
    FUZZ_CHECK(inputs != NULL);
    for (uint32_t i = 0; i < set->count; i += 1 + set->count / 16) {
        uint16_t label;
        dataset_gather(set, &i, 1, inputs, &label);
        for (uint32_t f = 0; f < set->features; f++)
            FUZZ_CHECK(isfinite(inputs[f]));
    }
    free(inputs);
    return true;
}

static void emit_two(fuzz_emit *emit, void *context, const void *first, size_t first_size,
                     const void *second, size_t second_size)
{
    uint8_t bytes[4096] = {(uint8_t)(first_size >> 8), (uint8_t)first_size};
    memcpy(bytes + 2, first, first_size);
    memcpy(bytes + 2 + first_size, second, second_size);
    emit(context, bytes, 2 + first_size + second_size);
}

/* Into out[1024]. */
static size_t gzipped(const void *bytes, size_t size, uint8_t *out)
{
    z_stream z = {0};
    FUZZ_CHECK(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    z.next_in = (Bytef *)(uintptr_t)bytes;
    z.avail_in = (uInt)size;
    z.next_out = out;
    z.avail_out = 1024;
    FUZZ_CHECK(deflate(&z, Z_FINISH) == Z_STREAM_END);
    deflateEnd(&z);
    return z.total_out;
}

/* ---- Two files ------------------------------------------------------------------------------- */

typedef int load_two(struct dataset *set, struct bytes first, struct bytes second, uint32_t classes,
                     char *why, size_t why_size);

static void run_two(load_two *load, const uint8_t *bytes, size_t size)
{
    struct fuzz_bytes input = {bytes, size};
    uint32_t length = fuzz_below(&input, 65536);
    struct bytes first = file_new(fuzz_take(&input, length), "first");
    struct bytes second = file_new(input, "second");
    struct dataset set, test;
    if (judge(&set, load(&set, first, second, 0, why, sizeof why))) {
        /* It is its own test set, and not that of fewer classes. */
        FUZZ_CHECK(load(&test, first, second, set.classes, why, sizeof why) == 0);
        if (set.shift) FUZZ_CHECK(dataset_scale_like(&test, &set) == 0);
        dataset_close(&test);
        if (set.classes > 1)
            FUZZ_CHECK(load(&test, first, second, set.classes - 1, why, sizeof why) ==
                       PARLEY_EDATA);
        dataset_close(&set);
    }
    if (judge(&set, load(&set, first, second, NPY_NUMBERS, why, sizeof why))) dataset_close(&set);
    file_free(first);
    file_free(second);
}

void fuzz_idx(const uint8_t *bytes, size_t size)
{
    run_two(idx_load, bytes, size);
}

void fuzz_idx_seeds(fuzz_emit *emit, void *context)
{
    static const uint8_t images[16 + 2 * 9] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 3, 7};
    static const uint8_t labels[8 + 2] = {0, 0, 8, 1, 0, 0, 0, 2, 1, 0};
    uint8_t packed[2][1024];
    emit_two(emit, context, images, sizeof images, labels, sizeof labels);
    size_t first = gzipped(images, sizeof images, packed[0]);
    size_t second = gzipped(labels, sizeof labels, packed[1]);
    emit_two(emit, context, packed[0], first, packed[1], second);
    emit_two(emit, context, packed[0], first, labels, sizeof labels);
}

void fuzz_npy(const uint8_t *bytes, size_t size)
{
    run_two(npy_load, bytes, size);
}

void fuzz_npy_seeds(fuzz_emit *emit, void *context)
{
    static const struct {
        const char *type, *shape;
        size_t size;
    } arrays[] = {{"<f4", "(3, 2)", 24}, {"<f8", "(3, 2)", 48},       {"|u1", "(3, 2, 1)", 6},
                  {"<i4", "(3, 2)", 24}, {"<i8", "(3, 1, 1, 2)", 48}, {"|u1", "(3, 1, 1, 2)", 6},
                  {"|u1", "(3,)", 3},    {"<i8", "(3, 1)", 24},       {"<f4", "(3,)", 12}};
    for (size_t i = 0; i < 18; i++) {
        uint8_t files[2][512] = {{0}};
        size_t sizes[2];
        for (int f = 0; f < 2; f++) {
            size_t which = f == 0 ? i % 6 : 6 + i / 6, at = i % 2 ? 12 : 10;
            memcpy(files[f], "\x93NUMPY", 6);
            files[f][6] = at == 12 ? 2 : 1;
            int length = snprintf((char *)files[f] + at, 256,
                                  "{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n",
                                  arrays[which].type, arrays[which].shape);
            files[f][8] = (uint8_t)length;
            files[f][at + (size_t)length] = (uint8_t)(f == 1);
            sizes[f] = at + (size_t)length + arrays[which].size;
        }
        emit_two(emit, context, files[0], sizes[0], files[1], sizes[1]);
    }
}

/* ---- Tables: the first byte says whether labels are numbers, and which column they are in -----
 */

static void run_table(bool sparse, const uint8_t *bytes, size_t size)
{
    struct fuzz_bytes input = {bytes, size};
    uint32_t how = fuzz_below(&input, 8);
    static const char *const columns[] = {NULL, "label", "1", "2"};
    struct bytes file = file_new(input, "table");
    struct rows_shape shape = {.numbers = how & 1, .features = sparse && how & 4 ? 3 : 0};
    struct dataset set, test;
    for (int pass = 0; pass < 2; pass++) {
        struct dataset *into = pass == 0 ? &set : &test;
        int error =
            sparse ? libsvm_load(into, &shape, file, pass == 1, why, sizeof why)
                   : csv_load(into, &shape, file, columns[how / 2], pass == 1, why, sizeof why);
        if (pass == 1) {
            FUZZ_CHECK(error == 0); /* a training set is a test set of itself */
            FUZZ_CHECK(test.count == set.count && test.features == set.features);
            dataset_close(&test);
        } else if (!judge(&set, error)) {
            break;
        }
    }
    if (set.labels) dataset_close(&set);
    rows_shape_close(&shape);
    file_free(file);
}

static void emit_text(fuzz_emit *emit, void *context, uint8_t how, const char *text)
{
    uint8_t bytes[4096] = {how};
    memcpy(bytes + 1, text, strlen(text));
    emit(context, bytes, 1 + strlen(text));
}

void fuzz_csv(const uint8_t *bytes, size_t size)
{
    run_table(false, bytes, size);
}

void fuzz_csv_seeds(fuzz_emit *emit, void *context)
{
    for (uint8_t how = 0; how < 8; how++) {
        emit_text(emit, context, how, "width,label,height\n1,a,2\n3.5,b,-4e-3\n1e3,a,0\n");
        emit_text(emit, context, how, "1,2,3\r\n4,5,6\r\n\r\n7,8,2\r\n");
        emit_text(emit, context, how, "\xef\xbb\xbf\"wi\"\"dth\", label\n 1 ,\"a\nb\"\n2,c\n");
        emit_text(emit, context, how, "0.5\n1\n");
    }
}

void fuzz_libsvm(const uint8_t *bytes, size_t size)
{
    run_table(true, bytes, size);
}

void fuzz_libsvm_seeds(fuzz_emit *emit, void *context)
{
    for (uint8_t how = 0; how < 8; how++) {
        emit_text(emit, context, how, "1 1:0.5 3:2 # a comment\n-1 2:1e-3\n\n1 1:4\n");
        emit_text(emit, context, how, "+1 1:1\r\n2\r\n0.5 2:3\r\n");
    }
}

/* ---- Text: the first byte is the window -------------------------------------------------------
 */

void fuzz_text(const uint8_t *bytes, size_t size)
{
    struct fuzz_bytes input = {bytes, size};
    uint32_t window = 1 + fuzz_below(&input, 255);
    struct bytes file = file_new(input, "text");
    struct names vocabulary = {0}, again = {0};
    struct dataset set, test;
    if (judge(&set, chars_load(&set, &vocabulary, file, window, false, why, sizeof why))) {
        char text[CHARS_VOCABULARY_BYTES];
        FUZZ_CHECK(chars_load(&test, &vocabulary, file, window, true, why, sizeof why) == 0);
        FUZZ_CHECK(test.count == set.count);
        dataset_close(&test);
        /* A zero byte ends a text in C: that one can't go into a model file. */
        if (!memchr(file.data, 0, file.size)) {
            chars_write_vocabulary(&vocabulary, text);
            FUZZ_CHECK(chars_read_vocabulary(&again, text) == 0);
            FUZZ_CHECK(again.count == vocabulary.count);
        }
        uint16_t *numbers = malloc(file.size * sizeof *numbers);
        size_t count = 0;
        FUZZ_CHECK(numbers &&
                   chars_encode(&vocabulary, file, numbers, &count, why, sizeof why) == 0);
        FUZZ_CHECK(count <= file.size);
        for (size_t i = 0; i < count; i++)
            FUZZ_CHECK(numbers[i] < vocabulary.count);
        free(numbers);
        dataset_close(&set);
    }
    names_close(&vocabulary);
    names_close(&again);
    file_free(file);
}

void fuzz_text_seeds(fuzz_emit *emit, void *context)
{
    emit_text(emit, context, 3, "To be, or not to be: that is the question.\n");
    emit_text(emit, context, 0, "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80 b\xc3\xb6");
    emit_text(emit, context, 200, "short");
}

/* ---- gzip: the first byte is the limit in units of 64 bytes -----------------------------------
 */

void fuzz_gzip(const uint8_t *bytes, size_t size)
{
    struct fuzz_bytes input = {bytes, size};
    size_t limit = 64 * (size_t)fuzz_below(&input, 256), got, whole_size;
    struct bytes file = file_new(input, "file.gz");
    uint8_t *whole, *out = malloc(limit + 1);
    FUZZ_CHECK(out != NULL);
    int error = gzip_inflate(file, out, limit + 1, &got, why, sizeof why);
    FUZZ_CHECK(got <= limit + 1);
    FUZZ_CHECK(error == 0 || error == PARLEY_ENOMEM || why[0]);
    int other = gzip_expand(file, limit, &whole, &whole_size, why, sizeof why);
    if (!error && got <= limit) {
        FUZZ_CHECK(other == 0 && whole_size == got && memcmp(whole, out, got) == 0);
    } else {
        FUZZ_CHECK(other != 0);
    }
    if (!other) free(whole);
    free(out);
    file_free(file);
}

void fuzz_gzip_seeds(fuzz_emit *emit, void *context)
{
    static uint8_t zeroes[5000];
    uint8_t packed[2100] = {255};
    size_t first = gzipped("to be or not to be", 18, packed + 1);
    emit(context, packed, 1 + first);
    size_t second = gzipped(zeroes, sizeof zeroes, packed + 1 + first);
    emit(context, packed, 1 + first + second); /* two members */
    memset(packed + 1 + first + second, 0, 8); /* padding */
    emit(context, packed, 1 + first + second + 8);
    packed[0] = 3;
    emit(context, packed, 1 + first + second);
}
