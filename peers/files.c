/* files.c: see files.h. */
#include "files.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "durable.h"
#include "file/safetensors.h"
#include "kernels/digest.h"

enum { RUN_TEXT_BYTES = 17, NAME_BYTES = 64 };

int files_init(struct files *files, struct vectors *vectors, const struct parley_options *options,
               uint64_t boot)
{
    memset(files, 0, sizeof *files);
    files->vectors = vectors;
    files->boot = boot;
    if (!options->out) return PARLEY_OK;
    files->out = strdup(options->out);
    files->metadata = calloc(options->metadata_count + 1, sizeof *files->metadata);
    if (!files->out || !files->metadata) return PARLEY_ENOMEM;
    for (uint32_t i = 0; i < options->metadata_count; i++) {
        struct parley_setting *to = &files->metadata[i];
        to->name = strdup(options->metadata[i].name);
        to->value = strdup(options->metadata[i].value);
        files->metadata_count++;
        if (!to->name || !to->value) return PARLEY_ENOMEM;
    }
    return PARLEY_OK;
}

static void drop_part(struct files *files)
{
    if (files->part) unlink(files->part);
    free(files->part);
    files->part = NULL;
}

void files_close(struct files *files)
{
    drop_part(files);
    for (uint32_t i = 0; i < files->metadata_count; i++) {
        free((char *)files->metadata[i].name);
        free((char *)files->metadata[i].value);
    }
    free(files->metadata);
    free(files->out);
}

/* The bytes before the floats: equal on all nodes, so nothing of this node goes in. */
static int make_header(struct files *files, const uint8_t *digest, struct piece *header)
{
    uint32_t count = files->metadata_count;
    char text[DIGEST_TEXT_BYTES], run[RUN_TEXT_BYTES];
    struct safetensors_pair *pairs = calloc(count + 2, sizeof *pairs);
    if (!pairs) return PARLEY_ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        pairs[i] = (struct safetensors_pair){files->metadata[i].name, files->metadata[i].value};
    digest_text(digest, text);
    snprintf(run, sizeof run, "%016" PRIx64, files->vectors->run);
    pairs[count] = (struct safetensors_pair){"digest", text};
    pairs[count + 1] = (struct safetensors_pair){"run", run};
    uint8_t *bytes = NULL;
    int code = safetensors_header(files->vectors->tensors, files->vectors->tensors_count, pairs,
                                  count + 2, &bytes, &header->size);
    header->bytes = bytes;
    free(pairs);
    return code;
}

static int name_part(struct files *files, const uint8_t *digest)
{
    uint64_t start = 0;
    for (int i = 0; i < 8; i++)
        start = start << 8 | digest[i];
    size_t size = strlen(files->out) + NAME_BYTES;
    files->part = malloc(size);
    if (!files->part) return PARLEY_ENOMEM;
    snprintf(files->part, size, "%s.%016" PRIx64 "-%016" PRIx64 ".part", files->out, start,
             files->boot);
    return PARLEY_OK;
}

/* What stands on disk must be the header, then floats of this digest. */
static int read_back(struct files *files, const struct piece *header, struct op *op)
{
    struct vectors *vectors = files->vectors;
    uint8_t digest[PARLEY_DIGEST_BYTES];
    size_t size = 0;
    const uint8_t *map = durable_map(files->part, &size, op->why, sizeof op->why);
    if (!map) return PARLEY_ENOT_WRITTEN;
    bool equal = size == header->size + vectors->count * sizeof(float) &&
                 memcmp(map, header->bytes, header->size) == 0;
    /* The header is padded to 8 bytes: the floats in the map are aligned. */
    int code = PARLEY_OK;
    if (equal)
        code = digest_model((const float *)(const void *)(map + header->size), vectors->count,
                            vectors->tensors, vectors->tensors_count, vectors->run, digest);
    equal = equal && !code && memcmp(digest, op->digest, sizeof digest) == 0;
    durable_unmap(map, size);
    if (equal || code) return code;
    snprintf(op->why, sizeof op->why, "%s: read back, it is not what was written", files->part);
    return PARLEY_ENOT_WRITTEN;
}

void files_write(struct files *files, struct op *op)
{
    struct vectors *vectors = files->vectors;
    struct piece pieces[2] = {
        {NULL, 0},
        {vectors_buffer(vectors, op->update.vector.buffer), vectors->count * sizeof(float)}};
    drop_part(files);
    int code = digest_model(pieces[1].bytes, vectors->count, vectors->tensors,
                            vectors->tensors_count, vectors->run, op->digest);
    op->done.done.digest = op->digest;
    if (code || !files->out) goto out;
    code = make_header(files, op->digest, &pieces[0]);
    if (!code) code = name_part(files, op->digest);
    if (!code) code = durable_write(files->part, pieces, 2, op->why, sizeof op->why);
    if (!code) code = read_back(files, &pieces[0], op);
    if (code) drop_part(files);
out:
    free((void *)pieces[0].bytes);
    op->done.done.ok = !code;
    if (code && !op->why[0])
        snprintf(op->why, sizeof op->why, "%s: %s", files->out ? files->out : "the model",
                 parley_error_text(code));
}

/* The record stands before the model does: nobody finds a model without one. */
static int publish_record(struct files *files, struct op *op)
{
    size_t size = strlen(files->out) + NAME_BYTES;
    char *path = malloc(2 * size), *part = path + size;
    if (!path) return PARLEY_ENOMEM;
    snprintf(path, size, "%s.agreement.json", files->out);
    snprintf(part, size, "%s.agreement.%016" PRIx64 ".part", files->out, files->boot);
    struct piece piece = {op->text, strlen(op->text)};
    int code = durable_write(part, &piece, 1, op->why, sizeof op->why);
    if (!code) {
        code = durable_rename(part, path, op->why, sizeof op->why);
        if (code) unlink(part);
    }
    free(path);
    return code;
}

void files_publish(struct files *files, struct op *op)
{
    int code = PARLEY_OK;
    if (files->out && !files->part) {
        snprintf(op->why, sizeof op->why, "%s: no model was written beside it", files->out);
        code = PARLEY_ENOT_WRITTEN;
    } else if (files->out) {
        if (op->text) code = publish_record(files, op);
        if (!code) code = durable_rename(files->part, files->out, op->why, sizeof op->why);
        if (!code) {
            free(files->part);
            files->part = NULL;
        }
    }
    op->done.done.ok = !code;
}
