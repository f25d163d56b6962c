/* ops.c: which operation may start when (see op.h).
 *
 * The happy path: add, next (perhaps later), remove. An op fails by its result; nothing fails here.
 */
#include "compute/op.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void ops_init(struct ops *ops)
{
    ops->unused = NULL;
    ops->used = ops->count = 0;
}

bool op_is_work(const struct op *op)
{
    enum parley_update_type type = op->update.type;
    return type == PARLEY_UPDATE_GRADIENT || type == PARLEY_UPDATE_APPLY;
}

struct op *ops_add(struct ops *ops, const struct parley_update *update)
{
    struct op *op = ops->unused;
    assert(op || ops->used < PARLEY_OPERATIONS_MAX);
    if (op)
        ops->unused = op->next;
    else
        op = &ops->pool[ops->used++];
    memset(op, 0, sizeof *op);
    op->update = *update;
    op->buffers = buffers_of(update);
    op->done.type = PARLEY_EVENT_DONE;
    op->done.done.op = update->vector.op;
    ops->order[ops->count++] = op;
    return op;
}

struct op *ops_next(struct ops *ops)
{
    struct buffer_set trainers = {{0}}, others = {{0}}; /* that earlier ones name */
    bool trainer_waits = false, worker_waits = false;
    for (uint32_t i = 0; i < ops->count; i++) {
        struct op *op = ops->order[i];
        bool trains = buffers_at_boundary(op->update.type),
             *waits = trains ? &trainer_waits : &worker_waits;
        if (!op->started) {
            bool busy = buffers_meet(&op->buffers, &others) ||
                        (!trains && buffers_meet(&op->buffers, &trainers));
            if (!busy && !*waits) {
                op->started = true;
                return op;
            }
            *waits = true;
        }
        buffers_join(trains ? &trainers : &others, &op->buffers);
    }
    return NULL;
}

void ops_remove(struct ops *ops, struct op *op)
{
    uint32_t at = 0;
    while (at < ops->count && ops->order[at] != op)
        at++;
    assert(at < ops->count);
    ops->count--;
    memmove(&ops->order[at], &ops->order[at + 1], (ops->count - at) * sizeof *ops->order);
    if (op->record) record_close(op->record);
    free(op->record);
    op->next = ops->unused;
    ops->unused = op;
}
