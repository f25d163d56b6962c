/* retransmit.c: see retransmit.h. */
#include "network/retransmit.h"

#include <linux/tcp.h> /* libc's struct tcp_info is short of what was sent */
#include <netinet/in.h>
#include <sys/socket.h>

#ifndef TCP_RTO_MAX_MS
#define TCP_RTO_MAX_MS 44 /* these two are younger than many a libc */
#endif
#ifndef TCP_RTO_MIN_US
#define TCP_RTO_MIN_US 45
#endif

enum {
    LEAST_US = 5000,
    LEAST_US_MAX = 200000,  /* the kernel takes no more, ... */
    MOST_MS = 1000,         /* ... and no less */
    SYN_PAUSE_US = 1000000, /* the kernel's, before it sends a SYN again */
    WINDOW_BYTES = 10 * 1448,
    FEW_PACKETS = 3,   /* the kernel's bound for even pauses */
    LOOK_PACKETS = 32, /* so many are judged together, ... */
    LOST_PART = 16     /* ... and a line loses that loses more than this part of them */
};

static void set(int fd, int option, int value)
{
    (void)setsockopt(fd, IPPROTO_TCP, option, &value, sizeof value);
}

void retransmit_init(int fd)
{
    set(fd, TCP_RTO_MIN_US, LEAST_US);
    set(fd, TCP_RTO_MAX_MS, MOST_MS);
    set(fd, TCP_THIN_LINEAR_TIMEOUTS, 1);
}

bool retransmit_is_misled(int fd)
{
    struct tcp_info info;
    socklen_t size = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size)) return false;
    return info.tcpi_total_retrans > 0 && info.tcpi_rtt >= SYN_PAUSE_US / 2;
}

/* Every system has Reno and lets anybody choose it. */
static void control_nothing(int fd)
{
    static const char reno[] = "reno";
    (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, reno, sizeof reno - 1);
}

static void bound_pauses(int fd, int rtt_us, struct retransmit *now)
{
    int least_us = rtt_us / 2, most_ms = rtt_us / 1000 * 2;
    if (least_us < LEAST_US) least_us = LEAST_US;
    if (least_us > LEAST_US_MAX) least_us = LEAST_US_MAX;
    if (most_ms < MOST_MS) most_ms = MOST_MS;
    if (least_us != now->least_us) set(fd, TCP_RTO_MIN_US, least_us);
    if (most_ms != now->most_ms) set(fd, TCP_RTO_MAX_MS, most_ms);
    now->least_us = least_us;
    now->most_ms = most_ms;
}

/* Most lines lose nothing at all: one packet tells at first. But where the way has grown longer,
 * packets that are only late are sent again, until that is known. */
static void look_for_loss(const struct tcp_info *info, struct retransmit *now)
{
    uint32_t sent = info->tcpi_data_segs_out - now->sent;
    uint32_t again = info->tcpi_total_retrans - now->again;
    if (again > 0) now->loses = true;
    if (sent < LOOK_PACKETS) return;
    now->loses = again * LOST_PART > sent;
    now->sent += sent;
    now->again += again;
}

void retransmit_adapt(int fd, size_t model_bytes, struct retransmit *now)
{
    struct tcp_info info = {0};
    socklen_t size = sizeof info;
    bool opens = now->most_ms == 0;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size)) return;
    look_for_loss(&info, now);
    if (now->loses && !now->thin && model_bytes <= WINDOW_BYTES) {
        now->thin = true;
        control_nothing(fd);
    }
    /* A handshake that lost something makes the way seem longer than it is. */
    bound_pauses(fd, opens && now->loses ? 0 : (int)info.tcpi_rtt, now);
}

void retransmit_sends(int fd, struct retransmit *now)
{
    struct tcp_info info = {0};
    socklen_t size = sizeof info;
    if (!now->thin || getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size)) return;
    look_for_loss(&info, now);
    bool waits = now->loses && info.tcpi_unacked >= FEW_PACKETS;
    if (waits != now->waits) set(fd, TCP_NODELAY, !waits);
    now->waits = waits;
}

void retransmit_heard(int fd, const struct retransmit *now)
{
    if (now->loses) set(fd, TCP_QUICKACK, 1);
}
