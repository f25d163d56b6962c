/* codec.c: what codecs do to floats: bounds, symmetry, odd values, every length, every path. */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "kernels/codec.h"

enum { MAX = 1000, LONG = 10007 };

static const struct codec codecs[] = {
    {PARLEY_CODEC_FP32, 1, 0},     {PARLEY_CODEC_BF16, 1, 0},      {PARLEY_CODEC_FP16, 1, 0},
    {PARLEY_CODEC_INT8, 1, 0},     {PARLEY_CODEC_SUBSET, 0.01, 5}, {PARLEY_CODEC_SUBSET, 0.3, 6},
    {PARLEY_CODEC_SUBSET, 0.9, 7},
};
#define CODECS (sizeof codecs / sizeof *codecs)

/* Values over many binades. */
static void fill(float *to, size_t n, uint64_t seed, uint64_t stream)
{
    struct rng rng = rng_init(seed, stream);
    for (size_t i = 0; i < n; i++)
        to[i] = (float)(rng_normal(&rng) * exp2((double)rng_below(&rng, 20) - 10));
}

/* What x decodes to at both ends: the difference to nothing. A subset's other floats are 0. */
static struct codec_result decoded(const struct codec *codec, const float *x, float *out, size_t n)
{
    struct codec_result result;
    float *nothing = calloc(n, sizeof *nothing);
    codec_encode(codec, out, x, n, 1);
    codec_encode(codec, nothing, nothing, n, 1);
    codec_diff(codec, out, nothing, n, 1, 1, &result);
    free(nothing);
    return result;
}

Test(codec, both_ends_get_opposite_differences_to_the_bit_at_every_length)
{
    /* Encoded in place and apart, within codec_bytes() and the floats' own memory. */
    static float x[MAX + 8], y[MAX + 8], here[MAX + 8], there[MAX + 8], kept[MAX + 8];
    for (size_t c = 0; c < CODECS; c++) {
        for (size_t n = 1; n <= MAX; n++) {
            size_t bytes = codec_bytes(codecs[c].kind, codecs[c].part, n);
            cr_assert(bytes % 4 == 0 && bytes > 0 && bytes <= n * sizeof *x);
            fill(x, n + 8, n, 0);
            fill(y, n + 8, n, 1);
            memcpy(here, y, sizeof here);
            memcpy(there, x, sizeof there);
            codec_encode(&codecs[c], here, here, n, 1);
            codec_encode(&codecs[c], there, there, n, 1);
            memcpy(kept, here, sizeof kept);
            codec_encode(&codecs[c], x, x, n, 1);
            cr_assert_eq(memcmp(x, there, bytes), 0);
            struct codec_result one, other;
            codec_diff(&codecs[c], here, x, n, 1, 9, &one);
            codec_diff(&codecs[c], there, kept, n, 1, 9, &other);
            for (size_t i = 0; i < n; i++)
                cr_assert_eq(here[i], -there[i]);
            for (size_t i = n; i < n + 8; i++)
                cr_assert_eq(here[i], y[i]);
            cr_assert(one.finite && other.finite);
            cr_assert_eq(one.mass, -other.mass);
            cr_assert_eq(one.norm_sq, other.norm_sq);
        }
    }
}

