/* processes.c: jobs in processes of their own: results, the order of their ends, one that dies. */
#include <criterion/criterion.h>

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
    cr_assert_eq(processes_run(&job, JOBS, processes), 0);
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
