/* handoff.c: see handoff.h. */
#include "handoff.h"

#include <sched.h>
#include <string.h>

int handoff_init(struct handoff *handoff, struct vectors *vectors, struct mailbox *answers)
{
    memset(handoff, 0, sizeof *handoff);
    handoff->vectors = vectors;
    handoff->answers = answers;
    handoff->lends = vectors->count <= HANDOFF_LENT_FLOATS_MAX;
    if (uv_sem_init(&handoff->boundary, 1)) return PARLEY_EFAIL;
    int code = mailbox_init(&handoff->box, NULL);
    if (code) uv_sem_destroy(&handoff->boundary);
    return code;
}

void handoff_close(struct handoff *handoff)
{
    mailbox_close(&handoff->box);
    uv_sem_destroy(&handoff->boundary);
}

static void tell(struct handoff *handoff)
{
    atomic_store_explicit(&handoff->box.news, true, memory_order_release);
    uv_cond_signal(&handoff->box.arrived);
    uv_mutex_unlock(&handoff->box.lock);
}

void handoff_grant(struct handoff *handoff, const struct parley_update *update)
{
    uv_mutex_lock(&handoff->box.lock);
    handoff->granted += update->train.steps;
    handoff->next = (struct parley_turn){.progress = update->train.progress,
                                         .live = update->train.live,
                                         .state_steps = update->train.inherited};
    tell(handoff);
}

void handoff_halt(struct handoff *handoff)
{
    uv_mutex_lock(&handoff->box.lock);
    handoff->granted = 0;
    handoff->halted = true;
    tell(handoff);
}

void handoff_end(struct handoff *handoff, int error)
{
    uv_mutex_lock(&handoff->box.lock);
    handoff->ended = true;
    handoff->error = error;
    tell(handoff);
}

static struct op *take_all(struct mailbox *box)
{
    struct op *op = box->first;
    box->first = NULL;
    box->last = &box->first;
    return op;
}

/* The boundary is held. */
static void carry(struct handoff *handoff, struct op *op)
{
    while (op) {
        struct op *next = op->next;
        vectors_carry(handoff->vectors, op);
        op->done.done.version = atomic_load_explicit(&handoff->version, memory_order_relaxed);
        mailbox_put(handoff->answers, op);
        op = next;
    }
}

void handoff_put(struct handoff *handoff, struct op *op)
{
    if (!handoff->lends || uv_sem_trywait(&handoff->boundary)) {
        mailbox_put(&handoff->box, op);
        return;
    }
    uv_mutex_lock(&handoff->box.lock);
    struct op *earlier = take_all(&handoff->box);
    uv_mutex_unlock(&handoff->box.lock);
    carry(handoff, earlier);
    op->next = NULL;
    carry(handoff, op);
    uv_sem_post(&handoff->boundary);
}

/* Everything that is new. The boundary is held: what the loop does at one comes before or after. */
static void look(struct handoff *handoff)
{
    struct mailbox *box = &handoff->box;
    uv_mutex_lock(&box->lock);
    struct op *op = take_all(box);
    if (handoff->halted) handoff->credit = 0;
    handoff->halted = false;
    handoff->credit += handoff->granted;
    handoff->granted = 0;
    handoff->turn = handoff->next;
    handoff->over = handoff->ended;
    atomic_store_explicit(&box->news, false, memory_order_relaxed);
    uv_mutex_unlock(&box->lock);
    carry(handoff, op);
}

static void wait_for_news(struct mailbox *box)
{
    uv_mutex_lock(&box->lock);
    while (!atomic_load_explicit(&box->news, memory_order_relaxed))
        uv_cond_wait(&box->arrived, &box->lock);
    uv_mutex_unlock(&box->lock);
}

static void report(struct handoff *handoff, const struct parley_step *step, uint64_t now_us)
{
    uint64_t more = step->steps - 1; /* one was taken from the credit when it was allowed */
    handoff->credit -= more < handoff->credit ? more : handoff->credit;
    handoff->vectors->follow = step->follow; /* the boundary is still held */
    atomic_store(&handoff->train_us, now_us - handoff->first_us);
    atomic_store(&handoff->loss, step->loss);
    atomic_fetch_add(&handoff->samples, step->samples);
    /* Last, as the loop reads it first: a version never comes with older samples. */
    atomic_fetch_add(&handoff->version, step->steps);
    uv_async_send(handoff->answers->wake);
}

static void note_gap(struct handoff *handoff, bool between_steps)
{
    uint64_t now_us = uv_hrtime() / 1000;
    uint64_t gap_us = now_us - handoff->step_end_us;
    if (!handoff->started) handoff->first_us = now_us;
    if (between_steps && gap_us > atomic_load(&handoff->gap_max_us))
        atomic_store(&handoff->gap_max_us, gap_us);
}

int handoff_boundary(struct handoff *handoff, const struct parley_step *step,
                     struct parley_turn *turn)
{
    bool stepped = step && step->steps > 0;
    handoff->step_end_us = uv_hrtime() / 1000;
    if (handoff->going && !stepped) handoff->credit++; /* allowed, not made: still to be made */
    if (stepped) report(handoff, step, handoff->step_end_us);
    if (handoff->going) uv_sem_post(&handoff->boundary);
    handoff->going = false;
    /* Where trainers share a core, turns of a step and not of a time slice: an exchange waits for a
     * boundary of both its nodes. Alone on its core, a trainer goes on at once. */
    if (stepped) sched_yield();

    while (!handoff->over) {
        uv_sem_wait(&handoff->boundary);
        if (atomic_load_explicit(&handoff->box.news, memory_order_acquire)) look(handoff);
        if (handoff->credit > 0 && !handoff->over) {
            handoff->credit--;
            handoff->going = true; /* and the boundary stays held until the step is made */
            note_gap(handoff, stepped);
            *turn = handoff->turn;
            turn->started = !handoff->started;
            turn->averaged = handoff->vectors->added;
            turn->state_steps += atomic_load_explicit(&handoff->version, memory_order_relaxed);
            handoff->started = true;
            return PARLEY_GO;
        }
        uv_sem_post(&handoff->boundary);
        if (!handoff->over) wait_for_news(&handoff->box);
    }
    return handoff->error;
}
