/* streams.c: see streams.h. */
#define _GNU_SOURCE /* F_DUPFD_CLOEXEC, SOCK_NONBLOCK */
#include "network/streams.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/wire/wire.h"
#include "network/conn.h"
#include "network/stripes.h"
#include "network/tls.h"

enum { PUMP_BYTES = 1024 * 1024 }; /* sent at a time: then others have their turn, reading too */

struct stream {
    uv_poll_t poll; /* its data is the stream */
    struct streams *of;
    struct stripe *stripe;
    int fd, events;
};

/* Floats of a chunk that are still to go out. */
struct flight {
    uint32_t op;
    const uint8_t *floats;
    size_t size;
};

struct streams {
    struct conn *conn;
    struct stripes stripes;
    struct stream *each[PARLEY_STREAMS_MAX];   /* [stripes.count]; NULL: it came to nothing */
    struct flight flights[STREAMS_FLIGHT_MAX]; /* [count] from `first`, in a circle */
    uint32_t first, count;
    uint64_t promised; /* where the next chunk begins in the sequence that goes out */
};

/* ---- Sockets --------------------------------------------------------------------------------- */

static void on_closed(uv_handle_t *handle)
{
    struct stream *stream = handle->data;
    close(stream->fd);
    free(stream);
}

static void drop(struct stream *stream)
{
    atomic_fetch_sub(&stream->of->conn->loop->connections, 1);
    stream->stripe->fd = -1;
    uv_close((uv_handle_t *)&stream->poll, on_closed);
}

static struct stream **place_of(const struct stream *stream)
{
    return &stream->of->each[stream->stripe - stream->of->stripes.all];
}

static bool is_affordable(int fd)
{
    struct rlimit limit;
    return fd >= 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0 && (rlim_t)fd < limit.rlim_cur / 2;
}

/* So that all of a link's hold back little of what the kernel has not sent: see stripes.c. */
static void tune(int fd, uint32_t segment)
{
    int one = 1, bytes = (int)segment;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes);
}

static void on_poll(uv_poll_t *poll, int status, int events);

/* What each socket is to be watched for. Of those that take more, one is enough. */
static void attend(struct streams *streams)
{
    bool sends = streams->count > 0 && streams->conn->state != CONN_ENDED;
    for (uint32_t i = 0; i < streams->stripes.count; i++) {
        struct stream *stream = streams->each[i];
        if (!stream) continue;
        const struct stripe *stripe = stream->stripe;
        bool writes = stripes_wants_room(stripe, sends);
        int events = (stripe->dry ? UV_READABLE : 0) | (writes ? UV_WRITABLE : 0);
        if (stripe->open && !stripe->full) sends = false;
        if (streams->conn->state == CONN_ENDED) events = 0;
        if (events == stream->events) continue;
        stream->events = events;
        if (events)
            uv_poll_start(&stream->poll, events, on_poll);
        else
            uv_poll_stop(&stream->poll);
    }
}

/* Takes the socket and its end of TLS, whatever comes of it. `first`: what the dialler says; NULL:
 * it was accepted. */
static bool add(struct conn *conn, int fd, const uint8_t *first, struct tls_end *tls)
{
    struct streams *streams = conn->streams;
    struct stream *stream = calloc(1, sizeof *stream);
    if (!stream || uv_poll_init(&conn->loop->uv, &stream->poll, fd)) {
        tls_end_free(tls);
        close(fd);
        free(stream);
        return false;
    }
    stream->poll.data = stream;
    stream->fd = fd;
    stream->of = streams;
    stream->stripe = stripes_add(&streams->stripes, fd, first, tls);
    if (!stream->stripe) {
        tls_end_free(tls);
        uv_close((uv_handle_t *)&stream->poll, on_closed);
        return false;
    }
    *place_of(stream) = stream;
    tune(fd, streams->stripes.segment);
    atomic_fetch_add(&conn->loop->connections, 1);
    return true;
}

static struct streams *streams_of(struct conn *conn, uint32_t most)
{
    if (conn->streams || !(conn->streams = calloc(1, sizeof *conn->streams))) return conn->streams;
    conn->streams->conn = conn;
    stripes_init(&conn->streams->stripes, most);
    return conn->streams;
}

/* The oldest chunk under way has gone out, or never will. */
static void over(struct streams *streams, bool sent)
{
    struct parley_event event = {.type = PARLEY_EVENT_DONE,
                                 .done = {.op = streams->flights[streams->first].op, .ok = sent}};
    streams->first = (streams->first + 1) % STREAMS_FLIGHT_MAX;
    streams->count--;
    loop_tell(streams->conn->loop, &event);
}

