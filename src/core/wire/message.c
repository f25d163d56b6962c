/* message.c: one table a message; one packer and one unpacker for all of them. */
#include "core/wire/message.h"

#include <assert.h>
#include <msgpack.h>
#include <string.h>

#include "core/plain.h"
#include "parley/error.h"

enum kind { U32, U64, F64, TEXT, NAME, BYTES, VIEW, LIST };

struct field {
    const char *key;
    uint32_t key_size;
    enum kind kind;
    size_t offset;
    size_t size;              /* TEXT, NAME, BYTES: of the array; LIST: of one element */
    const struct field *each; /* LIST */
    size_t count_offset;      /* LIST: of the uint32_t count */
    uint32_t count_max;       /* LIST */
};

#define F(type, member, key, kind)                                                                 \
    {                                                                                              \
        key, sizeof key - 1, kind, offsetof(type, member), sizeof(((type *)0)->member), 0, 0, 0    \
    }
#define L(type, member, key, count, fields)                                                        \
    {                                                                                              \
        key, sizeof key - 1, LIST, offsetof(type, member), sizeof(*((type *)0)->member), fields,   \
            offsetof(type, count), sizeof(((type *)0)->member) / sizeof(*((type *)0)->member)      \
    }
#define END                                                                                        \
    {                                                                                              \
        0, 0, U32, 0, 0, 0, 0, 0                                                                   \
    }

static const struct field setting_fields[] = {F(struct message_setting, name, "n", TEXT),
                                              F(struct message_setting, value, "v", TEXT), END};

static const struct field hello_fields[] = {
    F(struct message_hello, cluster, "cluster", TEXT),
    F(struct message_hello, name, "name", NAME),
    F(struct message_hello, address, "addr", TEXT),
    F(struct message_hello, run, "run", U64),
    F(struct message_hello, boot, "boot", U64),
    F(struct message_hello, model, "model", U64),
    F(struct message_hello, parameters, "params", U64),
    F(struct message_hello, vectors, "vectors", U32),
    F(struct message_hello, codec, "codec", U32),
    F(struct message_hello, codec_part, "part", F64),
    F(struct message_hello, averaged, "averaged", U32),
    F(struct message_hello, robust, "robust", U32),
    F(struct message_hello, strategy, "strategy", U32),
    F(struct message_hello, streams, "streams", U32),
    F(struct message_hello, token, "token", U64),
    F(struct message_hello, to, "to", U64),
    F(struct message_hello, heard, "heard", U64),
    L(struct message_hello, settings, "settings", settings_count, setting_fields),
    END};

static const struct field reject_fields[] = {F(struct message_reject, code, "code", U32),
                                             F(struct message_reject, alone, "alone", U32),
                                             F(struct message_reject, text, "text", TEXT), END};
static const struct field bye_fields[] = {F(struct message_bye_frame, reason, "why", U32), END};
static const struct field probe_fields[] = {F(struct message_probe, sequence, "s", U32),
                                            F(struct message_probe, boot, "b", U64), END};

static const struct field record_fields[] = {F(struct record, boot, "b", U64),
                                             F(struct record, name, "n", NAME),
                                             F(struct record, address, "a", TEXT),
                                             F(struct record, incarnation, "i", U32),
                                             F(struct record, state, "s", U32),
                                             F(struct record, clock, "c", U64),
                                             F(struct record, phase, "p", U32),
                                             F(struct record, stop, "st", U32),
                                             F(struct record, stop_live, "sl", U32),
                                             F(struct record, version, "v", U64),
                                             F(struct record, samples, "sa", U64),
                                             F(struct record, kept, "ke", U64),
                                             F(struct record, kept_all, "ka", U64),
                                             F(struct record, place, "pl", U64),
                                             F(struct record, aside, "as", U32),
                                             F(struct record, sketch, "k", U32),
                                             F(struct record, measured, "m", U32),
                                             F(struct record, distance_sq, "d", F64),
                                             F(struct record, mean_sq, "ms", F64),
                                             F(struct record, near, "ne", U32),
                                             F(struct record, generation, "g", U32),
                                             F(struct record, score, "sc", F64),
                                             F(struct record, digest, "h", BYTES),
                                             F(struct record, lock_voters, "lv", U32),
                                             F(struct record, lock_generation, "lg", U32),
                                             F(struct record, lock_digest, "lh", BYTES),
                                             F(struct record, fetched, "fe", U64),
                                             F(struct record, voters, "vo", U32),
                                             F(struct record, distrusts[0], "d0", U64),
                                             F(struct record, distrusts[1], "d1", U64),
                                             F(struct record, distrusts[2], "d2", U64),
                                             F(struct record, distrusts[3], "d3", U64),
                                             F(struct record, follows, "f", U64),
                                             F(struct record, holds, "ho", U64),
                                             F(struct record, earlier, "e", U32),
                                             END};

