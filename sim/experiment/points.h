/* points.h: the curves of an experiment as CSV, a row a point of a run. Thread rule: pure. */
#ifndef PARLEY_SIM_POINTS_H
#define PARLEY_SIM_POINTS_H

#include "experiment/plan.h"
#include "run/report.h"

/* Columns are named as the fields of JSON lines; swept settings, too, with "_" for "-" (which makes
 * none of them the name of another column). Freed by the caller; NULL: no memory. */
char *points_csv_head(const struct plan *plan);

/* The rows of run `i` of the plan, oldest first. An empty field is not known: points after the last
 * local step have drift alone, but for the last: the agreed model, and the drift that was left
 * before all took it. Likewise freed. */
char *points_csv_rows(const struct plan *plan, uint32_t i, const struct sim_outcome *outcome);

#endif