Test(codec, vectors_one_behind_the_other_are_as_each_alone)
{
    /* Three of them: the same d as one by one; measured is the first, and all must be finite. */
    static float x[3 * MAX], y[3 * MAX], one[MAX], ours[MAX];
    for (size_t c = 0; c < CODECS; c++) {
        for (size_t n = 1; n <= MAX; n += 37) {
            struct codec_result all, first;
            fill(x, 3 * n, n, 5);
            fill(y, 3 * n, n, 6);
            static float theirs[3 * MAX], own[3 * MAX];
            codec_encode(&codecs[c], theirs, y, n, 3);
            memcpy(own, x, sizeof own);
            codec_encode(&codecs[c], own, own, n, 3);
            codec_diff(&codecs[c], theirs, own, n, 3, 9, &all);
            for (size_t v = 0; v < 3; v++) {
                codec_encode(&codecs[c], one, y + v * n, n, 1);
                codec_encode(&codecs[c], ours, x + v * n, n, 1);
                codec_diff(&codecs[c], one, ours, n, 1, 9, &first);
                cr_assert_eq(memcmp(one, theirs + v * n, n * sizeof *one), 0);
                cr_assert(v > 0 || all.mass == first.mass);
            }
            x[3 * n - 1] = x[2 * n] = NAN;
            codec_encode(&codecs[c], theirs, x, n, 3);
            codec_encode(&codecs[c], own, y, n, 3);
            codec_diff(&codecs[c], theirs, own, n, 3, 9, &all);
            cr_assert(codecs[c].kind == PARLEY_CODEC_SUBSET || !all.finite);
        }
    }
}

Test(codec, what_is_lost_stays_within_half_of_the_last_place)
{
    /* bf16 keeps 8 bits, fp16 11 down to 2^-14, int8 a 254th of the largest of its 256. */
    static float x[LONG], out[LONG];
    fill(x, LONG, 3, 0);
    for (int c = PARLEY_CODEC_BF16; c <= PARLEY_CODEC_INT8; c++) {
        struct codec codec = {.kind = (enum parley_codec)c, .part = 1};
        cr_assert(decoded(&codec, x, out, LONG).finite);
        for (size_t i = 0; i < LONG; i++) {
            double most = 0, off = fabs((double)x[i] - out[i]), size = fabs((double)x[i]);
            size_t from = i / CODEC_SCALED * CODEC_SCALED;
            for (size_t j = from; j < from + CODEC_SCALED && j < LONG; j++)
                most = fmax(most, fabs((double)x[j]));
            if (c == PARLEY_CODEC_BF16) cr_assert_leq(off, size * 0x1p-8);
            if (c == PARLEY_CODEC_FP16) cr_assert_leq(off, fmax(size * 0x1p-11, 0x1p-25));
            if (c == PARLEY_CODEC_INT8) cr_assert_leq(off, most / 254 * (1 + 1e-5));
        }
    }
}

static float once(enum parley_codec kind, float x)
{
    float in[2] = {x, 0}, out[2];
    struct codec codec = {.kind = kind, .part = 1};
    struct codec_result result = decoded(&codec, in, out, 2);
    cr_assert_eq(result.finite, isfinite(x), "%g", (double)x);
    cr_assert(!isfinite(x) || out[1] == 0);
    return out[0];
}

