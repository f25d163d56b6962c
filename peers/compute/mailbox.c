/* mailbox.c: see mailbox.h. */
#include "compute/mailbox.h"

int mailbox_init(struct mailbox *box, struct wake *wake)
{
    box->wake = wake;
    box->first = NULL;
    box->last = &box->first;
    atomic_init(&box->news, false);
    if (uv_mutex_init(&box->lock)) return PARLEY_EFAIL;
    if (uv_cond_init(&box->arrived)) {
        uv_mutex_destroy(&box->lock);
        return PARLEY_EFAIL;
    }
    return PARLEY_OK;
}

void mailbox_close(struct mailbox *box)
{
    uv_cond_destroy(&box->arrived);
    uv_mutex_destroy(&box->lock);
}

void mailbox_put(struct mailbox *box, struct op *list)
{
    uv_mutex_lock(&box->lock);
    *box->last = list;
    while (*box->last)
        box->last = &(*box->last)->next;
    atomic_store(&box->news, true);
    uv_cond_signal(&box->arrived);
    uv_mutex_unlock(&box->lock);
    if (box->wake) wake_ring(box->wake);
}

struct op *mailbox_take_locked(struct mailbox *box)
{
    struct op *list = box->first;
    box->first = NULL;
    box->last = &box->first;
    return list;
}

struct op *mailbox_take(struct mailbox *box)
{
    if (!atomic_load_explicit(&box->news, memory_order_acquire)) return NULL;
    uv_mutex_lock(&box->lock);
    struct op *list = mailbox_take_locked(box);
    atomic_store_explicit(&box->news, false, memory_order_relaxed);
    uv_mutex_unlock(&box->lock);
    return list;
}
