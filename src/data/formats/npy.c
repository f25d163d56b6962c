/* npy.c: see npy.h.
 *
 * Happy path: magic, version and length, then a Python dictionary with descr, fortran_order and
 * shape; behind it the values, as many as the shape says.
 * Failure: not NumPy's magic, a header that is cut short or no such dictionary, a type or order not
 * read here, shapes that don't fit, a file of another size, values that do not fit, labels that
 * are no classes.
 */
#include "data/formats/npy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/formats/number.h"

enum { RANK_MAX = 4, LABELS_MAX = 65536, COLOURS_MAX = 4 };

enum type { TYPE_F4, TYPE_F8, TYPE_U1, TYPE_I4, TYPE_I8, TYPES };

static const struct {
    const char *name;
    uint32_t size;
} types[TYPES] = {{"<f4", 4}, {"<f8", 8}, {"|u1", 1}, {"<i4", 4}, {"<i8", 8}};

struct array {
    struct bytes file;
    size_t at, end; /* of the header's text, then of the values */
    enum type type;
    bool typed, ordered, shaped; /* the three keys were there */
    uint32_t rank;
    uint64_t sizes[RANK_MAX], cells;
    char *why;
    size_t why_size;
};

static int refuse(const struct array *a, const char *expected)
{
    char found[24];
    size_t n = 0;
    for (; n < 12 && a->at + n < a->end; n++) {
        uint8_t c = a->file.data[a->at + n];
        found[n] = c >= ' ' && c <= '~' ? (char)c : '?';
    }
    found[n] = 0;
    snprintf(a->why, a->why_size, "%s: byte %zu: found \"%s\", expected %s", a->file.name, a->at,
             found, expected);
    return PARLEY_EDATA;
}

/* ---- The header's text ----------------------------------------------------------------------- */

static void skip_blanks(struct array *a)
{
    while (a->at < a->end && strchr(" \t\r\n", a->file.data[a->at]) && a->file.data[a->at])
        a->at++;
}

static bool take(struct array *a, const char *word)
{
    size_t size = strlen(word);
    skip_blanks(a);
    if (a->end - a->at < size || memcmp(a->file.data + a->at, word, size) != 0) return false;
    a->at += size;
    return true;
}

static bool take_quoted(struct array *a, const char *word)
{
    char text[40];
    snprintf(text, sizeof text, "'%s'", word);
    if (take(a, text)) return true;
    snprintf(text, sizeof text, "\"%s\"", word);
    return take(a, text);
}

static int read_type(struct array *a)
{
    for (int t = 0; t < TYPES; t++) {
        if (!take_quoted(a, types[t].name)) continue;
        a->type = (enum type)t;
        a->typed = true;
        return 0;
    }
    if (take_quoted(a, "<u1")) {
        a->type = TYPE_U1;
        a->typed = true;
        return 0;
    }
    return refuse(a, "a type of <f4, <f8, |u1, <i4, <i8 (save x.astype('<f4'))");
}

static int read_order(struct array *a)
{
    a->ordered = take(a, "False");
    return a->ordered ? 0 : refuse(a, "False: C order (save numpy.ascontiguousarray(x))");
}

static int read_shape(struct array *a)
{
    a->rank = 0;
    a->cells = 1;
    if (!take(a, "(")) return refuse(a, "a shape in parentheses");
    while (!take(a, ")")) {
        uint64_t size = 0;
        skip_blanks(a);
        if (a->rank == RANK_MAX) return refuse(a, "at most 4 dimensions");
        size_t start = a->at;
        for (; a->at < a->end && a->file.data[a->at] >= '0' && a->file.data[a->at] <= '9'; a->at++)
            if (size <= UINT32_MAX / 2) size = 10 * size + (uint64_t)(a->file.data[a->at] - '0');
        if (a->at == start || size == 0 || size > UINT32_MAX / 2) {
            a->at = start;
            return refuse(a, "a size from 1 to 2147483647");
        }
        a->sizes[a->rank++] = size;
        if (a->cells <= BYTES_MAX) a->cells *= size; /* both below 2^33: no overflow */
        if (!take(a, ",")) {
            if (!take(a, ")")) return refuse(a, "a comma or the shape's end");
            break;
        }
    }
    a->shaped = true;
    return 0;
}

