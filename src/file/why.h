/* why.h: what is wrong with bytes from outside, said in one line.
 *
 * Thread rule: pure; call from any thread.
 */
#ifndef PARLEY_FILE_WHY_H
#define PARLEY_FILE_WHY_H

#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include "parley/error.h"

/* Writes the message (cut to fit) and returns `error`. What a terminal would obey, in text that
 * came from outside, becomes '?'. why may be NULL when why_size is 0. */
__attribute__((format(printf, 4, 5))) static inline int
why_set(int error, char *why, size_t why_size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why, why_size, format, args);
    va_end(args);
    if (why_size == 0) return error;
    for (char *c = why; *c != 0; c++)
        if (*c < ' ' || *c > '~') *c = '?';
    return error;
}

/* Whether jansson failed for want of memory, as far as it can tell. */
static inline bool why_lacks_memory(const json_error_t *error)
{
    return error->text[0] == 0 || json_error_code(error) == json_error_out_of_memory;
}

#endif
