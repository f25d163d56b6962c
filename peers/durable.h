/* durable.h: writing files so that they are there after a power cut, or not at all.
 *
 * Errors: PARLEY_ENOT_WRITTEN with a line in why[size] that names file and cause.
 * Thread rule: any thread; they block on the disk.
 */
#ifndef PARLEY_PEERS_DURABLE_H
#define PARLEY_PEERS_DURABLE_H

#include <stddef.h>

/* A piece of a file. */
struct piece {
    const void *bytes;
    size_t size;
};

/* Makes the file anew from its pieces and fsyncs it; a file that fails is removed. */
int durable_write(const char *path, const struct piece *pieces, size_t count, char *why,
                  size_t size);

/* from becomes to, atomically; then fsyncs the directory. */
int durable_rename(const char *from, const char *to, char *why, size_t size);

/* Makes the file anew under another name beside it, then renames it: what stood there before stays
 * until the new one is whole. */
int durable_replace(const char *path, const struct piece *pieces, size_t count, char *why,
                    size_t size);

/* The file's bytes, from disk and not from memory where the system can. NULL: failed. */
const void *durable_map(const char *path, size_t *bytes, char *why, size_t size);
void durable_unmap(const void *map, size_t bytes);

#endif
