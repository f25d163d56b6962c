/* wire.h: frames. A fixed header outside msgpack, then either one msgpack map (control frames) or
 * raw little-endian floats (CHUNK). Nothing here allocates; every length is checked.
 *
 *   header   'P' 'y' version type length:u32le                                   8 bytes
 *   control  header, msgpack map of `length` bytes (at most PARLEY_CONTROL_BYTES_MAX)
 *   chunk    header, kind:u16 vector:u16 sequence:u32 offset:u64 xxh3:u64, floats; length counts
 *            all after the header. Offset in bytes; the sum is over the floats.
 */
#ifndef PARLEY_CORE_WIRE_H
#define PARLEY_CORE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WIRE_VERSION = 1,
    WIRE_HEADER_BYTES = 8,
    WIRE_CHUNK_BYTES = 24, /* between header and floats */
    WIRE_CHUNK_HEAD_BYTES = WIRE_HEADER_BYTES + WIRE_CHUNK_BYTES
};

/* X(name), numbered from 1 on. */
#define WIRE_TYPE_NAMES(X)                                                                         \
    X(HELLO)                                                                                       \
    X(REJECT)                                                                                      \
    X(BYE)                                                                                         \
    X(PING)                                                                                        \
    X(ACK)                                                                                         \
    X(PING_FOR) /* please probe a third member */                                                  \
    X(MEMBERS)                                                                                     \
    X(SKETCHES)                                                                                    \
    X(OFFER)                                                                                       \
    X(ACCEPT)                                                                                      \
    X(BUSY)                                                                                        \
    X(REFUSE)                                                                                      \
    X(READY)                                                                                       \
    X(COMMIT)                                                                                      \
    X(APPLIED)                                                                                     \
    X(ABORT)                                                                                       \
    X(KEEPALIVE)                                                                                   \
    X(ASK) /* what became of an exchange? */                                                       \
    X(OUTCOME)                                                                                     \
    X(FETCH)    /* please stream your state, or the model of this digest */                        \
    X(FETCHED)  /* the answer: coming, or no */                                                    \
    X(STRATEGY) /* what nodes of one strategy say to each other */                                 \
    X(STATUS)   /* asked before HELLO by `parley status` */                                        \
    X(REPORT)   /* its answer */                                                                   \
    X(CHUNK)

enum wire_type {
    WIRE_NONE, /* not a frame's */
#define X(name) WIRE_##name,
    WIRE_TYPE_NAMES(X)
#undef X
        WIRE_TYPES
};

enum wire_stream {
    WIRE_STREAM_OFFER,  /* the initiator's snapshot */
    WIRE_STREAM_ACCEPT, /* the responder's */
    WIRE_STREAM_FETCH,
    WIRE_STREAM_STRATEGY /* a part of a buffer */
};

const char *wire_type_name(enum wire_type type);
/* Probes, and what is told of members. */
bool wire_is_membership(enum wire_type type);

/* The low bytes of a number, the lowest first. size: 1 to 8. */
void wire_put(uint8_t *bytes, uint64_t value, int size);
uint64_t wire_get(const uint8_t *bytes, int size);

struct wire_header {
    uint8_t type;
    uint32_t size; /* bytes after the header */
};

/* bytes: at least WIRE_HEADER_BYTES. 0, PARLEY_EMISMATCH (another protocol version) or
 * PARLEY_EMALFORMED (no magic, unknown type, a length over the type's limit). */
int wire_header_read(const uint8_t *bytes, struct wire_header *header);
void wire_header_write(uint8_t *bytes, enum wire_type type, uint32_t size);

struct wire_chunk {
    uint16_t kind;     /* enum wire_stream; on the wire its highest bit is `aside` */
    uint16_t vector;   /* FETCH: which of the vectors; STRATEGY: which part */
    uint32_t sequence; /* STRATEGY: the tag */
    uint64_t offset;   /* bytes */
    uint64_t sum;
    bool aside; /* read only: the floats come another way than on the connection */
};

void wire_chunk_read(const uint8_t *bytes, struct wire_chunk *chunk);
/* head: [WIRE_CHUNK_HEAD_BYTES]; the sum is left 0 until it is sealed. */
void wire_chunk_write(uint8_t *head, const struct wire_chunk *chunk, uint32_t size);
/* Puts the sum of the floats into the head: drivers call it just before the bytes leave. */
void wire_chunk_seal(uint8_t *head, const void *floats, size_t size);
/* The same in two, for who knows the sum of a snapshot's chunk from when it was taken. */
uint64_t wire_chunk_sum(const void *floats, size_t size);
void wire_chunk_seal_as(uint8_t *head, uint64_t sum);
/* Marks the head of a chunk whose floats the driver sends another way. */
void wire_chunk_aside(uint8_t *head);

/* True if `bytes` is exactly one well-formed msgpack map: declared counts fit the bytes left, depth
 * at most 4, at most 4,096 objects. Runs before anything else looks at it; allocates nothing. */
bool wire_validate(const uint8_t *bytes, size_t size);

#endif
