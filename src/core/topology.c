/* topology.c: who may average with whom while training. Nodes stand in line, sorted by name. */
#include "core/topology.h"

#include <string.h>

/* The widest grid of n nodes with at least two rows; 1 if there is none. */
static uint32_t torus_columns(uint32_t n)
{
    uint32_t rows = 1;
    for (uint32_t r = 2; r * r <= n; r++)
        if (n % r == 0) rows = r;
    return n / rows;
}

bool topology_linked(enum parley_topology topology, uint32_t n, uint32_t a, uint32_t b)
{
    uint32_t forward = (b + n - a) % n, backward = (a + n - b) % n;
    switch (topology) {
    case PARLEY_TOPOLOGY_COMPLETE:
        return true;
    case PARLEY_TOPOLOGY_RING:
        return forward == 1 || backward == 1;
    case PARLEY_TOPOLOGY_TORUS: {
        uint32_t columns = torus_columns(n), rows = n / columns;
        uint32_t dx = (b % columns + columns - a % columns) % columns;
        uint32_t dy = (b / columns + rows - a / columns) % rows;
        return (dy == 0 && (dx == 1 || dx == columns - 1)) ||
               (dx == 0 && (dy == 1 || dy == rows - 1));
    }
    case PARLEY_TOPOLOGY_EXPONENTIAL:
        /* Powers of two ahead; undirected, since an exchange goes both ways. */
        return (forward & (forward - 1)) == 0 || (backward & (backward - 1)) == 0;
    }
    return false;
}

enum parley_topology topology_of_name(const char *name)
{
    static const char *const names[] = {"complete", "ring", "torus", "exponential"};
    for (int t = PARLEY_TOPOLOGY_COMPLETE; t <= PARLEY_TOPOLOGY_EXPONENTIAL; t++)
        if (strcmp(name, names[t]) == 0) return (enum parley_topology)t;
    return PARLEY_TOPOLOGY_COMPLETE;
}
