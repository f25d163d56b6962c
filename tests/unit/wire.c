/* Frame headers, chunk headers, and the walk before the unpacker. */
#include "core/wire/wire.h"

#include <criterion/criterion.h>
#include <msgpack.h>
#include <string.h>

#include "core/rng.h"
#include "core/wire/message.h"

Test(wire, a_header_comes_back_as_it_was_written)
{
    /* Proves that every type, with its smallest and largest length, survives a round trip. */
    for (uint8_t type = 1; type < WIRE_TYPES; type++) {
        uint32_t sizes[] = {1, 16 * 1024};
        for (int i = 0; i < 2; i++) {
            uint32_t size = type == WIRE_CHUNK ? WIRE_CHUNK_BYTES + 4 * sizes[i] : sizes[i];
            uint8_t bytes[WIRE_HEADER_BYTES];
            struct wire_header header;
            wire_header_write(bytes, (enum wire_type)type, size);
            cr_assert_eq(wire_header_read(bytes, &header), 0);
            cr_assert(header.type == type && header.size == size);
        }
    }
}

Test(wire, a_wrong_header_is_refused)
{
    /* Proves that magic, version, type and the limit of each type are checked. */
    uint8_t good[WIRE_HEADER_BYTES], bytes[WIRE_HEADER_BYTES];
    struct wire_header header;
    wire_header_write(good, WIRE_MEMBERS, 100);
    for (int byte = 0; byte < 2; byte++) {
        memcpy(bytes, good, sizeof bytes);
        bytes[byte] ^= 1;
        cr_assert_eq(wire_header_read(bytes, &header), PARLEY_EMALFORMED);
    }
    memcpy(bytes, good, sizeof bytes);
    bytes[2] = WIRE_VERSION + 1;
    cr_assert_eq(wire_header_read(bytes, &header), PARLEY_EMISMATCH);
    const uint8_t types[] = {0, WIRE_TYPES, 255};
    for (int i = 0; i < 3; i++) {
        wire_header_write(bytes, (enum wire_type)types[i], 100);
        cr_assert_eq(wire_header_read(bytes, &header), PARLEY_EMALFORMED);
    }
    const struct {
        enum wire_type type;
        uint32_t size;
    } bad[] = {{WIRE_HELLO, 16 * 1024 + 1},
               {WIRE_STATUS, 16 * 1024 + 1},
               {WIRE_MEMBERS, PARLEY_CONTROL_BYTES_MAX + 1},
               {WIRE_MEMBERS, UINT32_MAX},
               {WIRE_CHUNK, 0},
               {WIRE_CHUNK, WIRE_CHUNK_BYTES},
               {WIRE_CHUNK, WIRE_CHUNK_BYTES + 3},
               {WIRE_CHUNK, WIRE_CHUNK_BYTES + PARLEY_CHUNK_BYTES_MAX + 4},
               {WIRE_CHUNK, UINT32_MAX}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        wire_header_write(bytes, bad[i].type, bad[i].size);
        cr_assert_eq(wire_header_read(bytes, &header), PARLEY_EMALFORMED, "case %zu", i);
    }
}

Test(wire, a_chunk_head_comes_back_as_it_was_written)
{
    /* Proves that all fields keep their full width, and that sealing touches only the sum. */
    uint8_t head[WIRE_CHUNK_HEAD_BYTES];
    struct wire_chunk in = {2, 65535, UINT32_MAX, UINT64_MAX - 7, 0, false}, out;
    float floats[4] = {1, 2, 3, 4};
    wire_chunk_write(head, &in, sizeof floats);
    wire_chunk_seal(head, floats, sizeof floats);
    wire_chunk_read(head + WIRE_HEADER_BYTES, &out);
    cr_assert(out.kind == in.kind && out.vector == in.vector && out.sequence == in.sequence &&
              out.offset == in.offset && out.sum != 0);
    uint64_t sum = out.sum;
    floats[3] = 5;
    wire_chunk_seal(head, floats, sizeof floats);
    wire_chunk_read(head + WIRE_HEADER_BYTES, &out);
    cr_assert_neq(out.sum, sum);
    cr_assert_not(out.aside);
    wire_chunk_aside(head);
    wire_chunk_read(head + WIRE_HEADER_BYTES, &out);
    cr_assert(out.aside && out.kind == in.kind && out.vector == in.vector);
}

