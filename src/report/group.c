/* group.c: see group.h. */
#include "report/group.h"

#include <string.h>

size_t group_largest(const char *const *digests, size_t count, size_t *first)
{
    size_t most = 0;
    for (size_t i = 0; most < count - i; i++) {
        size_t alike = 0;
        for (size_t j = i; digests[i] && j < count; j++)
            alike += digests[j] && strcmp(digests[i], digests[j]) == 0;
        if (alike <= most) continue;
        most = alike;
        *first = i;
    }
    return most;
}
