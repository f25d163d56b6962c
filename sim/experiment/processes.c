/* processes.c: see processes.h. Workers take the next job from a shared counter, and write its
 * number into a pipe when it is made.
 */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "experiment/processes.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

void *processes_share(size_t size)
{
    void *memory =
        mmap(NULL, size ? size : 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void processes_unshare(void *memory, size_t size)
{
    if (memory) munmap(memory, size ? size : 1);
}

static void make_all(const struct processes_job *job, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        job->make(job->arg, i);
        job->ended(job->arg, i, false);
    }
}

/* A worker's life, which ends with the caller's: nobody else would hear of its jobs. Numbers of 4
 * bytes are written into a pipe in one piece. */
static void work(const struct processes_job *job, uint32_t count, _Atomic uint32_t *next, int pipe,
                 pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    for (uint32_t i; (i = atomic_fetch_add(next, 1)) < count;) {
        job->make(job->arg, i);
        while (write(pipe, &i, sizeof i) < 0 && errno == EINTR)
            continue;
    }
    _exit(0);
}

/* Tells of ends in the order of the jobs until no worker is left. */
static void listen(const struct processes_job *job, uint32_t count, bool *made, int pipe)
{
    uint32_t i, told = 0;
    for (;;) {
        ssize_t size = read(pipe, &i, sizeof i);
        if (size < 0 && errno == EINTR) continue;
        if (size != (ssize_t)sizeof i) break;
        made[i] = true;
        while (told < count && made[told])
            job->ended(job->arg, told++, false);
    }
    for (; told < count; told++)
        job->ended(job->arg, told, !made[told]);
}

int processes_run(const struct processes_job *job, uint32_t count, uint32_t processes)
{
    if (processes > count) processes = count;
    if (processes <= 1) {
        make_all(job, count);
        return 0;
    }
    int ends[2] = {-1, -1}, error = PARLEY_ENOMEM;
    uint32_t begun = 0;
    pid_t parent = getpid();
    _Atomic uint32_t *next = processes_share(sizeof *next);
    bool *made = calloc(count, sizeof *made);
    pid_t *workers = calloc(processes, sizeof *workers);
    if (!next || !made || !workers || pipe(ends) != 0) goto out;
    fflush(NULL); /* or each worker would have the lines not yet written */
    while (begun < processes && (workers[begun] = fork()) >= 0) {
        if (workers[begun] == 0) {
            close(ends[0]);
            work(job, count, next, ends[1], parent);
        }
        begun++;
    }
    close(ends[1]);
    ends[1] = -1;
    error = 0;
    if (begun > 0)
        listen(job, count, made, ends[0]);
    else
        make_all(job, count);
    for (uint32_t w = 0; w < begun; w++)
        while (waitpid(workers[w], NULL, 0) < 0 && errno == EINTR)
            continue;
out:
    for (int e = 0; e < 2; e++)
        if (ends[e] >= 0) close(ends[e]);
    processes_unshare((void *)next, sizeof *next);
    free(made);
    free(workers);
    return error;
}
