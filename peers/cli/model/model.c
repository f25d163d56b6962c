/* model.c: `parley model inspect|verify|eval|predict|export|sample FILE`: a saved model.
 *
 *   inspect        what the file says about itself, and its tensors
 *   verify         recomputes the digest and, where its record stands beside it, the agreement's
 *   eval, predict  try.c
 *   export         export.c
 *   sample         sample.c
 *
 * A file that is no model, is cut short or (but for inspect) does not match its digest ends with
 * status 7, eval and predict of a model that is not finite with status 8.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/model/model.h"
#include "cli/read_file.h"
#include "file/record.h"
#include "report/text.h"

#define FILE_BYTES_MAX (8 * MODEL_PARAMETERS_MAX) /* twice its floats */

static int open_model(struct opened *opened, const char *path, char *why, size_t why_size)
{
    char reason[400];
    memset(opened, 0, sizeof *opened);
    opened->path = path;
    int error = read_file(path, FILE_BYTES_MAX, &opened->bytes, &opened->size, why, why_size);
    if (error) return error;
    error = model_file_open(&opened->file, opened->bytes, opened->size, reason, sizeof reason);
    if (!error) return 0;
    free(opened->bytes);
    snprintf(why, why_size, "%s: %s", path,
             error == PARLEY_ENOMEM ? parley_error_text(error) : reason);
    return error;
}

static void close_model(struct opened *opened)
{
    model_file_close(&opened->file);
    free(opened->bytes);
}

int model_print_json(json_t *json)
{
    size_t form = JSON_COMPACT | JSON_REAL_PRECISION(7);
    if (isatty(STDOUT_FILENO)) form |= JSON_ENSURE_ASCII;
    struct text text;
    text_init(&text, SIZE_MAX / 4);
    text_json(&text, json, form);
    char *line = text_take(&text);
    if (line) puts(line);
    free(line);
    return line ? 0 : PARLEY_ENOMEM;
}

/* ---- inspect --------------------------------------------------------------------------------- */

static void print_tensor(const struct tensor *tensor)
{
    char shape[64];
    size_t at = 0;
    for (uint32_t i = 0; i < tensor->rank; i++)
        at += (size_t)snprintf(shape + at, sizeof shape - at, i ? ",%" PRIu32 : "%" PRIu32,
                               tensor->shape[i]);
    printf("%-24s [%s]  %zu\n", tensor->name, shape, tensor->count);
}

/* As far as a line holds them; NULL: there are none. */
static int print_names(const char *title, const char *lines)
{
    char list[400];
    struct names names = {0};
    int error = lines ? rows_read_lines(&names, lines) : 0;
    if (!error && lines) printf("%-12s%s\n", title, names_list(&names, list, sizeof list));
    names_close(&names);
    return error;
}

/* The list with one more. NULL, and both are gone: one of them found no memory, or there is none to
 * append it. */
static json_t *append(json_t *all, json_t *one)
{
    if (json_array_append_new(all, one) == 0) return all;
    json_decref(all);
    return NULL;
}

/* NULL: no memory. */
static json_t *names_json(const char *lines)
{
    struct names names = {0};
    if (!lines) return json_null();
    json_t *all = rows_read_lines(&names, lines) ? NULL : json_array();
    for (uint32_t i = 0; all && i < names.count; i++)
        all = append(all, json_string(names_text(&names, i)));
    names_close(&names);
    return all;
}

/* Likewise. */
static json_t *tensors_json(const struct model_file *file)
{
    json_t *all = json_array();
    for (uint32_t i = 0; i < file->tensor_count; i++) {
        const struct tensor *tensor = &file->tensors[i];
        json_t *shape = json_array();
        for (uint32_t k = 0; k < tensor->rank; k++)
            shape = append(shape, json_integer(tensor->shape[k]));
        all = append(all, json_pack("{s:s, s:o, s:I}", "name", tensor->name, "shape", shape,
                                    "count", (json_int_t)tensor->count));
    }
    return all;
}

static int inspect_json(const struct opened *opened, const char *digest)
{
    const struct model_meta *meta = &opened->file.meta;
    char run[17];
    snprintf(run, sizeof run, "%016" PRIx64, meta->run);
    json_t *all = json_pack(
        "{s:s, s:s, s:I, s:I, s:I, s:b, s:o, s:o, s:s?, s:s, s:s, s:b, s:o}", "model", meta->model,
        "data", meta->data, "parameters", (json_int_t)opened->file.n, "features",
        (json_int_t)meta->features, "classes", (json_int_t)meta->classes, "numbers", meta->numbers,
        "class_names", names_json(meta->class_names), "columns", names_json(meta->columns),
        "characters", meta->vocabulary[0] ? meta->vocabulary : NULL, "run", run, "digest", digest,
        "verified", false, "tensors", tensors_json(&opened->file));
    return model_print_json(all);
}

