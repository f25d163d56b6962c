/* warm.h: for drivers of many nodes, whose states don't fit in a cache together.
 *
 * Changes nothing, and costs some ns.
 */
#ifndef PARLEY_CORE_WARM_H
#define PARLEY_CORE_WARM_H

#include <stddef.h>

#include "parley/node.h"

/* Asks for the lines of `bytes` bytes, and goes on. */
static inline void warm(const void *from, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += 64)
        __builtin_prefetch((const char *)from + at);
}

/* What most events look at: first in the node, then (once that has come) behind its pointers. */
void node_warm(const struct parley_node *node);
void node_warm_arrays(const struct parley_node *node);

#endif
