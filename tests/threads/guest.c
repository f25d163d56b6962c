/* guest.c: a lane with a broken or hostile peer of the same user and machine
 * (peers/network/lane.h).
 *
 * A guest is a raw peer: a TCP connection with a HELLO, and a local socket that names it. Of all
 * that it does wrong the node reads nothing that the guest's file does not hold:
 *
 *   - a file that may be cut short, is no memory file, holds nothing, or comes with half a note,
 *     is not mapped; all goes on by TCP; floats said to be in it end the link
 *   - floats that reach past the file's end, or start beyond it or between floats, end the link,
 *     and so does a chunk of no bytes or of half a float
 *   - a second file, a note of another kind or size, TAKEN of what nobody sent: the lane is left
 *     alone, and all goes on by TCP
 *   - who can't be told that its floats were TAKEN is cut off
 *   - who names no connection, or one that has a lane or had one, is shown out
 *   - after all of them the node averages with another one, and the two agree
 *
 * Whether a link goes on a PING tells, which follows what was done: an answer, or the link's end.
 * Plain main(), so that it runs under ThreadSanitizer.
 */
#define _GNU_SOURCE /* memfd_create, F_ADD_SEALS */
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "core/wire/message.h"
#include "core/wire/wire.h"
#include "pair.h"

enum { NOTE_MEMORY = 0x7061726c, NOTE_OPENED, NOTE_TAKEN, NOTE_OTHER }; /* lane.c's */

enum {
    BOOT = 7, /* the node's */
    MODEL = 8,
    FILE_BYTES = 8192,
    NO_FILE = -1
};

struct guest {
    int tcp, lane;
    struct sockaddr_un name; /* of its end of the lane */
    socklen_t name_size;
    uint32_t pings;
};

static struct node *node;
static uint64_t guests;

/* ---- The link -------------------------------------------------------------------------------- */

static void put(int fd, const uint8_t *bytes, size_t size)
{
    if (send(fd, bytes, size, MSG_NOSIGNAL) != (ssize_t)size && errno != EPIPE &&
        errno != ECONNRESET)
        exit(1);
}

/* False: the link has ended. */
static bool get(int fd, uint8_t *bytes, size_t size)
{
    ssize_t got = recv(fd, bytes, size, MSG_WAITALL);
    return got >= 0 && (size_t)got == size;
}

/* Reads up to the next frame of that type. False: the link ends before. */
static bool hear(const struct guest *guest, enum wire_type type)
{
    static uint8_t body[WIRE_CHUNK_BYTES + PARLEY_CHUNK_BYTES_MAX];
    uint8_t head[WIRE_HEADER_BYTES];
    struct wire_header header = {0};
    while (get(guest->tcp, head, sizeof head)) {
        check(!wire_header_read(head, &header), "the node says what can be read");
        if (header.size > 0 && !get(guest->tcp, body, header.size)) return false;
        if (header.type == type) return true;
    }
    return false;
}

/* Whether the link does after what was done until now. */
static bool goes_on(struct guest *guest)
{
    uint8_t bytes[PARLEY_CONTROL_BYTES_MAX];
    const struct message_probe ping = {++guest->pings, BOOT};
    put(guest->tcp, bytes, message_encode(WIRE_PING, &ping, bytes, sizeof bytes));
    return hear(guest, WIRE_ACK);
}

/* Each is another member: of a dead one no link is taken. */
static void greet(struct guest *guest)
{
    static uint8_t bytes[PARLEY_CONTROL_BYTES_MAX];
    struct message_hello hello = {.run = 1,
                                  .boot = 1000 + ++guests,
                                  .model = MODEL,
                                  .parameters = FLOATS,
                                  .vectors = 1,
                                  .averaged = 1,
                                  .cluster = "parley",
                                  .address = "127.0.0.1:1"};
    snprintf(hello.name, sizeof hello.name, "guest%d", (int)guests);
    put(guest->tcp, bytes, message_encode(WIRE_HELLO, &hello, bytes, sizeof bytes));
    check(hear(guest, WIRE_HELLO), "the HELLO is answered");
}

