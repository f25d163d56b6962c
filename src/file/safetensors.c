/* safetensors.c: writing and reading the format.
 *
 *   write: __metadata__ and the tensors in their order become compact JSON; spaces fill it to 8
 *   read: length field, JSON, each entry's type, shape and place; then the places are sorted and
 * must follow one another from 0 to the end of the data
 *
 * What can go wrong while reading is told by name: a size beyond the file or a limit, broken JSON,
 * a file that was cut short, a tensor of another type, an odd name or shape, places that overlap,
 * leave a gap or do not fit.
 */
#include "file/safetensors.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/plain.h"
#include "file/why.h"

#define LENGTH_BYTES 8
#define METADATA "__metadata__"
#define TEXT_BYTES 128 /* of a jansson message that is passed on */
/* By json_dumpb() only: json_dumps() leaves out keys where its buffer can't grow, and says nothing.
 */
#define HEADER_FORM (JSON_COMPACT | JSON_ENSURE_ASCII)

/* NULL: out of memory. */
static json_t *entry_new(const struct tensor *tensor)
{
    json_t *shape = json_array();
    for (uint32_t i = 0; i < tensor->rank; i++)
        if (json_array_append_new(shape, json_integer(tensor->shape[i])) != 0) {
            json_decref(shape);
            return NULL;
        }
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", "F32", "shape", shape, "data_offsets",
                     (json_int_t)(tensor->offset * sizeof(float)),
                     (json_int_t)((tensor->offset + tensor->count) * sizeof(float)));
}

/* Jansson does not tell bytes that are no UTF-8 from a lack of memory. */
static int set(json_t *object, const char *key, const char *text, json_t *value)
{
    if (json_object_set_new(object, key, value) == 0) return 0;
    for (const char *c = key; *c != 0; c++)
        if ((unsigned char)*c >= 0x80) return PARLEY_EUSAGE;
    for (const char *c = text; *c != 0; c++)
        if ((unsigned char)*c >= 0x80) return PARLEY_EUSAGE;
    return PARLEY_ENOMEM;
}

/* For the reader and the writer: what is written can be read again. */
static bool name_is_good(const char *name)
{
    size_t length = strlen(name);
    return length > 0 && length < sizeof((struct tensor *)0)->name && plain_name(name, length);
}

/* The header as a JSON value in *root, which is released by the caller also after an error. */
static int build(json_t *root, const struct tensor *tensors, uint32_t tensor_count,
                 const struct safetensors_pair *pairs, uint32_t pair_count)
{
    size_t offset = 0;
    json_t *metadata = json_object();
    if (json_object_set_new(root, METADATA, metadata) != 0) return PARLEY_ENOMEM;
    for (uint32_t i = 0; i < pair_count; i++) {
        if (json_object_get(metadata, pairs[i].key) != NULL) return PARLEY_EUSAGE;
        int error = set(metadata, pairs[i].key, pairs[i].value, json_string(pairs[i].value));
        if (error != 0) return error;
    }
    for (uint32_t t = 0; t < tensor_count; t++) {
        const struct tensor *tensor = &tensors[t];
        if (tensor->offset != offset || tensor->rank < 1 || tensor->rank > 4) return PARLEY_EUSAGE;
        if (!name_is_good(tensor->name)) return PARLEY_EUSAGE;
        if (json_object_get(root, tensor->name) != NULL) return PARLEY_EUSAGE;
        int error = set(root, tensor->name, "", entry_new(tensor));
        if (error != 0) return error;
        offset += tensor->count;
    }
    return 0;
}

int safetensors_header(const struct tensor *tensors, uint32_t tensor_count,
                       const struct safetensors_pair *pairs, uint32_t pair_count, uint8_t **header,
                       size_t *header_size)
{
    if (tensor_count > SAFETENSORS_TENSORS_MAX) return PARLEY_ELIMIT;
    json_t *root = json_object();
    int error = root == NULL ? PARLEY_ENOMEM : 0;
    if (error == 0) error = build(root, tensors, tensor_count, pairs, pair_count);
    if (error != 0) goto out;
    error = PARLEY_ENOMEM;
    size_t length = json_dumpb(root, NULL, 0, HEADER_FORM);
    if (length == 0) goto out;
    uint64_t padded = (length + 7) / 8 * 8;
    error = PARLEY_ELIMIT;
    if (padded > SAFETENSORS_HEADER_BYTES_MAX) goto out;
    error = PARLEY_ENOMEM;
    uint8_t *bytes = malloc(LENGTH_BYTES + padded);
    if (bytes == NULL) goto out;
    memcpy(bytes, &padded, LENGTH_BYTES); /* little-endian machines only: digest.c asserts it */
    memset(bytes + LENGTH_BYTES, ' ', padded);
    if (json_dumpb(root, (char *)bytes + LENGTH_BYTES, length, HEADER_FORM) != length) {
        free(bytes);
        goto out;
    }
    *header = bytes;
    *header_size = LENGTH_BYTES + padded;
    error = 0;
out:
    json_decref(root);
    return error;
}