static int read_dictionary(struct array *a)
{
    if (!take(a, "{")) return refuse(a, "a dictionary");
    while (!take(a, "}")) {
        int (*read)(struct array *) = NULL;
        if (take_quoted(a, "descr"))
            read = read_type;
        else if (take_quoted(a, "fortran_order"))
            read = read_order;
        else if (take_quoted(a, "shape"))
            read = read_shape;
        if (!read) return refuse(a, "'descr', 'fortran_order' or 'shape'");
        if (!take(a, ":")) return refuse(a, "a colon");
        int error = read(a);
        if (error) return error;
        if (!take(a, ",")) {
            if (!take(a, "}")) return refuse(a, "a comma or the dictionary's end");
            break;
        }
    }
    if (a->typed && a->ordered && a->shaped) return 0;
    return refuse(a, "descr, fortran_order and shape before the dictionary's end");
}

/* ---- The file -------------------------------------------------------------------------------- */

static int read_header(struct array *a)
{
    static const uint8_t magic[] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
    const uint8_t *b = a->file.data;
    a->end = a->file.size;
    if (a->file.size < 12 || memcmp(b, magic, sizeof magic) != 0)
        return refuse(a, "NumPy's \\x93NUMPY and a header");
    a->at = 6;
    if (b[6] < 1 || b[6] > 3 || b[7] != 0) return refuse(a, "version 1.0, 2.0 or 3.0");
    a->at = b[6] == 1 ? 10 : 12;
    uint64_t size = b[8] | (uint64_t)b[9] << 8;
    if (b[6] > 1) size |= (uint64_t)b[10] << 16 | (uint64_t)b[11] << 24;
    if (size > a->file.size - a->at) {
        snprintf(a->why, a->why_size,
                 "%s: a header of %" PRIu64 " bytes at byte %zu, the file has %zu", a->file.name,
                 size, a->at, a->file.size);
        return PARLEY_EDATA;
    }
    size_t values = a->at + (size_t)size;
    a->end = values;
    int error = read_dictionary(a);
    a->at = values;
    a->end = a->file.size;
    return error;
}

static int open_array(struct array *a, struct bytes file, char *why, size_t why_size)
{
    *a = (struct array){.file = file, .why = why, .why_size = why_size};
    int error = read_header(a);
    if (error) return error;
    uint64_t bytes = a->cells * types[a->type].size;
    if (a->cells > BYTES_MAX / sizeof(float)) {
        snprintf(why, why_size, "%s: more than %" PRIu64 " values, the limit", file.name,
                 BYTES_MAX / sizeof(float));
        return PARLEY_EDATA;
    }
    if (bytes != a->end - a->at) {
        snprintf(why, why_size,
                 "%s: the header says %" PRIu64 " values of %s = %" PRIu64
                 " bytes behind byte %zu, the file has %zu",
                 file.name, a->cells, types[a->type].name, bytes, a->at, a->end - a->at);
        return PARLEY_EDATA;
    }
    return 0;
}

static uint64_t little_endian(const uint8_t *b, uint32_t size)
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < size; i++)
        value |= (uint64_t)b[i] << (8 * i);
    return value;
}

/* The cell-th value; of i8 beyond 2^53 the nearest. */
static double value_at(const struct array *a, uint64_t cell)
{
    uint32_t size = types[a->type].size;
    uint64_t bits = little_endian(a->file.data + a->at + cell * size, size);
    uint32_t low = (uint32_t)bits;
    float single;
    double value;
    switch (a->type) {
    case TYPE_F4:
        memcpy(&single, &low, sizeof single);
        return (double)single;
    case TYPE_F8:
        memcpy(&value, &bits, sizeof value);
        return value;
    case TYPE_I4:
        return (double)low - (low >> 31 ? 0x1p32 : 0);
    case TYPE_I8:
        return bits >> 63 ? -(double)(~bits) - 1 : (double)bits;
    default:
        return (double)low;
    }
}

static int wrong_shape(const struct array *a, const char *expected)
{
    char shape[96] = "";
    size_t at = 0;
    for (uint32_t i = 0; i < a->rank; i++)
        at += (size_t)snprintf(shape + at, sizeof shape - at, i ? ", %" PRIu64 : "%" PRIu64,
                               a->sizes[i]);
    snprintf(a->why, a->why_size, "%s: its shape is (%s), expected %s", a->file.name, shape,
             expected);
    return PARLEY_EDATA;
}

/* Pixels with their colours side by side, as most programs keep them. Nothing else would tell: read
 * as planes they are images that a model learns nothing from. */
static bool has_colours_last(const struct array *a)
{
    return a->rank == 4 && a->sizes[3] <= COLOURS_MAX && a->sizes[1] > COLOURS_MAX;
}

/* Floats and bytes are as they were. */
static int note_alike(struct dataset *set, const struct array *a)
{
    if (a->type == TYPE_F4 || a->type == TYPE_U1) return 0;
    double *first = malloc(set->features * sizeof *first);
    if (!first) return PARLEY_ENOMEM;
    for (uint64_t cell = 0; cell < a->cells; cell++)
        dataset_see_value(&first[cell % set->features], (uint32_t)(cell / set->features),
                          value_at(a, cell));
    dataset_note_alike(set, first);
    free(first);
    return 0;
}

