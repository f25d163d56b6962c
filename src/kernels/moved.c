/* moved.c: see moved.h. */
#include "kernels/moved.h"

#include <string.h>

enum { ALL = MOVED_PLACES * MOVED_RUN };

static size_t place(size_t i, size_t n)
{
    return i * ((n - MOVED_RUN) / (MOVED_PLACES - 1));
}

void moved_begin(struct moved *moved, const float *x, size_t n)
{
    if (n <= ALL) memcpy(moved->before, x, n * sizeof *x);
    for (size_t i = 0; n > ALL && i < MOVED_PLACES; i++)
        memcpy(moved->before + i * MOVED_RUN, x + place(i, n), MOVED_RUN * sizeof *x);
}

double moved_end(const struct moved *moved, const float *x, size_t n)
{
    struct moved after;
    size_t count = n < ALL ? n : ALL;
    double sum = 0;
    moved_begin(&after, x, n);
    for (size_t i = 0; i < count; i++) {
        double by = (double)after.before[i] - moved->before[i];
        sum += by * by;
    }
    return sum * (double)n / (double)count;
}
