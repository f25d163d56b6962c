/* topology.c: `parley topology NAME -n N`: edges, degrees, spectral gaps, or the graph for
 * Graphviz.
 *
 * The gap of gossip is that of the expected round: n / 2 exchanges, one a node on average, each of
 * a random node with a random neighbour. E[W] = I - L/2, where L is the Laplacian with weights
 * (1/d_a + 1/d_b)/2 (Boyd et al. 2006, section II). E[W] bounds two things after k exchanges from
 * the worst start: the distance of the expected models to the mean is (1 - 2 gap/n)^k of what it
 * was, which is the least that the rms distance can be; and the expected squared distance is that
 * at most. So the rms distance is a thousandth after so many exchanges, or twice as many, or
 * between: simulated, a ring of 16 takes 1.01 times as many, the complete graph twice as many. The
 * gap of synchronous rounds is of their weights; the distance shrinks by 1 - gap a round, from the
 * worst start. Eigenvalues are LAPACK's, of the dense matrix.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "core/topology/topology.h"
#include "job/graph.h"
#include "read_file.h"
#include "report/places.h"

enum { NODES_MAX = 2048, LISTED_MAX = 16 };

/* LAPACK, in OpenBLAS; its C header is not installed with it. */
void dsyev_(const char *job, const char *half, const int *n, double *a, const int *lda,
            double *values, double *work, const int *lwork, int *info);

struct plot {
    struct topology topology;
    struct graph file;
    uint32_t *nodes;   /* [n] the number of the node at each place */
    uint32_t *degrees; /* [n] */
    double *matrix;    /* [n * n] */
    double *values;    /* [n] eigenvalues, rising */
};

static const char *name_of(const struct plot *plot, uint32_t a, char name[16])
{
    const struct topology *t = &plot->topology;
    if (t->graph) return t->graph->names[t->table[a]];
    snprintf(name, 16, "n%" PRIu32, plot->nodes[a]);
    return name;
}

static void plot_close(struct plot *plot)
{
    free(plot->values);
    free(plot->matrix);
    free(plot->degrees);
    free(plot->nodes);
    topology_close(&plot->topology);
    graph_close(&plot->file);
}

static int plot_init(struct plot *plot, const struct settings *settings, char *why, size_t size)
{
    const char *spec = settings->operands[0];
    uint32_t n = (uint32_t)settings->nodes;
    bool sized = settings->values[OPTION_ID_NODES].origin > ORIGIN_DEFAULT;
    int error = graph_load(&plot->file, spec, &file_reader, why, size);
    if (!error && sized) error = graph_covers(&plot->file, spec, n, why, size);
    if (error) return error;
    bool whole = plot->file.text && !sized;
    if (whole) n = plot->file.graph.nodes;
    if (n > NODES_MAX) {
        snprintf(why, size, "%" PRIu32 " nodes are more than the %d that are drawn here", n,
                 NODES_MAX);
        return PARLEY_EUSAGE;
    }
    error = graph_topology(&plot->file, spec, whole ? 0 : n, settings->seed, &plot->topology, why,
                           size);
    if (error) return error;
    plot->nodes = malloc(n * sizeof *plot->nodes);
    plot->degrees = malloc(n * sizeof *plot->degrees);
    plot->matrix = malloc((size_t)n * n * sizeof *plot->matrix);
    plot->values = malloc(n * sizeof *plot->values);
    if (!plot->nodes || !plot->degrees || !plot->matrix || !plot->values) return PARLEY_ENOMEM;
    places_by_name(plot->nodes, n);
    for (uint32_t a = 0; a < n; a++)
        plot->degrees[a] = topology_degree(&plot->topology, a);
    return 0;
}

/* ---- Gaps ------------------------------------------------------------------------------------ */

static double gossip_weight(const struct plot *plot, uint32_t a, uint32_t b)
{
    return (1.0 / plot->degrees[a] + 1.0 / plot->degrees[b]) / 4;
}

static double metropolis_weight(const struct plot *plot, uint32_t a, uint32_t b)
{
    return topology_metropolis(plot->degrees[a], plot->degrees[b]);
}

/* 1 less the largest eigenvalue but for the first; of rounds, in which all move at once, in size.
 */
