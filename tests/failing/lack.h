/* lack.h: allocations that fail: of those made by parley's own code (by the linker's --wrap, which
 * meson.build gives), by jansson and by OpenSSL, the n-th finds no memory.
 *
 * Thread rule: any thread allocates; one starts and asks.
 */
#ifndef PARLEY_TESTS_LACK_H
#define PARLEY_TESTS_LACK_H

#include <stdbool.h>
#include <stdint.h>

/* First of all, before any other library is used. */
void lack_init(void);

/* Counts anew; the n-th allocation from now on fails, once. 0: none does. */
void lack_start(uint64_t n);

uint64_t lack_made(void);   /* allocations since then, the failed one among them */
bool lack_failed(void);     /* whether one has failed */
bool lack_in_library(void); /* ... and that of a library, which may not tell why it failed */
int64_t lack_kept(void);    /* blocks not yet freed, of all that were ever made */

#endif
