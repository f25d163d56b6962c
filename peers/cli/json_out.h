/* json_out.h: where --json goes: a file, or stdout for "-". Who tells waits for no reader:
 * writer.h.
 */
#ifndef PARLEY_CLI_JSON_OUT_H
#define PARLEY_CLI_JSON_OUT_H

#include "parley/error.h"
#include "writer.h"

struct json_out {
    int fd; /* -1: none is wanted */
    struct writer *writer;
};

/* path: of --json, NULL without it; a file is this process's alone until then. lost: as of a
 * writer. PARLEY_EUSAGE, PARLEY_EFAIL, said. */
PARLEY_CHECK int json_out_open(struct json_out *out, const char *path, writer_lost lost,
                               void *context);
/* A line with its newline; must: as of a writer. */
void json_out_put(struct json_out *out, const char *line, size_t size, bool must);
/* All is written then. PARLEY_EFAIL where some could not be; it is said. */
PARLEY_CHECK int json_out_close(struct json_out *out, const char *path);

#endif
