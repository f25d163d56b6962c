/* processes.h: jobs that know nothing of each other, side by side in processes of their own.
 *
 * Decision: processes, not threads. A serial OpenBLAS is not safe in two threads at once, and a job
 * that fails an assertion takes no other with it. Given up: results must lie in memory from
 * processes_share(), without pointers to what a job allocates.
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

/* Makes jobs 0 to count - 1 in at most so many processes at a time; with one, or where no other is
 * to be had, in the caller's own. PARLEY_ENOMEM: none was made. */
PARLEY_CHECK int processes_run(const struct processes_job *job, uint32_t count, uint32_t processes);

/* Zeroed memory that jobs write and the caller reads; NULL: none is left. */
void *processes_share(size_t size);
void processes_unshare(void *memory, size_t size); /* NULL is none */

#endif
