/* load.h: the data that --data and --test name. Thread rule: any thread; blocks on the disk. */
#ifndef PARLEY_CLI_LOAD_H
#define PARLEY_CLI_LOAD_H

#include <stddef.h>

#include "data/dataset.h"

enum { LOAD_NAME_BYTES = 64 };

struct load {
    struct dataset train, test; /* scaled alike, by the training set */
    /* Of the training set: equal on all nodes that have the same data, wherever their files lie. */
    char name[LOAD_NAME_BYTES];
};

/* test_spec: NULL for the data's own, or a fixed tenth of it. To be closed after any outcome.
 * PARLEY_EDATA with a line that names the file, PARLEY_ENOMEM. */
PARLEY_CHECK int load_data(struct load *load, const char *data_spec, const char *test_spec,
                           char *why, size_t why_size);
void load_close(struct load *load);

/* Only a set to try a model on: the test data of test_spec, or else of data_spec; its classes are
 * at most `classes`, its scaling is not set. Errors as above. */
PARLEY_CHECK int load_test(struct dataset *test, const char *data_spec, const char *test_spec,
                           uint32_t classes, char *why, size_t why_size);

#endif