static const struct field members_fields[] = {
    L(struct message_members, records, "r", count, record_fields),
    F(struct message_members, complete, "all", U32), F(struct message_members, ask, "ask", U32),
    END};

static const struct field sketch_fields[] = {F(struct message_sketch, boot, "b", U64),
                                             F(struct message_sketch, version, "v", U32),
                                             F(struct message_sketch, buckets, "x", VIEW), END};
static const struct field lack_fields[] = {F(struct message_lack, boot, "b", U64), END};
static const struct field sketches_fields[] = {
    L(struct message_sketches, sketches, "k", count, sketch_fields),
    L(struct message_sketches, lacks, "l", lacks_count, lack_fields), END};

static const struct field exchange_fields[] = {F(struct message_exchange, sequence, "s", U32),
                                               F(struct message_exchange, from_responder, "r", U32),
                                               F(struct message_exchange, open, "o", U32),
                                               F(struct message_exchange, settles, "se", U32),
                                               F(struct message_exchange, round, "ro", U32),
                                               F(struct message_exchange, line, "li", U32),
                                               F(struct message_exchange, coded, "q", U32),
                                               F(struct message_exchange, share, "c", F64),
                                               F(struct message_exchange, samples, "n", F64),
                                               F(struct message_exchange, weight, "w", F64),
                                               F(struct message_exchange, radius, "cl", F64),
                                               F(struct message_exchange, reason, "why", U32),
                                               END};

static const struct field outcome_fields[] = {F(struct message_outcome_frame, initiator, "i", U64),
                                              F(struct message_outcome_frame, asker, "a", U64),
                                              F(struct message_outcome_frame, sequence, "s", U32),
                                              F(struct message_outcome_frame, outcome, "o", U32),
                                              END};

static const struct field fetch_fields[] = {F(struct message_fetch, sequence, "s", U32),
                                            F(struct message_fetch, by_digest, "by", U32),
                                            F(struct message_fetch, digest, "h", BYTES),
                                            F(struct message_fetch, ok, "ok", U32),
                                            F(struct message_fetch, vectors, "n", U32),
                                            F(struct message_fetch, version, "v", U64),
                                            F(struct message_fetch, trained_us, "tr", U64),
                                            F(struct message_fetch, samples, "sa", U64),
                                            F(struct message_fetch, round, "r", U64),
                                            F(struct message_fetch, stamp, "st", U64),
                                            END};

static const struct field strategy_fields[] = {F(struct message_strategy, what, "w", U32),
                                               F(struct message_strategy, tag, "t", U32),
                                               F(struct message_strategy, part, "p", U32),
                                               F(struct message_strategy, count, "n", U32),
                                               F(struct message_strategy, round, "r", U64),
                                               F(struct message_strategy, key, "k", U64),
                                               F(struct message_strategy, stamp, "st", U64),
                                               F(struct message_strategy, before, "b", U64),
                                               F(struct message_strategy, value, "x", F64),
                                               F(struct message_strategy, weight, "m", F64),
                                               END};

static const struct field status_fields[] = {F(struct message_status, from, "from", U32), END};

static const struct field report_fields[] = {
    L(struct message_report, records, "r", count, record_fields),
    F(struct message_report, total, "total", U32),
    F(struct message_report, cluster, "cluster", TEXT),
    F(struct message_report, live, "live", U32),
    F(struct message_report, known, "known", U32),
    F(struct message_report, drift, "drift", F64),
    F(struct message_report, progress, "progress", F64),
    END};

static const struct {
    const struct field *fields;
    size_t size;
} messages[WIRE_TYPES] = {
    [WIRE_HELLO] = {hello_fields, sizeof(struct message_hello)},
    [WIRE_REJECT] = {reject_fields, sizeof(struct message_reject)},
    [WIRE_BYE] = {bye_fields, sizeof(struct message_bye_frame)},
    [WIRE_PING] = {probe_fields, sizeof(struct message_probe)},
    [WIRE_ACK] = {probe_fields, sizeof(struct message_probe)},
    [WIRE_PING_FOR] = {probe_fields, sizeof(struct message_probe)},
    [WIRE_MEMBERS] = {members_fields, sizeof(struct message_members)},
    [WIRE_SKETCHES] = {sketches_fields, sizeof(struct message_sketches)},
    [WIRE_OFFER] = {exchange_fields, sizeof(struct message_exchange)},
    [WIRE_ACCEPT] = {exchange_fields, sizeof(struct message_exchange)},
    [WIRE_BUSY] = {exchange_fields, sizeof(struct message_exchange)},
    [WIRE_REFUSE] = {exchange_fields, sizeof(struct message_exchange)},
    [WIRE_READY] = {exchange_fields, sizeof(struct message_exchange)},
    [WIRE_COMMIT] = {exchange_fields, sizeof(struct message_exchange)},
    [WIRE_APPLIED] = {exchange_fields, sizeof(struct message_exchange)},
    [WIRE_ABORT] = {exchange_fields, sizeof(struct message_exchange)},
    [WIRE_KEEPALIVE] = {exchange_fields, sizeof(struct message_exchange)},
    [WIRE_ASK] = {outcome_fields, sizeof(struct message_outcome_frame)},
    [WIRE_OUTCOME] = {outcome_fields, sizeof(struct message_outcome_frame)},
    [WIRE_FETCH] = {fetch_fields, sizeof(struct message_fetch)},
    [WIRE_FETCHED] = {fetch_fields, sizeof(struct message_fetch)},
    [WIRE_STATUS] = {status_fields, sizeof(struct message_status)},
    [WIRE_REPORT] = {report_fields, sizeof(struct message_report)},
    [WIRE_STRATEGY] = {strategy_fields, sizeof(struct message_strategy)},
};

