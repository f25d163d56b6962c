/* check.h: for tests with a plain main(), which ends with whether there are failures.
 * Thread rule: one thread.
 */
#ifndef PARLEY_TESTS_CHECK_H
#define PARLEY_TESTS_CHECK_H

#include <stdbool.h>
#include <stdio.h>

static int failures;

static void check(bool good, const char *what)
{
    if (good) return;
    fprintf(stderr, "broken: %s\n", what);
    failures++;
}

#endif
