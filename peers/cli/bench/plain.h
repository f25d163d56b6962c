/* plain.h: an exchange and average of two processes with nothing but sockets: the limit of
 * `parley bench wire`.
 *
 * Happy path: plain_open; one process forks another; plain_serve in the child, plain_exchange in
 * the parent, again and again; plain_close in both.
 * Thread rule: one thread a process.
 */
#ifndef PARLEY_CLI_BENCH_PLAIN_H
#define PARLEY_CLI_BENCH_PLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct plain {
    int fds[2];        /* the parent's end of a loopback connection, and the child's */
    float *x, *theirs; /* [count]; owned */
    size_t count;
};

/* 0, or an errno. To be closed after any outcome. */
int plain_open(struct plain *plain, size_t count);
void plain_close(struct plain *plain);

/* The child's: answers each exchange of the parent's until that closes its end. */
void plain_serve(struct plain *plain);

/* The parent's: both send x and get the other's, x becomes the mean of both, in reads and writes of
 * up to call_bytes. False if the child is gone. */
bool plain_exchange(struct plain *plain, uint32_t call_bytes);

#endif
