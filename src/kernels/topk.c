/* topk.c: see topk.h.
 *
 * The bits of floats without sign are in the order of the floats: the k-th largest is found by
 * counting, eleven bits of it with each pass over the vector (radix select), and what is larger is
 * written with one more.
 */
#include "kernels/topk.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/transfer/codec.h"

#define MAGNITUDE UINT32_C(0x7fffffff)

enum { BINS = 2048, DIGITS = 3 };

#define PIECE ((size_t)1 << 31) /* floats that can all be in one bin of 32 bits */

/* Of the 31 bits: 11, 10 and 10. */
static const struct {
    uint32_t shift, bins;
} digits[DIGITS] = {{20, 2048}, {10, 1024}, {0, 1024}};

static uint32_t magnitude(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits & MAGNITUDE;
}

/* Among those whose upper bits are those of `found`. Two tables take turns, so that equals that
 * follow each other need not wait for each other's count. */
static void count_piece(uint64_t *bins, const float *from, size_t n, int digit, uint32_t found)
{
    uint32_t even[BINS] = {0}, odd[BINS] = {0}, mask = digits[digit].bins - 1;
    uint32_t shift = digits[digit].shift, above = digit > 0 ? digits[digit - 1].shift : 31;
    for (size_t i = 0; i < n; i++) {
        uint32_t a = magnitude(from[i]);
        if (a >> above != found >> above) continue;
        (i & 1 ? odd : even)[a >> shift & mask]++;
    }
    for (uint32_t b = 0; b < BINS; b++)
        bins[b] += even[b] + odd[b];
}

static void count(uint64_t *bins, const float *from, size_t n, int digit, uint32_t found)
{
    memset(bins, 0, BINS * sizeof *bins);
    for (; n > PIECE; n -= PIECE, from += PIECE)
        count_piece(bins, from, PIECE, digit, found);
    count_piece(bins, from, n, digit, found);
}

/* The k-th largest magnitude; *equals: how many that are equal to it are among the k. */
static uint32_t find(const float *from, size_t n, size_t k, size_t *equals)
{
    uint64_t bins[BINS];
    uint32_t found = 0;
    for (int digit = 0; digit < DIGITS; digit++) {
        count(bins, from, n, digit, found);
        uint32_t b = digits[digit].bins - 1;
        while (bins[b] < k)
            k -= bins[b--];
        found |= b << digits[digit].shift;
    }
    *equals = k;
    return found;
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

static size_t blocks_of(size_t n)
{
    return (n + TOPK_BLOCK - 1) / TOPK_BLOCK;
}

static size_t floats_at(size_t n, size_t k)
{
    return blocks_of(n) * sizeof(uint32_t) + (k * sizeof(uint16_t) + 3) / 4 * 4;
}

static size_t block_size(size_t n, size_t block)
{
    size_t left = n - block * TOPK_BLOCK;
    return left < TOPK_BLOCK ? left : TOPK_BLOCK;
}

void topk_encode(uint8_t *restrict to, const float *restrict from, size_t n, size_t k)
{
    size_t equals, blocks = blocks_of(n), written = 0;
    uint32_t least = find(from, n, k, &equals);
    uint8_t *places = to + blocks * sizeof(uint32_t), *floats = to + floats_at(n, k);
    memset(floats - 2, 0, 2); /* what fills it up, if k is odd */
    for (size_t block = 0; block < blocks; block++) {
        const float *x = from + block * TOPK_BLOCK;
        size_t size = block_size(n, block), before = written;
        for (size_t i = 0; i < size; i++) {
            uint32_t a = magnitude(x[i]);
            if (a < least || (a == least && equals == 0)) continue;
            equals -= a == least;
            uint16_t place = (uint16_t)i;
            memcpy(places + written * sizeof place, &place, sizeof place);
            memcpy(floats + written * sizeof *x, x + i, sizeof *x);
            written++;
        }
        uint32_t here = (uint32_t)(written - before);
        memcpy(to + block * sizeof here, &here, sizeof here);
    }
    assert(written == k);
}

static uint32_t count_of(const uint8_t *from, size_t block)
{
    uint32_t here;
    memcpy(&here, from + block * sizeof here, sizeof here);
    return here;
}

static bool is_sound(const uint8_t *from, size_t n, size_t k)
{
    const uint8_t *places = from + blocks_of(n) * sizeof(uint32_t);
    size_t at = 0;
    for (size_t block = 0; block < blocks_of(n); block++) {
        size_t here = count_of(from, block), size = block_size(n, block);
        if (here > k - at) return false;
        for (size_t end = at + here; at < end; at++) {
            uint16_t place;
            memcpy(&place, places + at * sizeof place, sizeof place);
            if (place >= size) return false;
        }
    }
    return at == k;
}

bool topk_add(float *restrict y, const uint8_t *restrict from, size_t n, size_t k)
{
    if (!is_sound(from, n, k)) return false;
    const uint8_t *places = from + blocks_of(n) * sizeof(uint32_t);
    const uint8_t *floats = from + floats_at(n, k);
    bool finite = true;
    size_t at = 0;
    for (size_t block = 0; block < blocks_of(n); block++) {
        float *to = y + block * TOPK_BLOCK;
        for (size_t end = at + count_of(from, block); at < end; at++) {
            uint16_t place;
            float x;
            memcpy(&place, places + at * sizeof place, sizeof place);
            memcpy(&x, floats + at * sizeof x, sizeof x);
            to[place] += x;
            finite = finite && isfinite(to[place]);
        }
    }
    return finite;
}
