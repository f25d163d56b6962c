/* groups.h: the nodes of a simulation in groups, as people write them: `n0,n1|n2-n9`: nodes and
 * runs of nodes, groups apart by '|'.
 *
 * Thread rule: pure.
 */
#ifndef PARLEY_SETTINGS_GROUPS_H
#define PARLEY_SETTINGS_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

enum { GROUPS_BYTES = 256, GROUPS_NONE = -1 };

/* Two groups or more, none of them empty, no node in two places. */
bool groups_are_sane(const char *groups);

/* The group of n<node>, counted from 0, or GROUPS_NONE. The groups are sane. */
int groups_find(const char *groups, uint64_t node);

/* The highest node that is named. */
uint64_t groups_last(const char *groups);

#endif
