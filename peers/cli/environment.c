/* environment.c: what libraries read from the environment before main(), so that it must be there
 * before the program starts: it starts itself once more. What the user has set stays as it is.
 *
 *   OPENBLAS_*       OpenBLAS chooses its kernels in its constructor, and its releases do not know
 *                    later CPUs: they then fall back to kernels of a third of the speed.
 *   GLIBC_TUNABLES   malloc takes large pages: a simulation's nodes are read from all over.
 */
#include <cblas.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli.h"
#include "kernels/path.h"

#define GUARD "PARLEY_STARTED_ANEW"

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

const char *environment_blas(void)
{
    return openblas_get_corename();
}
