/* race.c: a planted data race. checks/guard.sh wants it caught in a build with ThreadSanitizer. */
#include <pthread.h>

static int counter;

static void *count(void *unused)
{
    (void)unused;
    for (int i = 0; i < 100000; i++)
        counter++;
    return NULL;
}

int main(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, count, NULL) != 0) return 1;
    count(NULL);
    return pthread_join(thread, NULL);
}
