/* shared_data.h: what `parley run` and the nodes that it starts have in common, in memory files:
 * the loaded data, and which samples were trained on.
 *
 * The happy path: run loads a source once and gives shared_data_make()'s descriptor to its nodes;
 * each maps it and trains on the very pages. Inflating, parsing and measuring are done once, and
 * the data are in memory once.
 *
 * The files are nobody else's, can't change their size (the data not at all), and go with the last
 * process that has them. A descriptor of anything else is left as it is: where a file can't be made
 * a node finds what its parent's parent has open. The data are laid out as this binary's structs
 * are: both ends are the same program.
 * Failures: no such file can be had: -1, or false. Who wants the data loads them then; without the
 * other file `run` can't say what was covered.
 * Thread rule: plain memory; data for reading only, coverage as coverage.h says.
 */
#ifndef PARLEY_CLI_SHARED_DATA_H
#define PARLEY_CLI_SHARED_DATA_H

#include "data/partition/coverage.h"
#include "data/source.h"

/* A descriptor for the caller to close, or -1. Copies. */
int shared_data_make(const struct source *source);

/* What another process has made. The source borrows from the mapping, and is not to be closed.
 * False: it is no such file. */
bool shared_data_map(int file, struct source *source);

/* The same for the coverage of so many samples; to be unmapped, coverage_bytes() of it, if ever. */
int shared_coverage_make(uint32_t samples);
bool shared_coverage_map(int file, uint32_t samples, struct coverage *coverage);

#endif
