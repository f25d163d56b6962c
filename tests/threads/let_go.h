/* let_go.h: how many threads were let go, which nobody waits for then.
 *
 * Before anything else is included: _GNU_SOURCE, for RTLD_NEXT.
 */
#ifndef PARLEY_TESTS_LET_GO_H
#define PARLEY_TESTS_LET_GO_H

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

static atomic_uint let_go;

int pthread_detach(pthread_t thread)
{
    int (*real)(pthread_t);
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_detach");
    atomic_fetch_add(&let_go, 1);
    return real(thread);
}

#endif
