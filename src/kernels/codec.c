/* codec.c: the loops of the codecs.
 *
 *   1. encoding goes forwards, a block (2,048 floats) at a time by way of the stack: no byte is
 *      written past the floats that were read
 *   2. the difference goes backwards, as what is decoded takes more room than what came
 */
#include "kernels/codec.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "kernels/topk.h"

#define SIGN UINT32_C(0x80000000)
#define INFINITE UINT32_C(0x7f800000)
#define NO_NUMBER UINT32_C(0x7fff) /* of both halves */
#define HALF_MAX UINT32_C(0x7bff)
#define BRAIN_MAX UINT32_C(0x7f7f)

/* Adding it leaves a small float's nearest whole number in the lowest bits. */
#define ROUNDER 12582912.0f
#define ROUNDER_BITS INT32_C(0x4b400000)

/* Smaller ones all become 0: their scale, or its inverse, would leave the range of a float. */
#define SCALED_MIN 0x1p-100f
/* Larger ones become this: a float that 127 times its 127th part does not overflow. */
#define SCALED_MAX 0x1.fffff8p127f

KERNEL_BODY uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

KERNEL_BODY float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* ---- bf16 ------------------------------------------------------------------------------------ */

KERNEL_BODY void brain_encode(uint8_t *restrict to, const float *restrict from, size_t n)
{
    uint16_t half[CODEC_BLOCK];
    for (size_t i = 0; i < n; i++) {
        uint32_t u = bits_of(from[i]), a = u & ~SIGN;
        uint32_t r = (a + 0x7fff + (a >> 16 & 1)) >> 16;
        r = r > BRAIN_MAX ? BRAIN_MAX : r;
        r = a >= INFINITE ? NO_NUMBER : r;
        half[i] = (uint16_t)(r | (u & SIGN) >> 16);
    }
    memcpy(to, half, n * sizeof *half);
}

KERNEL_BODY void brain_decode(float *restrict to, const uint8_t *restrict from, size_t n)
{
    uint16_t half[CODEC_BLOCK];
    memcpy(half, from, n * sizeof *half);
    for (size_t i = 0; i < n; i++)
        to[i] = float_of((uint32_t)half[i] << 16);
}

/* ---- fp16 ------------------------------------------------------------------------------------ */

/* Below 2^-14 its floats are whole multiples of 2^-24, which is half's last place. */
KERNEL_BODY void half_encode(uint8_t *restrict to, const float *restrict from, size_t n)
{
    uint16_t half[CODEC_BLOCK];
    for (size_t i = 0; i < n; i++) {
        uint32_t u = bits_of(from[i]), a = u & ~SIGN;
        uint32_t r = (a - 0x38000000 + 0xfff + (a >> 13 & 1)) >> 13;
        uint32_t small = bits_of(float_of(a) + 0.5f) - bits_of(0.5f);
        r = r > HALF_MAX ? HALF_MAX : r;
        r = a < 0x38800000 ? small : r;
        r = a >= INFINITE ? NO_NUMBER : r;
        half[i] = (uint16_t)(r | (u & SIGN) >> 16);
    }
    memcpy(to, half, n * sizeof *half);
}

KERNEL_BODY void half_decode(float *restrict to, const uint8_t *restrict from, size_t n)
{
    uint16_t half[CODEC_BLOCK];
    memcpy(half, from, n * sizeof *half);
    for (size_t i = 0; i < n; i++) {
        uint32_t m = half[i] & 0x7fff, sign = (uint32_t)(half[i] & 0x8000) << 16;
        uint32_t r = (m << 13) + (m >= 0x7c00 ? 0x70000000 : 0x38000000);
        uint32_t small = bits_of((float)(int32_t)m * 0x1p-24f);
        to[i] = float_of(sign | (m < 0x400 ? small : r));
    }
}

/* ---- int8 ------------------------------------------------------------------------------------ */

/* The bits of floats without sign are in the order of the floats. */
KERNEL_BODY float largest(const float *x, size_t n)
{
    uint32_t most = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t a = bits_of(x[i]) & ~SIGN;
        most = a > most ? a : most;
    }
    return float_of(most);
}

KERNEL_BODY void scaled_encode(uint8_t *restrict to, const float *restrict from, size_t n)
{
    float most = largest(from, n), scale = NAN, inverse = 0;
    if (most <= SCALED_MIN) {
        scale = 0;
    } else if (bits_of(most) < INFINITE) {
        most = most < SCALED_MAX ? most : SCALED_MAX;
        scale = most / 127;
        inverse = 127 / most;
    }
    memcpy(to, &scale, sizeof scale);
    for (size_t i = 0; i < n; i++) {
        int32_t q = (int32_t)bits_of(from[i] * inverse + ROUNDER) - ROUNDER_BITS;
        q = q > 127 ? 127 : q;
        q = q < -127 ? -127 : q;
        to[sizeof scale + i] = (uint8_t)q;
    }
}

