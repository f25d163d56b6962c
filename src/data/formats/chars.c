/* chars.c: see chars.h.
 *
 * Happy path: each character is looked up, its number noted; then the numbers are put in the order
 * of the characters and cut into windows.
 */
#include "data/formats/chars.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/plain.h"
#include "data/formats/number.h"

struct reading {
    struct bytes file;
    size_t at, line, column; /* of the next character; from 1 but `at` */
    char *why;
    size_t why_size;
};

__attribute__((format(printf, 2, 3))) static int refuse(const struct reading *r, const char *format,
                                                        ...)
{
    char text[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    snprintf(r->why, r->why_size, "%s:%zu:%zu: %s", r->file.name, r->line, r->column, text);
    return PARLEY_EDATA;
}

size_t chars_bytes(const uint8_t *b, size_t left)
{
    uint32_t code = 0;
    size_t n = plain_utf8((const char *)b, left, &code);
    return code == 0 ? 0 : n;
}

static size_t length_at(const struct reading *r)
{
    return chars_bytes(r->file.data + r->at, r->file.size - r->at);
}

static int read_one(struct reading *r, struct names *vocabulary, bool test, uint16_t *number)
{
    const char *text = (const char *)r->file.data + r->at;
    size_t n = length_at(r);
    if (n == 0) return refuse(r, "found byte 0x%02x, expected UTF-8 text", r->file.data[r->at]);
    uint32_t place = names_find(vocabulary, text, n);
    if (place == NAMES_NONE) {
        char shown[64];
        number_found(shown, text, n);
        if (test)
            return refuse(
                r, "found a character (first byte 0x%02x, %s) that the training text has not",
                (uint8_t)*text, shown);
        if (vocabulary->count == CHARS_MAX)
            return refuse(r, "found a %uth different character, %s, one too many", CHARS_MAX + 1,
                          shown);
        place = vocabulary->count;
        int error = names_add(vocabulary, text, n);
        if (error) return error;
    }
    *number = (uint16_t)place;
    r->at += n;
    r->column = *text == '\n' ? 1 : r->column + 1;
    r->line += *text == '\n';
    return 0;
}

static int read_all(struct names *vocabulary, struct bytes text, bool test, uint16_t *numbers,
                    size_t *count, char *why, size_t why_size)
{
    struct reading r = {.file = text, .line = 1, .column = 1, .why = why, .why_size = why_size};
    int error = 0;
    for (*count = 0; !error && r.at < text.size; (*count)++)
        error = read_one(&r, vocabulary, test, &numbers[*count]);
    return error;
}

/* numbers: [count] of the text's characters. */
static int cut(struct dataset *set, const uint16_t *numbers, size_t count, uint32_t window)
{
    set->count = (uint32_t)((count - 1) / window);
    set->features = window;
    set->bytes = malloc((size_t)set->count * window);
    set->labels = malloc(set->count * sizeof *set->labels);
    if (!set->bytes || !set->labels) return PARLEY_ENOMEM;
    for (size_t i = 0; i < (size_t)set->count * window; i++)
        set->bytes[i] = (uint8_t)numbers[i];
    for (size_t i = 0; i < set->count; i++)
        set->labels[i] = numbers[(i + 1) * window];
    return 0;
}

int chars_load(struct dataset *set, struct names *vocabulary, struct bytes file, uint32_t window,
               bool test, char *why, size_t why_size)
{
    size_t count = 0;
    const uint8_t *begin = (const uint8_t *)bytes_text(file);
    *set = (struct dataset){0};
    file.size -= (size_t)(begin - file.data);
    file.data = begin;
    uint16_t *numbers = malloc((file.size + 1) * sizeof *numbers);
    int error = numbers ? 0 : PARLEY_ENOMEM;
    if (!error) error = read_all(vocabulary, file, test, numbers, &count, why, why_size);
    if (!error && (count <= window || (count - 1) / window > UINT32_MAX / 2)) {
        snprintf(why, why_size,
                 "%s: %zu characters, expected more than a window of %" PRIu32 " (,window=N)",
                 file.name, count, window);
        error = PARLEY_EDATA;
    }
    if (!error && !test) error = names_sort(vocabulary, numbers, count);
    if (!error) error = cut(set, numbers, count, window);
    free(numbers);
    set->text = true;
    set->classes = vocabulary->count;
    if (error == PARLEY_ENOMEM) snprintf(why, why_size, "%s: out of memory", file.name);
    if (error) dataset_close(set);
    return error;
}

int chars_encode(const struct names *vocabulary, struct bytes text, uint16_t *numbers,
                 size_t *count, char *why, size_t why_size)
{
    struct names fixed = *vocabulary; /* a test text's is only read */
    return read_all(&fixed, text, true, numbers, count, why, why_size);
}

void chars_write_vocabulary(const struct names *vocabulary, char out[CHARS_VOCABULARY_BYTES])
{
    size_t at = 0;
    for (uint32_t i = 0; i < vocabulary->count && at + 4 < CHARS_VOCABULARY_BYTES; i++)
        at += (size_t)snprintf(out + at, 5, "%s", names_text(vocabulary, i));
    out[at] = 0;
}

int chars_read_vocabulary(struct names *vocabulary, const char *text)
{
    struct reading r = {.file = {(const uint8_t *)text, strlen(text), ""}};
    int error = 0;
    while (!error && r.at < r.file.size) {
        size_t n = length_at(&r);
        bool bad = n == 0 || vocabulary->count == CHARS_MAX;
        error = bad ? PARLEY_EDATA : names_add(vocabulary, text + r.at, n);
        r.at += n;
    }
    return error;
}
