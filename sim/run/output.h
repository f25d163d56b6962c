/* output.h: where --json, --csv, --curves, --report and --out write to.
 *
 * Thread rule: as stdio's.
 */
#ifndef PARLEY_SIM_OUTPUT_H
#define PARLEY_SIM_OUTPUT_H

#include <stdio.h>

#include "file/piece.h"
#include "settings/settings.h"

/* A new file, or stdout for "-"; a path that is NULL: none. PARLEY_EUSAGE, which is said. */
int sim_output_open(FILE **file, const char *option, const char *path);

/* Closes it but for stdout and NULL. PARLEY_EFAIL with a line if not all could be written to it, as
 * on a full disk, and no file is left if nothing could; that nobody reads a pipe any more is no
 * failure. */
int sim_output_close(FILE *file, const char *option, const char *path);

/* Whether one of the files is stdout: then nothing else is written to that. */
bool sim_output_takes_stdout(const struct settings *settings);

/* Whether a file could be made there; leaves none. PARLEY_EUSAGE or PARLEY_ENOMEM, with a line. */
int sim_output_try(const char *option, const char *path);

/* The file anew from its pieces, under another name until it is whole. PARLEY_EFAIL or
 * PARLEY_ENOMEM, with a line. */
int sim_output_replace(const char *option, const char *path, const struct piece *pieces,
                       size_t count);

#endif
