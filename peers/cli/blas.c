/* blas.c: which of OpenBLAS's kernels compute.
 *
 * OpenBLAS chooses in its constructor, before main(), and its releases do not know later CPUs: they
 * then fall back to kernels of a third of the speed. So the environment must name the kernels
 * before the program starts: it starts itself once more. What the user has set stays as it is.
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

void blas_choose(char *const *argv)
{
    const char *core = getenv("OPENBLAS_CORETYPE") ? NULL : best_core();
    bool threads = !getenv("OPENBLAS_NUM_THREADS");
    if (!getenv(GUARD) && (core || threads)) {
        if (core) setenv("OPENBLAS_CORETYPE", core, 1);
        if (threads) setenv("OPENBLAS_NUM_THREADS", "1", 1);
        setenv(GUARD, "1", 1);
        execv("/proc/self/exe", argv);
        /* It could not: go on, only slower. */
    }
    unsetenv(GUARD);
}

const char *blas_core(void)
{
    return openblas_get_corename();
}
