/* wire.c: frame headers, chunk headers, and the walk that stands before the unpacker.
 *
 * msgpack-c allocates by declared counts before it looks for the bytes, so that five bytes can
 * reserve gigabytes. wire_validate() counts first and allocates nothing.
 */
#include "core/wire/wire.h"

#include "core/wire/sum.h"
#include "parley/config.h"

enum { DEPTH_MAX = 4, OBJECTS_MAX = 4096, ASIDE = 0x8000 };

void wire_put(uint8_t *bytes, uint64_t value, int size)
{
    for (int i = 0; i < size; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
}

uint64_t wire_get(const uint8_t *bytes, int size)
{
    uint64_t value = 0;
    for (int i = 0; i < size; i++)
        value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

const char *wire_type_name(enum wire_type type)
{
    static const char *const names[WIRE_TYPES] = {
#define X(name) [WIRE_##name] = #name,
        WIRE_TYPE_NAMES(X)
#undef X
    };
    return type > 0 && type < WIRE_TYPES ? names[type] : "?";
}

bool wire_is_membership(enum wire_type type)
{
    return type == WIRE_PING || type == WIRE_ACK || type == WIRE_PING_FOR || type == WIRE_MEMBERS;
}

int wire_header_read(const uint8_t *bytes, struct wire_header *header)
{
    if (bytes[0] != 'P' || bytes[1] != 'y') return PARLEY_EMALFORMED;
    if (bytes[2] != WIRE_VERSION) return PARLEY_EMISMATCH;
    header->type = bytes[3];
    header->size = (uint32_t)wire_get(bytes + 4, 4);
    if (header->type == 0 || header->type >= WIRE_TYPES) return PARLEY_EMALFORMED;
    if (header->type == WIRE_CHUNK)
        return header->size > WIRE_CHUNK_BYTES &&
                       header->size <= WIRE_CHUNK_BYTES + PARLEY_CHUNK_BYTES_MAX &&
                       (header->size - WIRE_CHUNK_BYTES) % 4 == 0
                   ? 0
                   : PARLEY_EMALFORMED;
    /* Before a HELLO nobody has reason to send much. */
    uint32_t size_max = header->type == WIRE_HELLO || header->type == WIRE_STATUS
                            ? 16 * 1024
                            : PARLEY_CONTROL_BYTES_MAX;
    return header->size <= size_max ? 0 : PARLEY_EMALFORMED;
}

void wire_header_write(uint8_t *bytes, enum wire_type type, uint32_t size)
{
    bytes[0] = 'P';
    bytes[1] = 'y';
    bytes[2] = WIRE_VERSION;
    bytes[3] = (uint8_t)type;
    wire_put(bytes + 4, size, 4);
}

void wire_chunk_read(const uint8_t *bytes, struct wire_chunk *chunk)
{
    chunk->kind = (uint16_t)(wire_get(bytes, 2) & ~(uint64_t)ASIDE);
    chunk->aside = wire_get(bytes, 2) & ASIDE;
    chunk->vector = (uint16_t)wire_get(bytes + 2, 2);
    chunk->sequence = (uint32_t)wire_get(bytes + 4, 4);
    chunk->offset = wire_get(bytes + 8, 8);
    chunk->sum = wire_get(bytes + 16, 8);
}

void wire_chunk_write(uint8_t *head, const struct wire_chunk *chunk, uint32_t size)
{
    wire_header_write(head, WIRE_CHUNK, WIRE_CHUNK_BYTES + size);
    head += WIRE_HEADER_BYTES;
    wire_put(head, chunk->kind, 2);
    wire_put(head + 2, chunk->vector, 2);
    wire_put(head + 4, chunk->sequence, 4);
    wire_put(head + 8, chunk->offset, 8);
    wire_put(head + 16, 0, 8);
}

uint64_t wire_chunk_sum(const void *floats, size_t size)
{
    return XXH3_64bits(floats, size);
}

void wire_chunk_seal_as(uint8_t *head, uint64_t sum)
{
    wire_put(head + WIRE_HEADER_BYTES + 16, sum, 8);
}

void wire_chunk_seal(uint8_t *head, const void *floats, size_t size)
{
    wire_chunk_seal_as(head, wire_chunk_sum(floats, size));
}

void wire_chunk_aside(uint8_t *head)
{
    head[WIRE_HEADER_BYTES + 1] |= ASIDE >> 8;
}

/* What a msgpack head byte announces of what follows it. */
struct head {
    uint8_t length_bytes; /* size of the big-endian length field */
    uint8_t fixed_bytes;  /* further bytes, whatever the length */
    uint8_t objects_each; /* nested objects for each unit of length: 1 array, 2 map */
    bool bytes_each;      /* the length counts bytes */
    bool valid;
};

static struct head head_of(uint8_t byte)
{
    if (byte <= 0x7f || byte >= 0xe0) return (struct head){.valid = true}; /* small integers */
    switch (byte) {
    case 0xc0:
    case 0xc2:
    case 0xc3:
        return (struct head){.valid = true}; /* nil, booleans */
    case 0xc4:
    case 0xd9:
        return (struct head){1, 0, 0, true, true};
    case 0xc5:
    case 0xda:
        return (struct head){2, 0, 0, true, true};
    case 0xc6:
    case 0xdb:
        return (struct head){4, 0, 0, true, true};
    case 0xca:
    case 0xce:
    case 0xd2:
        return (struct head){0, 4, 0, false, true};
    case 0xcb:
    case 0xcf:
    case 0xd3:
        return (struct head){0, 8, 0, false, true};
    case 0xcc:
    case 0xd0:
        return (struct head){0, 1, 0, false, true};
    case 0xcd:
    case 0xd1:
        return (struct head){0, 2, 0, false, true};
    case 0xdc:
        return (struct head){2, 0, 1, false, true};
    case 0xdd:
        return (struct head){4, 0, 1, false, true};
    case 0xde:
        return (struct head){2, 0, 2, false, true};
    case 0xdf:
        return (struct head){4, 0, 2, false, true};
    default:
        return (struct head){0}; /* extensions: not spoken here */
    }
}

bool wire_validate(const uint8_t *bytes, size_t size)
{
    uint64_t open[DEPTH_MAX + 1] = {1}; /* objects still expected at each depth */
    int depth = 0;
    uint32_t objects = 0;
    size_t at = 0;

    if (size == 0 || ((bytes[0] & 0xf0) != 0x80 && bytes[0] != 0xde && bytes[0] != 0xdf))
        return false; /* not a map */
    while (depth >= 0) {
        if (open[depth] == 0) {
            depth--;
            continue;
        }
        open[depth]--;
        if (at >= size || ++objects > OBJECTS_MAX) return false;
        uint8_t byte = bytes[at++];
        uint64_t children = 0, length = 0;
        if ((byte & 0xf0) == 0x80) {
            children = 2 * (uint64_t)(byte & 0x0f);
        } else if ((byte & 0xf0) == 0x90) {
            children = byte & 0x0f;
        } else if ((byte & 0xe0) == 0xa0) {
            length = byte & 0x1f;
        } else {
            struct head head = head_of(byte);
            if (!head.valid || size - at < (size_t)head.length_bytes + head.fixed_bytes)
                return false;
            uint64_t count = 0;
            for (int i = 0; i < head.length_bytes; i++)
                count = count << 8 | bytes[at + (size_t)i];
            at += head.length_bytes;
            length = head.fixed_bytes + (head.bytes_each ? count : 0);
            children = count * head.objects_each;
        }
        if (length > size - at || children > size - at) return false;
        at += length;
        if (children > 0) {
            if (depth == DEPTH_MAX) return false;
            open[++depth] = children;
        }
    }
    return at == size;
}
