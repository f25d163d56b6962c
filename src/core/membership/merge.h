/* merge.h: what a record that is seen or heard of changes.
 *
 * Merging takes, part by part, the greater of (incarnation, state) and of clock: commutative,
 * associative and idempotent. An incarnation is raised by the member alone, by one for each time it
 * was called gone; so is its clock, by one for each word. So what others tell of them counts only
 * as far as it can be true. An incarnation beyond that its own word on its own link outbids: else
 * one claim near the last number would leave it none to refute with. Words that it has not said
 * count until it is told of them, by whoever hears it say older ones; then it speaks beyond them.
 *
 * Thread rule: as the node's.
 */
#ifndef PARLEY_CORE_MERGE_H
#define PARLEY_CORE_MERGE_H

#include "core/wire/message.h"
#include "parley/node.h"

struct conn;

/* `from` is the member that said it, NONE for HELLO. Whose record it is; NONE: it is not sane, or
 * there is no place for it. */
int merge_record(struct parley_node *node, const struct record *record, int from);
/* All that a frame brings. */
void merge_members(struct parley_node *node, struct conn *conn,
                   const struct message_members *message);

#endif
