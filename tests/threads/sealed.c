/* sealed.c: streams where there is a cluster key (peers/network/streams.h), and strangers.
 *
 *   - who says what a stream says first, and then no TLS, or proves another key, is turned away: it
 * hears so, and nothing else
 *   - who has the key, and a token of nobody's, is closed without a word
 *   - of those that prove nothing so many are kept, and the oldest goes
 *   - the nodes have their streams meanwhile, and agree
 *
 * Plain main(), so that it runs under ThreadSanitizer.
 */
#define _DEFAULT_SOURCE
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>

#include "network/streams.h"
#include "network/stripes.h"
#include "network/tls.h"
#include "pair.h"

static const uint8_t magic[STRIPES_CLEAR_BYTES] = {'P', 's', 1};

static int dial(const char *address)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                             .sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1))};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to)) exit(1);
    return fd;
}

static void say(int fd, const void *bytes, size_t size)
{
    if (send(fd, bytes, size, MSG_NOSIGNAL) != (ssize_t)size) exit(1);
}

/* What TLS has to say, after so many bytes that are said with it. */
static void say_sealed(int fd, struct tls_end *end, const void *before, size_t before_size)
{
    uint8_t said[2048], *sealed;
    size_t size = tls_take(end, &sealed);
    if (before_size + size > sizeof said) exit(1);
    memcpy(said, before, before_size);
    if (size > 0) memcpy(said + before_size, sealed, size);
    free(sealed);
    if (before_size + size > 0) say(fd, said, before_size + size);
}

/* All that comes until the connection is closed. */
static size_t hear(int fd, uint8_t *to, size_t size)
{
    size_t heard = 0;
    ssize_t got;
    while (heard < size && (got = recv(fd, to + heard, size - heard, 0)) > 0)
        heard += (size_t)got;
    return heard;
}

static void come_without(const char *node)
{
    static const char said[] = "Ps\1\0\0\0\0\0a token, in the clear";
    uint8_t heard[64];
    int fd = dial(node);
    say(fd, said, sizeof said);
    size_t size = hear(fd, heard, sizeof heard);
    check(size == 7 && tls_is_spoken(heard, size), "who speaks no TLS hears that it should");
    close(fd);
}

/* A stream as the nodes make it, with a token of nobody's. Whether it could show that. */
static bool come_with(const char *node, const char *path)
{
    static const uint8_t token[STRIPES_FIRST_BYTES - STRIPES_CLEAR_BYTES] = "a token";
    char why[256];
    struct tls *key;
    uint8_t bytes[4096], none[64];
    ssize_t got, read = 0;
    if (tls_new(&key, path, why, sizeof why)) exit(1);
    struct tls_end *end = tls_end_new(key, true);
    int fd = dial(node);
    (void)tls_read(end, none, sizeof none);
    say_sealed(fd, end, magic, sizeof magic);
    while (read == 0 && !tls_is_up(end) && (got = recv(fd, bytes, sizeof bytes, 0)) > 0) {
        tls_feed(end, bytes, (size_t)got);
        read = tls_read(end, none, sizeof none);
    }
    bool shown = tls_write(end, token, sizeof token);
    if (shown) {
        say_sealed(fd, end, magic, 0);
        check(hear(fd, bytes, sizeof bytes) == 0, "a token of nobody's is of no use");
    } else {
        check(read < 0 && recv(fd, bytes, sizeof bytes, 0) <= 0, "and nothing more is heard");
    }
    close(fd);
    tls_end_free(end);
    tls_free(key);
    return shown;
}

/* They begin a record each, and say no more. */
static void besiege(const char *node)
{
    static const uint8_t begins[] = {'P', 's', 1, 0, 0, 0, 0, 0, 22, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3};
    int fds[STREAMS_UNPROVED_MAX + 1];
    uint8_t none;
    for (int i = 0; i <= STREAMS_UNPROVED_MAX; i++)
        say(fds[i] = dial(node), begins, sizeof begins);
    check(recv(fds[0], &none, 1, 0) <= 0, "the oldest gives way");
    check(recv(fds[STREAMS_UNPROVED_MAX], &none, 1, MSG_DONTWAIT) < 0, "the others wait");
    for (int i = 0; i <= STREAMS_UNPROVED_MAX; i++)
        close(fds[i]);
}

static struct node *open_with(int i, const char *seed, const char *key)
{
    struct node *node = pair_node(i, seed, 0);
    node->options.config.streams = 4;
    node->options.no_lane = true;
    node->options.cluster_key = key;
    pair_open(node);
    return node;
}

static void wait_for_streams(void)
{
    struct parley_stats stats;
    do
        parley_stats(nodes[0].p, &stats);
    while (sched_yield() == 0 && stats.bytes_streams == 0);
}

int main(void)
{
    char key[] = "/tmp/parley-key-XXXXXX", other[] = "/tmp/parley-key-XXXXXX";
    pair_key(key, '1');
    pair_key(other, '2');
    const char *a = parley_listens(open_with(0, NULL, key)->p);
    open_with(1, a, key);
    come_without(a);
    check(!come_with(a, other), "who has another key shows no token");
    check(come_with(a, key), "who has the key does");
    besiege(a);
    pair_start();
    wait_for_streams();
    besiege(a);
    parley_stop(nodes[0].p, PARLEY_STOP_OPERATOR);
    pair_agreed();
    unlink(key);
    unlink(other);
    return failures ? 1 : 0;
}