Test(codec, odd_values_come_out_as_the_standard_says)
{
    /* Ties go to even, what is too large to the largest, what is small to the subnormal nearest. */
    static const struct {
        enum parley_codec kind;
        float in, out;
    } rows[] = {
        {PARLEY_CODEC_BF16, 1.00390625f, 1},
        {PARLEY_CODEC_BF16, 1.01171875f, 1.015625f},
        {PARLEY_CODEC_BF16, FLT_MAX, 0x1.fep127f},
        {PARLEY_CODEC_BF16, -FLT_MAX, -0x1.fep127f},
        {PARLEY_CODEC_BF16, 0x1p-133f, 0x1p-133f},
        {PARLEY_CODEC_BF16, 0x1p-149f, 0},
        {PARLEY_CODEC_FP16, 1.00048828125f, 1},
        {PARLEY_CODEC_FP16, 1.00146484375f, 1.001953125f},
        {PARLEY_CODEC_FP16, 65504, 65504},
        {PARLEY_CODEC_FP16, 1e6f, 65504},
        {PARLEY_CODEC_FP16, -FLT_MAX, -65504},
        {PARLEY_CODEC_FP16, 0x1p-14f, 0x1p-14f},
        {PARLEY_CODEC_FP16, 0x1.ff8p-15f, 0x1.ff8p-15f},
        {PARLEY_CODEC_FP16, -0x1p-24f, -0x1p-24f},
        {PARLEY_CODEC_FP16, 0x1.8p-24f, 0x1p-23f},
        {PARLEY_CODEC_FP16, 0x1p-25f, 0},
        {PARLEY_CODEC_FP16, 0x1p-140f, 0},
        {PARLEY_CODEC_INT8, 127, 127},
        {PARLEY_CODEC_INT8, 0x1p-99f, 0x1p-99f},
        {PARLEY_CODEC_INT8, 0x1p-110f, 0},
        {PARLEY_CODEC_INT8, 0x1p-149f, 0},
        {PARLEY_CODEC_INT8, 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        float out = once(rows[i].kind, rows[i].in);
        cr_assert_float_eq(out, rows[i].out, fabsf(rows[i].out) * 1e-7f, "%d: %a became %a",
                           rows[i].kind, (double)rows[i].in, (double)out);
    }
    cr_assert_float_eq(once(PARLEY_CODEC_INT8, FLT_MAX), FLT_MAX, FLT_MAX * 1e-6f);
    for (int c = PARLEY_CODEC_FP32; c <= PARLEY_CODEC_SUBSET; c++) {
        once((enum parley_codec)c, NAN);
        once((enum parley_codec)c, -NAN);
        once((enum parley_codec)c, INFINITY);
        once((enum parley_codec)c, -INFINITY);
    }
}

Test(codec, any_bytes_decode_and_what_is_not_finite_is_seen)
{
    /* A peer may send whatever it likes. */
    static float x[LONG], y[LONG];
    struct rng rng = rng_init(11, 0);
    for (int round = 0; round < 50; round++) {
        for (size_t c = 0; c < CODECS; c++) {
            size_t n = 1 + rng_below(&rng, LONG);
            bool finite = true;
            struct codec_result result;
            for (size_t i = 0; i < n; i++) {
                uint32_t bits = (uint32_t)rng_next(&rng);
                memcpy(&x[i], &bits, sizeof bits);
            }
            memset(y, 0, sizeof y);
            codec_diff(&codecs[c], x, y, n, 1, 1, &result);
            for (size_t i = 0; i < n; i++)
                finite = finite && isfinite(x[i]);
            cr_assert_eq(result.finite, finite);
        }
    }
}

Test(codec, every_path_gives_the_same_bits)
{
    static float x[CODEC_BLOCK], out[CODEC_BLOCK], first[CODEC_BLOCK];
    static uint8_t bytes[2 * CODEC_BLOCK + 64], wanted[2 * CODEC_BLOCK + 64];
    for (int c = PARLEY_CODEC_BF16; c <= PARLEY_CODEC_INT8; c++) {
        for (size_t n = 1; n <= CODEC_BLOCK; n += 89) {
            fill(x, n, n, 4);
            for (int path = 0; path < KERNEL_PATHS; path++) {
                if (!kernel_path_supported((enum kernel_path)path)) continue;
                memset(bytes, 0, sizeof bytes);
                memset(out, 0, sizeof out);
                codec_kernels[path].encode((enum parley_codec)c, bytes, x, n);
                codec_kernels[path].decode((enum parley_codec)c, out, bytes, n);
                if (path == 0) memcpy(wanted, bytes, sizeof wanted);
                if (path == 0) memcpy(first, out, sizeof first);
                cr_assert_eq(memcmp(bytes, wanted, sizeof bytes), 0);
                cr_assert_eq(memcmp(out, first, sizeof out), 0);
            }
        }
    }
}

Test(codec, a_subset_holds_its_part_exactly_and_in_time_everything)
{
    /* The floats it has come through unchanged, the others are 0; its norm speaks for all. */
    static float x[LONG], out[LONG];
    static uint32_t met[LONG];
    double norm_sq = 0;
    for (size_t i = 0; i < LONG; i++)
        x[i] = (float)(1 + i % 7);
    for (uint64_t draw = 0; draw < 2000; draw++) {
        struct codec codec = {PARLEY_CODEC_SUBSET, 0.05, draw};
        size_t has = 0;
        norm_sq += decoded(&codec, x, out, LONG).norm_sq / 2000;
        for (size_t i = 0; i < LONG; i++) {
            cr_assert(out[i] == x[i] || out[i] == 0);
            has += out[i] != 0;
            met[i] += out[i] != 0;
        }
        cr_assert_eq(has * sizeof *x, codec_bytes(PARLEY_CODEC_SUBSET, 0.05, LONG));
    }
    for (size_t i = 0; i < LONG; i++)
        cr_assert(met[i] > 50 && met[i] < 160, "float %zu was drawn %u times of 2000", i, met[i]);
    cr_assert_float_eq(norm_sq / mix_norm_sq(x, LONG), 1, 0.01);
}

Test(codec, a_subset_draws_each_float_as_often_as_any_other)
{
    /* Whatever its part: where that is no whole part of the places, some of the runs have one place
     * more to choose from, in each draw others. The last floats are a model's output biases. And
     * runs come in their order. */
    enum { N = 1000 * CODEC_RUN + 10, DRAWS = 1000 };
    static const double parts[] = {0.1, 0.37, 0.6, 0.75, 1};
    static uint32_t met[N];
    for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
        memset(met, 0, sizeof met);
        for (uint64_t draw = 0; draw < DRAWS; draw++) {
            struct codec_subset s = codec_draw(parts[p], N, draw);
            for (uint64_t i = 0, end = 0; i < s.runs; i++) {
                uint64_t at = codec_run(&s, i);
                cr_assert(at >= end && at + s.length <= N, "draw %llu", (unsigned long long)draw);
                for (end = at; end < at + s.length; end++)
                    met[end]++;
            }
        }
        for (size_t i = 0; i < N; i++)
            cr_assert_float_eq(met[i] / (double)DRAWS, parts[p], 0.1, "%g: float %zu: %u of %d",
                               parts[p], i, met[i], DRAWS);
    }
}

