/* record.c: the agreement's record there and back, and each contradiction told. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file/record.h"

static char why[160];

static struct record_member members[4] = {{"n0", true, true, true, 1},
                                          {"n1", true, false, true, 2}, /* held in memory only */
                                          {"n2", true, true, true, UINT64_MAX},
                                          {"n3", false, false, false, 4}};

static struct record record_of(void)
{
    struct record record = {.run = UINT64_C(0xabcdef0123456789),
                            .node = "n0",
                            .cause = "budget",
                            .generation = 2,
                            .held = 2,
                            .live = 3,
                            .known = 4,
                            .drift_before = 0.25,
                            .members = members,
                            .member_count = 4};
    memset(record.digest, 0xa5, sizeof record.digest);
    memset(record.file, 0x5a, sizeof record.file);
    return record;
}

Test(record, what_was_written_is_read_back)
{
    /* All fields survive; a drift that is not finite becomes null and comes back as NaN. */
    for (int pass = 0; pass < 2; pass++) {
        struct record record = record_of(), back;
        char *text, *again;
        if (pass == 1) record.majority_of = 5, record.drift_before = INFINITY;
        cr_assert_eq(record_encode(&record, &text), 0);
        cr_assert_eq(text[strlen(text) - 1], '\n');
        int error = record_decode(&back, (uint8_t *)text, strlen(text), why, sizeof why);
        cr_assert_eq(error, 0, "%s", why);
        cr_assert_arr_eq(back.digest, record.digest, DIGEST_BYTES);
        cr_assert_arr_eq(back.file, record.file, DIGEST_BYTES);
        cr_assert_eq(back.run, record.run);
        cr_assert_str_eq(back.members[3].name, "n3");
        cr_assert(record_names(&back, UINT64_MAX) && !record_names(&back, 3));
        cr_assert(!back.members[1].held && back.members[1].locked && !back.members[3].live);
        if (pass == 0) cr_assert_eq(back.drift_before, 0.25);
        if (pass == 1) cr_assert(isnan(back.drift_before));
        cr_assert_eq(record_encode(&back, &again), 0);
        cr_assert_str_eq(text, again);
        record_close(&back);
        free(text);
        free(again);
    }
}

Test(record, contradictions_are_told)
{
    /* Every count and every rule that a record states is checked against its members. */
    struct record_member changed[4];
    for (int i = 0; i < 13; i++) {
        static const char *const reasons[] = {
            "held 3",  "live 4", "known 3", "did not lock", "majority", "twice",       "member 2",
            "members", "node",   "drift",   "generation",   "node",     "did not lock"};
        struct record record = record_of();
        char *text;
        memcpy(changed, members, sizeof members);
        record.members = changed;
        if (i == 0) record.held = 3;
        if (i == 1) record.live = 4;
        if (i == 2) record.known = 3;
        if (i == 3) changed[1].locked = false;
        if (i == 4) record.majority_of = 6;
        if (i == 5) strcpy(changed[3].name, "n1");
        if (i == 6) strcpy(changed[2].name, "a\n");
        if (i == 7) record.member_count = 0;
        if (i == 8) record.node[0] = 0;
        if (i == 9) record.drift_before = -1;
        if (i == 10) record.generation = UINT64_MAX;
        if (i == 11) memset(record.cause, 'x', sizeof record.cause);
        if (i == 12) {
            record.live = 0;
            for (int m = 0; m < 4; m++)
                changed[m].live = changed[m].locked = false;
        }
        cr_assert_eq(record_check(&record, why, sizeof why), PARLEY_EDATA, "case %d", i);
        cr_assert_not_null(strstr(why, reasons[i]), "case %d: %s", i, why);
        cr_assert_eq(record_encode(&record, &text), PARLEY_EUSAGE);
        cr_assert_null(text);
    }
}

Test(record, no_truncation_is_taken_and_no_flipped_bit_does_harm)
{
    /* Any prefix but that without the last newline is refused; flipped bits are refused or leave a
     * record that is consistent. */
    struct record record = record_of(), back;
    char *text;
    cr_assert_eq(record_encode(&record, &text), 0);
    size_t size = strlen(text);
    for (size_t cut = 0; cut + 1 < size; cut++) {
        uint8_t *part = malloc(cut + 1);
        memcpy(part + 1, text, cut);
        cr_assert_eq(record_decode(&back, part + 1, cut, why, sizeof why), PARLEY_EDATA);
        free(part);
    }
    for (size_t bit = 0; bit < size * 8; bit++) {
        text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
        why[0] = 0;
        if (record_decode(&back, (uint8_t *)text, size, why, sizeof why) == 0) {
            cr_assert_eq(record_check(&back, why, sizeof why), 0);
            record_close(&back);
        } else {
            cr_assert_neq(why[0], 0);
        }
        text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
    }
    free(text);
}

