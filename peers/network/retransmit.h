/* retransmit.h: how soon TCP sends again what a line has lost.
 *
 * The kernel waits for 200 ms and more, and each time twice as long as the time before: on a line
 * that loses a third of all packets both ways, where every second try fails, such pauses have no
 * mean. Both ends here are nodes, and most of what they say is short and waited for. So
 *
 *   - the first pause is half the way there and back, 5 ms at least, beyond the way itself, and the
 *     last one twice that way, or a second (Linux 6.15, which also delays acknowledgements by less
 *     than the first pause then);
 *   - what there are less than four packets of is sent again at even pauses, six times (2.6.34);
 *   - where the line loses packets, what was read is acknowledged at once: who waits for that takes
 *     it for the length of the way; and if a model fits the first window of a connection, so
 *     that there is no congestion to control, it goes by Reno: for BBR nothing counts as few
 *     packets; and where three packets are under way, frames wait for them, to go in one (Nagle);
 *   - a dial whose handshake lost its answer is made anew, twice at most: what came a second late
 *     is taken for the length of the way, for tens of packets.
 *
 * An older kernel goes its own way: nothing here fails.
 * Thread rule: the loop's.
 */
#ifndef PARLEY_PEERS_RETRANSMIT_H
#define PARLEY_PEERS_RETRANSMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a connection has shown and its socket was told; all 0 at first. */
struct retransmit {
    bool loses;           /* it has to send again what it sent, ... */
    bool thin;            /* ... or had, and its models fit the first window */
    bool waits;           /* frames wait for what is under way */
    uint32_t sent, again; /* packets, up to the last look */
    int least_us, most_ms;
};

/* A socket that is about to connect, or to listen: those it accepts are alike. */
void retransmit_init(int fd);

/* Just connected: the handshake lost its answer. */
bool retransmit_is_misled(int fd);

/* By how it goes now, when it opens and then and again; models have so many bytes. */
void retransmit_adapt(int fd, size_t model_bytes, struct retransmit *now);

/* Something is about to be written. */
void retransmit_sends(int fd, struct retransmit *now);

/* Something has been read. */
void retransmit_heard(int fd, const struct retransmit *now);

#endif
