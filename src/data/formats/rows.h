/* rows.h: rows of values and labels as they are read, and what a test set must share with its
 * training set.
 *
 * Thread rule: plain memory.
 */
#ifndef PARLEY_DATA_ROWS_H
#define PARLEY_DATA_ROWS_H

#include "data/dataset.h"
#include "data/names.h"

struct bytes;

/* What a row may hold; values are kept dense, BYTES_MAX of them. */
#define ROWS_FEATURES_MAX (UINT32_C(1) << 24)

/* All names of classes, or of columns, in a model's file: as JSON's strings in plain ASCII have
 * them, so that both fit a header of it. */
#define ROWS_LINES_BYTES_MAX (15u << 20)

/* What is said of a csv's first line; unsaid, it is looked at. */
enum rows_header { ROWS_HEADER_UNSAID, ROWS_HEADER_NO, ROWS_HEADER_YES };

/* Learned from a training file, and asked of its test file. */
struct rows_shape {
    struct names classes;    /* in their order: label i is the i-th */
    struct names columns;    /* csv's, where a header names them */
    uint32_t label;          /* the label's place among them, from 1; 0: it is not */
    uint32_t features;       /* 0: not known yet */
    bool numbers;            /* labels are targets, not classes; set by who reads */
    enum rows_header header; /* of the file to be read; likewise */
    bool unlabelled; /* labels are not looked at and may be missing; likewise, of a test set */
};

void rows_shape_close(struct rows_shape *shape);

/* Names of classes as a model's file keeps them, one a line, in *text, to be freed; NULL if there
 * are none, or they can't stand there: one is not UTF-8 or of more than a line, or they are longer
 * than the limit above.
 * PARLEY_ENOMEM. */
PARLEY_CHECK int rows_write_lines(const struct names *names, char **text);

/* The same of the columns of values, without the label's. */
PARLEY_CHECK int rows_write_columns(const struct rows_shape *shape, char **text);

/* And back, into a zeroed list. PARLEY_ENOMEM, PARLEY_ELIMIT for too long a line. */
PARLEY_CHECK int rows_read_lines(struct names *names, const char *text);

/* Rows in the making; features is set before the first. */
struct rows {
    struct dataset *set; /* its values and labels have room for `room` rows */
    size_t room;
    bool numbers; /* its targets, too */
};

/* PARLEY_EDATA with a line for a file that can't be read as text of lines: one in UTF-16, or with
 * lines that end with CR alone. */
PARLEY_CHECK int rows_check_text(struct bytes file, char *why, size_t why_size);

/* Place for one more row of set->features values, and its label: set->values + count * features.
 * The caller counts it once it is whole. PARLEY_ENOMEM; PARLEY_ELIMIT past the limits above. */
PARLEY_CHECK int rows_room(struct rows *rows);

/* The label's number among the classes: looked up, by its value too where all are numbers, or if
 * `grow` added. PARLEY_EDATA if it is not
 * among them, PARLEY_ELIMIT for too many classes or too long a name, PARLEY_ENOMEM. */
PARLEY_CHECK int rows_label(struct names *classes, const char *name, size_t size, bool grow,
                            uint16_t *label);

#endif
