/* partition_draw.h: the drawing of a partition, behind partition.h. */
#ifndef PARLEY_DATA_PARTITION_DRAW_H
#define PARLEY_DATA_PARTITION_DRAW_H

#include "data/partition/partition.h"

/* owner: [task->count], filled with ranks. keys: [members], a hash of each member, by rank. The
 * task is checked already and not `all`. PARLEY_ENOMEM. */
PARLEY_CHECK int partition_draw(const struct partition_task *task, const uint64_t *keys,
                                uint32_t *owner);

/* The key of each sample's block, in iid: [task->count]. PARLEY_ENOMEM. */
PARLEY_CHECK int partition_block_keys(const struct partition_task *task, uint64_t *block_key);

/* Who of the members has most of it owns a block. */
uint64_t partition_weight(uint64_t member_key, uint64_t block_key);

#endif
