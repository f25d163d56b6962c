/* wire.c: frame and chunk headers, and wire_validate(), which must say what a plain recursive
 * reading of msgpack's specification says. */
#include "core/wire/wire.h"

#include <stdbool.h>
#include <string.h>

#include "core/wire/message.h"
#include "fuzz.h"

static void headers(const uint8_t *bytes, size_t size)
{
    struct wire_header header;
    if (size >= WIRE_HEADER_BYTES && wire_header_read(bytes, &header) == 0) {
        FUZZ_CHECK(header.type > 0 && header.type < WIRE_TYPES);
        FUZZ_CHECK(header.size <= WIRE_CHUNK_BYTES + PARLEY_CHUNK_BYTES_MAX);
        uint8_t again[WIRE_HEADER_BYTES];
        wire_header_write(again, (enum wire_type)header.type, header.size);
        FUZZ_CHECK(memcmp(again, bytes, sizeof again) == 0);
    }
    if (size >= WIRE_CHUNK_BYTES) {
        struct wire_chunk chunk;
        uint8_t again[WIRE_CHUNK_HEAD_BYTES];
        wire_chunk_read(bytes, &chunk);
        wire_chunk_write(again, &chunk, 4);
        if (chunk.aside) wire_chunk_aside(again);
        FUZZ_CHECK(memcmp(again + WIRE_HEADER_BYTES, bytes, 16) == 0);
    }
}

/* One object at *at and all in it, or false: cut short, an extension, too deep, too many. */
static bool walk(const uint8_t *bytes, size_t size, size_t *at, int depth, uint32_t *objects)
{
    static const uint8_t fixed[] = {
        ['\x0a'] = 4, ['\x0b'] = 8, ['\x0c'] = 1, ['\x0d'] = 2, ['\x0e'] = 4,
        ['\x0f'] = 8, ['\x10'] = 1, ['\x11'] = 2, ['\x12'] = 4, ['\x13'] = 8};
    if (*at >= size || ++*objects > 4096) return false;
    uint8_t byte = bytes[(*at)++];
    int length_bytes = 0;
    uint64_t length = 0, inside = 0, each = 0;
    if (byte <= 0x7f || byte >= 0xe0 || byte == 0xc0 || byte == 0xc2 || byte == 0xc3) return true;
    if (byte <= 0x8f)
        inside = byte & 15, each = 2;
    else if (byte <= 0x9f)
        inside = byte & 15, each = 1;
    else if (byte <= 0xbf)
        length = byte & 31;
    else if (byte >= 0xc4 && byte <= 0xc6)
        length_bytes = 1 << (byte - 0xc4);
    else if (byte >= 0xd9 && byte <= 0xdb)
        length_bytes = 1 << (byte - 0xd9);
    else if (byte >= 0xca && byte <= 0xd3)
        length = fixed[byte - 0xc0];
    else if (byte == 0xdc || byte == 0xdd)
        length_bytes = 2 << (byte - 0xdc), each = 1;
    else if (byte == 0xde || byte == 0xdf)
        length_bytes = 2 << (byte - 0xde), each = 2;
    else
        return false;
    uint64_t said = 0;
    for (int i = 0; i < length_bytes; i++) {
        if (*at >= size) return false;
        said = said << 8 | bytes[(*at)++];
    }
    if (length_bytes > 0 && each > 0) inside = said;
    if (length_bytes > 0 && each == 0) length = said;
    if (length > size - *at || (inside > 0 && depth == 4)) return false;
    *at += length;
    for (uint64_t i = 0; i < inside * each; i++)
        if (!walk(bytes, size, at, depth + 1, objects)) return false;
    return true;
}

static bool is_map(const uint8_t *bytes, size_t size)
{
    return size > 0 && ((bytes[0] & 0xf0) == 0x80 || bytes[0] == 0xde || bytes[0] == 0xdf);
}

void fuzz_wire(const uint8_t *bytes, size_t size)
{
    headers(bytes, size);
    /* As a message of which no key is known, so that all of it is walked; and of many lists. */
    void *scratch = message_scratch_new();
    struct message_status status;
    struct message_members members;
    bool valid = wire_validate(bytes, size);
    size_t at = 0;
    uint32_t objects = 0;
    FUZZ_CHECK(valid == (is_map(bytes, size) && walk(bytes, size, &at, 0, &objects) && at == size));
    int error = message_decode(WIRE_STATUS, bytes, size, &status, scratch);
    FUZZ_CHECK(valid || error);
    error = message_decode(WIRE_MEMBERS, bytes, size, &members, scratch);
    FUZZ_CHECK(valid || error);
    FUZZ_CHECK(error || members.count <= MESSAGE_RECORDS_MAX);
    message_scratch_free(scratch);
}

void fuzz_wire_seeds(fuzz_emit *emit, void *context)
{
    uint8_t header[WIRE_HEADER_BYTES];
    for (int type = 1; type < WIRE_TYPES; type++) {
        wire_header_write(header, (enum wire_type)type, 1024);
        emit(context, header, sizeof header);
    }
    /* Each kind of value, and maps and arrays in each other up to the depth that is allowed. */
    static const uint8_t values[] = {0x8b, 0xa1, 'a',  0xc0, 0xa1, 'b',  0xc3, 0xa1, 'c', 0xcc, 200,
                                     0xa1, 'd',  0xcd, 1,    0,    0xa1, 'e',  0xce, 1,   0,    0,
                                     0,    0xa1, 'f',  0xcf, 1,    0,    0,    0,    0,   0,    0,
                                     0,    0xa1, 'g',  0xcb, 63,   0,    0,    0,    0,   0,    0,
                                     0,    0xa1, 'h',  0xc4, 2,    1,    2,    0xa1, 'i', 0xda, 0,
                                     1,    'x',  0xa1, 'j',  0xd0, 0xff, 0xa1, 'k',  0xff};
    static const uint8_t nested[] = {0x81, 0xa1, 'r',  0x92, 0x81, 0xa1, 'b', 0x91,
                                     0x01, 0x81, 0xa1, 'n',  0xa2, 'n',  '0'};
    static const uint8_t wide[] = {0xde, 0,    3, 0xa1, 'a', 0xdc, 0, 2, 1,    2, 0xa1,
                                   'b',  0xdd, 0, 0,    0,   1,    3, 4, 0xdf, 0, 0,
                                   0,    1,    5, 0xdb, 0,   0,    0, 1, 'x'};
    static const uint8_t bomb[] = {0xdf, 0x7f, 0xff, 0xff, 0xff};
    /* As many objects as are allowed, and one more. */
    uint8_t many[5 + 4094] = {0x81, 0xa0, 0xdc};
    for (uint32_t count = 4093; count <= 4094; count++) {
        many[3] = (uint8_t)(count >> 8);
        many[4] = (uint8_t)count;
        emit(context, many, 5 + count);
    }
    emit(context, values, sizeof values);
    emit(context, nested, sizeof nested);
    emit(context, wide, sizeof wide);
    emit(context, bomb, sizeof bomb);
}