KERNEL_BODY void scaled_decode(float *restrict to, const uint8_t *restrict from, size_t n)
{
    float scale;
    memcpy(&scale, from, sizeof scale);
    for (size_t i = 0; i < n; i++)
        to[i] = (float)(int8_t)from[sizeof scale + i] * scale;
}

KERNEL_BODY size_t scaled_bytes(size_t n)
{
    return n + sizeof(float);
}

/* ---- A block --------------------------------------------------------------------------------- */

KERNEL_BODY void encode(enum parley_codec kind, uint8_t *restrict to, const float *restrict from,
                        size_t n)
{
    if (kind == PARLEY_CODEC_BF16) brain_encode(to, from, n);
    if (kind == PARLEY_CODEC_FP16) half_encode(to, from, n);
    for (size_t at = 0; kind == PARLEY_CODEC_INT8 && at < n; at += CODEC_SCALED) {
        size_t size = n - at < CODEC_SCALED ? n - at : CODEC_SCALED;
        scaled_encode(to, from + at, size);
        to += scaled_bytes(size);
    }
}

KERNEL_BODY void decode(enum parley_codec kind, float *restrict to, const uint8_t *restrict from,
                        size_t n)
{
    if (kind == PARLEY_CODEC_BF16) brain_decode(to, from, n);
    if (kind == PARLEY_CODEC_FP16) half_decode(to, from, n);
    for (size_t at = 0; kind == PARLEY_CODEC_INT8 && at < n; at += CODEC_SCALED) {
        size_t size = n - at < CODEC_SCALED ? n - at : CODEC_SCALED;
        scaled_decode(to + at, from, size);
        from += scaled_bytes(size);
    }
}

KERNEL_ON_PATHS(void, encode,
                (enum parley_codec kind, uint8_t *restrict to, const float *restrict from,
                 size_t n),
                encode(kind, to, from, n))
KERNEL_ON_PATHS(void, decode,
                (enum parley_codec kind, float *restrict to, const uint8_t *restrict from,
                 size_t n),
                decode(kind, to, from, n))

#define ROW(path) encode_##path, decode_##path

const struct codec_kernels codec_kernels[KERNEL_PATHS] = KERNEL_TABLE(ROW);

/* ---- Dense vectors --------------------------------------------------------------------------- */

/* As codec_bytes(), of a block. */
static size_t block_bytes(enum parley_codec kind, size_t n)
{
    size_t scales = (n + CODEC_SCALED - 1) / CODEC_SCALED * sizeof(float);
    size_t bytes = kind == PARLEY_CODEC_INT8 ? n + scales : n * sizeof(uint16_t);
    return (bytes + 3) / 4 * 4;
}

static void encode_dense(enum parley_codec kind, uint8_t *to, const float *from, size_t n)
{
    const struct codec_kernels *kernels = &codec_kernels[kernel_path_best()];
    uint8_t bytes[CODEC_BLOCK * 2];
    for (size_t at = 0; at < n; at += CODEC_BLOCK) {
        size_t size = n - at < CODEC_BLOCK ? n - at : CODEC_BLOCK;
        size_t room = block_bytes(kind, size);
        memset(bytes + room - 4, 0, 4); /* what fills it up */
        kernels->encode(kind, bytes, from + at, size);
        memcpy(to, bytes, room);
        to += room;
    }
}

/* A sum of sums: signs and order are of this block's place, at both ends. */
static void diff_block(float *restrict theirs, const float *restrict ours, size_t n, uint64_t seed,
                       struct codec_result *sum)
{
    struct mix_diff_result block;
    sum->ours_norm_sq += mix_norm_sq(ours, n);
    mix_diff(theirs, ours, n, seed, &block);
    sum->finite = sum->finite && block.finite;
    sum->norm_sq += block.norm_sq;
    sum->mass += block.mass;
}

static void diff_dense(enum parley_codec kind, float *restrict theirs, const uint8_t *restrict ours,
                       size_t n, uint64_t sign_seed, struct codec_result *out)
{
    const struct codec_kernels *kernels = &codec_kernels[kernel_path_best()];
    size_t whole = block_bytes(kind, CODEC_BLOCK), rest = n % CODEC_BLOCK;
    uint8_t bytes[CODEC_BLOCK * 2];
    float decoded[CODEC_BLOCK];
    for (size_t block = (n + CODEC_BLOCK - 1) / CODEC_BLOCK; block-- > 0;) {
        size_t size = rest > 0 ? rest : CODEC_BLOCK;
        rest = 0; /* only the last, which comes first, is short */
        memcpy(bytes, (const uint8_t *)theirs + block * whole, block_bytes(kind, size));
        kernels->decode(kind, theirs + block * CODEC_BLOCK, bytes, size);
        kernels->decode(kind, decoded, ours + block * whole, size);
        diff_block(theirs + block * CODEC_BLOCK, decoded, size, sign_seed + block, out);
    }
}

/* ---- Subsets --------------------------------------------------------------------------------- */

static void encode_subset(const struct codec_subset *s, float *to, const float *from)
{
    for (uint64_t i = 0; i < s->runs; i++)
        memmove(to + i * s->length, from + codec_run(s, i), s->length * sizeof *to);
}

