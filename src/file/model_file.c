/* model_file.c: parley's metadata in a safetensors file.
 *
 *   write: the model's tensors, more for the scaling, the metadata as strings, and their seal
 *   read: the format first (safetensors.c), then each key, then that the last tensors are the
 *         scaling, then the seal of both; verify hashes what stands before them
 *
 * A file without parley's keys (from another program), with a key missing or out of its range, with
 * scaling of another size, or with anything changed that is under its seal is refused by name.
 */
#include "file/model_file.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/plain.h"
#include "data/names.h"
#include "file/why.h"

#define FORMAT "1"
#define SEAL "seal"

/* The metadata under the seal, in their order. "vocabulary" is of text; "class_names" and "columns"
 * are of a table. */
static const char *const keys[] = {"parley",     "model",       "data",   "features", "classes",
                                   "channels",   "height",      "width",  "run",      "digest",
                                   "vocabulary", "class_names", "columns"};
enum { KEYS = sizeof keys / sizeof *keys, COUNTS = 5, COUNTS_FROM = 3 }; /* "features" ... */

/* Tensors of a scaling: shift and scale; there are two scalings at most. */
enum { PAIRED = 2, SCALING_MAX = 2 * PAIRED };
static const char *const input[PAIRED] = {"input.shift", "input.scale"};
static const char *const label[PAIRED] = {"label.shift", "label.scale"};

static bool text_is_good(const char *text)
{
    size_t length = strnlen(text, MODEL_FILE_TEXT_BYTES);
    return length < MODEL_FILE_TEXT_BYTES && plain_ascii(text, length);
}

/* A character of UTF-8 for each class. That it is UTF-8 is JSON's to see. */
static bool vocabulary_is_good(const char *vocabulary, uint32_t classes)
{
    uint32_t count = 0;
    if (strnlen(vocabulary, MODEL_FILE_VOCABULARY_BYTES) == MODEL_FILE_VOCABULARY_BYTES)
        return false;
    for (const char *c = vocabulary; *c != 0; c++)
        count += (*c & 0xc0) != 0x80;
    return count == classes;
}

/* NULL, or a line of at most NAMES_BYTES_MAX bytes for each of `wanted`. */
static bool lines_are_good(const char *names, uint32_t wanted)
{
    uint32_t count = 0;
    for (const char *line = names; line != NULL; line++) {
        size_t size = strcspn(line, "\n");
        if (size > NAMES_BYTES_MAX) return false;
        count++;
        line += size;
        if (*line == 0) return count == wanted;
    }
    return true;
}

static void add_tensor(struct tensor *all, uint32_t *count, const char *name, uint32_t floats,
                       size_t at)
{
    struct tensor *tensor = &all[(*count)++];
    *tensor = (struct tensor){.rank = 1, .shape = {floats}, .offset = at, .count = floats};
    snprintf(tensor->name, sizeof tensor->name, "%s", name);
}

/* all: [tensor_count + 1 + SCALING_MAX], filled with the model's tensors and the scaling's. */
static int list_tensors(struct tensor *all, uint32_t *count, const struct model_meta *meta,
                        size_t n, const struct tensor *tensors, uint32_t tensor_count)
{
    const struct tensor whole = {"vector", 1, {(uint32_t)n}, 0, n};
    size_t at = 0;
    if (tensor_count == 0 && (uint64_t)n >> 32 != 0) return PARLEY_ELIMIT;
    if (tensor_count == 0) all[(*count)++] = whole;
    for (uint32_t t = 0; t < tensor_count; t++) {
        /* The reader would take it for the scaling, and refuse the file or the digest. */
        for (int i = 0; i < PAIRED; i++)
            if (strcmp(tensors[t].name, input[i]) == 0 || strcmp(tensors[t].name, label[i]) == 0)
                return PARLEY_EUSAGE;
        all[(*count)++] = tensors[t];
    }
    for (uint32_t t = 0; t < *count; t++)
        at += all[t].count;
    if (at != n) return PARLEY_EUSAGE;
    for (int i = 0; i < PAIRED && meta->scaling > 0; i++, at += meta->scaling)
        add_tensor(all, count, input[i], meta->scaling, at);
    for (int i = 0; i < PAIRED && meta->numbers; i++, at++)
        add_tensor(all, count, label[i], 1, at);
    return 0;
}

