/* topk.h: the k floats of a vector that are furthest from 0, as bytes, and back.
 *
 * For each TOPK_BLOCK of the n floats, how many of them are meant (uint32), then the places of all
 * in their blocks, rising (uint16, filled up to a multiple of 4 bytes), then the floats themselves,
 * unrounded: about 6 bytes each. Which they are does not depend on the machine: of equals those
 * that come first.
 * Thread rule: pure; call from any thread, on vectors that nobody else writes.
 */
#ifndef PARLEY_KERNELS_TOPK_H
#define PARLEY_KERNELS_TOPK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* from: [n], 0 < k <= n; n at most 2^40. to: codec_bytes() bytes (core/transfer/codec.h), not
 * overlapping. Floats that are not finite count as the largest. */
void topk_encode(uint8_t *restrict to, const float *restrict from, size_t n, size_t k);

/* y: [n]; y += what the bytes mean. False, with y as it was, if they mean no k places; false if
 * something in y is no longer finite. */
bool topk_add(float *restrict y, const uint8_t *restrict from, size_t n, size_t k);

#endif
