/* page.h: the report of an experiment: one file with curves, end results, topologies, and what
 * repeats it. Nothing in it comes from elsewhere; it follows the reader's light or dark.
 */
#ifndef PARLEY_SIM_PAGE_H
#define PARLEY_SIM_PAGE_H

#include "data/source.h"
#include "experiment/plan.h"
#include "run/report.h"

/* Before the runs: PARLEY_EUSAGE (a name that ends neither in .html nor in .svg, or can't be
 * written), said; PARLEY_ENOMEM. */
PARLEY_CHECK int page_check(const char *path);

/* outcomes: [plan->count]; reader: for graphs in files. PARLEY_EFAIL (said), PARLEY_ENOMEM. */
PARLEY_CHECK int page_write(const char *path, const struct plan *plan,
                            const struct sim_outcome *outcomes, const struct source_reader *reader);

#endif
