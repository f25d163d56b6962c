/* lane.c: floats between nodes of one machine through shared memory (peers/lane.h).
 *
 *   - two nodes agree, and what they averaged went that way
 *   - where one end has no lane, or can't have a memory file, all goes by TCP, and they agree
 *   - a peer that is killed in the middle of exchanges is found dead, and the other one goes on
 *   - a peer of another user gets nothing but by TCP (where this runs as root, who can have one)
 *   - descriptors that anybody sends to the door, of any number, are closed
 *
 * Plain main(), so that it runs under ThreadSanitizer.
 */
#define _DEFAULT_SOURCE
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <uv.h>

#include "parley/parley.h"

enum { FLOATS = 200000, STEPS = 40, NOBODY = 65534 }; /* a model is several chunks */

struct node {
    struct parley_options options;
    struct parley *p;
    float x[FLOATS];
    uint64_t averaged_max; /* after so many deltas the peer is killed; 0: never */
    pid_t peer;
    int code;
    struct parley_result result;
    uv_thread_t thread;
};

static struct node nodes[2];
static int failures;

static void check(bool good, const char *what)
{
    if (good) return;
    fprintf(stderr, "broken: %s\n", what);
    failures++;
}

/* A death makes who sees it end the run. */
static void on_update(void *context, struct parley *p, const struct parley_update *update)
{
    (void)context;
    if (update->type == PARLEY_UPDATE_MEMBER && update->member.state == PARLEY_MEMBER_DEAD)
        parley_stop(p, PARLEY_STOP_OPERATOR);
}

static struct node *start(int i, const char *const *seeds, bool lane, uint64_t budget)
{
    static const char *const names[] = {"a", "b"};
    struct node *node = &nodes[i];
    char why[256];
    memset(node, 0, sizeof *node);
    for (int j = 0; j < FLOATS; j++)
        node->x[j] = (float)(i + j % 7);
    parley_options_defaults(&node->options);
    node->options.config.name = names[i];
    node->options.config.parameters = FLOATS;
    node->options.config.min_peers = 1;
    node->options.config.mix_every = 1;
    node->options.config.steps_budget = budget;
    node->options.config.seeds = seeds;
    node->options.config.seeds_count = seeds ? 1 : 0;
    node->options.vectors[0] = node->x;
    node->options.no_lane = !lane;
    node->options.on_update = on_update;
    int code = parley_open(&node->p, &node->options, why, sizeof why);
    if (!code) return node;
    fprintf(stderr, "%s\n", why);
    exit(1);
}

static void train(void *argument)
{
    struct node *node = argument;
    struct parley_turn turn;
    struct parley_step step = {0};
    while ((node->code = parley_boundary(node->p, &step, &turn)) == PARLEY_GO) {
        step = (struct parley_step){.steps = 1, .samples = 1};
        if (node->averaged_max == 0 || turn.averaged < node->averaged_max) continue;
        kill(node->peer, SIGKILL);
        node->averaged_max = 0;
    }
    parley_result(node->p, &node->result);
}

/* Two nodes of this process, to their agreement. */
static void agree(bool lane_at_both)
{
    const char *seed = NULL;
    for (int i = 0; i < 2; i++) {
        start(i, i ? &seed : NULL, i || lane_at_both, STEPS);
        seed = parley_listens(nodes[i].p);
    }
    for (int i = 0; i < 2; i++)
        uv_thread_create(&nodes[i].thread, train, &nodes[i]);
    for (int i = 0; i < 2; i++)
        uv_thread_join(&nodes[i].thread);
    for (int i = 0; i < 2; i++)
        parley_close(nodes[i].p);
    check(nodes[0].result.agreed && nodes[1].result.agreed, "both end in agreement");
    check(memcmp(nodes[0].x, nodes[1].x, sizeof nodes[0].x) == 0, "on one model");
    check(nodes[0].result.view.ledger.applied > 0, "they have averaged");
}

static void agree_through_shared_memory(void)
{
    agree(true);
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

/* Forked before there is any thread: tells where it listens, then trains until it is killed. */
static pid_t fork_peer(uid_t user, int *in)
{
    int ends[2];
    if (pipe(ends)) exit(1);
    *in = ends[0];
    pid_t parent = getpid(), child = fork();
    if (child != 0) return child;
    if (setuid(user)) _exit(1);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    start(0, NULL, true, UINT64_MAX / 2);
    char address[PARLEY_ADDRESS_SIZE] = {0};
    snprintf(address, sizeof address, "%s", parley_listens(nodes[0].p));
    if (write(ends[1], address, sizeof address) != (ssize_t)sizeof address) _exit(1);
    train(&nodes[0]);
    _exit(0);
}

static void survive_a_kill(pid_t peer, int in, bool lane)
{
    char address[PARLEY_ADDRESS_SIZE];
    const char *seed = address;
    if (read(in, address, sizeof address) != (ssize_t)sizeof address) exit(1);
    struct node *node = start(1, &seed, true, 0);
    node->peer = peer;
    node->averaged_max = 5;
    train(node);
    parley_close(node->p);
    int status;
    waitpid(peer, &status, 0);
    check(WIFSIGNALED(status), "the peer was killed");
    check(node->result.agreed, "who is left ends by itself");
    check(node->result.view.ledger.applied >= 5, "the two had averaged");
    check((node->result.stats.bytes_lane > 0) == lane, "through shared memory, if they may");
}

/* A datagram of so many bytes to the node's door, with the descriptor so many times. */
static bool knock(const struct node *node, size_t bytes, int file, size_t files)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(2 * sizeof(int))];
    } control = {0};
    int both[2] = {file, file};
    char nonsense[4096] = {1};
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int size = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "parley-lane %s",
                        parley_listens(node->p));
    struct iovec part = {nonsense, bytes};
    struct msghdr message = {
        .msg_name = &name,
        .msg_namelen = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)size),
        .msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = CMSG_SPACE(files * sizeof file)};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(files * sizeof file);
    memcpy(CMSG_DATA(head), both, files * sizeof file);
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    bool sent = fd >= 0 && sendmsg(fd, &message, 0) == (ssize_t)bytes;
    if (fd >= 0) close(fd);
    return sent;
}

/* A pipe says when the last descriptor of its other end is closed. */
static void keep_no_descriptors(void)
{
    struct node *node = start(0, NULL, true, STEPS);
    const size_t bytes[] = {0, 1, sizeof(char[4096]), 0, 1};
    const size_t files[] = {1, 1, 1, 2, 2};
    for (int i = 0; i < 5; i++) {
        int ends[2];
        if (pipe(ends)) exit(1);
        check(knock(node, bytes[i], ends[1], files[i]), "the door takes what anybody sends");
        close(ends[1]);
        struct pollfd end = {.fd = ends[0], .events = POLLIN};
        check(poll(&end, 1, 10000) == 1 && (end.revents & POLLHUP), "a descriptor is closed");
        close(ends[0]);
    }
    parley_close(node->p);
}

int main(void)
{
    int in, in_other;
    bool root = geteuid() == 0;
    pid_t peer = fork_peer(geteuid(), &in), other = root ? fork_peer(NOBODY, &in_other) : 0;
    if (peer < 0 || other < 0) return 1;
    survive_a_kill(peer, in, true);
    if (root) survive_a_kill(other, in_other, false);
    agree_through_shared_memory();
    agree_by_tcp(false);
    agree_without_files();
    keep_no_descriptors();
    return failures ? 1 : 0;
}
