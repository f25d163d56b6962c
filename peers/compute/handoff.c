/* handoff.c: see handoff.h. */
#include "compute/handoff.h"

#include <math.h>
#include <sched.h>
#include <string.h>

#include "clock.h"
#include "kernels/mix.h"

#define FOR_EVER_US (UINT64_C(1) << 53) /* the clock and it, in nanoseconds, fit 64 bits */

int handoff_init(struct handoff *handoff, struct vectors *vectors, struct mailbox *answers)
{
    memset(handoff, 0, sizeof *handoff);
    handoff->vectors = vectors;
    handoff->answers = answers;
    handoff->lends = vectors->count <= HANDOFF_LENT_FLOATS_MAX;
    handoff->last = &handoff->first;
    handoff->later = true; /* until the trainer comes for the first time, its vectors are its own */
    if (uv_sem_init(&handoff->boundary, 0)) return PARLEY_EFAIL;
    int code = mailbox_init(&handoff->box, NULL);
    if (code) uv_sem_destroy(&handoff->boundary);
    return code;
}

void handoff_close(struct handoff *handoff)
{
    mailbox_close(&handoff->box);
    uv_sem_destroy(&handoff->boundary);
}

/* The box is locked. */
static void tell(struct handoff *handoff)
{
    atomic_store_explicit(&handoff->box.news, true, memory_order_release);
    uv_cond_signal(&handoff->box.arrived);
}

void handoff_grant(struct handoff *handoff, const struct parley_update *update)
{
    uv_mutex_lock(&handoff->box.lock);
    handoff->granted += update->train.steps;
    handoff->next = (struct parley_turn){.live = update->train.live,
                                         .state_steps = update->train.inherited,
                                         .weight = update->train.weight};
    handoff->next_pace = update->train.pace;
    tell(handoff);
    uv_mutex_unlock(&handoff->box.lock);
}

void handoff_halt(struct handoff *handoff)
{
    uv_mutex_lock(&handoff->box.lock);
    handoff->granted = 0;
    handoff->halted = true;
    tell(handoff);
    uv_mutex_unlock(&handoff->box.lock);
}

void handoff_end(struct handoff *handoff, int error)
{
    uv_mutex_lock(&handoff->box.lock);
    handoff->ended = true;
    handoff->error = error;
    tell(handoff);
    uv_mutex_unlock(&handoff->box.lock);
}

/* The boundary is held. */
static void append(struct handoff *handoff, struct op *op)
{
    *handoff->last = op;
    while (*handoff->last)
        handoff->last = &(*handoff->last)->next;
}

static struct op *take_first(struct handoff *handoff)
{
    struct op *op = handoff->first;
    handoff->first = op->next;
    if (!handoff->first) handoff->last = &handoff->first;
    op->next = NULL;
    return op;
}

static void answer(struct handoff *handoff, struct op *op)
{
    op->done.done.version = atomic_load_explicit(&handoff->version, memory_order_relaxed);
    mailbox_put(handoff->answers, op);
}

/* The boundary is held. As far as the program itself has nothing to do: work that it was given and
 * has not made comes first. */
static void carry(struct handoff *handoff)
{
    while (handoff->first && !handoff->work && !op_is_work(handoff->first)) {
        struct op *op = take_first(handoff);
        bool both = handoff->first && vectors_add_take(handoff->vectors, op, handoff->first);
        if (!both) vectors_carry(handoff->vectors, op);
        answer(handoff, op);
        if (both) answer(handoff, take_first(handoff));
    }
}

void handoff_put(struct handoff *handoff, struct op *list)
{
    if (!handoff->lends || uv_sem_trywait(&handoff->boundary)) {
        mailbox_put(&handoff->box, list);
        return;
    }
    uv_mutex_lock(&handoff->box.lock);
    struct op *earlier = mailbox_take_locked(&handoff->box);
    uv_mutex_unlock(&handoff->box.lock);
    append(handoff, earlier);
    append(handoff, list);
    carry(handoff);
    bool work = handoff->first != NULL;
    uv_sem_post(&handoff->boundary);
    if (!work) return;
    uv_mutex_lock(&handoff->box.lock);
    tell(handoff);
    uv_mutex_unlock(&handoff->box.lock);
}

