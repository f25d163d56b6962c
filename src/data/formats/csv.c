/* csv.c: see csv.h.
 *
 * Happy path: the first line tells columns and header; then row after row, field after field, into
 * the table; at the end the classes are put in order. Where only the rows tell that the first of
 * them was a header, all is read again.
 * Failure: a field that is no number, a row of other length, a quote that does not end, no such
 * column, no rows, classes or columns that the training set has not.
 */
#include "data/formats/csv.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "data/formats/number.h"

struct field {
    const char *text; /* without quotes and blanks around; valid until the next */
    size_t size;
    size_t line;     /* where it begins */
    uint32_t column; /* from 1 */
    bool last;       /* of its row */
};

struct reading {
    struct bytes file;
    const char *at, *end;
    size_t line;
    uint32_t columns;  /* of each row */
    uint32_t label;    /* its column, from 1; 0: there is none */
    struct names head; /* what the first line calls the columns, if it is a header */
    char unquoted[NAMES_BYTES_MAX + 2];
    double *first; /* [features] of a training set: dataset_see_value() */
    struct dataset *set;
    struct rows rows;
    struct rows_shape *shape;
    bool test;
    bool headed; /* the first line is known to be a header */
    char *why;
    size_t why_size;
};

/* What the columns are called: as in the file, or else as in the training data, where they are the
 * same ones; maybe no names. */
static const struct names *titles_of(const struct reading *r)
{
    return r->shape->label == r->label && r->head.count == 0 ? &r->shape->columns : &r->head;
}

/* FILE:LINE: column C ("name"): MESSAGE; column 0: no column. */
__attribute__((format(printf, 4, 5))) static int refuse(const struct reading *r, size_t line,
                                                        uint32_t column, const char *format, ...)
{
    char place[160] = "", name[64], text[256];
    const struct names *columns = titles_of(r);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (column > 0 && column <= columns->count) {
        const char *title = names_text(columns, column - 1);
        snprintf(place, sizeof place, " column %" PRIu32 " (%s):", column,
                 number_found(name, title, strlen(title)));
    } else if (column > 0)
        snprintf(place, sizeof place, " column %" PRIu32 ":", column);
    snprintf(r->why, r->why_size, "%s:%zu:%s %s", r->file.name, line, place, text);
    return PARLEY_EDATA;
}

/* ---- Fields ---------------------------------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static void skip_blanks(struct reading *r)
{
    while (r->at < r->end && is_blank(*r->at))
        r->at++;
}

/* Passes over lines with nothing on them, but where a row is one value: in front of a row that is
 * one that lacks it. Returns whether a row follows. */
static bool find_row(struct reading *r)
{
    const char *first = r->at, *start;
    size_t line = r->line;
    for (;;) {
        start = r->at;
        skip_blanks(r);
        if (r->at == r->end) return false;
        if (*r->at != '\n') break;
        r->at++;
        r->line++;
    }
    r->at = r->columns == 1 ? first : start;
    if (r->columns == 1) r->line = line;
    return true;
}

static int read_quoted(struct reading *r, struct field *field)
{
    size_t n = 0;
    r->at++;
    for (;; r->at++) {
        if (r->at == r->end)
            return refuse(r, field->line, field->column, "a quote is opened and never closed");
        if (*r->at == '"' && (++r->at == r->end || *r->at != '"')) break;
        if (n > NAMES_BYTES_MAX)
            return refuse(r, field->line, field->column,
                          r->line > field->line ? "a quote is opened and not closed within %u bytes"
                                                : "longer than %u bytes",
                          NAMES_BYTES_MAX);
        r->line += *r->at == '\n';
        r->unquoted[n++] = *r->at;
    }
    field->text = r->unquoted;
    field->size = n;
    skip_blanks(r);
    if (r->at == r->end || *r->at == ',' || *r->at == '\n') return 0;
    char found[64];
    return refuse(r, r->line, field->column, "found %s after a closing quote, expected a comma",
                  number_found(found, r->at, 1));
}

