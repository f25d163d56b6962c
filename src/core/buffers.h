/* buffers.h: sets of a node's buffers, by which a driver tells what operations may not overlap, and
 * which of them wait for a boundary.
 *
 * Thread rule: pure.
 */
#ifndef PARLEY_CORE_BUFFERS_H
#define PARLEY_CORE_BUFFERS_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "parley/node.h"

struct buffer_set {
    uint64_t words[PARLEY_BUFFERS_MAX / 64];
};

static inline void buffers_add(struct buffer_set *set, uint32_t buffer)
{
    assert(buffer < PARLEY_BUFFERS_MAX);
    set->words[buffer / 64] |= UINT64_C(1) << buffer % 64;
}

static inline void buffers_join(struct buffer_set *set, const struct buffer_set *other)
{
    for (int i = 0; i < PARLEY_BUFFERS_MAX / 64; i++)
        set->words[i] |= other->words[i];
}

static inline bool buffers_meet(const struct buffer_set *a, const struct buffer_set *b)
{
    bool meet = false;
    for (int i = 0; i < PARLEY_BUFFERS_MAX / 64; i++)
        meet = meet || (a->words[i] & b->words[i]) != 0;
    return meet;
}

/* Whether an operation is carried out at a boundary (node.h). */
static inline bool buffers_at_boundary(enum parley_update_type type)
{
    return type == PARLEY_UPDATE_TAKE || type == PARLEY_UPDATE_SET || type == PARLEY_UPDATE_ADD ||
           type == PARLEY_UPDATE_MIX || type == PARLEY_UPDATE_GRADIENT ||
           type == PARLEY_UPDATE_APPLY;
}

/* Those that an operation on vectors names. */
static inline struct buffer_set buffers_of(const struct parley_update *update)
{
    enum parley_update_type type = update->type;
    struct buffer_set set = {{0}};
    if (type == PARLEY_UPDATE_TAKE || type == PARLEY_UPDATE_SET) {
        assert(update->vector.vectors <= PARLEY_VECTORS_MAX);
        for (uint32_t v = 0; v < update->vector.vectors; v++)
            buffers_add(&set, update->vector.buffers[v]);
        return set;
    }
    bool two = type == PARLEY_UPDATE_DIFF || type == PARLEY_UPDATE_COMBINE;
    buffers_add(&set, update->vector.buffer);
    if (two || update->vector.at_other) buffers_add(&set, update->vector.other);
    return set;
}

#endif
