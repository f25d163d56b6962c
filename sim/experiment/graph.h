/* graph.h: a picture of who averages with whom: nodes on a circle in the order of their names,
 * which is the order that topologies go by. Thread rule: pure, but for what `reader` does.
 */
#ifndef PARLEY_SIM_GRAPH_H
#define PARLEY_SIM_GRAPH_H

#include "data/source.h"
#include "report/text.h"
#include "run/report.h"

enum { GRAPH_WIDTH = 300, GRAPH_HEIGHT = 336, GRAPH_EDGES_MAX = 3000 };

/* In a box of GRAPH_WIDTH by GRAPH_HEIGHT with its corner at (left, top). Links are those of the
 * nodes there at the start; who died is marked, who joined later too. `label`: what tells it from
 * others beside topology and nodes, or NULL; reader: for a graph in a file. PARLEY_ENOMEM. */
PARLEY_CHECK int graph_draw(struct text *svg, const struct settings *settings,
                            const struct sim_outcome *outcome, const struct source_reader *reader,
                            const char *label, double left, double top);

#endif
