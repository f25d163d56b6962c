/* workers.c: see workers.h.
 *
 * Lanes with work stand in two lists, the oldest first: those whose work is wanted, and those that
 * hold it back. A thread takes a lane off a list, the wanted first, and makes what the lane has;
 * the loop's thread, when it waits, does the awaited lane itself if nobody has it. All lists stand
 * under one lock, held for a few instructions. Both sides look for a while before they sleep: being
 * woken costs as much as a job.
 */
#include "world/compute/workers.h"

#include <pthread.h>
#include <stdlib.h>

enum { LOOKS = 400 };

struct worker {
    struct sim_workers *workers;
    uint32_t thread;
    pthread_t handle;
};

struct list {
    struct sim_lane *first, *last;
};

struct sim_workers {
    pthread_mutex_t lock;
    pthread_cond_t ready, made;
    struct list lists[2]; /* by `wanted` */
    atomic_bool any;      /* whether there are lanes in them, for a look without the lock */
    uint32_t asleep;
    bool over;
    _Atomic(struct sim_job *) awaited; /* by a loop that sleeps */
    uint32_t started;
    struct worker worker[]; /* as many as were asked for, of which `started` run */
};

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* ---- Under the lock -------------------------------------------------------------------------- */

static struct sim_lane *oldest(const struct sim_workers *w)
{
    return w->lists[true].first ? w->lists[true].first : w->lists[false].first;
}

static void list(struct sim_workers *w, struct sim_lane *lane, bool at_front)
{
    struct list *list = &w->lists[lane->wanted];
    struct sim_lane *before = at_front ? NULL : list->last, *after = at_front ? list->first : NULL;
    lane->previous = before;
    lane->next = after;
    *(before ? &before->next : &list->first) = lane;
    *(after ? &after->previous : &list->last) = lane;
    lane->listed = true;
    atomic_store_explicit(&w->any, true, memory_order_relaxed);
}

static void unlist(struct sim_workers *w, struct sim_lane *lane)
{
    struct list *list = &w->lists[lane->wanted];
    if (!lane->listed) return;
    *(lane->previous ? &lane->previous->next : &list->first) = lane->next;
    *(lane->next ? &lane->next->previous : &list->last) = lane->previous;
    lane->listed = false;
    if (!oldest(w)) atomic_store_explicit(&w->any, false, memory_order_relaxed);
}

static void want(struct sim_workers *w, struct sim_lane *lane)
{
    bool listed = lane->listed;
    if (lane->wanted || !lane->first) return;
    unlist(w, lane);
    lane->wanted = true;
    if (listed) list(w, lane, false);
}

static struct sim_job *take(struct sim_lane *lane)
{
    struct sim_job *job = lane->first;
    lane->first = job->next;
    if (!lane->first) lane->last = NULL;
    return job;
}

/* Makes the lane's jobs, up to `until` or to its end. The lock is free in between. */
static void make(struct sim_workers *w, struct sim_lane *lane, const struct sim_job *until,
                 uint32_t thread)
{
    unlist(w, lane);
    lane->busy = true;
    for (bool more = true; more && lane->first;) {
        struct sim_job *job = take(lane);
        more = job != until;
        pthread_mutex_unlock(&w->lock);
        job->make(job, thread);
        /* Order with the sleeper's (awaited, then made): one of the two sees the other. */
        atomic_store(&job->made, true);
        bool wanted = atomic_load(&w->awaited) == job;
        pthread_mutex_lock(&w->lock);
        if (wanted) pthread_cond_signal(&w->made);
    }
    lane->busy = false;
    lane->wanted = lane->wanted && lane->first;
    if (lane->first) list(w, lane, true);
}

/* ---- A worker -------------------------------------------------------------------------------- */

static void look_for_work(struct sim_workers *w)
{
    for (int i = 0; i < LOOKS && !atomic_load_explicit(&w->any, memory_order_relaxed); i++)
        relax();
}

