/* streams.h: floats of one link over several TCP connections (--streams N), for long fat pipes.
 *
 * One TCP connection is given a share of a long line that shrinks with its round trip and with
 * every packet lost; N of them are given N such shares. So where both ends want streams, floats go
 * over up to N connections of their own beside the link's first one, which keeps all frames and the
 * heads of the chunks: in their order, as ever, and never behind a model. A head says where in the
 * sequence of all the link's streamed bytes its floats begin (eight bytes in place of the floats,
 * as lane.h does); the floats are cut into segments, which the other end puts in order again
 * (stripes.h), right to where they belong. Offers, checksums, finite checks, decisions, ledger: the
 * core's, and the same.
 *
 * The happy path of a link, after HELLO has told each end how many the other one wants, and the
 * dialler a token for this very link (core/link/hello.c):
 *
 *     dialler                                          listener
 *     connects as often as the lesser of both says
 *     to the address of the link, each time with
 *     'P' 's' 1 0 0 0 0 0 token:u64le              ->  finds the link by the token
 *                                                  <-  a greeting
 *     a head on the first connection               ->  reads no further there, but the floats
 *     its floats on the others                     ->  of that chunk, segment by segment
 *
 * Each end sends by whatever streams it has, as soon as it has one. Who was told no token, or whose
 * connects are refused or turned away, goes on with those that came, or with the first connection
 * alone, without a word. A link with a lane has no streams.
 *
 * With a cluster key a stream is sealed as its link is (tls.h), with keys of its own: after 'P' 's'
 * 1 0 0 0 0 0 hands are shaken, in which each end proves the key, or hears that it does not fit,
 * and only then the token is said. The core hears of no stream, so one that has not yet shown a
 * token has no deadline: there may be so many, and where one more comes the oldest goes.
 *
 * Why not fewer: the first connection carries no floats where there are streams, so that what is
 * said on it waits for no retransmission of theirs on the way, and --streams 2 is twice of one.
 * Whoever waits for floats reads nothing that was said behind their head: one stream that carries
 * nothing any more ends the link, and with two nodes each takes the other for dead for a moment.
 *
 * Hostile input: a stream that shows no token of a live link, or is one too many, is closed at once
 * and without a word: honest ones come to that where two nodes have dialled each other, and one of
 * the two links has just been closed. A token is drawn by the system's generator for each
 * connection that comes in and is told to its dialler alone. No stream is taken or made whose
 * descriptor is in the upper half of those the process may have, so that links and files never lack
 * one because of streams.
 *
 * Failure modes: the loss of a stream that was greeted ends its link, as the loss of the first
 * connection does; so do segments that fit nowhere (EPROTO).
 * Thread rule: the loop's.
 */
#ifndef PARLEY_PEERS_STREAMS_H
#define PARLEY_PEERS_STREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    STREAMS_FLIGHT_MAX = 64,
    STREAMS_UNPROVED_MAX = 128 /* that were accepted and have not shown a token yet */
};

/* In the place that a head names: the floats come by streams. Places in a lane are below. */
#define STREAMS_PLACE (UINT64_C(1) << 63)

struct conn;
struct loop;

/* The dialler's, once the other end has answered. */
void streams_ask(struct conn *conn);

/* A connection was accepted, of which the core has not heard. True: it is a stream; the link that
 * it is of has taken it over, if there is one and it may. What is left of `conn` is to be closed.
 * Where there is a key it is conn->stream instead, and streams_join() follows. */
bool streams_accept(struct conn *conn);
/* Its other end has proved the key, and these are the first bytes that it says: as above. */
void streams_join(struct conn *conn, const uint8_t *bytes, size_t size);

/* Whether the next chunk may go that way. */
bool streams_sends(const struct conn *conn);
/* The place of the next chunk's floats, for its head. */
uint64_t streams_place(const struct conn *conn);
/* The head is on its way: so are its floats, and DONE of this op follows. */
void streams_sent(struct conn *conn, uint32_t op, const void *floats, size_t size);

/* A head says that its floats come by streams; they are given to the core. conn->waits: not all are
 * there yet, and conn_resume() follows. False: there are none such. */
bool streams_read(struct conn *conn, uint64_t place);

/* The connection is gone: what was under way has failed. */
void streams_end(struct conn *conn);

#endif