/* The head of a chunk that nobody waits for, whose floats lie aside. */
static void say_floats(const struct guest *guest, uint64_t place, uint32_t size)
{
    uint8_t bytes[WIRE_CHUNK_HEAD_BYTES + 8];
    const struct wire_chunk chunk = {.kind = WIRE_STREAM_OFFER, .sequence = 12345};
    wire_chunk_write(bytes, &chunk, size);
    wire_chunk_aside(bytes);
    wire_put(bytes + WIRE_CHUNK_HEAD_BYTES, place, 8);
    put(guest->tcp, bytes, sizeof bytes);
}

/* ---- The lane -------------------------------------------------------------------------------- */

static struct sockaddr_un local_name(const char *text, socklen_t *size)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    size_t length = strlen(text), room = sizeof name.sun_path - 1;
    if (length > room) length = room;
    memcpy(name.sun_path + 1, text, length);
    *size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
    return name;
}

static int knock_as(const struct sockaddr_un *own, socklen_t own_size)
{
    char text[PARLEY_ADDRESS_SIZE + 8];
    socklen_t size;
    snprintf(text, sizeof text, "parley %s", parley_listens(node->p));
    struct sockaddr_un door = local_name(text, &size);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)own, own_size) ||
        connect(fd, (struct sockaddr *)&door, size))
        exit(1);
    return fd;
}

/* With a file, unless it is negative. False: nobody hears it. */
static bool say(const struct guest *guest, uint32_t type, size_t bytes, int file)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    uint32_t note[4] = {type};
    struct iovec part = {note, bytes};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (file >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control;
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof file);
        memcpy(CMSG_DATA(head), &file, sizeof file);
    }
    return sendmsg(guest->lane, &message, MSG_NOSIGNAL) == (ssize_t)bytes;
}

/* And waits until the node has read it: what is said on the link after that, it hears after it. */
static void say_first(const struct guest *guest, uint32_t type, size_t bytes, int file)
{
    int left = 1;
    check(say(guest, type, bytes, file), "the node has an ear at the lane");
    while (ioctl(guest->lane, SIOCOUTQ, &left) == 0 && left > 0)
        sched_yield();
}

/* The type of the next note, whose file is closed. 0: there is none, and with `waits` there never
 * will be one. */
static uint32_t note(const struct guest *guest, bool waits)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    uint32_t type = 0;
    int file;
    struct iovec part = {&type, sizeof type};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control};
    if (recvmsg(guest->lane, &message, waits ? 0 : MSG_DONTWAIT) != (ssize_t)sizeof type) return 0;
    const struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    if (!head || head->cmsg_type != SCM_RIGHTS) return type;
    memcpy(&file, CMSG_DATA(head), sizeof file);
    close(file);
    return type;
}

/* A link, and a lane that the node has given its own buffers to. */
static struct guest come(void)
{
    struct guest guest = {0};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}}, own;
    socklen_t size = sizeof own;
    char text[2 * PARLEY_ADDRESS_SIZE];
    to.sin_port = htons((uint16_t)atoi(strrchr(parley_listens(node->p), ':') + 1));
    guest.tcp = socket(AF_INET, SOCK_STREAM, 0);
    if (guest.tcp < 0 || connect(guest.tcp, (struct sockaddr *)&to, sizeof to) ||
        getsockname(guest.tcp, (struct sockaddr *)&own, &size))
        exit(1);
    greet(&guest);
    snprintf(text, sizeof text, "parley %s 127.0.0.1:%d", parley_listens(node->p),
             ntohs(own.sin_port));
    guest.name = local_name(text, &guest.name_size);
    guest.lane = knock_as(&guest.name, guest.name_size);
    check(note(&guest, true) == NOTE_MEMORY, "the node gives its buffers to who may have them");
    return guest;
}

static void leave(const struct guest *guest)
{
    close(guest->tcp);
    close(guest->lane);
}

