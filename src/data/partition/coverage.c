/* coverage.c: see coverage.h. */
#include "data/partition/coverage.h"

#include <math.h>
#include <stdatomic.h>

static size_t words_a_pass(uint32_t samples)
{
    return ((size_t)samples + 63) / 64;
}

size_t coverage_bytes(uint32_t samples)
{
    return COVERAGE_PASSES * words_a_pass(samples) * sizeof(uint64_t);
}

void coverage_mark(struct coverage *coverage, uint64_t pass, uint32_t sample)
{
    if (pass >= COVERAGE_PASSES) return;
    _Atomic uint64_t *word = &coverage->words[pass * words_a_pass(coverage->samples) + sample / 64];
    uint64_t bit = UINT64_C(1) << sample % 64;
    /* Looked at first: neighbours in a word belong to other nodes, who write as often. */
    if (!(atomic_load_explicit(word, memory_order_relaxed) & bit))
        atomic_fetch_or_explicit(word, bit, memory_order_relaxed);
}

double coverage_part(const struct coverage *coverage, uint64_t pass)
{
    size_t words = words_a_pass(coverage->samples), bits = 0;
    if (pass >= COVERAGE_PASSES || coverage->samples == 0) return 0;
    for (size_t w = 0; w < words; w++)
        bits += (size_t)__builtin_popcountll(
            atomic_load_explicit(&coverage->words[pass * words + w], memory_order_relaxed));
    return (double)bits / coverage->samples;
}

/* Passes that have begun; a hair into the next is rounding. */
static uint64_t begun_of(double epochs)
{
    return (uint64_t)ceil(fmax(epochs - 1e-6, 0));
}

uint32_t coverage_parts(const struct coverage *coverage, double epochs,
                        double parts[COVERAGE_PASSES])
{
    uint32_t count = 0;
    for (; count < COVERAGE_PASSES && count < begun_of(epochs); count++)
        parts[count] = coverage_part(coverage, count);
    return count;
}

uint64_t coverage_whole(const double *parts, uint32_t count, double epochs, uint64_t passes,
                        bool common)
{
    uint64_t begun = begun_of(epochs), whole = passes < begun ? passes : begun;
    if (!common || whole > count) return whole;
    /* From the end: what is missing before an epoch with all samples was lost, and not cut. */
    for (whole = count; whole > 0 && parts[whole - 1] < 1; whole--)
        continue;
    return whole;
}
