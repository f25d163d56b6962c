/* remarks.c: see remarks.h. */
#include "data/remarks.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/formats/number.h"

__attribute__((format(printf, 2, 3))) static void add(struct remarks *remarks, const char *format,
                                                      ...)
{
    va_list arguments;
    assert(remarks->count < REMARKS_MAX);
    va_start(arguments, format);
    vsnprintf(remarks->text[remarks->count++], REMARK_BYTES, format, arguments);
    va_end(arguments);
}

static void add_header(struct remarks *remarks, const struct dataset *set)
{
    add(remarks,
        "line %zu, with numbers in it, is taken for a header; say which it is: \",header=yes\" "
        "behind the file's name, or \",header=no\" if it is a sample",
        set->header_line);
}

void remarks_of_test(struct remarks *remarks, const struct dataset *test)
{
    remarks->count = 0;
    if (test->header_line > 0) add_header(remarks, test);
    if (test->last_column > 0)
        add(remarks,
            "column %" PRIu32 ", the last, is taken for the label and left out; if it is another, "
            "say so with \",label=C\" behind the file's name",
            test->last_column);
    if (test->unseen > 0)
        add(remarks,
            "%" PRIu64 " of the values read are left out: their indices, the largest %" PRIu32
            ", are beyond the %" PRIu32 " values of a training sample",
            test->unseen, test->unseen_index, test->features);
}

enum { COLUMN_BYTES = 96 };

/* A column of values, from 0, by its number in the file, and by what it is called there. */
static const char *column_text(char out[COLUMN_BYTES], const struct rows_shape *shape,
                               uint32_t feature)
{
    char found[64];
    uint32_t column = feature + 1;
    column += shape->label > 0 && column >= shape->label;
    int length = snprintf(out, COLUMN_BYTES, "column %" PRIu32, column);
    if (column <= shape->columns.count) {
        const char *title = names_text(&shape->columns, column - 1);
        snprintf(out + length, COLUMN_BYTES - (size_t)length, " (%s)",
                 number_found(found, title, strlen(title)));
    }
    return out;
}

static void add_flat(struct remarks *remarks, const struct source *source)
{
    uint32_t flat = source->train.flat;
    char column[COLUMN_BYTES];
    add(remarks,
        "%" PRIu32 " column%s for nothing, as 24 bits do not tell the values apart, or "
        "they are too small or large to scale; take a large offset away, or divide them; "
        "the first is %s",
        flat, flat == 1 ? " counts" : "s count",
        column_text(column, &source->shape, source->train.flat_first));
}

static void add_far(struct remarks *remarks, const struct source *source)
{
    const struct dataset *train = &source->train;
    char column[COLUMN_BYTES], others[40] = "";
    if (train->far > 1)
        snprintf(others, sizeof others, " %" PRIu32 " more columns have one.", train->far - 1);
    add(remarks,
        "sample %" PRIu32 " has %.4g in %s, over %.0f times as far from all others there as they "
        "are from each other: a slip?%s",
        train->far_sample, (double)train->far_value,
        column_text(column, &source->shape, train->far_first), DATASET_FAR, others);
}

static void add_flat_labels(struct remarks *remarks)
{
    add(remarks,
        "the labels count for little or nothing, as they differ too little for how large they "
        "are, or are too small or large to scale; take a large offset away, or divide them");
}

static void add_far_label(struct remarks *remarks, const struct dataset *train)
{
    add(remarks,
        "sample %" PRIu32 " has the label %.4g, over %.0f times as far from all others as they "
        "are from each other: a slip?",
        train->far_label, train->far_label_value, DATASET_FAR);
}

/* `error` and `lines` are of rows_write_lines(). */
static void add_lost(struct remarks *remarks, const char *whose, const char *instead, int error,
                     char *lines)
{
    if (!error && !lines)
        add(remarks,
            "the model will not carry the names of its %s, as one is not UTF-8 or has two "
            "lines, or all are longer than its file holds; %s",
            whose, instead);
    free(lines);
}

static void add_lost_names(struct remarks *remarks, const struct rows_shape *shape)
{
    char *lines = NULL;
    int error;
    if (shape->classes.count > 0) {
        error = rows_write_lines(&shape->classes, &lines);
        add_lost(remarks, "classes",
                 "model predict will say their numbers, from 0 in the order of the names", error,
                 lines);
    }
    if (shape->columns.count > (shape->label > 0)) {
        error = rows_write_columns(shape, &lines);
        add_lost(remarks, "columns",
                 "model eval and predict will take columns by their place alone", error, lines);
    }
}

void remarks_of(struct remarks *remarks, const struct source *source)
{
    const struct dataset *train = &source->train;
    remarks_of_test(remarks, &source->test);
    /* A tenth that was held out has it, too. */
    if (train->header_line > 0 && source->test.header_line == 0) add_header(remarks, train);
    if (train->flat > 0) add_flat(remarks, source);
    if (train->far > 0) add_far(remarks, source);
    if (train->label_flat) add_flat_labels(remarks);
    if (train->far_label > 0) add_far_label(remarks, train);
    if (train->classes == 1 && !train->targets && !train->text)
        add(remarks, "all samples are of one class: there is nothing to tell apart");
    if (!train->text) add_lost_names(remarks, &source->shape);
}