static void read_plain(struct reading *r, struct field *field)
{
    field->text = r->at;
    while (r->at < r->end && *r->at != ',' && *r->at != '\n')
        r->at++;
    field->size = (size_t)(r->at - field->text);
    while (field->size > 0 && is_blank(field->text[field->size - 1]))
        field->size--;
}

/* The next field of the row; the cursor then stands at the next field or row. */
static int read_field(struct reading *r, struct field *field, uint32_t column)
{
    *field = (struct field){.column = column, .line = r->line};
    skip_blanks(r);
    if (r->at < r->end && *r->at == '"') {
        int error = read_quoted(r, field);
        if (error) return error;
    } else
        read_plain(r, field);
    field->last = r->at == r->end || *r->at == '\n';
    if (r->at == r->end) return 0;
    r->line += *r->at == '\n';
    r->at++;
    return 0;
}

/* ---- The first line -------------------------------------------------------------------------- */

/* What stands in the first line of a column; LACK: no value that is read, and no name either. */
enum { NUMBER, LACK, NAME };

static int kind_of(const struct names *names, uint32_t place)
{
    static const char *const lacks[] = {"", "?", "NA", "N/A", "n/a", "NULL", "null", "None"};
    const char *text = names_text(names, place);
    char *end;
    double value;
    if (number_parse(text, strlen(text), &value)) return NUMBER;
    for (size_t i = 0; i < sizeof lacks / sizeof lacks[0]; i++)
        if (strcmp(text, lacks[i]) == 0) return LACK;
    (void)strtod(text, &end); /* takes NaN, infinities and what is too large, too */
    return *end == 0 ? LACK : NAME;
}

/* Columns that nobody named, as some programs number them: from 0 or 1 on. Fewer could be values,
 * unless the first, of row numbers, is called nothing. The label may have a name. */
static bool is_counted(const struct names *first, uint32_t label)
{
    char number[16];
    bool nameless = *names_text(first, 0) == 0;
    uint32_t counted = 0, from = 0, least = nameless ? 2 : 4;
    for (uint32_t c = nameless; c < first->count; c++) {
        if (c + 1 == label && kind_of(first, c) == NAME) continue;
        if (counted == 0) from = strcmp(names_text(first, c), "1") == 0;
        snprintf(number, sizeof number, "%" PRIu32, from + counted++);
        if (strcmp(names_text(first, c), number) != 0) return false;
    }
    return counted >= least;
}

/* Whether the first line names columns of values. One that lacks a value or two does not. */
static bool names_columns(const struct names *first, uint32_t label)
{
    bool has[NAME + 1] = {false};
    for (uint32_t c = 0; c < first->count; c++)
        if (c + 1 != label) has[kind_of(first, c)] = true;
    return has[NAME] || (has[LACK] && !has[NUMBER]) || is_counted(first, label);
}

/* The label's column from 1, or 0. *named: the first line is sure to be a header. A number is that
 * of a column, unless it can only be what one is called: as programs number them, or, beyond the
 * columns, as a year; but where no other column has a name, that may be a value. */
static uint32_t find_label(const struct reading *r, const struct names *first, const char *label,
                           bool *named)
{
    char *end;
    bool is_sample = r->shape->header == ROWS_HEADER_NO;
    *named = false;
    if (!label) return first->count;
    unsigned long number = *label >= '0' && *label <= '9' ? strtoul(label, &end, 10) : 0;
    bool counts = number > 0 && *end == 0, beyond = number > first->count;
    uint32_t place = is_sample ? NAMES_NONE : names_find(first, label, strlen(label));
    if (place != NAMES_NONE)
        *named =
            !counts || is_counted(first, place + 1) || (beyond && names_columns(first, place + 1));
    if (*named) return place + 1;
    return counts && !beyond ? (uint32_t)number : 0;
}

static int no_label(const struct reading *r, const struct names *first, const char *label)
{
    char names[160];
    snprintf(r->why, r->why_size,
             "%s: no column \"%.40s\" for the label; there are %" PRIu32 ", by number or by what "
             "stands in line %zu: %s",
             r->file.name, label, first->count, r->line, names_list(first, names, sizeof names));
    return PARLEY_EDATA;
}

