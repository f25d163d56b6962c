/* source.c: finds the files of a SPEC and hands them to their parser. */
#include "data/source.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "data/digits.h"
#include "data/formats/chars.h"
#include "data/formats/csv.h"
#include "data/formats/gzip.h"
#include "data/formats/idx.h"
#include "data/formats/libsvm.h"
#include "data/formats/npy.h"
#include "data/spec.h"

enum { DIGITS_SEED = 1, NUMBERS_MAX = 20 };

/* One reading: what all its steps need. */
struct loading {
    const struct source_reader *reader;
    struct rows_shape *shape;
    uint32_t classes; /* of numbers: those allowed, 0: any */
    char *why;
    size_t why_size;
    const char *flag; /* that named the file, for a message: "--data: ", or "" */
};

static int bad_spec(const struct loading *l, const char *text, const char *what)
{
    return spec_refuse(text, what, l->why, l->why_size);
}

static int parse_spec(struct spec *spec, const char *text, const struct loading *l)
{
    return spec_parse(spec, text, l->reader, l->why, l->why_size);
}

/* ---- Files ----------------------------------------------------------------------------------- */

static bool find_in(const struct loading *l, char path[SPEC_PATH_BYTES], const char *directory,
                    const char *name)
{
    int length = snprintf(path, SPEC_PATH_BYTES, "%s/%s", directory, name);
    return length < SPEC_PATH_BYTES && spec_find_file(l->reader, path);
}

/* The file's bytes in *owned, as they lie or, if `expand`, inflated. */
static int read_bytes(const struct loading *l, const char *path, bool expand, uint8_t **owned,
                      struct bytes *file)
{
    *file = (struct bytes){.name = path};
    size_t said = (size_t)snprintf(l->why, l->why_size, "%s", l->flag);
    if (said >= l->why_size) said = 0;
    int error =
        l->reader->read(path, BYTES_MAX, owned, &file->size, l->why + said, l->why_size - said);
    if (error && l->why_size > 0 && !l->reader->exists(path)) {
        said = strlen(l->why);
        snprintf(l->why + said, l->why_size - said, ", nor with .gz");
    }
    if (error) return error;
    if (l->why_size > 0) l->why[0] = 0;
    file->data = *owned;
    if (!expand || !gzip_is(*file)) return 0;
    uint8_t *packed = *owned;
    error = gzip_expand(*file, BYTES_MAX, owned, &file->size, l->why, l->why_size);
    if (error) *owned = NULL;
    free(packed);
    file->data = *owned;
    return error;
}

typedef int pair_parser(struct dataset *set, struct bytes samples, struct bytes labels,
                        uint32_t classes, char *why, size_t why_size);

/* Whether a model that is tried can't take such samples, whatever their labels are. */
static bool has_other_shape(const struct loading *l, struct bytes samples, pair_parser *parse)
{
    struct dataset set;
    char why[256];
    if (l->shape->features == 0 || l->shape->numbers) return false;
    bool other = parse(&set, samples, (struct bytes){0}, 0, why, sizeof why) == 0 &&
                 set.features != l->shape->features;
    dataset_close(&set);
    return other;
}

/* Two files of a directory; unlabelled, the first of them. Where both labels and shape are not the
 * model's, the shape is what to tell of: the labels are left out, and who compares shapes tells. */
static int load_pair(const struct loading *l, struct dataset *set, const char *directory,
                     const char *samples_name, const char *labels_name, pair_parser *parse)
{
    char samples_path[SPEC_PATH_BYTES], labels_path[SPEC_PATH_BYTES];
    struct bytes samples, labels = {0};
    uint8_t *samples_bytes = NULL, *labels_bytes = NULL;
    bool expand = parse != idx_load; /* which knows its size before it inflates */
    find_in(l, samples_path, directory, samples_name);
    find_in(l, labels_path, directory, labels_name);
    int error = read_bytes(l, samples_path, expand, &samples_bytes, &samples);
    if (!error && !l->shape->unlabelled)
        error = read_bytes(l, labels_path, expand, &labels_bytes, &labels);
    if (!error) error = parse(set, samples, labels, l->classes, l->why, l->why_size);
    if (error == PARLEY_EDATA && labels.data && has_other_shape(l, samples, parse))
        error = parse(set, samples, (struct bytes){0}, l->classes, l->why, l->why_size);
    free(samples_bytes);
    free(labels_bytes);
    return error;
}

static int load_idx(const struct loading *l, struct dataset *set, const char *directory, bool test)
{
    char images[64], labels[64];
    snprintf(images, sizeof images, "%s-images-idx3-ubyte", test ? "t10k" : "train");
    snprintf(labels, sizeof labels, "%s-labels-idx1-ubyte", test ? "t10k" : "train");
    return load_pair(l, set, directory, images, labels, idx_load);
}

