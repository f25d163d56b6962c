/* worker.h: the thread that computes: differences, sketches, hashes, files.
 *
 * The happy path: worker_put, then the op comes back through the answers' mailbox.
 * Failure modes: a file can't be written: done.ok is false and op->why says why.
 */
#ifndef PARLEY_PEERS_WORKER_H
#define PARLEY_PEERS_WORKER_H

#include "compute/mailbox.h"
#include "compute/vectors.h"
#include "disk/files.h"

struct worker {
    struct mailbox box, *answers;
    struct vectors *vectors;
    struct files *files;
    uv_thread_t thread;
    bool ended; /* guarded by the box's lock */
};

/* Starts the thread. PARLEY_EFAIL. All are borrowed. */
int worker_init(struct worker *worker, struct vectors *vectors, struct files *files,
                struct mailbox *answers);

void worker_put(struct worker *worker, struct op *op);

/* Ends the thread after the op under way; those behind it are dropped, and what is still put. */
void worker_end(struct worker *worker);

/* After worker_end(), once nobody puts any more. */
void worker_close(struct worker *worker);

#endif
