/* record.c: the agreement's record there and back.
 *
 *   encode: check, then one JSON object, members in the order given
 *   decode: bounded bytes, strict JSON (every key known, present and of its type), then the same
 * check
 *
 * What can be wrong with a record is said in one line: JSON, a missing or unknown key, a malformed
 * digest or run id, numbers out of range, and all that record_check names.
 */
#include "file/record.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/plain.h"
#include "file/why.h"
#include "report/text.h"

#define FORMAT 2
#define HEX_DIGITS 16
#define TEXT_BYTES 128 /* of a jansson message that is passed on */

static bool name_is_good(const char *name)
{
    size_t length = strnlen(name, RECORD_NAME_BYTES);
    return length > 0 && length < RECORD_NAME_BYTES && plain_name(name, length);
}

static int by_name(const void *a, const void *b)
{
    const struct record_member *const *left = a, *const *right = b;
    return strcmp((*left)->name, (*right)->name);
}

static int check_names(const struct record *record, char *why, size_t why_size)
{
    if (!name_is_good(record->node) || !name_is_good(record->cause))
        return why_set(PARLEY_EDATA, why, why_size, "node or cause is no printable name");
    for (uint32_t m = 0; m < record->member_count; m++)
        if (!name_is_good(record->members[m].name))
            return why_set(PARLEY_EDATA, why, why_size, "member %u has no printable name",
                           (unsigned)m);
    const struct record_member **sorted = calloc(record->member_count + 1u, sizeof *sorted);
    if (sorted == NULL) return why_set(PARLEY_ENOMEM, why, why_size, "out of memory");
    for (uint32_t m = 0; m < record->member_count; m++)
        sorted[m] = &record->members[m];
    if (record->member_count > 1) qsort(sorted, record->member_count, sizeof *sorted, by_name);
    int error = 0;
    for (uint32_t m = 1; m < record->member_count && error == 0; m++)
        if (strcmp(sorted[m - 1]->name, sorted[m]->name) == 0)
            error = why_set(PARLEY_EDATA, why, why_size, "member %s stands twice", sorted[m]->name);
    free(sorted);
    return error;
}

int record_check(const struct record *record, char *why, size_t why_size)
{
    uint32_t held = 0, live = 0, locked = 0, unlocked = 0;
    if (record->member_count < 1 || record->member_count > RECORD_MEMBERS_MAX)
        return why_set(PARLEY_EDATA, why, why_size, "%u members; 1 to %d are allowed",
                       (unsigned)record->member_count, RECORD_MEMBERS_MAX);
    int error = check_names(record, why, why_size);
    if (error != 0) return error;
    for (uint32_t m = 0; m < record->member_count; m++) {
        const struct record_member *member = &record->members[m];
        held += member->held;
        live += member->live;
        locked += member->locked;
        unlocked += member->live && !member->locked;
    }
    error = PARLEY_EDATA;
    if (held != record->held)
        return why_set(error, why, why_size, "says held %u, but %u members hold it",
                       (unsigned)record->held, (unsigned)held);
    if (live != record->live)
        return why_set(error, why, why_size, "says live %u, but %u members are live",
                       (unsigned)record->live, (unsigned)live);
    if (record->known < record->member_count)
        return why_set(error, why, why_size, "says known %u, but lists %u members",
                       (unsigned)record->known, (unsigned)record->member_count);
    if (record->majority_of == 0 && (unlocked > 0 || locked == 0))
        return why_set(error, why, why_size, "%u live members did not lock the digest",
                       (unsigned)(unlocked > 0 ? unlocked : live));
    if (record->majority_of > 0 && (uint64_t)locked * 2 <= record->majority_of)
        return why_set(error, why, why_size, "%u locks are no majority of %u", (unsigned)locked,
                       (unsigned)record->majority_of);
    if (record->generation > INT64_MAX)
        return why_set(error, why, why_size, "the generation is out of range");
    if (isfinite(record->drift_before) && record->drift_before < 0)
        return why_set(error, why, why_size, "the drift is negative");
    return 0;
}

int record_encode(const struct record *record, char **text)
{
    char run[HEX_DIGITS + 1], digest[DIGEST_TEXT_BYTES], file[DIGEST_TEXT_BYTES];
    *text = NULL;
    int error = record_check(record, NULL, 0);
    if (error != 0) return error == PARLEY_ENOMEM ? error : PARLEY_EUSAGE;
    snprintf(run, sizeof run, "%016" PRIx64, record->run);
    digest_text(record->digest, digest);
    digest_text(record->file, file);
    json_t *members = json_array();
    for (uint32_t m = 0; m < record->member_count; m++) {
        const struct record_member *member = &record->members[m];
        char boot[HEX_DIGITS + 1];
        snprintf(boot, sizeof boot, "%016" PRIx64, member->boot);
        json_t *one =
            json_pack("{s:s, s:s, s:b, s:b, s:b}", "name", member->name, "boot", boot, "live",
                      member->live, "held", member->held, "locked", member->locked);
        if (json_array_append_new(members, one) != 0) {
            json_decref(members);
            return PARLEY_ENOMEM;
        }
    }
    json_t *drift = isfinite(record->drift_before) ? json_real(record->drift_before) : json_null();
    json_t *root = json_pack(
        "{s:i, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:s, s:I, s:o, s:o}", "parley", FORMAT,
        "digest", digest, "file", file, "run", run, "node", record->node, "cause", record->cause,
        "generation", (json_int_t)record->generation, "held", (json_int_t)record->held, "live",
        (json_int_t)record->live, "known", (json_int_t)record->known, "quorum",
        record->majority_of > 0 ? "majority" : "live", "nodes", (json_int_t)record->majority_of,
        "drift_before", drift, "members", members);
    struct text json;
    text_init(&json, SIZE_MAX / 4);
    text_json(&json, root, JSON_INDENT(2));
    text_add(&json, "\n");
    *text = text_take(&json);
    return *text ? 0 : PARLEY_ENOMEM;
}

