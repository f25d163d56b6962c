/* units.c: strict parsers of numbers with units, and of addresses. */
#include "settings/values/units.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>

#include "parley/config.h"
#include "report/text.h"

int units_refuse(units_why why, const char *clause)
{
    snprintf(why, UNITS_WHY_BYTES, "%s", clause);
    return PARLEY_EUSAGE;
}

int units_blame(units_why why, const char *what, const char *part, const char *clause)
{
    char quoted[TEXT_QUOTED_BYTES];
    snprintf(why, UNITS_WHY_BYTES, "has the %s %.*s, which %.*s", what, 100,
             text_quote(quoted, part), 120, clause);
    return PARLEY_EUSAGE;
}

int units_lack_memory(units_why why)
{
    snprintf(why, UNITS_WHY_BYTES, "does not fit in memory");
    return PARLEY_ENOMEM;
}

bool units_is_name(const char *text)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t length = strlen(text);
    return length > 0 && length < PARLEY_NAME_SIZE && strspn(text, letters) == length &&
           text[0] != '-';
}

int units_count(const char *text, uint64_t min, uint64_t max, uint64_t *value, units_why why)
{
    uint64_t sum = 0;
    bool over = *text == '-'; /* below 0, which is as much out of range */
    const char *first = text + over;
    size_t digits = strspn(first, "0123456789");
    if (digits == 0 || first[digits] != '\0') return units_refuse(why, "is not a whole number");
    for (const char *p = first; *p; p++) {
        uint64_t digit = (uint64_t)(*p - '0');
        if (sum > (UINT64_MAX - digit) / 10) over = true;
        sum = sum * 10 + digit;
    }
    if (over || sum < min || sum > max) {
        snprintf(why, UNITS_WHY_BYTES, "is out of range (%llu to %llu)", (unsigned long long)min,
                 (unsigned long long)max);
        return PARLEY_EUSAGE;
    }
    *value = sum;
    return 0;
}

/* Reads a decimal at text; *end is left after it. strtod alone would take hex, inf and nan. */
static bool read_decimal(const char *text, const char **end, double *value)
{
    const char *p = text;
    if (*p == '-' || *p == '+') p++;
    size_t whole = strspn(p, "0123456789");
    p += whole;
    size_t part = 0;
    if (*p == '.') {
        part = strspn(p + 1, "0123456789");
        p += 1 + part;
    }
    if (whole + part == 0) return false;
    if (*p == 'e' || *p == 'E') {
        const char *power = p + 1;
        if (*power == '-' || *power == '+') power++;
        size_t digits = strspn(power, "0123456789");
        if (digits > 0) p = power + digits;
    }
    char copy[64];
    if ((size_t)(p - text) >= sizeof copy) return false;
    memcpy(copy, text, (size_t)(p - text));
    copy[p - text] = '\0';
    *value = strtod(copy, NULL);
    *end = p;
    return isfinite(*value);
}

int units_real(const char *text, double min, double max, double *value, units_why why)
{
    const char *end;
    double number;
    bool read = read_decimal(text, &end, &number);
    if (read && strcmp(end, "%") == 0) {
        snprintf(why, UNITS_WHY_BYTES, "is not a number (write %g)", number / 100);
        return PARLEY_EUSAGE;
    }
    if (!read || *end != '\0') return units_refuse(why, "is not a number");
    if (number < min || number > max) {
        snprintf(why, UNITS_WHY_BYTES, "is out of range (%g to %g)", min, max);
        return PARLEY_EUSAGE;
    }
    *value = number;
    return 0;
}

struct unit {
    const char *name;
    double factor;
};

/* A non-negative decimal and one of `units`, rounded to a whole number of base units. */
static bool read_with_unit(const char *text, const struct unit *units, size_t count, double *value)
{
    const char *end;
    double number;
    if (!isdigit((unsigned char)text[0]) || !read_decimal(text, &end, &number)) return false;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(end, units[i].name) != 0) continue;
        *value = round(number * units[i].factor);
        return true;
    }
    return false;
}

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

int units_time(const char *text, uint64_t *time_us, units_why why)
{
    static const struct unit units[] = {
        {"us", 1}, {"ms", 1e3}, {"s", 1e6}, {"m", 60e6}, {"h", 3600e6}};
    double value;
    if (strcmp(text, "0") == 0)
        value = 0;
    else if (!read_with_unit(text, units, COUNT_OF(units), &value))
        return units_refuse(why, "is not a time (like 500ms, 10s, 5m)");
    if (value > (double)UNITS_TIME_MAX_US) return units_refuse(why, "is too long (at most 8784h)");
    *time_us = (uint64_t)value;
    return 0;
}

int units_rate(const char *text, uint64_t *bytes, units_why why)
{
    static const struct unit units[] = {
        {"bit", 0.125}, {"kbit", 125}, {"Mbit", 125e3}, {"Gbit", 125e6}};
    const char *end;
    double number, value;
    if (isdigit((unsigned char)text[0]) && read_decimal(text, &end, &number) && number == 0)
        return units_refuse(why, "lets nothing through (write a rate over 0, like 100Mbit)");
    if (!read_with_unit(text, units, COUNT_OF(units), &value))
        return units_refuse(why, "is not a rate (like 100Mbit, 1Gbit)");
    if (value < 1 || value > 1e15)
        return units_refuse(why, "is out of range (8bit to 8000000Gbit)");
    *bytes = (uint64_t)value;
    return 0;
}

