/* processes.c: see processes.h. Workers take the next job from a shared counter, and write its
 * number into a pipe when it is made.
 *
 * SIGINT and SIGTERM are blocked meanwhile, in the workers too: a terminal sends them to all, and
 * what is to become of the workers is for the caller to say. It reads them beside the pipe.
 */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "experiment/processes.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
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

/* ---- Signals --------------------------------------------------------------------------------- */

/* Those that ask for the end; not one that is ignored, as of a job in the background of a script.
 */
static void ends_asked(sigset_t *set)
{
    static const int numbers[] = {SIGINT, SIGTERM};
    struct sigaction now;
    sigemptyset(set);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (sigaction(numbers[i], NULL, &now) != 0 || now.sa_handler != SIG_IGN)
            sigaddset(set, numbers[i]);
}

void processes_stop(int stopped)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, stopped);
    raise(stopped);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* ---- The caller ------------------------------------------------------------------------------ */

struct workers {
    pid_t *pids; /* [count] */
    uint32_t count;
    int pipe, signals;
};

/* The signal that came; its workers' jobs are broken off. */
static int stop(const struct workers *workers)
{
    struct signalfd_siginfo info;
    if (read(workers->signals, &info, sizeof info) != (ssize_t)sizeof info) return 0;
    for (uint32_t w = 0; w < workers->count; w++)
        kill(workers->pids[w], SIGKILL);
    return (int)info.ssi_signo;
}

/* Tells of ends in the order of the jobs until no worker is left. Returns the signal that stopped
 * them, or 0. */
static int listen(const struct processes_job *job, uint32_t count, bool *made,
                  const struct workers *workers)
{
    uint32_t i, told = 0;
    int stopped = 0;
    for (;;) {
        struct pollfd from[] = {{workers->pipe, POLLIN, 0},
                                {stopped ? -1 : workers->signals, POLLIN, 0}};
        if (poll(from, 2, -1) < 0) continue;
        if (from[1].revents) stopped = stop(workers);
        if (!from[0].revents) continue;
        if (read(workers->pipe, &i, sizeof i) != (ssize_t)sizeof i) break;
        made[i] = true;
        while (told < count && made[told])
            job->ended(job->arg, told++, false);
    }
    for (; told < count; told++)
        if (made[told] || !stopped) job->ended(job->arg, told, !made[told]);
    return stopped;
}

/* As many workers as there are to be, or as can be had. */
static void begin(struct workers *workers, const struct processes_job *job, uint32_t count,
                  uint32_t processes, _Atomic uint32_t *next, const int ends[2])
{
    pid_t parent = getpid();
    fflush(NULL); /* or each worker would have the lines not yet written */
    while (workers->count < processes) {
        pid_t pid = fork();
        if (pid < 0) return;
        if (pid == 0) {
            close(ends[0]);
            work(job, count, next, ends[1], parent);
        }
        workers->pids[workers->count++] = pid;
    }
}

int processes_run(const struct processes_job *job, uint32_t count, uint32_t processes, int *stopped)
{
    *stopped = 0;
    if (count <= 1) {
        make_all(job, count);
        return 0;
    }
    int ends[2] = {-1, -1}, error = PARLEY_ENOMEM;
    struct workers workers = {.signals = -1};
    sigset_t asked, before;
    ends_asked(&asked);
    sigprocmask(SIG_BLOCK, &asked, &before);
    if (processes > count) processes = count;
    _Atomic uint32_t *next = processes_share(sizeof *next);
    bool *made = calloc(count, sizeof *made);
    workers.pids = calloc(processes, sizeof *workers.pids);
    if (!next || !made || !workers.pids || pipe(ends) != 0) goto out;
    workers.pipe = ends[0];
    workers.signals = signalfd(-1, &asked, SFD_CLOEXEC);
    if (workers.signals < 0) goto out;
    begin(&workers, job, count, processes, next, ends);
    close(ends[1]);
    ends[1] = -1;
    error = 0;
    if (workers.count > 0) *stopped = listen(job, count, made, &workers);
    for (uint32_t w = 0; w < workers.count; w++)
        while (waitpid(workers.pids[w], NULL, 0) < 0 && errno == EINTR)
            continue;
out:
    if (!*stopped) sigprocmask(SIG_SETMASK, &before, NULL);
    if (!error && workers.count == 0) make_all(job, count);
    if (workers.signals >= 0) close(workers.signals);
    for (int e = 0; e < 2; e++)
        if (ends[e] >= 0) close(ends[e]);
    processes_unshare((void *)next, sizeof *next);
    free(made);
    free(workers.pids);
    return error;
}
