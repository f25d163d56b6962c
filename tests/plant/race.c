/*
 * race.c: a planted data race. checks/guard.sh wants it caught in a build with ThreadSanitizer.
 *
 * One thread writes well after the other, which still runs, and nothing orders the two: a relaxed
 * count does not. Writes at the very same moment would not do: each thread may look for others
 * before the other is noted, and then once in some hundred runs nothing is seen.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

int raced; /* not static, or the compiler would drop what nobody reads */
static atomic_int written;

static void wait_until(int writes)
{
    while (atomic_load_explicit(&written, memory_order_relaxed) < writes)
        ;
}

static void write_once(void)
{
    raced = 1;
    atomic_fetch_add_explicit(&written, 1, memory_order_relaxed);
}

static void *write_first(void *unused)
{
    (void)unused;
    write_once();
    wait_until(2);
    return NULL;
}

int main(void)
{
    pthread_t first;
    if (pthread_create(&first, NULL, write_first, NULL) != 0) return 1;
    wait_until(1);
    write_once();
    return pthread_join(first, NULL);
}
