/* descriptors.c: see descriptors.h. */
#include "descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

/* What a node opens before it has a peer, libuv's own included: a pipe for signals, which the first
 * loop of a process makes, and the loop's epoll, eventfd and pipe; the eventfd that wakes it; the
 * listening socket, the descriptor by which it turns away who is too much, and the one kept back.
 */
enum { AT_START = 11 };

static _Atomic unsigned keepers;
static _Atomic int kept = -1;

/* Where one of them is closed the next socket gets its number: what the program prints would go to
 * a peer, and libuv aborts the process when it closes it. */
static int check_standard_files(char *why, size_t size)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0) continue;
        snprintf(why, size,
                 "descriptor %d is closed, and a socket would take its place; open /dev/null there",
                 fd);
        return PARLEY_EFAIL;
    }
    return PARLEY_OK;
}

/* libuv aborts the process where it can't make the pipe. So it is tried here; who takes them in
 * between is bad luck, as it is for any program. */
static int check_spare(char *why, size_t size)
{
    int spare[AT_START], count = 0;
    while (count < AT_START && (spare[count] = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)) >= 0)
        count++;
    for (int i = 0; i < count; i++)
        close(spare[i]);
    if (count == AT_START) return PARLEY_OK;
    snprintf(why, size,
             "too many open files (ulimit -n): a node starts with %d more, and %d can be had",
             AT_START, count);
    return PARLEY_EFAIL;
}

int descriptors_check(char *why, size_t size)
{
    int code = check_standard_files(why, size);
    return code ? code : check_spare(why, size);
}

static void spend(void)
{
    int fd = atomic_exchange(&kept, -1);
    if (fd >= 0) close(fd);
}

static void keep_one(void)
{
    int none = -1;
    if (atomic_load(&keepers) == 0 || atomic_load(&kept) >= 0) return;
    int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
    if (fd >= 0 && !atomic_compare_exchange_strong(&kept, &none, fd)) close(fd);
}

void descriptors_keep(void)
{
    atomic_fetch_add(&keepers, 1);
    keep_one();
}

void descriptors_keep_no_more(void)
{
    if (atomic_fetch_sub(&keepers, 1) == 1) spend();
}

int descriptors_open(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0666);
    if (fd >= 0 || (errno != EMFILE && errno != ENFILE)) return fd;
    spend();
    return open(path, flags | O_CLOEXEC, 0666);
}

int descriptors_close(int fd)
{
    int code = close(fd), cause = errno;
    keep_one();
    errno = cause;
    return code;
}
