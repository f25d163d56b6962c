/* lane.c: see lane.h. */
#define _GNU_SOURCE /* struct ucred, accept4, F_GET_SEALS */
#include "network/lane.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "network/address.h"
#include "network/conn.h"
#include "quiet.h"

enum {
    NOTES_MAX = 64,
    WAITING_MAX = 512,                   /* at the door */
    GUESTS_MAX = 64,                     /* let in at a time */
    MAPPED_BYTES_MAX = 32 * 1024 * 1024, /* larger files are read, chunk by chunk */
    CACHE_LINE = 64
};

enum note_type { NOTE_MEMORY = 0x7061726c, NOTE_OPENED, NOTE_TAKEN };

struct note {
    uint32_t type;
};

/* ---- Notes ----------------------------------------------------------------------------------- */

union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int))];
};

/* With a descriptor, unless it is negative. False: it could not be sent, now or ever. */
static bool say(int fd, enum note_type type, int file)
{
    union control control = {0};
    struct note note = {type};
    struct iovec part = {&note, sizeof note};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
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
    return sent == (ssize_t)sizeof note;
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

/* recvmsg's result. *file is the caller's to close, of an empty note too; -1: none came. */
static ssize_t hear(int fd, struct note *note, int *file)
{
    union control control;
    struct iovec part = {note, sizeof *note};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control};
    *file = -1;
    ssize_t got;
    while ((got = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
        continue;
    if (got < 0) return got;
    for (struct cmsghdr *head = CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head))
        if (head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
            *file = only_file(head);
    if (got != (ssize_t)sizeof *note) note->type = 0;
    return got;
}

/* ---- Strangers ------------------------------------------------------------------------------- */

/* Whether the process at the other end is this user's, as the kernel says. */
static bool is_own(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

static void close_it(void *fd)
{
    close((int)(intptr_t)fd);
}

/* With a socket goes what was sent on it, and with that, if it is the last of a TCP connection that
 * lingers, as much time as whoever sent it wanted: no matter of the loop. */
static void close_aside(struct lane_door *door, int fd)
{
    for (uint32_t i = door->closers_count; i-- > 0;)
        if (pthread_tryjoin_np(door->closers[i], NULL) == 0)
            door->closers[i] = door->closers[--door->closers_count];
    uv_thread_t *next = &door->closers[door->closers_count];
    if (door->closers_count < LANE_CLOSERS_MAX &&
        quiet_thread_start(next, close_it, (void *)(intptr_t)fd) == 0)
        door->closers_count++; /* else it stays open */
}

void lane_join_closers(struct lane_door *door, uint64_t until_us)
{
    while (door->closers_count > 0) {
        uv_thread_t closer = door->closers[--door->closers_count];
        if (!loop_join(closer, until_us)) pthread_detach(closer);
    }
}

/* ---- A lane ---------------------------------------------------------------------------------- */

static void on_closed(uv_handle_t *handle)
{
    struct lane *lane = handle->data;
    if (lane->file >= 0) {
        free(lane->theirs);
        close(lane->file);
    } else if (lane->theirs) {
        munmap(lane->theirs, lane->theirs_size);
    }
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

static bool map_file(struct lane *lane, int file)
{
    void *at = mmap(NULL, lane->theirs_size, PROT_READ, MAP_SHARED, file, 0);
    if (at == MAP_FAILED) return false;
    lane->theirs = at;
    return true;
}

/* Sets *file to -1 where it keeps it. A file of another kind could make who reads it wait; one that
 * is cut short would end it by a signal. */
static bool take_file(struct lane *lane, int *file)
{
    struct stat status;
    int seals = fcntl(*file, F_GET_SEALS);
    if (seals < 0 || !(seals & F_SEAL_SHRINK)) return false;
    if (fstat(*file, &status) || status.st_size <= 0) return false;
    lane->theirs_size = (size_t)status.st_size;
    if (lane->theirs_size <= MAPPED_BYTES_MAX) return map_file(lane, *file);
    lane->theirs = aligned_alloc(CACHE_LINE, PARLEY_CHUNK_BYTES_MAX);
    if (!lane->theirs) return false;
    lane->file = *file;
    *file = -1;
    return true;
}

static bool give(struct lane *lane)
{
    const struct vectors *vectors = lane->conn->loop->vectors;
    lane->gave = true;
    return say(lane->fd, NOTE_MEMORY, vectors->file);
}

/* The oldest chunk under way was TAKEN, or never will be. */
static void over(struct lane *lane, bool taken)
{
    struct parley_event event = {.type = PARLEY_EVENT_DONE,
                                 .done = {.op = lane->ops[lane->first], .ok = taken}};
    lane->first = (lane->first + 1) % LANE_FLIGHT_MAX;
    lane->count--;
    loop_tell(lane->conn->loop, &event);
}

/* False: the lane is of no use. Sets *file to -1 where it keeps it. */
static bool on_note(struct lane *lane, const struct note *note, int *file)
{
    switch (note->type) {
    case NOTE_MEMORY:
        if (*file < 0 || lane->theirs || !take_file(lane, file)) return false;
        return say(lane->fd, NOTE_OPENED, -1) && (lane->gave || give(lane));
    case NOTE_OPENED:
        lane->sends = lane->gave;
        return lane->sends;
    case NOTE_TAKEN:
        if (lane->count == 0) return false;
        over(lane, true);
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
        ssize_t got = hear(lane->fd, &note, &file);
        if (got < 0 && errno == EAGAIN) return;
        fine = got > 0 && on_note(lane, &note, &file);
        if (file >= 0) close(file);
    }
    if (!fine || lane->conn->state == CONN_ENDED) broken(lane);
}

/* Takes the socket, whatever comes of it. */
static struct lane *lane_new(struct conn *conn, int fd)
{
    struct lane *lane = calloc(1, sizeof *lane);
    if (!lane || uv_poll_init(&conn->loop->uv, &lane->poll, fd)) {
        close(fd);
        free(lane);
        return NULL;
    }
    lane->poll.data = lane;
    lane->fd = fd;
    lane->file = -1;
    lane->conn = conn;
    conn->lane = lane;
    uv_poll_start(&lane->poll, UV_READABLE, on_poll);
    return lane;
}

void lane_end(struct conn *conn)
{
    struct lane *lane = conn->lane;
    if (!lane) return;
    while (lane->count > 0)
        over(lane, false);
    conn->lane = NULL;
    uv_close((uv_handle_t *)&lane->poll, on_closed);
}

/* ---- Asking for one -------------------------------------------------------------------------- */

/* Names of Linux's own space are no files. A door has the TCP address beside it, who asks there
 * that and its own end of the TCP connection. */
static socklen_t local_name(struct sockaddr_un *name, const char *door, const char *from)
{
    *name = (struct sockaddr_un){.sun_family = AF_UNIX};
    size_t room = sizeof name->sun_path - 1;
    size_t size = (size_t)snprintf(name->sun_path + 1, room, "parley %s%s%s", door, from ? " " : "",
                                   from ? from : "");
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size < room ? size : room));
}

static int local_socket(void)
{
    return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static bool same_host(const char *a, const char *b)
{
    struct address split[2];
    return !address_split(&split[0], a) && !address_split(&split[1], b) &&
           strcmp(split[0].host, split[1].host) == 0;
}

/* -1: nobody is there, or somebody else's process. */
static int knock(struct lane_door *ours, const char *door, const char *from)
{
    struct sockaddr_un here, there;
    int fd = local_socket();
    if (fd < 0) return -1;
    socklen_t here_size = local_name(&here, door, from),
              there_size = local_name(&there, door, NULL);
    if (bind(fd, (struct sockaddr *)&here, here_size) ||
        connect(fd, (struct sockaddr *)&there, there_size)) {
        close(fd);
        return -1;
    }
    if (is_own(fd)) return fd;
    close_aside(ours, fd);
    return -1;
}

static int knock_at_all(struct lane_door *ours, const char *host, unsigned port, const char *from)
{
    char any[PARLEY_ADDRESS_SIZE];
    return address_join(any, host, port) ? -1 : knock(ours, any, from);
}

/* Its door is named by its own address, or by that of all addresses: [::] takes v4 dials, too. */
static int knock_at(struct lane_door *ours, const char *address, const char *from)
{
    struct address split;
    int fd = knock(ours, address, from);
    if (fd >= 0 || address_split(&split, address)) return fd;
    unsigned port = (unsigned)atoi(split.port);
    if (!strchr(split.host, ':')) fd = knock_at_all(ours, "0.0.0.0", port, from);
    return fd >= 0 ? fd : knock_at_all(ours, "::", port, from);
}

void lane_ask(struct conn *conn)
{
    struct loop *loop = conn->loop;
    struct sockaddr_storage here = {0};
    char from[PARLEY_ADDRESS_SIZE], address[PARLEY_ADDRESS_SIZE];
    int size = sizeof here;
    if (loop->door.fd < 0) return;
    if (uv_tcp_getsockname(&conn->tcp, (struct sockaddr *)&here, &size)) return;
    address_print(from, (struct sockaddr *)&here);
    if (conn_peer(conn, address) || !same_host(from, address)) return;
    int fd = knock_at(&loop->door, address, from);
    if (fd >= 0) (void)lane_new(conn, fd);
}

/* ---- The door -------------------------------------------------------------------------------- */

/* The connection that who has come in names; NULL: none that may have a lane. */
static struct conn *conn_of_guest(struct loop *loop, const struct sockaddr_un *name, socklen_t size)
{
    struct sockaddr_un own;
    size_t door = local_name(&own, loop->listens, NULL), named = size < sizeof *name ? size : 0;
    char text[sizeof *name + 1];
    memcpy(text, name, named);
    text[named] = 0;
    if (named < door + 2 || memcmp(text, &own, door) != 0 || text[door] != ' ') return NULL;
    struct conn *conn = conn_from(loop, text + door + 1);
    return conn && !conn->lane ? conn : NULL;
}

static void on_door(uv_poll_t *poll, int status, int events)
{
    struct loop *loop = poll->data;
    (void)events;
    for (int i = 0; status == 0 && i < GUESTS_MAX; i++) {
        struct sockaddr_un name;
        socklen_t size = sizeof name;
        int fd =
            accept4(loop->door.fd, (struct sockaddr *)&name, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            /* Without descriptors who waits here would end every wait of the loop. */
            if (errno != EAGAIN && errno != EINTR) lane_close_door(loop);
            return;
        }
        struct conn *conn = is_own(fd) ? conn_of_guest(loop, &name, size) : NULL;
        struct lane *lane = conn ? lane_new(conn, fd) : NULL;
        if (lane && !give(lane)) lane_end(conn);
        if (!conn) close_aside(&loop->door, fd);
        /* Then it stays shut, and what comes goes by TCP. */
        if (loop->door.closers_count >= LANE_CLOSERS_MAX) uv_poll_stop(poll);
    }
}

void lane_open_door(struct loop *loop)
{
    struct sockaddr_un name;
    if (loop->vectors->file < 0) return;
    int fd = local_socket();
    if (fd < 0) return;
    if (bind(fd, (struct sockaddr *)&name, local_name(&name, loop->listens, NULL)) ||
        listen(fd, WAITING_MAX) || uv_poll_init(&loop->uv, &loop->door.poll, fd)) {
        close(fd);
        return;
    }
    loop->door.poll.data = loop;
    loop->door.fd = fd;
    uv_poll_start(&loop->door.poll, UV_READABLE, on_door);
}

/* Nobody comes any more. Those who stand there already go with the door. */
static void on_door_closed(uv_handle_t *handle)
{
    struct lane_door *door = &((struct loop *)handle->data)->door;
    shutdown(door->fd, SHUT_RDWR);
    int guest = accept4(door->fd, NULL, NULL, SOCK_CLOEXEC);
    bool nobody = guest < 0 && (errno == EAGAIN || errno == EINVAL);
    if (guest >= 0) close_aside(door, guest);
    if (nobody)
        close(door->fd);
    else
        close_aside(door, door->fd);
    door->fd = -1;
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

static const uint8_t *read_floats(const struct lane *lane, uint64_t place, size_t size)
{
    ssize_t got;
    if (size > PARLEY_CHUNK_BYTES_MAX) return NULL;
    while ((got = pread(lane->file, lane->theirs, size, (off_t)place)) < 0 && errno == EINTR)
        continue;
    return got == (ssize_t)size ? lane->theirs : NULL;
}

const uint8_t *lane_floats(const struct conn *conn, uint64_t place, size_t size)
{
    const struct lane *lane = conn->lane;
    if (!lane || !lane->theirs) return NULL;
    if (place % sizeof(float) || place > lane->theirs_size || size > lane->theirs_size - place)
        return NULL;
    return lane->file >= 0 ? read_floats(lane, place, size) : lane->theirs + place;
}

void lane_taken(struct conn *conn)
{
    if (!say(conn->lane->fd, NOTE_TAKEN, -1)) conn_end(conn, PARLEY_CLOSED_RESET, UV_ECONNRESET);
}
