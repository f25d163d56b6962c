/* topology.c: see topology.h. */
#include "core/topology/topology.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"

uint32_t topology_columns(uint32_t n)
{
    uint32_t rows = 1;
    for (uint32_t r = 2; r * r <= n; r++)
        if (n % r == 0) rows = r;
    return n / rows;
}

static bool torus_linked(uint32_t n, uint32_t a, uint32_t b)
{
    uint32_t columns = topology_columns(n), rows = n / columns;
    uint32_t dx = (b % columns + columns - a % columns) % columns;
    uint32_t dy = (b / columns + rows - a / columns) % rows;
    return (dy == 0 && (dx == 1 || dx == columns - 1)) || (dx == 0 && (dy == 1 || dy == rows - 1));
}

int topology_init(struct topology *t, enum parley_topology kind, uint32_t degree, uint32_t n,
                  const struct parley_graph *graph)
{
    *t = (struct topology){.kind = kind, .degree = degree, .n = n, .graph = graph};
    bool regular = kind == PARLEY_TOPOLOGY_REGULAR;
    if (!regular && kind != PARLEY_TOPOLOGY_GRAPH) return 0;
    t->table = malloc((regular ? degree + 1 : 1) * (size_t)n * sizeof *t->table);
    if (!t->table) return PARLEY_ENOMEM;
    for (uint32_t a = 0; !regular && a < n; a++)
        t->table[a] = (uint16_t)a;
    return 0;
}

void topology_close(struct topology *t)
{
    free(t->table);
    t->table = NULL;
}

/* ---- Random regular -------------------------------------------------------------------------- */

static uint16_t *end_of(const struct topology *t, uint32_t a, uint32_t link)
{
    return &t->table[(size_t)a * t->degree + link];
}

/* Which of a's links goes to b; degree if none does. */
static uint32_t link_to(const struct topology *t, uint32_t a, uint32_t b)
{
    uint32_t link = 0;
    while (link < t->degree && *end_of(t, a, link) != b)
        link++;
    return link;
}

static void add_link(struct topology *t, uint32_t a, uint32_t b)
{
    *end_of(t, a, link_to(t, a, TOPOLOGY_NOWHERE)) = (uint16_t)b;
    *end_of(t, b, link_to(t, b, TOPOLOGY_NOWHERE)) = (uint16_t)a;
}

/* To the next degree/2 on both sides; of an odd degree also across, which with an odd number of
 * nodes leaves one with a link less. */
static void link_in_order(struct topology *t)
{
    memset(t->table, 0xff, (size_t)t->n * t->degree * sizeof *t->table);
    for (uint32_t a = 0; a < t->n; a++)
        for (uint32_t step = 1; step <= t->degree / 2; step++)
            add_link(t, a, (a + step) % t->n);
    for (uint32_t a = 0; t->degree % 2 && a < t->n / 2; a++)
        add_link(t, a, a + t->n / 2);
}

/* Links a-b and c-d become a-d and c-b, if neither is there yet. */
static void swap_links(struct topology *t, struct rng *rng)
{
    uint32_t a = rng_below(rng, t->n), ab = rng_below(rng, t->degree), b = *end_of(t, a, ab);
    uint32_t c = rng_below(rng, t->n), cd = rng_below(rng, t->degree), d = *end_of(t, c, cd);
    if (b == TOPOLOGY_NOWHERE || d == TOPOLOGY_NOWHERE) return;
    if (a == c || a == d || b == c || b == d) return;
    if (link_to(t, a, d) < t->degree || link_to(t, c, b) < t->degree) return;
    *end_of(t, b, link_to(t, b, a)) = (uint16_t)c;
    *end_of(t, d, link_to(t, d, c)) = (uint16_t)a;
    *end_of(t, a, ab) = (uint16_t)d;
    *end_of(t, c, cd) = (uint16_t)b;
}

