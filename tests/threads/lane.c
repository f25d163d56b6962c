/* lane.c: floats between nodes of one machine through shared memory (peers/network/lane.h).
 *
 *   - two nodes agree, and what they averaged went that way: by memory of the other's that is
 * mapped
 *   - so does a model of many MB, which is not mapped
 *   - and what goes to the v4 address of one that listens on [::]
 *   - where one end has no lane, or can't have a memory file, all goes by TCP, and they agree
 *   - a peer that is killed in the middle of exchanges is found dead, and the other one goes on
 *   - a peer of another user gets nothing but by TCP (where this runs as root, who can have one)
 *   - descriptors that anybody sends to the door, of any number, are closed
 *   - nor does one that takes an hour to be closed, from another user, hold up the loop, or its
 *     end, be the system's clock set back meanwhile
 *   - who says that floats nobody waits for come aside, and has no lane, is cut off
 *   - where no descriptor is left for who asks, the door closes, and the loop sleeps again
 *   - no thread is let go by then: only what a stranger has sent is waited for no longer
 *
 * Plain main(), so that it runs under ThreadSanitizer.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>

#include "core/wire/message.h"
#include "core/wire/wire.h"
#include "let_go.h"
#include "pair.h"

enum { NOBODY = 65534, MODEL = 8 };
/* A model or two cross the connection before shared memory is agreed on: many more are to follow.
 */
enum { MANY = 10 * STEPS };

/* Of the machine's own clocks that one may be set back, by an hour as soon as it was read. */
int clock_gettime(clockid_t id, struct timespec *now)
{
    int code = (int)syscall(SYS_clock_gettime, id, now);
    if (!code && id == CLOCK_REALTIME) now->tv_sec += 3600;
    return code;
}

static struct node *open_with(int i, const char *seed, bool lane, uint64_t budget)
{
    struct node *node = pair_node(i, seed, budget);
    node->options.no_lane = !lane;
    node->options.config.model_digest = MODEL;
    pair_open(node);
    return node;
}

static void agree(bool lane_at_both)
{
    struct node *first = open_with(0, NULL, lane_at_both, MANY);
    open_with(1, parley_listens(first->p), true, MANY);
    pair_agree();
}

static void most_was_shared(void)
{
    for (int i = 0; i < 2; i++) {
        const struct parley_stats *stats = &nodes[i].result.stats;
        check(stats->bytes_lane > 0 && stats->bytes_lane >= stats->bytes_sent / 2,
              "most of it went through shared memory");
        check(stats->bytes_membership > 0 && stats->bytes_sketches > 0,
              "what is told of members and of the drift is counted");
        check(stats->bytes_membership + stats->bytes_sketches < stats->bytes_sent / 2,
              "and nothing else is counted with it");
    }
}

/* Another's buffers are only read: so are none of the own. */
static _Atomic bool mapped;

static void look_for_mapped_buffers(void)
{
    char line[512];
    FILE *maps = mapped ? NULL : fopen("/proc/self/maps", "re");
    while (maps && fgets(line, sizeof line, maps))
        if (strstr(line, " r--s ") && strstr(line, "/memfd:parley")) mapped = true;
    if (maps) fclose(maps);
}

static void agree_through_shared_memory(void)
{
    struct node *first = open_with(0, NULL, true, MANY);
    open_with(1, parley_listens(first->p), true, MANY);
    first->each_step = look_for_mapped_buffers;
    mapped = false;
    pair_agree();
    most_was_shared();
    check(mapped, "small buffers stay mapped");
}

/* Whose buffers are too large to stay mapped: the floats are read from the file. */
static void agree_on_a_large_model(void)
{
    enum { LARGE = 2000000 };
    static float x[2][LARGE];
    for (int i = 0; i < 2; i++) {
        struct node *node = pair_node(i, i ? parley_listens(nodes[0].p) : NULL, MANY);
        for (int j = 0; j < LARGE; j++)
            x[i][j] = (float)(i + j % 1000);
        node->options.config.parameters = LARGE;
        node->options.config.model_digest = MODEL;
        node->options.vectors[0] = x[i];
        node->each_step = look_for_mapped_buffers;
        pair_open(node);
    }
    mapped = false;
    pair_start();
    pair_end();
    check(!mapped, "large buffers are not mapped");
    check(nodes[0].result.agreed && nodes[1].result.agreed, "they agree on a large model, too");
    check(memcmp(x[0], x[1], sizeof x[0]) == 0, "which is one");
    for (int j = 0; j < LARGE; j++)
        check(fabsf(x[0][j] - (float)(j % 1000) - 0.5f) < 0.01f,
              "the mean, each float in its place");
    most_was_shared();
}