static int read_names(struct reading *r, struct names *names)
{
    struct field field = {0};
    for (uint32_t c = 1; !field.last; c++) {
        int error = read_field(r, &field, c);
        if (error) return error;
        if (c > ROWS_FEATURES_MAX)
            return refuse(r, field.line, 0, "more than %" PRIu32 " columns", ROWS_FEATURES_MAX);
        error = names_add(names, field.text, field.size);
        if (error == PARLEY_ELIMIT)
            return refuse(r, field.line, c, "longer than %u bytes", NAMES_BYTES_MAX);
        if (error) return error;
    }
    return 0;
}

/* The first column of values, from 1, that is called other than in the training data, wherever the
 * labels stand, and what it is called there; 0: none is. */
static uint32_t find_other(const struct reading *r, const struct names *first, const char **name)
{
    const struct names *wanted = &r->shape->columns;
    uint32_t w = 0;
    for (uint32_t c = 0; c < first->count; c++) {
        if (c + 1 == r->label) continue;
        w += w + 1 == r->shape->label;
        if (w >= wanted->count) break;
        *name = names_text(wanted, w++);
        if (strcmp(names_text(first, c), *name) != 0) return c + 1;
    }
    return 0;
}

static int compare_header(const struct reading *r, size_t line, const struct names *first)
{
    char found[64], expected[64];
    const char *name, *there;
    uint32_t other = find_other(r, first, &name);
    if (other == 0) return 0;
    there = names_text(first, other - 1);
    return refuse(r, line, other, "found %s, expected %s as in the training data",
                  number_found(found, there, strlen(there)),
                  number_found(expected, name, strlen(name)));
}

/* Names that are numbers, such as years, are told by the training data's, or by a label that is
 * none where all are. */
static bool is_header(const struct reading *r, const struct names *first)
{
    const char *name;
    if (r->shape->header != ROWS_HEADER_UNSAID) return r->shape->header == ROWS_HEADER_YES;
    if (r->headed || names_columns(first, r->label)) return true;
    if (r->shape->columns.count > 0 && find_other(r, first, &name) == 0) return true;
    return r->shape->numbers && r->label > 0 && kind_of(first, r->label - 1) == NAME;
}

/* Whether a header might be a sample after all, with a mark of its own for a value that it lacks.
 * `named`: by one of its names the label was found. */
static bool is_doubtful(const struct reading *r, const struct names *first, bool named)
{
    const char *name;
    uint32_t numbers = 0, values = 0;
    if (r->shape->header != ROWS_HEADER_UNSAID) return false;
    if (r->shape->columns.count > 0 && find_other(r, first, &name) == 0) return false;
    for (uint32_t c = 0; c < first->count; c++) {
        bool is_number = kind_of(first, c) == NUMBER;
        numbers += is_number;
        values += is_number && c + 1 != r->label;
    }
    bool told = named || is_counted(first, r->label);
    return numbers == first->count || (values > 0 && !told);
}

/* A name that two columns have tells of neither. */
static int check_name(const struct reading *r, const struct names *first, const char *label,
                      size_t line)
{
    char found[64];
    uint32_t other = r->label;
    while (other < first->count && strcmp(names_text(first, other), label) != 0)
        other++;
    if (other == first->count) return 0;
    return refuse(r, line, 0,
                  "%s stands twice in the header, over columns %" PRIu32 " and %" PRIu32
                  "; say by its number which is the label, like label=%" PRIu32,
                  number_found(found, label, strlen(label)), r->label, other + 1, other + 1);
}

static const char *plural(uint32_t count)
{
    return count == 1 ? "" : "s";
}

/* What a lone column may be divided by, for a message. */
static const char *divider_of(const struct names *first)
{
    if (first->count > 1) return "";
    if (strchr(names_text(first, 0), ';')) return ", divided by \";\"";
    return strchr(names_text(first, 0), '\t') ? ", divided by tabs" : "";
}

