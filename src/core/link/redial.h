/* redial.h: members to whom a link is lost are dialled: suspects at once, the dead now and then,
 * and few at a time of whom a dial is likely to come to nothing.
 *
 * Thread rule: as the node's.
 */
#ifndef PARLEY_CORE_REDIAL_H
#define PARLEY_CORE_REDIAL_H

#include "parley/node.h"

enum { REDIAL_DEAD_US = 2000000 }; /* after its death, and at least between two dials */

/* Sets node->next_redial_us. */
void redial_timers(struct parley_node *node);
/* It lives, and no dial of it has come through so far. */
void redial_unreached(struct parley_node *node, int member);

#endif
