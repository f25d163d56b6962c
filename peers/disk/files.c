/* files.c: see files.h. */
#include "disk/files.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/names.h"
#include "disk/durable.h"
#include "file/record.h"
#include "kernels/digest.h"

enum { NAME_BYTES = 64 };   /* what is added to OUT at most */
enum { SHOWN_BYTES = 100 }; /* of a file's name, from its end, where more is to be said */

/* The file of a model; without x, whether one can be made of what `meta` holds by now. */
static int make_pieces(const struct files *files, const float *x,
                       struct piece pieces[MODEL_FILE_PIECES])
{
    return model_file_pieces(&files->meta, x, files->vectors->count, files->vectors->tensors,
                             files->vectors->tensors_count, pieces);
}

static int try_pieces(const struct files *files)
{
    struct piece pieces[MODEL_FILE_PIECES];
    int code = make_pieces(files, NULL, pieces);
    free((void *)pieces[0].bytes);
    return code;
}

/* One text after the other: the one that has just come is to blame. */
static int copy_text(const struct files *files, const char *name, char *to, size_t to_size,
                     const char *from, char *why, size_t size)
{
    int code = PARLEY_EUSAGE;
    if (!from) from = "";
    if (strlen(from) < to_size) {
        strcpy(to, from);
        code = try_pieces(files);
    }
    if (code && code != PARLEY_ENOMEM)
        snprintf(why, size,
                 "about.%s: \"%.80s\" can't stand in a model file (%s, at most %zu bytes)", name,
                 from,
                 to == files->meta.vocabulary ? "a character of UTF-8 a class" : "printable ASCII",
                 to_size - 1);
    return code;
}

/* Names of classes, or of columns. */
static int copy_lines(struct files *files, bool columns, const char *from, char *why, size_t size)
{
    struct model_meta *meta = &files->meta;
    const char **to = columns ? &meta->columns : &meta->class_names;
    if (!from) return PARLEY_OK;
    *to = strdup(from);
    int code = *to ? try_pieces(files) : PARLEY_ENOMEM;
    if (code && code != PARLEY_ENOMEM)
        snprintf(why, size,
                 "about.%s: not one line of UTF-8, of at most %u bytes, for each of about.%s, %u, "
                 "or more than a file's header holds",
                 columns ? "columns" : "class_names", NAMES_BYTES_MAX,
                 columns ? "features" : "classes", columns ? meta->features : meta->classes);
    return code;
}

static int check_scaling(const struct parley_about *about, char *why, size_t size)
{
    const float *label = about->label;
    if (about->scaling != 0 && about->scaling != 1 && about->scaling != about->features)
        snprintf(why, size, "about.scaling: %u is out of range (0, 1 or about.features, %u)",
                 about->scaling, about->features);
    else if (about->scaling != 0 && (!about->shift || !about->scale))
        snprintf(why, size, "about.scaling: %u, and shift or scale is missing", about->scaling);
    else if (!model_file_scales_inputs(about->shift, about->scale, about->scaling))
        snprintf(why, size, "about.shift and about.scale are not numbers, and ones from 0 on");
    else if (label && !model_file_scales_label(label))
        snprintf(why, size, "about.label: %g and %g are not a number and one above 0",
                 (double)label[0], (double)label[1]);
    else
        return PARLEY_OK;
    return PARLEY_EUSAGE;
}

static int copy_scaling(struct files *files, const struct parley_about *about)
{
    struct model_meta *meta = &files->meta;
    size_t count = meta->scaling = about->scaling;
    meta->numbers = about->label != NULL;
    float *all = calloc(2 * count + 1, sizeof *all);
    if (!all) return PARLEY_ENOMEM;
    if (count) memcpy(all, about->shift, count * sizeof *all);
    if (count) memcpy(all + count, about->scale, count * sizeof *all);
    if (about->label) memcpy(meta->label, about->label, sizeof meta->label);
    meta->shift = all;
    meta->scale = all + count;
    return PARLEY_OK;
}

/* The first that makes a file of those up to it impossible. */
static uint32_t odd_tensor(const struct files *files)
{
    const struct tensor *tensors = files->vectors->tensors;
    uint32_t first = 0, end = files->vectors->tensors_count - 1;
    while (first < end) {
        struct piece pieces[MODEL_FILE_PIECES];
        uint32_t middle = (first + end) / 2;
        size_t floats = tensors[middle].offset + tensors[middle].count;
        int code = model_file_pieces(&files->meta, NULL, floats, tensors, middle + 1, pieces);
        free((void *)pieces[0].bytes);
        if (code)
            end = middle;
        else
            first = middle + 1;
    }
    return first;
}

