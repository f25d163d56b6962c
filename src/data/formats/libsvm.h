/* libsvm.h: sparse tables, a line a sample: "LABEL INDEX:VALUE INDEX:VALUE ... # comment", indices
 * from 1 and ascending; what is not named is 0.
 *
 * Thread rule: pure; call from any thread.
 */
#ifndef PARLEY_DATA_LIBSVM_H
#define PARLEY_DATA_LIBSVM_H

#include "data/formats/bytes.h"
#include "data/formats/rows.h"

/* Makes `set` (which need not be initialised), dense. Labels are numbers, each other one a class.
 * shape: as csv_load, but its features may be given. A test set has its training set's features: it
 * may name fewer, and what it names beyond them is left out and counted (dataset.h), as no
 * weight was trained for it; unlabelled, its lines may begin with the first pair.
 * PARLEY_EDATA with a message in why[why_size] that says file, line and column (in bytes), what is
 * there and what should be; PARLEY_ENOMEM; then `set` is zeroed. */
PARLEY_CHECK int libsvm_load(struct dataset *set, struct rows_shape *shape, struct bytes file,
                             bool test, char *why, size_t why_size);

#endif
