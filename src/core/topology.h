/* topology.h: who may average with whom while training. Thread rule: pure. */
#ifndef PARLEY_CORE_TOPOLOGY_H
#define PARLEY_CORE_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>

#include "parley/config.h"

/* Whether a and b are neighbours among n nodes in line, 0 <= a, b < n, a != b. Undirected. */
bool topology_linked(enum parley_topology topology, uint32_t n, uint32_t a, uint32_t b);

/* "complete", "ring", "torus" or "exponential"; all else is complete. */
enum parley_topology topology_of_name(const char *name);

#endif