static int memory_file(size_t bytes, unsigned seals)
{
    int file = memfd_create("guest", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file < 0 || ftruncate(file, (off_t)bytes) || fcntl(file, F_ADD_SEALS, seals)) exit(1);
    return file;
}

/* A guest whose file the node has mapped. */
static struct guest come_with_file(void)
{
    struct guest guest = come();
    int file = memory_file(FILE_BYTES, F_SEAL_SHRINK);
    check(say(&guest, NOTE_MEMORY, sizeof(uint32_t), file), "it gives its own");
    close(file);
    check(note(&guest, true) == NOTE_OPENED, "a file that can't be cut short is mapped");
    return guest;
}

/* ---- What guests do -------------------------------------------------------------------------- */

static void give_in_vain(size_t bytes, int file)
{
    struct guest guest = come();
    say_first(&guest, NOTE_MEMORY, bytes, file);
    check(goes_on(&guest), "whatever file comes, the link goes on");
    check(note(&guest, false) == 0, "a file that can't be relied on is not mapped");
    say_floats(&guest, 0, sizeof(float));
    check(!goes_on(&guest), "floats in a file that is not mapped end the link");
    check(note(&guest, true) == 0, "and nobody has TAKEN them");
    leave(&guest);
    if (file >= 0) close(file);
}

static void give_no_good_file(int file)
{
    give_in_vain(sizeof(uint32_t), file);
}

static void give_no_good_files(void)
{
    int ends[2];
    char path[] = "/tmp/parley-guest-XXXXXX";
    int plain = mkstemp(path);
    if (plain < 0 || unlink(path) || ftruncate(plain, FILE_BYTES) || pipe(ends)) exit(1);
    give_no_good_file(NO_FILE);
    give_no_good_file(memory_file(FILE_BYTES, 0));
    give_no_good_file(memory_file(FILE_BYTES, F_SEAL_GROW | F_SEAL_WRITE));
    give_no_good_file(memory_file(0, F_SEAL_SHRINK | F_SEAL_GROW));
    give_no_good_file(plain);
    give_no_good_file(ends[0]);
    close(ends[1]);
    give_in_vain(1, memory_file(FILE_BYTES, F_SEAL_SHRINK));
}

static void name_good_places(void)
{
    const struct {
        uint64_t place;
        uint32_t size;
    } good[] = {{0, FILE_BYTES}, {FILE_BYTES - 4, 4}, {FILE_BYTES / 2, FILE_BYTES / 2}, {4, 4}};
    struct guest guest = come_with_file();
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        say_floats(&guest, good[i].place, good[i].size);
        check(note(&guest, true) == NOTE_TAKEN, "floats in the file are TAKEN");
    }
    check(goes_on(&guest), "the link goes on");
    leave(&guest);
}

static void name_bad_places(void)
{
    const struct {
        uint64_t place;
        uint32_t size;
    } bad[] = {
        {FILE_BYTES, 4},
        {FILE_BYTES - 4, 8},
        {4, FILE_BYTES},
        {0, FILE_BYTES + 4},
        {0, PARLEY_CHUNK_BYTES_MAX},
        {FILE_BYTES + 4, 4},
        {UINT64_C(1) << 62, 4},
        {(UINT64_C(1) << 63) - 4, 8},
        {UINT64_C(1) << 63, 4}, /* of streams: there are none */
        {UINT64_MAX - 3, 8},
        {1, 4},
        {2, 4},
        {0, 0},
        {0, 6},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct guest guest = come_with_file();
        say_floats(&guest, bad[i].place, bad[i].size);
        bool ended = !goes_on(&guest), taken = note(&guest, ended) != 0;
        if (!ended || taken)
            fprintf(stderr, "%u bytes at %llu:\n", bad[i].size, (unsigned long long)bad[i].place);
        check(ended, "floats that are not in the file end the link");
        check(!taken, "nobody has TAKEN them");
        leave(&guest);
    }
}

