/* room.h: whether this machine has the memory that all nodes of a simulation take at least.
 *
 * The kernel hands memory out before it has it, and later ends who uses it: so what can't be is
 * refused before there is anything.
 */
#ifndef PARLEY_SIM_ROOM_H
#define PARLEY_SIM_ROOM_H

#include <stddef.h>
#include <stdint.h>

#include "parley/error.h"

/* Models and the optimizer's vectors alone: PARLEY_ENOMEM with a line in why[size] if they can't
 * be. */
PARLEY_CHECK int sim_room_check(uint32_t nodes, uint32_t vectors, uint64_t parameters, char *why,
                                size_t size);

/* The least that the control groups of `list` (the file /proc/self/cgroup) and those above them
 * allow; root: /sys/fs/cgroup. UINT64_MAX: no limit. */
uint64_t sim_room_groups(const char *list, const char *root);

#endif