/* Where this machine has v6. */
static void agree_on_all_addresses(void)
{
    char address[PARLEY_ADDRESS_SIZE];
    struct sockaddr_in6 any = {.sin6_family = AF_INET6};
    int probe = socket(AF_INET6, SOCK_STREAM, 0);
    bool v6 = probe >= 0 && bind(probe, (struct sockaddr *)&any, sizeof any) == 0;
    if (probe >= 0) close(probe);
    if (!v6) return;
    struct node *first = pair_node(0, NULL, MANY);
    first->options.listen = "[::]:0";
    first->options.config.address = "127.0.0.1:0";
    first->options.config.model_digest = MODEL;
    pair_open(first);
    snprintf(address, sizeof address, "127.0.0.1%s", strrchr(parley_listens(first->p), ':'));
    open_with(1, address, true, MANY);
    pair_agree();
    most_was_shared();
}

static void agree_by_tcp(bool lane_at_both)
{
    agree(lane_at_both);
    check(nodes[0].result.stats.bytes_lane == 0 && nodes[1].result.stats.bytes_lane == 0,
          "nothing went through shared memory");
}

/* No file may become as large as the buffers: none is made, and no signal comes of it. */
static void agree_without_files(void)
{
    struct rlimit before, small;
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    small.rlim_cur = FLOATS;
    setrlimit(RLIMIT_FSIZE, &small);
    agree_by_tcp(true);
    setrlimit(RLIMIT_FSIZE, &before);
}

static struct node *open_peer(void)
{
    return open_with(0, NULL, true, UINT64_MAX / 2);
}

static void survive_a_kill(struct peer peer, bool lane)
{
    char address[PARLEY_ADDRESS_SIZE];
    pair_address(peer, address);
    struct node *node = open_with(1, address, true, 0);
    pair_kill(node, peer);
    check((node->result.stats.bytes_lane > 0) == lane, "through shared memory, if they may");
}

static int knock_with(int fd, const char *listens)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int size = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "parley %s", listens);
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)size);
    return connect(fd, (struct sockaddr *)&name, length);
}

static int knock(const char *listens)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    return fd >= 0 && knock_with(fd, listens) ? -1 : fd;
}

/* A note of so many bytes at the node's door, with the descriptor so many times. */
static bool say_at_door(const char *listens, size_t bytes, int file, size_t files)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(2 * sizeof(int))];
    } control = {0};
    int both[2] = {file, file};
    char nonsense[4096] = {1};
    struct iovec part = {nonsense, bytes};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = CMSG_SPACE(files * sizeof file)};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(files * sizeof file);
    memcpy(CMSG_DATA(head), both, files * sizeof file);
    int fd = knock(listens);
    if (fd < 0) return false;
    ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);
    close(fd);
    return sent == (ssize_t)bytes || errno == EPIPE; /* it was shown out before */
}

/* A pipe says when the last descriptor of its other end is closed. */
static void keep_no_descriptors(void)
{
    struct node *node = open_with(0, NULL, true, STEPS);
    const size_t bytes[] = {0, 1, sizeof(char[4096]), 0, 1};
    const size_t files[] = {1, 1, 1, 2, 2};
    for (int i = 0; i < 5; i++) {
        int ends[2];
        if (pipe(ends)) exit(1);
        check(say_at_door(parley_listens(node->p), bytes[i], ends[1], files[i]),
              "the door takes what anybody sends");
        close(ends[1]);
        struct pollfd end = {.fd = ends[0], .events = POLLIN};
        check(poll(&end, 1, 10000) == 1 && (end.revents & POLLHUP), "a descriptor is closed");
        close(ends[0]);
    }
    parley_close(node->p);
}

static int dial(const struct node *node)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    to.sin_port = htons((uint16_t)atoi(strrchr(parley_listens(node->p), ':') + 1));
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to)) exit(1);
    return fd;
}

/* A HELLO as a node's, and the head of a chunk, with a place in no memory. */
static size_t tell_of_floats_aside(uint8_t *bytes, size_t size)
{
    const struct wire_chunk chunk = {.kind = WIRE_STREAM_OFFER, .sequence = 12345};
    struct message_hello hello = {.run = 1,
                                  .boot = 99,
                                  .model = MODEL,
                                  .parameters = FLOATS,
                                  .vectors = 1,
                                  .averaged = 1,
                                  .cluster = "parley",
                                  .name = "c",
                                  .address = "127.0.0.1:1"};
    size_t at = message_encode(WIRE_HELLO, &hello, bytes, size);
    wire_chunk_write(bytes + at, &chunk, 4096);
    wire_chunk_aside(bytes + at);
    memset(bytes + at + WIRE_CHUNK_HEAD_BYTES, 0, 8);
    return at + WIRE_CHUNK_HEAD_BYTES + 8;
}

