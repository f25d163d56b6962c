/* source.h: the data that --data and --test name, from the files that a driver reads.
 *
 *   digits                the built-in images
 *   idx:DIR               {train,t10k}-images-idx3-ubyte and -labels-idx1-ubyte
 *   csv:FILE[,label=C]    a table with a column C of labels, by its name or its number from 1;
 *                         without C the last
 *                         ,header=yes or ,header=no behind it: the first line is one, or a sample
 *   libsvm:FILE           a sparse table
 *   npy:DIR               x.npy and y.npy
 *   text:FILE[,window=N]  characters, in windows of N (64)
 *
 * With ",numbers" behind the file, labels of csv, libsvm and npy are numbers to be met, not
 * classes; so are those that a model of numbers is tried on.
 *
 * Each file may be gzipped; where only FILE.gz is there, that is read. Without a test set of its
 * own a tenth of the training set is held out, the same on all nodes.
 * Thread rule: as the reader's; blocks as long as it does.
 */
#ifndef PARLEY_DATA_SOURCE_H
#define PARLEY_DATA_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/dataset.h"
#include "data/formats/rows.h"

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
    struct rows_shape shape;    /* names of classes (of text: its characters) and columns, if any */
    /* Of the training set: equal on all nodes that have the same data, with the same names of
     * columns, wherever their files lie. */
    char name[SOURCE_NAME_BYTES];
};

/* test_spec: NULL for the data's own, or a fixed tenth of it. To be closed after any outcome.
 * PARLEY_EUSAGE (a bad spec, a test set of another kind), PARLEY_EDATA (also for classes that are
 * many numbers), both with a line that names spec or file; PARLEY_ENOMEM. */
PARLEY_CHECK int source_load(struct source *source, const struct source_reader *reader,
                             const char *data_spec, const char *test_spec, char *why,
                             size_t why_size);
void source_close(struct source *source);

/* What a model's file says of its data. */
struct source_model {
    const char *vocabulary;  /* of text (chars.h), or "" */
    const char *class_names; /* of a table (rows.h), or NULL: not known */
    uint32_t classes, features;
    bool numbers;        /* labels are */
    const char *columns; /* of a table's values (rows.h), or NULL: not known */
};

/* Only a set to try a model on: the test data of test_spec, or else of data_spec; its scaling is
 * not set. Labels that are names go by the model's; where those are not known, by those of
 * data_spec, or of test_spec if that alone has all of them. With a vocabulary the data must be text
 * of those characters, and its window is `features` unless it names its own. Errors as above. */
PARLEY_CHECK int source_load_test(struct dataset *test, const struct source_reader *reader,
                                  const char *data_spec, const char *test_spec,
                                  const struct source_model *model, char *why, size_t why_size);

/* Only inputs, all of them in the data's order: labels are not looked at and need not be there
 * (idx, npy: no file of them; csv: no column; libsvm: none before the pairs); of idx the test
 * images, where there are such. The scaling is not set. Errors as above. */
PARLEY_CHECK int source_load_inputs(struct dataset *set, const struct source_reader *reader,
                                    const char *spec, const struct source_model *model, char *why,
                                    size_t why_size);

#endif
