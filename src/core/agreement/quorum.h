/* quorum.h: who may decide.
 *
 * Thread rule: as the node's.
 */
#ifndef PARLEY_CORE_QUORUM_H
#define PARLEY_CORE_QUORUM_H

#include <stdbool.h>
#include <stddef.h>

#include "core/wire/message.h"
#include "parley/node.h"

enum { QUORUM_TEXT_BYTES = 192 };

/* Those who take part in the agreement are more than half of all: of those whom this node knows, or
 * of what --quorum majority counts. */
bool quorum_is_most(const struct parley_node *node);
/* They are as many as --quorum wants. */
bool quorum_is_here(const struct parley_node *node);
/* This member does not count for a majority: an earlier start of it may have locked a model. */
bool quorum_has_forgotten(const struct parley_node *node, int member);
/* For this record there is no room (any more): what follows from it stays with those of its name.
 */
void quorum_forget(struct parley_node *node, const struct record *record);
/* Who is missing for a majority, for people. */
void quorum_lacks(const struct parley_node *node, char *text, size_t size);
/* They may lock, and be done. If not yet, asks for it to become so. */
bool quorum_may_decide(struct parley_node *node);

#endif