static bool parse_id(const char *text, uint64_t *id)
{
    if (strlen(text) != HEX_DIGITS || strspn(text, "0123456789abcdef") != HEX_DIGITS) return false;
    *id = strtoull(text, NULL, 16);
    return true;
}

/* Everything in json's strings that needs a size check of its own. */
struct texts {
    const char *digest, *file, *run, *node, *cause, *quorum;
};

static int copy_texts(struct record *record, const struct texts *texts, char *why, size_t why_size)
{
    if (digest_parse(texts->digest, record->digest) != 0 ||
        digest_parse(texts->file, record->file) != 0)
        return why_set(PARLEY_EDATA, why, why_size, "a digest is malformed");
    if (!parse_id(texts->run, &record->run))
        return why_set(PARLEY_EDATA, why, why_size, "the run id is not 16 hexadecimal digits");
    if (!name_is_good(texts->node) || !name_is_good(texts->cause))
        return why_set(PARLEY_EDATA, why, why_size, "node or cause is no printable name");
    memcpy(record->node, texts->node, strlen(texts->node) + 1);
    memcpy(record->cause, texts->cause, strlen(texts->cause) + 1);
    bool majority = strcmp(texts->quorum, "majority") == 0;
    if ((!majority && strcmp(texts->quorum, "live") != 0) || majority != (record->majority_of > 0))
        return why_set(PARLEY_EDATA, why, why_size, "quorum is neither live nor majority of nodes");
    return 0;
}

/* A field of an object, as json_unpack() has it: 's' text, 'I' an integer, 'b' true or false, 'o'
 * anything. */
struct field {
    const char *key;
    char type;
};

static const struct field root_fields[] = {
    {"parley", 'I'}, {"digest", 's'}, {"file", 's'},         {"run", 's'},     {"node", 's'},
    {"cause", 's'},  {"held", 'I'},   {"generation", 'I'},   {"live", 'I'},    {"known", 'I'},
    {"quorum", 's'}, {"nodes", 'I'},  {"drift_before", 'o'}, {"members", 'o'}, {NULL, 0},
};
static const struct field member_fields[] = {{"name", 's'}, {"boot", 's'},   {"live", 'b'},
                                             {"held", 'b'}, {"locked", 'b'}, {NULL, 0}};

/* NULL: it is of that type. */
static const char *expected(char type, const json_t *value)
{
    switch (type) {
    case 's':
        return json_is_string(value) ? NULL : "text";
    case 'I':
        return json_is_integer(value) ? NULL : "a whole number";
    case 'b':
        return json_is_boolean(value) ? NULL : "true or false";
    default:
        return NULL;
    }
}

/* That the object has these fields and no others; `whose` goes before the reason. Jansson's own
 * words name neither what is of another type nor what was wanted. */
static int check_fields(json_t *object, const struct field *fields, const char *whose, char *why,
                        size_t why_size)
{
    const char *key;
    json_t *value;
    if (!json_is_object(object))
        return why_set(PARLEY_EDATA, why, why_size, "%sno JSON object", whose);
    for (const struct field *f = fields; f->key; f++) {
        value = json_object_get(object, f->key);
        if (!value)
            return why_set(PARLEY_EDATA, why, why_size, "%s\"%s\" is missing", whose, f->key);
        const char *type = expected(f->type, value);
        if (type)
            return why_set(PARLEY_EDATA, why, why_size, "%s\"%s\" is not %s", whose, f->key, type);
    }
    json_object_foreach(object, key, value)
    {
        const struct field *f = fields;
        while (f->key && strcmp(f->key, key) != 0)
            f++;
        if (!f->key)
            return why_set(PARLEY_EDATA, why, why_size, "%s\"%.40s\" is unknown", whose, key);
    }
    return 0;
}