Test(codec, sizes_are_what_they_are_for)
{
    /* Half, about a quarter, and the part that was asked for. */
    uint64_t n = 235146, whole = 4 * n;
    cr_assert_eq(codec_bytes(PARLEY_CODEC_FP32, 1, n), whole);
    cr_assert_eq(codec_bytes(PARLEY_CODEC_BF16, 1, n), whole / 2);
    cr_assert_eq(codec_bytes(PARLEY_CODEC_FP16, 1, n), whole / 2);
    cr_assert_lt(codec_bytes(PARLEY_CODEC_INT8, 1, n), whole * 0.255);
    cr_assert_lt(codec_bytes(PARLEY_CODEC_SUBSET, 0.01, n), whole * 0.0101);
    cr_assert_gt(codec_bytes(PARLEY_CODEC_SUBSET, 0.01, n), whole * 0.0099);
}

Test(codec, what_is_added_is_what_was_encoded)
{
    /* Of each codec but topk: y becomes y + q, q being what a difference of models is made of. */
    static float x[LONG], y[LONG], sum[LONG], q[LONG];
    for (size_t c = 0; c < CODECS; c++)
        for (size_t n = 1; n <= LONG; n = n * 3 + 1) {
            fill(x, n, n, 1);
            fill(y, n, n, 2);
            memcpy(sum, y, sizeof sum);
            decoded(&codecs[c], x, q, n);
            codec_encode(&codecs[c], x, x, n, 1);
            cr_assert(codec_add(&codecs[c], sum, x, n));
            for (size_t i = 0; i < n; i++)
                cr_assert_eq(sum[i], y[i] + q[i]);
        }
}

static int further_from_0(const void *a, const void *b)
{
    float x = fabsf(*(const float *)a), y = fabsf(*(const float *)b);
    return (x < y) - (x > y);
}

