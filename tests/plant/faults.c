/* faults.c: planted faults. checks/guard.sh runs them one at a time and wants each one caught. */
#include <criterion/criterion.h>
#include <limits.h>
#include <stdlib.h>

/* volatile: the compiler must neither see through nor drop the fault. */
static void *volatile kept;
static volatile int number = INT_MAX;
static volatile size_t index_past_end = 8;

Test(plant, none)
{
    /* What must pass, so that the others can't be caught for the wrong reason. */
    kept = malloc(8);
    cr_assert(kept != NULL);
    free(kept);
}

Test(plant, leak)
{
    kept = malloc(8);
    cr_assert(kept != NULL);
    kept = NULL;
}

Test(plant, overflow)
{
    number = number + 1;
}

Test(plant, bounds)
{
    volatile char *bytes = malloc(index_past_end);
    cr_assert(bytes != NULL);
    bytes[index_past_end] = 1;
    free((void *)bytes);
}
