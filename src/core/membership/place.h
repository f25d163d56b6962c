/* place.h: whose place in the table a new member may have, once it is full.
 *
 * Thread rule: as the node's.
 */
#ifndef PARLEY_CORE_PLACE_H
#define PARLEY_CORE_PLACE_H

#include "core/wire/message.h"
#include "parley/node.h"

/* Of a member that the table does not have; NONE: it is full, and of none that is there may the
 * place be given away. */
int place_new(struct parley_node *node, const struct record *record);

#endif
