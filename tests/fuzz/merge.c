/* merge.c: merge_record() of records that the input names, four bytes each: the same in any
 * order and any number of times (commutative, idempotent), and by way of others (associative). */
#include "fuzz.h"

#include "../unit/records.h"

enum { BOOTS = 6, RECORDS_MAX = 64 };

void fuzz_merge(const uint8_t *bytes, size_t size)
{
    struct fuzz_bytes input = {bytes, size};
    struct record records[RECORDS_MAX];
    uint32_t place[RECORDS_MAX], count = 0;
    while (input.left >= 4 && count < RECORDS_MAX) {
        uint32_t boot = fuzz_below(&input, BOOTS), incarnation = fuzz_below(&input, 4);
        uint32_t said = fuzz_below(&input, 32);
        records[count] = honest_record(100 + boot, incarnation, said % 4, said / 4);
        place[count++] = fuzz_below(&input, 256);
    }
    struct lone *a = listener(), *b = listener(), *third = listener(), *fourth = listener();
    for (uint32_t i = 0; i < count; i++)
        merge(a, &records[i]);
    /* By place, those of one place backwards; and some once more. */
    for (uint32_t p = 0; p < 256; p++)
        for (uint32_t i = count; i-- > 0;)
            if (place[i] == p) merge(b, &records[i]);
    for (uint32_t i = 0; i < count; i++)
        if (place[i] % 3 == 0) merge(b, &records[i]);
    same_tables(a, b, BOOTS, 0);

    for (uint32_t i = 0; i < count; i++)
        merge(place[i] % 2 ? third : fourth, &records[i]);
    for (uint32_t i = 1; i < third->node->roster->count; i++)
        merge(fourth, record_of(third->node, (int)i));
    same_tables(a, fourth, BOOTS, 0);
    lone_free(a);
    lone_free(b);
    lone_free(third);
    lone_free(fourth);
}

void fuzz_merge_seeds(fuzz_emit *emit, void *context)
{
    struct rng rng = rng_init(1, 0);
    for (size_t records = 1; records <= 40; records += 3) {
        uint8_t bytes[4 * RECORDS_MAX];
        for (size_t i = 0; i < 4 * records; i++)
            bytes[i] = (uint8_t)rng_below(&rng, 256);
        emit(context, bytes, 4 * records);
    }
}
