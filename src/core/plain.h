/* plain.h: what text from outside may be made of. It is shown to people, and stands in files.
 *
 * Each is true of no bytes at all. Thread rule: pure.
 */
#ifndef PARLEY_CORE_PLAIN_H
#define PARLEY_CORE_PLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Bytes of the UTF-8 sequence (RFC 3629) at the start of bytes[size], and its code point; 0: there
 * is none. What has a zero byte at its end may give a size beyond it. */
static inline size_t plain_utf8(const char *bytes, size_t size, uint32_t *code)
{
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    if (size == 0) return 0;
    *code = (unsigned char)bytes[0];
    size_t more = *code < 0x80 ? 0 : *code < 0xe0 ? 1 : *code < 0xf0 ? 2 : 3;
    if ((*code >= 0x80 && *code < 0xc2) || *code > 0xf4 || size <= more) return 0;
    if (more > 0) *code &= 0x3fu >> more;
    for (size_t i = 1; i <= more; i++) {
        if (((unsigned char)bytes[i] & 0xc0) != 0x80) return 0;
        *code = *code << 6 | ((unsigned char)bytes[i] & 0x3f);
    }
    bool surrogate = *code >= 0xd800 && *code < 0xe000;
    return *code >= least[more] && *code <= 0x10ffff && !surrogate ? more + 1 : 0;
}

/* The same, of what neither moves a terminal nor turns the direction of what follows. */
static inline size_t plain_point(const char *bytes, size_t size)
{
    uint32_t code = 0;
    size_t length = plain_utf8(bytes, size, &code);
    bool commands = code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c ||
                    code == 0x200e || code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
                    (code >= 0x2066 && code <= 0x2069);
    return commands ? 0 : length;
}

/* UTF-8 without control characters, of whichever kind, and without zero bytes. */
static inline bool plain_text(const char *bytes, size_t size)
{
    for (size_t at = 0, length; at < size; at += length)
        if ((length = plain_point(bytes + at, size - at)) == 0) return false;
    return true;
}

/* Writes the first character of bytes[size] as it stands between quotes in a message: what would
 * end them, command a terminal or not be seen is escaped, as \", \\ or \xNN, a byte at a time.
 * Returns the bytes written; *taken: those of the text. */
static inline size_t plain_show(char out[5], const char *bytes, size_t size, size_t *taken)
{
    uint32_t code = 0;
    size_t length = plain_point(bytes, size);
    (void)plain_utf8(bytes, size, &code);
    bool unseen = code == 0x200b || code == 0x2060 || code == 0xfeff;
    *taken = length > 0 && !unseen ? length : 1;
    if (length == 0 || unseen) return (size_t)snprintf(out, 5, "\\x%02x", (unsigned char)*bytes);
    const char *escape = *bytes == '"' || *bytes == '\\' ? "\\" : "";
    return (size_t)snprintf(out, 5, "%s%.*s", escape, (int)length, bytes);
}

/* Bytes for which it would be false become '?'. */
static inline void plain_scrub(char *text)
{
    for (size_t length; *text; text += length > 0 ? length : 1)
        if ((length = plain_point(text, 4)) == 0) *text = '?';
}

/* Printable ASCII. */
static inline bool plain_ascii(const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] < ' ' || bytes[i] > '~') return false;
    return true;
}

/* Printable ASCII without blanks: a node or a tensor may be called so. */
static inline bool plain_name(const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] <= ' ' || bytes[i] > '~') return false;
    return true;
}

#endif