static int load_table(const struct loading *l, struct dataset *set, const struct spec *spec,
                      bool test)
{
    char path[SPEC_PATH_BYTES];
    struct bytes file;
    uint8_t *bytes = NULL;
    strcpy(path, spec->path);
    spec_find_file(l->reader, path);
    int error = read_bytes(l, path, true, &bytes, &file);
    if (error) return error;
    l->shape->header = spec->header;
    if (spec->format == CSV)
        error = csv_load(set, l->shape, file, spec->option, test, l->why, l->why_size);
    else if (spec->format == LIBSVM)
        error = libsvm_load(set, l->shape, file, test, l->why, l->why_size);
    else
        error = chars_load(set, &l->shape->classes, file, spec->window, test, l->why, l->why_size);
    free(bytes);
    return error;
}

/* All ten classes are in it: a model of fewer has no output for some, and can't be tried on it. */
static int load_digits(const struct loading *l, struct dataset *set, bool test)
{
    int error = digits_make(set, test, DIGITS_SEED);
    bool other_shape = l->shape->features > 0 && set->features != l->shape->features;
    if (error || l->shape->unlabelled || l->classes == 0 || l->classes >= set->classes)
        return error;
    if (other_shape) return 0; /* as in load_pair() */
    snprintf(l->why, l->why_size, "digits: labels 0 to %" PRIu32 ", the classes are 0 to %" PRIu32,
             set->classes - 1, l->classes - 1);
    dataset_close(set);
    return PARLEY_EDATA;
}

/* The training set of `spec`, or if `test` what it has for a test. */
static int load(const struct loading *l, struct dataset *set, const struct spec *spec, bool test)
{
    switch (spec->format) {
    case DIGITS:
        return load_digits(l, set, test);
    case IDX:
        return load_idx(l, set, spec->path, test);
    case NPY:
        return load_pair(l, set, spec->path, "x.npy", "y.npy", npy_load);
    default:
        return load_table(l, set, spec, test);
    }
}

static bool has_own_test(const struct loading *l, const struct spec *spec)
{
    char path[SPEC_PATH_BYTES];
    if (spec->format == DIGITS) return true;
    return spec->format == IDX && (find_in(l, path, spec->path, "t10k-images-idx3-ubyte") ||
                                   find_in(l, path, spec->path, "t10k-labels-idx1-ubyte"));
}

static void expect_numbers(struct loading *l, const struct spec *spec)
{
    if (!spec->numbers) return;
    l->shape->numbers = true;
    l->classes = NPY_NUMBERS;
}

static int hold_out(const struct loading *l, struct dataset *train, struct dataset *test,
                    const char *spec)
{
    int error = dataset_split(train, test);
    if (error == PARLEY_EDATA)
        snprintf(l->why, l->why_size, "%.300s: too few samples to hold a tenth out", spec);
    return error;
}

/* ---- Both sets ------------------------------------------------------------------------------- */

/* What a model's file says of the columns must be the same on all nodes: all but the label's. */
static uint64_t add_columns(const struct rows_shape *shape, uint64_t sum)
{
    for (uint32_t c = 0; c < shape->columns.count; c++) {
        const char *name = names_text(&shape->columns, c);
        if (c + 1 != shape->label) sum = XXH3_64bits_withSeed(name, strlen(name) + 1, sum);
    }
    return sum;
}

static void name_data(struct source *source, const struct spec *spec)
{
    const struct dataset *set = &source->train;
    const struct names *classes = &source->shape.classes;
    size_t cells = (size_t)set->count * set->features;
    if (spec->format == DIGITS) {
        snprintf(source->name, sizeof source->name, "digits");
        return;
    }
    uint64_t sum = XXH3_64bits_withSeed(set->labels, set->count * sizeof *set->labels, set->count);
    if (set->targets)
        sum = XXH3_64bits_withSeed(set->targets, set->count * sizeof *set->targets, sum);
    if (set->bytes) sum = XXH3_64bits_withSeed(set->bytes, cells, sum);
    if (set->values) sum = XXH3_64bits_withSeed(set->values, cells * sizeof *set->values, sum);
    if (classes->count > 0) sum = XXH3_64bits_withSeed(classes->text, classes->size, sum);
    sum = add_columns(&source->shape, sum);
    snprintf(source->name, sizeof source->name, "%" PRIu32 "x%" PRIu32 " %016" PRIx64, set->count,
             set->features, sum);
}

/* A test set goes by its training set's label, header and window, unless it names its own. */
static int match_specs(const struct spec *data, struct spec *test, const char *text,
                       const struct loading *l)
{
    bool other = data->meaning != test->meaning || test->numbers;
    if (data->numbers) other = !spec_takes_numbers(test);
    test->numbers = data->numbers;
    if (other)
        return bad_spec(l, text,
                        "a test set of another kind than the training data, whose classes "
                        "can't be told to be the same");
    if (!test->option && test->format == data->format) {
        test->option = data->option;
        test->window = data->window;
    }
    if (test->header == ROWS_HEADER_UNSAID && test->format == data->format)
        test->header = data->header;
    return 0;
}