static int decode_members(struct record *record, json_t *members, char *why, size_t why_size)
{
    size_t count = json_array_size(members);
    if (count < 1 || count > RECORD_MEMBERS_MAX)
        return why_set(PARLEY_EDATA, why, why_size, "members is no list of 1 to %d",
                       RECORD_MEMBERS_MAX);
    record->members = calloc(count, sizeof *record->members);
    if (record->members == NULL) return why_set(PARLEY_ENOMEM, why, why_size, "out of memory");
    record->member_count = (uint32_t)count;
    for (uint32_t m = 0; m < record->member_count; m++) {
        struct record_member *member = &record->members[m];
        const char *name, *boot;
        int live, held, locked;
        char whose[32];
        json_t *one = json_array_get(members, m);
        snprintf(whose, sizeof whose, "member %u: ", (unsigned)m);
        int error = check_fields(one, member_fields, whose, why, why_size);
        if (error) return error;
        if (json_unpack(one, "{s:s, s:s, s:b, s:b, s:b}", "name", &name, "boot", &boot, "live",
                        &live, "held", &held, "locked", &locked) != 0)
            return why_set(PARLEY_ENOMEM, why, why_size, "out of memory");
        if (!name_is_good(name))
            return why_set(PARLEY_EDATA, why, why_size, "member %u has no printable name",
                           (unsigned)m);
        if (!parse_id(boot, &member->boot))
            return why_set(PARLEY_EDATA, why, why_size,
                           "the boot of member %u is not 16 hexadecimal digits", (unsigned)m);
        memcpy(member->name, name, strlen(name) + 1);
        member->live = live;
        member->held = held;
        member->locked = locked;
    }
    return 0;
}

static int decode_root(struct record *record, json_t *root, char *why, size_t why_size)
{
    struct texts texts;
    json_t *drift, *members;
    json_int_t format, generation, counts[4];
    int error = check_fields(root, root_fields, "", why, why_size);
    if (error != 0) return error;
    if (json_unpack(root, "{s:I, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:s, s:I, s:o, s:o}",
                    "parley", &format, "digest", &texts.digest, "file", &texts.file, "run",
                    &texts.run, "node", &texts.node, "cause", &texts.cause, "generation",
                    &generation, "held", &counts[0], "live", &counts[1], "known", &counts[2],
                    "quorum", &texts.quorum, "nodes", &counts[3], "drift_before", &drift, "members",
                    &members) != 0)
        return why_set(PARLEY_ENOMEM, why, why_size, "out of memory");
    if (format != FORMAT)
        return why_set(PARLEY_EDATA, why, why_size, "format version %lld; this parley reads %d",
                       (long long)format, FORMAT);
    for (int i = 0; i < 4; i++)
        if (counts[i] < 0 || counts[i] > UINT32_MAX || generation < 0)
            return why_set(PARLEY_EDATA, why, why_size, "a count is out of range");
    if (!json_is_number(drift) && !json_is_null(drift))
        return why_set(PARLEY_EDATA, why, why_size, "drift_before is neither a number nor null");
    record->generation = (uint64_t)generation;
    record->held = (uint32_t)counts[0];
    record->live = (uint32_t)counts[1];
    record->known = (uint32_t)counts[2];
    record->majority_of = (uint32_t)counts[3];
    record->drift_before = json_is_null(drift) ? NAN : json_number_value(drift);
    error = copy_texts(record, &texts, why, why_size);
    return error != 0 ? error : decode_members(record, members, why, why_size);
}

int record_decode(struct record *record, const uint8_t *bytes, size_t size, char *why,
                  size_t why_size)
{
    json_error_t text;
    *record = (struct record){0};
    if (size > RECORD_BYTES_MAX)
        return why_set(PARLEY_EDATA, why, why_size, "%zu bytes are above the limit of %d", size,
                       RECORD_BYTES_MAX);
    json_t *root = json_loadb((const char *)bytes, size, JSON_REJECT_DUPLICATES, &text);
    if (root == NULL && why_lacks_memory(&text))
        return why_set(PARLEY_ENOMEM, why, why_size, "out of memory");
    if (root == NULL)
        return why_set(PARLEY_EDATA, why, why_size, "line %d: %.*s", text.line, TEXT_BYTES,
                       text.text);
    int error = decode_root(record, root, why, why_size);
    if (error == 0) error = record_check(record, why, why_size);
    if (error != 0) record_close(record);
    json_decref(root);
    return error;
}

bool record_names(const struct record *record, uint64_t boot)
{
    for (uint32_t m = 0; m < record->member_count; m++)
        if (record->members[m].boot == boot) return true;
    return false;
}

int record_match(const struct record *record, const uint8_t digest[DIGEST_BYTES],
                 const uint8_t file[DIGEST_BYTES], uint64_t run, char *why, size_t why_size)
{
    if (record->run != run)
        return why_set(PARLEY_EDATA, why, why_size,
                       "the record is of run %016" PRIx64 ", the model of run %016" PRIx64,
                       record->run, run);
    if (memcmp(record->digest, digest, DIGEST_BYTES) != 0)
        return why_set(PARLEY_EDATA, why, why_size, "the record is about another model");
    if (memcmp(record->file, file, DIGEST_BYTES) != 0)
        return why_set(PARLEY_EDATA, why, why_size,
                       "the model is the agreed one, but its file was changed");
    return 0;
}

void record_close(struct record *record)
{
    free(record->members);
    *record = (struct record){0};
}