/* Everything that is new. The boundary is held: what the loop does at one comes before or after. */
static void look(struct handoff *handoff)
{
    struct mailbox *box = &handoff->box;
    uv_mutex_lock(&box->lock);
    struct op *op = mailbox_take_locked(box);
    if (handoff->halted) handoff->credit = 0;
    handoff->halted = false;
    handoff->credit += handoff->granted;
    handoff->granted = 0;
    handoff->turn = handoff->next;
    handoff->pace = handoff->next_pace;
    handoff->over = handoff->ended;
    atomic_store_explicit(&box->news, false, memory_order_relaxed);
    uv_mutex_unlock(&box->lock);
    append(handoff, op);
    carry(handoff);
}

/* False: there are none by then. */
static bool wait_for_news(struct mailbox *box, uint64_t until_us)
{
    int late = 0;
    uv_mutex_lock(&box->lock);
    while (!late && !atomic_load_explicit(&box->news, memory_order_relaxed)) {
        uint64_t now_us = clock_now_us();
        if (until_us == UINT64_MAX)
            uv_cond_wait(&box->arrived, &box->lock);
        else if (now_us < until_us)
            late = uv_cond_timedwait(&box->arrived, &box->lock, 1000 * (until_us - now_us));
        else
            late = UV_ETIMEDOUT;
    }
    uv_mutex_unlock(&box->lock);
    return !late;
}

bool handoff_has_news(struct handoff *handoff)
{
    return atomic_load(&handoff->lost) ||
           atomic_load(&handoff->version) >= atomic_load(&handoff->awaited);
}

double handoff_loss(struct handoff *handoff)
{
    return atomic_exchange(&handoff->lost, false) ? (double)NAN : atomic_load(&handoff->loss);
}

static double moved_by(const struct handoff *handoff, const struct parley_step *step)
{
    const struct vectors *v = handoff->vectors;
    return moved_end(&handoff->moved, v->trained[0], v->count) / (double)step->steps;
}

static void report_steps(struct handoff *handoff, const struct parley_step *step)
{
    uint64_t more = step->steps - 1; /* one was taken from the credit when it was allowed */
    handoff->credit -= more < handoff->credit ? more : handoff->credit;
    handoff->vectors->follow = step->follow; /* the boundary is still held */
    atomic_store(&handoff->loss, step->loss);
    if (handoff->measures) atomic_store(&handoff->moved_sq, moved_by(handoff, step));
    atomic_store(&handoff->place, step->place);
}

/* What passes all bounds must not begin anew below them: the core ends the run for it. */
static void count(_Atomic uint64_t *sum, uint64_t more)
{
    uint64_t before = atomic_load(sum);
    atomic_store(sum, more < UINT64_MAX - before ? before + more : UINT64_MAX);
}

/* Where no step was made samples were used all the same, or the model is lost. */
static void report(struct handoff *handoff, const struct parley_step *step)
{
    if (step->steps > 0) report_steps(handoff, step);
    if (!isfinite(step->loss)) atomic_store(&handoff->lost, true);
    count(&handoff->samples, step->samples);
    /* Last, as the loop reads it first: a version never comes with older samples. */
    count(&handoff->version, step->steps);
    if (handoff_has_news(handoff)) wake_ring(handoff->answers->wake);
}

static void note_gap(struct handoff *handoff)
{
    uint64_t gap_us = clock_now_us() - handoff->step_end_us;
    if (handoff->stepped && gap_us > atomic_load(&handoff->gap_max_us))
        atomic_store(&handoff->gap_max_us, gap_us);
}

