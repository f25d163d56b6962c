/* codec.h: what a codec does to floats; its layout stands in core/transfer/codec.h.
 *
 *   codec_encode   a snapshot becomes what crosses the network, in its own place
 *   codec_diff     what came and what went become d, in the place of what came
 *   codec_add      what came is added to what was there before: both ends of a difference that is
 *                  sent so have the same copy, to the bit
 *
 * Both ends decode the same two strings of bytes, q_own and q_theirs, and take d = q_theirs - q_own
 * of those: antisymmetric to the bit whatever is lost on the way, so an exchange leaves the mean of
 * the two where it is, as with fp32. What is lost comes back as noise in d alone: a model keeps the
 * precision of its own (Koloskova, Stich, Jaggi 2019, section 3, has the same form of update).
 * Rounding is to nearest: the more alike two models, the more often both round to the same, while
 * a random rounding would push them apart again.
 *
 * Encoding takes any floats: what is too large for the form becomes its largest, and what is not
 * finite becomes what does not decode to a finite value.
 * Thread rule: pure; call from any thread, on vectors that nobody else writes.
 */
#ifndef PARLEY_KERNELS_CODEC_H
#define PARLEY_KERNELS_CODEC_H

#include "core/transfer/codec.h"
#include "kernels/mix.h"

struct codec {
    enum parley_codec kind;
    double part;   /* of a subset, in (0, 1], or of topk */
    uint64_t draw; /* of a subset: the same at both ends, another in each exchange */
};

struct codec_result {
    bool finite;         /* theirs, ours and d are */
    double norm_sq;      /* ||d||^2 */
    double ours_norm_sq; /* ||ours||^2 */
    double mass;         /* <r, d>: mix.h */
};

/* `wide` vectors of n floats stand one behind the other; their bytes do, too.
 *
 * from: [wide n], wide and n at least 1. to: wide times codec_bytes() bytes; from's own memory (not
 * for topk), or none of it. */
void codec_encode(const struct codec *codec, void *to, const float *from, size_t n, uint32_t wide);

/* theirs: [wide n] floats of memory that begin with their bytes; becomes d, 0 where a subset has
 * nothing. ours: our bytes, not overlapping. Of a subset the norms are estimates for all n, from
 * the floats it has. Measures the first vector, but for `finite`, which is of all. */
void codec_diff(const struct codec *codec, float *restrict theirs, const void *restrict ours,
                size_t n, uint32_t wide, uint64_t sign_seed, struct codec_result *out);

/* y: [n]; y += what `from` decodes to: codec_bytes() bytes, not overlapping. False if y is then not
 * all finite, or `from` can't be what was encoded. */
bool codec_add(const struct codec *codec, float *restrict y, const void *restrict from, size_t n);

/* A block of at most CODEC_BLOCK floats, for codec.c, tests and benchmarks; dense codecs only. The
 * bytes of a whole block begin and end on those of the codec's scales. */
enum { CODEC_BLOCK = 2048 };
struct codec_kernels {
    void (*encode)(enum parley_codec kind, uint8_t *restrict to, const float *restrict from,
                   size_t n);
    void (*decode)(enum parley_codec kind, float *restrict to, const uint8_t *restrict from,
                   size_t n);
};
extern const struct codec_kernels codec_kernels[KERNEL_PATHS];

#endif
