/* run.h: one run of `parley sim`, in command.c. */
#ifndef PARLEY_SIM_RUN_H
#define PARLEY_SIM_RUN_H

#include "data/source.h"
#include "run/report.h"
#include "settings/settings.h"

enum sim_run_how {
    SIM_RUN_SILENT = 1, /* one of many: nothing is printed but what broke it */
    SIM_RUN_CURVE = 2   /* points are taken along the run */
};

/* settings: finished, without sweeps; data: borrowed, may be shared by runs in other threads;
 * reader: of other files that settings name.
 * outcome: zeroed but for its fates, which are NULL or have sim_run_nodes() places. Its error has
 * been said: PARLEY_ENO_AGREEMENT, PARLEY_EINVARIANT, PARLEY_EDIVERGED, PARLEY_EUSAGE,
 * PARLEY_ENOMEM. */
void sim_run(const struct settings *settings, const struct source *data,
             const struct source_reader *reader, unsigned how, struct sim_outcome *outcome);

/* The nodes of a run, with those that join later. */
uint32_t sim_run_nodes(const struct settings *settings);

#endif
