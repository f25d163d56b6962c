/* graph.h: a graph from a file: a link a line, two names of nodes with blanks between them; what
 * follows a # is a comment. Order and doubles don't matter.
 *
 * Thread rule: plain memory.
 */
#ifndef PARLEY_JOB_GRAPH_H
#define PARLEY_JOB_GRAPH_H

#include "data/source.h"
#include "parley/config.h"

struct settings;
struct topology;

struct graph {
    struct parley_graph graph; /* its arrays are owned */
    char *text;                /* that the names lie in; owned */
};

/* Reads what `topology` names if it is "file:PATH", else *graph is empty. To be closed after any
 * outcome. PARLEY_EDATA with a line that names file, line and what is wrong, also where the graph
 * falls into pieces; PARLEY_ENOMEM. */
PARLEY_CHECK int graph_load(struct graph *graph, const char *topology,
                            const struct source_reader *reader, char *why, size_t why_size);
/* The same of a text. `name`: of the file, for messages. */
PARLEY_CHECK int graph_parse(struct graph *graph, const char *name, const uint8_t *bytes,
                             size_t size, char *why, size_t why_size);
void graph_close(struct graph *graph);

/* Whether it has n0 to n(nodes-1), and links among them make them one piece. PARLEY_EDATA with a
 * line that names the first that it lacks, or two that are apart; PARLEY_ENOMEM. */
PARLEY_CHECK int graph_covers(const struct graph *graph, const char *topology, uint64_t nodes,
                              char *why, size_t why_size);
/* Whether it has links of others, which then are nobody's; a remark that names one of them. */
bool graph_strangers(const struct graph *graph, const char *topology, uint64_t nodes, char *remark,
                     size_t size);
/* Whether n0 to n(nodes-1) can train by the settings' topology: it covers them, and a round of the
 * strategy has room for the neighbours that each has among them. PARLEY_EDATA likewise. */
PARLEY_CHECK int graph_fits(const struct graph *graph, const struct settings *settings,
                            uint64_t nodes, char *why, size_t why_size);
/* Who averages with whom among n0 to n(nodes-1), which have places by their names, or with 0 nodes
 * among all of the graph: that of the same spec, which covers those nodes, and is borrowed. To be
 * closed after any outcome. PARLEY_EUSAGE as topology_parse(), PARLEY_ENOMEM. */
PARLEY_CHECK int graph_topology(const struct graph *graph, const char *spec, uint32_t nodes,
                                uint64_t seed, struct topology *topology, char *why,
                                size_t why_size);
/* Equal for equal graphs. */
uint64_t graph_digest(const struct graph *graph);

#endif
