/* wake.c: see wake.h. */
#include "wake.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct wake *wake = poll->data;
    uint64_t count;
    (void)status;
    (void)events;
    while (read(wake->fd, &count, sizeof count) < 0 && errno == EINTR)
        continue;
}

int wake_init(struct wake *wake, uv_loop_t *loop)
{
    atomic_init(&wake->asleep, true);
    wake->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake->fd < 0) return uv_translate_sys_error(errno);
    int code = uv_poll_init(loop, &wake->poll, wake->fd);
    wake->poll.data = wake;
    if (!code) code = uv_poll_start(&wake->poll, UV_READABLE, on_poll);
    if (code) wake_free(wake);
    return code;
}

void wake_close(struct wake *wake)
{
    uv_close((uv_handle_t *)&wake->poll, NULL);
}

void wake_free(struct wake *wake)
{
    close(wake->fd);
}

/* All orders are sequentially consistent: either the loop sees the news or the ringer that it
 * sleeps. */
void wake_ring(struct wake *wake)
{
    uint64_t one = 1;
    if (!atomic_exchange(&wake->asleep, false)) return;
    while (write(wake->fd, &one, sizeof one) < 0 && errno == EINTR)
        continue;
}

void wake_sleep(struct wake *wake)
{
    atomic_store(&wake->asleep, true);
}

void wake_up(struct wake *wake)
{
    atomic_store_explicit(&wake->asleep, false, memory_order_relaxed);
}