/* All take the least place that they hear of, until nothing changes. */
static bool is_one_piece(const struct topology *t)
{
    uint16_t *least = &t->table[(size_t)t->n * t->degree];
    for (uint32_t a = 0; a < t->n; a++)
        least[a] = (uint16_t)a;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t a = 0; a < t->n; a++)
            for (uint32_t link = 0; link < t->degree; link++) {
                uint16_t b = *end_of(t, a, link);
                if (b == TOPOLOGY_NOWHERE || least[b] >= least[a]) continue;
                least[a] = least[b];
                changed = true;
            }
    }
    for (uint32_t a = 0; a < t->n; a++)
        if (least[a] != 0) return false;
    return true;
}

/* Swaps of two links lead to each graph of these degrees, as often (Milo et al., "On the uniform
 * generation of random graphs with prescribed degree sequences", 2003); ten a link are plenty. */
void topology_draw(struct topology *t, uint64_t seed)
{
    if (t->kind != PARLEY_TOPOLOGY_REGULAR || t->degree + 1 >= t->n) return;
    struct rng rng = rng_init(seed, t->n);
    link_in_order(t);
    do
        for (uint32_t swap = 0; swap < 10 * t->n * t->degree; swap++)
            swap_links(t, &rng);
    while (!is_one_piece(t));
}

/* ---- A graph from a file --------------------------------------------------------------------- */

uint16_t topology_place(const struct parley_graph *graph, const char *name)
{
    uint32_t low = 0, high = graph->nodes;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        int order = strcmp(name, graph->names[middle]);
        if (order == 0) return (uint16_t)middle;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return TOPOLOGY_NOWHERE;
}

static bool graph_linked(const struct topology *t, uint32_t a, uint32_t b)
{
    uint16_t from = t->table[a], to = t->table[b];
    if (from == TOPOLOGY_NOWHERE || to == TOPOLOGY_NOWHERE) return false;
    for (uint32_t i = t->graph->first[from]; i < t->graph->first[from + 1]; i++)
        if (t->graph->ends[i] == to) return true;
    return false;
}

/* ---- All ------------------------------------------------------------------------------------- */

bool topology_linked(const struct topology *t, uint32_t a, uint32_t b)
{
    uint32_t forward = (b + t->n - a) % t->n, backward = (a + t->n - b) % t->n;
    switch (t->kind) {
    case PARLEY_TOPOLOGY_COMPLETE:
        return true;
    case PARLEY_TOPOLOGY_RING:
        return forward == 1 || backward == 1;
    case PARLEY_TOPOLOGY_TORUS:
        return torus_linked(t->n, a, b);
    case PARLEY_TOPOLOGY_EXPONENTIAL:
        /* Powers of two ahead; undirected, since an exchange goes both ways. */
        return (forward & (forward - 1)) == 0 || (backward & (backward - 1)) == 0;
    case PARLEY_TOPOLOGY_STAR:
        return a == 0 || b == 0;
    case PARLEY_TOPOLOGY_REGULAR:
        return t->degree + 1 >= t->n || link_to(t, a, b) < t->degree;
    case PARLEY_TOPOLOGY_BASE:
        for (uint32_t r = 0; r < topology_base_rounds(t->n, t->degree); r++)
            if (topology_base_weight(t->n, t->degree, r, a, b) > 0) return true;
        return false;
    case PARLEY_TOPOLOGY_GRAPH:
        return graph_linked(t, a, b);
    }
    return false;
}

uint32_t topology_degree(const struct topology *t, uint32_t a)
{
    uint32_t count = 0;
    for (uint32_t b = 0; b < t->n; b++)
        count += b != a && topology_linked(t, a, b);
    return count;
}

static uint32_t nearer(uint32_t b, uint32_t from, uint32_t best)
{
    return b >= from && b < best ? b : best;
}

