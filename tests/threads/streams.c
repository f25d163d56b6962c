/* streams.c: floats of one link over several TCP connections (peers/network/streams.h).
 *
 *   - two nodes agree, and what they averaged went over streams; as many as the lesser of both
 * wants
 *   - with a cluster key likewise, and what goes over a stream is not to be read
 *   - where one end wants one connection, or there is a lane, there are no streams, and they agree
 *   - where one stream is cut, or carries other bytes than were sent, the link ends, another one is
 *     made, and they agree
 *   - a peer that is killed in the middle of exchanges is found dead, and the other one goes on
 *   - streams leave alone the upper half of the descriptors that the process may have
 *   - a stream with a token of nobody's, or that is one too many, is closed at once, without a word
 *
 * What goes from b to a goes through a relay of this test's, which counts and spoils.
 * Plain main(), so that it runs under ThreadSanitizer.
 */
#define _GNU_SOURCE /* memmem */
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "pair.h"

enum { PREAMBLE = 16, PIPES_MAX = 512, HOUR_S = 3600, DESCRIPTORS = 128 };

/* ---- The relay ------------------------------------------------------------------------------- */

enum harm { NO_HARM, CUT, SPOIL };

struct pipe {
    int from, to;
    bool front; /* what the dialler says */
    uv_thread_t thread;
};

static struct relay {
    int listener;
    struct sockaddr_in to;
    char address[PARLEY_ADDRESS_SIZE];
    enum harm harm;
    uint64_t after; /* bytes on a stream from the dialler, once */
    unsigned most;  /* streams that get through */
    atomic_uint connections, streams, harmed;
    uint8_t preamble[PREAMBLE]; /* of the newest stream; once `seen` */
    atomic_bool seen;
    atomic_bool legible; /* the floats of a model were */
    uv_thread_t thread;
    struct pipe pipes[PIPES_MAX];
    uint32_t count;
} relay;

static bool write_all(int fd, const uint8_t *bytes, ssize_t size)
{
    ssize_t sent;
    while (size > 0 && (sent = send(fd, bytes, (size_t)size, MSG_NOSIGNAL)) > 0) {
        bytes += sent;
        size -= sent;
    }
    return size == 0;
}

/* To one stream only, and to all that follows on it: of some floats nobody wants to know any more.
 * False: the connection has been cut. */
static bool do_harm(const struct pipe *pipe, uint8_t *bytes, ssize_t size, bool *mine)
{
    unsigned none = 0;
    *mine = *mine || atomic_compare_exchange_strong(&relay.harmed, &none, 1);
    if (!*mine) return true;
    if (relay.harm == CUT) {
        shutdown(pipe->from, SHUT_RDWR);
        shutdown(pipe->to, SHUT_RDWR);
        return false;
    }
    for (ssize_t i = 0; i < size; i++)
        bytes[i] ^= 0x5a;
    return true;
}

/* As they are from the first exchange on; before it one node has 0 in place of 1/2, the other 1. */
static bool has_floats(const uint8_t *bytes, size_t size)
{
    bool found = false;
    for (int twice = 0; twice < 3; twice++) {
        float some[7];
        for (int i = 0; i < 7; i++)
            some[i] = (float)twice / 2 + (float)i;
        found = found || memmem(bytes, size, some, sizeof some);
    }
    return found;
}

static void carry(void *argument)
{
    const struct pipe *pipe = argument;
    uint8_t bytes[16384];
    uint64_t total = 0;
    bool stream = false, mine = false;
    ssize_t got;
    while ((got = recv(pipe->from, bytes, sizeof bytes, 0)) > 0) {
        if (total == 0 && pipe->front && got >= PREAMBLE && memcmp(bytes, "Ps\1", 4) == 0) {
            stream = true;
            if (atomic_fetch_add(&relay.streams, 1) >= relay.most) break;
            if (!atomic_load(&relay.seen)) memcpy(relay.preamble, bytes, PREAMBLE);
            atomic_store(&relay.seen, true);
        }
        total += (uint64_t)got;
        if (stream && has_floats(bytes, (size_t)got)) atomic_store(&relay.legible, true);
        if (stream && relay.harm && total > relay.after && !do_harm(pipe, bytes, got, &mine)) break;
        if (!write_all(pipe->to, bytes, got)) break;
    }
    shutdown(pipe->to, SHUT_WR);
    shutdown(pipe->from, SHUT_RD);
}

static void add_pipe(int from, int to, bool front)
{
    struct pipe *pipe = &relay.pipes[relay.count++];
    *pipe = (struct pipe){.from = from, .to = to, .front = front};
    uv_thread_create(&pipe->thread, carry, pipe);
}

static void accept_all(void *argument)
{
    (void)argument;
    int near;
    while (relay.count + 2 <= PIPES_MAX && (near = accept(relay.listener, NULL, NULL)) >= 0) {
        int far = socket(AF_INET, SOCK_STREAM, 0);
        atomic_fetch_add(&relay.connections, 1);
        /* Before it is connected nobody waits behind it: its ends are closed in relay_close(). */
        if (connect(far, (struct sockaddr *)&relay.to, sizeof relay.to)) {
            close(near);
            close(far);
            continue;
        }
        add_pipe(near, far, true);
        add_pipe(far, near, false);
    }
}

