/* wake.c: a loop that sleeps is woken, once (peers/wake.h).
 *
 *   - it sleeps from the first, and one that is awake costs who rings no system call
 *   - what woke it is taken away: it is not woken by it again, and again, for nothing
 *
 * One thread, with a plain main().
 */
#include <errno.h>
#include <unistd.h>

#include "check.h"
#include "wake.h"

/* How many rings wait for the loop; 0: it can sleep. */
static uint64_t rings(const struct wake *wake)
{
    uint64_t count = 0;
    if (read(wake->fd, &count, sizeof count) == sizeof count) return count;
    check(errno == EAGAIN, "nobody waits for a ring");
    return 0;
}

int main(void)
{
    uv_loop_t loop;
    struct wake wake;
    if (uv_loop_init(&loop) || wake_init(&wake, &loop)) return 1;
    check(rings(&wake) == 0, "nobody has rung");
    wake_ring(&wake);
    wake_ring(&wake);
    check(rings(&wake) == 1, "it slept from the first, and is rung for once");
    wake_sleep(&wake);
    wake_ring(&wake);
    uv_run(&loop, UV_RUN_ONCE);
    check(rings(&wake) == 0, "the loop takes away what woke it");
    wake_sleep(&wake);
    wake_up(&wake);
    wake_ring(&wake);
    check(rings(&wake) == 0, "who is awake is not rung for");
    wake_close(&wake);
    uv_run(&loop, UV_RUN_DEFAULT);
    check(uv_loop_close(&loop) == 0, "nothing is left open");
    wake_free(&wake);
    return failures ? 1 : 0;
}