static void say_nonsense(uint32_t type, size_t bytes, int file)
{
    struct guest guest = come_with_file();
    say_first(&guest, type, bytes, file);
    check(goes_on(&guest), "whatever is said in the lane, the link goes on");
    check(note(&guest, false) == 0, "nothing is answered");
    say_floats(&guest, 0, FILE_BYTES);
    check(note(&guest, true) == NOTE_TAKEN, "the first file is still there");
    leave(&guest);
    if (file >= 0) close(file);
}

static void hear_nothing_taken(void)
{
    struct guest guest = come_with_file();
    close(guest.lane);
    say_floats(&guest, 0, FILE_BYTES);
    check(!goes_on(&guest), "who can't be told that floats were TAKEN is cut off");
    close(guest.tcp);
}

static void shown_out(struct sockaddr_un name, socklen_t size)
{
    struct guest guest = {.lane = knock_as(&name, size)};
    check(note(&guest, true) == 0, "who may have no lane is shown out");
    close(guest.lane);
}

static void knock_without_right(void)
{
    struct guest guest = come_with_file();
    char text[sizeof guest.name.sun_path];
    const char *const whose[] = {"", " ", " 127.0.0.1:1", "0 127.0.0.1:1", " x%s"};
    close(guest.lane);
    shown_out(guest.name, guest.name_size); /* it has had one */
    check(goes_on(&guest), "its link goes on");
    for (size_t i = 0; i < sizeof whose / sizeof *whose; i++) {
        socklen_t size;
        snprintf(text, sizeof text, "parley %s%s", parley_listens(node->p), whose[i]);
        if (!*whose[i]) text[strlen(text) - 1] = 0; /* the door's own name is taken */
        struct sockaddr_un name = local_name(text, &size);
        shown_out(name, size);
    }
    snprintf(text, sizeof text, "parley %s ", parley_listens(node->p));
    memset(text + strlen(text), 'x', sizeof text - strlen(text));
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    memcpy(name.sun_path + 1, text, sizeof name.sun_path - 1);
    shown_out(name, sizeof name);
    close(guest.tcp);
}

/* A guest that is gone is dead at once, and nothing else ends a link. */
static struct node *open_host(void)
{
    const uint64_t hour_us = UINT64_C(3600) * 1000000;
    struct node *host = pair_node(0, NULL, 0);
    struct parley_config *config = &host->options.config;
    config->boot = BOOT;
    config->model_digest = MODEL;
    config->probe_interval_us = config->probe_timeout_us = hour_us;
    config->broken_suspicion_us = 1;
    config->hello_timeout_us = config->progress_timeout_us = hour_us;
    host->options.on_update = NULL;
    pair_open(host);
    return host;
}

/* Of two exchanges that it may be in at a time one is over by then. */
static void wait_until_averaged(struct parley *p)
{
    struct parley_stats stats = {0};
    while (stats.bytes_lane < 4 * sizeof node->x) {
        sched_yield();
        parley_stats(p, &stats);
    }
}

/* Before any guest: libuv closes their sockets where ThreadSanitizer does not see it, which then
 * takes a descriptor of the same number for the old one. */
static void open_other(void)
{
    struct node *other = pair_node(1, parley_listens(node->p), 0);
    other->options.config.model_digest = MODEL;
    other->options.on_update = NULL;
    pair_open(other);
}

static void average_with_another(void)
{
    pair_start();
    for (int i = 0; i < 2; i++)
        wait_until_averaged(nodes[i].p);
    parley_stop(node->p, PARLEY_STOP_OPERATOR);
    pair_agreed();
}

int main(void)
{
    node = open_host();
    open_other();
    give_no_good_files();
    name_good_places();
    name_bad_places();
    say_nonsense(NOTE_MEMORY, sizeof(uint32_t), memory_file(FILE_BYTES / 2, F_SEAL_SHRINK));
    say_nonsense(NOTE_TAKEN, sizeof(uint32_t), NO_FILE);
    say_nonsense(NOTE_OTHER, sizeof(uint32_t), NO_FILE);
    say_nonsense(NOTE_OPENED, 1, NO_FILE);
    hear_nothing_taken();
    knock_without_right();
    average_with_another();
    return failures ? 1 : 0;
}
