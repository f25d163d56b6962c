/* redial.h: members to whom a link is lost are dialled: suspects at once, the dead now and then.
 *
 * Thread rule: as the node's.
 */
#ifndef PARLEY_CORE_REDIAL_H
#define PARLEY_CORE_REDIAL_H

#include "parley/node.h"

enum { REDIAL_DEAD_US = 2000000 }; /* after its death, and at least between two dials */

/* Sets node->next_redial_us. */
void redial_timers(struct parley_node *node);

#endif
