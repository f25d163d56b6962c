/* text.c: the growing string, and the judgement of strings from outside. */
#include "report/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/plain.h"

void text_init(struct text *text, size_t bytes_max)
{
    *text = (struct text){.bytes_max = bytes_max};
}

/* Room for `more` bytes and a NUL; false after a failure. */
static bool reserve(struct text *text, size_t more)
{
    if (text->failed || more > text->bytes_max || text->length > text->bytes_max - more) {
        text->failed = true;
        return false;
    }
    size_t need = text->length + more + 1;
    if (need <= text->capacity) return true;
    size_t capacity = text->capacity ? text->capacity : 128;
    while (capacity < need)
        capacity *= 2;
    char *bytes = realloc(text->bytes, capacity);
    if (!bytes) {
        text->failed = true;
        return false;
    }
    text->bytes = bytes;
    text->capacity = capacity;
    return true;
}

void text_add(struct text *text, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int length = vsnprintf(NULL, 0, format, list);
    va_end(list);
    if (length < 0 || !reserve(text, (size_t)length)) {
        text->failed = true;
        return;
    }
    va_start(list, format);
    vsnprintf(text->bytes + text->length, (size_t)length + 1, format, list);
    va_end(list);
    text->length += (size_t)length;
}

static bool continues(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

size_t text_width(const char *value)
{
    size_t width = 0;
    for (; *value; value++)
        if (!continues(*value)) width++;
    return width;
}

size_t text_fit(const char *line, size_t columns)
{
    size_t fits = 0;
    if (strlen(line) <= columns) return strlen(line);
    for (const char *at = line; (at = strstr(at, "  ")) && at <= line + columns; at += 2)
        fits = (size_t)(at - line);
    return fits > 0 ? fits : columns;
}

/* Adds the first `columns` code points of value. */
static void add_points(struct text *text, const char *value, size_t columns)
{
    for (; *value; value++) {
        if (!continues(*value) && columns-- == 0) return;
        text_add(text, "%c", (unsigned char)*value < 0x20 || *value == 0x7f ? '?' : *value);
    }
}

void text_column(struct text *text, const char *value, int columns)
{
    size_t room = (size_t)abs(columns);
    size_t width = text_width(value);
    int gap = width < room ? (int)(room - width) : 0;
    if (columns < 0) text_add(text, "%*s", gap, "");
    if (width <= room)
        add_points(text, value, width);
    else if (room > 0) {
        add_points(text, value, room - 1);
        text_add(text, "…");
    }
    if (columns > 0) text_add(text, "%*s", gap, "");
}

void text_word(struct text *text, const char *before, const char *value)
{
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "._-+,:/@%=";
    if (strspn(value, safe) == strlen(value)) {
        text_add(text, "%s%s", before, value);
        return;
    }
    text_add(text, "'%s", before);
    for (; *value; value++)
        text_add(text, *value == '\'' ? "'\\''" : "%c", *value);
    text_add(text, "'");
}

void text_field(struct text *text, const char *value)
{
    if (!strpbrk(value, ",\"\r\n")) {
        text_add(text, "%s", value);
        return;
    }
    text_add(text, "\"");
    for (; *value; value++)
        text_add(text, *value == '"' ? "\"\"" : "%c", *value);
    text_add(text, "\"");
}

void text_real(struct text *text, double value)
{
    if (isfinite(value)) text_add(text, "%.9g", value);
}

static int add_bytes(const char *bytes, size_t size, void *context)
{
    struct text *text = context;
    text_add(text, "%.*s", (int)size, bytes);
    return text->failed ? -1 : 0;
}

/* Not json_dumps(): it leaves out keys where its buffer can't grow, and says nothing. */
void text_json(struct text *text, json_t *value, size_t form)
{
    if (json_dump_callback(value, add_bytes, text, form)) text->failed = true;
    json_decref(value);
}

char *text_take(struct text *text)
{
    if (!text->failed && !text->bytes) text_add(text, "%s", "");
    char *bytes = text->failed ? NULL : text->bytes;
    if (text->failed) free(text->bytes);
    *text = (struct text){.bytes_max = text->bytes_max};
    return bytes;
}

void text_close(struct text *text)
{
    free(text->bytes);
    *text = (struct text){0};
}

bool text_clean(const char *value)
{
    return plain_text(value, strlen(value));
}

size_t text_point(const char *value, char out[5])
{
    uint32_t code;
    size_t bytes = plain_utf8(value, 4, &code);
    snprintf(out, 5, "%.*s", bytes ? (int)bytes : 3, bytes ? value : "\xef\xbf\xbd");
    return bytes ? bytes : 1;
}

const char *text_quote(char out[TEXT_QUOTED_BYTES], const char *value)
{
    const char *p = value, *end = value + 48;
    size_t length = 0;
    out[length++] = '"';
    for (size_t taken; *p && p < end; p += taken)
        length += plain_show(out + length, p, 4, &taken);
    snprintf(out + length, TEXT_QUOTED_BYTES - length, "%s", *p ? "…\"" : "\"");
    return out;
}
