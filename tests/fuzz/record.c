/* record.c: records of agreements. What is read holds together, and reads the same when written. */
#include "file/record.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

void fuzz_record(const uint8_t *bytes, size_t size)
{
    struct record record, back;
    char why[200] = "", *text, *again;
    int error = record_decode(&record, bytes, size, why, sizeof why);
    FUZZ_CHECK(error == 0 || why[0]);
    if (error) return;
    FUZZ_CHECK(record_check(&record, why, sizeof why) == 0);
    FUZZ_CHECK(record_encode(&record, &text) == 0);
    FUZZ_CHECK(record_decode(&back, (const uint8_t *)text, strlen(text), why, sizeof why) == 0);
    FUZZ_CHECK(record_encode(&back, &again) == 0);
    FUZZ_CHECK(strcmp(text, again) == 0);
    free(text);
    free(again);
    record_close(&record);
    record_close(&back);
}

void fuzz_record_seeds(fuzz_emit *emit, void *context)
{
    static struct record_member members[] = {{"n0", true, true, true, 0},
                                             {"n1", true, false, true, 1},
                                             {"n2", true, true, true, 2},
                                             {"n3", false, false, false, UINT64_MAX}};
    for (uint32_t majority = 0; majority <= 5; majority += 5) {
        struct record record = {.run = UINT64_C(0xabcdef0123456789),
                                .node = "n0",
                                .cause = "budget",
                                .generation = 2,
                                .held = 2,
                                .live = 3,
                                .known = 4,
                                .majority_of = majority,
                                .drift_before = 0.25,
                                .members = members,
                                .member_count = 4};
        char *text;
        FUZZ_CHECK(record_encode(&record, &text) == 0);
        emit(context, text, strlen(text));
        free(text);
    }
}
