/* plain.c: see plain.h. */
#include "cli/bench/plain.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int connect_pair(int fds[2])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0) return errno;
    fds[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fds[1] >= 0 && bind(listener, (struct sockaddr *)&address, size) == 0 &&
        listen(listener, 1) == 0 &&
        getsockname(listener, (struct sockaddr *)&address, &size) == 0 &&
        connect(fds[1], (struct sockaddr *)&address, size) == 0)
        fds[0] = accept(listener, NULL, NULL);
    int code = fds[0] < 0 ? errno : 0;
    close(listener);
    for (int i = 0; !code && i < 2; i++) {
        setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        if (fcntl(fds[i], F_SETFL, O_NONBLOCK) || fcntl(fds[i], F_SETFD, FD_CLOEXEC)) code = errno;
    }
    return code;
}

int plain_open(struct plain *plain, size_t count)
{
    *plain = (struct plain){.fds = {-1, -1}, .count = count};
    plain->x = calloc(count, sizeof *plain->x);
    plain->theirs = calloc(count, sizeof *plain->theirs);
    if (!plain->x || !plain->theirs) return ENOMEM;
    return connect_pair(plain->fds);
}

void plain_close(struct plain *plain)
{
    for (int i = 0; i < 2; i++)
        if (plain->fds[i] >= 0) close(plain->fds[i]);
    free(plain->x);
    free(plain->theirs);
    *plain = (struct plain){.fds = {-1, -1}};
}

/* What was both sent and received since `from` is averaged while it is still in the cache. */
static size_t average(struct plain *plain, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        plain->x[i] = 0.5f * (plain->x[i] + plain->theirs[i]);
    return to;
}

static bool fine(ssize_t moved)
{
    return moved > 0 || (moved < 0 && (errno == EAGAIN || errno == EINTR));
}

static bool exchange(struct plain *plain, int fd, uint32_t call_bytes)
{
    size_t bytes = plain->count * sizeof(float), sent = 0, got = 0, done = 0;
    while (sent < bytes || got < bytes) {
        ssize_t out = 0, in = 0;
        if (sent < bytes) {
            size_t size = bytes - sent < call_bytes ? bytes - sent : call_bytes;
            out = send(fd, (char *)plain->x + sent, size, MSG_NOSIGNAL);
            if (!fine(out)) return false;
            if (out > 0) sent += (size_t)out;
        }
        if (got < bytes) {
            size_t size = bytes - got < call_bytes ? bytes - got : call_bytes;
            in = recv(fd, (char *)plain->theirs + got, size, 0);
            if (!fine(in)) return false;
            if (in > 0) got += (size_t)in;
        }
        done = average(plain, done, (sent < got ? sent : got) / sizeof(float));
        if (out > 0 || in > 0) continue;
        struct pollfd poll_for = {.fd = fd};
        poll_for.events = (short)((sent < bytes ? POLLOUT : 0) | (got < bytes ? POLLIN : 0));
        if (poll(&poll_for, 1, -1) < 0 && errno != EINTR) return false;
    }
    return true;
}

static bool wait_readable(int fd)
{
    struct pollfd poll_for = {.fd = fd, .events = POLLIN};
    while (poll(&poll_for, 1, -1) < 0)
        if (errno != EINTR) return false;
    return true;
}

void plain_serve(struct plain *plain)
{
    uint32_t call_bytes;
    int fd = plain->fds[1];
    close(plain->fds[0]);
    plain->fds[0] = -1;
    while (wait_readable(fd) && recv(fd, &call_bytes, sizeof call_bytes, 0) == sizeof call_bytes &&
           exchange(plain, fd, call_bytes))
        continue;
}

bool plain_exchange(struct plain *plain, uint32_t call_bytes)
{
    int fd = plain->fds[0];
    return send(fd, &call_bytes, sizeof call_bytes, MSG_NOSIGNAL) == sizeof call_bytes &&
           exchange(plain, fd, call_bytes);
}
