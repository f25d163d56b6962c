/* plan.h: which runs an experiment is made of: every combination of the swept settings, for each
 * strategy that is compared.
 *
 * Strategies come first, then the settings in the order of the table, the seed last: runs that
 * differ in their seed alone stand together and are a group, of which tables show mean and spread.
 * What a strategy does not heed is left out of its settings, and swept values of it are one run.
 * A setting that one of those compared has of its own stands beside the swept ones; of the others
 * its value is that of all.
 * With --compare, runs of a single node come last, with the same budget of samples; what says
 * nothing to one node (the network, mixing, faults) is left out of their settings, and those that
 * are then alike are one run.
 */
#ifndef PARLEY_SIM_PLAN_H
#define PARLEY_SIM_PLAN_H

#include <stdbool.h>

#include "report/text.h"
#include "settings/contenders.h"
#include "settings/settings.h"

enum { PLAN_RUNS_MAX = 10000 };

struct plan_run {
    struct settings settings;            /* of this run alone; owned */
    const char *strategy;                /* its name, or "single" */
    const char *values[OPTION_ID_COUNT]; /* [axes_count]; NULL: unset, or says nothing to this run;
                                            borrowed */
    uint32_t group;
    bool made; /* by who makes it: it has an outcome */
};

struct plan {
    const struct settings *base; /* borrowed */
    struct contenders contenders;
    enum option_id axes[OPTION_ID_COUNT]; /* [axes_count]: settings that runs differ in */
    uint32_t axes_count;
    bool seeds; /* the last axis is the seed */
    struct plan_run **runs;
    uint32_t count, groups;
    uint32_t planned; /* more than count: plan_drop_unmade() has dropped some */
};

/* To be closed after any outcome. PARLEY_EUSAGE with a line in why, PARLEY_ENOMEM. */
PARLEY_CHECK int plan_init(struct plan *plan, const struct settings *base,
                           char why[SETTINGS_WHY_BYTES]);
void plan_close(struct plan *plan);

/* Where not all could be made: keeps the runs that were, and the groups that have one. */
void plan_drop_unmade(struct plan *plan);

/* Whether it is that of a node alone, which --compare adds. */
bool plan_is_single(const struct plan_run *run);

/* "--codec changes nothing for push-sum, noloco\n": a line for each option that was given, is not
 * swept, and is for others of the strategies. Freed by the caller; NULL: no memory. */
char *plan_unheeded(const struct plan *plan);

/* "allreduce, ps-bsp: --lr times 8 (--lr-scale cluster), --warmup 0.05\n": where runs differ
 * in these, a line for each kind of those whose rate is not --lr by the schedule alone. Freed by
 * the caller; NULL: no memory. */
char *plan_rates(const struct plan *plan);

/* "gossip, mix-every 4, seed 1". Freed by the caller; NULL: no memory. */
char *plan_label(const struct plan *plan, const struct plan_run *run, bool with_seed);

/* {"mix-every":4,"seed":1}; NULL where nothing is swept, or there is no memory (*error). */
char *plan_json(const struct plan *plan, const struct plan_run *run, int *error);

/* Adds ",4,1": the same values as fields of CSV, empty where one says nothing to the run. */
void plan_fields(struct text *text, const struct plan *plan, const struct plan_run *run);

#endif
