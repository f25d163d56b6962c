/* wire.c: frame and chunk headers, and wire_validate(): what it lets through, msgpack's unpacker
 * takes without an allocation. */
#include "core/wire.h"

#include <string.h>

#include "core/message.h"
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
        FUZZ_CHECK(memcmp(again + WIRE_HEADER_BYTES, bytes, 16) == 0);
    }
}

void fuzz_wire(const uint8_t *bytes, size_t size)
{
    headers(bytes, size);
    /* As a message of which no key is known, so that all of it is walked; and of many lists. */
    void *scratch = message_scratch_new();
    struct message_status status;
    struct message_members members;
    bool valid = wire_validate(bytes, size);
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
    static const uint8_t bomb[] = {0xdf, 0x7f, 0xff, 0xff, 0xff};
    emit(context, values, sizeof values);
    emit(context, nested, sizeof nested);
    emit(context, bomb, sizeof bomb);
}