static void *work(void *pointer)
{
    struct worker *self = pointer;
    struct sim_workers *w = self->workers;
    pthread_mutex_lock(&w->lock);
    while (!w->over) {
        if (oldest(w)) {
            make(w, oldest(w), NULL, self->thread);
            continue;
        }
        pthread_mutex_unlock(&w->lock);
        look_for_work(w);
        pthread_mutex_lock(&w->lock);
        if (oldest(w) || w->over) continue;
        w->asleep++;
        pthread_cond_wait(&w->ready, &w->lock);
        w->asleep--;
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* ---- The loop's side ------------------------------------------------------------------------- */

/* To be made soon, or at any time; under the lock. True if somebody sleeps who could. */
static bool append(struct sim_workers *w, struct sim_lane *lane, struct sim_job *job, bool soon)
{
    job->next = NULL;
    atomic_store_explicit(&job->made, false, memory_order_relaxed);
    *(lane->last ? &lane->last->next : &lane->first) = job;
    lane->last = job;
    if (!lane->listed && !lane->busy) list(w, lane, false);
    if (soon) want(w, lane);
    return w->asleep > 0;
}

void sim_workers_give(struct sim_workers *w, struct sim_lane *lane, struct sim_job *job)
{
    pthread_mutex_lock(&w->lock);
    bool wake = append(w, lane, job, true);
    if (w->started == 0) make(w, lane, NULL, 0);
    pthread_mutex_unlock(&w->lock);
    if (wake) pthread_cond_signal(&w->ready);
}

void sim_workers_hold(struct sim_workers *w, struct sim_lane *lane, struct sim_job *job)
{
    pthread_mutex_lock(&w->lock);
    bool wake = append(w, lane, job, false);
    pthread_mutex_unlock(&w->lock);
    if (wake) pthread_cond_signal(&w->ready);
}

void sim_workers_hurry(struct sim_workers *w, struct sim_lane *lane)
{
    pthread_mutex_lock(&w->lock);
    want(w, lane);
    pthread_mutex_unlock(&w->lock);
}

/* Another thread makes it, and there is nothing else to do. */
static void sleep_until_made(struct sim_workers *w, struct sim_job *job)
{
    pthread_mutex_unlock(&w->lock);
    for (int i = 0; i < LOOKS && !sim_workers_made(job); i++)
        relax();
    pthread_mutex_lock(&w->lock);
    atomic_store(&w->awaited, job);
    if (!atomic_load(&job->made)) pthread_cond_wait(&w->made, &w->lock);
    atomic_store(&w->awaited, NULL);
}

/* What lies in the lane behind the job is made with it, while the node's vectors are in a cache,
 * but where another thread has nothing to do. */
void sim_workers_wait(struct sim_workers *w, struct sim_lane *lane, struct sim_job *job)
{
    if (sim_workers_made(job)) return;
    pthread_mutex_lock(&w->lock);
    while (!sim_workers_made(job)) {
        if (!lane->busy)
            make(w, lane, w->asleep > 0 ? job : NULL, 0);
        else if (w->lists[true].first)
            make(w, w->lists[true].first, NULL, 0);
        else if (oldest(w))
            make(w, oldest(w), oldest(w)->first, 0);
        else
            sleep_until_made(w, job);
    }
    pthread_mutex_unlock(&w->lock);
}

static void nothing(struct sim_job *job, uint32_t thread)
{
    (void)job;
    (void)thread;
}

void sim_workers_drain(struct sim_workers *w, struct sim_lane *lane)
{
    struct sim_job last = {.make = nothing};
    if (!w) return;
    sim_workers_give(w, lane, &last);
    sim_workers_wait(w, lane, &last);
}

/* ---- Making and freeing ---------------------------------------------------------------------- */

int sim_workers_new(struct sim_workers **result, uint32_t threads)
{
    struct sim_workers *w = calloc(1, sizeof *w + (threads - 1) * sizeof *w->worker);
    *result = w;
    if (!w) return PARLEY_ENOMEM;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->ready, NULL);
    pthread_cond_init(&w->made, NULL);
    for (uint32_t i = 0; i + 1 < threads; i++) {
        struct worker *worker = &w->worker[i];
        worker->workers = w;
        worker->thread = i + 1;
        if (pthread_create(&worker->handle, NULL, work, worker)) break;
        w->started++;
    }
    return 0;
}

void sim_workers_free(struct sim_workers *w)
{
    if (!w) return;
    pthread_mutex_lock(&w->lock);
    w->over = true;
    pthread_cond_broadcast(&w->ready);
    pthread_mutex_unlock(&w->lock);
    for (uint32_t i = 0; i < w->started; i++)
        pthread_join(w->worker[i].handle, NULL);
    pthread_cond_destroy(&w->made);
    pthread_cond_destroy(&w->ready);
    pthread_mutex_destroy(&w->lock);
    free(w);
}