/* *named: the first line is sure to be a header. */
static int find_columns(struct reading *r, const struct names *first, const char *label,
                        size_t line, bool *named)
{
    bool bare = r->shape->unlabelled && !label && first->count == r->shape->features;
    *named = false;
    r->columns = first->count;
    r->label = bare ? 0 : find_label(r, first, label, named);
    if (bare) return 0;
    if (first->count < 2 && !r->shape->unlabelled)
        return refuse(r, line, 0,
                      "found 1 column%s, expected values and a label with commas between",
                      divider_of(first));
    if (*named) return check_name(r, first, label, line);
    if (r->label > 0) return 0;
    r->line = line;
    return no_label(r, first, label);
}

static int check_columns(const struct reading *r, size_t line, const char *divider)
{
    uint32_t values = r->columns - (r->label > 0), wanted = r->shape->features;
    char bare[48] = "";
    if (values == wanted) return 0;
    if (r->shape->unlabelled)
        snprintf(bare, sizeof bare, ", or %" PRIu32 " without a label", wanted);
    return refuse(r, line, 0,
                  "%" PRIu32 " column%s%s, expected %" PRIu32 " as in the training data%s",
                  r->columns, plural(r->columns), divider, wanted + 1, bare);
}

/* Columns, label and header from the first line; a first line of values is read again as such. */
static int read_head(struct reading *r, const char *label)
{
    if (!find_row(r)) {
        snprintf(r->why, r->why_size, "%s: nothing in it, expected rows of values and a label",
                 r->file.name);
        return PARLEY_EDATA;
    }
    struct names first = {0};
    const char *start = r->at;
    size_t line = r->line;
    bool header = false;
    int error = read_names(r, &first);
    if (error) goto out;
    error = find_columns(r, &first, label, line, &header);
    if (error) goto out;
    const char *divider = divider_of(&first);
    if (header || is_header(r, &first)) {
        error = compare_header(r, line, &first);
        if (is_doubtful(r, &first, header)) r->set->header_line = line;
        r->head = first;
        first = (struct names){0};
    } else {
        r->at = start;
        r->line = line;
    }
    bool known = r->head.count > 0 && r->shape->columns.count > 0;
    if (r->shape->unlabelled && !label && !known) r->set->last_column = r->label;
    if (!error && r->test) error = check_columns(r, line, divider);
out:
    names_close(&first);
    return error;
}

/* ---- Rows ------------------------------------------------------------------------------------ */

static int take_target(struct reading *r, const struct field *field)
{
    char found[64];
    double value;
    if (!number_parse(field->text, field->size, &value))
        return refuse(r, field->line, field->column, "found %s, expected a number as label",
                      number_found(found, field->text, field->size));
    r->set->targets[r->set->count] = value;
    return 0;
}

static int take_label(struct reading *r, const struct field *field)
{
    char found[64], names[160];
    struct names *classes = &r->shape->classes;
    if (r->shape->unlabelled) return 0;
    if (r->shape->numbers) return take_target(r, field);
    number_found(found, field->text, field->size);
    if (field->size == 0)
        return refuse(r, field->line, field->column, "found nothing, expected a label");
    int error =
        rows_label(classes, field->text, field->size, !r->test, &r->set->labels[r->set->count]);
    if (error == PARLEY_EDATA)
        return refuse(r, field->line, field->column,
                      "found %s, which is no label of the training data: %s", found,
                      names_list(classes, names, sizeof names));
    if (error == PARLEY_ELIMIT)
        return refuse(r, field->line, field->column,
                      "found %s, after %" PRIu32
                      " other labels: too many, or longer than %u bytes; "
                      "labels as numbers are read with \",numbers\"",
                      found, classes->count, NAMES_BYTES_MAX);
    return error;
}

/* What to do about a cell that is no number. */
static const char *remedy(const struct field *field)
{
    static const char *const missing[] = {"", "?", "-", "NA", "N/A", "nan", "null"};
    unsigned char first = field->size > 0 ? (unsigned char)field->text[0] : 0;
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
        if (field->size == strlen(missing[i]) &&
            strncasecmp(field->text, missing[i], field->size) == 0)
            return "; fill in what is missing, or leave the row out";
    return isalpha(first) || first >= 0x80
               ? "; write a text column as one of 0 and 1 for each value"
               : "";
}

