/* source.h: the data that --data and --test name, from the files that a driver reads.
 *
 * Thread rule: as the reader's; blocks as long as it does.
 */
#ifndef PARLEY_DATA_SOURCE_H
#define PARLEY_DATA_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/dataset.h"

/* How a driver reads files. */
struct source_reader {
    bool (*exists)(const char *path);
    /* *bytes is then ours to free(). PARLEY_EDATA with a line that names the file, PARLEY_ENOMEM.
     */
    int (*read)(const char *path, uint64_t bytes_max, uint8_t **bytes, size_t *size, char *why,
                size_t why_size);
};

enum { SOURCE_NAME_BYTES = 64 };

struct source {
    struct dataset train, test; /* scaled alike, by the training set */
    /* Of the training set: equal on all nodes that have the same data, wherever their files lie. */
    char name[SOURCE_NAME_BYTES];
};

/* test_spec: NULL for the data's own, or a fixed tenth of it. To be closed after any outcome.
 * PARLEY_EDATA with a line that names the file, PARLEY_ENOMEM. */
PARLEY_CHECK int source_load(struct source *source, const struct source_reader *reader,
                             const char *data_spec, const char *test_spec, char *why,
                             size_t why_size);
void source_close(struct source *source);

/* Only a set to try a model on: the test data of test_spec, or else of data_spec; its classes are
 * at most `classes`, its scaling is not set. Errors as above. */
PARLEY_CHECK int source_load_test(struct dataset *test, const struct source_reader *reader,
                                  const char *data_spec, const char *test_spec, uint32_t classes,
                                  char *why, size_t why_size);

#endif