Test(codec, topk_sends_the_largest_as_they_are_and_nothing_else)
{
    /* Against a sort; with many equal ones, and over several blocks of places. */
    static const size_t sizes[] = {1, 3, 4, 5, 100, 1001, 65536, 65537, 200003};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        size_t n = sizes[s], k = n < 4 ? n : codec_kept(0.1, n), kept = 0, first = 0;
        struct codec codec = {PARLEY_CODEC_TOPK, 0.1, 0};
        size_t bytes = codec_bytes(codec.kind, codec.part, n);
        float *x = malloc(n * sizeof *x), *sorted = malloc(n * sizeof *x);
        float *y = calloc(n, sizeof *y);
        uint8_t *to = malloc(bytes); /* no more than that: the sanitizer sees it */
        fill(x, n, n, 3);
        for (size_t i = 0; i < n; i++)
            if (s % 2) x[i] = (float)((int)x[i] % 3); /* -2 to 2: many equal ones */
        memcpy(sorted, x, n * sizeof *x);
        qsort(sorted, n, sizeof *x, further_from_0);
        cr_assert(bytes % 4 == 0 && bytes <= n * sizeof *x);
        codec_encode(&codec, to, x, n, 1);
        cr_assert(codec_add(&codec, y, to, n));
        float least = fabsf(sorted[k - 1]);
        for (size_t i = 0; i < n; i++) {
            cr_assert(y[i] == x[i] || (y[i] == 0 && fabsf(x[i]) <= least));
            kept += y[i] != 0;
            if (y[i] == 0 && x[i] != 0 && fabsf(x[i]) == least && !first) first = i;
            cr_assert(!first || y[i] == 0 || fabsf(x[i]) > least, "not the first of equals");
        }
        cr_assert(kept == k || least == 0);
        free(x), free(sorted), free(y), free(to);
    }
}

Test(codec, topk_bytes_that_nobody_encoded_change_nothing)
{
    enum { N = 70000 };
    struct codec codec = {PARLEY_CODEC_TOPK, 0.01, 0};
    static float x[N], y[N], before[N];
    size_t bytes = codec_bytes(codec.kind, codec.part, N);
    uint8_t *good = malloc(bytes), *bad = malloc(bytes);
    fill(x, N, 1, 4);
    fill(y, N, 1, 5);
    memcpy(before, y, sizeof y);
    codec_encode(&codec, good, x, N, 1);
    static const struct {
        size_t at; /* of what is overwritten with ones */
        size_t size;
    } spoilt[] = {
        {0, 4}, {4, 4}, {0, 8}, {8 + 2 * 699, 2}}; /* counts; the last block's last place */
    for (size_t s = 0; s < sizeof spoilt / sizeof *spoilt; s++) {
        memcpy(bad, good, bytes);
        memset(bad + spoilt[s].at, 0xff, spoilt[s].size);
        cr_assert_not(codec_add(&codec, y, bad, N), "%zu", s);
        cr_assert_eq(memcmp(y, before, sizeof y), 0);
    }
    x[7] = NAN; /* it counts as the largest, so both ends learn of it */
    codec_encode(&codec, good, x, N, 1);
    cr_assert_not(codec_add(&codec, y, good, N));
    free(good), free(bad);
}

Test(codec, names_are_read_and_written)
{
    enum parley_codec codec;
    double part;
    char text[32];
    static const char *const good[] = {"fp32",        "bf16",     "fp16",     "int8",
                                       "subset:0.01", "subset:1", "topk:0.01"};
    static const char *const bad[] = {
        "",           "int4",        "subset",    "subset:",   "subset:0", "subset:-1",
        "subset:1.1", "subset:nan",  "subset:1x", "topk:0.51", "topk:",    "FP32",
        "int8:0.1",   "topk:0x.1p0", "topk: 0.1", "subset:1e"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        cr_assert_eq(codec_parse(good[i], &codec, &part), 0);
        cr_assert_str_eq(codec_text(codec, part, text), good[i]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_assert_eq(codec_parse(bad[i], &codec, &part), PARLEY_EUSAGE, "%s", bad[i]);
}