/* Reads one entry; data_floats bounds every product. */
static int read_entry(struct tensor *tensor, const char *name, json_t *entry, size_t data_floats,
                      char *why, size_t why_size)
{
    const char *type;
    json_t *shape;
    json_int_t begin, end;
    json_error_t text;
    if (!name_is_good(name))
        return why_set(PARLEY_EDATA, why, why_size,
                       "tensor name \"%.40s\" is not 1 to 31 printable characters", name);
    if (json_unpack_ex(entry, &text, JSON_STRICT, "{s:s, s:o, s:[I, I]}", "dtype", &type, "shape",
                       &shape, "data_offsets", &begin, &end) != 0)
        return why_set(PARLEY_EDATA, why, why_size, "tensor %s: %.*s", name, TEXT_BYTES, text.text);
    if (strcmp(type, "F32") != 0)
        return why_set(PARLEY_EDATA, why, why_size, "tensor %s is of type %.8s; only F32 is read",
                       name, type);
    *tensor = (struct tensor){.rank = (uint32_t)json_array_size(shape), .count = 1};
    if (!json_is_array(shape) || json_array_size(shape) < 1 || json_array_size(shape) > 4)
        return why_set(PARLEY_EDATA, why, why_size, "tensor %s has not 1 to 4 dimensions", name);
    for (uint32_t i = 0; i < tensor->rank; i++) {
        json_t *item = json_array_get(shape, i);
        json_int_t size = json_integer_value(item); /* 0 for what is no integer */
        if (size < 1 || size > UINT32_MAX || (uint64_t)size > data_floats / tensor->count)
            return why_set(PARLEY_EDATA, why, why_size,
                           "tensor %s: dimension %u is not positive or larger than the data", name,
                           (unsigned)i);
        tensor->shape[i] = (uint32_t)size;
        tensor->count *= (size_t)size;
    }
    if (begin < 0 || begin % 4 != 0 || (uint64_t)begin / 4 > data_floats - tensor->count ||
        (uint64_t)end != (uint64_t)begin + tensor->count * 4)
        return why_set(PARLEY_EDATA, why, why_size,
                       "tensor %s: offsets [%lld, %lld] do not fit its shape or the data", name,
                       (long long)begin, (long long)end);
    tensor->offset = (size_t)begin / 4;
    memcpy(tensor->name, name, strlen(name) + 1);
    return 0;
}

static int by_offset(const void *a, const void *b)
{
    size_t left = ((const struct tensor *)a)->offset, right = ((const struct tensor *)b)->offset;
    return (left > right) - (left < right);
}

static int read_tensors(struct safetensors *file, size_t data_floats, char *why, size_t why_size)
{
    const char *name;
    json_t *entry;
    json_object_foreach(file->header, name, entry)
    {
        if (strcmp(name, METADATA) == 0) continue;
        int error =
            read_entry(&file->tensors[file->tensor_count], name, entry, data_floats, why, why_size);
        if (error != 0) return error;
        file->tensor_count++;
    }
    if (file->tensor_count > 1)
        qsort(file->tensors, file->tensor_count, sizeof *file->tensors, by_offset);
    for (uint32_t t = 0; t < file->tensor_count; t++) {
        if (file->tensors[t].offset != file->floats)
            return why_set(PARLEY_EDATA, why, why_size, "tensor %s %s", file->tensors[t].name,
                           file->tensors[t].offset < file->floats ? "overlaps the one before it"
                                                                  : "leaves a gap before it");
        file->floats += file->tensors[t].count;
    }
    if (file->floats != data_floats)
        return why_set(PARLEY_EDATA, why, why_size, "%zu bytes of data belong to no tensor",
                       (data_floats - file->floats) * 4);
    return 0;
}