static int listen_anywhere(struct sockaddr_in *at)
{
    socklen_t size = sizeof *at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    *at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (fd < 0 || bind(fd, (struct sockaddr *)at, sizeof *at) || listen(fd, 64) ||
        getsockname(fd, (struct sockaddr *)at, &size))
        exit(1);
    return fd;
}

static void relay_init(enum harm harm, uint64_t after)
{
    struct sockaddr_in at;
    memset(&relay, 0, sizeof relay);
    relay.harm = harm;
    relay.after = after;
    relay.most = PARLEY_STREAMS_MAX;
    relay.listener = listen_anywhere(&at);
    snprintf(relay.address, sizeof relay.address, "127.0.0.1:%d", ntohs(at.sin_port));
}

static struct sockaddr_in address_of(const char *text)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                .sin_port = htons((uint16_t)atoi(strrchr(text, ':') + 1))};
}

static void relay_start(const char *to)
{
    relay.to = address_of(to);
    uv_thread_create(&relay.thread, accept_all, NULL);
}

static void relay_close(void)
{
    shutdown(relay.listener, SHUT_RDWR);
    uv_thread_join(&relay.thread);
    close(relay.listener);
    for (uint32_t i = 0; i < relay.count; i++)
        shutdown(relay.pipes[i].from, SHUT_RDWR);
    for (uint32_t i = 0; i < relay.count; i++)
        uv_thread_join(&relay.pipes[i].thread);
    for (uint32_t i = 0; i < relay.count; i++)
        close(relay.pipes[i].from);
}

/* ---- Nodes ----------------------------------------------------------------------------------- */

static atomic_uint suspicions, deaths, warnings;
static const char *key;  /* of the cluster; NULL: none */
static atomic_uint high; /* descriptors in the upper half of DESCRIPTORS, at the most */

static void on_update(void *context, struct parley *p, const struct parley_update *update)
{
    stop_at_death(context, p, update);
    if (update->type == PARLEY_UPDATE_LOG && update->log.level <= PARLEY_LOG_WARN)
        atomic_fetch_add(&warnings, 1);
    if (update->type != PARLEY_UPDATE_MEMBER) return;
    if (update->member.state == PARLEY_MEMBER_SUSPECT) atomic_fetch_add(&suspicions, 1);
    if (update->member.state == PARLEY_MEMBER_DEAD) atomic_fetch_add(&deaths, 1);
}

static void count_high(void)
{
    unsigned count = 0;
    for (int fd = DESCRIPTORS / 2; fd < DESCRIPTORS; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    if (count > atomic_load(&high)) atomic_store(&high, count);
}

/* address NULL: others dial it where it listens. */
static struct node *open_with(int i, const char *seed, const char *address, uint32_t streams,
                              uint64_t budget)
{
    struct node *node = pair_node(i, seed, budget);
    node->options.config.address = address;
    /* What ends a connection must be what a test is about. */
    node->options.config.hello_timeout_us = HOUR_S * UINT64_C(1000000);
    node->options.config.progress_timeout_us = HOUR_S * UINT64_C(1000000);
    node->options.config.streams = streams;
    node->options.no_lane = true;
    node->options.cluster_key = key;
    node->options.on_update = on_update;
    node->each_step = count_high;
    pair_open(node);
    return node;
}

static void open_both(uint32_t streams_a, uint32_t streams_b, uint64_t budget)
{
    struct node *a = open_with(0, NULL, relay.address, streams_a, budget);
    relay_start(parley_listens(a->p));
    open_with(1, relay.address, NULL, streams_b, budget);
}

/* Through the relay: they train until that has happened, and agree. */
static void agree(uint32_t streams_a, uint32_t streams_b, enum harm harm, bool (*happened)(void))
{
    relay_init(harm, FLOATS / 2); /* on each of four streams the half of a model's part */
    open_both(streams_a, streams_b, 0);
    pair_start();
    while (!happened())
        sched_yield();
    parley_stop(nodes[0].p, PARLEY_STOP_OPERATOR);
    pair_agreed();
    relay_close();
}

static bool much_was_sent(void)
{
    struct parley_stats stats;
    parley_stats(nodes[0].p, &stats);
    return stats.bytes_sent >= 8 * FLOATS * sizeof(float);
}

/* The first exchange may have been over before there were streams. */
static bool much_was_streamed(void)
{
    struct parley_stats stats;
    parley_stats(nodes[1].p, &stats);
    return stats.bytes_streams >= 8 * FLOATS * sizeof(float);
}

static bool a_link_ended(void)
{
    return atomic_load(&suspicions) > 0;
}

static bool most_was_streamed(const struct parley_stats *stats)
{
    return stats->bytes_streams >= stats->bytes_sent / 2 && stats->bytes_lane == 0;
}

static void agree_over_streams(uint32_t streams_a, uint32_t streams_b, uint32_t expected)
{
    agree(streams_a, streams_b, NO_HARM, much_was_streamed);
    check(atomic_load(&relay.streams) == expected, "as many as the lesser of both wants are made");
    check(atomic_load(&relay.legible) == !key, "who has not the key reads no model");
    for (int i = 0; i < 2; i++)
        check(most_was_streamed(&nodes[i].result.stats), "most of it went over streams");
}

static void agree_without(uint32_t streams_a, uint32_t streams_b)
{
    agree(streams_a, streams_b, NO_HARM, much_was_sent);
    check(atomic_load(&relay.streams) == 0, "where one end wants none there are none");
    for (int i = 0; i < 2; i++)
        check(nodes[i].result.stats.bytes_streams == 0, "and nothing goes over them");
}

static void survive_harm(enum harm harm)
{
    atomic_store(&suspicions, 0);
    atomic_store(&deaths, 0);
    agree(4, 4, harm, a_link_ended);
    check(atomic_load(&relay.harmed) == 1, "a stream was harmed, and its link ended");
    check(atomic_load(&deaths) == 0, "nobody died of it");
}

/* ---- A kill ---------------------------------------------------------------------------------- */

static void limit_descriptors(rlim_t most)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit)) exit(1);
    limit.rlim_cur = most;
    if (setrlimit(RLIMIT_NOFILE, &limit)) exit(1);
}

