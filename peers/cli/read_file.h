/* read_file.h: a whole file in memory. Thread rule: any thread; blocks on the disk. */
#ifndef PARLEY_CLI_READ_FILE_H
#define PARLEY_CLI_READ_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "data/source.h"

/* *bytes is the caller's to free, and not NULL for an empty file. PARLEY_EDATA with a line that
 * names file and cause (not there, no permission, a directory, larger than bytes_max),
 * PARLEY_ENOMEM. */
PARLEY_CHECK int read_file(const char *path, uint64_t bytes_max, uint8_t **bytes, size_t *size,
                           char *why, size_t why_size);

/* For --data and --test. */
extern const struct source_reader file_reader;

#endif
