/* source.c: finds the files of a SPEC and hands them to their parser.
 *
 *   idx:DIR   {train,t10k}-images-idx3-ubyte and -labels-idx1-ubyte, with or without .gz
 *   digits    drawn, no file
 *
 * Without files named t10k a tenth of the training set is held out.
 */
#include "data/source.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "data/digits.h"
#include "data/idx.h"

enum { PATH_BYTES = 4096, DIGITS_SEED = 1, HELD_PARTS = 10 };

/* DIR/name, or DIR/name.gz where only that is there. Returns false if neither is. */
static bool find_file(const struct source_reader *reader, char path[PATH_BYTES],
                      const char *directory, const char *name)
{
    static const char *const endings[] = {"", ".gz"};
    for (int i = 0; i < 2; i++) {
        snprintf(path, PATH_BYTES, "%s/%s%s", directory, name, endings[i]);
        if (reader->exists(path)) return true;
    }
    snprintf(path, PATH_BYTES, "%s/%s", directory, name);
    return false;
}

static bool has_test_files(const struct source_reader *reader, const char *directory)
{
    char path[PATH_BYTES];
    return find_file(reader, path, directory, "t10k-images-idx3-ubyte") ||
           find_file(reader, path, directory, "t10k-labels-idx1-ubyte");
}

static int load_idx(struct dataset *set, const struct source_reader *reader, const char *directory,
                    const char *prefix, uint32_t classes, char *why, size_t why_size)
{
    char name[64], images[PATH_BYTES], labels[PATH_BYTES];
    struct bytes image_file = {.name = images}, label_file = {.name = labels};
    uint8_t *image_bytes = NULL, *label_bytes = NULL;
    snprintf(name, sizeof name, "%s-images-idx3-ubyte", prefix);
    find_file(reader, images, directory, name);
    snprintf(name, sizeof name, "%s-labels-idx1-ubyte", prefix);
    find_file(reader, labels, directory, name);
    int error = reader->read(images, IDX_SIZE_MAX, &image_bytes, &image_file.size, why, why_size);
    if (!error)
        error = reader->read(labels, IDX_SIZE_MAX, &label_bytes, &label_file.size, why, why_size);
    image_file.data = image_bytes;
    label_file.data = label_bytes;
    if (!error) error = idx_load(set, image_file, label_file, classes, why, why_size);
    free(image_bytes);
    free(label_bytes);
    return error;
}

static void name_data(struct source *source)
{
    const struct dataset *set = &source->train;
    size_t cells = (size_t)set->count * set->features;
    uint64_t sum = XXH3_64bits_withSeed(set->labels, set->count * sizeof *set->labels, set->count);
    if (set->bytes) sum = XXH3_64bits_withSeed(set->bytes, cells, sum);
    if (set->values) sum = XXH3_64bits_withSeed(set->values, cells * sizeof *set->values, sum);
    snprintf(source->name, sizeof source->name, "%" PRIu32 "x%" PRIu32 " %016" PRIx64, set->count,
             set->features, sum);
}

static int load_idx_pair(struct source *source, const struct source_reader *reader,
                         const char *spec, const char *test_spec, char *why, size_t why_size)
{
    const char *data = spec + strlen("idx:");
    int error = load_idx(&source->train, reader, data, "train", 0, why, why_size);
    if (error) return error;
    if (!test_spec && !has_test_files(reader, data)) {
        error = dataset_split(&source->train, &source->test, HELD_PARTS);
        if (error) snprintf(why, why_size, "%s: too few samples to hold a tenth out", data);
    } else
        error = source_load_test(&source->test, reader, NULL, test_spec ? test_spec : spec,
                                 source->train.classes, why, why_size);
    if (!error && source->test.features != source->train.features) {
        snprintf(why, why_size, "the test data have %" PRIu32 " values a sample, not %" PRIu32,
                 source->test.features, source->train.features);
        error = PARLEY_EDATA;
    }
    if (!error && (error = dataset_measure(&source->train)))
        snprintf(why, why_size, "%s: no samples", data);
    return error ? error : dataset_scale_like(&source->test, &source->train);
}

int source_load(struct source *source, const struct source_reader *reader, const char *data_spec,
                const char *test_spec, char *why, size_t why_size)
{
    memset(source, 0, sizeof *source);
    if (why_size > 0) why[0] = 0;
    int error;
    if (strcmp(data_spec, "digits") == 0) {
        error = digits_make(&source->train, &source->test, DIGITS_SEED);
        if (!error && test_spec && strcmp(test_spec, "digits") != 0) {
            dataset_close(&source->test);
            error = source_load_test(&source->test, reader, NULL, test_spec, source->train.classes,
                                     why, why_size);
            if (!error && (error = dataset_scale_like(&source->test, &source->train)))
                snprintf(why, why_size, "--test: %s has samples of another size than digits",
                         test_spec);
        }
        snprintf(source->name, sizeof source->name, "digits");
    } else {
        error = load_idx_pair(source, reader, data_spec, test_spec, why, why_size);
        if (!error) name_data(source);
    }
    return error;
}

int source_load_test(struct dataset *test, const struct source_reader *reader,
                     const char *data_spec, const char *test_spec, uint32_t classes, char *why,
                     size_t why_size)
{
    const char *spec = test_spec ? test_spec : data_spec;
    memset(test, 0, sizeof *test);
    if (why_size > 0) why[0] = 0;
    if (strcmp(spec, "digits") == 0) {
        struct dataset train;
        int error = digits_make(&train, test, DIGITS_SEED);
        dataset_close(&train);
        return error;
    }
    const char *directory = spec + strlen("idx:");
    if (test_spec || has_test_files(reader, directory))
        return load_idx(test, reader, directory, "t10k", classes, why, why_size);
    struct dataset train;
    int error = load_idx(&train, reader, directory, "train", classes, why, why_size);
    if (error) return error;
    error = dataset_split(&train, test, HELD_PARTS);
    if (error) snprintf(why, why_size, "%s: too few samples to hold a tenth out", spec);
    dataset_close(&train);
    return error;
}

void source_close(struct source *source)
{
    dataset_close(&source->train);
    dataset_close(&source->test);
}
