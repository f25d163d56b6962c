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
#include <sys/prctl.h>
#include <unistd.h>

#include "cli.h"
#include "kernels/path.h"

#define GUARD "PARLEY_STARTED_ANEW"

/* Of a buffer that OpenBLAS keeps, on the machines where it is largest, and how it aligns it. It
 * has places for 50 at least. */
enum { BUFFER_MIB = 129, BUFFERS_MAX = 32 };

/* OpenBLAS's own, which no header of it has. */
void *blas_memory_alloc(int where);
void blas_memory_free(void *buffer);

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

/* Whoever is started by way of /proc/self/exe has "exe" for a name in ps, top and pgrep. */
static void keep_name(const char *called)
{
    char name[16]; /* as long as the kernel's, with its end */
    const char *slash = strrchr(called, '/');
    if (prctl(PR_GET_NAME, name) == 0 && strcmp(name, "exe") == 0)
        prctl(PR_SET_NAME, slash ? slash + 1 : called);
}

void environment_choose(enum verb verb, char *const *argv)
{
    keep_name(argv[0]);
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

static bool has_room(void)
{
    size_t bytes = (size_t)BUFFER_MIB << 20;
    void *room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return room != MAP_FAILED && munmap(room, bytes) == 0;
}

/* OpenBLAS takes a buffer with the first product of each thread, and where it can't have it asks
 * again for ever: training would hang in a step. So the buffers are taken here, each once it can be
 * had; those that are given back it keeps. */
int environment_claim(uint32_t threads, char *why, size_t why_size)
{
    void *held[BUFFERS_MAX];
    uint32_t wanted = threads < BUFFERS_MAX ? threads : BUFFERS_MAX, count = 0;
    while (count < wanted && has_room())
        held[count++] = blas_memory_alloc(0);
    if (count < wanted)
        snprintf(why, why_size,
                 "%d MiB of memory for OpenBLAS can't be had%s: %s; raise the limit (ulimit -v)",
                 BUFFER_MIB, wanted > 1 ? " for each thread" : "", strerror(errno));
    for (uint32_t i = 0; i < count; i++)
        blas_memory_free(held[i]);
    return count < wanted ? PARLEY_ENOMEM : 0;
}

const char *environment_blas(void)
{
    return openblas_get_corename();
}
