/* schedule.h: the faults of --fault, carried out in virtual time.
 *
 * A fault at a time is a call in the queue, and waits until the last node of the start is there;
 * one at a share of the budget strikes when the cluster has come that far; of a budget of time that
 * is a call, too, as time passes where nothing else happens. Who a number or a share
 * of the nodes are is drawn by the seed from those alive then. Of several of one kind that hold a
 * node at once the newest counts; when it ends, the one before it does again.
 */
#ifndef PARLEY_SIM_SCHEDULE_H
#define PARLEY_SIM_SCHEDULE_H

#include "settings/values/fault.h"
#include "world/cluster.h"

struct sim_schedule {
    struct parley_sim *sim;
    struct sim_planned *planned; /* [count]; owned */
    size_t count;
    uint32_t nodes;  /* at the start: what shares are of */
    double progress; /* of the budget, as last told */
    uint32_t strikes;
    uint64_t begun_us, time_us; /* a budget of time, and since when it counts; 0: none as yet */
    uint64_t woke_us;           /* when a pause last ended */
    /* Told of each fault as it is carried out, and as it ends: then its kind is "resume" of a
     * pause, "start" of a restart, else "slow-end" and so on. */
    void (*on_fault)(const char *kind, const char *target, void *arg);
    void *arg;
};

/* faults: borrowed. PARLEY_EUSAGE with why (a node that is not there), PARLEY_ENOMEM. */
PARLEY_CHECK int sim_schedule_init(struct sim_schedule *schedule, struct parley_sim *sim,
                                   const struct faults *faults, uint64_t seed, char *why,
                                   size_t why_size);
/* Training begins, with a budget of so much time, 0 for none: shares of it are times.
 * PARLEY_ENOMEM. */
PARLEY_CHECK int sim_schedule_begin(struct sim_schedule *schedule, uint64_t time_us);
/* The part of that time which has passed; 0: there is none, or it has not begun. */
double sim_schedule_passed(const struct sim_schedule *schedule);
/* The cluster has come to `progress`, in [0, 1], of its budget. */
void sim_schedule_progress(struct sim_schedule *schedule, double progress);
/* Whether some node runs, or is paused and to go on; and whether one has come to its end. Where one
 * has, and none runs, the run is over: no fault strikes or ends any more. */
bool sim_schedule_runs(const struct sim_schedule *schedule);
bool sim_schedule_ended(const struct sim_schedule *schedule);
/* Whether a node that is paused goes on, or one starts, at a time that is known. */
bool sim_schedule_wakes(const struct sim_schedule *schedule);
bool sim_schedule_starts(const struct sim_schedule *schedule);
/* Whether some node is down and to start again, at whatever time. */
bool sim_schedule_holds_down(const struct sim_schedule *schedule);
/* How many have not struck. */
size_t sim_schedule_left(const struct sim_schedule *schedule);
void sim_schedule_close(struct sim_schedule *schedule);

#endif
