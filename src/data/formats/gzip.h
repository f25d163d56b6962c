/* gzip.h: gzip files (RFC 1952) from a byte buffer into a buffer of the caller's.
 *
 * The caller says how much it expects, so a small file can't make us allocate without bound.
 * Thread rule: pure; call from any thread.
 */
#ifndef PARLEY_DATA_GZIP_H
#define PARLEY_DATA_GZIP_H

#include <stdbool.h>

#include "data/formats/bytes.h"
#include "parley/error.h"

/* One byte of deflate data makes at most 1032 bytes: what a file can inflate to has a bound. */
#define GZIP_RATIO_MAX 1032

/* Whether the bytes begin with gzip's magic number. */
bool gzip_is(struct bytes file);

/* Inflates into out[size]. On 0, *got says how many bytes were written: if it is below `size` they
 * are the whole content and its checksums hold; else the rest has not been looked at. Ask for one
 * byte more than expected to tell the two apart. Several members in one file are joined.
 * PARLEY_EDATA with a message (file cut short, damaged, followed by other bytes), PARLEY_ENOMEM. */
PARLEY_CHECK int gzip_inflate(struct bytes file, uint8_t *out, size_t size, size_t *got, char *why,
                              size_t why_size);

/* The whole content, into a new block of at most size_max bytes for the caller to free. Room is
 * taken for what the file says of itself, but for no more than it can hold. PARLEY_EDATA with a
 * message (as above, or more than size_max), PARLEY_ENOMEM. */
PARLEY_CHECK int gzip_expand(struct bytes file, size_t size_max, uint8_t **out, size_t *size,
                             char *why, size_t why_size);

#endif
