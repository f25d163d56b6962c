/* number.h: decimal numbers in text that has no zero byte at its end.
 *
 * Thread rule: pure; call from any thread.
 */
#ifndef PARLEY_DATA_NUMBER_H
#define PARLEY_DATA_NUMBER_H

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>

/* Whether it may be a value: as floats, the difference of two is finite, by which they are scaled.
 */
static inline bool number_fits(double value)
{
    return fabs(value) <= (double)FLT_MAX / 2;
}

/* The whole text as a decimal number (sign, point and exponent allowed; no blanks, no "inf", "nan"
 * or hexadecimal), correctly rounded. False if it is none, is longer than 100 bytes or does not
 * fit. */
bool number_parse(const char *text, size_t size, double *value);

/* Writes a text from a file for a message: in quotes, as plain_show() does, at most 40 bytes of
 * that; "nothing" if it is empty. Returns out. */
const char *number_found(char out[64], const char *text, size_t size);

#endif
