/* load.h: the data that `parley sim` trains on, by --data and --test. */
#ifndef PARLEY_SIM_LOAD_H
#define PARLEY_SIM_LOAD_H

#include <stddef.h>

#include "data/dataset.h"

/* "digits" or "idx:DIR" (MNIST's file names, .gz or not); test: NULL for the data's own. Both sets
 * are scaled like the training set; to be closed also after an error.
 * PARLEY_EDATA with why, PARLEY_ENOMEM. */
PARLEY_CHECK int sim_load(struct dataset *train, struct dataset *test, const char *data_spec,
                          const char *test_spec, char *why, size_t why_size);

#endif
