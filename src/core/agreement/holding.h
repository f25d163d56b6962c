/* holding.h: how a node gets hold of the model that was picked (agreement.c).
 *
 * Thread rule: as the node's.
 */
#ifndef PARLEY_CORE_HOLDING_H
#define PARLEY_CORE_HOLDING_H

#include <stdbool.h>
#include <stdint.h>

#include "core/out.h"
#include "parley/node.h"

/* Two buffers for the agreement: the candidate's, and one to fetch another into. */
void holding_reserve(struct parley_node *node);
/* They are for mixing again, and what was there can't be held or served any more. False: somebody
 * still reads one, and is asked to stop. */
bool holding_let_go(struct parley_node *node);

/* Gets hold of the model of `digest`: it is here, or it is fetched. False if nobody has it. */
bool holding_obtain(struct parley_node *node, const uint8_t *digest);

/* What the fetch has come to: fetch.c. */
void holding_fetched(struct parley_node *node);
void holding_fetch_failed(struct parley_node *node);

/* What the node of that boot proposes or has locked is not heeded by this one; nor by anybody, if
 * most say so. why: for the log. */
void holding_distrust(struct parley_node *node, uint64_t boot, const char *why);

/* An operation of fetching, comparing or writing has ended. */
void holding_done(struct parley_node *node, const struct op *op, const struct parley_event *event);

#endif
