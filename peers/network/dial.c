/* dial.c: connecting to "host:port".
 *
 * The happy path: a numeric host is connected to at once; a name is looked up on a thread of its
 * own and its addresses are tried one after another, from any of them on, the node's own last: a
 * name of all nodes leads to another one. One that swallows packets is left for the next before the
 * core gives up, with time for its first packet to be lost once; the next dial may begin with
 * another.
 *
 * Failure modes: each ends in one CLOSED event: REFUSED if the address tried last did and none of a
 * name's was silent, else UNREACHED, with the system's words and a name's addresses.
 * Nothing here waits longer than the kernel does; the core closes what takes too long. A lookup
 * that has begun can't be interrupted, so it has memory of its own: the connection is gone before
 * it, the next dial of that name takes it over, and what the loop's end has waited a second for
 * outlives the loop: name servers that are out of reach are asked for half a minute. A few run at a
 * time, so that a name that takes long holds up no other; those that have not begun are taken back.
 * Where threads are at their limit a name can't be looked up, and is tried again as any other dial.
 *
 * Decision: libuv looks names up on threads that the whole process shares and that nobody ends. A
 * child that is forked has none of them, but would join them when it exits.
 */
#define _GNU_SOURCE /* SOCK_CLOEXEC, SOCK_NONBLOCK, EAI_NODATA */
#include "network/conn.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "network/address.h"
#include "network/tls.h"
#include "quiet.h"

enum {
    REDIALS_MAX = 2, /* retransmit.h */
    LOOKUPS_MAX = 8, /* under way at a time */
    SILENT_US = 1200000
};

enum lookup_state { LOOKUP_RUNS, LOOKUP_OVER, LOOKUP_LEFT /* the loop is gone */ };

struct lookup {
    struct lookup *next; /* in the loop's list, the newest last */
    struct loop *loop;
    struct conn *conn; /* NULL: it was given up */
    struct address address;
    uv_thread_t thread;
    bool begun;
    atomic_int state; /* LOOKUP_OVER: what the thread has found is here: */
    int code;
    struct addrinfo *found;
};

static void connect_to(struct conn *conn, const struct sockaddr *address);

/* The handle of a failed try can't be used again: its close callback makes the next one. */
static void on_retry(uv_handle_t *handle)
{
    struct conn *conn = handle->data;
    uv_tcp_init(&conn->loop->uv, &conn->tcp);
    conn->tcp.data = conn;
    conn->retrying = false;
    if (conn->close_wanted)
        conn_end(conn, PARLEY_CLOSED_LOCAL, 0);
    else
        connect_to(conn, conn->try ? conn->try->ai_addr : (struct sockaddr *)&conn->to);
}

static void try_again(struct conn *conn)
{
    conn->retrying = true;
    uv_close((uv_handle_t *)&conn->tcp, on_retry);
}

static void failed(struct conn *conn, int code)
{
    if (conn->try) conn->try = conn->try->ai_next;
    conn->silent = conn->silent || code == UV_ETIMEDOUT;
    if (conn->try) {
        try_again(conn);
        return;
    }
    if (conn->silent) code = UV_ETIMEDOUT; /* there it may live still */
    bool refused = code == UV_ECONNREFUSED;
    conn_end(conn, refused ? PARLEY_CLOSED_REFUSED : PARLEY_CLOSED_UNREACHED, code);
}

static void on_connect(uv_connect_t *request, int status)
{
    struct conn *conn = request->handle->data;
    if (conn->state != CONN_DIALLING || conn->retrying) return;
    if (status) {
        failed(conn, status);
        return;
    }
    if (conn->redials < REDIALS_MAX && retransmit_is_misled(conn_fd(conn))) {
        conn->redials++;
        try_again(conn);
        return;
    }
    conn_opened(conn);
}

/* libuv would make the socket when it connects, too late for what is to hold from the SYN on. */
static int make_socket(struct conn *conn, int family)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return uv_translate_sys_error(errno);
    retransmit_init(fd);
    int code = uv_tcp_open(&conn->tcp, fd);
    if (code) close(fd);
    return code;
}

static void connect_to(struct conn *conn, const struct sockaddr *address)
{
    int code = make_socket(conn, address->sa_family);
    if (!code) code = uv_tcp_connect(&conn->connect, &conn->tcp, address, on_connect);
    if (code) {
        failed(conn, code);
        return;
    }
    bool last = !conn->try || !conn->try->ai_next;
    conn->try_until_us = last ? UINT64_MAX : clock_now_us() + SILENT_US;
    if (conn->try_until_us < conn->loop->tries_until_us)
        conn->loop->tries_until_us = conn->try_until_us;
}