/* ---- The walk ----------------------------------------------------------------------------------
 */

static size_t sample(uint8_t *bytes)
{
    msgpack_sbuffer buffer;
    msgpack_packer p;
    msgpack_sbuffer_init(&buffer);
    msgpack_packer_init(&p, &buffer, msgpack_sbuffer_write);
    msgpack_pack_map(&p, 5);
    msgpack_pack_str_with_body(&p, "a", 1);
    msgpack_pack_uint64(&p, UINT64_MAX);
    msgpack_pack_str_with_body(&p, "b", 1);
    msgpack_pack_double(&p, 0.1);
    msgpack_pack_str_with_body(&p, "c", 1);
    msgpack_pack_bin_with_body(&p, "0123456789", 10);
    msgpack_pack_str_with_body(&p, "d", 1);
    msgpack_pack_array(&p, 20);
    for (int i = 0; i < 20; i++)
        msgpack_pack_int(&p, i * 1000);
    msgpack_pack_str_with_body(&p, "e", 1);
    msgpack_pack_map(&p, 1);
    msgpack_pack_nil(&p);
    msgpack_pack_str_with_body(&p, "a text of more than thirty-one bytes", 36);
    size_t size = buffer.size;
    memcpy(bytes, buffer.data, size);
    msgpack_sbuffer_destroy(&buffer);
    return size;
}

Test(wire, every_truncation_is_refused)
{
    /* Proves that a map is accepted whole, and neither cut at any byte nor with one more. */
    uint8_t bytes[256];
    size_t size = sample(bytes);
    cr_assert(wire_validate(bytes, size));
    for (size_t cut = 0; cut < size; cut++)
        cr_assert(!wire_validate(bytes, cut), "cut at %zu", cut);
    bytes[size] = 0xc0;
    cr_assert(!wire_validate(bytes, size + 1));
}

Test(wire, a_few_bytes_cannot_declare_much)
{
    /* Proves that counts without bytes behind them are refused: bombs of five bytes, and 64 MiB. */
    static const uint8_t heads[] = {0xc6, 0xdb, 0xdd, 0xdf};
    static const uint32_t counts[] = {UINT32_MAX, 64u << 20, 1u << 30, 2};
    for (size_t h = 0; h < sizeof heads; h++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            uint8_t count[] = {(uint8_t)(counts[c] >> 24), (uint8_t)(counts[c] >> 16),
                               (uint8_t)(counts[c] >> 8), (uint8_t)counts[c]};
            uint8_t bare[5] = {heads[h]}, inner[7] = {0x81, 0xc0, heads[h]};
            memcpy(bare + 1, count, 4);
            memcpy(inner + 3, count, 4);
            cr_assert(!wire_validate(bare, sizeof bare));
            cr_assert(!wire_validate(inner, sizeof inner));
        }
    /* Each level announces what the rest could hold. */
    uint8_t nested[155];
    for (size_t i = 0; i < sizeof nested; i += 5)
        memcpy(nested + i, (uint8_t[]){0xdf, 0, 0, 0, 70}, 5);
    cr_assert(!wire_validate(nested, sizeof nested));
}

Test(wire, depth_and_objects_are_limited)
{
    /* Proves the limits of depth (4) and of objects (4,096), each met exactly and passed by one. */
    uint8_t deep[] = {0x81, 0xc0, 0x91, 0x91, 0x91, 0xc0};
    cr_assert(wire_validate(deep, sizeof deep));
    uint8_t deeper[] = {0x81, 0xc0, 0x91, 0x91, 0x91, 0x91, 0xc0};
    cr_assert(!wire_validate(deeper, sizeof deeper));

    /* A map, a key, an array and n nils: n + 3 objects. */
    static uint8_t many[6000];
    memset(many, 0xc0, sizeof many);
    many[0] = 0x81;
    many[2] = 0xdc;
    for (uint32_t n = 4092; n <= 4094; n++) {
        many[3] = (uint8_t)(n >> 8);
        many[4] = (uint8_t)n;
        cr_assert_eq(wire_validate(many, 5 + n), n <= 4093, "%u", n);
    }
}

