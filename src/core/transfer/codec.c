/* codec.c: names, sizes and draws of what crosses the network; see codec.h. */
#include "core/transfer/codec.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLACES_MIN = 16 };

#define SUBSET_STREAM UINT64_C(0x737562736574) /* apart from the other streams of one seed */

static const char *const names[] = {"fp32", "bf16", "fp16", "int8", "subset:", "topk:"};

static int part_parse(const char *number, double most, double *part)
{
    bool decimal = !number[strspn(number, "0123456789+-.eE")]; /* strtod takes hex and blanks */
    char *end;
    *part = strtod(number, &end);
    return decimal && end > number && !*end && *part > 0 && *part <= most ? PARLEY_OK
                                                                          : PARLEY_EUSAGE;
}

int codec_parse(const char *spec, enum parley_codec *codec, double *part)
{
    *part = 1;
    for (int c = PARLEY_CODEC_FP32; c <= PARLEY_CODEC_TOPK; c++) {
        size_t size = strlen(names[c]);
        *codec = (enum parley_codec)c;
        if (strncmp(spec, names[c], size) != 0) continue;
        if (codec_has_part(*codec))
            return part_parse(spec + size, c == PARLEY_CODEC_TOPK ? CODEC_TOPK_MAX : 1, part);
        if (!spec[size]) return PARLEY_OK;
    }
    return PARLEY_EUSAGE;
}

const char *codec_text(enum parley_codec codec, double part, char out[32])
{
    if (codec > PARLEY_CODEC_TOPK)
        snprintf(out, 32, "unknown (%d)", (int)codec);
    else if (codec_has_part(codec))
        snprintf(out, 32, "%s%.9g", names[codec], part);
    else
        snprintf(out, 32, "%s", names[codec]);
    return out;
}

uint64_t codec_kept(double part, uint64_t n)
{
    uint64_t k = (uint64_t)(part * (double)n);
    return k > 0 ? k : 1;
}

/* Of a small vector runs are shorter, so that there is something to draw. The floats that fill no
 * place lie before any of them, or behind the last, and each part of the places, some of which have
 * one more, begins anywhere. So all floats are drawn alike, but for those that may lie at a gap:
 * they are left out in one of (places + 1) draws more. */
struct codec_subset codec_draw(double part, uint64_t n, uint64_t draw)
{
    struct codec_subset s = {.length = CODEC_RUN, .rng = rng_init(draw, SUBSET_STREAM)};
    if (n < CODEC_RUN * PLACES_MIN) s.length = n > PLACES_MIN ? (uint32_t)(n / PLACES_MIN) : 1;
    s.places = n / s.length;
    double runs = fmin(round(part * (double)s.places), (double)UINT32_MAX);
    s.runs = runs < 1 ? 1 : (uint64_t)runs;
    struct rng rng = s.rng;
    s.over = (uint32_t)(n % s.length);
    s.gap = rng_next(&rng) % (s.places + 1);
    s.turn = rng_next(&rng) % s.places;
    s.begin = (s.places - s.turn) * s.runs / s.places;
    while (s.begin > 0 && codec_drawn(&s, s.begin - 1) + s.turn >= s.places)
        s.begin--;
    while (s.begin < s.runs && codec_drawn(&s, s.begin) + s.turn < s.places)
        s.begin++;
    return s;
}

uint64_t codec_bytes(enum parley_codec codec, double part, uint64_t n)
{
    uint64_t bytes = n * sizeof(float);
    codec = codec_for(codec, n);
    if (codec == PARLEY_CODEC_BF16 || codec == PARLEY_CODEC_FP16) bytes = 2 * n;
    if (codec == PARLEY_CODEC_INT8)
        bytes = n + (n + CODEC_SCALED - 1) / CODEC_SCALED * sizeof(float);
    if (codec == PARLEY_CODEC_SUBSET) {
        struct codec_subset s = codec_draw(part, n, 0);
        bytes = s.runs * s.length * sizeof(float);
    }
    if (codec == PARLEY_CODEC_TOPK) {
        uint64_t k = codec_kept(part, n);
        bytes = (n + TOPK_BLOCK - 1) / TOPK_BLOCK * 4 + (2 * k + 3) / 4 * 4 + 4 * k;
    }
    return (bytes + 3) / 4 * 4;
}
