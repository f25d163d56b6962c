/* blas.c: OpenBLAS made safe for several threads.
 *
 * Its serial build looks for a free work buffer without a lock: of two products in two threads that
 * need one, a few in a thousand come out wrong. Both its functions for that are called through the
 * dynamic linker, so these take their place, with a lock held for some 20 ns a product. Where they
 * are not called (OpenBLAS linked statically) sim_blas_is_safe() finds out.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <cblas.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "world/compute/workers.h"

/* File-scope state, as the two have no context to keep it in. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t found = PTHREAD_ONCE_INIT;
static void *(*theirs_alloc)(int);
static void (*theirs_free)(void *);
static uint64_t calls;

void *blas_memory_alloc(int where);
void blas_memory_free(void *buffer);

static void find(void)
{
    void *alloc = dlsym(RTLD_NEXT, "blas_memory_alloc");
    void *release = dlsym(RTLD_NEXT, "blas_memory_free");
    memcpy(&theirs_alloc, &alloc, sizeof theirs_alloc); /* ISO C has no cast to functions */
    memcpy(&theirs_free, &release, sizeof theirs_free);
}

void *blas_memory_alloc(int where)
{
    pthread_once(&found, find);
    pthread_mutex_lock(&lock);
    calls++;
    void *buffer = theirs_alloc(where);
    pthread_mutex_unlock(&lock);
    return buffer;
}

void blas_memory_free(void *buffer)
{
    pthread_once(&found, find);
    pthread_mutex_lock(&lock);
    theirs_free(buffer);
    pthread_mutex_unlock(&lock);
}

bool sim_blas_is_safe(void)
{
    enum { N = 128 }; /* too large for the kernels that need no buffer */
    static const float zeros[N * N];
    float into[N * N];
    if (openblas_get_parallel()) return true; /* built with locks */
    pthread_mutex_lock(&lock);
    uint64_t before = calls;
    pthread_mutex_unlock(&lock);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, N, N, N, 1, zeros, N, zeros, N, 0, into,
                N);
    pthread_mutex_lock(&lock);
    bool called = calls > before;
    pthread_mutex_unlock(&lock);
    return called;
}