static int refuse_tensors(const struct files *files, char *why, size_t size)
{
    uint32_t odd = odd_tensor(files);
    snprintf(why, size,
             "tensors: number %u, \"%s\": a model file can't hold it: one too many, a name that is "
             "taken, or not 1 to 31 printable characters of ASCII without a space",
             odd, files->vectors->tensors[odd].name);
    return PARLEY_EUSAGE;
}

static int copy_about(struct files *files, const struct parley_about *about, char *why, size_t size)
{
    struct model_meta *meta = &files->meta;
    meta->features = about->features;
    meta->classes = about->classes;
    meta->channels = about->channels;
    meta->height = about->height;
    meta->width = about->width;
    meta->run = files->vectors->run;
    int code = check_scaling(about, why, size);
    if (!code) code = copy_scaling(files, about);
    if (code) return code;
    code = try_pieces(files);
    if (code && code != PARLEY_ENOMEM) return refuse_tensors(files, why, size);
    if (!code)
        code = copy_text(files, "model", meta->model, sizeof meta->model, about->model, why, size);
    if (!code)
        code = copy_text(files, "data", meta->data, sizeof meta->data, about->data, why, size);
    if (!code)
        code = copy_text(files, "vocabulary", meta->vocabulary, sizeof meta->vocabulary,
                         about->vocabulary, why, size);
    if (!code) code = copy_lines(files, false, about->class_names, why, size);
    return code ? code : copy_lines(files, true, about->columns, why, size);
}

/* Or empty, or not to be read: safetensors begin with eight bytes of length and an object. */
static bool may_be_model(const char *path)
{
    char head[9];
    FILE *file = fopen(path, "rb");
    size_t got = file ? fread(head, 1, sizeof head, file) : 0;
    if (file) fclose(file);
    return got == 0 || (got == sizeof head && head[8] == '{');
}

int files_check_place(const char *path, char *why, size_t size)
{
    struct stat status;
    char folder[PATH_MAX];
    if (!stat(path, &status) && !S_ISREG(status.st_mode)) {
        snprintf(why, size, "%s is no regular file; give a file's name", path);
        return PARLEY_EUSAGE;
    }
    if (!may_be_model(path)) {
        snprintf(why, size,
                 "%s is there, and is no model to be replaced; move it, or give another name",
                 path);
        return PARLEY_EUSAGE;
    }
    if (strlen(path) + NAME_BYTES > PATH_MAX || !durable_folder(path, folder)) {
        snprintf(why, size, "the path is longer than %d bytes: %.800s", PATH_MAX - NAME_BYTES,
                 path);
        return PARLEY_EUSAGE;
    }
    const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    if (!*base) {
        snprintf(why, size, "\"%.800s\" names no file", path);
        return PARLEY_EUSAGE;
    }
    if (strlen(base) + NAME_BYTES > NAME_MAX) {
        snprintf(why, size, "the file's name is longer than %d bytes: %.800s",
                 NAME_MAX - NAME_BYTES, path);
        return PARLEY_EUSAGE;
    }
    bool gone = !stat(folder, &status) && status.st_nlink == 0; /* while this process is in it */
    if (gone) errno = ENOENT;
    if (!gone && !access(folder, W_OK | X_OK)) return PARLEY_OK;
    snprintf(why, size, "no file can be made in %.800s: %s",
             strcmp(folder, ".") == 0 ? "this folder" : folder, strerror(errno));
    return PARLEY_EUSAGE;
}

/* Says whose line it is. */
static int check_out(const char *out, char *why, size_t size)
{
    char cause[1024];
    int code = files_check_place(out, cause, sizeof cause);
    if (code) snprintf(why, size, "out: %s", cause);
    return code;
}

/* Where the model will be written, wherever the program's working folder is by then. As it was
 * given where that folder has no name, or one that is too long. */
static char *whole_path(const char *out)
{
    char *path = malloc(PATH_MAX + strlen(out) + 2);
    if (!path) return NULL;
    if (out[0] == '/' || !getcwd(path, PATH_MAX) ||
        strlen(path) + strlen(out) + NAME_BYTES > PATH_MAX)
        return strcpy(path, out);
    return strcat(strcat(path, "/"), out);
}

