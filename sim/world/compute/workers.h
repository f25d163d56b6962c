/* workers.h: threads that compute while the loop goes on.
 *
 * A job is given to a lane; a lane's jobs are made one after the other, in the order given, by
 * whichever thread comes by. So who gives jobs in a fixed order, keeps what they work on apart by
 * lanes, and looks at results only after waiting for them, gets the same results with any number of
 * threads.
 *
 *     sim_workers_hold(workers, &lane, &early);   no hurry
 *     sim_workers_give(workers, &lane, &job);     ... other things ...
 *     sim_workers_wait(workers, &lane, &job);     who waits helps, the oldest work first
 *
 * What is held back is made together with what is given next: jobs of one lane that follow each
 * other in one thread find their vectors in its cache. Threads with nothing else to do make it,
 * too. With one thread jobs are made when one is given or waited for.
 *
 * Thread rule: one thread gives and waits, thread 0; jobs run in any, and call nothing of this.
 */
#ifndef PARLEY_SIM_WORKERS_H
#define PARLEY_SIM_WORKERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "parley/error.h"

enum { SIM_THREADS_MAX = 256 };

struct sim_workers; /* opaque */

/* Embedded in what the job is about; must live until it is made. */
struct sim_job {
    void (*make)(struct sim_job *job, uint32_t thread); /* thread: below the number of threads */
    struct sim_job *next;
    atomic_bool made; /* set true: nobody touches the job any more. A fresh one must say so too */
};

/* All zero at first; must live until it is drained. */
struct sim_lane {
    struct sim_job *first, *last;     /* given, and not yet taken */
    struct sim_lane *previous, *next; /* among the listed ones of its kind */
    bool listed, busy;                /* ready; in some thread's hands. Never both */
    bool wanted;                      /* not all of it is held back */
};

/* threads: the caller's included, 1 to SIM_THREADS_MAX; where no more are to be had, fewer do the
 * same. PARLEY_ENOMEM. */
PARLEY_CHECK int sim_workers_new(struct sim_workers **workers, uint32_t threads);
/* All lanes are drained. NULL is none. */
void sim_workers_free(struct sim_workers *workers);

void sim_workers_give(struct sim_workers *workers, struct sim_lane *lane, struct sim_job *job);
/* As give, but it may wait until another is given to that lane, or waited for. */
void sim_workers_hold(struct sim_workers *workers, struct sim_lane *lane, struct sim_job *job);
/* All that the lane holds back is given. */
void sim_workers_hurry(struct sim_workers *workers, struct sim_lane *lane);
/* Until the job is made, which was given to that lane (or was made from the start). */
void sim_workers_wait(struct sim_workers *workers, struct sim_lane *lane, struct sim_job *job);
static inline bool sim_workers_made(struct sim_job *job)
{
    return atomic_load_explicit(&job->made, memory_order_acquire);
}
/* Until all jobs of the lane are made. */
void sim_workers_drain(struct sim_workers *workers, struct sim_lane *lane);

/* Whether jobs in several threads may use BLAS (blas.c). */
bool sim_blas_is_safe(void);

#endif
