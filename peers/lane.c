/* lane.c: see lane.h. */
#define _GNU_SOURCE /* struct ucred, F_GET_SEALS */
#include "lane.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "address.h"
#include "conn.h"

/* Smaller files stay mapped: mapping their pages anew takes longer than reading them. */
enum { NOTES_MAX = 64, MAPPED_BYTES_MAX = 16 * 1024 * 1024 };

enum note_type { NOTE_ASK = 0x7061726c, NOTE_MEMORY, NOTE_OPENED, NOTE_TAKEN };

struct note {
    uint32_t type;
    char address[PARLEY_ADDRESS_SIZE]; /* ASK: the dialler's end of the TCP connection */
};

/* ---- Notes ----------------------------------------------------------------------------------- */

union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
};

/* With a descriptor, unless it is negative. False: it could not be sent, now or ever. */
static bool say(int fd, const struct sockaddr_un *to, socklen_t to_size, const struct note *note,
                int file)
{
    union control control = {0};
    struct iovec part = {(void *)(uintptr_t)note, sizeof *note};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_name = (void *)(uintptr_t)to,
                             .msg_namelen = to ? to_size : 0};
    if (file >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(sizeof file);
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof file);
        memcpy(CMSG_DATA(head), &file, sizeof file);
    }
    ssize_t sent;
    while ((sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT)) < 0 && errno == EINTR)
        continue;
    return sent == (ssize_t)sizeof *note;
}

/* The one that came, for the caller to close. Of several, as many as there was room for, none. */
static int only_file(const struct cmsghdr *head)
{
    int files[sizeof(union control) / sizeof(int)];
    size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof *files;
    memcpy(files, CMSG_DATA(head), count * sizeof *files);
    if (count == 1) return files[0];
    for (size_t i = 0; i < count; i++)
        close(files[i]);
    return -1;
}

/* recvmsg's result. *file is the caller's to close, of an empty note too; -1: none came. *own: this
 * user's process sent it, as the kernel says. */
static ssize_t hear(int fd, struct note *note, int *file, bool *own)
{
    union control control;
    struct iovec part = {note, sizeof *note};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control};
    *file = -1;
    *own = false;
    ssize_t got;
    while ((got = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
        continue;
    if (got < 0) return got;
    for (struct cmsghdr *head = CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head)) {
        struct ucred from;
        if (head->cmsg_level != SOL_SOCKET) continue;
        if (head->cmsg_type == SCM_RIGHTS) *file = only_file(head);
        if (head->cmsg_type != SCM_CREDENTIALS) continue;
        memcpy(&from, CMSG_DATA(head), sizeof from);
        *own = from.uid == geteuid();
    }
    note->address[sizeof note->address - 1] = 0;
    if (got != (ssize_t)sizeof *note) note->type = 0;
    return got;
}

static bool wants_credentials(int fd)
{
    int one = 1;
    return setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &one, sizeof one) == 0;
}

/* ---- A lane ---------------------------------------------------------------------------------- */

static void on_closed(uv_handle_t *handle)
{
    struct lane *lane = handle->data;
    if (lane->theirs) munmap(lane->theirs, lane->theirs_size);
    close(lane->fd);
    free(lane);
}

/* No chunk goes that way any more; those under way will never be TAKEN. */
static void broken(struct lane *lane)
{
    lane->sends = false;
    uv_poll_stop(&lane->poll);
    if (lane->count > 0 && lane->conn->state == CONN_OPEN)
        conn_end(lane->conn, PARLEY_CLOSED_RESET, UV_ECONNRESET);
}

/* Who reads from a file of another kind could be made to wait; what is cut off one, a signal. */
static bool map_file(struct lane *lane, int file)
{
    struct stat status;
    int seals = fcntl(file, F_GET_SEALS);
    if (seals < 0 || !(seals & F_SEAL_SHRINK)) return false;
    if (fstat(file, &status) || status.st_size <= 0) return false;
    void *at = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, file, 0);
    if (at == MAP_FAILED) return false;
    lane->theirs = at;
    lane->theirs_size = (size_t)status.st_size;
    return true;
}

static bool give(struct lane *lane)
{
    const struct vectors *vectors = lane->conn->loop->vectors;
    struct note memory = {.type = NOTE_MEMORY};
    lane->gave = true;
    return say(lane->fd, NULL, 0, &memory, vectors->file);
}