static char key_path[] = "/tmp/parley-key-XXXXXX";

static struct node *open_keyed_peer(void)
{
    key = key_path;
    return open_with(0, NULL, NULL, PARLEY_STREAMS_MAX, UINT64_MAX / 2);
}

static struct node *open_peer(void)
{
    return open_with(0, NULL, NULL, PARLEY_STREAMS_MAX, UINT64_MAX / 2);
}

static void survive_a_kill(struct peer peer, uint32_t streams)
{
    char address[PARLEY_ADDRESS_SIZE];
    atomic_store(&high, 0);
    pair_address(peer, address);
    struct node *node = open_with(1, address, NULL, streams, 0);
    pair_kill(node, peer);
    check(most_was_streamed(&node->result.stats), "over streams");
    check(atomic_load(&high) == 0, "the upper half of the descriptors was left alone");
}

/* ---- Strangers ------------------------------------------------------------------------------- */

/* True once the node has closed it: it waits for a HELLO for an hour. */
static bool is_turned_away(const char *node, const uint8_t *says)
{
    struct sockaddr_in to = address_of(node);
    uint8_t answer[64];
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) || !write_all(fd, says, PREAMBLE))
        exit(1);
    bool away = recv(fd, answer, sizeof answer, 0) <= 0;
    close(fd);
    return away;
}

/* The nodes are under way: b has shown its token, and so many of four streams got through. */
static void turn_strangers_away(unsigned most)
{
    const uint8_t made_up[PREAMBLE] = {'P', 's', 1, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8};
    const uint8_t none[PREAMBLE] = {'P', 's', 1};
    relay_init(NO_HARM, 0);
    relay.most = most;
    atomic_store(&warnings, 0);
    open_both(4, 4, 0);
    pair_start();
    struct parley_stats stats;
    do
        parley_stats(nodes[0].p, &stats);
    while (sched_yield() == 0 && (stats.connections < 1 + most || stats.bytes_streams == 0));
    const char *a = parley_listens(nodes[0].p);
    check(is_turned_away(a, made_up), "a token of nobody's is of no use");
    check(is_turned_away(a, none), "nor is none");
    if (most == 4) check(is_turned_away(a, relay.preamble), "nor is one stream too many");
    parley_stop(nodes[0].p, PARLEY_STOP_OPERATOR);
    pair_end();
    relay_close();
    check(nodes[0].result.agreed && nodes[1].result.agreed, "strangers disturb nobody");
    check(atomic_load(&warnings) == 0, "and nobody is warned of them");
    check(atomic_load(&relay.streams) == 4, "and no link");
}

int main(void)
{
    struct rlimit before;
    pair_key(key_path, '1');
    struct peer keyed = pair_fork(open_keyed_peer, geteuid());
    struct peer peer = pair_fork(open_peer, geteuid()), other = pair_fork(open_peer, geteuid());
    if (getrlimit(RLIMIT_NOFILE, &before)) return 1;
    survive_a_kill(peer, 4);
    limit_descriptors(DESCRIPTORS); /* 64 streams are too many beside what else there is */
    survive_a_kill(other, PARLEY_STREAMS_MAX);
    limit_descriptors(before.rlim_cur);
    agree_over_streams(4, 4, 4);
    agree_over_streams(64, 2, 2);
    agree_without(1, 4);
    agree_without(4, 1);
    survive_harm(CUT);
    survive_harm(SPOIL);
    turn_strangers_away(4);
    turn_strangers_away(3);
    key = key_path;
    survive_a_kill(keyed, 4);
    agree_over_streams(4, 4, 4);
    agree_over_streams(64, 2, 2);
    agree_without(1, 4);
    survive_harm(CUT);
    survive_harm(SPOIL);
    unlink(key_path);
    return failures ? 1 : 0;
}
