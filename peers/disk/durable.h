/* durable.h: writing files so that they are there after a power cut, or not at all; and looking.
 *
 * Errors: PARLEY_ENOT_WRITTEN with a line in why[size] that names file and cause.
 * Thread rule: any thread; they block on the disk.
 */
#ifndef PARLEY_PEERS_DURABLE_H
#define PARLEY_PEERS_DURABLE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "file/piece.h"

/* Makes the file anew from its pieces, in place of what has that name, and fsyncs it; a file that
 * fails is removed. */
int durable_write(const char *path, const struct piece *pieces, size_t count, char *why,
                  size_t size);

/* The folder that a file is in, "dir/" or "." for this one; false: its name is too long for any. */
bool durable_folder(const char *path, char folder[PATH_MAX]);

/* from becomes to, atomically; then fsyncs the directory. */
int durable_rename(const char *from, const char *to, char *why, size_t size);

#define DURABLE_PART ".part"

/* Makes the file anew under its name and DURABLE_PART, then renames it: what stood there before
 * stays until the new one is whole. */
int durable_replace(const char *path, const struct piece *pieces, size_t count, char *why,
                    size_t size);

/* The same by a name of the caller's choice, in the same folder. */
int durable_replace_by(const char *part, const char *path, const struct piece *pieces, size_t count,
                       char *why, size_t size);

/* Whether the file is just these pieces. It is read from disk and not from memory, where the system
 * can, as is that below: a disk that fails is found now, and not by those who need the file. */
int durable_compare(const char *path, const struct piece *pieces, size_t count, char *why,
                    size_t size);

/* The whole file; *bytes is to be freed. One that is empty, and one too large for memory, fail. */
int durable_read(const char *path, uint8_t **bytes, size_t *count, char *why, size_t size);

#endif
