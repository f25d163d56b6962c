/* places.c: see places.h. */
#include "report/places.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b)
{
    char one[16], two[16];
    snprintf(one, sizeof one, "%" PRIu32, *(const uint32_t *)a);
    snprintf(two, sizeof two, "%" PRIu32, *(const uint32_t *)b);
    return strcmp(one, two);
}

void places_by_name(uint32_t *nodes, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        nodes[i] = i;
    qsort(nodes, n, sizeof *nodes, by_name);
}
