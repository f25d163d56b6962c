/* quorum.h: who may decide.
 *
 * Thread rule: as the node's.
 */
#ifndef PARLEY_CORE_QUORUM_H
#define PARLEY_CORE_QUORUM_H

#include <stdbool.h>

#include "parley/node.h"

/* How many take part in the agreement; of how many --quorum majority wants most; whether they are
 * as many as --quorum wants. */
uint32_t quorum_here(const struct parley_node *node);
uint32_t quorum_of(const struct parley_node *node);
bool quorum_is_here(const struct parley_node *node);
/* They may lock, and be done. If not yet, asks for it to become so. */
bool quorum_may_decide(struct parley_node *node);

#endif
