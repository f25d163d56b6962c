/* group.h: of nodes that ended with models, the most that hold one and the same: they are who
 * agreed. Thread rule: pure.
 */
#ifndef PARLEY_REPORT_GROUP_H
#define PARLEY_REPORT_GROUP_H

#include <stdbool.h>
#include <stdint.h>

/* Whether two nodes hold one model; of a node and itself: whether it holds any. */
typedef bool group_alike(void *context, uint32_t a, uint32_t b);

/* Of nodes 0 to count - 1, how many the largest group has, the first of those as large, and where
 * that begins; 0: *first stays as it is. */
uint32_t group_largest(uint32_t count, group_alike *alike, void *context, uint32_t *first);

#endif