/* ---- Packing --------------------------------------------------------------------------------- */

struct sink {
    uint8_t *bytes;
    size_t size, capacity;
};

static int sink_write(void *data, const char *bytes, size_t size)
{
    struct sink *sink = data;
    if (size > sink->capacity - sink->size) return -1;
    memcpy(sink->bytes + sink->size, bytes, size);
    sink->size += size;
    return 0;
}

static bool is_zero(const struct field *field, const uint8_t *at)
{
    static const uint8_t zeroes[64];
    const void *value = at;
    switch (field->kind) {
    case U32:
        return *(const uint32_t *)value == 0;
    case U64:
    case F64: /* by its bits: minus zero is none */
        return *(const uint64_t *)value == 0;
    case TEXT:
    case NAME:
        return *at == 0;
    case BYTES:
        assert(field->size <= sizeof zeroes);
        return memcmp(at, zeroes, field->size) == 0;
    case VIEW:
        return ((const struct view *)value)->size == 0;
    case LIST: /* it says so itself */
        break;
    }
    return false;
}

static int pack_map(msgpack_packer *packer, const struct field *fields, const uint8_t *from);

static int pack_value(msgpack_packer *packer, const struct field *field, const uint8_t *from)
{
    const uint8_t *at = from + field->offset;
    const void *value = at;
    switch (field->kind) {
    case U32:
        return msgpack_pack_uint32(packer, *(const uint32_t *)value);
    case U64:
        return msgpack_pack_uint64(packer, *(const uint64_t *)value);
    case F64:
        return msgpack_pack_double(packer, *(const double *)value);
    case TEXT:
    case NAME:
        return msgpack_pack_str_with_body(packer, value, strlen(value));
    case BYTES:
        return msgpack_pack_bin_with_body(packer, value, field->size);
    case VIEW: {
        const struct view *view = value;
        return msgpack_pack_bin_with_body(packer, view->bytes, view->size);
    }
    case LIST: {
        uint32_t count = *(const uint32_t *)(const void *)(from + field->count_offset);
        assert(count <= field->count_max);
        int failed = msgpack_pack_array(packer, count);
        for (uint32_t i = 0; i < count && !failed; i++)
            failed = pack_map(packer, field->each, at + i * field->size);
        return failed;
    }
    }
    return -1;
}

static int pack_map(msgpack_packer *packer, const struct field *fields, const uint8_t *from)
{
    size_t count = 0;
    for (const struct field *field = fields; field->key; field++)
        count += !is_zero(field, from + field->offset);
    int failed = msgpack_pack_map(packer, count);
    for (const struct field *field = fields; field->key && !failed; field++) {
        if (is_zero(field, from + field->offset)) continue;
        failed = msgpack_pack_str_with_body(packer, field->key, field->key_size) ||
                 pack_value(packer, field, from);
    }
    return failed;
}

size_t message_encode(enum wire_type type, const void *message, uint8_t *bytes, size_t capacity)
{
    assert(messages[type].fields);
    if (capacity < WIRE_HEADER_BYTES) return 0;
    size_t size_max = capacity - WIRE_HEADER_BYTES;
    if (size_max > PARLEY_CONTROL_BYTES_MAX) size_max = PARLEY_CONTROL_BYTES_MAX;
    struct sink sink = {bytes + WIRE_HEADER_BYTES, 0, size_max};
    msgpack_packer packer;
    msgpack_packer_init(&packer, &sink, sink_write);
    if (pack_map(&packer, messages[type].fields, message)) return 0;
    wire_header_write(bytes, type, (uint32_t)sink.size);
    return WIRE_HEADER_BYTES + sink.size;
}

/* ---- Unpacking ------------------------------------------------------------------------------- */

