/* retransmit.c: what TCP is told of the connections between nodes. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/tcp.h> /* libc's struct tcp_info is short of what was sent */
#include <unistd.h>

#include "network/retransmit.h"

#ifndef TCP_RTO_MAX_MS
#define TCP_RTO_MAX_MS 44
#endif
#ifndef TCP_RTO_MIN_US
#define TCP_RTO_MIN_US 45
#endif

enum { LISTENS, DIALS, ACCEPTED, SOCKETS };

/* A connection over the loopback, made as nodes make theirs. */
static void connect_pair(int *fds)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    fds[LISTENS] = socket(AF_INET, SOCK_STREAM, 0);
    fds[DIALS] = socket(AF_INET, SOCK_STREAM, 0);
    retransmit_init(fds[LISTENS]);
    retransmit_init(fds[DIALS]);
    cr_assert_eq(bind(fds[LISTENS], (struct sockaddr *)&at, sizeof at), 0);
    cr_assert_eq(listen(fds[LISTENS], 1), 0);
    cr_assert_eq(getsockname(fds[LISTENS], (struct sockaddr *)&at, &size), 0);
    cr_assert_eq(connect(fds[DIALS], (struct sockaddr *)&at, sizeof at), 0);
    fds[ACCEPTED] = accept(fds[LISTENS], NULL, NULL);
    cr_assert_geq(fds[ACCEPTED], 0);
}

static void close_all(const int *fds)
{
    for (int i = 0; i < SOCKETS; i++)
        close(fds[i]);
}

static int option_of(int fd, int option)
{
    int value = -1;
    socklen_t size = sizeof value;
    if (getsockopt(fd, IPPROTO_TCP, option, &value, &size) == 0) return value;
    cr_assert_eq(errno, ENOPROTOOPT);
    cr_skip_test("this kernel has no such option (Linux 6.15)");
    return -1;
}

Test(retransmit, pauses_are_bounded_on_both_ends_from_the_first_packet_on)
{
    /* Proves that who was accepted is like the listener, and that nothing must be told to it. */
    int fds[SOCKETS];
    connect_pair(fds);
    for (int i = 0; i < SOCKETS; i++) {
        cr_assert_eq(option_of(fds[i], TCP_THIN_LINEAR_TIMEOUTS), 1);
        cr_assert_eq(option_of(fds[i], TCP_RTO_MAX_MS), 1000);
        cr_assert_leq(option_of(fds[i], TCP_RTO_MIN_US), 20000); /* in whole ticks of the kernel */
    }
    close_all(fds);
}

Test(retransmit, a_line_that_loses_nothing_keeps_its_congestion_control)
{
    /* Proves that a clean line is told nothing that costs it: no Reno, no hasty acknowledgements.
     */
    int fds[SOCKETS];
    char before[16] = "", after[16] = "";
    socklen_t size = sizeof before;
    struct retransmit now = {0};
    connect_pair(fds);
    cr_assert_eq(getsockopt(fds[DIALS], IPPROTO_TCP, TCP_CONGESTION, before, &size), 0);
    retransmit_adapt(fds[DIALS], 1, &now);
    size = sizeof after;
    cr_assert_eq(getsockopt(fds[DIALS], IPPROTO_TCP, TCP_CONGESTION, after, &size), 0);
    cr_assert_str_eq(after, before);
    cr_assert(!now.loses && !now.thin);
    cr_assert(!retransmit_is_misled(fds[DIALS]));
    retransmit_sends(fds[DIALS], &now);
    cr_assert(!now.waits);
    cr_assert_eq(now.most_ms, 1000);
    cr_assert_geq(now.least_us, 5000);
    close_all(fds);
}

/* Byte by byte, until a hundred packets have gone: the kernel may put several into one. */
static uint32_t send_packets(int fd)
{
    struct tcp_info info = {0};
    for (int one = 1; info.tcpi_data_segs_out < 100;) {
        socklen_t size = sizeof info;
        cr_assert_eq(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one), 0);
        cr_assert_eq(write(fd, "x", 1), 1);
        cr_assert_eq(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size), 0);
    }
    return info.tcpi_data_segs_out;
}

