/* json_out.c: see json_out.h. */
#include "json_out.h"

#include <errno.h>
#include <string.h>

#include "cli.h"

static int refuse(const char *path, int error, const char *why)
{
    say(PARLEY_LOG_ERROR, "--json: %s: %s", path, why);
    return error;
}

int json_out_open(struct json_out *out, const char *path, writer_lost lost, void *context)
{
    *out = (struct json_out){0};
    if (!path) return 0;
    out->file = strcmp(path, "-") == 0 ? stdout : fopen(path, "we");
    if (!out->file) return refuse(path, PARLEY_EUSAGE, strerror(errno));
    out->writer = writer_new(out->file, lost, context);
    if (out->writer) return 0;
    return refuse(path, PARLEY_ENOMEM, parley_error_text(PARLEY_ENOMEM));
}

void json_out_put(struct json_out *out, const char *line, size_t size, bool must)
{
    if (out->writer) writer_put(out->writer, line, size, must);
}

int json_out_close(struct json_out *out, const char *path)
{
    writer_free(out->writer);
    if (!out->file || out->file == stdout) return 0;
    bool lost = say_unwritten(out->file, "--json: ", path);
    fclose(out->file);
    return lost ? PARLEY_EFAIL : 0;
}