static int scale_both(const struct loading *l, struct source *source, const char *spec)
{
    struct dataset *train = &source->train, *test = &source->test;
    int error = dataset_measure(train);
    if (error == PARLEY_EDATA) {
        snprintf(l->why, l->why_size, "%.300s: no samples, or values too large to be scaled", spec);
        return error;
    }
    if (!error) error = dataset_scale_like(test, train);
    if (error != PARLEY_EDATA) return error;
    if (test->features != train->features)
        snprintf(l->why, l->why_size,
                 "the test data have %" PRIu32 " values a sample, not %" PRIu32, test->features,
                 train->features);
    else if ((train->bytes != NULL) != (test->bytes != NULL))
        snprintf(l->why, l->why_size,
                 "of training and test data one are images, the other a table");
    else
        snprintf(l->why, l->why_size,
                 "the test data are images of %" PRIu32 " x %" PRIu32 " in %" PRIu32
                 " channels, not %" PRIu32 " x %" PRIu32 " in %" PRIu32,
                 test->height, test->width, test->channels, train->height, train->width,
                 train->channels);
    return error;
}

/* Classes that are many different numbers are none, unless there are more samples of each than
 * classes. Whole numbers may be classes of few samples each, but hardly of one. */
static int check_classes(const struct loading *l, uint32_t samples, const char *text)
{
    const struct names *classes = &l->shape->classes;
    uint32_t count = classes->count;
    bool whole;
    if (l->shape->numbers || count <= NUMBERS_MAX || !names_are_numbers(classes, &whole)) return 0;
    if (whole ? count <= samples / 2 : count < samples / count) return 0;
    snprintf(l->why, l->why_size,
             "data \"%.200s\": %" PRIu32 " classes, which are numbers such as %s and %s; to fit "
             "labels as numbers write \"%.200s,numbers\"",
             text, count, names_text(classes, count / 2), names_text(classes, count / 2 + 1), text);
    return PARLEY_EDATA;
}

int source_load(struct source *source, const struct source_reader *reader, const char *data_spec,
                const char *test_spec, char *why, size_t why_size)
{
    struct spec data, test;
    struct loading l = {reader, &source->shape, 0, why, why_size, "--data: "};
    memset(source, 0, sizeof *source);
    if (why_size > 0) why[0] = 0;
    int error = parse_spec(&data, data_spec, &l);
    if (!error) error = parse_spec(&test, test_spec ? test_spec : data_spec, &l);
    if (!error) error = match_specs(&data, &test, test_spec, &l);
    expect_numbers(&l, &data);
    if (!error) error = load(&l, &source->train, &data, false);
    if (!error) error = check_classes(&l, source->train.count, data_spec);
    if (error) return error;
    l.classes = data.numbers ? NPY_NUMBERS : source->train.classes;
    error = dataset_find_far(&source->train);
    if (error) return error;
    source->shape.features = source->train.features; /* npy says them to the set alone */
    if (test_spec) l.flag = "--test: ";
    if (test_spec || has_own_test(&l, &data))
        error = load(&l, &source->test, &test, true);
    else
        error = hold_out(&l, &source->train, &source->test, data_spec);
    if (!error) error = scale_both(&l, source, data_spec);
    if (!error) name_data(source, &data);
    return error;
}

/* ---- A set to try a model on ----------------------------------------------------------------- */

static int check_names(const struct loading *l, uint32_t classes, const char *spec)
{
    if (l->shape->classes.count == 0 || l->shape->classes.count == classes) return 0;
    snprintf(l->why, l->why_size,
             "%.300s: %" PRIu32 " classes where the model has %" PRIu32
             "; name the model's own training data with --data",
             spec, l->shape->classes.count, classes);
    return PARLEY_EDATA;
}

/* Whole training data, for the names of their classes and for a tenth of them. */
static int load_train(const struct loading *l, struct dataset *train, const struct spec *spec,
                      uint32_t classes, const char *text)
{
    int error = load(l, train, spec, false);
    return error ? error : check_names(l, classes, text);
}

/* A test set whose classes have the names of the training data's. */
static int load_beside(const struct loading *l, struct dataset *test, const struct spec *data,
                       struct spec *spec, uint32_t classes, const char *data_text,
                       const char *test_text)
{
    struct dataset train = {0};
    int error = match_specs(data, spec, test_text, l);
    if (!error) error = load_train(l, &train, data, classes, data_text);
    dataset_close(&train);
    return error ? error : load(l, test, spec, true);
}

