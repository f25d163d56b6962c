/* model.c: no memory for the n-th allocation while a saved model is looked into and verified, for
 * one n after the other: it says all that it says else, or ends with an error and a whole line.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/model/model.h"
#include "disk/durable.h"
#include "lack.h"
#include "saved.h"

static char said[1024];
static bool lacked; /* memory, in the last run */

int say_failure(int error, const char *why)
{
    snprintf(said, sizeof said, "%s", why && why[0] ? why : parley_error_text(error));
    return parley_error_status(error);
}

/* Of no action that is tried. */
#define ABSENT(act)                                                                                \
    int act(const struct opened *opened, const struct settings *settings, char *why, size_t size)  \
    {                                                                                              \
        return PARLEY_EFAIL;                                                                       \
    }
ABSENT(model_eval)
ABSENT(model_predict)
ABSENT(model_export)
ABSENT(model_sample)

/* A model, and its record beside it; true: both are there. */
static bool write_files(const char *path, const char *beside)
{
    struct model_meta meta = saved_meta();
    struct record record = saved_record();
    struct piece pieces[MODEL_FILE_PIECES];
    char why[200], *text;
    uint8_t *bytes;
    size_t size;
    if (digest_model(saved_x, SAVED_FLOATS, saved_tensors, SAVED_TENSORS, meta.run, meta.digest) ||
        model_file_pieces(&meta, saved_x, SAVED_FLOATS, saved_tensors, SAVED_TENSORS, pieces) ||
        durable_write(path, pieces, MODEL_FILE_PIECES, why, sizeof why) ||
        durable_read(path, &bytes, &size, why, sizeof why) ||
        digest_bytes(bytes, size, record.file))
        return false;
    free((void *)pieces[0].bytes);
    free(bytes);
    memcpy(record.digest, meta.digest, sizeof record.digest);
    if (record_encode(&record, &text)) return false;
    int code = durable_write(beside, &(struct piece){text, strlen(text)}, 1, why, sizeof why);
    free(text);
    return !code;
}

/* What it printed, to be freed. The n-th allocation fails. */
static char *run(const char *action, bool json, const char *path, int n, int *status)
{
    struct settings settings = {.operands = {action, path}, .json_stdout = json};
    said[0] = '\0';
    rewind(stdout);
    if (ftruncate(STDOUT_FILENO, 0)) exit(1);
    lack_start((uint64_t)n);
    *status = model_command(&settings);
    lacked = lack_failed();
    lack_start(0);
    fflush(stdout);
    size_t size = (size_t)ftell(stdout);
    char *printed = calloc(1, size + 1);
    if (!printed || pread(STDOUT_FILENO, printed, size, 0) != (ssize_t)size) exit(1);
    return printed;
}

/* Returns what is broken. */
static int live(const char *action, bool json, const char *path)
{
    int broken = 0, n = 0, status;
    free(run(action, json, path, 0, &status)); /* what a library fetches but once */
    int64_t kept = lack_kept();
    char *whole = run(action, json, path, 0, &status);
    if (status || !*whole) return 1;
    do {
        char *printed = run(action, json, path, ++n, &status);
        size_t length = strlen(said);
        bool good =
            status ? lacked && length > 0 && said[length - 1] != ' ' : strcmp(printed, whole) == 0;
        if (!good) fprintf(stderr, "%s, allocation %d: \"%s\", %s", action, n, said, printed);
        broken += !good;
        free(printed);
    } while (lacked);
    free(whole);
    if (lack_kept() != kept) fprintf(stderr, "%s: blocks are kept\n", action);
    broken += lack_kept() != kept || n < 2;
    fprintf(stderr, "%s%s: %d allocations\n", action, json ? " --json" : "", n - 1);
    return broken;
}

int main(void)
{
    char folder[] = "/tmp/parley-model-XXXXXX", path[64], beside[96], printed[64];
    lack_init();
    if (!mkdtemp(folder)) return 1;
    snprintf(path, sizeof path, "%s/m", folder);
    snprintf(beside, sizeof beside, "%s" RECORD_SUFFIX, path);
    snprintf(printed, sizeof printed, "%s/printed", folder);
    if (!freopen(printed, "w+", stdout) || !write_files(path, beside)) return 1;
    int broken = 0;
    for (int json = 0; json < 2; json++)
        broken += live("inspect", json, path) + live("verify", json, path);
    unlink(path);
    unlink(beside);
    unlink(printed);
    return broken + (rmdir(folder) != 0) > 0;
}