static double spectral_gap(struct plot *plot,
                           double (*weight)(const struct plot *, uint32_t, uint32_t), bool at_once)
{
    int n = (int)plot->topology.n, info = 0, room = -1;
    double best = 0, *work = NULL;
    if (n == 1) return 1;
    memset(plot->matrix, 0, (size_t)n * (size_t)n * sizeof *plot->matrix);
    for (int a = 0; a < n; a++)
        plot->matrix[a * n + a] = 1;
    for (int a = 0; a < n; a++)
        for (int b = 0; b < a; b++) {
            if (!topology_linked(&plot->topology, (uint32_t)a, (uint32_t)b)) continue;
            double w = weight(plot, (uint32_t)a, (uint32_t)b);
            plot->matrix[b * n + a] = w;
            plot->matrix[a * n + a] -= w;
            plot->matrix[b * n + b] -= w;
        }
    /* The first call asks for the room it wants. */
    dsyev_("N", "L", &n, plot->matrix, &n, plot->values, &best, &room, &info);
    room = (int)best;
    work = malloc((size_t)room * sizeof *work);
    if (!work) return NAN;
    dsyev_("N", "L", &n, plot->matrix, &n, plot->values, work, &room, &info);
    free(work);
    double largest = plot->values[n - 2];
    if (at_once && -plot->values[0] > largest) largest = -plot->values[0];
    double gap = 1 - largest;
    return gap < 1e-12 ? 0 : gap > 1 - 1e-12 ? 1 : gap;
}

static void print_gossip(double gap, uint32_t n)
{
    printf("spectral gap  %.6g of gossip, I - L/2", gap);
    double least = log(1000) / -log1p(-2 * gap / n) * 2 / n; /* an exchange is of two nodes */
    if (n == 2 && gap > 0)
        printf("; exact after one exchange");
    else if (n > 2 && gap > 0)
        printf("; a thousandth of the distance after %.0f to %.0f exchanges a node", ceil(least),
               ceil(2 * least));
    printf("\n");
}

static void print_synchronous(double gap)
{
    printf("synchronous   %.6g of Metropolis weights", gap);
    if (gap == 1)
        printf("; exact after one round with all neighbours");
    else if (gap > 0)
        printf("; a thousandth of the distance after %.0f rounds with all neighbours",
               ceil(log(1000) / -log(1 - gap)));
    printf("\n");
}

/* ---- Printing -------------------------------------------------------------------------------- */

static void print_dot(const struct plot *plot)
{
    char a_name[16], b_name[16];
    printf("graph parley {\n  layout=circo;\n");
    for (uint32_t a = 0; a < plot->topology.n; a++)
        printf("  \"%s\";\n", name_of(plot, a, a_name));
    for (uint32_t a = 0; a < plot->topology.n; a++)
        for (uint32_t b = a + 1; b < plot->topology.n; b++)
            if (topology_linked(&plot->topology, a, b))
                printf("  \"%s\" -- \"%s\";\n", name_of(plot, a, a_name), name_of(plot, b, b_name));
    printf("}\n");
}

static void print_links(const struct plot *plot)
{
    char name[16];
    for (uint32_t a = 0; plot->topology.n <= LISTED_MAX && a < plot->topology.n; a++) {
        printf("%-13s", name_of(plot, a, name));
        for (uint32_t b = 0; b < plot->topology.n; b++)
            if (b != a && topology_linked(&plot->topology, a, b))
                printf(" %s", name_of(plot, b, name));
        printf("\n");
    }
}

static void print_degrees(const struct plot *plot)
{
    uint32_t least = plot->degrees[0], most = least;
    uint64_t ends = 0;
    for (uint32_t a = 0; a < plot->topology.n; a++) {
        uint32_t degree = plot->degrees[a];
        least = degree < least ? degree : least;
        most = degree > most ? degree : most;
        ends += degree;
    }
    if (least == most)
        printf("degree        %" PRIu32 " at every node\n", most);
    else
        printf("degree        %" PRIu32 " to %" PRIu32 "\n", least, most);
    printf("edges         %" PRIu64 "\n", ends / 2);
}

static void print_figures(struct plot *plot, const char *spec)
{
    const struct topology *t = &plot->topology;
    printf("topology      %s of %" PRIu32 " nodes", spec, t->n);
    if (t->kind == PARLEY_TOPOLOGY_TORUS)
        printf(", %" PRIu32 " by %" PRIu32, t->n / topology_columns(t->n), topology_columns(t->n));
    printf("\n");
    print_degrees(plot);
    print_gossip(spectral_gap(plot, gossip_weight, false), t->n);
    if (t->kind == PARLEY_TOPOLOGY_BASE)
        printf("synchronous   the exact mean after %" PRIu32 " rounds\n", topology_rounds(t));
    else
        print_synchronous(spectral_gap(plot, metropolis_weight, true));
    print_links(plot);
}

int topology_command(const struct settings *settings)
{
    struct plot plot = {0};
    char why[512] = "";
    int error = plot_init(&plot, settings, why, sizeof why);
    if (!error && !settings->dot) error = environment_claim(1, why, sizeof why);
    if (!error && settings->dot)
        print_dot(&plot);
    else if (!error)
        print_figures(&plot, settings->operands[0]);
    plot_close(&plot);
    return error ? say_failure(error, why) : 0;
}