/* All of a file, or a tenth of it; classes and features are known before it is read. */
static int load_known(const struct loading *l, struct dataset *test, const struct spec *spec,
                      bool whole, const char *text)
{
    struct dataset all = {0};
    int error = load(l, whole ? test : &all, spec, true);
    if (!error && !whole) error = hold_out(l, &all, test, text);
    dataset_close(&all);
    return error;
}

/* A text of a model's own characters. */
static int load_text(const struct loading *l, struct dataset *test, struct spec *spec,
                     const char *vocabulary, bool whole, const char *text)
{
    if (spec->format != TEXT)
        return bad_spec(l, text, "the model is one of text; name a text with --data text:FILE");
    if (!spec->option) spec->window = l->shape->features;
    int error = chars_read_vocabulary(&l->shape->classes, vocabulary);
    return error ? error : load_known(l, test, spec, whole, text);
}

/* A table with labels of a model's own names: some of them, in any order. */
static int load_named(const struct loading *l, struct dataset *test, const struct spec *data,
                      struct spec *spec, const char *class_names, bool whole, const char *text)
{
    int error = rows_read_lines(&l->shape->classes, class_names);
    if (!error && data->meaning == NAMES) error = match_specs(data, spec, text, l);
    return error ? error : load_known(l, test, spec, whole, text);
}

/* Labels of a model of numbers are such, said or not. */
static void read_as(struct spec *spec, const struct source_model *model)
{
    if (model->numbers && spec_takes_numbers(spec)) spec->numbers = true;
}

int source_load_test(struct dataset *test, const struct source_reader *reader,
                     const char *data_spec, const char *test_spec, const struct source_model *model,
                     char *why, size_t why_size)
{
    struct spec data, spec;
    struct rows_shape shape = {.features = model->features};
    struct loading l = {reader, &shape, model->numbers ? 0 : model->classes, why, why_size, ""};
    memset(test, 0, sizeof *test);
    if (why_size > 0) why[0] = 0;
    int error = parse_spec(&data, data_spec, &l);
    if (!error) error = parse_spec(&spec, test_spec ? test_spec : data_spec, &l);
    if (error) goto out;
    read_as(&data, model);
    read_as(&spec, model);
    const char *text = test_spec ? test_spec : data_spec;
    bool named = spec.meaning != NUMBERS;
    if (model->columns) error = rows_read_lines(&shape.columns, model->columns);
    if (error) goto out;
    expect_numbers(&l, test_spec ? &spec : &data);
    bool alike = spec.meaning == data.meaning;
    bool known = model->class_names && spec.meaning == NAMES && !spec.numbers;
    if (model->vocabulary[0])
        error = load_text(&l, test, &spec, model->vocabulary, test_spec != NULL, text);
    else if (known)
        error = load_named(&l, test, &data, &spec, model->class_names, test_spec != NULL, text);
    else if (test_spec && named && alike)
        error = load_beside(&l, test, &data, &spec, model->classes, data_spec, test_spec);
    else if (test_spec && named)
        error = load_train(&l, test, &spec, model->classes, test_spec);
    else if (test_spec || has_own_test(&l, &spec))
        error = load(&l, test, &spec, true);
    else {
        struct dataset train = {0};
        error = load_train(&l, &train, &spec, model->classes, data_spec);
        if (!error) error = hold_out(&l, &train, test, data_spec);
        dataset_close(&train);
    }
    if (error) dataset_close(test);
out:
    rows_shape_close(&shape);
    return error;
}

/* ---- A set to ask a model about -------------------------------------------------------------- */

int source_load_inputs(struct dataset *set, const struct source_reader *reader, const char *text,
                       const struct source_model *model, char *why, size_t why_size)
{
    struct spec spec;
    struct rows_shape shape = {.features = model->features, .unlabelled = true};
    struct loading l = {reader, &shape, model->classes, why, why_size, ""};
    memset(set, 0, sizeof *set);
    if (why_size > 0) why[0] = 0;
    int error = parse_spec(&spec, text, &l);
    if (error) return error;
    if (model->vocabulary[0]) {
        snprintf(why, why_size, "the model is one of text: model sample goes on with one");
        return PARLEY_EUSAGE;
    }
    if (spec.format == TEXT) return bad_spec(&l, text, "a text is gone on with, by model sample");
    if (model->columns) error = rows_read_lines(&shape.columns, model->columns);
    if (!error) error = load(&l, set, &spec, spec.format != IDX || has_own_test(&l, &spec));
    set->classes = model->classes;
    if (!error && model->numbers && !(set->targets = calloc(set->count, sizeof *set->targets)))
        error = PARLEY_ENOMEM;
    if (error) dataset_close(set);
    rows_shape_close(&shape);
    return error;
}

void source_close(struct source *source)
{
    dataset_close(&source->train);
    dataset_close(&source->test);
    rows_shape_close(&source->shape);
}