/* Scaling, as it stands behind x. */
struct part {
    const void *floats;
    uint64_t count; /* 0: the file has none */
};

static int make_seal(const struct safetensors_pair *pairs, uint32_t pair_count,
                     const struct model_meta *meta, uint8_t seal[DIGEST_BYTES])
{
    const struct part parts[SCALING_MAX] = {{meta->shift, meta->scaling},
                                            {meta->scale, meta->scaling},
                                            {&meta->label[0], meta->numbers},
                                            {&meta->label[1], meta->numbers}};
    struct digest hash;
    int error = digest_init(&hash);
    for (uint32_t i = 0; i < pair_count && error == 0; i++) {
        error = digest_add(&hash, pairs[i].key, strlen(pairs[i].key) + 1);
        if (error == 0) error = digest_add(&hash, pairs[i].value, strlen(pairs[i].value) + 1);
    }
    for (int i = 0; i < SCALING_MAX && error == 0; i++) {
        error = digest_add(&hash, &parts[i].count, sizeof parts[i].count);
        if (error == 0) error = digest_add(&hash, parts[i].floats, parts[i].count * sizeof(float));
    }
    if (error == 0) error = digest_end(&hash, seal);
    digest_close(&hash);
    return error;
}

/* pairs: [KEYS + 1], the first pair_count of them filled. */
static int sealed_header(const struct tensor *all, uint32_t count, const struct model_meta *meta,
                         struct safetensors_pair *pairs, uint32_t pair_count, uint8_t **header,
                         size_t *header_size)
{
    uint8_t seal[DIGEST_BYTES];
    char text[DIGEST_TEXT_BYTES];
    int error = make_seal(pairs, pair_count, meta, seal);
    if (error != 0) return error;
    digest_text(seal, text);
    pairs[pair_count] = (struct safetensors_pair){SEAL, text};
    return safetensors_header(all, count, pairs, pair_count + 1, header, header_size);
}

static int check_texts(const struct model_meta *meta)
{
    bool good = text_is_good(meta->model) && text_is_good(meta->data) &&
                (meta->vocabulary[0] == 0 || vocabulary_is_good(meta->vocabulary, meta->classes)) &&
                lines_are_good(meta->class_names, meta->classes) &&
                lines_are_good(meta->columns, meta->features);
    return good ? 0 : PARLEY_EUSAGE;
}

static int make_header(const struct model_meta *meta, size_t n, const struct tensor *tensors,
                       uint32_t tensor_count, uint8_t **header, size_t *header_size)
{
    char run[17], digest[DIGEST_TEXT_BYTES], number[COUNTS][11];
    const uint32_t numbers[COUNTS] = {meta->features, meta->classes, meta->channels, meta->height,
                                      meta->width};
    int error = check_texts(meta);
    if (error != 0) return error;
    if (tensor_count > SAFETENSORS_TENSORS_MAX - SCALING_MAX) return PARLEY_ELIMIT;
    snprintf(run, sizeof run, "%016" PRIx64, meta->run);
    digest_text(meta->digest, digest);
    for (int i = 0; i < COUNTS; i++)
        snprintf(number[i], sizeof number[i], "%" PRIu32, numbers[i]);
    const char *const values[KEYS] = {/* as `keys` has them */
                                      FORMAT,
                                      meta->model,
                                      meta->data,
                                      number[0],
                                      number[1],
                                      number[2],
                                      number[3],
                                      number[4],
                                      run,
                                      digest,
                                      meta->vocabulary[0] != 0 ? meta->vocabulary : NULL,
                                      meta->class_names,
                                      meta->columns};
    struct safetensors_pair pairs[KEYS + 1];
    uint32_t count = 0, pair_count = 0;
    for (int i = 0; i < KEYS; i++)
        if (values[i] != NULL) pairs[pair_count++] = (struct safetensors_pair){keys[i], values[i]};
    struct tensor *all = calloc((size_t)tensor_count + 1 + SCALING_MAX, sizeof *all);
    if (all == NULL) return PARLEY_ENOMEM;
    error = list_tensors(all, &count, meta, n, tensors, tensor_count);
    if (error == 0) error = sealed_header(all, count, meta, pairs, pair_count, header, header_size);
    free(all);
    return error;
}