int files_init(struct files *files, struct vectors *vectors, const struct parley_options *options,
               const char *name, uint64_t boot, char *why, size_t size)
{
    const struct parley_about *about = &options->about;
    memset(files, 0, sizeof *files);
    files->vectors = vectors;
    files->name = name;
    files->boot = boot;
    if (!options->out) return PARLEY_OK;
    int code = check_out(options->out, why, size);
    if (!code) code = copy_about(files, about, why, size);
    if (code) return code;
    files->out = whole_path(options->out);
    return files->out ? PARLEY_OK : PARLEY_ENOMEM;
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
    free((void *)files->meta.shift);
    free((void *)files->meta.class_names);
    free((void *)files->meta.columns);
    free(files->aside);
    free(files->out);
}

/* No two nodes have one boot. */
static void model_part(const char *out, uint64_t boot, char *path, size_t size)
{
    snprintf(path, size, "%s.%016" PRIx64 ".part", out, boot);
}

static void record_part(const char *out, uint64_t boot, char *path, size_t size)
{
    snprintf(path, size, "%s.agreement.%016" PRIx64 ".part", out, boot);
}

void files_remove_parts(const char *out, uint64_t boot)
{
    char path[PATH_MAX + NAME_BYTES];
    model_part(out, boot, path, sizeof path);
    unlink(path);
    record_part(out, boot, path, sizeof path);
    unlink(path);
}

static int name_part(struct files *files)
{
    size_t size = strlen(files->out) + NAME_BYTES;
    files->part = malloc(size);
    if (!files->part) return PARLEY_ENOMEM;
    model_part(files->out, files->boot, files->part, size);
    return PARLEY_OK;
}

static int hash_model(const struct files *files, const void *x, uint8_t digest[PARLEY_DIGEST_BYTES])
{
    const struct vectors *vectors = files->vectors;
    return digest_model(x, vectors->count, vectors->tensors, vectors->tensors_count, vectors->run,
                        digest);
}

/* What stands on disk must be what was to be written, and that still of the digest that it states:
 * memory can go bad, too. */
static int read_back(struct files *files, const struct piece pieces[MODEL_FILE_PIECES],
                     struct op *op)
{
    uint8_t digest[PARLEY_DIGEST_BYTES];
    int code = durable_compare(files->part, pieces, MODEL_FILE_PIECES, op->why, sizeof op->why);
    if (!code) code = pieces_digest(pieces, MODEL_FILE_PIECES, files->hash);
    if (!code) code = hash_model(files, pieces[1].bytes, digest);
    if (code || memcmp(digest, op->digest, sizeof digest) == 0) return code;
    snprintf(op->why, sizeof op->why, "%.180s: the model changed in memory while it was written",
             files->out);
    return PARLEY_ENOT_WRITTEN;
}

static void answer(const struct files *files, struct op *op, int code)
{
    op->done.done.ok = !code;
    if (code && !op->why[0])
        snprintf(op->why, sizeof op->why, "%s: %s", files->out ? files->out : "the model",
                 parley_error_text(code));
}

void files_write(struct files *files, struct op *op)
{
    struct vectors *vectors = files->vectors;
    struct piece pieces[MODEL_FILE_PIECES] = {{NULL, 0}};
    const float *x = vectors_buffer(vectors, op->update.vector.buffer);
    drop_part(files);
    if (files->vote) vote_held(files->vote, op->why, sizeof op->why);
    int code = hash_model(files, x, op->digest);
    op->done.done.digest = op->digest;
    if (code || !files->out) goto out;
    memcpy(files->meta.digest, op->digest, sizeof files->meta.digest);
    code = make_pieces(files, x, pieces);
    if (!code) code = name_part(files);
    if (!code)
        code = durable_write(files->part, pieces, MODEL_FILE_PIECES, op->why, sizeof op->why);
    if (!code) code = read_back(files, pieces, op);
    if (code) drop_part(files);
out:
    free((void *)pieces[0].bytes);
    answer(files, op, code);
}

static int write_record(struct files *files, struct record *record, const char *part,
                        const char *path, char *why, size_t size)
{
    char *text = NULL;
    int code = record_check(record, why, size);
    memcpy(record->file, files->hash, sizeof record->file);
    if (!code) code = record_encode(record, &text);
    struct piece piece = {text, text ? strlen(text) : 0};
    if (!code) code = durable_replace_by(part, path, &piece, 1, why, size);
    free(text);
    return code;
}

