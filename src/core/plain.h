/* plain.h: what text from outside may be made of. It is shown to people, and stands in files.
 *
 * Each is true of no bytes at all. Thread rule: pure.
 */
#ifndef PARLEY_CORE_PLAIN_H
#define PARLEY_CORE_PLAIN_H

#include <stdbool.h>
#include <stddef.h>

/* No control characters and no zero byte; else any bytes, as of UTF-8. */
static inline bool plain_text(const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)bytes[i] < 0x20 || bytes[i] == 0x7f) return false;
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
