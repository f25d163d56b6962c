/* picture.h: the curves of an experiment, its legend and its topologies, as parts of an SVG.
 * Thread rule: pure, but for what `reader` does.
 */
#ifndef PARLEY_SIM_PICTURE_H
#define PARLEY_SIM_PICTURE_H

#include "data/source.h"
#include "experiment/plan.h"
#include "report/text.h"
#include "run/report.h"

enum { PICTURE_WIDTH = 960 };

/* About the width of a character, in the font of text and in the smaller one of tables. */
#define PICTURE_CHARACTER 6.8

/* Each draws from `top` down, the legend from 0, and returns the height it took; a failure is the
 * text's. The legend makes *width, PICTURE_WIDTH or more, as large as its widest label needs. */
double picture_legend(struct text *svg, const struct plan *plan, double *width);
double picture_curves(struct text *svg, const struct plan *plan, const struct sim_outcome *outcomes,
                      double top);
double picture_topologies(struct text *svg, const struct plan *plan,
                          const struct sim_outcome *outcomes, const struct source_reader *reader,
                          double top);

/* Whether there are nodes alone beside the others: the axes of time end with the slowest of the
 * others. */
bool picture_cuts_single(const struct plan *plan);

#endif
