/* places.h: which place each of n0, n1, ... has in the order that topologies go by, that of the
 * names: n0, n1, n10, n11, n2, ... Thread rule: pure.
 */
#ifndef PARLEY_REPORT_PLACES_H
#define PARLEY_REPORT_PLACES_H

#include <stdint.h>

/* nodes: [n] the number of the node at each place. */
void places_by_name(uint32_t *nodes, uint32_t n);

#endif
