/* mailbox.h: hands operations from one thread to another, in order.
 *
 * A list under a mutex that is held for a few instructions, with one atomic flag beside it, so that
 * a reader who finds nothing takes no lock. Nothing can fail after init: the list goes through the
 * ops themselves.
 * Thread rule: any thread may put; one thread takes.
 */
#ifndef PARLEY_PEERS_MAILBOX_H
#define PARLEY_PEERS_MAILBOX_H

#include <stdatomic.h>

#include <uv.h>

#include "compute/op.h"
#include "wake.h"

struct mailbox {
    uv_mutex_t lock;
    uv_cond_t arrived;
    struct op *first, **last;
    atomic_bool news;  /* set after every change, cleared by the taker under the lock */
    struct wake *wake; /* of the loop that takes; NULL: the taker waits for `arrived` */
};

/* PARLEY_EFAIL. wake: open until nobody puts any more. */
int mailbox_init(struct mailbox *box, struct wake *wake);
void mailbox_close(struct mailbox *box);

/* An op, and those that follow it as a list. */
void mailbox_put(struct mailbox *box, struct op *list);

/* All ops as a list, oldest first; NULL: none. Takes no lock if there is no news. */
struct op *mailbox_take(struct mailbox *box);
/* The same by who holds the lock, and sees to `news`. */
struct op *mailbox_take_locked(struct mailbox *box);

#endif