/* To be closed. False: there is none, or none that can be read, as is said. */
static bool read_earlier(const char *path, struct record *earlier, struct op *op)
{
    char why[160];
    uint8_t *bytes;
    size_t size;
    if (access(path, F_OK)) return false;
    if (durable_read(path, &bytes, &size, op->why, sizeof op->why)) return false;
    bool good = !record_decode(earlier, bytes, size, why, sizeof why);
    if (!good) snprintf(op->why, sizeof op->why, "%.80s makes room: %s", path, why);
    free(bytes);
    return good;
}

/* The record stands before the model does: nobody finds a model without one. Where it can't be
 * written, or would contradict itself, as this node's view changed while it decided, there is none,
 * and a warning: the model itself is worth more. That of an earlier model goes, which would stand
 * beside this one; that of this very file, which another node with the same OUT has written, stays.
 */
static void publish_record(struct files *files, struct op *op, const char *part, const char *path,
                           bool same)
{
    char reason[160] = "";
    bool written =
        op->record && !write_record(files, op->record, part, path, reason, sizeof reason);
    size_t said = strlen(op->why);
    if (op->record && !written)
        snprintf(op->why + said, sizeof op->why - said, "%sno record of the agreement: %s",
                 said ? "; " : "", *reason ? reason : "out of memory");
    if (!written && !same) unlink(path);
}

/* Others agreed on another model without this node, and are no fewer than agreed with it. (Files of
 * one model may differ in what they say that it is about.) */
static bool is_outvoted(const struct files *files, const struct record *own,
                        const struct record *earlier)
{
    bool fewer = !own || own->held <= earlier->held;
    bool other = memcmp(earlier->digest, files->meta.digest, sizeof earlier->digest) != 0;
    return fewer && other && record_names(earlier, files->boot) && !access(files->out, F_OK);
}

static int step_aside(struct files *files, struct op *op, const struct record *earlier)
{
    size_t size = strlen(files->out) + strlen(files->name) + 2;
    files->aside = malloc(size);
    if (!files->aside) return PARLEY_ENOMEM;
    snprintf(files->aside, size, "%s.%s", files->out, files->name);
    const char *base = strrchr(files->aside, '/') ? strrchr(files->aside, '/') + 1 : files->aside;
    size_t length = strlen(base), skipped = length > SHOWN_BYTES ? length - SHOWN_BYTES : 0;
    snprintf(op->why, sizeof op->why,
             "%" PRIu32 " agreed on another model without this node: that keeps its name, and this "
             "node's is %s%s",
             earlier->held, skipped ? "..." : "", base + skipped);
    return PARLEY_OK;
}

static int publish(struct files *files, struct op *op)
{
    size_t size = strlen(files->out) + strlen(files->name) + NAME_BYTES;
    char *path = malloc(2 * size);
    if (!path) return PARLEY_ENOMEM;
    char *part = path + size;
    record_part(files->out, files->boot, part, size);
    snprintf(path, size, "%s" RECORD_SUFFIX, files->out);
    struct record earlier;
    int code = PARLEY_OK;
    bool found = read_earlier(path, &earlier, op);
    bool same = found && memcmp(earlier.file, files->hash, sizeof files->hash) == 0;
    if (found && !same && is_outvoted(files, op->record, &earlier)) {
        code = step_aside(files, op, &earlier);
        snprintf(path, size, "%s" RECORD_SUFFIX, files->aside ? files->aside : "");
    }
    if (found) record_close(&earlier);
    if (!code && access(files->part, F_OK)) { /* its record must not stand beside another model */
        snprintf(op->why, sizeof op->why, "%s: %s", files->part, strerror(errno));
        code = PARLEY_ENOT_WRITTEN;
    }
    if (!code) {
        const char *final = files->aside ? files->aside : files->out;
        publish_record(files, op, part, path, same);
        code = durable_rename(files->part, final, op->why, sizeof op->why);
        if (code && !same && !access(files->part, F_OK)) unlink(path); /* it has no model */
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
        code = publish(files, op);
        if (!code) {
            free(files->part);
            files->part = NULL;
        }
    }
    answer(files, op, code);
}
