/* processes.h: jobs that know nothing of each other, side by side in processes of their own.
 *
 * Decision: processes, not threads. A serial OpenBLAS is not safe in two threads at once, and a job
 * that fails an assertion takes no other with it. Given up: results must lie in memory from
 * processes_share(), without pointers to what a job allocates.
 * Decision: SIGINT and SIGTERM break off what is under way: a job may take hours.
 * Thread rule: the calling process has one thread.
 */
#ifndef PARLEY_SIM_PROCESSES_H
#define PARLEY_SIM_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "parley/error.h"

struct processes_job {
    void (*make)(void *arg, uint32_t job);
    /* In the calling process, in the order of the jobs. died: its process ended within the job. */
    void (*ended)(void *arg, uint32_t job, bool died);
    void *arg;
};

/* Makes jobs 0 to count - 1 in at most so many processes at a time; one job alone, or where no
 * other process is to be had, all in the caller's own. *stopped: 0, or the signal, SIGINT or
 * SIGTERM, that stopped it while others were at work; then only jobs that were made are told of,
 * and both signals are held until processes_stop(). PARLEY_ENOMEM: none was made. */
PARLEY_CHECK int processes_run(const struct processes_job *job, uint32_t count, uint32_t processes,
                               int *stopped);

/* Ends this process by that signal, as if nobody had heard it. */
void processes_stop(int stopped);

/* Zeroed memory that jobs write and the caller reads; NULL: none is left. */
void *processes_share(size_t size);
void processes_unshare(void *memory, size_t size); /* NULL is none */

#endif