/* False: the lane is of no use. */
static bool on_note(struct lane *lane, const struct note *note, int file, bool own)
{
    struct parley_event event = {.type = PARLEY_EVENT_DONE};
    const struct note opened = {.type = NOTE_OPENED};
    switch (note->type) {
    case NOTE_MEMORY:
        if (!own || file < 0 || lane->theirs || !map_file(lane, file)) return false;
        return say(lane->fd, NULL, 0, &opened, -1) && (lane->gave || give(lane));
    case NOTE_OPENED:
        lane->sends = own && lane->gave;
        return lane->sends;
    case NOTE_TAKEN:
        if (lane->count == 0) return false;
        event.done.op = lane->ops[lane->first];
        event.done.ok = true;
        lane->first = (lane->first + 1) % LANE_FLIGHT_MAX;
        lane->count--;
        loop_tell(lane->conn->loop, &event);
        return true;
    default:
        return false;
    }
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct lane *lane = poll->data;
    (void)events;
    bool fine = status == 0;
    /* While the connection is being shut, too: what was sent may still be TAKEN. */
    for (int i = 0; fine && i < NOTES_MAX && lane->conn->state != CONN_ENDED; i++) {
        struct note note;
        int file;
        bool own;
        ssize_t got = hear(lane->fd, &note, &file, &own);
        if (got < 0 && errno == EAGAIN) return;
        fine = got > 0 && on_note(lane, &note, file, own);
        if (file >= 0) close(file);
    }
    if (!fine || lane->conn->state == CONN_ENDED) broken(lane);
}

/* Takes the socket, whatever comes of it. */
static struct lane *lane_new(struct conn *conn, int fd)
{
    struct lane *lane = calloc(1, sizeof *lane);
    if (!lane || !wants_credentials(fd) || fcntl(fd, F_SETFL, O_NONBLOCK) ||
        uv_poll_init(&conn->loop->uv, &lane->poll, fd)) {
        close(fd);
        free(lane);
        return NULL;
    }
    lane->poll.data = lane;
    lane->fd = fd;
    lane->conn = conn;
    conn->lane = lane;
    uv_poll_start(&lane->poll, UV_READABLE, on_poll);
    return lane;
}

void lane_end(struct conn *conn)
{
    struct lane *lane = conn->lane;
    if (!lane) return;
    for (; lane->count > 0; lane->count--) {
        struct parley_event event = {.type = PARLEY_EVENT_DONE,
                                     .done = {.op = lane->ops[lane->first]}};
        lane->first = (lane->first + 1) % LANE_FLIGHT_MAX;
        loop_tell(conn->loop, &event);
    }
    conn->lane = NULL;
    uv_close((uv_handle_t *)&lane->poll, on_closed);
}

/* ---- Asking for one -------------------------------------------------------------------------- */

/* The name of a door, after the TCP address beside it. Those of Linux's own space are no files. */
static socklen_t door_name(struct sockaddr_un *name, const char *address)
{
    *name = (struct sockaddr_un){.sun_family = AF_UNIX};
    int size = snprintf(name->sun_path + 1, sizeof name->sun_path - 1, "parley-lane %s", address);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)size);
}

static bool same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    char hosts[2][PARLEY_ADDRESS_SIZE];
    struct address split[2];
    address_print(hosts[0], (const struct sockaddr *)a);
    address_print(hosts[1], (const struct sockaddr *)b);
    return !address_split(&split[0], hosts[0]) && !address_split(&split[1], hosts[1]) &&
           strcmp(split[0].host, split[1].host) == 0;
}

/* Its door is named by its own address, or by that of all addresses. */
static bool knock(int fd, const struct note *ask, int end, const char *address)
{
    struct sockaddr_un name;
    struct address split;
    char any[PARLEY_ADDRESS_SIZE];
    if (say(fd, &name, door_name(&name, address), ask, end)) return true;
    if (address_split(&split, address)) return false;
    const char *host = strchr(split.host, ':') ? "::" : "0.0.0.0";
    if (address_join(any, host, (unsigned)atoi(split.port))) return false;
    return say(fd, &name, door_name(&name, any), ask, end);
}