/* Returns when the node has cut the connection off. */
static void be_cut_off(const struct node *node)
{
    static uint8_t bytes[1 << 16];
    int fd = dial(node);
    size_t size = tell_of_floats_aside(bytes, sizeof bytes);
    check(write(fd, bytes, size) == (ssize_t)size, "a node takes what anybody says");
    size_t heard = 0;
    ssize_t got;
    while ((got = read(fd, bytes + heard, sizeof bytes - heard)) > 0)
        heard += (size_t)got;
    struct wire_header header = {0};
    check(heard >= WIRE_HEADER_BYTES && !wire_header_read(bytes, &header) &&
              header.type == WIRE_HELLO,
          "the HELLO is answered");
    close(fd);
}

static void cut_off_who_has_no_lane(void)
{
    struct node *node = open_with(0, NULL, true, STEPS);
    be_cut_off(node);
    parley_close(node->p);
}

/* Who stood there is shown out as it closes. */
static void close_without_descriptors(void)
{
    char byte;
    struct rlimit before, none;
    struct node *node = open_with(0, NULL, true, STEPS);
    int guest = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    getrlimit(RLIMIT_NOFILE, &before);
    none = before;
    none.rlim_cur = STDERR_FILENO + 1;
    setrlimit(RLIMIT_NOFILE, &none);
    check(!knock_with(guest, parley_listens(node->p)), "it can knock");
    check(read(guest, &byte, 1) <= 0, "it is shown out");
    setrlimit(RLIMIT_NOFILE, &before);
    close(guest);
    check(knock(parley_listens(node->p)) < 0, "nobody can knock any more");
    parley_close(node->p);
}

/* An end of a TCP connection that has much to send, to nobody who reads, and takes an hour to be
 * closed. */
static int lingering(void)
{
    static const char much[1 << 16];
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    const struct linger hour = {1, 3600};
    int door = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(door, (struct sockaddr *)&at, size) || listen(door, 1) ||
        getsockname(door, (struct sockaddr *)&at, &size) ||
        connect(fd, (struct sockaddr *)&at, size) || accept(door, NULL, NULL) < 0)
        exit(1);
    while (send(fd, much, sizeof much, MSG_DONTWAIT) > 0)
        continue;
    if (setsockopt(fd, SOL_SOCKET, SO_LINGER, &hour, sizeof hour)) exit(1);
    return fd;
}

static void end_with(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
}

/* Sends it to the node, and lets go of it first: the node's is the last, unless it was faster. */
static void burden(const char *listens, int told, pid_t parent)
{
    end_with(parent);
    int fd = lingering();
    bool sent = say_at_door(listens, 1, fd, 1);
    if (write(told, &sent, sizeof sent) != sizeof sent) _exit(1);
    close(fd);
    for (;;)
        pause(); /* its other end is here */
}

/* A process of another user, which waits for an address and does so thrice. */
static struct stranger {
    pid_t pid;
    int tell, told;
} stranger_fork(void)
{
    int to[2], from[2];
    char address[PARLEY_ADDRESS_SIZE] = "";
    if (pipe(to) || pipe(from)) exit(1);
    pid_t test = getpid(), pid = fork();
    if (pid != 0) return (struct stranger){pid, to[1], from[0]};
    if (setgid(NOBODY) || setuid(NOBODY)) _exit(1);
    end_with(test); /* a change of user forgets it */
    if (read(to[0], address, sizeof address) <= 0) _exit(1);
    pid = getpid();
    for (int i = 0; i < 3; i++)
        if (fork() == 0) burden(address, from[1], pid);
    for (;;)
        pause();
}

static void go_on_whatever_a_stranger_sends(struct stranger stranger)
{
    struct node *node = open_with(0, NULL, true, STEPS);
    const char *listens = parley_listens(node->p);
    if (write(stranger.tell, listens, strlen(listens) + 1) < 0) exit(1);
    for (int i = 0; i < 3; i++) {
        bool sent = false;
        check(read(stranger.told, &sent, sizeof sent) == sizeof sent && sent, "it knocks");
        be_cut_off(node);
    }
    parley_close(node->p);
    kill(stranger.pid, SIGKILL);
    waitpid(stranger.pid, NULL, 0);
}

int main(void)
{
    bool root = geteuid() == 0;
    struct peer peer = pair_fork(open_peer, geteuid()), other = {0};
    if (root) other = pair_fork(open_peer, NOBODY);
    struct stranger stranger = {0};
    if (root) stranger = stranger_fork();
    survive_a_kill(peer, true);
    if (root) survive_a_kill(other, false);
    agree_through_shared_memory();
    agree_on_a_large_model();
    agree_on_all_addresses();
    agree_by_tcp(false);
    agree_without_files();
    keep_no_descriptors();
    cut_off_who_has_no_lane();
    close_without_descriptors();
    check(let_go == 0, "each thread is joined");
    if (root) go_on_whatever_a_stranger_sends(stranger);
    return failures ? 1 : 0;
}