uint32_t topology_next(const struct topology *t, uint32_t a, uint32_t from)
{
    uint32_t next = t->n;
    if (t->kind == PARLEY_TOPOLOGY_EXPONENTIAL) { /* of ten thousand places few are looked at */
        for (uint32_t step = 1; step < t->n; step *= 2) {
            next = nearer((a + step) % t->n, from, next);
            next = nearer((a + t->n - step) % t->n, from, next);
        }
        return next;
    }
    for (uint32_t b = from; b < next; b++)
        if (b != a && topology_linked(t, a, b)) next = b;
    return next;
}

uint32_t topology_rounds(const struct topology *t)
{
    return t->kind == PARLEY_TOPOLOGY_BASE ? topology_base_rounds(t->n, t->degree) : 1;
}

double topology_weight(const struct topology *t, uint64_t round, uint32_t a, uint32_t b)
{
    if (t->kind == PARLEY_TOPOLOGY_BASE)
        return topology_base_weight(t->n, t->degree, (uint32_t)(round % topology_rounds(t)), a, b);
    if (!topology_linked(t, a, b)) return 0;
    return topology_metropolis(topology_degree(t, a), topology_degree(t, b));
}

/* ---- By name --------------------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static int refuse(char *why, size_t size, const char *format,
                                                        ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, size, format, arguments);
    va_end(arguments);
    return PARLEY_EUSAGE;
}

int topology_parse(const char *spec, enum parley_topology *kind, uint32_t *degree, char *why,
                   size_t size)
{
    static const struct {
        const char *name;
        enum parley_topology kind;
        uint32_t least; /* of the number behind it; 0: there is none */
    } known[] = {
        {"complete", PARLEY_TOPOLOGY_COMPLETE, 0}, {"ring", PARLEY_TOPOLOGY_RING, 0},
        {"torus", PARLEY_TOPOLOGY_TORUS, 0},       {"exponential", PARLEY_TOPOLOGY_EXPONENTIAL, 0},
        {"star", PARLEY_TOPOLOGY_STAR, 0},         {"regular:", PARLEY_TOPOLOGY_REGULAR, 3},
        {"base:", PARLEY_TOPOLOGY_BASE, 1},
    };
    *degree = 0;
    *kind = PARLEY_TOPOLOGY_GRAPH;
    if (strncmp(spec, "file:", 5) == 0 && spec[5]) return 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t length = strlen(known[i].name);
        *kind = known[i].kind;
        if (known[i].least == 0 && strcmp(spec, known[i].name) == 0) return 0;
        if (known[i].least == 0 || strncmp(spec, known[i].name, length) != 0) continue;
        const char *number = spec + length;
        size_t digits = strspn(number, "0123456789");
        *degree = digits > 0 && digits < 4 && !number[digits] ? (uint32_t)atoi(number) : 0;
        if (*degree >= known[i].least && *degree <= PARLEY_DEGREE_MAX) return 0;
        return refuse(why, size, "needs a number of neighbours from %u to %d, like %s4",
                      known[i].least, PARLEY_DEGREE_MAX, known[i].name);
    }
    return refuse(why, size, "is not a topology");
}

int topology_suits(enum parley_topology kind, uint32_t degree, uint32_t n, char *why, size_t size)
{
    if (kind == PARLEY_TOPOLOGY_TORUS && topology_columns(n) == n)
        return n < 4 ? refuse(why, size, "needs a grid, of at least 4 nodes; %u can be a ring", n)
                     : refuse(why, size,
                              "needs a grid, and %u nodes make none: take %u or %u nodes, or ring, "
                              "exponential or regular:4",
                              n, n - 1, n + 1);
    if (kind != PARLEY_TOPOLOGY_REGULAR) return 0;
    if (degree >= n)
        return refuse(why, size,
                      "needs more nodes than the %u there are: take complete, or %u "
                      "nodes or more",
                      n, degree + 1);
    if (degree % 2 && n % 2)
        return refuse(why, size,
                      "has an odd number of ends with %u nodes: take %u or %u nodes, or regular:%u",
                      n, n - 1 > degree ? n - 1 : n + 1, n + 1,
                      degree + 1 < n ? degree + 1 : degree - 1);
    return 0;
}
