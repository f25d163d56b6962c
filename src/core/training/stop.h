/* stop.h: training ends, for one and so for all. A STOP is sticky and gossiped with its cause. That
 * of an operator is obeyed, any other if its raiser saw half of whom we see alive, or have left
 * with one raised; of whom we know, while many come and go.
 *
 * Thread rule: as the node's.
 */
#ifndef PARLEY_CORE_STOP_H
#define PARLEY_CORE_STOP_H

#include <stdbool.h>

#include "core/wire/message.h"
#include "parley/node.h"

/* Now, or as soon as this node trains and its strategy allows. */
void stop_raise(struct parley_node *node, enum parley_stop cause);
/* While in TRAIN: one that somebody has raised. */
void stop_obey(struct parley_node *node);
/* Members come and go since a moment ago, after a while in which none did or this node was alone:
 * what others know of them may be on its way. */
bool stop_view_begins_to_move(const struct parley_node *node);
/* A LATE node has nothing to end, but others may train still, and are to hear of it. */
void stop_tell(struct parley_node *node, enum parley_stop cause);
/* Has been in training, were it for no step: a node that only tells of a stop saw nobody then. */
bool stop_has_trained(const struct record *r);

#endif
