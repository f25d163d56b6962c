/* conn.c: the list of connections, their beginning and end: see conn.h. Dialling stands in dial.c,
 * accepting in accept.c, reading in read.c, writing in send.c.
 */
#include "network/conn.h"

#include <linux/sockios.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "clock.h"
#include "network/address.h"
#include "network/lane.h"
#include "network/streams.h"
#include "network/tls.h"

static struct conn **bucket_of(struct loop *loop, uint32_t id)
{
    return &loop->conns[(id / 2) % LOOP_BUCKETS];
}

struct conn *conn_find(struct loop *loop, uint32_t id)
{
    struct conn *conn = *bucket_of(loop, id);
    while (conn && conn->id != id)
        conn = conn->next;
    return conn;
}

int conn_fd(const struct conn *conn)
{
    uv_os_fd_t fd;
    return uv_fileno((const uv_handle_t *)&conn->tcp, &fd) == 0 ? fd : -1;
}

int conn_peer(const struct conn *conn, char address[PARLEY_ADDRESS_SIZE])
{
    struct sockaddr_storage from = {0};
    int size = sizeof from;
    int code = uv_tcp_getpeername(&conn->tcp, (struct sockaddr *)&from, &size);
    if (!code) address_print(address, (struct sockaddr *)&from);
    return code;
}

struct conn *conn_from(struct loop *loop, const char *address)
{
    for (uint32_t b = 0; b < LOOP_BUCKETS; b++)
        for (struct conn *conn = loop->conns[b]; conn; conn = conn->next) {
            char text[PARLEY_ADDRESS_SIZE];
            if (conn->id % 2 || conn->state != CONN_OPEN || (conn->tls && !conn->proved) ||
                conn_peer(conn, text))
                continue;
            if (strcmp(text, address) == 0) return conn;
        }
    return NULL;
}

struct conn *conn_of_token(struct loop *loop, uint64_t token)
{
    for (uint32_t b = 0; token && b < LOOP_BUCKETS; b++)
        for (struct conn *conn = loop->conns[b]; conn; conn = conn->next)
            if (conn->token == token && conn->state == CONN_OPEN) return conn;
    return NULL;
}

void conn_adapt(struct conn *conn)
{
    size_t model_bytes = conn->loop->vectors->count * sizeof(float);
    retransmit_adapt(conn_fd(conn), model_bytes, &conn->retransmit);
}

struct conn *conn_new(struct loop *loop, uint32_t id)
{
    struct conn *conn = calloc(1, sizeof *conn);
    if (!conn) return NULL;
    if (loop->tls) conn->tls = tls_end_new(loop->tls, id % 2);
    if ((loop->tls && !conn->tls) || uv_tcp_init(&loop->uv, &conn->tcp)) {
        tls_end_free(conn->tls);
        free(conn);
        return NULL;
    }
    conn->loop = loop;
    conn->id = id;
    conn->try_until_us = UINT64_MAX;
    conn->tcp.data = conn;
    struct conn **bucket = bucket_of(loop, id);
    conn->next = *bucket;
    *bucket = conn;
    atomic_fetch_add(&loop->connections, 1);
    return conn;
}

static void forget(struct conn *conn)
{
    struct loop *loop = conn->loop;
    struct conn **at = bucket_of(loop, conn->id);
    while (*at != conn)
        at = &(*at)->next;
    *at = conn->next;
    atomic_fetch_sub(&loop->connections, 1);
    conn_tell_sent(loop);
    lane_end(conn);
    streams_end(conn);
    char text[200];
    conn_why_closed(conn, text, sizeof text);
    struct parley_event event = {.type = PARLEY_EVENT_CLOSED,
                                 .closed = {conn->id, conn->reason, text}};
    if (conn->tell_closed) loop_tell(loop, &event);
    if (conn->found) uv_freeaddrinfo(conn->found);
    tls_end_free(conn->tls);
    free(conn->input);
    free(conn);
}

static void on_closed(uv_handle_t *handle)
{
    forget(handle->data);
}

void conn_end(struct conn *conn, enum parley_closed reason, int code)
{
    if (conn->state == CONN_ENDED) return;
    if (conn->retrying) {
        conn->close_wanted = true;
        return;
    }
    if (conn->state == CONN_SHUT) {
        conn->loop->conns_shut--;
        reason = PARLEY_CLOSED_LOCAL; /* the core had asked for it */
        code = 0;
    }
    conn_give_lookup_up(conn);
    conn->state = CONN_ENDED;
    conn->reason = reason;
    conn->code = code;
    uv_close((uv_handle_t *)&conn->tcp, on_closed);
}

/* ---- Closing --------------------------------------------------------------------------------- */

static void on_shut(uv_shutdown_t *request, int status)
{
    struct conn *conn = request->handle->data;
    conn->flushed = status == 0;
    if (status < 0) conn_end(conn, PARLEY_CLOSED_LOCAL, 0); /* else the peer's FIN ends it */
}

static void shut(struct conn *conn)
{
    if (conn->state == CONN_SHUT) return;
    if (conn->state != CONN_OPEN || !conn->spoke) { /* no frame of ours to be lost */
        conn_end(conn, PARLEY_CLOSED_LOCAL, 0);
        return;
    }
    if (uv_shutdown(&conn->shutdown, (uv_stream_t *)&conn->tcp, on_shut)) {
        conn_end(conn, PARLEY_CLOSED_LOCAL, 0);
        return;
    }
    conn->state = CONN_SHUT;
    conn->linger_until_us = clock_now_us() + CONN_LINGER_MS * 1000;
    conn->loop->conns_shut++;
    if (conn->waits) conn_read_on(conn); /* for the FIN; from on_read() it has not stopped yet */
}

void conn_close(struct loop *loop, uint32_t id, bool at_once)
{
    struct conn *conn = conn_find(loop, id);
    if (conn && at_once)
        conn_end(conn, PARLEY_CLOSED_LOCAL, 0);
    else if (conn)
        shut(conn);
}

/* The peer's machine has all that was sent, but for a FIN perhaps: that the kernel sees to alone.
 */
static bool has_arrived(const struct conn *conn)
{
    int left;
    return conn->flushed && ioctl(conn_fd(conn), SIOCOUTQ, &left) == 0 && left <= 1;
}

void conn_sweep(struct loop *loop, uint64_t now_us)
{
    for (uint32_t b = 0; loop->conns_shut > 0 && b < LOOP_BUCKETS; b++)
        for (struct conn *conn = loop->conns[b]; conn; conn = conn->next)
            if (conn->state == CONN_SHUT && (now_us >= conn->linger_until_us || has_arrived(conn)))
                conn_end(conn, PARLEY_CLOSED_LOCAL, 0);
}

void conn_close_all(struct loop *loop, bool flush)
{
    for (uint32_t b = 0; b < LOOP_BUCKETS; b++)
        for (struct conn *conn = loop->conns[b]; conn; conn = conn->next) {
            if (flush)
                shut(conn);
            else
                conn_end(conn, PARLEY_CLOSED_LOCAL, 0);
        }
}
