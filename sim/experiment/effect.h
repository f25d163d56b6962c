/* effect.h: what a swept setting does to the end results: a chart of them against its values, with
 * a line for each strategy and each combination of the other settings. Thread rule: pure.
 */
#ifndef PARLEY_SIM_EFFECT_H
#define PARLEY_SIM_EFFECT_H

#include "experiment/plan.h"
#include "report/text.h"
#include "run/report.h"

/* Charts for the settings that were swept over at least three numbers, the seed apart, from `top`
 * down. Returns the height they took, 0 without any; a failure is the text's. */
double effect_charts(struct text *svg, const struct plan *plan, const struct sim_outcome *outcomes,
                     double top);

#endif
