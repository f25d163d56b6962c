/* late.h: who was taken for dead, or came too late, while others agree; and who sees such a one.
 *
 * Thread rule: as the node's.
 */
#ifndef PARLEY_CORE_LATE_H
#define PARLEY_CORE_LATE_H

#include <stdbool.h>

#include "parley/node.h"

/* The others go on without this node; it adopts what they agree on. */
void late_begin(struct parley_node *node);
/* Whether this member is LATE and may go back to SETTLE; else it can but adopt, or follow. Who
 * never trained has nothing to come back with. Where `others` take part, nor may who has locked
 * with no more votes than they are, unless a majority is asked for: it did so without them, and its
 * lock would be the model of all. */
bool late_comes_back(const struct parley_node *node, uint32_t member, bool others);
/* While LATE. */
void late_advance(struct parley_node *node);

/* While there is a proposal: somebody is back whom it lacks, so this node settles anew with it. */
bool late_is_somebody_back(struct parley_node *node);
void late_rejoin(struct parley_node *node);

#endif
