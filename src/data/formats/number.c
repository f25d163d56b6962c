/* number.c: see number.h. The common case, few digits and a small exponent, is exact in one
 * division or product (Clinger, "How to read floating point numbers accurately", PLDI 1990,
 * section 3); all else is strtod's. */
#include "data/formats/number.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/plain.h"

enum { SIZE_MAX_BYTES = 100, EXACT_DIGITS = 15, EXACT_POWER = 22 };

static const double powers[EXACT_POWER + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                               1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                               1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

struct decimal {
    bool negative;
    int digits; /* from the first that is not 0 */
    uint64_t mantissa;
    long exponent; /* of ten */
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *read_digits(struct decimal *d, const char *at, const char *end, long step)
{
    for (; at < end && is_digit(*at); at++) {
        d->digits += d->digits > 0 || *at != '0';
        if (d->digits <= EXACT_DIGITS) d->mantissa = 10 * d->mantissa + (uint64_t)(*at - '0');
        d->exponent += step;
    }
    return at;
}

static bool read_exponent(struct decimal *d, const char *at, const char *end)
{
    long exponent = 0;
    bool negative = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+')) at++;
    if (at == end) return false;
    for (; at < end && is_digit(*at); at++)
        if (exponent < 100000) exponent = 10 * exponent + (*at - '0');
    d->exponent += negative ? -exponent : exponent;
    return at == end;
}

static bool read_decimal(struct decimal *d, const char *at, const char *end)
{
    if (at < end && (*at == '-' || *at == '+')) d->negative = *at++ == '-';
    const char *whole = at;
    at = read_digits(d, at, end, 0);
    bool any = at > whole;
    if (at < end && *at == '.') {
        const char *part = ++at;
        at = read_digits(d, at, end, -1);
        any = any || at > part;
    }
    if (!any) return false;
    if (at < end && (*at == 'e' || *at == 'E')) return read_exponent(d, at + 1, end);
    return at == end;
}

bool number_parse(const char *text, size_t size, double *value)
{
    struct decimal d = {0};
    if (size == 0 || size > SIZE_MAX_BYTES || !read_decimal(&d, text, text + size)) return false;
    if (d.digits <= EXACT_DIGITS && d.exponent >= -EXACT_POWER && d.exponent <= EXACT_POWER) {
        double m = (double)d.mantissa;
        m = d.exponent < 0 ? m / powers[-d.exponent] : m * powers[d.exponent];
        *value = d.negative ? -m : m;
    } else {
        char copy[SIZE_MAX_BYTES + 1];
        memcpy(copy, text, size);
        copy[size] = 0;
        *value = strtod(copy, NULL);
    }
    return number_fits(*value);
}

const char *number_found(char out[64], const char *text, size_t size)
{
    enum { SHOWN = 40 };
    if (size == 0) {
        snprintf(out, 64, "nothing");
        return out;
    }
    char shown[SHOWN + 1] = "", one[5];
    size_t at = 0, used = 0;
    for (size_t taken; at < size; at += taken) {
        size_t length = plain_show(one, text + at, size - at, &taken);
        if (used + length > SHOWN) break;
        strcpy(shown + used, one);
        used += length;
    }
    snprintf(out, 64, "\"%s%s\"", shown, at < size ? "..." : "");
    return out;
}
