/* processes.c: jobs in processes of their own: results, the order of their ends, one that dies, and
 * the end of the process that started them. */
#include <criterion/criterion.h>

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../sim/experiment/processes.h"

enum { JOBS = 20, BAD = 7 };

struct scene {
    uint32_t *squares; /* [JOBS], shared */
    uint32_t ended, dead;
    bool ordered, dies;
};

static void make(void *arg, uint32_t job)
{
    struct scene *scene = arg;
    if (scene->dies && job == BAD) _exit(3);
    scene->squares[job] = job * job + 1;
}

static void end(void *arg, uint32_t job, bool died)
{
    struct scene *scene = arg;
    scene->ordered = scene->ordered && job == scene->ended++;
    scene->dead += died;
    if (died) cr_assert_eq(job, BAD);
    if (!died) cr_assert_eq(scene->squares[job], job * job + 1);
}

static void play(uint32_t processes, bool dies)
{
    struct scene scene = {.ordered = true, .dies = dies};
    const struct processes_job job = {make, end, &scene};
    scene.squares = processes_share(JOBS * sizeof *scene.squares);
    cr_assert_not_null(scene.squares);
    int stopped;
    cr_assert_eq(processes_run(&job, JOBS, processes, &stopped), 0);
    cr_assert_eq(stopped, 0);
    cr_assert_eq(scene.ended, JOBS);
    cr_assert(scene.ordered);
    cr_assert_eq(scene.dead, dies);
    processes_unshare(scene.squares, JOBS * sizeof *scene.squares);
}

Test(processes, ends_are_told_in_order_with_the_results)
{
    for (uint32_t processes = 1; processes <= 4; processes++)
        play(processes, false);
    play(100, false);
}

Test(processes, one_that_dies_is_told_and_the_others_go_on)
{
    play(2, true);
    play(4, true);
}

/* Says that it is there, and waits for what only the test's own end ends. */
static void stay(void *arg, uint32_t job)
{
    int end = *(int *)arg;
    uint8_t number = (uint8_t)job;
    (void)!write(end, &number, 1);
    (void)!read(end, &number, 1);
}

/* The first job has an end of its own. */
static void linger(void *arg, uint32_t job)
{
    if (job > 0) stay(arg, job);
}

static void tell(void *arg, uint32_t job, bool died)
{
    uint8_t number = died ? 99 : (uint8_t)(10 + job);
    (void)!write(*(int *)arg, &number, 1);
}

/* Proves: a signal breaks jobs off, at one worker, too; what was made is told of, nothing else is,
 * and the caller ends by that signal once it has done what it has to do. */
static void interrupt(uint32_t processes, int number)
{
    int ends[2], status;
    uint8_t said[4];
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    pid_t caller = fork();
    cr_assert_geq(caller, 0);
    if (caller == 0) {
        close(ends[0]);
        const struct processes_job job = {linger, tell, &ends[1]};
        int stopped, error = processes_run(&job, 4, processes, &stopped);
        raise(number); /* as timeout(1) sends it twice */
        tell(&ends[1], 40, false);
        if (!error) processes_stop(stopped);
        _exit(0);
    }
    close(ends[1]);
    for (uint32_t i = 0; i < 1 + processes; i++) /* those that wait, and the end of the first */
        cr_assert_eq(read(ends[0], &said[i], 1), 1);
    kill(caller, number);
    cr_assert_eq(waitpid(caller, &status, 0), caller);
    cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == number, "%d", status);
    cr_assert_eq(read(ends[0], said, 2), 1, "told of more than the first");
    cr_assert_eq(said[0], 50);
    close(ends[0]);
}

Test(processes, a_signal_leaves_what_is_made, .timeout = 60)
{
    interrupt(1, SIGTERM);
    interrupt(3, SIGINT);
}

static void hear(void *arg, uint32_t job, bool died)
{
}

/* Proves: whoever ends the process that called ends the jobs, too: none goes on unseen. */
Test(processes, jobs_end_with_the_process_that_called, .timeout = 60)
{
    int ends[2];
    uint8_t number;
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    pid_t caller = fork();
    cr_assert_geq(caller, 0);
    if (caller == 0) {
        close(ends[0]);
        const struct processes_job job = {stay, hear, &ends[1]};
        int stopped;
        _exit(processes_run(&job, 2, 2, &stopped));
    }
    close(ends[1]);
    for (int i = 0; i < 2; i++)
        cr_assert_eq(read(ends[0], &number, 1), 1);
    kill(caller, SIGKILL);
    cr_assert_eq(waitpid(caller, NULL, 0), caller);
    cr_assert_eq(read(ends[0], &number, 1), 0, "a job goes on");
    close(ends[0]);
}