void conn_try_others(struct loop *loop, uint64_t now_us)
{
    if (now_us < loop->tries_until_us) return;
    loop->tries_until_us = UINT64_MAX;
    for (uint32_t b = 0; b < LOOP_BUCKETS; b++)
        for (struct conn *conn = loop->conns[b]; conn; conn = conn->next) {
            if (conn->state != CONN_DIALLING || conn->retrying) continue;
            if (now_us >= conn->try_until_us)
                failed(conn, UV_ETIMEDOUT);
            else if (conn->try_until_us < loop->tries_until_us)
                loop->tries_until_us = conn->try_until_us;
        }
}

/* ---- Names ----------------------------------------------------------------------------------- */

static bool is_own(const struct loop *loop, const struct sockaddr *address)
{
    char text[PARLEY_ADDRESS_SIZE];
    address_print(text, address);
    if (strcmp(text, parley_config_of(loop->parley)->address) == 0) return true;
    if (!loop->listens_any) return strcmp(text, loop->listens) == 0;
    const char *port = strrchr(text, ':');
    return port && strcmp(port, strrchr(loop->listens, ':')) == 0 && address_is_local(address);
}

/* As they are tried: the others, from any of them on, then the own. All seem to be own where the
 * system lets programs bind any address (ip_nonlocal_bind): then one is as good as another. */
static struct addrinfo *in_turn(const struct loop *loop, struct addrinfo *found)
{
    struct addrinfo *others = NULL, *own = NULL, **ends[2] = {&others, &own};
    uint64_t counts[2] = {0};
    for (struct addrinfo *a = found; a; a = a->ai_next) {
        bool ours = is_own(loop, a->ai_addr);
        *ends[ours] = a;
        ends[ours] = &a->ai_next;
        counts[ours]++;
    }
    *ends[1] = NULL;
    if (!others) {
        others = own;
        own = NULL;
        ends[0] = ends[1];
        counts[0] = counts[1];
    }
    struct addrinfo **cut = &others;
    for (uint64_t skip = uv_hrtime() % counts[0]; skip > 0; skip--)
        cut = &(*cut)->ai_next;
    struct addrinfo *first = *cut;
    *cut = own;
    *ends[0] = others;
    return first;
}

/* 0 or a libuv error, of what getaddrinfo() returns. */
static int translate(int code)
{
    switch (code) {
    case 0:
        return 0;
    case EAI_SYSTEM:
        return uv_translate_sys_error(errno);
    case EAI_AGAIN:
        return UV_EAI_AGAIN;
    case EAI_FAIL:
        return UV_EAI_FAIL;
    case EAI_MEMORY:
        return UV_EAI_MEMORY;
    case EAI_NODATA:
        return UV_EAI_NODATA;
    default:
        return UV_EAI_NONAME;
    }
}

static void run(void *argument)
{
    struct lookup *lookup = argument;
    struct loop *loop = lookup->loop;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    lookup->code =
        translate(getaddrinfo(lookup->address.host, lookup->address.port, &hints, &lookup->found));
    int state = LOOKUP_RUNS;
    if (atomic_compare_exchange_strong(&lookup->state, &state, LOOKUP_OVER)) {
        loop_wake(loop);
        return;
    }
    uv_freeaddrinfo(lookup->found);
    free(lookup);
}

/* Who wanted it is told. */
static void end(struct lookup *lookup)
{
    struct lookup **at = &lookup->loop->lookups;
    while (*at != lookup)
        at = &(*at)->next;
    *at = lookup->next;
    struct conn *conn = lookup->conn;
    struct addrinfo *found = lookup->found;
    int code = lookup->code;
    if (found && !lookup->loop->lookups) lookup->loop->lookup_slow = false;
    free(lookup);
    if (!conn) {
        uv_freeaddrinfo(found);
        return;
    }
    conn->lookup = NULL;
    conn->lookup_failed = code || !found;
    if (conn->lookup_failed) {
        failed(conn, code ? code : UV_EAI_NONAME);
        return;
    }
    conn->found = conn->try = in_turn(conn->loop, found);
    connect_to(conn, conn->try->ai_addr);
}

/* The oldest, as many as may be under way. */
static void begin(struct loop *loop)
{
    struct lookup *next;
    unsigned begun = 0;
    for (struct lookup *lookup = loop->lookups; lookup && begun < LOOKUPS_MAX; lookup = next) {
        next = lookup->next;
        int code = lookup->begun ? 0 : quiet_thread_start(&lookup->thread, run, lookup);
        if (code) {
            lookup->code = code;
            end(lookup);
            continue;
        }
        lookup->begun = true;
        begun++;
    }
}