static int take_value(struct reading *r, const struct field *field)
{
    char found[64];
    double value;
    if (!number_parse(field->text, field->size, &value))
        return refuse(r, field->line, field->column, "found %s, expected a number%s",
                      number_found(found, field->text, field->size), remedy(field));
    size_t place = field->column - 1 - (r->label > 0 && field->column > r->label);
    r->set->values[(size_t)r->set->count * r->set->features + place] = (float)value;
    if (r->first) dataset_see_value(&r->first[place], r->set->count, value);
    return 0;
}

static int read_row(struct reading *r)
{
    struct field field = {0};
    size_t line = r->line;
    int error = rows_room(&r->rows);
    if (error == PARLEY_ELIMIT)
        return refuse(r, line, 0, "more rows of %" PRIu32 " values than fit in %" PRIu64 " GiB",
                      r->set->features, BYTES_MAX >> 30);
    if (!error) r->set->labels[r->set->count] = 0; /* until there is one */
    for (uint32_t c = 1; !error && !field.last; c++) {
        if (c > r->columns)
            return refuse(r, line, 0, "more than %" PRIu32 " columns, which the first line has",
                          r->columns);
        error = read_field(r, &field, c);
        if (error) return error;
        if (field.last && c < r->columns)
            return refuse(r, line, 0,
                          "found %" PRIu32 " column%s, expected %" PRIu32 " as in the first line",
                          c, plural(c), r->columns);
        error = c == r->label ? take_label(r, &field) : take_value(r, &field);
    }
    r->set->count++;
    return error;
}

static int read_all(struct reading *r, const char *label)
{
    r->at = bytes_text(r->file);
    r->end = (const char *)r->file.data + r->file.size;
    r->line = 1;
    r->set->count = 0;
    int error = read_head(r, label);
    if (!error) r->set->features = r->shape->features = r->columns - (r->label > 0);
    if (!error && !r->test && !r->first) {
        r->first = malloc(r->set->features * sizeof *r->first);
        if (!r->first) error = PARLEY_ENOMEM;
    }
    while (!error && find_row(r))
        error = read_row(r);
    if (error || r->set->count > 0) return error;
    snprintf(r->why, r->why_size, "%s: a header and no rows", r->file.name);
    return PARLEY_EDATA;
}

/* Whether the first row was a header with numbers for names: its label alone is no number. The
 * classes are in the order of the rows still. */
static bool was_header(const struct reading *r)
{
    const struct names *classes = &r->shape->classes;
    if (r->shape->header == ROWS_HEADER_NO) return false;
    if (r->test || r->head.count > 0 || classes->count < 2 || kind_of(classes, 0) != NAME)
        return false;
    for (uint32_t c = 1; c < classes->count; c++)
        if (kind_of(classes, c) != NUMBER) return false;
    for (uint32_t i = 1; i < r->set->count; i++)
        if (r->set->labels[i] == 0) return false;
    return true;
}

int csv_load(struct dataset *set, struct rows_shape *shape, struct bytes file, const char *label,
             bool test, char *why, size_t why_size)
{
    *set = (struct dataset){0};
    int error = rows_check_text(file, why, why_size);
    if (error) return error;
    struct reading *r = malloc(sizeof *r);
    if (!r) return PARLEY_ENOMEM;
    *r = (struct reading){.file = file,
                          .set = set,
                          .rows = {.set = set, .numbers = shape->numbers},
                          .shape = shape,
                          .test = test,
                          .why = why,
                          .why_size = why_size};
    error = read_all(r, label);
    if (!error && was_header(r)) {
        names_close(&shape->classes);
        r->headed = true;
        error = read_all(r, label);
    }
    if (!error && !test) dataset_note_alike(set, r->first);
    if (!error && !test) error = names_sort(&shape->classes, set->labels, set->count);
    set->classes = shape->numbers ? 1 : shape->classes.count;
    if (error == PARLEY_ENOMEM) snprintf(why, why_size, "%s: out of memory", file.name);
    if (error) dataset_close(set);
    if (!error && !test && shape->columns.count == 0) {
        shape->columns = r->head;
        shape->label = r->label;
    } else
        names_close(&r->head);
    free(r->first);
    free(r);
    return error;
}