int units_share(const char *text, double *share, units_why why)
{
    const char *end;
    double percent;
    if (!isdigit((unsigned char)text[0]) || !read_decimal(text, &end, &percent) ||
        strcmp(end, "%") != 0)
        return units_refuse(why, "is not a share (like 50%)");
    if (percent <= 0 || percent > 100)
        return units_refuse(why, "is out of range (over 0% to 100%)");
    *share = percent / 100;
    return 0;
}

/* Splits "A,B" after a kind's colon into left and the borrowed right. */
static bool split_pair(const char *pair, char left[32], const char **right)
{
    const char *comma = strchr(pair, ',');
    if (!comma || comma - pair >= 32) return false;
    memcpy(left, pair, (size_t)(comma - pair));
    left[comma - pair] = '\0';
    *right = comma + 1;
    return true;
}

int units_dist(const char *text, struct units_dist *dist, units_why why)
{
    static const char clause[] = "is not a time or distribution (like 5ms, lognormal:5ms,0.3, "
                                 "uniform:1ms,9ms; --compute also trace:FILE)";
    char left[32];
    const char *right;
    *dist = (struct units_dist){.kind = UNITS_DIST_CONSTANT};
    if (strncmp(text, "trace:", 6) == 0 && text[6] != '\0') {
        *dist = (struct units_dist){.kind = UNITS_DIST_TRACE, .path = text + 6};
        return 0;
    }
    if (strncmp(text, "lognormal:", 10) == 0) {
        dist->kind = UNITS_DIST_LOGNORMAL;
        if (!split_pair(text + 10, left, &right) || units_time(left, &dist->low_us, why) ||
            units_real(right, 0, 10, &dist->sigma, why))
            return units_refuse(why, clause);
        return 0;
    }
    if (strncmp(text, "uniform:", 8) == 0) {
        dist->kind = UNITS_DIST_UNIFORM;
        if (!split_pair(text + 8, left, &right) || units_time(left, &dist->low_us, why) ||
            units_time(right, &dist->high_us, why))
            return units_refuse(why, clause);
        if (dist->low_us > dist->high_us) return units_refuse(why, "runs backwards");
        return 0;
    }
    if (units_time(text, &dist->low_us, why)) return units_refuse(why, clause);
    dist->high_us = dist->low_us;
    return 0;
}

/* Letters of a host name or IPv4 address; names are judged in full by the resolver. */
static bool host_is_sane(const char *host)
{
    size_t length = strlen(host);
    return length > 0 && host[0] != '-' && host[0] != '.' &&
           strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") ==
               length;
}

/* An IPv6 address, with a zone (fe80::1%eth0) or without. */
static bool v6_is_sane(const char *host)
{
    char plain[UNITS_HOST_BYTES];
    struct in6_addr bytes;
    snprintf(plain, sizeof plain, "%s", host);
    char *zone = strchr(plain, '%');
    if (zone) {
        if (!host_is_sane(zone + 1)) return false;
        *zone = '\0';
    }
    return inet_pton(AF_INET6, plain, &bytes) == 1;
}

int units_address(const char *text, struct units_address *address, units_why why)
{
    static const char clause[] = "is not an address (like 10.0.0.7:7000, host:7000, [::1]:7000)";
    *address = (struct units_address){.v6 = text[0] == '['};
    const char *host = text + address->v6;
    const char *end = address->v6 ? strchr(host, ']') : strrchr(text, ':');
    if (!end || end - host >= UNITS_HOST_BYTES) return units_refuse(why, clause);
    memcpy(address->host, host, (size_t)(end - host));
    if (address->v6 && *++end != ':') return units_refuse(why, clause);
    if (!address->v6 && strchr(address->host, ':'))
        return units_refuse(why, "is not an address (write IPv6 in brackets: [::1]:7000)");
    if (!(address->v6 ? v6_is_sane(address->host) : host_is_sane(address->host)))
        return units_refuse(why, clause);
    uint64_t port;
    if (units_count(end + 1, 0, 65535, &port, why))
        return units_refuse(why, "has no valid port (0 to 65535 after the last colon)");
    address->port = (uint16_t)port;
    return 0;
}

static const struct in6_addr any = IN6ADDR_ANY_INIT, loopback = IN6ADDR_LOOPBACK_INIT;

static bool is_v6(const struct units_address *address, const struct in6_addr *which)
{
    struct in6_addr bytes;
    return inet_pton(AF_INET6, address->host, &bytes) == 1 &&
           memcmp(&bytes, which, sizeof bytes) == 0;
}

bool units_address_is_any(const struct units_address *address)
{
    struct in_addr bytes;
    if (address->v6) return is_v6(address, &any);
    return inet_pton(AF_INET, address->host, &bytes) == 1 && bytes.s_addr == INADDR_ANY;
}

bool units_address_is_loopback(const struct units_address *address)
{
    struct in_addr bytes;
    if (address->v6) return is_v6(address, &loopback);
    if (inet_pton(AF_INET, address->host, &bytes) == 1) return ntohl(bytes.s_addr) >> 24 == 127;
    return strcmp(address->host, "localhost") == 0;
}
