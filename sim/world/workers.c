/* workers.c: see workers.h.
 *
 * Lanes with work stand in one list, the oldest first. A worker takes a lane off it and makes what
 * the lane holds; the loop's thread, when it waits, does the awaited lane itself if nobody has it,
 * else one job of the oldest lane. All lists stand under one lock, held for a few instructions.
 * Both sides look for a while before they sleep: being woken costs as much as a job.
 */
#define _GNU_SOURCE /* sched_getaffinity */
#include "world/workers.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

enum { LOOKS = 400 };

struct worker {
    struct sim_workers *workers;
    uint32_t thread;
    pthread_t handle;
};

struct sim_workers {
    pthread_mutex_t lock;
    pthread_cond_t ready, made;
    struct sim_lane *first, *last; /* that are ready */
    atomic_bool any;               /* whether there are, for a look without the lock */
    uint32_t asleep;
    bool over;
    _Atomic(struct sim_job *) awaited; /* by a loop that sleeps */
    uint32_t threads, started;
    struct worker worker[]; /* [threads - 1], of which `started` run */
};

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static bool is_made(struct sim_job *job)
{
    return atomic_load_explicit(&job->made, memory_order_acquire);
}

/* ---- Under the lock -------------------------------------------------------------------------- */

static void list(struct sim_workers *w, struct sim_lane *lane, bool at_front)
{
    struct sim_lane *before = at_front ? NULL : w->last, *after = at_front ? w->first : NULL;
    lane->previous = before;
    lane->next = after;
    *(before ? &before->next : &w->first) = lane;
    *(after ? &after->previous : &w->last) = lane;
    lane->ready = true;
    atomic_store_explicit(&w->any, true, memory_order_relaxed);
}

static void unlist(struct sim_workers *w, struct sim_lane *lane)
{
    *(lane->previous ? &lane->previous->next : &w->first) = lane->next;
    *(lane->next ? &lane->next->previous : &w->last) = lane->previous;
    lane->ready = false;
    if (!w->first) atomic_store_explicit(&w->any, false, memory_order_relaxed);
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
        if (w->first) {
            make(w, w->first, NULL, self->thread);
            continue;
        }
        pthread_mutex_unlock(&w->lock);
        look_for_work(w);
        pthread_mutex_lock(&w->lock);
        if (w->first || w->over) continue;
        w->asleep++;
        pthread_cond_wait(&w->ready, &w->lock);
        w->asleep--;
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* ---- The loop's side ------------------------------------------------------------------------- */

void sim_workers_give(struct sim_workers *w, struct sim_lane *lane, struct sim_job *job)
{
    if (w->threads == 1) {
        job->make(job, 0);
        atomic_store_explicit(&job->made, true, memory_order_relaxed);
        return;
    }
    job->next = NULL;
    atomic_store_explicit(&job->made, false, memory_order_relaxed);
    pthread_mutex_lock(&w->lock);
    *(lane->last ? &lane->last->next : &lane->first) = job;
    lane->last = job;
    if (!lane->ready && !lane->busy) list(w, lane, false);
    bool wake = w->asleep > 0;
    pthread_mutex_unlock(&w->lock);
    if (wake) pthread_cond_signal(&w->ready);
}

/* Another thread makes it, and there is nothing else to do. */
static void sleep_until_made(struct sim_workers *w, struct sim_job *job)
{
    pthread_mutex_unlock(&w->lock);
    for (int i = 0; i < LOOKS && !is_made(job); i++)
        relax();
    pthread_mutex_lock(&w->lock);
    atomic_store(&w->awaited, job);
    if (!atomic_load(&job->made)) pthread_cond_wait(&w->made, &w->lock);
    atomic_store(&w->awaited, NULL);
}

void sim_workers_wait(struct sim_workers *w, struct sim_lane *lane, struct sim_job *job)
{
    if (is_made(job)) return;
    pthread_mutex_lock(&w->lock);
    while (!is_made(job)) {
        if (!lane->busy)
            make(w, lane, job, 0);
        else if (w->first)
            make(w, w->first, w->first->first, 0);
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
    if (!w || w->threads == 1) return;
    sim_workers_give(w, lane, &last);
    sim_workers_wait(w, lane, &last);
}

/* ---- Making and freeing ---------------------------------------------------------------------- */

int sim_workers_new(struct sim_workers **result, uint32_t threads)
{
    struct sim_workers *w = calloc(1, sizeof *w + (threads - 1) * sizeof *w->worker);
    *result = w;
    if (!w) return PARLEY_ENOMEM;
    w->threads = threads;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->ready, NULL);
    pthread_cond_init(&w->made, NULL);
    for (uint32_t i = 0; i + 1 < threads; i++) {
        struct worker *worker = &w->worker[i];
        worker->workers = w;
        worker->thread = i + 1;
        if (pthread_create(&worker->handle, NULL, work, worker)) return PARLEY_EFAIL;
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

uint32_t sim_workers_cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set)) return 1;
    int cores = CPU_COUNT(&set);
    return cores < SIM_THREADS_MAX ? (uint32_t)cores : SIM_THREADS_MAX;
}
