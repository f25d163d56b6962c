/* dial.c: connecting to "host:port".
 *
 * The happy path: a numeric host is connected to at once; a name is looked up on libuv's own
 * threads (nothing else runs there) and its addresses are tried one after another, from any of them
 * on: where one swallows packets the core gives up, and the next dial may begin with another.
 *
 * Failure modes: each ends in one CLOSED event: REFUSED if somebody's machine said so, else
 * UNREACHED, with the system's words and a name's addresses. Nothing here waits longer than the
 * kernel does; the core closes what takes too long. A lookup that has begun can't be interrupted,
 * so it has memory of its own: the connection is gone before it, and only the loop's end waits for
 * it. libuv runs few at a time; those that have not begun are taken back. Where threads are at
 * their limit a name can't be looked up, and is tried again as any other dial.
 */
#define _GNU_SOURCE /* SOCK_CLOEXEC, SOCK_NONBLOCK */
#include "conn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "address.h"

enum {
    REDIALS_MAX = 2,  /* retransmit.h */
    POOL_DEFAULT = 4, /* libuv's threads, ... */
    POOL_MAX = 1024   /* ... and whatever UV_THREADPOOL_SIZE says */
};

struct lookup {
    uv_getaddrinfo_t request;
    struct conn *conn; /* NULL: it was given up */
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
    if (conn->state != CONN_DIALLING) return;
    if (conn->try) conn->try = conn->try->ai_next ? conn->try->ai_next : conn->found;
    if (conn->try != conn->first) {
        try_again(conn);
        return;
    }
    bool refused = code == UV_ECONNREFUSED;
    conn_end(conn, refused ? PARLEY_CLOSED_REFUSED : PARLEY_CLOSED_UNREACHED, code);
}

static void on_connect(uv_connect_t *request, int status)
{
    struct conn *conn = request->handle->data;
    if (conn->state != CONN_DIALLING) return;
    if (status) {
        failed(conn, status);
        return;
    }
    uv_os_fd_t fd;
    if (conn->redials < REDIALS_MAX && uv_fileno((uv_handle_t *)&conn->tcp, &fd) == 0 &&
        retransmit_is_misled(fd)) {
        conn->redials++;
        try_again(conn);
        return;
    }
    conn_opened(conn);
    if (conn->state != CONN_OPEN) return;
    struct parley_event event = {.type = PARLEY_EVENT_CONNECTED, .connected = {conn->id}};
    loop_tell(conn->loop, &event);
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
    if (code) failed(conn, code);
}

static struct addrinfo *any_of(struct addrinfo *found)
{
    uint64_t count = 0;
    for (struct addrinfo *a = found; a; a = a->ai_next)
        count++;
    for (uint64_t skip = uv_hrtime() % count; skip > 0; skip--)
        found = found->ai_next;
    return found;
}

static void on_lookup(uv_getaddrinfo_t *request, int status, struct addrinfo *found)
{
    struct lookup *lookup = (struct lookup *)request;
    struct conn *conn = lookup->conn;
    free(lookup);
    if (!conn) {
        uv_freeaddrinfo(found);
        return;
    }
    conn->lookup = NULL;
    conn->found = found;
    if (status || !found) {
        failed(conn, status ? status : UV_EAI_NONAME);
        return;
    }
    conn->first = conn->try = any_of(found);
    connect_to(conn, conn->try->ai_addr);
}

static void wait_for(void *end)
{
    uv_sem_wait(end);
}

/* As many threads at once, with such stacks, as libuv wants. 0 or a libuv error. */
static int try_threads(unsigned wanted)
{
    const uv_thread_options_t options = {UV_THREAD_HAS_STACK_SIZE, 8 << 20};
    uv_thread_t threads[POOL_MAX + 1];
    uv_sem_t end;
    unsigned count = 0;
    int code = uv_sem_init(&end, 0);
    if (code) return code;
    while (count < wanted && !code) {
        code = uv_thread_create_ex(&threads[count], &options, wait_for, &end);
        if (!code) count++;
    }
    for (unsigned i = 0; i < count; i++)
        uv_sem_post(&end);
    for (unsigned i = 0; i < count; i++)
        uv_thread_join(&threads[i]);
    uv_sem_destroy(&end);
    return code;
}

/* With the first lookup of a process libuv starts its threads, and aborts where it can't. So they
 * are tried before; who takes them in between is bad luck. */
static int check_pool(void)
{
    static atomic_bool there;
    const char *wish = getenv("UV_THREADPOOL_SIZE");
    unsigned wanted = wish ? (unsigned)atoi(wish) : POOL_DEFAULT;
    if (atomic_load(&there)) return 0;
    /* One more, as the system may still count the last that has ended. */
    int code = try_threads((wanted < POOL_MAX ? wanted : POOL_MAX) + 1);
    if (!code) atomic_store(&there, true);
    return code;
}

static void look_up(struct conn *conn, const struct address *address)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct lookup *lookup = malloc(sizeof *lookup);
    int code = lookup ? check_pool() : UV_ENOMEM;
    if (!code)
        code = uv_getaddrinfo(&conn->loop->uv, &lookup->request, on_lookup, address->host,
                              address->port, &hints);
    if (code) {
        free(lookup);
        failed(conn, code);
        return;
    }
    lookup->conn = conn;
    conn->lookup = lookup;
}

void conn_give_lookup_up(struct conn *conn)
{
    if (!conn->lookup) return;
    conn->lookup->conn = NULL;
    (void)uv_cancel((uv_req_t *)&conn->lookup->request); /* fails if it has begun */
    conn->lookup = NULL;
}

/* Of a name, which addresses those were: the system's words alone don't tell. */
void conn_why_closed(const struct conn *conn, char *text, size_t size)
{
    bool failed = conn->reason == PARLEY_CLOSED_REFUSED || conn->reason == PARLEY_CLOSED_UNREACHED;
    size_t at = (size_t)snprintf(text, size, "%s", conn->code ? uv_strerror(conn->code) : "");
    if (!failed || !conn->first) return;
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
        connect_to(conn, (struct sockaddr *)&conn->to);
    } else {
        look_up(conn, &address);
    }
}