int model_file_pieces(const struct model_meta *meta, const float *x, size_t n,
                      const struct tensor *tensors, uint32_t tensor_count,
                      struct piece pieces[MODEL_FILE_PIECES])
{
    uint8_t *header = NULL;
    size_t size = 0, scaling = meta->scaling * sizeof(float);
    int error = make_header(meta, n, tensors, tensor_count, &header, &size);
    pieces[0] = (struct piece){header, size};
    pieces[1] = (struct piece){x, n * sizeof *x};
    pieces[2] = (struct piece){meta->shift, scaling};
    pieces[3] = (struct piece){meta->scale, scaling};
    pieces[4] = (struct piece){meta->label, meta->numbers ? sizeof meta->label : 0};
    return error;
}

static int read_text(const struct safetensors *file, const char *key, char *text, char *why,
                     size_t why_size)
{
    const char *value = safetensors_metadata(file, key);
    if (value == NULL)
        return why_set(PARLEY_EDATA, why, why_size, "metadata \"%s\" is missing", key);
    if (!text_is_good(value))
        return why_set(PARLEY_EDATA, why, why_size, "metadata \"%s\" is too long or not printable",
                       key);
    memcpy(text, value, strlen(value) + 1);
    return 0;
}

/* Digits of `base` only: no sign, no space, nothing after them. */
static int read_number(const struct safetensors *file, const char *key, int base, uint64_t max,
                       uint64_t *number, char *why, size_t why_size)
{
    char text[MODEL_FILE_TEXT_BYTES];
    int error = read_text(file, key, text, why, why_size);
    if (error != 0) return error;
    size_t length = strlen(text);
    const char *digits = base == 16 ? "0123456789abcdef" : "0123456789";
    *number = 0;
    if (length >= 1 && length <= 16 && strspn(text, digits) == length)
        *number = strtoull(text, NULL, base);
    else
        length = 0;
    if (length == 0 || *number > max)
        return why_set(PARLEY_EDATA, why, why_size, "metadata \"%s\" is no valid number: \"%.40s\"",
                       key, text);
    return 0;
}

static int read_vocabulary(struct model_meta *meta, const struct safetensors *file, char *why,
                           size_t why_size)
{
    const char *value = safetensors_metadata(file, "vocabulary");
    if (value == NULL) return 0;
    if (!vocabulary_is_good(value, meta->classes))
        return why_set(PARLEY_EDATA, why, why_size,
                       "metadata \"vocabulary\" has not one character for each of %u classes",
                       (unsigned)meta->classes);
    memcpy(meta->vocabulary, value, strlen(value) + 1);
    return 0;
}

static int read_lines(const char **lines, const struct safetensors *file, const char *key,
                      uint32_t wanted, char *why, size_t why_size)
{
    *lines = safetensors_metadata(file, key);
    if (lines_are_good(*lines, wanted)) return 0;
    return why_set(PARLEY_EDATA, why, why_size,
                   "metadata \"%s\" has not one line for each of %u, of at most %u bytes", key,
                   (unsigned)wanted, NAMES_BYTES_MAX);
}

