/* settling.h: SETTLE: nodes average only, until all are near, and each takes a copy to propose.
 *
 * Thread rule: as the node's.
 */
#ifndef PARLEY_CORE_SETTLING_H
#define PARLEY_CORE_SETTLING_H

#include "parley/node.h"

void settling_begin(struct parley_node *node);
/* Takes the copy once it is time: agreement.c goes on from there. */
void settling_advance(struct parley_node *node);

#endif
