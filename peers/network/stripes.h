/* stripes.h: one sequence of bytes over several sockets, and in order again at the other end.
 *
 * The happy path: who has bytes gives them to stripes_send(), which cuts them into segments and
 * gives each to the next socket that takes some; who wants them asks stripes_receive() until it
 * says 0, and again when a socket has more. Both go both ways on the same sockets.
 *
 *     segment    offset:u64le size:u32le, bytes       offset: in the sequence, from its start
 *     greeting   a segment of no bytes at offset 0, the first thing that who accepted says: from
 *                then on the dialler may send, and the loss of the socket is the loss of all
 *
 * Which socket a segment takes is the sender's choice, so that a slow one is given less. Segments
 * on one socket are in order; so the next one of all always stands first on its socket, and who
 * reads in turns keeps nothing back: what comes too early waits in the kernel. A segment that a
 * socket took only a part of is copied, so that neither its memory nor the next one waits for it.
 *
 * With a cluster key (tls.h) all of that is sealed, but for what a dialler's first bytes begin
 * with, which tells what the connection is; the rest of them is said once the other end has proved
 * the key. Each segment is sealed as it goes out, and read a record at a time: a socket's next one
 * is in the kernel all the same, but for a record of which a part was asked for (stripes_hold()).
 *
 * Failure modes: negative errnos; EPROTO is what no sender of ours says, or is not sealed as it
 * should be. Sockets need not be nonblocking where there is no key. They stay the caller's.
 * Thread rule: none of its own.
 */
#ifndef PARLEY_PEERS_STRIPES_H
#define PARLEY_PEERS_STRIPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "parley/config.h"

enum {
    STRIPES_HEAD_BYTES = 12,
    STRIPES_FIRST_BYTES = 16, /* that a dialler says before all else */
    STRIPES_CLEAR_BYTES = 8,  /* of those, the ones that are never sealed */
    STRIPES_SEGMENT_MAX = 128 * 1024,
    STRIPES_SEGMENT_MIN = 16 * 1024
};

struct tls_end;

struct stripe {
    int fd;    /* -1: it never came to be */
    bool open; /* bytes may be sent */
    bool full; /* it took no more: until stripes_flush() */
    bool dry;  /* it had no more: until the caller says otherwise */

    uint8_t head[STRIPES_HEAD_BYTES]; /* of the segment that comes in; [head_got] */
    size_t head_got;
    uint64_t offset; /* once the head is there: of the next byte */
    uint32_t left;

    uint8_t *tail; /* [tail_at..tail_size) is still to go out */
    size_t tail_at, tail_size;

    struct tls_end *tls; /* NULL: bytes go as they are */
    bool shy;            /* `token` is said once the other end has proved the key */
    uint8_t token[STRIPES_FIRST_BYTES - STRIPES_CLEAR_BYTES];
};

struct stripes {
    struct stripe all[PARLEY_STREAMS_MAX];
    uint32_t count, turn; /* turn: the next segment's socket, if it takes it */
    uint32_t segment;     /* bytes of the largest that goes out */
    uint64_t sent, received;
};

/* For so many sockets at the most, 1 at least. */
void stripes_init(struct stripes *stripes, uint32_t most);
void stripes_free(struct stripes *stripes);

/* Adds a socket that says `first`, [STRIPES_FIRST_BYTES], before all else; NULL: a greeting, as it
 * was accepted. `tls`: its end, taken once there is a stripe, of which the other one is proved
 * where it was accepted; NULL: there is no key. NULL comes back where there is no memory. */
struct stripe *stripes_add(struct stripes *stripes, int fd, const uint8_t *first,
                           struct tls_end *tls);

/* Returns how many of the bytes will get there; the rest is to be offered again once a socket that
 * is full was flushed. */
ssize_t stripes_send(struct stripes *stripes, const void *bytes, size_t size);

/* The socket takes more: 0, or what is wrong. */
int stripes_flush(struct stripe *stripe);

/* Whether anything is to be done once it has room; `sends`: there are bytes for some socket. */
bool stripes_wants_room(const struct stripe *stripe, bool sends);

/* The bytes that come next, to[size] at the most; `to` NULL: they are thrown away. 0: none are
 * there yet. */
ssize_t stripes_receive(struct stripes *stripes, void *to, size_t size);

/* What comes next may have been read from a socket already, which then does not tell of it. */
bool stripes_hold(const struct stripes *stripes);

/* Reads as far as the next segment's head: 0, or what is wrong. */
int stripes_look(struct stripes *stripes, struct stripe *stripe);

/* Some socket may be sent on. */
bool stripes_open(const struct stripes *stripes);

#endif
