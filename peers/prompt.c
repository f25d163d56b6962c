/* prompt.c: see prompt.h. */
#define _GNU_SOURCE
#include "prompt.h"

#include <errno.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

void prompt_thread(uint32_t slice_us)
{
    /* struct sched_attr in its first version (sched_setattr(2)); policy 0 is SCHED_OTHER. */
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime_ns, deadline_ns, period_ns;
    } attributes = {0};
    /* Priorities are the user's: of others there are no slices. */
    if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) || attributes.policy != 0)
        return;
    attributes.runtime_ns = UINT64_C(1000) * slice_us;
    long refused = syscall(SYS_sched_setattr, 0, &attributes, 0);
    (void)refused; /* it was a wish */
}

void prompt_others_first(void)
{
    enum { NICER = 5 };
    id_t thread = (id_t)syscall(SYS_gettid);
    errno = 0;
    int nice = getpriority(PRIO_PROCESS, thread);
    if (errno == 0 && setpriority(PRIO_PROCESS, thread, nice + NICER)) errno = 0; /* a wish, too */
}
