/* libsvm.c: see libsvm.h.
 *
 * Happy path: one pass checks all, counts the rows and finds the largest index; a second one fills
 * the dense values. Failure: a label or value that is no number, an index that is none or does not
 * ascend, a label that the training set has not, too much for dense rows, no rows.
 */
#include "data/formats/libsvm.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/formats/number.h"

struct reading {
    struct bytes file;
    const char *at, *end, *line_start;
    size_t line, empty; /* the last with nothing on it, no note either; 0: there was none */
    struct dataset *set;
    struct rows_shape *shape;
    bool test, fills; /* the second pass */
    uint64_t rows;
    uint32_t largest;
    double *first; /* [features] of a training set: dataset_see_value(), 0 where nothing stands */
    char *why;
    size_t why_size;
};

static int refuse(const struct reading *r, const char *at, size_t size, const char *expected)
{
    char found[64];
    snprintf(r->why, r->why_size, "%s:%zu:%zu: found %s, expected %s", r->file.name, r->line,
             (size_t)(at - r->line_start) + 1, number_found(found, at, size), expected);
    return PARLEY_EDATA;
}

/* A zero byte is none. */
static bool ends_word(char byte)
{
    return memchr(" \t\r\n#", byte, strlen(" \t\r\n#"));
}

/* The next word of the line (no bytes at its end); *word stays where it begins. */
static size_t next_word(struct reading *r, const char **word)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\r'))
        r->at++;
    *word = r->at;
    if (r->at < r->end && *r->at == '#')
        while (r->at < r->end && *r->at != '\n')
            r->at++;
    const char *start = r->at;
    while (r->at < r->end && !ends_word(*r->at))
        r->at++;
    return (size_t)(r->at - start);
}

/* "+1", "1" and "1.0" are one class, as are "0" and "-0"; numbers that differ within 15 digits, all
 * that a double is sure to tell apart, are two. */
static int take_label(struct reading *r, const char *word, size_t size)
{
    char name[32], names[160];
    double value;
    uint16_t label;
    if (r->shape->unlabelled) return 0;
    if (!number_parse(word, size, &value)) return refuse(r, word, size, "a number as label");
    if (r->shape->numbers && r->fills) r->set->targets[r->rows] = value;
    if (r->shape->numbers) return 0;
    int n = snprintf(name, sizeof name, "%.15g", value + 0.0);
    int error = rows_label(&r->shape->classes, name, (size_t)n, !r->test && !r->fills, &label);
    if (error == PARLEY_EDATA) {
        char expected[192];
        snprintf(expected, sizeof expected, "a label of the training data: %s",
                 names_list(&r->shape->classes, names, sizeof names));
        return refuse(r, word, size, expected);
    }
    if (error == PARLEY_ELIMIT)
        return refuse(r, word, size,
                      "at most 65536 classes (labels as numbers are read with \",numbers\")");
    if (!error && r->fills) r->set->labels[r->rows] = label;
    return error;
}

static void put_value(struct reading *r, uint32_t index, double value)
{
    struct dataset *set = r->set;
    if (index <= set->features) {
        float *cell = &set->values[r->rows * set->features + index - 1];
        *cell = (float)value;
        /* Too small for a float, it differs from what is left out as 0. */
        bool lost = value != 0 && *cell == 0;
        if (r->first)
            dataset_see_value(&r->first[index - 1], (uint32_t)r->rows, lost ? (double)NAN : value);
        return;
    }
    set->unseen++;
    if (index > set->unseen_index) set->unseen_index = index;
}

static int take_pair(struct reading *r, const char *word, size_t size, uint32_t *last)
{
    const char *colon = memchr(word, ':', size);
    double index = 0, value;
    bool split = colon && number_parse(word, (size_t)(colon - word), &index) && index >= 1 &&
                 index <= ROWS_FEATURES_MAX && index == (double)(uint32_t)index;
    if (!split)
        return refuse(r, word, size, "INDEX:VALUE, INDEX a whole number from 1 to 16777216");
    if (index <= *last) return refuse(r, word, size, "a larger index than the one before");
    *last = (uint32_t)index;
    const char *number = colon + 1;
    if (!number_parse(number, size - (size_t)(number - word), &value))
        return refuse(r, number, size - (size_t)(number - word), "a number");
    if (r->fills) put_value(r, *last, value);
    return 0;
}

