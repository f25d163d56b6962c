/* shared_data.h: loaded data in a memory file, for all nodes that `parley run` starts.
 *
 * The happy path: run loads a source once and gives shared_data_make()'s descriptor to its nodes;
 * each maps it and trains on the very pages. Inflating, parsing and measuring are done once, and
 * the data are in memory once.
 *
 * The file is nobody else's and can't change any more; it goes with the last process that has it.
 * It is laid out as this binary's structs are: both ends are the same program.
 * Failures: no such file can be had: -1, or false; who wants the data loads them then.
 * Thread rule: plain memory, for reading only.
 */
#ifndef PARLEY_CLI_SHARED_DATA_H
#define PARLEY_CLI_SHARED_DATA_H

#include "data/source.h"

/* A descriptor for the caller to close, or -1. Copies. */
int shared_data_make(const struct source *source);

/* What another process has made. The source borrows from the mapping, and is not to be closed.
 * False: it is no such file. */
bool shared_data_map(int file, struct source *source);

#endif
