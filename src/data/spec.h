/* spec.h: what --data and --test say: a format, a file or directory, and what stands behind it.
 *
 * The forms: source.h. Thread rule: as the reader's.
 */
#ifndef PARLEY_DATA_SPEC_H
#define PARLEY_DATA_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/source.h"

enum { SPEC_PATH_BYTES = 4096, SPEC_NAME_BYTES = 32 /* of a file in a directory, at most */ };

enum spec_format { DIGITS, IDX, CSV, LIBSVM, NPY, TEXT, FORMATS };

/* What labels are: a test set must go by the same as its training set. */
enum spec_meaning { NUMBERS, NAMES, CHARACTERS };

struct spec {
    enum spec_format format;
    enum spec_meaning meaning;
    char path[SPEC_PATH_BYTES]; /* file or directory */
    char *option;               /* csv: the label, in path; text: the window; or NULL */
    uint32_t window;            /* of text */
    bool numbers;               /* labels are numbers to be met */
    enum rows_header header;    /* of csv */
};

/* PARLEY_EUSAGE with a line that quotes the text. */
PARLEY_CHECK int spec_parse(struct spec *spec, const char *text, const struct source_reader *reader,
                            char *why, size_t why_size);

/* Whether labels of the format may be numbers to be met. */
bool spec_takes_numbers(const struct spec *spec);

/* `path`, or path.gz where only that is there. Returns whether either is. */
bool spec_find_file(const struct source_reader *reader, char path[SPEC_PATH_BYTES]);

/* PARLEY_EUSAGE, and why: what is wrong with the spec. */
int spec_refuse(const char *text, const char *what, char *why, size_t why_size);

#endif
