/* wake.h: wakes a loop's thread from other threads, only if it sleeps.
 *
 * The happy path: another thread leaves its news where the loop will look, then wake_ring(). The
 * loop, in its prepare phase, looks at all news, then calls wake_sleep(), looks once more and rings
 * itself if something came in between; after the wait, wake_up(). News that come while the loop is
 * awake cost nobody a system call, and the thread that brings them never waits.
 *
 * Decision: libuv's uv_async_t does the same for any loop, but always writes, and its reader spins
 * while a writer that it has just preempted finishes: on two cores that was a tenth of the
 * processor time of two nodes that exchange without a pause.
 * Failure modes: none after wake_init().
 * Thread rule: wake_ring() any thread; the rest the loop's.
 */
#ifndef PARLEY_PEERS_WAKE_H
#define PARLEY_PEERS_WAKE_H

#include <stdatomic.h>

#include <uv.h>

struct wake {
    uv_poll_t poll;
    int fd; /* an eventfd */
    atomic_bool asleep;
};

/* 0 or a libuv error, and then nothing is to be closed. It sleeps from the first. */
int wake_init(struct wake *wake, uv_loop_t *loop);
/* Closes the handle. Nobody may ring any more once wake_free() is called, after the loop's end. */
void wake_close(struct wake *wake);
void wake_free(struct wake *wake);

void wake_ring(struct wake *wake);

void wake_sleep(struct wake *wake);
void wake_up(struct wake *wake);

#endif