static int check_metadata(json_t *header, char *why, size_t why_size)
{
    const char *key;
    json_t *value, *metadata = json_object_get(header, METADATA);
    if (metadata == NULL) return 0;
    if (!json_is_object(metadata))
        return why_set(PARLEY_EDATA, why, why_size, "the metadata is no JSON object");
    json_object_foreach(metadata, key, value) if (!json_is_string(value)) return why_set(
        PARLEY_EDATA, why, why_size, "metadata \"%.40s\" is no string", key);
    return 0;
}

/* Before anything else of the tensors, as a shape that is larger than the data then says nothing.
 */
static int check_end(json_t *header, uint64_t begin, size_t size, char *why, size_t why_size)
{
    const char *name;
    json_t *entry;
    json_int_t most = 0;
    json_object_foreach(header, name, entry)
    {
        json_int_t end =
            json_integer_value(json_array_get(json_object_get(entry, "data_offsets"), 1));
        if (end > most) most = end;
    }
    if ((uint64_t)most <= size - begin) return 0;
    return why_set(PARLEY_EDATA, why, why_size,
                   "the file is cut short: it has %zu bytes, and its header asks for %llu", size,
                   (unsigned long long)(begin + (uint64_t)most));
}

int safetensors_open(struct safetensors *file, const uint8_t *bytes, size_t size, char *why,
                     size_t why_size)
{
    uint64_t length;
    json_error_t text;
    *file = (struct safetensors){0};
    if (size < LENGTH_BYTES)
        return why_set(PARLEY_EDATA, why, why_size, "%zu bytes are too few for a model", size);
    memcpy(&length, bytes, LENGTH_BYTES);
    if (length > SAFETENSORS_HEADER_BYTES_MAX)
        return why_set(PARLEY_EDATA, why, why_size,
                       "the header's length (%llu bytes) is above the limit of %d: no model?",
                       (unsigned long long)length, SAFETENSORS_HEADER_BYTES_MAX);
    if (length > size - LENGTH_BYTES)
        return why_set(PARLEY_EDATA, why, why_size, "the file ends inside its header");
    size_t data_size = size - LENGTH_BYTES - (size_t)length;
    file->data = bytes + LENGTH_BYTES + length;
    file->header = json_loadb((const char *)bytes + LENGTH_BYTES, (size_t)length,
                              JSON_REJECT_DUPLICATES, &text);
    if (file->header == NULL && why_lacks_memory(&text))
        return why_set(PARLEY_ENOMEM, why, why_size, "out of memory");
    if (file->header == NULL)
        return why_set(PARLEY_EDATA, why, why_size, "header: %.*s", TEXT_BYTES, text.text);
    int error = PARLEY_EDATA;
    if (!json_is_object((json_t *)file->header))
        why_set(error, why, why_size, "the header is no JSON object");
    else if (json_object_size(file->header) > SAFETENSORS_TENSORS_MAX + 1)
        why_set(error, why, why_size, "more than %d tensors", SAFETENSORS_TENSORS_MAX);
    else
        error = check_metadata(file->header, why, why_size);
    if (error == 0) error = check_end(file->header, LENGTH_BYTES + length, size, why, why_size);
    if (error == 0 && data_size % 4 != 0)
        error = why_set(PARLEY_EDATA, why, why_size, "%zu bytes of data are no whole floats",
                        data_size);
    if (error == 0) {
        file->tensors = calloc(json_object_size(file->header) + 1, sizeof *file->tensors);
        if (file->tensors == NULL) error = why_set(PARLEY_ENOMEM, why, why_size, "out of memory");
    }
    if (error == 0) error = read_tensors(file, data_size / 4, why, why_size);
    if (error != 0) safetensors_close(file);
    return error;
}

const char *safetensors_metadata(const struct safetensors *file, const char *key)
{
    return json_string_value(json_object_get(json_object_get(file->header, METADATA), key));
}

const struct tensor *safetensors_tensor(const struct safetensors *file, const char *name)
{
    for (uint32_t t = 0; t < file->tensor_count; t++)
        if (strcmp(file->tensors[t].name, name) == 0) return &file->tensors[t];
    return NULL;
}

void safetensors_close(struct safetensors *file)
{
    free(file->tensors);
    json_decref(file->header);
    *file = (struct safetensors){0};
}
