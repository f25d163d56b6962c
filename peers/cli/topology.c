/* topology.c: `parley topology NAME -n N`: edges, degrees, spectral gap, or the graph for Graphviz.
 *
 * Each of the graphs looks the same from every node: nodes are the elements of a cyclic group (of a
 * product of two for the torus) and links go to node + s, s in one set S. So the eigenvalues are
 * sums of cosines over S, exact and without iteration (Lovasz, "Spectra of graphs with transitive
 * groups", Period. Math. Hung. 6, 1975). The gap is that of (I + A/d)/2: everyone averages with one
 * random neighbour; on average the distance to the mean shrinks by 1 - gap a round.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "core/topology.h"

enum { NODES_MAX = 4096, LISTED_MAX = 16 };

struct graph {
    enum parley_topology topology;
    uint32_t n;
    uint32_t columns; /* of the grid; n for the others */
    uint32_t *links;  /* [degree]: neighbours of node 0; owned */
    uint32_t degree;
};

static int make_graph(struct graph *graph, const char *name, uint32_t n)
{
    memset(graph, 0, sizeof *graph);
    graph->topology = topology_of_name(name);
    graph->n = graph->columns = n;
    if (graph->topology == PARLEY_TOPOLOGY_TORUS)
        for (uint32_t rows = 1; rows * rows <= n; rows++)
            if (n % rows == 0) graph->columns = n / rows;
    graph->links = calloc(n, sizeof *graph->links);
    if (!graph->links) return PARLEY_ENOMEM;
    for (uint32_t b = 1; b < n; b++)
        if (topology_linked(graph->topology, n, 0, b)) graph->links[graph->degree++] = b;
    return 0;
}

/* The eigenvalue of A/d that belongs to the character (row, column). */
static double eigenvalue(const struct graph *graph, uint32_t row, uint32_t column)
{
    const double turn = 6.283185307179586476925;
    uint32_t rows = graph->n / graph->columns;
    double sum = 0;
    for (uint32_t i = 0; i < graph->degree; i++) {
        uint32_t y = graph->links[i] / graph->columns, x = graph->links[i] % graph->columns;
        /* The products are reduced first: large angles would lose digits. */
        double angle = (double)((uint64_t)row * y % rows) / rows +
                       (double)((uint64_t)column * x % graph->columns) / graph->columns;
        sum += cos(turn * angle);
    }
    return sum / graph->degree;
}

static double spectral_gap(const struct graph *graph)
{
    double second = -1;
    if (graph->degree == 0) return 1;
    for (uint32_t k = 1; k < graph->n; k++) {
        double value = eigenvalue(graph, k / graph->columns, k % graph->columns);
        if (value > second) second = value;
    }
    double gap = (1 - second) / 2;
    return gap > 1e-15 ? gap : 0;
}

static void print_dot(const struct graph *graph)
{
    printf("graph parley {\n  layout=circo;\n");
    for (uint32_t a = 0; a < graph->n; a++)
        printf("  n%" PRIu32 ";\n", a);
    for (uint32_t a = 0; a < graph->n; a++)
        for (uint32_t b = a + 1; b < graph->n; b++)
            if (topology_linked(graph->topology, graph->n, a, b))
                printf("  n%" PRIu32 " -- n%" PRIu32 ";\n", a, b);
    printf("}\n");
}

static void print_figures(const struct graph *graph, const char *name)
{
    double gap = spectral_gap(graph);
    printf("topology      %s of %" PRIu32 " nodes", name, graph->n);
    if (graph->topology == PARLEY_TOPOLOGY_TORUS)
        printf(", %" PRIu32 " by %" PRIu32, graph->n / graph->columns, graph->columns);
    printf("\ndegree        %" PRIu32 " at every node\n", graph->degree);
    printf("edges         %" PRIu64 "\n", (uint64_t)graph->n * graph->degree / 2);
    printf("spectral gap  %.6g of (I + A/d)/2", gap);
    if (gap > 0 && gap < 1)
        printf("; about %.0f rounds for a thousandth", ceil(log(1000) / -log(1 - gap)));
    printf("\n");
    for (uint32_t a = 0; graph->n <= LISTED_MAX && a < graph->n; a++) {
        char node[16];
        snprintf(node, sizeof node, "n%" PRIu32, a);
        printf("%-13s", node);
        for (uint32_t b = 0; b < graph->n; b++)
            if (b != a && topology_linked(graph->topology, graph->n, a, b)) printf(" n%" PRIu32, b);
        printf("\n");
    }
}

int topology_command(const struct settings *settings)
{
    struct graph graph;
    if (settings->nodes > NODES_MAX) {
        say_error("--nodes: %" PRIu64 " are more than the %d that are drawn here", settings->nodes,
                  NODES_MAX);
        return parley_error_status(PARLEY_EUSAGE);
    }
    int error = make_graph(&graph, settings->operands[0], (uint32_t)settings->nodes);
    if (error) return say_failure(error, NULL);
    if (settings->dot)
        print_dot(&graph);
    else
        print_figures(&graph, settings->operands[0]);
    free(graph.links);
    return fflush(stdout) == EOF ? 1 : 0;
}