static int unpack_map(const msgpack_object *object, const struct field *fields, uint8_t *to);

static int unpack_value(const msgpack_object *object, const struct field *field, uint8_t *to)
{
    uint8_t *at = to + field->offset;
    void *value = at;
    switch (field->kind) {
    case U32:
        if (object->type != MSGPACK_OBJECT_POSITIVE_INTEGER || object->via.u64 > UINT32_MAX)
            return PARLEY_EMALFORMED;
        *(uint32_t *)value = (uint32_t)object->via.u64;
        return 0;
    case U64:
        if (object->type != MSGPACK_OBJECT_POSITIVE_INTEGER) return PARLEY_EMALFORMED;
        *(uint64_t *)value = object->via.u64;
        return 0;
    case F64:
        if (object->type != MSGPACK_OBJECT_FLOAT64) return PARLEY_EMALFORMED;
        *(double *)value = object->via.f64;
        return 0;
    case TEXT:
    case NAME:
        if (object->type != MSGPACK_OBJECT_STR || object->via.str.size >= field->size ||
            !plain_text(object->via.str.ptr, object->via.str.size) ||
            (field->kind == NAME && !plain_name(object->via.str.ptr, object->via.str.size)))
            return PARLEY_EMALFORMED;
        memcpy(at, object->via.str.ptr, object->via.str.size);
        at[object->via.str.size] = 0;
        return 0;
    case BYTES:
        if (object->type != MSGPACK_OBJECT_BIN || object->via.bin.size != field->size)
            return PARLEY_EMALFORMED;
        memcpy(at, object->via.bin.ptr, field->size);
        return 0;
    case VIEW:
        if (object->type != MSGPACK_OBJECT_BIN) return PARLEY_EMALFORMED;
        *(struct view *)value =
            (struct view){(const uint8_t *)object->via.bin.ptr, object->via.bin.size};
        return 0;
    case LIST: {
        if (object->type != MSGPACK_OBJECT_ARRAY || object->via.array.size > field->count_max)
            return PARLEY_EMALFORMED;
        for (uint32_t i = 0; i < object->via.array.size; i++) {
            int error = unpack_map(&object->via.array.ptr[i], field->each, at + i * field->size);
            if (error) return error;
        }
        *(uint32_t *)(void *)(to + field->count_offset) = object->via.array.size;
        return 0;
    }
    }
    return PARLEY_EMALFORMED;
}

static bool is_called(const struct field *field, const msgpack_object_str *name)
{
    return field->key_size == name->size && memcmp(field->key, name->ptr, name->size) == 0;
}

/* NULL: unknown. The keys of a map stand in the table's order, so it mostly lies at `from`, just
 * after the one found before. */
static const struct field *find(const struct field *fields, const struct field *from,
                                const msgpack_object_str *name)
{
    for (const struct field *field = from; field->key; field++)
        if (is_called(field, name)) return field;
    for (const struct field *field = fields; field != from; field++)
        if (is_called(field, name)) return field;
    return NULL;
}

static int unpack_map(const msgpack_object *object, const struct field *fields, uint8_t *to)
{
    if (object->type != MSGPACK_OBJECT_MAP) return PARLEY_EMALFORMED;
    const struct field *from = fields;
    for (uint32_t i = 0; i < object->via.map.size; i++) {
        const msgpack_object *key = &object->via.map.ptr[i].key;
        if (key->type != MSGPACK_OBJECT_STR) return PARLEY_EMALFORMED;
        const struct field *field = find(fields, from, &key->via.str);
        if (!field) continue;
        int error = unpack_value(&object->via.map.ptr[i].val, field, to);
        if (error) return error;
        from = field + 1;
    }
    return 0;
}

int message_decode(enum wire_type type, const uint8_t *bytes, size_t size, void *message,
                   void *scratch)
{
    assert(messages[type].fields);
    memset(message, 0, messages[type].size);
    if (!wire_validate(bytes, size)) return PARLEY_EMALFORMED;
    msgpack_zone *zone = scratch;
    msgpack_object object;
    size_t at = 0;
    msgpack_unpack_return got = msgpack_unpack((const char *)bytes, size, &at, zone, &object);
    int error = got == MSGPACK_UNPACK_SUCCESS && at == size
                    ? unpack_map(&object, messages[type].fields, message)
                    : PARLEY_EMALFORMED;
    msgpack_zone_clear(zone);
    return error;
}

void *message_scratch_new(void)
{
    /* Room for the objects of the largest frame that passes wire_validate(), so that decoding
     * never allocates: 4,096 objects of 24 bytes, and as many map pairs. */
    return msgpack_zone_new(256 * 1024);
}

void message_scratch_free(void *scratch)
{
    msgpack_zone_free(scratch);
}