Test(wire, only_maps_without_extensions_pass)
{
    /* Proves that no other outermost type, no extension and no reserved byte passes. */
    for (int byte = 0; byte < 256; byte++) {
        uint8_t outer[] = {(uint8_t)byte, 0, 0, 0, 0, 0, 0, 0, 0, 0};
        bool passes = false;
        for (size_t size = 1; size <= sizeof outer; size++)
            passes = passes || wire_validate(outer, size);
        /* Nine zero bytes behind it: up to four pairs, or an empty map of a long form. */
        bool map = (byte >= 0x80 && byte <= 0x84) || byte == 0xde || byte == 0xdf;
        cr_assert_eq(passes, map, "0x%02x", byte);
    }
    static const uint8_t refused[] = {0xc1, 0xc7, 0xc8, 0xc9, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8};
    for (size_t i = 0; i < sizeof refused; i++) {
        uint8_t bytes[40] = {0x81, 0xc0, refused[i]};
        for (size_t size = 3; size <= sizeof bytes; size++)
            cr_assert(!wire_validate(bytes, size), "0x%02x", refused[i]);
    }
}

Test(wire, what_passes_is_unpacked_without_allocating)
{
    /* Proves that the scratch holds the objects of every frame that passes: it gets no new chunk.
     * Random small frames, and the worst: as many nested maps and arrays as the limits allow. */
    msgpack_zone *zone = message_scratch_new();
    const void *first = zone->chunk_list.head;
    struct rng rng = rng_init(3, 3);
    uint32_t passed = 0;
    static uint8_t bytes[64 * 1024];
    for (int round = 0; round < 300000; round++) {
        size_t size = 2 + rng_below(&rng, 12);
        for (size_t i = 0; i < size; i++) {
            static const uint8_t likely[] = {0x80, 0x81, 0x82, 0x90, 0x91, 0x93, 0xa1, 0xc0,
                                             0xc4, 0xdc, 0xde, 0xcb, 0,    1,    2,    0xff};
            bytes[i] = likely[rng_below(&rng, sizeof likely)];
        }
        bytes[0] = (uint8_t)(0x81 + rng_below(&rng, 2));
        if (!wire_validate(bytes, size)) continue;
        passed++;
        msgpack_object object;
        size_t at = 0;
        cr_assert_eq(msgpack_unpack((const char *)bytes, size, &at, zone, &object),
                     MSGPACK_UNPACK_SUCCESS);
        cr_assert_eq(at, size);
        cr_assert_eq(zone->chunk_list.head, first);
        msgpack_zone_clear(zone);
    }
    cr_assert_gt(passed, 1000);

    static const uint8_t each[][2] = {{0x81, 3}, {0x91, 2}, {0xc0, 1}}; /* head, objects */
    for (int kind = 0; kind < 3; kind++) {
        uint32_t n = 4093 / each[kind][1];
        size_t size = 5;
        memcpy(bytes, (uint8_t[]){0x81, 0xc0, 0xdc, (uint8_t)(n >> 8), (uint8_t)n}, 5);
        for (uint32_t i = 0; i < n; i++) {
            bytes[size++] = each[kind][0];
            for (int more = 1; more < each[kind][1]; more++)
                bytes[size++] = 0xc0;
        }
        cr_assert(wire_validate(bytes, size));
        msgpack_object object;
        size_t at = 0;
        cr_assert_eq(msgpack_unpack((const char *)bytes, size, &at, zone, &object),
                     MSGPACK_UNPACK_SUCCESS);
        cr_assert_eq(zone->chunk_list.head, first);
        msgpack_zone_clear(zone);
    }
    message_scratch_free(zone);
}
