/* units.h: values as people write them: numbers, times, shares, addresses.
 *
 * Every parser takes the whole of `text` or refuses it: no blanks, no trailing letters, no hex, no
 * inf or nan. It returns 0 and sets its result, or returns PARLEY_EUSAGE and writes into `why` the
 * clause that follows the quoted value in a message: `is not a time (like 500ms, 10s, 5m)`.
 * Thread rule: pure; call from any thread.
 */
#ifndef PARLEY_SETTINGS_UNITS_H
#define PARLEY_SETTINGS_UNITS_H

#include <stdbool.h>
#include <stdint.h>

#include "parley/error.h"

enum {
    UNITS_WHY_BYTES = 256,
    UNITS_HOST_BYTES = 254, /* RFC 1035: names have at most 253 */
};

#define UNITS_TIME_MAX_US UINT64_C(31622400000000) /* 366 days */

typedef char units_why[UNITS_WHY_BYTES];

/* For parsers of more, too: the clause into `why`. Returns PARLEY_EUSAGE. */
int units_refuse(units_why why, const char *clause);
/* Likewise of a part: `has the moment "x", which is not a time...`. */
int units_blame(units_why why, const char *what, const char *part, const char *clause);
/* Likewise: PARLEY_ENOMEM. */
int units_lack_memory(units_why why);

/* 1 to 31 letters, digits, '.', '_' and '-', which it does not begin with: a node's name. */
bool units_is_name(const char *text);

/* An integer in [min, max]. */
PARLEY_CHECK int units_count(const char *text, uint64_t min, uint64_t max, uint64_t *value,
                             units_why why);

/* A finite decimal in [min, max], like 0.05 or 1e-4. */
PARLEY_CHECK int units_real(const char *text, double min, double max, double *value, units_why why);

/* `500ms 10s 5m` with units us, ms, s, m, h; 0 needs none. Up to 366 days. */
PARLEY_CHECK int units_time(const char *text, uint64_t *time_us, units_why why);

/* `50%`: over 0 and up to 100 %, as a fraction in (0, 1]. */
PARLEY_CHECK int units_share(const char *text, double *share, units_why why);

/* `100Mbit`: bits a second, with units bit, kbit, Mbit, Gbit, as bytes a second; 0 is refused: what
 * has no bandwidth lets nothing through. */
PARLEY_CHECK int units_rate(const char *text, uint64_t *bytes, units_why why);

/* A time that may be drawn at random. */
struct units_dist {
    enum units_dist_kind {
        UNITS_DIST_CONSTANT,  /* low_us */
        UNITS_DIST_LOGNORMAL, /* median low_us, standard deviation `sigma` of the logarithm */
        UNITS_DIST_UNIFORM,   /* low_us to high_us */
        UNITS_DIST_TRACE,     /* a line of the file at `path` after the other */
    } kind;
    uint64_t low_us, high_us;
    double sigma;
    const char *path; /* borrowed from the text */
};

/* `5ms`, `lognormal:5ms,0.3` (median, deviation s of the logarithm: the mean is exp(s^2 / 2) times
 * the median), `uniform:1ms,9ms`, `trace:FILE`. */
PARLEY_CHECK int units_dist(const char *text, struct units_dist *dist, units_why why);

struct units_address {
    char host[UNITS_HOST_BYTES]; /* name, IPv4, or IPv6 without its brackets */
    uint16_t port;
    bool v6; /* written in brackets */
};

/* `host:port`, `1.2.3.4:port`, `[v6]:port`; port 0 allowed. Nothing is looked up. */
PARLEY_CHECK int units_address(const char *text, struct units_address *address, units_why why);

/* True for 127.x.x.x, ::1 and localhost. */
bool units_address_is_loopback(const struct units_address *address);

/* True for 0.0.0.0 and ::, however they are written: every address of this machine. */
bool units_address_is_any(const struct units_address *address);

#endif
