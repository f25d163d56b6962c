/* delta.h: what an exchange adds to x: d times a share, or all of what was pushed one way.
 *
 * A slot makes it; a doubt keeps it where the decision was not heard. Thread rule: as the node's.
 */
#ifndef PARLEY_CORE_DELTA_H
#define PARLEY_CORE_DELTA_H

#include <stdbool.h>
#include <stdint.h>

#include "core/out.h"
#include "parley/node.h"

struct delta {
    bool trains;   /* it began while this node trained */
    double share;  /* of d, that each side adds; of the initiator's before ACCEPT: as it expects */
    double clip;   /* robust.c: what d is to be shortened by, or 1 */
    double weight; /* pushed one way, and not d: push_sum.c; 0: none */
    double mass;   /* of d */
    double gap;    /* what the peer's part of the cluster's samples was more than this node's; of
                      what is pushed, the part that comes with it, or below 0 that goes */
    uint32_t wide; /* how many vectors it is of */
    uint32_t round, line; /* as offered: pairing.h */
};

/* What d is multiplied by as it is added; of what was pushed all counts. */
float delta_factor(const struct delta *delta);
/* It is decided: d, or what this node was pushed, is in `theirs`, the own snapshot in `own` (NONE:
 * no longer there). The operation is of that kind and owner. */
void delta_add(struct parley_node *node, const struct delta *delta, enum op_kind kind, int owner,
               int own, uint32_t theirs);
/* It is in x. */
void delta_added(struct parley_node *node, const struct delta *delta, int peer);

#endif