static int read_meta(struct model_meta *meta, const struct safetensors *file, char *why,
                     size_t why_size)
{
    uint32_t *const fields[COUNTS] = {&meta->features, &meta->classes, &meta->channels,
                                      &meta->height, &meta->width};
    const char *format = safetensors_metadata(file, "parley");
    if (format == NULL) return why_set(PARLEY_EDATA, why, why_size, "not a model of parley's");
    if (strcmp(format, FORMAT) != 0)
        return why_set(PARLEY_EDATA, why, why_size, "format version \"%.8s\"; this parley reads %s",
                       format, FORMAT);
    int error = read_text(file, "model", meta->model, why, why_size);
    if (error == 0) error = read_text(file, "data", meta->data, why, why_size);
    for (int i = 0; i < COUNTS && error == 0; i++) {
        uint64_t number = 0;
        error = read_number(file, keys[COUNTS_FROM + i], 10, UINT32_MAX, &number, why, why_size);
        *fields[i] = (uint32_t)number;
    }
    if (error == 0) error = read_number(file, "run", 16, UINT64_MAX, &meta->run, why, why_size);
    if (error == 0) error = read_vocabulary(meta, file, why, why_size);
    if (error == 0)
        error = read_lines(&meta->class_names, file, "class_names", meta->classes, why, why_size);
    if (error == 0)
        error = read_lines(&meta->columns, file, "columns", meta->features, why, why_size);
    if (error != 0) return error;
    const char *digest = safetensors_metadata(file, "digest");
    if (digest == NULL || digest_parse(digest, meta->digest) != 0)
        return why_set(PARLEY_EDATA, why, why_size, "metadata \"digest\" is missing or malformed");
    return 0;
}

/* Takes a pair of tensors off the end, which begins at *pair; that is NULL where there is none. */
static int cut_pair(struct model_file *file, const char *const names[PAIRED],
                    const struct tensor **pair, char *why, size_t why_size)
{
    const struct tensor *first = safetensors_tensor(&file->file, names[0]);
    const struct tensor *second = safetensors_tensor(&file->file, names[1]);
    const struct tensor *end = file->tensors + file->tensor_count;
    *pair = first;
    if (first == NULL && second == NULL) return 0;
    if (first == NULL || second == NULL || first != end - 2 || second != end - 1 ||
        first->rank != 1 || second->rank != 1 || first->count != second->count)
        return why_set(PARLEY_EDATA, why, why_size,
                       "%s and %s are not the last two tensors, of one length", names[0], names[1]);
    file->tensor_count -= PAIRED;
    file->n = first->offset;
    return 0;
}

bool model_file_scales_label(const float scaling[2])
{
    return isfinite(scaling[0]) && isnormal(scaling[1]) && scaling[1] > 0;
}

bool model_file_scales_inputs(const void *shift, const void *scale, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float one[2];
        memcpy(&one[0], (const uint8_t *)shift + i * 4, sizeof one[0]);
        memcpy(&one[1], (const uint8_t *)scale + i * 4, sizeof one[1]);
        if (!isfinite(one[0]) || !isfinite(one[1]) || one[1] < 0) return false;
    }
    return true;
}

static int take_label(struct model_file *file, const struct tensor *pair, char *why,
                      size_t why_size)
{
    struct model_meta *meta = &file->meta;
    meta->numbers = pair != NULL;
    if (pair == NULL) return 0;
    if (pair->count == 1) memcpy(meta->label, file->x + pair->offset * 4, sizeof meta->label);
    if (pair->count == 1 && model_file_scales_label(meta->label)) return 0;
    return why_set(PARLEY_EDATA, why, why_size, "%s and %s are not a number and one above 0",
                   label[0], label[1]);
}

