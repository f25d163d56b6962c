/* text.h: a growing string with a maximum, for help, JSON lines and tables.
 *
 * Add and add, then take. The first failure (no memory, maximum passed) sticks, later adds do
 * nothing, and text_take() gives NULL: so callers check once. Thread rule: belongs to one thread.
 */
#ifndef PARLEY_REPORT_TEXT_H
#define PARLEY_REPORT_TEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct text {
    char *bytes; /* NUL-terminated once something was added; owned */
    size_t length, capacity;
    size_t bytes_max; /* without the NUL */
    bool failed;
};

void text_init(struct text *text, size_t bytes_max);

__attribute__((format(printf, 2, 3))) void text_add(struct text *text, const char *format, ...);

/* Adds `value` to `columns` columns, cut with an ellipsis where longer; right-aligned if columns is
 * negative. One code point is one column. Control bytes are shown as '?'. */
void text_column(struct text *text, const char *value, int columns);

/* Adds `before`, which needs no quotes, and `value` as one word of a shell's line. */
void text_word(struct text *text, const char *before, const char *value);

/* Adds a field of CSV (RFC 4180), in quotes where it needs them. */
void text_field(struct text *text, const char *value);

/* Adds a number as a field of CSV: nothing for one that is not finite. */
void text_real(struct text *text, double value);

/* Adds the value, which is gone then, by jansson's flags. NULL: it found no memory. */
void text_json(struct text *text, json_t *value, size_t form);

/* The string, to be freed by the caller; NULL if an add failed. The text is closed. */
char *text_take(struct text *text);

void text_close(struct text *text);

/* Columns that `value` takes: its code points. */
size_t text_width(const char *value);

/* Bytes of a line of ASCII that fit: whole fields, which have two spaces between, or what there is
 * room for of the first. */
size_t text_fit(const char *line, size_t columns);

/* True if `value` is well-formed UTF-8 (RFC 3629) without control characters. */
bool text_clean(const char *value);

/* Copies the first code point of a non-empty value and returns its bytes (1 to 4); a byte that
 * begins no well-formed sequence comes out as U+FFFD, and 1 is returned. */
size_t text_point(const char *value, char out[5]);

enum { TEXT_QUOTED_BYTES = 200 };

/* "value" in double quotes for a message, as plain_show() does, clipped with an ellipsis past 48
 * bytes. Returns out. */
const char *text_quote(char out[TEXT_QUOTED_BYTES], const char *value);

#endif
