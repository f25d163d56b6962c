/* carry.c: carries out what the core asks for.
 *
 * The happy path: each update goes to the part that does it: connections, handoff, vectors, or the
 * caller's callback. Operations on vectors are queued, then started as far as their order allows.
 * Nothing here blocks or calls the core's step.
 */
#include "disk/agreement.h"
#include "live.h"
#include "loop.h"
#include "network/conn.h"

/* About a millisecond at the most: waking the worker would take longer where cores are scarce. */
static bool is_short(const struct loop *loop, const struct op *op)
{
    enum parley_update_type type = op->update.type;
    return loop->handoff->lends && (type == PARLEY_UPDATE_DIFF || type == PARLEY_UPDATE_SKETCH ||
                                    type == PARLEY_UPDATE_COMBINE);
}

void carry_ops(struct loop *loop)
{
    struct op *op, *trainers = NULL, **last = &trainers;
    while (!loop->finished && (op = ops_next(&loop->ops)) != NULL) {
        op->next = NULL;
        if (buffers_at_boundary(op->update.type)) {
            *last = op; /* together: an ADD and a TAKE are one pass over memory */
            last = &op->next;
        } else if (is_short(loop, op)) {
            vectors_carry(loop->vectors, op);
            mailbox_put(&loop->answers, op);
        } else {
            worker_put(loop->worker, op);
        }
    }
    if (trainers) handoff_put(loop->handoff, trainers);
}

static void carry_vector(struct loop *loop, const struct parley_update *update)
{
    struct op *op = ops_add(&loop->ops, update);
    if (update->type == PARLEY_UPDATE_PUBLISH) op->record = agreement_record(loop);
}

static void carry(struct loop *loop, const struct parley_update *update)
{
    switch (update->type) {
    case PARLEY_UPDATE_DIAL:
        conn_dial(loop, update->dial.conn, update->dial.address);
        break;
    case PARLEY_UPDATE_CLOSE:
        conn_close(loop, update->close.conn, update->close.at_once);
        break;
    case PARLEY_UPDATE_SEND:
        conn_send(loop, update->send.conn, update->send.bytes, update->send.size);
        break;
    case PARLEY_UPDATE_SEND_CHUNK:
        conn_send_chunk(loop, update);
        break;
    case PARLEY_UPDATE_TRAIN:
        handoff_grant(loop->handoff, update);
        break;
    case PARLEY_UPDATE_HALT:
        handoff_halt(loop->handoff);
        break;
    case PARLEY_UPDATE_STORE:
        vectors_store(loop->vectors, update);
        break;
    case PARLEY_UPDATE_TAKE:
    case PARLEY_UPDATE_SET:
    case PARLEY_UPDATE_ADD:
    case PARLEY_UPDATE_MIX:
    case PARLEY_UPDATE_ENCODE:
    case PARLEY_UPDATE_GRADIENT:
    case PARLEY_UPDATE_APPLY:
    case PARLEY_UPDATE_COMBINE:
    case PARLEY_UPDATE_DIFF:
    case PARLEY_UPDATE_SKETCH:
    case PARLEY_UPDATE_HASH:
    case PARLEY_UPDATE_WRITE:
    case PARLEY_UPDATE_PUBLISH:
        carry_vector(loop, update);
        break;
    case PARLEY_UPDATE_MEMBER:
    case PARLEY_UPDATE_PHASE:
    case PARLEY_UPDATE_LOG:
        loop_show(loop, update);
        break;
    case PARLEY_UPDATE_FINISHED:
        loop_show(loop, update); /* the result is there before the trainer is woken */
        loop_finish(loop, update->finished.error);
        break;
    }
}

static bool changes_members(const struct parley_updates *updates)
{
    for (uint32_t i = 0; i < updates->count; i++) {
        enum parley_update_type type = updates->list[i].type;
        if (type == PARLEY_UPDATE_MEMBER || type == PARLEY_UPDATE_PHASE) return true;
    }
    return false;
}

/* Who lives is known before anybody is told of a change, or trains by it. */
void carry_updates(struct loop *loop, const struct parley_updates *updates)
{
    if (changes_members(updates)) live_refresh(loop);
    for (uint32_t i = 0; i < updates->count && !loop->finished; i++)
        carry(loop, &updates->list[i]);
    carry_ops(loop);
}
