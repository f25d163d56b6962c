/* conn.h: TCP connections: dialling, accepting, reading, writing, closing.
 *
 *     dial:  [names are looked up] -> connecting -> open -> shut (flushing) -> gone
 *     accept:                                       open -> ...
 *
 * Reading: bytes go to a buffer of the connection and are offered to the core, which says how many
 * it took. The floats of a chunk, once its head is known, are read to their place in the vectors. A
 * turn of the loop reads for a few milliseconds, then leaves the rest to the kernel, and accepts a
 * few connections; those that say nothing the kernel keeps to itself, where it can. Writing:
 * control frames are copied; chunks leave from the vectors' own memory, or stay there (lane.h), or
 * go another way (streams.h).
 * Where there is a cluster key all bytes are sealed (tls.h): CONNECTED is told once the other end
 * has proved that it has the key, and nothing that came in before is shown to the core.
 * Little unsent data is kept in the kernel (TCP_NOTSENT_LOWAT), so that a probe is never stuck
 * behind a model. Closing by the core: what is queued is written, then FIN, then bytes are read and
 * thrown away until the peer closes too, two seconds at most: closing at once would make the kernel
 * send RST and the peer lose the last frames. To whom nothing was said there is none to lose.
 *
 * Every connection ends with one CLOSED event, from libuv's close callback, after the DONE of all
 * its chunks. Its memory is freed there, too.
 * Thread rule: the loop's.
 */
#ifndef PARLEY_PEERS_CONN_H
#define PARLEY_PEERS_CONN_H

#include "loop.h"
#include "network/retransmit.h"

enum {
    CONN_LEFT_BYTES = 64 * 1024 + 64, /* the core never leaves more */
    CONN_READ_BYTES = 128 * 1024,     /* room for new ones */
    CONN_INPUT_BYTES = CONN_LEFT_BYTES + CONN_READ_BYTES,
    CONN_HEAD_BYTES = 4 * 1024,   /* read where the head of a chunk is likely to come */
    CONN_ASIDE_BYTES = 64 * 1024, /* of a lane's floats at a time, so that they stay in the cache */
    CONN_NOTSENT_BYTES = 256 * 1024,
    CONN_LINGER_MS = 2000,
    CONN_BACKLOG = 512 /* that wait in the kernel: all nodes of a cluster may dial at once */
};

enum conn_state { CONN_DIALLING, CONN_OPEN, CONN_SHUT, CONN_ENDED };

struct conn {
    uv_tcp_t tcp;      /* its data is the conn */
    struct conn *next; /* in its bucket */
    struct loop *loop;
    uint32_t id;
    enum conn_state state;
    bool tell_closed; /* the core knows of it */

    struct tls_end *tls;     /* NULL: bytes go as they are */
    bool proved;             /* the other end has the key */
    bool stream;             /* it says that it is one, and has to show of which link (streams.h) */
    bool met;                /* something has come in */
    bool spoke;              /* something has gone out */
    bool flushed;            /* SHUT: all of it, and a FIN */
    struct lane *lane;       /* for floats, beside the connection; NULL: none (lane.h) */
    struct streams *streams; /* likewise (streams.h) */
    uint64_t token;          /* that shows who may add to them; 0: nobody */
    bool asked;              /* it was tried, once */
    bool waits;              /* for floats of theirs: nothing more is read before */
    bool answered, foreign;  /* with a key: some bytes came before it was proved, and no TLS */
    struct retransmit retransmit;

    uint8_t *input; /* [CONN_INPUT_BYTES], once something came in; [used] not yet taken */
    size_t used;
    uint8_t *direct; /* the read under way goes here, into a vector; NULL: to the input */
    bool filled;     /* what was read last was the end of such a part */

    struct lookup *lookup; /* of the name, while it is under way; else NULL */
    bool lookup_failed;
    uv_connect_t connect;
    struct addrinfo *found, *try; /* all addresses of the name, and the one being tried */
    uint64_t try_until_us;        /* then the next is tried; UINT64_MAX: there is none */
    bool silent;                  /* one of them has not answered */
    struct sockaddr_storage to;   /* where there is no name */
    uint32_t redials;             /* of connections whose handshake went badly */
    bool retrying, close_wanted;  /* the handle is being made anew; then close it */

    uv_shutdown_t shutdown;
    uint64_t linger_until_us;
    enum parley_closed reason;
    int code; /* libuv's, or 0 */
};

/* For conn.c and what stands beside it. */
struct conn *conn_new(struct loop *loop, uint32_t id);  /* NULL: no memory */
struct conn *conn_find(struct loop *loop, uint32_t id); /* NULL: there is none */
void conn_end(struct conn *conn, enum parley_closed reason, int code);
int conn_fd(const struct conn *conn); /* -1: it has none, with which every call fails */
/* The numeric address of the other end: 0 or a libuv error. */
int conn_peer(const struct conn *conn, char address[PARLEY_ADDRESS_SIZE]);
/* The open one that was accepted from this address, by who has the key; NULL: none. */
struct conn *conn_from(struct loop *loop, const char *address);
/* The open one that was accepted and whose dialler was told this token; NULL: none. */
struct conn *conn_of_token(struct loop *loop, uint64_t token);
/* How soon the kernel sends again: by how it goes now, for models of ours (retransmit.h). */
void conn_adapt(struct conn *conn);

/* read.c: it is there, and read from. A dialler's core hears of it: at once, or once the key is
 * proved. */
void conn_opened(struct conn *conn);
void conn_read_on(struct conn *conn);
void conn_resume(struct conn *conn); /* it waits no more: what came is taken, and read on */

/* accept.c: starts listening on the loop's bound listener: 0 or a libuv error. */
int conn_listen(struct loop *loop);
/* accept.c: of one that was accepted, whose dialler has not our key, now and then. */
void conn_warn_of_stranger(struct conn *conn);
/* A turn begins: the connection that waits is taken, if its time has come. */
void conn_turn(struct loop *loop);
/* send.c: a turn begins: the core hears of the chunks that went out in the last one. */
void conn_tell_sent(struct loop *loop);

void conn_dial(struct loop *loop, uint32_t id, const char *address); /* dial.c */
/* dial.c: of a name's addresses those that have been silent for long are left for the next. */
void conn_try_others(struct loop *loop, uint64_t now_us);
/* dial.c: other threads may have found something: it is used, and more is looked up. */
void conn_take_lookups(struct loop *loop);
/* dial.c: none is left at the end: those that are not over by then end by themselves. */
void conn_join_lookups(struct loop *loop, uint64_t until_us);
/* dial.c: nobody wants to know the addresses any more. */
void conn_give_lookup_up(struct conn *conn);
/* dial.c: what closed.text is to be; "" for an end without an error. */
void conn_why_closed(const struct conn *conn, char *text, size_t size);

/* send.c: where the connection is no longer open, chunks are told of as not sent. */
void conn_send(struct loop *loop, uint32_t id, const uint8_t *bytes, size_t size);
void conn_send_chunk(struct loop *loop, const struct parley_update *update);
/* Once what was sent has arrived, or at once. */
void conn_close(struct loop *loop, uint32_t id, bool at_once);

/* Those that linger too long are cut off. */
void conn_sweep(struct loop *loop, uint64_t now_us);

/* Closes all: flushing, or at once. */
void conn_close_all(struct loop *loop, bool flush);

#endif
