/* lane.h: floats between nodes of one machine and one user go through shared memory.
 *
 * The buffers of a node lie in a memory file. Peers on the same machine hand theirs to each other,
 * and map them for reading: a chunk's head goes over TCP as ever, in its place among the frames,
 * and says where in the sender's buffers the floats stand (eight bytes in place of the floats).
 * Offers, checksums, finite checks, decisions are the same; what is left out is every copy: the
 * difference is made from the sender's memory.
 *
 * The happy path of a connection, after the first bytes of the other end have come over TCP:
 *
 *     dialler                                        listener
 *     connects a local socket, named by its end of
 *     the TCP connection, with the listener's    ->  finds the connection
 *                                                <-  MEMORY, with the file
 *     OPENED, MEMORY                             ->
 *                                                <-  OPENED
 *     then, for each chunk:  head over TCP       ->  reads the floats where they are
 *                                                <-  TAKEN: the sender may change them again
 *
 * Who has heard OPENED sends that way. Whatever is refused or fails before leaves the connection as
 * it is, without a word: it goes on by TCP. Nothing is left behind by a process that is killed:
 * the files and the local sockets have no name in any file system.
 *
 * Memory: a large file (above MAPPED_BYTES_MAX, lane.c) is not mapped but read, chunk by chunk, so
 * that nobody counts the models of its neighbours as its own. To unmap what was read would do as
 * well, but each page that is mapped anew is a fault, which takes as long as to copy it, and twice
 * as long where the hypervisor makes the page tables.
 *
 * Security: the kernel tells the user at the other end of a local socket; nothing is heard of, and
 * no file sent to, another than the own effective one, nor does the loop close what such a one has
 * sent: a thread does, and parley_close() waits a second for it, as it may take as long as the
 * sender likes. A file is sealed against being cut short and against being written to by others.
 *
 * Failure modes: no memory file (vectors.c), no local socket, another user's process: no lane. No
 * descriptor for who asks for one: nobody is given one any more. The local socket ends while chunks
 * are under way: so does the connection.
 * Thread rule: the loop's.
 */
#ifndef PARLEY_PEERS_LANE_H
#define PARLEY_PEERS_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

enum {
    LANE_FLIGHT_MAX = 64,
    LANE_PLACE_BYTES = 8,
    LANE_CLOSERS_MAX = 256 /* strangers being shown out; more are a siege */
};

struct conn;
struct loop;

struct lane {
    uv_poll_t poll; /* its data is the lane */
    int fd;
    struct conn *conn;
    uint8_t *theirs;    /* the other end's buffers, or room for a chunk of them; NULL: not yet */
    size_t theirs_size; /* of the file that they lie in */
    int file;           /* from which they are read; -1: they are mapped */
    bool gave;          /* MEMORY was sent */
    bool sends;         /* the other end has ours */
    uint32_t ops[LANE_FLIGHT_MAX]; /* chunks not yet TAKEN: [count] from `first`, in a circle */
    uint32_t first, count;
};

/* Where others on this machine ask for a lane. */
struct lane_door {
    uv_poll_t poll;
    int fd;                                /* -1: none */
    uv_thread_t closers[LANE_CLOSERS_MAX]; /* [closers_count] */
    uint32_t closers_count;
};

/* After the loop listens and has its vectors. */
void lane_open_door(struct loop *loop);
void lane_close_door(struct loop *loop);
/* After the loop's end: waits until then for what others have sent to be closed. */
void lane_join_closers(struct lane_door *door, uint64_t until_us);

/* The dialler's: the other end has answered. */
void lane_ask(struct conn *conn);

/* Whether the next chunk may go that way. */
bool lane_sends(const struct conn *conn);
/* Its head is on its way: DONE of this op follows its TAKEN. */
void lane_sent(struct conn *conn, uint32_t op);

/* The floats, [size] bytes, that a head says are in the other end's memory: until they are TAKEN,
 * or others are asked for. NULL: there are none such. */
const uint8_t *lane_floats(const struct conn *conn, uint64_t place, size_t size);
/* They were read: the sender may change them again. */
void lane_taken(struct conn *conn);

/* The connection is gone: what was under way has failed. */
void lane_end(struct conn *conn);

#endif