void streams_end(struct conn *conn)
{
    struct streams *streams = conn->streams;
    if (!streams) return;
    while (streams->count > 0)
        over(streams, false);
    for (uint32_t i = 0; i < streams->stripes.count; i++)
        if (streams->each[i]) drop(streams->each[i]);
    stripes_free(&streams->stripes);
    free(streams);
    conn->streams = NULL;
}

/* ---- Making them ----------------------------------------------------------------------------- */

static const uint8_t magic[STRIPES_CLEAR_BYTES] = {'P', 's', 1};

static bool dial(struct conn *conn, const struct sockaddr_storage *to, const uint8_t *first)
{
    socklen_t size =
        to->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    int fd = socket(to->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct tls *key = conn->loop->tls;
    struct tls_end *tls = NULL;
    if (is_affordable(fd) && (!key || (tls = tls_end_new(key, true))) &&
        (connect(fd, (const struct sockaddr *)to, size) == 0 || errno == EINPROGRESS))
        return add(conn, fd, first, tls);
    tls_end_free(tls);
    if (fd >= 0) close(fd);
    return false;
}

void streams_ask(struct conn *conn)
{
    struct sockaddr_storage there = {0};
    uint8_t first[STRIPES_FIRST_BYTES];
    uint64_t token;
    int size = sizeof there;
    if (conn->asked || conn->id % 2 == 0 || conn->loop->streams_most < 2) return;
    uint32_t most = parley_node_streams(conn->loop->node, conn->id, &token);
    if (most == 0) return;
    conn->asked = true;
    if (conn->lane || uv_tcp_getpeername(&conn->tcp, (struct sockaddr *)&there, &size) ||
        !streams_of(conn, most))
        return;
    memcpy(first, magic, sizeof magic);
    wire_put(first + sizeof magic, token, 8);
    while (most > 0 && dial(conn, &there, first))
        most--;
    attend(conn->streams);
}

/* The link of that token takes it and its end of TLS, if there is one and it may have one more. */
static void join(struct conn *conn, uint64_t token)
{
    uint8_t first[STRIPES_FIRST_BYTES];
    uint64_t own;
    struct conn *link = conn_of_token(conn->loop, token);
    if (!link) return;
    uint32_t most = parley_node_streams(link->loop->node, link->id, &own);
    if (most == 0 || (link->streams && link->streams->stripes.count >= most)) return;
    /* Of its own, so that the handle may go. */
    int other = fcntl(conn_fd(conn), F_DUPFD_CLOEXEC, 0);
    if (!is_affordable(other) || !streams_of(link, most)) {
        if (other >= 0) close(other);
        return;
    }
    struct tls_end *tls = conn->tls;
    conn->tls = NULL;
    if (!tls) (void)!recv(other, first, sizeof first, MSG_DONTWAIT);
    if (add(link, other, NULL, tls)) attend(link->streams);
}

/* Room for one more that has still to prove the key. */
static void limit_unproved(struct loop *loop)
{
    uint32_t count = 0;
    struct conn *oldest = NULL;
    for (uint32_t b = 0; b < LOOP_BUCKETS; b++)
        for (struct conn *conn = loop->conns[b]; conn; conn = conn->next) {
            if (!conn->stream || conn->state != CONN_OPEN) continue;
            if (!oldest || conn->id < oldest->id) oldest = conn;
            count++;
        }
    if (count >= STREAMS_UNPROVED_MAX) conn_end(oldest, PARLEY_CLOSED_LOCAL, 0);
}

bool streams_accept(struct conn *conn)
{
    uint8_t first[STRIPES_FIRST_BYTES];
    int fd = conn_fd(conn);
    if (conn->loop->streams_most < 2 ||
        recv(fd, first, sizeof first, MSG_PEEK | MSG_DONTWAIT) != (ssize_t)sizeof first ||
        memcmp(first, magic, sizeof magic) != 0)
        return false;
    if (!conn->tls) {
        join(conn, wire_get(first + sizeof magic, 8));
        return true;
    }
    if (!is_affordable(fd)) return true;
    (void)!recv(fd, first, STRIPES_CLEAR_BYTES, MSG_DONTWAIT);
    limit_unproved(conn->loop);
    conn->stream = true;
    return false;
}

void streams_join(struct conn *conn, const uint8_t *bytes, size_t size)
{
    if (size == STRIPES_FIRST_BYTES - STRIPES_CLEAR_BYTES) join(conn, wire_get(bytes, 8));
    conn_end(conn, PARLEY_CLOSED_LOCAL, 0);
}

/* ---- Out ------------------------------------------------------------------------------------- */

bool streams_sends(const struct conn *conn)
{
    return conn->streams && conn->streams->count < STREAMS_FLIGHT_MAX &&
           stripes_open(&conn->streams->stripes);
}

uint64_t streams_place(const struct conn *conn)
{
    return STREAMS_PLACE | conn->streams->promised;
}

void streams_sent(struct conn *conn, uint32_t op, const void *floats, size_t size)
{
    struct streams *streams = conn->streams;
    uint32_t last = (streams->first + streams->count++) % STREAMS_FLIGHT_MAX;
    streams->flights[last] = (struct flight){op, floats, size};
    streams->promised += size;
    attend(streams);
}

/* As far as the sockets take it. */
static int pump(struct streams *streams)
{
    struct loop *loop = streams->conn->loop;
    const uint64_t end = streams->stripes.sent + PUMP_BYTES;
    while (streams->count > 0 && streams->stripes.sent < end) {
        struct flight *flight = &streams->flights[streams->first];
        ssize_t sent = stripes_send(&streams->stripes, flight->floats, flight->size);
        if (sent < 0) return (int)sent;
        flight->floats += sent;
        flight->size -= (size_t)sent;
        atomic_fetch_add_explicit(&loop->bytes_streams, (uint64_t)sent, memory_order_relaxed);
        if (flight->size > 0) return 0;
        over(streams, true);
    }
    return 0;
}

/* ---- In -------------------------------------------------------------------------------------- */

/* A turn has had its share: what is there already is read in the next one. */
static void put_off(struct streams *streams)
{
    for (uint32_t i = 0; i < streams->stripes.count; i++)
        streams->stripes.all[i].dry = true;
}

/* Of the floats of a chunk whose head has come, all that are there. */
static int take(struct streams *streams)
{
    struct conn *conn = streams->conn;
    struct loop *loop = conn->loop;
    size_t left;
    while (conn->waits && conn->state == CONN_OPEN &&
           (left = parley_node_awaits_aside(loop->node, conn->id)) > 0) {
        uint32_t vector;
        uint64_t offset;
        uint8_t *to = NULL;
        if (loop->turn_read_bytes > 0 && loop_turn_us(loop) > LOOP_READ_BUDGET_US &&
            !stripes_hold(&streams->stripes)) {
            put_off(streams);
            return 0;
        }
        if (parley_node_awaits(loop->node, conn->id, &vector, &offset) > 0)
            to = (uint8_t *)vectors_buffer(loop->vectors, vector) + offset;
        ssize_t got = stripes_receive(&streams->stripes, to, left);
        if (got <= 0) return (int)got;
        loop->turn_read_bytes += (size_t)got;
        atomic_fetch_add_explicit(&loop->bytes_received, (uint64_t)got, memory_order_relaxed);
        /* Those that nobody waits for the core only counts. */
        struct parley_event event = {.type = PARLEY_EVENT_RECEIVED,
                                     .received = {conn->id, to ? to : conn->input, (size_t)got}};
        loop_tell(loop, &event);
    }
    if (conn->state == CONN_OPEN) conn->waits = false;
    return 0;
}

bool streams_read(struct conn *conn, uint64_t place)
{
    struct streams *streams = conn->streams;
    if (!streams || place != (STREAMS_PLACE | streams->stripes.received)) return false;
    conn->waits = true;
    int code = take(streams);
    if (code) conn_end(conn, PARLEY_CLOSED_RESET, code);
    attend(streams);
    return true;
}

/* libuv says no more than that something is wrong. */
static int error_of(const struct stream *stream)
{
    int error = 0;
    socklen_t size = sizeof error;
    (void)getsockopt(stream->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    return error ? -error : UV_ECONNRESET;
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct stream *stream = poll->data;
    struct streams *streams = stream->of;
    struct conn *conn = streams->conn;
    if (conn->state == CONN_ENDED) return;
    int code = status ? error_of(stream) : 0;
    if (!code && (events & UV_READABLE)) {
        stream->stripe->dry = false;
        code = stripes_look(&streams->stripes, stream->stripe);
    }
    if (!code && (events & UV_WRITABLE)) code = stripes_flush(stream->stripe);
    if (code && !stream->stripe->open) { /* nothing was sent on it, and nothing will be */
        *place_of(stream) = NULL;
        drop(stream);
        code = 0;
    }
    bool waited = conn->waits;
    if (!code) code = pump(streams);
    if (!code) code = take(streams);
    if (code) conn_end(conn, PARLEY_CLOSED_RESET, code);
    if (waited && !conn->waits) conn_resume(conn);
    attend(streams);
}
