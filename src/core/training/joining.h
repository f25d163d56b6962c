/* joining.h: how a node comes to train: with the first model, with what it has kept, or with the
 * state of a peer.
 *
 * It waits until the cluster is met and, if that is further than an exchange may be old, has taken
 * its state over; one that has kept nothing waits for those who have, ten seconds at most, and
 * takes it from them. A node alone in its peer list starts by itself. Where others train already,
 * knowing of min_peers others is enough, even if dead; nothing less is: the share of the data is
 * cut for the members known now. Told to stop, it does so once it is in; if nobody is met for a
 * while, it ends.
 *
 * Thread rule: as the node's.
 */
#ifndef PARLEY_CORE_JOINING_H
#define PARLEY_CORE_JOINING_H

#include <stdbool.h>
#include <stdint.h>

#include "parley/node.h"

void joining_advance(struct parley_node *node);
uint64_t joining_deadline(const struct parley_node *node);

/* Takes the model and what belongs to it of that member, or of any that trains (NONE): as one
 * joins, or later, in place of a model that is lost or behind. Call again until
 * strategy->adopted(). */
void joining_follow(struct parley_node *node, int member);
/* Whether what this node did before it was started anew is in what the others train. */
bool joining_is_merged(const struct parley_node *node);
/* Who went on from its file alone, and has met those that count what it tells of, takes it back. */
void joining_recount(struct parley_node *node);
/* The cluster goes on from its files: what those have used who don't come back is used. */
void joining_goes_on(struct parley_node *node);
/* steps: that the vectors taken have been through; version: own steps so far. */
void joining_adopted(struct parley_node *node, uint64_t steps, uint64_t version);

#endif
