/* tls.h: what a cluster key does to a connection: TLS 1.3 with a key in common.
 *
 *     parley keygen cluster.key      64 hexadecimal digits, drawn by the system
 *
 * Who has the key is in. In the handshake each end proves that it has it, and both draw a key for
 * this connection alone, which nobody learns who gets hold of the file later (RFC 8446, 2.2: PSK
 * with (EC)DHE). There are no names and no certificates: who has the key may be any node. A node
 * whose own bytes are sent back to it meets itself, as HELLO finds out by its boot (RFC 9257, 4.1).
 *
 * The happy path of an end: what comes in is fed, and read until nothing is left; what is written
 * is taken, and sent. Both go on by themselves while hands are shaken, in which nothing can be
 * written yet. A dialler begins by reading.
 *
 * Failure modes: an end whose peer has another key, or none, or whose bytes were changed on their
 * way, reads -1 from then on; what there is to take then tells the peer. Without memory, likewise.
 * Thread rule: all ends of a key belong to one thread.
 */
#ifndef PARLEY_PEERS_TLS_H
#define PARLEY_PEERS_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { TLS_KEY_BYTES = 32, TLS_KEY_DIGITS = 2 * TLS_KEY_BYTES };

struct tls;     /* a cluster's key */
struct tls_end; /* of a connection */

/* Of the key in that file: PARLEY_EUSAGE (it can't be read, or has no key in it), PARLEY_EFAIL
 * (OpenSSL has not what it takes, as memory), with a line in why[size]. */
int tls_new(struct tls **tls, const char *path, char *why, size_t size);
void tls_free(struct tls *tls); /* after all its ends; NULL does nothing */
/* So many records are written before an end changes its keys; returns how many it was:
 * 2^20 at first. */
size_t tls_set_records(struct tls *tls, size_t records);

struct tls_end *tls_end_new(struct tls *tls, bool dials); /* NULL: no memory */
void tls_end_free(struct tls_end *end);                   /* NULL does nothing */

/* Bytes that came in, all of which are read before more are fed: they stay the caller's. */
void tls_feed(struct tls_end *end, const void *bytes, size_t size);
/* In place of that, from now on: what is asked for is read from this socket, which does not block
 * and stays the caller's, a record at a time, whatever is in it. What stands behind it stays in the
 * kernel. */
bool tls_feed_from(struct tls_end *end, int fd);
/* Of a record that was read there are bytes left: no socket tells of them. */
bool tls_holds(const struct tls_end *end);
/* How many bytes for us were among them, to[size] at most. 0: that was all, or a socket's record
 * had none; -1: it is over. */
ssize_t tls_read(struct tls_end *end, void *to, size_t size);
/* False: not yet, or not any more. */
bool tls_write(struct tls_end *end, const void *bytes, size_t size);
/* What is to be sent now, after any of the above; *bytes is the caller's to free. 0: nothing. */
size_t tls_take(struct tls_end *end, uint8_t **bytes);

/* Both have proved that they have the key. */
bool tls_is_up(const struct tls_end *end);
/* Bytes that a peer without a key was sent begin so. */
bool tls_is_spoken(const uint8_t *bytes, size_t size);
/* And so those of one with a key, which dials. */
bool tls_is_asked(const uint8_t *bytes, size_t size);
/* Whether either may begin with that byte. */
bool tls_may_begin(uint8_t first);

/* Why a peer has not proved our key. keyed: we have one; spoken: it has spoken of keys, and not
 * just closed the connection. */
const char *tls_unproved(bool keyed, bool spoken);

#endif
