/* text.c: the growing string, and the judgement of strings from outside. */
#include "report/text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Bytes of the well-formed sequence at p (RFC 3629, section 4), 0 if there is none. */
static int sequence_bytes(const unsigned char *p)
{
    int more;
    unsigned low = 0x80, high = 0xbf;
    if (p[0] < 0x80) return 1;
    if (p[0] >= 0xc2 && p[0] <= 0xdf)
        more = 1;
    else if (p[0] >= 0xe0 && p[0] <= 0xef) {
        more = 2;
        if (p[0] == 0xe0) low = 0xa0;
        if (p[0] == 0xed) high = 0x9f;
    } else if (p[0] >= 0xf0 && p[0] <= 0xf4) {
        more = 3;
        if (p[0] == 0xf0) low = 0x90;
        if (p[0] == 0xf4) high = 0x8f;
    } else
        return 0;
    if (p[1] < low || p[1] > high) return 0;
    for (int i = 2; i <= more; i++)
        if (p[i] < 0x80 || p[i] > 0xbf) return 0;
    return more + 1;
}

/* U+0000 to U+001F, U+007F and U+0080 to U+009F move cursors and colours. */
static bool is_control(const unsigned char *p)
{
    return p[0] < 0x20 || p[0] == 0x7f || (p[0] == 0xc2 && p[1] < 0xa0);
}

bool text_clean(const char *value)
{
    const unsigned char *p = (const unsigned char *)value;
    while (*p) {
        int bytes = sequence_bytes(p);
        if (bytes == 0 || is_control(p)) return false;
        p += bytes;
    }
    return true;
}

void text_scrub(char *value)
{
    for (unsigned char *p = (unsigned char *)value; *p;) {
        int bytes = sequence_bytes(p);
        if (bytes == 0 || is_control(p))
            *p++ = '?';
        else
            p += bytes;
    }
}

size_t text_point(const char *value, char out[5])
{
    int bytes = sequence_bytes((const unsigned char *)value);
    snprintf(out, 5, "%.*s", bytes ? bytes : 3, bytes ? value : "\xef\xbf\xbd");
    return bytes ? (size_t)bytes : 1;
}

const char *text_quote(char out[TEXT_QUOTED_BYTES], const char *value)
{
    const unsigned char *p = (const unsigned char *)value;
    const unsigned char *end = p + 48;
    size_t length = 0;
    out[length++] = '"';
    while (*p && p < end) {
        int bytes = sequence_bytes(p);
        if (bytes == 0 || is_control(p)) {
            length += (size_t)snprintf(out + length, 5, "\\x%02x", *p++);
            continue;
        }
        memcpy(out + length, p, (size_t)bytes);
        length += (size_t)bytes;
        p += bytes;
    }
    snprintf(out + length, TEXT_QUOTED_BYTES - length, "%s", *p ? "…\"" : "\"");
    return out;
}
