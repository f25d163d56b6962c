/* push_sum.h: what an exchange that goes one way asks the strategy that it is of.
 *
 * Thread rule: as the node's.
 */
#ifndef PARLEY_CORE_PUSH_SUM_H
#define PARLEY_CORE_PUSH_SUM_H

#include <stdbool.h>
#include <stdint.h>

#include "parley/node.h"

/* What this node pushes of its weight now; 0: nothing. */
double push_sum_weight(const struct parley_node *node);
/* Whether that is anything; who has starved goes by a smaller unit from then on. */
bool push_sum_may(struct parley_node *node);
/* It has so much weight that it pushes at once. */
bool push_sum_is_laden(const struct parley_node *node);
/* What came is looked at: the DONE of it, as of a DIFF, says whether it is finite. */
void push_sum_check(struct parley_node *node, int role, uint32_t buffer);

#endif
