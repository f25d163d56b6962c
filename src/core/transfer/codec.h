/* codec.h: how a vector of n floats crosses the network in an exchange, and in how many bytes.
 *
 *   fp32    as it is
 *   bf16    2 bytes a float: the upper half, rounded to nearest even
 *   fp16    2 bytes a float: IEEE 754 binary16, rounded to nearest even
 *   int8    a byte a float: q in [-127, 127] times a scale, which stands before each CODEC_SCALED
 *           of them, as large as their largest needs it
 *   subset  a drawn part of the floats as they are, in runs of up to CODEC_RUN; both ends draw the
 *           same
 *   topk    the largest of them, so many of the whole, as they are: about 6 bytes each
 *           (kernels/topk.h); for differences that are made up for later, if they are left out
 *
 * Little-endian; filled up with zeros to a multiple of 4 bytes. Never more bytes than fp32 takes,
 * so that a vector is encoded in its own place (topk: into another). What is done to floats:
 * kernels/codec.h. Thread rule: pure.
 */
#ifndef PARLEY_CORE_CODEC_H
#define PARLEY_CORE_CODEC_H

#include <stdbool.h>
#include <stdint.h>

#include "core/rng.h"
#include "parley/config.h"

enum { CODEC_SCALED = 256, CODEC_RUN = 64, TOPK_BLOCK = 65536 };

#define CODEC_TOPK_MAX 0.5 /* fp32 of as many takes hardly more */

/* Whether it is of a part of the floats: subset and topk. */
static inline bool codec_has_part(enum parley_codec codec)
{
    return codec >= PARLEY_CODEC_SUBSET;
}

/* "bf16", "subset:0.01"; part is 1 where there is none. PARLEY_EUSAGE for what is none, or
 * a part that is not in (0, 1], of topk (0, CODEC_TOPK_MAX]. */
PARLEY_CHECK int codec_parse(const char *spec, enum parley_codec *codec, double *part);

/* As it is written for codec_parse(). Returns out. */
const char *codec_text(enum parley_codec codec, double part, char out[32]);

/* For one vector of n floats, n at least 1. */
uint64_t codec_bytes(enum parley_codec codec, double part, uint64_t n);

/* A single float leaves no room for a scale, and three none for places: they go as they are. */
static inline enum parley_codec codec_for(enum parley_codec codec, uint64_t n)
{
    bool few = n == 1 || (codec == PARLEY_CODEC_TOPK && n < 4);
    return few ? PARLEY_CODEC_FP32 : codec;
}

/* Of top-k: how many of n floats. */
uint64_t codec_kept(double part, uint64_t n);

/* A subset: of the n floats, `runs` runs of `length` each, out of as many `places`; the `over`
 * floats that are too few for a place lie before the place `gap`. */
struct codec_subset {
    uint64_t places, gap, runs;
    uint64_t turn;  /* the places stand in a circle, and the first of them is counted as this one */
    uint64_t begin; /* of the runs as they are drawn, the first that lies behind the turn */
    uint32_t length, over;
    struct rng rng;
};

struct codec_subset codec_draw(double part, uint64_t n, uint64_t draw);

/* The j-th run as it is drawn: one of the j-th part of the circle. */
static inline uint64_t codec_drawn(const struct codec_subset *s, uint64_t j)
{
    struct rng rng = s->rng;
    /* Fewer than 2^32 runs: no product overflows. */
    uint64_t each = s->places / s->runs, rest = s->places % s->runs;
    uint64_t low = j * each + j * rest / s->runs;
    uint64_t next = (j + 1) * each + (j + 1) * rest / s->runs;
    rng.counter = j + 2; /* the first two drew gap and turn */
    return low + rng_next(&rng) % (next - low);
}

/* Where the i-th run begins, i < runs: later than the one before it. */
static inline uint64_t codec_run(const struct codec_subset *s, uint64_t i)
{
    uint64_t j = i + s->begin < s->runs ? i + s->begin : i + s->begin - s->runs;
    uint64_t place = codec_drawn(s, j) + s->turn;
    if (place >= s->places) place -= s->places;
    return place * s->length + (place >= s->gap ? s->over : 0);
}

#endif
