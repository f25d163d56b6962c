/* environment.c: what libraries want of the process. What they read from the environment must be
 * there before main(): the program starts itself once more. What the user has set stays as it is.
 *
 *   OPENBLAS_*       OpenBLAS chooses its kernels in its constructor, and its releases do not know
 *                    later CPUs: they then fall back to kernels of a third of the speed.
 *   GLIBC_TUNABLES   malloc takes large pages: a simulation's nodes are read from all over.
 */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <cblas.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli.h"
#include "kernels/path.h"

#define GUARD "PARLEY_STARTED_ANEW"

/* Of the buffer that OpenBLAS keeps, on the machines where it is largest, and how it aligns it. The
 * product is one that it does not make without the buffer. */
enum { BUFFER_MIB = 129, SIDE = 128 };

static const char *best_core(void)
{
    enum kernel_path path = kernel_path_best();
    if (path == KERNEL_PATH_AVX512) return "SkylakeX";
    return path == KERNEL_PATH_AVX2 ? "Haswell" : NULL;
}

/* True if it was not there. */
static bool suggest(const char *name, const char *value)
{
    if (!value || getenv(name)) return false;
    setenv(name, value, 1);
    return true;
}

void environment_choose(enum verb verb, char *const *argv)
{
    if (!getenv(GUARD)) {
        bool core = suggest("OPENBLAS_CORETYPE", best_core());
        bool threads = suggest("OPENBLAS_NUM_THREADS", "1");
        bool pages = verb == VERB_SIM && suggest("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1");
        /* What run starts has it from the start, and it computes nothing itself. */
        if ((core || threads || pages) && verb != VERB_RUN) {
            setenv(GUARD, "1", 1);
            execv("/proc/self/exe", argv);
            /* It could not: go on, only slower. */
        }
    }
    unsetenv(GUARD);
}

/* OpenBLAS takes its buffer with the first product, and where it can't have it asks again for ever:
 * the trainer would hang in its first step. So the buffer is taken here, once it can be had. */
int environment_claim(char *why, size_t why_size)
{
    size_t bytes = (size_t)BUFFER_MIB << 20;
    void *room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) {
        snprintf(why, why_size,
                 "%d MiB of memory for OpenBLAS can't be had: %s; raise the limit (ulimit -v)",
                 BUFFER_MIB, strerror(errno));
        return PARLEY_ENOMEM;
    }
    munmap(room, bytes);
    float *a = calloc((size_t)3 * SIDE * SIDE, sizeof *a);
    if (!a) return PARLEY_ENOMEM;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, SIDE, SIDE, SIDE, 1, a, SIDE,
                a + SIDE * SIDE, SIDE, 0, a + 2 * SIDE * SIDE, SIDE);
    free(a);
    return 0;
}

const char *environment_blas(void)
{
    return openblas_get_corename();
}