/* A sample of zeros is written so where there is no label. */
static int refuse_empty(const struct reading *r)
{
    snprintf(r->why, r->why_size,
             "%s:%zu: an empty line among samples without labels; if it is one of zeros, write 0 "
             "there",
             r->file.name, r->empty);
    return PARLEY_EDATA;
}

static int read_line(struct reading *r)
{
    const char *word;
    uint32_t last = 0;
    size_t size = next_word(r, &word);
    if (size == 0 && r->at == word) r->empty = r->line;
    if (size == 0) return 0;
    bool bare = r->shape->unlabelled && memchr(word, ':', size);
    if (bare && r->empty > 0) return refuse_empty(r);
    int error = bare ? take_pair(r, word, size, &last) : take_label(r, word, size);
    while (!error && (size = next_word(r, &word)) > 0)
        error = take_pair(r, word, size, &last);
    if (last > r->largest) r->largest = last;
    r->rows++;
    return error;
}

static int pass(struct reading *r, bool fills)
{
    r->fills = fills;
    r->rows = 0;
    r->line = r->empty = 0;
    r->at = bytes_text(r->file);
    r->end = (const char *)r->file.data + r->file.size;
    int error = 0;
    while (!error && r->at < r->end) {
        r->line++;
        r->line_start = r->at;
        error = read_line(r);
        if (!error && r->at < r->end) r->at++; /* the line's end */
    }
    return error;
}

static int make_room(struct reading *r)
{
    struct dataset *set = r->set;
    uint32_t features = r->shape->features ? r->shape->features : r->largest;
    uint64_t cells = r->rows * features;
    if (cells == 0) {
        snprintf(r->why, r->why_size, "%s: %s, expected lines of LABEL INDEX:VALUE ...",
                 r->file.name, r->rows ? "labels alone" : "nothing in it");
        return PARLEY_EDATA;
    }
    if (r->rows >= UINT32_MAX / 2 || cells > BYTES_MAX / sizeof(float)) {
        snprintf(r->why, r->why_size,
                 "%s: %" PRIu64 " rows of %" PRIu32 " values are kept dense, and more than %" PRIu64
                 " GiB",
                 r->file.name, r->rows, features, BYTES_MAX >> 30);
        return PARLEY_EDATA;
    }
    set->count = (uint32_t)r->rows;
    set->features = r->shape->features = features;
    set->values = calloc(cells, sizeof *set->values);
    set->labels = calloc(set->count, sizeof *set->labels);
    if (r->shape->numbers) set->targets = calloc(set->count, sizeof *set->targets);
    if (!r->test) r->first = calloc(features, sizeof *r->first);
    bool whole =
        set->values && set->labels && (set->targets || !r->shape->numbers) && (r->first || r->test);
    return whole ? 0 : PARLEY_ENOMEM;
}

int libsvm_load(struct dataset *set, struct rows_shape *shape, struct bytes file, bool test,
                char *why, size_t why_size)
{
    *set = (struct dataset){0};
    struct reading r = {
        .file = file, .set = set, .shape = shape, .test = test, .why = why, .why_size = why_size};
    int error = rows_check_text(file, why, why_size);
    if (!error) error = pass(&r, false);
    if (!error) error = make_room(&r);
    if (!error) error = pass(&r, true);
    if (!error && !test) dataset_note_alike(set, r.first);
    if (!error && !test) error = names_sort(&shape->classes, set->labels, set->count);
    set->classes = shape->numbers ? 1 : shape->classes.count;
    if (error == PARLEY_ENOMEM) snprintf(why, why_size, "%s: out of memory", file.name);
    if (error) dataset_close(set);
    free(r.first);
    return error;
}
