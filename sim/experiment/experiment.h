/* experiment.h: `parley sim`: the runs that its settings stand for, and what is said of them.
 *
 * A single run speaks for itself. Of several, each gives one `summary` line, in the order of the
 * plan, and at the end there is a table. They share their data, run side by side in processes,
 * --threads of them, and do not depend on each other, so the results are the same for any number of
 * threads. SIGINT and SIGTERM break off those of several that are under way: what was made is told
 * as ever, then the signal ends the process.
 */
#ifndef PARLEY_SIM_EXPERIMENT_H
#define PARLEY_SIM_EXPERIMENT_H

#include "data/source.h"
#include "settings/settings.h"

/* 0, or the error of the first run that failed (the others are made all the same), or why none
 * could be made; said by then. Calls `reader` from one thread. */
PARLEY_CHECK int sim_experiment(const struct settings *settings,
                                const struct source_reader *reader);

#endif