void lane_ask(struct conn *conn)
{
    struct loop *loop = conn->loop;
    struct sockaddr_storage here = {0}, there = {0};
    int size = sizeof here, ends[2];
    if (conn->lane || loop->door.fd < 0) return;
    if (uv_tcp_getsockname(&conn->tcp, (struct sockaddr *)&here, &size)) return;
    size = sizeof there;
    if (uv_tcp_getpeername(&conn->tcp, (struct sockaddr *)&there, &size)) return;
    if (!same_host(&here, &there)) return;
    struct note ask = {.type = NOTE_ASK};
    char address[PARLEY_ADDRESS_SIZE];
    address_print(ask.address, (struct sockaddr *)&here);
    address_print(address, (struct sockaddr *)&there);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) return;
    /* Before the other end has its own: nothing may come without the name of who sent it. */
    struct lane *lane = lane_new(conn, ends[0]);
    if (lane && !knock(loop->door.fd, &ask, ends[1], address)) lane_end(conn);
    close(ends[1]);
}

static void on_door(uv_poll_t *poll, int status, int events)
{
    struct loop *loop = poll->data;
    (void)events;
    for (int i = 0; status == 0 && i < NOTES_MAX; i++) {
        struct note ask;
        int end;
        bool own;
        ssize_t got = hear(loop->door.fd, &ask, &end, &own);
        if (got < 0) return;
        struct conn *conn = NULL;
        if (got > 0 && own && end >= 0 && ask.type == NOTE_ASK) conn = conn_from(loop, ask.address);
        if (!conn || conn->lane || conn->state != CONN_OPEN) {
            if (end >= 0) close(end);
            continue;
        }
        struct lane *lane = lane_new(conn, end);
        if (lane && !give(lane)) lane_end(conn);
    }
}

void lane_open_door(struct loop *loop)
{
    struct sockaddr_un name;
    loop->door.fd = -1;
    if (loop->vectors->file < 0) return;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return;
    if (!wants_credentials(fd) ||
        bind(fd, (struct sockaddr *)&name, door_name(&name, loop->listens)) ||
        uv_poll_init(&loop->uv, &loop->door.poll, fd)) {
        close(fd);
        return;
    }
    loop->door.poll.data = loop;
    loop->door.fd = fd;
    uv_poll_start(&loop->door.poll, UV_READABLE, on_door);
}

static void on_door_closed(uv_handle_t *handle)
{
    struct loop *loop = handle->data;
    close(loop->door.fd);
    loop->door.fd = -1;
}

void lane_close_door(struct loop *loop)
{
    if (loop->door.fd < 0 || uv_is_closing((uv_handle_t *)&loop->door.poll)) return;
    uv_close((uv_handle_t *)&loop->door.poll, on_door_closed);
}

/* ---- Chunks ---------------------------------------------------------------------------------- */

bool lane_sends(const struct conn *conn)
{
    return conn->lane && conn->lane->sends && conn->lane->count < LANE_FLIGHT_MAX;
}

void lane_sent(struct conn *conn, uint32_t op)
{
    struct lane *lane = conn->lane;
    lane->ops[(lane->first + lane->count++) % LANE_FLIGHT_MAX] = op;
}

const uint8_t *lane_floats(const struct conn *conn, uint64_t place, size_t size)
{
    const struct lane *lane = conn->lane;
    if (!lane || !lane->theirs) return NULL;
    if (place % sizeof(float) || place > lane->theirs_size || size > lane->theirs_size - place)
        return NULL;
    return lane->theirs + place;
}

/* The pages up to the end of these floats: those that follow are read next. */
static void unmap(const struct lane *lane, uint64_t place, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t from = (size_t)place / page * page, end = ((size_t)place + size) / page * page;
    if (end > from) (void)madvise(lane->theirs + from, end - from, MADV_DONTNEED);
}

void lane_taken(struct conn *conn, uint64_t place, size_t size)
{
    const struct note taken = {.type = NOTE_TAKEN};
    if (conn->lane->theirs_size > MAPPED_BYTES_MAX) unmap(conn->lane, place, size);
    if (!say(conn->lane->fd, NULL, 0, &taken, -1))
        conn_end(conn, PARLEY_CLOSED_RESET, UV_ECONNRESET);
}
