/* conn.c: one connection of the loop, without a node behind it (peers/network/conn.h).
 *
 *   - where the core closes it while it waits for floats, what is queued still goes out, whether
 *     its reading had been stopped by then or not
 *   - where the other end is dead nothing is flushed
 *
 * Plain main(), so that it runs under ThreadSanitizer.
 */
#include "network/conn.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"

enum { LINK = 2, FRAME_BYTES = 8 * 1024 * 1024 }; /* more than the kernel takes at once */

static struct loop loop;
static struct vectors vectors;

/* Both ends of a connection over the loopback. */
static void connect_ends(int ends[2])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (listener < 0 || ends[0] < 0 || bind(listener, (struct sockaddr *)&at, sizeof at) ||
        listen(listener, 1) || getsockname(listener, (struct sockaddr *)&at, &size) ||
        connect(ends[0], (struct sockaddr *)&at, sizeof at) ||
        (ends[1] = accept(listener, NULL, NULL)) < 0)
        exit(1);
    close(listener);
}

/* Until its end: how many bytes came. */
static void read_all(void *argument)
{
    int fd = *(int *)argument;
    static char bytes[65536];
    size_t total = 0;
    ssize_t got;
    while ((got = recv(fd, bytes, sizeof bytes, 0)) > 0)
        total += (size_t)got;
    check(got == 0 && total == FRAME_BYTES, "what was queued went out");
    close(fd);
}

/* More is queued than the kernel takes. */
static struct conn *open_queued(int ends[2])
{
    static uint8_t frame[FRAME_BYTES];
    connect_ends(ends);
    struct conn *conn = conn_new(&loop, LINK);
    if (!conn || uv_tcp_open(&conn->tcp, ends[0])) exit(1);
    conn_opened(conn);
    conn_send(&loop, LINK, frame, sizeof frame);
    return conn;
}

static void close_at_once(void)
{
    int ends[2];
    open_queued(ends);
    conn_close(&loop, LINK, true);
    check(loop.conns_shut == 0, "nothing is flushed");
    uv_run(&loop.uv, UV_RUN_DEFAULT);
    check(atomic_load(&loop.connections) == 0, "it is gone though nobody reads");
    close(ends[1]);
}

static void close_while_it_waits(bool stopped)
{
    int ends[2];
    uv_thread_t thread;
    struct conn *conn = open_queued(ends);
    conn->waits = true;
    if (stopped) uv_read_stop((uv_stream_t *)&conn->tcp);
    conn_close(&loop, LINK, false);
    check(loop.conns_shut == 1, "it is being flushed");
    uv_thread_create(&thread, read_all, &ends[1]);
    uv_run(&loop.uv, UV_RUN_DEFAULT);
    uv_thread_join(&thread);
    check(loop.conns_shut == 0 && atomic_load(&loop.connections) == 0, "and is gone in the end");
}

int main(void)
{
    loop.vectors = &vectors;
    loop.finished = true; /* there is no node to be told */
    if (uv_loop_init(&loop.uv)) return 1;
    close_while_it_waits(true);
    close_while_it_waits(false);
    close_at_once();
    uv_loop_close(&loop.uv);
    return failures ? 1 : 0;
}
