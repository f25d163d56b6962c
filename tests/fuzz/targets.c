/* targets.c: the table, and how a finding is told. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

const struct fuzz_target fuzz_targets[] = {
#define X(name) {#name, fuzz_##name, fuzz_##name##_seeds},
    FUZZ_TARGETS(X)
#undef X
        {0}};

const struct fuzz_target *fuzz_find(const char *name)
{
    for (const struct fuzz_target *target = fuzz_targets; target->name; target++)
        if (strcmp(target->name, name) == 0) return target;
    return NULL;
}

void fuzz_broken(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: broken: %s\n", file, line, what);
    abort();
}