/* The i-th run moves from the i-th place to its own; what lies between runs becomes 0. */
static void spread(const struct codec_subset *s, float *d, size_t n)
{
    size_t end = n;
    for (uint64_t i = s->runs; i-- > 0;) {
        size_t at = codec_run(s, i);
        memmove(d + at, d + i * s->length, s->length * sizeof *d);
        memset(d + at + s->length, 0, (end - at - s->length) * sizeof *d);
        end = at;
    }
    memset(d, 0, end * sizeof *d);
}

static void diff_subset(const struct codec *codec, float *restrict theirs,
                        const float *restrict ours, size_t n, uint64_t sign_seed,
                        struct codec_result *out)
{
    struct codec_subset s = codec_draw(codec->part, n, codec->draw);
    size_t count = s.runs * s.length;
    double all = (double)n / (double)count;
    diff_block(theirs, ours, count, sign_seed, out);
    out->norm_sq *= all;
    out->ours_norm_sq *= all;
    spread(&s, theirs, n);
}

/* ---- All of them ----------------------------------------------------------------------------- */

static void encode_vector(const struct codec *codec, void *to, const float *from, size_t n)
{
    enum parley_codec kind = codec_for(codec->kind, n);
    if (kind == PARLEY_CODEC_SUBSET) {
        struct codec_subset s = codec_draw(codec->part, n, codec->draw);
        encode_subset(&s, to, from);
    } else if (kind == PARLEY_CODEC_TOPK) {
        topk_encode(to, from, n, codec_kept(codec->part, n));
    } else if (kind == PARLEY_CODEC_FP32) {
        memmove(to, from, n * sizeof *from);
    } else {
        encode_dense(kind, to, from, n);
    }
}

static void diff_vector(const struct codec *codec, float *restrict theirs,
                        const void *restrict ours, size_t n, uint64_t sign_seed,
                        struct codec_result *out)
{
    enum parley_codec kind = codec_for(codec->kind, n);
    *out = (struct codec_result){.finite = true};
    assert(kind != PARLEY_CODEC_TOPK); /* of differences, not of models */
    if (kind == PARLEY_CODEC_SUBSET)
        diff_subset(codec, theirs, ours, n, sign_seed, out);
    else if (kind == PARLEY_CODEC_FP32)
        diff_block(theirs, ours, n, sign_seed, out);
    else
        diff_dense(kind, theirs, ours, n, sign_seed, out);
}

void codec_encode(const struct codec *codec, void *to, const float *from, size_t n, uint32_t wide)
{
    size_t bytes = codec_bytes(codec->kind, codec->part, n);
    for (uint32_t v = 0; v < wide; v++)
        encode_vector(codec, (uint8_t *)to + v * bytes, from + v * n, n);
}

/* The last first: each vector's bytes move to where its floats will stand. */
void codec_diff(const struct codec *codec, float *restrict theirs, const void *restrict ours,
                size_t n, uint32_t wide, uint64_t sign_seed, struct codec_result *out)
{
    size_t bytes = codec_bytes(codec->kind, codec->part, n);
    bool finite = true;
    for (uint32_t v = wide; v-- > 0;) {
        memmove(theirs + v * n, (const uint8_t *)theirs + v * bytes, v > 0 ? bytes : 0);
        diff_vector(codec, theirs + v * n, (const uint8_t *)ours + v * bytes, n, sign_seed, out);
        finite = finite && out->finite;
    }
    out->finite = finite;
}

static bool add_dense(enum parley_codec kind, float *restrict y, const uint8_t *restrict from,
                      size_t n)
{
    const struct codec_kernels *kernels = &codec_kernels[kernel_path_best()];
    float decoded[CODEC_BLOCK];
    bool finite = true;
    for (size_t at = 0; at < n; at += CODEC_BLOCK) {
        size_t size = n - at < CODEC_BLOCK ? n - at : CODEC_BLOCK;
        kernels->decode(kind, decoded, from, size);
        finite = mix_combine(y + at, decoded, 1, 1, size) && finite;
        from += block_bytes(kind, size);
    }
    return finite;
}

static bool add_subset(const struct codec_subset *s, float *restrict y, const float *restrict from)
{
    bool finite = true;
    for (uint64_t i = 0; i < s->runs; i++)
        finite = mix_combine(y + codec_run(s, i), from + i * s->length, 1, 1, s->length) && finite;
    return finite;
}

bool codec_add(const struct codec *codec, float *restrict y, const void *restrict from, size_t n)
{
    enum parley_codec kind = codec_for(codec->kind, n);
    if (kind == PARLEY_CODEC_FP32) return mix_combine(y, from, 1, 1, n);
    if (kind == PARLEY_CODEC_TOPK) return topk_add(y, from, n, codec_kept(codec->part, n));
    if (kind != PARLEY_CODEC_SUBSET) return add_dense(kind, y, from, n);
    struct codec_subset s = codec_draw(codec->part, n, codec->draw);
    return add_subset(&s, y, from);
}
