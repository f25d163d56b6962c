/* plain.h: what text from outside may be made of. It is shown to people, and stands in files.
 *
 * Each is true of no bytes at all. Thread rule: pure.
 */
#ifndef PARLEY_CORE_PLAIN_H
#define PARLEY_CORE_PLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Moves a terminal, or turns the direction of what follows. */
static inline bool plain_commands(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x200e || code == 0x200f ||
           (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

/* UTF-8 (RFC 3629) without control characters, of whichever kind, and without zero bytes. */
static inline bool plain_text(const char *bytes, size_t size)
{
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    for (size_t i = 0; i < size; i++) {
        uint32_t code = (unsigned char)bytes[i];
        size_t more = code < 0x80 ? 0 : code < 0xe0 ? 1 : code < 0xf0 ? 2 : 3;
        if ((code >= 0x80 && code < 0xc2) || code > 0xf4 || size - i <= more) return false;
        if (more > 0) code &= 0x3fu >> more;
        for (size_t k = 0; k < more; k++) {
            if (((unsigned char)bytes[++i] & 0xc0) != 0x80) return false;
            code = code << 6 | ((unsigned char)bytes[i] & 0x3f);
        }
        bool surrogate = code >= 0xd800 && code < 0xe000;
        if (code < least[more] || code > 0x10ffff || surrogate || plain_commands(code))
            return false;
    }
    return true;
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
