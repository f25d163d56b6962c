/* csv.h: tables as comma-separated values (RFC 4180, with blanks around values allowed).
 *
 * Quotes, doubled quotes and line ends inside them, CRLF, blank lines and a byte-order mark are
 * read. The first line is a header if the label's name stands in it, or a name in a column of
 * values (no number, and no sign that one is missing, like "" or "NA"), or if it counts the
 * columns from 0 or 1 on, four at least (two behind a first one that is called nothing), or if its
 * label is a name and all others are numbers, or if it is the training set's; or as the shape says.
 * Thread rule: pure;
 * call from any thread.
 */
#ifndef PARLEY_DATA_CSV_H
#define PARLEY_DATA_CSV_H

#include "data/formats/bytes.h"
#include "data/formats/rows.h"

/* Makes `set` (which need not be initialised): a column of labels of any names, all others values.
 * Labels that are numbers, all of them, are told apart by their value, and called as first written.
 * label: the label's column, by its name in the header or its number from 1 (from 0 where the
 * header numbers the columns so); NULL: the last.
 * A header that nobody spoke of, and that is all numbers, is noted in the set (dataset.h).
 * shape: of a training set it is filled (zeroed before); of a test set (`test`) it is that of its
 * training set, whose columns and classes it must have; unlabelled, it has the training set's
 * values alone, or a label's column that is passed over. Where both have headers, the columns of
 * values are called the same, in the same order. The scaling is not measured yet.
 * PARLEY_EDATA with a message in why[why_size] that says file, line and column, what is there and
 * what should be; PARLEY_ENOMEM; then `set` is zeroed. */
PARLEY_CHECK int csv_load(struct dataset *set, struct rows_shape *shape, struct bytes file,
                          const char *label, bool test, char *why, size_t why_size);

#endif