Test(retransmit, a_line_that_lost_something_once_is_not_held_back_for_ever)
{
    /* Proves that packets sent again for a way that has grown longer are forgotten: frames would go
     * on waiting for each other, a way there and back each time. */
    int fds[SOCKETS];
    struct retransmit now = {.loses = true, .thin = true, .waits = true};
    connect_pair(fds);
    send_packets(fds[DIALS]);
    int off = 0; /* as it is where frames wait */
    cr_assert_eq(setsockopt(fds[DIALS], IPPROTO_TCP, TCP_NODELAY, &off, sizeof off), 0);
    retransmit_sends(fds[DIALS], &now);
    cr_assert(now.thin && !now.loses && !now.waits);
    cr_assert_neq(option_of(fds[DIALS], TCP_NODELAY), 0);
    close_all(fds);
}

/* What a line is told that is seen to have sent so many packets again since the last look. */
static struct retransmit adapt(int fd, uint32_t again, size_t model_bytes)
{
    struct retransmit now = {.again = 0 - again};
    retransmit_adapt(fd, model_bytes, &now);
    return now;
}

Test(retransmit, a_line_loses_that_loses_more_than_one_packet_in_sixteen)
{
    /* Proves that the bound is the one that was measured: a line that loses a tenth counts. */
    int fds[SOCKETS];
    connect_pair(fds);
    uint32_t sent = send_packets(fds[DIALS]);
    cr_assert(!adapt(fds[DIALS], sent / 16, 1).loses);
    struct retransmit now = adapt(fds[DIALS], sent / 16 + 1, 1);
    cr_assert(now.loses);
    /* What was judged is not judged again. */
    cr_assert(now.sent == sent && now.again == 0);
    close_all(fds);
}

Test(retransmit, the_first_packet_that_is_lost_tells_and_a_small_model_then_goes_by_reno)
{
    /* Proves that a line which loses is not slow until 32 packets are through; and that a large
     * model keeps its congestion control, as it does congest. */
    int fds[SOCKETS];
    char before[16] = "", after[16] = "";
    socklen_t size = sizeof before;
    connect_pair(fds);
    cr_assert_eq(getsockopt(fds[DIALS], IPPROTO_TCP, TCP_CONGESTION, before, &size), 0);
    struct retransmit now = adapt(fds[DIALS], 1, 1 << 20);
    size = sizeof after;
    cr_assert_eq(getsockopt(fds[DIALS], IPPROTO_TCP, TCP_CONGESTION, after, &size), 0);
    cr_assert(now.loses && !now.thin);
    cr_assert_str_eq(after, before);
    now = adapt(fds[DIALS], 1, 1);
    size = sizeof after;
    cr_assert_eq(getsockopt(fds[DIALS], IPPROTO_TCP, TCP_CONGESTION, after, &size), 0);
    cr_assert(now.loses && now.thin);
    cr_assert_str_eq(after, "reno");
    close_all(fds);
}

Test(retransmit, what_a_line_that_loses_has_brought_is_acknowledged_at_once)
{
    /* Proves that who sent it does not take the wait for the length of the way. */
    int fds[SOCKETS];
    int none = 0;
    connect_pair(fds);
    for (int loses = 0; loses < 2; loses++) {
        const struct retransmit now = {.loses = loses};
        cr_assert_eq(setsockopt(fds[DIALS], IPPROTO_TCP, TCP_QUICKACK, &none, sizeof none), 0);
        retransmit_heard(fds[DIALS], &now);
        cr_assert_eq(option_of(fds[DIALS], TCP_QUICKACK), loses);
    }
    close_all(fds);
}

Test(retransmit, what_is_no_connection_is_left_alone)
{
    /* Proves that nothing fails where the system won't. */
    struct retransmit now = {0};
    retransmit_init(-1);
    retransmit_adapt(-1, 1, &now);
    retransmit_heard(-1, &now);
    retransmit_sends(-1, &(struct retransmit){.thin = true});
    cr_assert(!retransmit_is_misled(-1));
    cr_assert_eq(now.most_ms, 0);
}