static int take_input(struct model_file *file, const struct tensor *pair, char *why,
                      size_t why_size)
{
    struct model_meta *meta = &file->meta;
    if (pair == NULL) return 0;
    if (pair->count != 1 && pair->count != meta->features)
        return why_set(PARLEY_EDATA, why, why_size, "%s has %zu values for %u features", input[0],
                       pair->count, (unsigned)meta->features);
    meta->scaling = (uint32_t)pair->count;
    meta->shift = file->x + pair->offset * 4;
    meta->scale = file->x + (pair + 1)->offset * 4;
    if (model_file_scales_inputs(meta->shift, meta->scale, pair->count)) return 0;
    return why_set(PARLEY_EDATA, why, why_size, "%s and %s are not numbers, and ones from 0 on",
                   input[0], input[1]);
}

/* Takes the scaling off the end of the tensors. */
static int split(struct model_file *file, char *why, size_t why_size)
{
    const struct safetensors *all = &file->file;
    const struct tensor *pair;
    file->tensors = all->tensors;
    file->tensor_count = all->tensor_count;
    file->n = all->floats;
    file->x = all->data;
    int error = cut_pair(file, label, &pair, why, why_size);
    if (error == 0) error = take_label(file, pair, why, why_size);
    if (error == 0) error = cut_pair(file, input, &pair, why, why_size);
    if (error == 0) error = take_input(file, pair, why, why_size);
    if (error != 0) return error;
    if (file->n == 0) return why_set(PARLEY_EDATA, why, why_size, "the model has no tensor");
    return 0;
}

static int check_seal(const struct model_file *file, char *why, size_t why_size)
{
    struct safetensors_pair pairs[KEYS];
    uint8_t stated[DIGEST_BYTES], seal[DIGEST_BYTES];
    uint32_t count = 0;
    const char *text = safetensors_metadata(&file->file, SEAL);
    if (text == NULL)
        return why_set(PARLEY_EDATA, why, why_size,
                       "metadata \"" SEAL
                       "\" is missing: it was changed, or is older than this parley; "
                       "take another node's file (all are equal), or train again");
    for (int i = 0; i < KEYS; i++) {
        const char *value = safetensors_metadata(&file->file, keys[i]);
        if (value != NULL) pairs[count++] = (struct safetensors_pair){keys[i], value};
    }
    if (make_seal(pairs, count, &file->meta, seal) != 0)
        return why_set(PARLEY_ENOMEM, why, why_size, "out of memory");
    if (digest_parse(text, stated) == 0 && memcmp(stated, seal, sizeof seal) == 0) return 0;
    return why_set(PARLEY_EDATA, why, why_size,
                   "its texts or its scaling were changed since it was written, as their seal "
                   "tells; take another node's file (all are equal), or train again");
}

int model_file_open(struct model_file *file, const uint8_t *bytes, size_t size, char *why,
                    size_t why_size)
{
    *file = (struct model_file){0};
    int error = safetensors_open(&file->file, bytes, size, why, why_size);
    if (error != 0) return error;
    error = read_meta(&file->meta, &file->file, why, why_size);
    if (error == 0) error = split(file, why, why_size);
    if (error == 0) error = check_seal(file, why, why_size);
    if (error != 0) model_file_close(file);
    return error;
}

int model_file_verify(const struct model_file *file, char *why, size_t why_size)
{
    uint8_t digest[DIGEST_BYTES];
    struct digest hash;
    int error = digest_init(&hash);
    if (error == 0)
        error = digest_add_shape(&hash, file->n, file->tensors, file->tensor_count, file->meta.run);
    if (error == 0) error = digest_add(&hash, file->x, file->n * 4);
    if (error == 0) error = digest_end(&hash, digest);
    digest_close(&hash);
    if (error != 0) return why_set(error, why, why_size, "out of memory");
    if (memcmp(digest, file->meta.digest, sizeof digest) == 0) return 0;
    char stated[DIGEST_TEXT_BYTES], found[DIGEST_TEXT_BYTES];
    digest_text(file->meta.digest, stated);
    digest_text(digest, found);
    return why_set(PARLEY_EDATA, why, why_size, "the file states %s, its tensors hash to %s",
                   stated, found);
}

void model_file_close(struct model_file *file)
{
    safetensors_close(&file->file);
    *file = (struct model_file){0};
}
