/* threads.c: how many threads a simulation computes in. */
#define _GNU_SOURCE /* sched_getaffinity */
#include <sched.h>

#include "settings/simulate.h"
#include "world/compute/workers.h"

uint32_t sim_cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set)) return 1;
    int cores = CPU_COUNT(&set);
    return cores < SIM_THREADS_MAX ? (uint32_t)cores : SIM_THREADS_MAX;
}

uint32_t sim_threads(const struct settings *settings)
{
    return settings->threads > 0 ? (uint32_t)settings->threads : sim_cores();
}
