/* group.h: of nodes that ended with models, the most that hold one and the same: they are who
 * agreed. Thread rule: pure.
 */
#ifndef PARLEY_REPORT_GROUP_H
#define PARLEY_REPORT_GROUP_H

#include <stddef.h>

/* digests: [count], a node's each; NULL: it holds none. Returns how many the largest group of equal
 * ones has, the first of those as large, and where that begins; 0: *first stays as it is. */
size_t group_largest(const char *const *digests, size_t count, size_t *first);

#endif
