/* pages.c: see pages.h. Advice that the system does not take is no failure. */
#define _DEFAULT_SOURCE /* madvise */
#include "world/compute/pages.h"

#include <stdint.h>
#include <sys/mman.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* since Linux 6.1 */
#endif

/* The whole large pages in it. */
static void advise(void *memory, size_t bytes, int advice)
{
    uintptr_t begin = (uintptr_t)memory, end = begin + bytes, page = SIM_LARGE_PAGE;
    begin = (begin + page - 1) / page * page;
    end = end / page * page;
    if (begin < end) (void)madvise((void *)begin, end - begin, advice);
}

void sim_pages_advise(void *memory, size_t bytes)
{
    advise(memory, bytes, MADV_HUGEPAGE);
}

void sim_pages_collapse(void *memory, size_t bytes)
{
    if (!memory) return;
    advise(memory, bytes, MADV_HUGEPAGE);
    advise(memory, bytes, MADV_COLLAPSE);
}
