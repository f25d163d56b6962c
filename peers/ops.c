/* ops.c: which operation may start when (see op.h).
 *
 * The happy path: add, next (perhaps later), remove. An op fails by its result; nothing fails here.
 */
#include "op.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void ops_init(struct ops *ops)
{
    memset(ops, 0, sizeof *ops);
    for (uint32_t i = 0; i < OPS_MAX; i++) {
        ops->pool[i].next = ops->unused;
        ops->unused = &ops->pool[i];
    }
}

bool op_is_trainers(const struct op *op)
{
    enum parley_update_type type = op->update.type;
    return type == PARLEY_UPDATE_TAKE || type == PARLEY_UPDATE_SET || type == PARLEY_UPDATE_ADD ||
           type == PARLEY_UPDATE_MIX || op_is_work(op);
}

bool op_is_work(const struct op *op)
{
    enum parley_update_type type = op->update.type;
    return type == PARLEY_UPDATE_GRADIENT || type == PARLEY_UPDATE_APPLY;
}

static uint64_t buffers_of(const struct parley_update *update)
{
    uint64_t mask = 0;
    if (update->type == PARLEY_UPDATE_TAKE || update->type == PARLEY_UPDATE_SET) {
        assert(update->vector.vectors <= PARLEY_VECTORS_MAX);
        for (uint32_t v = 0; v < update->vector.vectors; v++)
            mask |= UINT64_C(1) << update->vector.buffers[v];
    } else {
        mask = UINT64_C(1) << update->vector.buffer;
        bool other = update->type == PARLEY_UPDATE_DIFF || update->type == PARLEY_UPDATE_COMBINE ||
                     update->vector.at_other;
        if (other) mask |= UINT64_C(1) << update->vector.other;
    }
    return mask;
}

struct op *ops_add(struct ops *ops, const struct parley_update *update)
{
    assert(ops->unused);
    struct op *op = ops->unused;
    ops->unused = op->next;
    memset(op, 0, sizeof *op);
    op->update = *update;
    op->state = OP_WAITING;
    op->buffers = buffers_of(update);
    op->done.type = PARLEY_EVENT_DONE;
    op->done.done.op = update->vector.op;
    ops->order[ops->count++] = op;
    return op;
}

struct op *ops_next(struct ops *ops)
{
    uint64_t trainers = 0, others = 0; /* buffers that earlier ones name */
    bool trainer_waits = false, worker_waits = false;
    for (uint32_t i = 0; i < ops->count; i++) {
        struct op *op = ops->order[i];
        bool trains = op_is_trainers(op), *waits = trains ? &trainer_waits : &worker_waits;
        if (op->state == OP_WAITING) {
            uint64_t busy = trains ? others : others | trainers;
            if (!(op->buffers & busy) && !*waits) {
                op->state = OP_STARTED;
                return op;
            }
            *waits = true;
        }
        *(trains ? &trainers : &others) |= op->buffers;
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