Test(record, a_change_of_one_value_is_told)
{
    /* Edits of a sound record: each is refused, with a reason. */
    static const char *const edits[][2] = {{"\"parley\": 2", "\"parley\": 1"},
                                           {"\"held\": 2", "\"held\": -1"},
                                           {"\"known\": 4", "\"known\": 4294967296"},
                                           {"\"run\": \"a", "\"run\": \"A"},
                                           {"sha256:a5", "sha256:A5"},
                                           {"\"live\",", "\"dead\","},
                                           {"\"nodes\": 0", "\"nodes\": 3"},
                                           {": 0.25", ": \"small\""},
                                           {": 0.25", ": 1e999"},
                                           {"\"node\"", "\"nodo\""},
                                           {"\"name\": \"n1\"", "\"name\": \"\""},
                                           {"\"locked\": true", "\"locked\": 1"},
                                           {"\"boot\": \"0000", "\"boot\": \"000g"},
                                           {"\"boot\": \"0", "\"boot\": \""},
                                           {"\"members\": [", "\"members\": [[],"},
                                           {"\"generation\": 2", "\"generation\": -2"},
                                           {"\"node\": \"n0\"", "\"node\": \"\\u001b\""},
                                           {"{", "{\"extra\": 1,"},
                                           {"{", "{\"node\": \"n0\","}};
    struct record record = record_of(), back;
    char *text, edited[4096];
    cr_assert_eq(record_encode(&record, &text), 0);
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        char *at = strstr(text, edits[i][0]);
        cr_assert_not_null(at, "%s", edits[i][0]);
        int size = snprintf(edited, sizeof edited, "%.*s%s%s", (int)(at - text), text, edits[i][1],
                            at + strlen(edits[i][0]));
        int error = record_decode(&back, (uint8_t *)edited, (size_t)size, why, sizeof why);
        cr_assert_eq(error, PARLEY_EDATA, "%s", edits[i][1]);
    }
    free(text);
}

Test(record, what_is_missing_or_of_another_type_is_named)
{
    /* Each reason says which key, and of which member, in words of ours. */
    static const char *const edits[][3] = {
        {"\"parley\": 2", "\"v\": 1", "\"parley\" is missing"},
        {"\"node\": \"n0\"", "\"node\": 0", "\"node\" is not text"},
        {"\"held\": 2", "\"held\": 2.5", "\"held\" is not a whole number"},
        {"\"locked\": true", "\"locked\": 1", "member 0: \"locked\" is not true or false"},
        {"\"members\": [", "\"members\": [[],", "member 0: no JSON object"},
        {"{", "{\"extra\": 1,", "\"extra\" is unknown"},
    };
    struct record record = record_of(), back;
    char *text, edited[4096];
    cr_assert_eq(record_encode(&record, &text), 0);
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        char *at = strstr(text, edits[i][0]);
        int size = snprintf(edited, sizeof edited, "%.*s%s%s", (int)(at - text), text, edits[i][1],
                            at + strlen(edits[i][0]));
        int error = record_decode(&back, (uint8_t *)edited, (size_t)size, why, sizeof why);
        cr_assert_eq(error, PARLEY_EDATA);
        cr_assert_str_eq(why, edits[i][2]);
    }
    cr_assert_eq(record_decode(&back, (const uint8_t *)"[]", 2, why, sizeof why), PARLEY_EDATA);
    cr_assert_str_eq(why, "no JSON object");
    free(text);
}

Test(record, the_largest_record_fits_its_limit_and_more_is_refused)
{
    /* 4,096 members with the longest names make a record that is read again. */
    struct record record = record_of(), back;
    char *text;
    record.members = calloc(RECORD_MEMBERS_MAX + 1, sizeof *record.members);
    for (int m = 0; m < RECORD_MEMBERS_MAX; m++) {
        struct record_member *member = &record.members[m];
        memset(member->name, '"', sizeof member->name - 1);
        char digits[12];
        snprintf(digits, sizeof digits, "%04d", m);
        memcpy(member->name, digits, 4);
        member->live = member->locked = true;
    }
    record.held = 0;
    record.live = record.known = record.member_count = RECORD_MEMBERS_MAX;
    cr_assert_eq(record_encode(&record, &text), 0);
    int error = record_decode(&back, (uint8_t *)text, strlen(text), why, sizeof why);
    cr_assert_eq(error, 0, "%s", why);
    record_close(&back);
    free(text);
    record.member_count++;
    cr_assert_eq(record_check(&record, why, sizeof why), PARLEY_EDATA);
    free(record.members);
    text = calloc(1, RECORD_BYTES_MAX + 1);
    error = record_decode(&back, (uint8_t *)text, RECORD_BYTES_MAX + 1, why, sizeof why);
    cr_assert_eq(error, PARLEY_EDATA);
    free(text);
}

Test(record, a_record_of_another_model_file_or_run_does_not_match)
{
    /* verify: run id, recomputed model digest and file digest must all be the record's. */
    struct record record = record_of();
    uint8_t digest[DIGEST_BYTES], file[DIGEST_BYTES];
    memcpy(digest, record.digest, sizeof digest);
    memcpy(file, record.file, sizeof file);
    cr_assert_eq(record_match(&record, digest, file, record.run, why, sizeof why), 0);
    cr_assert_neq(record_match(&record, digest, file, 1, why, sizeof why), 0);
    file[31] ^= 1;
    cr_assert_neq(record_match(&record, digest, file, record.run, why, sizeof why), 0);
    file[31] ^= 1;
    digest[0] ^= 1;
    cr_assert_neq(record_match(&record, digest, file, record.run, why, sizeof why), 0);
}
