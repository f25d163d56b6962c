/* gap.c: what two snapshots differ by, for both ends of an exchange.
 *
 * The ends ask for opposite differences of the same two blocks, which nobody writes while the gap
 * holds them. So the figures are computed once, by a job beside the lane of the end that asks first
 * (the steps that lie there may wait), and the floats where they are added: no end writes a
 * difference to memory.
 */
#include "world/compute/gap.h"

#include <stdlib.h>

static void gap_make(struct sim_job *job, uint32_t thread)
{
    struct sim_gap *gap = (struct sim_gap *)job; /* its first member */
    const struct parley_sim *sim = gap->host->sim;
    (void)thread;
    mix_gap(gap->theirs->x, gap->ours->x, sim->parameters, sim->run, &gap->figures);
}

/* The newest that was asked for of these two with the other sign, if it still lives. */
static struct sim_gap *find(const struct sim_block *theirs, const struct sim_block *ours)
{
    struct sim_gap *gap = theirs->newest;
    return gap && gap->theirs == ours ? gap : NULL;
}

struct sim_gap *sim_gap_of(struct sim_host *host, struct sim_block *theirs, struct sim_block *ours,
                           bool *mirrored)
{
    struct sim_gap *gap = find(theirs, ours);
    *mirrored = gap != NULL;
    if (gap) return sim_gap_hold(gap);
    gap = calloc(1, sizeof *gap);
    if (!gap) {
        sim_fail(host->sim, PARLEY_ENOMEM, "no memory for a difference");
        return NULL;
    }
    *gap = (struct sim_gap){.job = {.make = gap_make}, .users = 1, .host = host};
    gap->theirs = sim_block_hold(theirs);
    gap->ours = sim_block_hold(ours);
    ours->newest = gap;
    sim_workers_give(host->sim->workers, &host->aside, &gap->job);
    return gap;
}

struct sim_gap *sim_gap_hold(struct sim_gap *gap)
{
    gap->users++;
    return gap;
}

void sim_gap_release(struct sim_gap *gap)
{
    if (!gap || --gap->users > 0) return;
    sim_gap_wait(gap);
    if (gap->ours->newest == gap) gap->ours->newest = NULL;
    sim_block_release(gap->host->sim, gap->theirs);
    sim_block_release(gap->host->sim, gap->ours);
    free(gap);
}

void sim_gap_wait(struct sim_gap *gap)
{
    sim_workers_wait(gap->host->sim->workers, &gap->host->aside, &gap->job);
}
