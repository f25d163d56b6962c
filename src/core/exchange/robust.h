/* robust.h: how much of a difference is added, where config.robust.
 *
 * Thread rule: as the node's.
 */
#ifndef PARLEY_CORE_ROBUST_H
#define PARLEY_CORE_ROBUST_H

#include <stdint.h>

#include "parley/node.h"

enum { ROBUST_SEEN = 31 }; /* newest distances, whose median is the radius of clipping */

/* Squared distances of the snapshots of the newest exchanges with peers that this node drew. */
struct robust {
    double seen[ROBUST_SEEN];
    uint32_t count; /* so far */
    uint32_t since; /* it settles: the newest that it goes by alone, where they are nearer, begin */
};

/* An exchange with a peer that this node drew has shown ||d||^2. */
void robust_seen(struct parley_node *node, double norm_sq);
/* The node settles from here on. */
void robust_settles(struct parley_node *node);
/* How long a difference may be that this node adds; at least 0, and 0 unless config.robust. */
double robust_radius(const struct parley_node *node);
/* What makes a difference of this squared length no longer than that, in [0, 1]. */
double robust_clip(double radius, double norm_sq);

#endif