static int inspect(const struct opened *opened, bool json)
{
    const struct model_meta *meta = &opened->file.meta;
    char digest[DIGEST_TEXT_BYTES];
    digest_text(meta->digest, digest);
    if (json) return inspect_json(opened, digest);
    printf("model       %s, %zu parameters\n", meta->model[0] ? meta->model : "a vector",
           opened->file.n);
    if (meta->features)
        printf("inputs      %" PRIu32 " values, %" PRIu32 " %s, data %s\n", meta->features,
               meta->classes,
               meta->numbers        ? "number"
               : meta->classes == 1 ? "class"
                                    : "classes",
               meta->data);
    if (meta->numbers)
        printf("labels      of mean %g and deviation %g\n", (double)opened->file.meta.label[0],
               1 / (double)opened->file.meta.label[1]);
    if (meta->vocabulary[0]) {
        char quoted[TEXT_QUOTED_BYTES];
        printf("characters  %s\n", text_quote(quoted, meta->vocabulary));
    }
    int error = print_names("classes", meta->class_names);
    if (!error) error = print_names("columns", meta->columns);
    if (error) return error;
    printf("run         %016" PRIx64 "\ndigest      %s, says the file; model verify computes it\n",
           meta->run, digest);
    for (uint32_t i = 0; i < opened->file.tensor_count; i++)
        print_tensor(&opened->file.tensors[i]);
    return 0;
}

/* ---- verify ---------------------------------------------------------------------------------- */

static int load_record(const char *path, struct record *record, bool *found, char *why,
                       size_t why_size)
{
    char name[4096], reason[200];
    uint8_t *bytes;
    size_t size;
    snprintf(name, sizeof name, "%s" RECORD_SUFFIX, path);
    *found = access(name, F_OK) == 0;
    if (!*found) return 0;
    int error = read_file(name, RECORD_BYTES_MAX, &bytes, &size, why, why_size);
    if (error) return error;
    error = record_decode(record, bytes, size, reason, sizeof reason);
    if (error) snprintf(why, why_size, "%.256s: %s", name, reason);
    free(bytes);
    return error;
}

static int verified_json(const struct record *record, bool found, const char *digest)
{
    if (!found)
        return model_print_json(
            json_pack("{s:b, s:s, s:b}", "ok", true, "digest", digest, "record", false));
    return model_print_json(json_pack("{s:b, s:s, s:b, s:I, s:I, s:I, s:s}", "ok", true, "digest",
                                      digest, "record", true, "held", (json_int_t)record->held,
                                      "live", (json_int_t)record->live, "known",
                                      (json_int_t)record->known, "cause", record->cause));
}

static int print_verified(const struct opened *opened, const struct record *record, bool found,
                          bool json)
{
    char digest[DIGEST_TEXT_BYTES];
    digest_text(opened->file.meta.digest, digest);
    if (json) return verified_json(record, found, digest);
    printf("digest      %s, as the file says\n", digest);
    if (!found) {
        printf("agreement   no record beside it (%s" RECORD_SUFFIX ")\n", opened->path);
        return 0;
    }
    printf("agreement   held by %" PRIu32 " of %" PRIu32 " known nodes, %" PRIu32
           " live; ended by %s; written by %s\n",
           record->held, record->known, record->live, record->cause, record->node);
    for (uint32_t i = 0; i < record->member_count; i++)
        printf("  %-20s %s%s%s\n", record->members[i].name,
               record->members[i].live ? "live" : "not live",
               record->members[i].held ? ", held it" : "",
               record->members[i].locked ? ", locked it" : "");
    return 0;
}

int model_check_digest(const struct opened *opened, char *why, size_t why_size)
{
    char reason[400] = "";
    int error = model_file_verify(&opened->file, reason, sizeof reason);
    if (reason[0]) snprintf(why, why_size, "%s: %s", opened->path, reason);
    return error;
}

static int verify(const struct opened *opened, bool json, char *why, size_t why_size)
{
    struct record record = {0};
    uint8_t whole[DIGEST_BYTES];
    char reason[400] = "";
    bool found = false;
    int error = load_record(opened->path, &record, &found, why, why_size);
    if (error || !found) goto out;
    error = digest_bytes(opened->bytes, opened->size, whole);
    if (!error)
        error = record_match(&record, opened->file.meta.digest, whole, opened->file.meta.run,
                             reason, sizeof reason);
    if (reason[0]) snprintf(why, why_size, "%s" RECORD_SUFFIX ": %s", opened->path, reason);
out:
    if (!error) error = print_verified(opened, &record, found, json);
    if (found) record_close(&record);
    return error;
}

static int act(const struct opened *opened, const struct settings *settings, char *why,
               size_t why_size)
{
    const char *action = settings->operands[0];
    if (strcmp(action, "inspect") == 0) return inspect(opened, settings->json_stdout);
    if (strcmp(action, "eval") == 0) return model_eval(opened, settings, why, why_size);
    if (strcmp(action, "predict") == 0) return model_predict(opened, settings, why, why_size);
    int error = model_check_digest(opened, why, why_size);
    if (error) return error;
    if (strcmp(action, "verify") == 0) return verify(opened, settings->json_stdout, why, why_size);
    if (strcmp(action, "export") == 0) return model_export(opened, settings, why, why_size);
    return model_sample(opened, settings, why, why_size);
}

int model_command(const struct settings *settings)
{
    struct opened opened;
    char why[512] = "";
    int error = open_model(&opened, settings->operands[1], why, sizeof why);
    if (error) return say_failure(error, why);
    error = act(&opened, settings, why, sizeof why);
    close_model(&opened);
    if (!error) return 0;
    fflush(stdout); /* what was printed comes before the line */
    return say_failure(error, why);
}
