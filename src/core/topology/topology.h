/* topology.h: who may average with whom while training, and with what weight. Thread rule: pure.
 *
 * Nodes stand in line, by name, and have places 0 to n - 1. All graphs are undirected.
 *
 *   complete      everybody
 *   ring          the next and the one before
 *   torus         a grid that is closed on both sides; of a prime number of nodes a ring
 *   exponential   1, 2, 4, ... places away (Ying et al., NeurIPS 2021, section 3)
 *   star          the first node with everybody
 *   regular:K     K links a node, drawn at random by the seed, in one piece
 *   base:K        at most K partners a round; exact after few rounds, for any n (base.c)
 *   file:PATH     links by names, read from a file
 */
#ifndef PARLEY_CORE_TOPOLOGY_H
#define PARLEY_CORE_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "parley/config.h"

enum { TOPOLOGY_NOWHERE = 0xffff };

struct topology {
    enum parley_topology kind;
    uint32_t degree;                  /* REGULAR, BASE: the K of the name */
    uint32_t n;                       /* nodes, at most PARLEY_MEMBERS_MAX */
    const struct parley_graph *graph; /* GRAPH: borrowed */
    /* REGULAR: the ends of each node's links [n * degree], then room to work in [n]; filled by
     * topology_draw(). GRAPH: [n] each place's node of the graph, or NOWHERE; at first each its
     * own. Else NULL. Owned. */
    uint16_t *table;
};

/* With room for n nodes; `n` may be set lower later. PARLEY_ENOMEM. */
PARLEY_CHECK int topology_init(struct topology *topology, enum parley_topology kind,
                               uint32_t degree, uint32_t n, const struct parley_graph *graph);
void topology_close(struct topology *topology);
/* REGULAR: draws the graph, the same for the same seed, n and degree. */
void topology_draw(struct topology *topology, uint64_t seed);
/* The graph's node of this name, or TOPOLOGY_NOWHERE. */
uint16_t topology_place(const struct parley_graph *graph, const char *name);

/* Whether a and b are neighbours, 0 <= a, b < n, a != b. */
bool topology_linked(const struct topology *topology, uint32_t a, uint32_t b);
uint32_t topology_degree(const struct topology *topology, uint32_t a);
/* The first neighbour of a from place `from` on; n if there is none. */
uint32_t topology_next(const struct topology *topology, uint32_t a, uint32_t from);

/* The weights of synchronous rounds: symmetric, of sum 1 a node. They come again after so many
 * rounds: 1 but for BASE. */
uint32_t topology_rounds(const struct topology *topology);
/* Metropolis-Hastings: of two neighbours of these degrees, 1 / (1 + the larger one) (Xiao, Boyd,
 * Lall, "A scheme for robust distributed sensor fusion based on average consensus", IPSN 2005,
 * eq. 6). */
static inline double topology_metropolis(uint32_t of_a, uint32_t of_b)
{
    return 1.0 / (1 + (of_a > of_b ? of_a : of_b));
}

/* Of b in a's average in that round, a != b; 0 if they don't meet then. Metropolis-Hastings, but
 * for BASE, which has its own. */
double topology_weight(const struct topology *topology, uint64_t round, uint32_t a, uint32_t b);

/* Whom a place meets in a round: the places first, first + stride, ..., count of them, itself among
 * them or not. Each has that weight in its average. */
struct topology_meeting {
    uint32_t first, stride, count;
    double weight;
};

/* base.c: the same for BASE alone; round < topology_base_rounds(). */
uint32_t topology_base_rounds(uint32_t n, uint32_t degree);
struct topology_meeting topology_base_meeting(uint32_t n, uint32_t degree, uint32_t round,
                                              uint32_t place);
double topology_base_weight(uint32_t n, uint32_t degree, uint32_t round, uint32_t a, uint32_t b);

/* Of the torus: how wide the grid of n nodes is that is nearest to a square; n: they make none. */
uint32_t topology_columns(uint32_t n);

/* "ring", "regular:4", "file:PATH" (its graph is read elsewhere). PARLEY_EUSAGE with the clause
 * that follows the quoted spec. */
PARLEY_CHECK int topology_parse(const char *spec, enum parley_topology *kind, uint32_t *degree,
                                char *why, size_t size);
/* Whether n nodes, n > 1, can be linked so at the start. Errors as above; not for GRAPH. */
PARLEY_CHECK int topology_suits(enum parley_topology kind, uint32_t degree, uint32_t n, char *why,
                                size_t size);

#endif