void conn_take_lookups(struct loop *loop)
{
    struct lookup *next;
    for (struct lookup *lookup = loop->lookups; lookup; lookup = next) {
        next = lookup->next;
        if (atomic_load(&lookup->state) != LOOKUP_OVER) continue;
        uv_thread_join(&lookup->thread);
        end(lookup);
    }
    begin(loop);
}

void conn_join_lookups(struct loop *loop, uint64_t until_us)
{
    while (loop->lookups) {
        struct lookup *lookup = loop->lookups;
        uv_thread_t thread = lookup->thread;
        int state = LOOKUP_RUNS;
        bool joined = loop_join(thread, until_us);
        loop->lookups = lookup->next;
        if (!joined && atomic_compare_exchange_strong(&lookup->state, &state, LOOKUP_LEFT)) {
            pthread_detach(thread);
            continue;
        }
        if (!joined) uv_thread_join(&thread); /* it has just found something */
        uv_freeaddrinfo(lookup->found);
        free(lookup);
    }
}

static bool is_free(const struct lookup *lookup, const struct address *address)
{
    return !lookup->conn && strcmp(lookup->address.host, address->host) == 0 &&
           strcmp(lookup->address.port, address->port) == 0;
}

static void look_up(struct conn *conn, const struct address *address)
{
    struct lookup **at = &conn->loop->lookups;
    while (*at && !is_free(*at, address))
        at = &(*at)->next;
    if (!*at) {
        if (!(*at = calloc(1, sizeof **at))) {
            failed(conn, UV_ENOMEM);
            return;
        }
        (*at)->loop = conn->loop;
        (*at)->address = *address;
    } /* else its thread may be reading these */
    (*at)->conn = conn;
    conn->lookup = *at;
    begin(conn->loop);
}

/* The core takes it for a peer that does not answer. Once, until one is found and no other is under
 * way. */
static void tell_slow(const struct lookup *lookup)
{
    struct loop *loop = lookup->loop;
    if (loop->finished || loop->closing || loop->lookup_slow) return;
    loop->lookup_slow = true;
    loop_log(loop, PARLEY_LOG_WARN,
             "the name %s is still being looked up: do the name servers of this machine answer?",
             lookup->address.host);
}

void conn_give_lookup_up(struct conn *conn)
{
    struct lookup *lookup = conn->lookup;
    if (!lookup) return;
    conn->lookup = NULL;
    lookup->conn = NULL;
    if (lookup->begun)
        tell_slow(lookup);
    else
        end(lookup);
}

/* ---- Dials ----------------------------------------------------------------------------------- */

/* What a key, or the lack of TLS, has to do with it; NULL: nothing. */
static const char *why_unproved(const struct conn *conn)
{
    if (conn->foreign) return "answers in another protocol; is it a parley node?";
    bool spoken = conn->reason == PARLEY_CLOSED_KEY;
    bool ended = conn->reason == PARLEY_CLOSED_EOF && conn->tls && !conn->proved;
    return spoken || ended ? tls_unproved(conn->tls, spoken) : NULL;
}

/* Of a name, which addresses those were: the system's words alone don't tell. */
void conn_why_closed(const struct conn *conn, char *text, size_t size)
{
    const char *unproved = why_unproved(conn);
    if (unproved) {
        snprintf(text, size, "%s", unproved);
        return;
    }
    bool failed = conn->reason == PARLEY_CLOSED_REFUSED || conn->reason == PARLEY_CLOSED_UNREACHED;
    size_t at = (size_t)snprintf(
        text, size, "%s%s", conn->lookup_failed ? "the name can't be looked up: " : "",
        conn->code ? address_error(conn->code, (const struct sockaddr *)&conn->to) : "");
    if (!failed) return;
    for (const struct addrinfo *a = conn->found; a && at < size; a = a->ai_next) {
        char address[PARLEY_ADDRESS_SIZE];
        address_print(address, a->ai_addr);
        at += (size_t)snprintf(text + at, size - at, a == conn->found ? " at %s" : ", %s", address);
    }
}

void conn_dial(struct loop *loop, uint32_t id, const char *text)
{
    struct address address;
    struct conn *conn = conn_new(loop, id);
    if (!conn) {
        struct parley_event event = {
            .type = PARLEY_EVENT_CLOSED,
            .closed = {id, PARLEY_CLOSED_UNREACHED, uv_strerror(UV_ENOMEM)}};
        loop_tell_later(loop, &event);
        return;
    }
    conn->tell_closed = true;
    if (address_split(&address, text)) {
        failed(conn, UV_EINVAL);
    } else if (address_numeric(&conn->to, &address)) {
        /* A zone means something on its own machine only: peers tell addresses without one. */
        address_on_link((struct sockaddr *)&conn->to, loop->zone);
        connect_to(conn, (struct sockaddr *)&conn->to);
    } else {
        look_up(conn, &address);
    }
}
