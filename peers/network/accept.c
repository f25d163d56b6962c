/* accept.c: connections that others have dialled.
 *
 * The happy path: the kernel keeps those that say nothing; of the others so many are taken in a
 * time, and each becomes one INCOMING event.
 *
 * Failure modes: without memory they are closed, and that is logged now and then. Without
 * descriptors libuv closes them and mostly says nothing: so the last one that is taken is logged.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>

#include "clock.h"
#include "network/conn.h"
#include "network/streams.h"
#include "network/tls.h"

static void turn_away(struct loop *loop);

static void on_turned_away(uv_handle_t *away)
{
    struct loop *loop = away->data;
    loop->away_busy = false;
    if (loop->away_waits) turn_away(loop);
}

/* Without memory for it a connection is taken all the same, and closed: before that, libuv accepts
 * no other. */
static void turn_away(struct loop *loop)
{
    loop->away_waits = loop->away_busy;
    if (loop->away_busy) return;
    loop->away_busy = true;
    uv_tcp_init(&loop->uv, &loop->away); /* makes no socket: can't fail */
    loop->away.data = loop;
    (void)uv_accept((uv_stream_t *)&loop->listener, (uv_stream_t *)&loop->away);
    uv_close((uv_handle_t *)&loop->away, on_turned_away);
}

/* One line in ten seconds is enough, whoever dials. */
static bool may_warn(struct loop *loop)
{
    uint64_t now_us = clock_now_us();
    if (now_us - loop->accept_logged_us < 10 * 1000000) return false;
    loop->accept_logged_us = now_us;
    return true;
}

/* A descriptor gets the least number that is free. */
static void warn_if_last(struct conn *conn)
{
    int fd = conn_fd(conn);
    struct rlimit limit;
    if (fd < 0 || getrlimit(RLIMIT_NOFILE, &limit)) return;
    if ((rlim_t)fd + 1 < limit.rlim_cur || !may_warn(conn->loop)) return;
    loop_log(conn->loop, PARLEY_LOG_WARN,
             "all %llu descriptors are in use: further peers are turned away; raise the limit "
             "(ulimit -n)",
             (unsigned long long)limit.rlim_cur);
}

void conn_warn_of_stranger(struct conn *conn)
{
    char address[PARLEY_ADDRESS_SIZE];
    if (conn->id % 2 || conn_peer(conn, address) || !may_warn(conn->loop)) return;
    loop_log(conn->loop, PARLEY_LOG_WARN, "%s is turned away: %s", address,
             tls_unproved(conn->tls, true));
}

static void take_connection(struct loop *loop, int status)
{
    uv_stream_t *listener = (uv_stream_t *)&loop->listener;
    /* Without descriptors libuv accepts with one kept in reserve and closes at once. */
    struct conn *conn = status ? NULL : conn_new(loop, loop->conn_next);
    if (!conn) {
        if (!status) turn_away(loop);
        if (may_warn(loop))
            loop_log(loop, PARLEY_LOG_WARN, "a connection could not be accepted: %s",
                     uv_strerror(status ? status : UV_ENOMEM));
        return;
    }
    loop->conn_next += 2;
    char address[PARLEY_ADDRESS_SIZE];
    int code = uv_accept(listener, (uv_stream_t *)&conn->tcp);
    if (!code) code = conn_peer(conn, address);
    if (code || loop->conn_next == 0 || streams_accept(conn)) {
        conn_end(conn, PARLEY_CLOSED_RESET, code); /* gone already: the core never hears of it */
        return;
    }
    warn_if_last(conn);
    if (conn->stream) {
        conn_opened(conn);
        return;
    }
    if (loop->streams_most > 1 && uv_random(NULL, NULL, &conn->token, sizeof conn->token, 0, NULL))
        conn->token = 0;
    conn->tell_closed = true;
    conn_opened(conn);
    struct parley_event event = {.type = PARLEY_EVENT_INCOMING,
                                 .incoming = {conn->id, address, conn->token}};
    loop_tell(loop, &event);
}

static bool may_accept(struct loop *loop)
{
    uint64_t now_us = clock_now_us();
    if (now_us >= loop->accepts_until_us) {
        loop->accepts_until_us = now_us + LOOP_ACCEPTS_US;
        loop->accepts = 0;
    }
    if (loop->accepts == LOOP_ACCEPTS_MAX) return false;
    loop->accepts++;
    return true;
}

/* However many dial, they cost a small part of a processor: so many are taken at a time. The next
 * one waits, accepted by libuv and not by us, and libuv takes no other before; those behind it wait
 * in the kernel, which sends away who finds no room there. */
static void on_connection(uv_stream_t *listener, int status)
{
    struct loop *loop = listener->data;
    loop->accept_waits = status == 0 && !may_accept(loop);
    if (!loop->accept_waits) take_connection(loop, status);
}

void conn_turn(struct loop *loop)
{
    if (!loop->accept_waits || loop->finished || !may_accept(loop)) return;
    loop->accept_waits = false;
    take_connection(loop, 0);
}

/* Who dials speaks first, so the kernel may keep those that have said nothing yet to itself. */
static void keep_silent_ones(int fd)
{
    int seconds = 5;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, sizeof seconds);
}

int conn_listen(struct loop *loop)
{
    uv_os_fd_t fd;
    loop->conn_next = 2;
    loop->listener.data = loop;
    if (uv_fileno((uv_handle_t *)&loop->listener, &fd) == 0) {
        keep_silent_ones(fd);
        retransmit_init(fd);
    }
    return uv_listen((uv_stream_t *)&loop->listener, CONN_BACKLOG, on_connection);
}
