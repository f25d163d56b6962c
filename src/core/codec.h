/* codec.h: how a vector of n floats crosses the network in an exchange, and in how many bytes.
 *
 *   fp32    as it is
 *   bf16    2 bytes a float: the upper half, rounded to nearest even
 *   fp16    2 bytes a float: IEEE 754 binary16, rounded to nearest even
 *   int8    a byte a float: q in [-127, 127] times a scale, which stands before each CODEC_SCALED
 *           of them, as large as their largest needs it
 *   subset  a drawn part of the floats as they are, in runs of up to CODEC_RUN; both ends draw the
 * same
 *
 * Little-endian; filled up with zeros to a multiple of 4 bytes. Never more bytes than fp32 takes,
 * so that a vector is encoded in its own place. What is done to floats: kernels/codec.h.
 * Thread rule: pure.
 */
#ifndef PARLEY_CORE_CODEC_H
#define PARLEY_CORE_CODEC_H

#include <stddef.h>
#include <stdint.h>

#include "core/rng.h"
#include "parley/config.h"

enum { CODEC_SCALED = 256, CODEC_RUN = 64 };

/* "bf16", "subset:0.01"; part is 1 for all but the last. PARLEY_EUSAGE for what is none, or a part
 * that is not in (0, 1]. */
PARLEY_CHECK int codec_parse(const char *spec, enum parley_codec *codec, double *part);

/* As it is written for codec_parse(). Returns out. */
const char *codec_text(enum parley_codec codec, double part, char out[32]);

/* For one vector of n floats, n at least 1. */
uint64_t codec_bytes(enum parley_codec codec, double part, uint64_t n);

/* A single float leaves no room for a scale: it goes as it is. */
static inline enum parley_codec codec_for(enum parley_codec codec, uint64_t n)
{
    return n == 1 ? PARLEY_CODEC_FP32 : codec;
}

/* A subset: of the n floats, `runs` runs of `length` each, of the `places` that begin at `first`.
 */
struct codec_subset {
    uint64_t first, places, runs;
    uint32_t length;
    struct rng rng;
};

struct codec_subset codec_draw(double part, uint64_t n, uint64_t draw);

/* Where the i-th run begins, i < runs: later than the one before it. */
static inline uint64_t codec_run(const struct codec_subset *s, uint64_t i)
{
    struct rng rng = s->rng;
    /* One of the i-th part of the places. Fewer than 2^32 runs: no product overflows. */
    uint64_t each = s->places / s->runs, rest = s->places % s->runs;
    uint64_t low = i * each + i * rest / s->runs;
    uint64_t next = (i + 1) * each + (i + 1) * rest / s->runs;
    rng.counter = i + 1; /* the first drew `first` */
    return s->first + (low + rng_next(&rng) % (next - low)) * s->length;
}

#endif