static int fill_samples(struct dataset *set, const struct array *a)
{
    bool images = a->type == TYPE_U1 && a->rank > 2;
    if (a->rank < 2) return wrong_shape(a, "(samples, values ...)");
    if (a->cells / a->sizes[0] > NPY_FEATURES_MAX)
        return wrong_shape(a, "at most 16777216 values a sample");
    if (images && has_colours_last(a))
        return wrong_shape(a, "(samples, channels, height, width) (save x.transpose(0, 3, 1, 2))");
    set->count = (uint32_t)a->sizes[0];
    set->features = (uint32_t)(a->cells / set->count);
    if (images) {
        set->channels = a->rank == 4 ? (uint32_t)a->sizes[1] : 1;
        set->height = (uint32_t)a->sizes[a->rank - 2];
        set->width = (uint32_t)a->sizes[a->rank - 1];
        set->bytes = malloc(a->cells);
        if (!set->bytes) return PARLEY_ENOMEM;
        memcpy(set->bytes, a->file.data + a->at, a->cells);
        return 0;
    }
    set->values = malloc(a->cells * sizeof *set->values);
    if (!set->values) return PARLEY_ENOMEM;
    for (uint64_t i = 0; i < a->cells; i++) {
        set->values[i] = (float)value_at(a, i);
        if (number_fits(value_at(a, i))) continue;
        snprintf(a->why, a->why_size,
                 "%s: value %" PRIu64 " of sample %" PRIu64
                 " is %g, expected a number of at most 1.7e38",
                 a->file.name, i % set->features, i / set->features, value_at(a, i));
        return PARLEY_EDATA;
    }
    return note_alike(set, a);
}

static int fill_targets(struct dataset *set, const struct array *a)
{
    set->labels = calloc(set->count, sizeof *set->labels);
    set->targets = malloc(set->count * sizeof *set->targets);
    if (!set->labels || !set->targets) return PARLEY_ENOMEM;
    set->classes = 1;
    for (uint32_t i = 0; i < set->count; i++) {
        set->targets[i] = value_at(a, i);
        if (number_fits(set->targets[i])) continue;
        snprintf(a->why, a->why_size,
                 "%s: label %g of sample %" PRIu32 ", expected a number of at most 1.7e38",
                 a->file.name, value_at(a, i), i);
        return PARLEY_EDATA;
    }
    return 0;
}

static int fill_labels(struct dataset *set, const struct array *a)
{
    uint32_t largest = 0, limit = set->classes ? set->classes : LABELS_MAX;
    if (a->cells != a->sizes[0] || a->rank == 0) return wrong_shape(a, "(samples)");
    if (a->cells != set->count) {
        snprintf(a->why, a->why_size, "%s: %" PRIu64 " labels for %" PRIu32 " samples",
                 a->file.name, a->cells, set->count);
        return PARLEY_EDATA;
    }
    if (set->classes == NPY_NUMBERS) return fill_targets(set, a);
    set->labels = malloc(set->count * sizeof *set->labels);
    if (!set->labels) return PARLEY_ENOMEM;
    for (uint32_t i = 0; i < set->count; i++) {
        double value = value_at(a, i);
        if (!(value >= 0 && value < limit && value == floor(value))) {
            snprintf(a->why, a->why_size,
                     "%s: label %g of sample %" PRIu32 ", expected a class from 0 to %" PRIu32,
                     a->file.name, value, i, limit - 1);
            return PARLEY_EDATA;
        }
        set->labels[i] = (uint16_t)value;
        if (set->labels[i] > largest) largest = set->labels[i];
    }
    if (!set->classes) set->classes = largest + 1;
    return 0;
}

int npy_load(struct dataset *set, struct bytes x, struct bytes y, uint32_t classes, char *why,
             size_t why_size)
{
    struct array samples, labels;
    *set = (struct dataset){.classes = classes};
    int error = open_array(&samples, x, why, why_size);
    if (!error && y.data) error = open_array(&labels, y, why, why_size);
    if (!error) error = fill_samples(set, &samples);
    if (!error && y.data) error = fill_labels(set, &labels);
    if (!error && !set->labels && !(set->labels = calloc(set->count, sizeof *set->labels)))
        error = PARLEY_ENOMEM;
    if (error == PARLEY_ENOMEM) snprintf(why, why_size, "%s: out of memory", x.name);
    if (error) dataset_close(set);
    return error;
}
