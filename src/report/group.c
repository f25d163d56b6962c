/* group.c: see group.h. Nearly always the first group is the largest, and no other is looked for.
 */
#include "report/group.h"

uint32_t group_largest(uint32_t count, group_alike *alike, void *context, uint32_t *first)
{
    uint32_t most = 0;
    for (uint32_t i = 0; most < count - i; i++) {
        uint32_t size = 0;
        if (!alike(context, i, i)) continue;
        for (uint32_t j = i; j < count; j++)
            size += alike(context, i, j);
        if (size <= most) continue;
        most = size;
        *first = i;
    }
    return most;
}