/* What was allowed and not made is still to be made. */
static void end_work(struct handoff *handoff, const struct parley_step *step, bool stepped)
{
    struct op *op = handoff->work;
    const struct vectors *vectors = handoff->vectors;
    bool gradient = op->update.type == PARLEY_UPDATE_GRADIENT;
    if (gradient && !stepped) return;
    handoff->work = NULL;
    op->done.done.ok = true;
    op->done.done.finite =
        !gradient ||
        (isfinite(step->loss) &&
         mix_finite(vectors_buffer(vectors, op->update.vector.buffer), vectors->count));
    answer(handoff, op);
}

static void allow_work(struct handoff *handoff, struct parley_turn *turn)
{
    const struct parley_update *update = &handoff->work->update;
    bool gradient = update->type == PARLEY_UPDATE_GRADIENT;
    if (gradient) vectors_forget(handoff->vectors, update->vector.buffer);
    *turn = (struct parley_turn){
        .work = gradient ? PARLEY_WORK_GRADIENT : PARLEY_WORK_APPLY,
        .gradient = vectors_buffer(handoff->vectors, update->vector.buffer),
        .at = update->vector.at_other ? vectors_buffer(handoff->vectors, update->vector.other)
                                      : handoff->vectors->trained[0],
        .factor = update->vector.factor,
        .progress = update->vector.progress,
        .live = update->vector.live,
        .weight = update->vector.weight > 0 ? update->vector.weight : 1,
        .state_steps = update->vector.steps,
    };
}

static void allow_step(struct handoff *handoff, struct parley_turn *turn)
{
    handoff->credit--;
    if (handoff->measures)
        moved_begin(&handoff->moved, handoff->vectors->trained[0], handoff->vectors->count);
    uint64_t made = atomic_load_explicit(&handoff->version, memory_order_relaxed);
    *turn = handoff->turn;
    turn->state_steps += made;
    turn->progress = parley_pace_progress(&handoff->pace, made);
}

/* True: something is allowed, and the boundary stays held until it is made. */
static bool allow(struct handoff *handoff, struct parley_turn *turn)
{
    if (!handoff->work && handoff->first) handoff->work = take_first(handoff);
    if (handoff->over || (!handoff->work && handoff->credit == 0)) return false;
    note_gap(handoff);
    if (handoff->work)
        allow_work(handoff, turn);
    else
        allow_step(handoff, turn);
    turn->averaged = handoff->vectors->added;
    turn->started = !handoff->started && turn->work != PARLEY_WORK_APPLY;
    handoff->started = handoff->started || turn->started;
    return true;
}

int handoff_boundary(struct handoff *handoff, const struct parley_step *step,
                     struct parley_turn *turn, uint64_t timeout_us)
{
    bool stepped = step && step->steps > 0, again = handoff->later && !stepped;
    uint64_t now_us = clock_now_us();
    uint64_t until_us = timeout_us < FOR_EVER_US ? now_us + timeout_us : UINT64_MAX;
    if (!again) {
        handoff->step_end_us = now_us;
        handoff->stepped = stepped;
    }
    if (handoff->going && !stepped && !handoff->work) handoff->credit++;
    if (step) report(handoff, step);
    if (handoff->going && handoff->work) end_work(handoff, step, stepped);
    if (handoff->going || handoff->later) uv_sem_post(&handoff->boundary);
    handoff->going = handoff->later = false;
    /* Where trainers share a core, turns of a step and not of a time slice: an exchange waits for a
     * boundary of both its nodes. Alone on its core, a trainer goes on at once. */
    if (stepped) sched_yield();

    for (bool late = timeout_us == 0; !handoff->over;) {
        uv_sem_wait(&handoff->boundary);
        if (atomic_load_explicit(&handoff->box.news, memory_order_acquire)) look(handoff);
        carry(handoff);
        handoff->going = allow(handoff, turn);
        if (handoff->going) return PARLEY_GO;
        handoff->later = late && !handoff->over;
        if (handoff->later) return PARLEY_LATER;
        uv_sem_post(&handoff->boundary);
        late = !handoff->over && !wait_for_news(&handoff->box, until_us);
    }
    return handoff->error;
}
