/* names.c: seeds by name, some of which take long to be looked up (peers/network/dial.c).
 *
 *   - a dial that is given up before its name was looked up leaves no connection behind
 *   - so others find room, by name too, and the two agree
 *   - what had not begun by then is never looked up, and closing waits for no more than what had
 *   - a name that takes longer than a dial is looked up once at a time, and found in the end
 *   - of a name's addresses that swallow what is sent to them, others are tried in the same dial
 *   - where one refuses and another is silent it is not said that both refuse
 *   - that one takes so long is told once, not with each dial
 *   - one that nobody has is told, with the system's words, and one that nobody can say of now; no
 *     other that takes long holds that up
 *   - nothing is left behind: no thread is let go, and a child that is forked then can exit
 *   - but one whose name is not found at all holds no end up, and touches nothing of a closed node
 *
 * The resolver is this test's: names of .slow, .late and .stuck it answers once the test lets it.
 * Plain main(), so that it runs under ThreadSanitizer.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <netdb.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "let_go.h"
#include "pair.h"

/* The core has places for all seeds and a few others, but not for two rounds of dials. */
enum { NAMES = 16, ROUNDS = 3, LINKS = NAMES + 4, NEWCOMERS = 4, WAIT_S = 20 };
enum { WIDE_NAMES = 4, SILENT = 3, FILLERS = 3 };
#define NS UINT64_C(1000000000)

enum kind { SLOW, LATE, STUCK, NONE, BUSY, WIDE, HALF, KINDS };
static const char *const kinds[KINDS] = {".slow", ".late", ".stuck", ".none",
                                         ".busy", ".wide", ".half"};

/* Neither is destroyed: who was let go may be at it still. */
static uv_cond_t changed;
static uv_mutex_t lock; /* guards the next three, two of names of each kind */
static bool answers[KINDS];
static unsigned given_up[KINDS], slow; /* lines that tell of it */
static atomic_uint begun[KINDS];

static enum kind kind_of(const char *text)
{
    enum kind kind = 0;
    while (kind < KINDS && !strstr(text, kinds[kind]))
        kind++;
    return kind;
}

typedef int resolve(const char *, const char *, const struct addrinfo *, struct addrinfo **);

/* 127.0.0.1, which answers or refuses, and so many behind it, which do neither. */
static int find_wide(resolve *real, int silent, const char *port, const struct addrinfo *hints,
                     struct addrinfo **found)
{
    for (int i = 0; i <= silent; i++) {
        char host[24];
        snprintf(host, sizeof host, "127.0.0.%d", 1 + i);
        int code = real(host, port, hints, found);
        if (code) return code;
        found = &(*found)->ai_next;
    }
    return 0;
}

/* Takes the place of the system's. */
int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
                struct addrinfo **found)
{
    resolve *real;
    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    enum kind kind = kind_of(host);
    if (kind == KINDS) return real(host, port, hints, found);
    atomic_fetch_add(&begun[kind], 1);
    if (kind == NONE) return EAI_NONAME;
    if (kind == BUSY) return EAI_AGAIN;
    if (kind == WIDE) return find_wide(real, SILENT, port, hints, found);
    if (kind == HALF) return find_wide(real, 1, port, hints, found);
    uv_mutex_lock(&lock);
    while (!answers[kind])
        uv_cond_wait(&changed, &lock);
    uv_mutex_unlock(&lock);
    return kind == LATE ? real("localhost", port, hints, found) : EAI_AGAIN;
}

static void answer(enum kind kind)
{
    uv_mutex_lock(&lock);
    answers[kind] = true;
    uv_cond_broadcast(&changed);
    uv_mutex_unlock(&lock);
}

static void on_update(void *context, struct parley *p, const struct parley_update *update)
{
    (void)context;
    (void)p;
    if (update->type != PARLEY_UPDATE_LOG) return;
    enum kind kind = kind_of(update->log.text);
    const char *why = kind == NONE   ? "the name can't be looked up: unknown node or service"
                      : kind == BUSY ? "the name can't be looked up: temporary failure"
                      : kind == HALF ? "connection timed out at 127.0.0."
                                     : "no answer";
    bool tells_slow = strstr(update->log.text, "is still being looked up");
    check(kind != HALF || !strstr(update->log.text, "refused"), "not both have refused");
    if (kind == KINDS || (!tells_slow && !strstr(update->log.text, why))) return;
    uv_mutex_lock(&lock);
    *(tells_slow ? &slow : &given_up[kind]) += 1;
    uv_cond_broadcast(&changed);
    uv_mutex_unlock(&lock);
}

static struct node *prepare(int i, const char *const *seeds, uint32_t count)
{
    struct node *node = pair_node(i, NULL, STEPS);
    struct parley_config *config = &node->options.config;
    node->options.on_update = on_update;
    config->seeds = seeds;
    config->seeds_count = count;
    config->log_level = PARLEY_LOG_DEBUG; /* each dial is told, not the first of each seed alone */
    config->hello_timeout_us = 200000;
    config->redial_min_us = config->redial_max_us = 100000;
    return node;
}

/* Each seed is dialled, given up, and dialled again. */
static void start_lost(void)
{
    static char names[NAMES][32];
    static const char *seeds[NAMES];
    for (int i = 0; i < NAMES; i++) {
        snprintf(names[i], sizeof names[i], "n%d.slow:7000", i);
        seeds[i] = names[i];
    }
    struct parley_config *config = &prepare(0, seeds, NAMES)->options.config;
    config->connections_max = LINKS;
    config->pending_max = NEWCOMERS;
    pair_open(&nodes[0]);
}

static void start_second(void)
{
    static char late[32];
    static const char *const seeds[] = {late, "host.none:7000", "host.busy:7000"};
    snprintf(late, sizeof late, "host.late%s", strrchr(parley_listens(nodes[0].p), ':'));
    pair_open(prepare(1, seeds, 3));
}

static bool are_given_up(enum kind kind, unsigned wanted)
{
    uint64_t until_ns = uv_hrtime() + WAIT_S * NS, now_ns;
    uv_mutex_lock(&lock);
    while (given_up[kind] < wanted && (now_ns = uv_hrtime()) < until_ns)
        uv_cond_timedwait(&changed, &lock, until_ns - now_ns);
    bool enough = given_up[kind] >= wanted;
    uv_mutex_unlock(&lock);
    return enough;
}

static unsigned count_of(const unsigned *of)
{
    uv_mutex_lock(&lock);
    unsigned count = *of;
    uv_mutex_unlock(&lock);
    return count;
}

static void close_node(void *node)
{
    parley_close(((struct node *)node)->p);
}

/* libuv ends with the child, too. */
static void fork_and_exit(void)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        alarm(WAIT_S);
        exit(0);
    }
    check(waitpid(child, &status, 0) == child && status == 0, "a child can exit");
}

/* One is counted until it has left all locks, a sanitizer's too. */
static unsigned threads_count(void)
{
    unsigned count = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (const struct dirent *task; (task = readdir(tasks));)
        count += task->d_name[0] != '.';
    closedir(tasks);
    return count;
}

/* Its servers say nothing, for as long as the test likes. */
static void close_without_an_answer(void)
{
    static const char *const seeds[] = {"host.stuck:7000"};
    unsigned before = threads_count();
    pair_open(prepare(0, seeds, 1));
    check(are_given_up(STUCK, 1), "a dial gives up what is being looked up");
    alarm(WAIT_S);
    parley_close(nodes[0].p);
    alarm(0);
    check(atomic_load(&let_go) == 1, "who looks it up is let go");
    answer(STUCK);
    /* A child that was forked meanwhile would find locks held by a thread that it does not have. */
    uint64_t until_ns = uv_hrtime() + WAIT_S * NS;
    while (threads_count() > before && uv_hrtime() < until_ns)
        sched_yield();
    check(threads_count() == before, "it ends by itself once there is an answer");
}

/* Its port, in *port, is any free one if that is 0. */
static int listen_at(int last, int backlog, in_port_t *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = *port};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + (in_addr_t)last);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) || listen(fd, backlog) ||
        getsockname(fd, (struct sockaddr *)&at, &size))
        exit(1);
    *port = at.sin_port;
    return fd;
}

/* The kernel drops the packets of who dials a listener whose queue is full. */
static void fill(int listener, int fillers[FILLERS])
{
    struct sockaddr_in at;
    socklen_t size = sizeof at;
    getsockname(listener, (struct sockaddr *)&at, &size);
    for (int i = 0; i < FILLERS; i++) {
        fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(fillers[i], (struct sockaddr *)&at, sizeof at);
    }
}

static struct parley_config *prepare_names(const char *kind, in_port_t port)
{
    static char names[WIDE_NAMES][32];
    static const char *seeds[WIDE_NAMES];
    for (int i = 0; i < WIDE_NAMES; i++) {
        snprintf(names[i], sizeof names[i], "n%d%s:%u", i, kind, (unsigned)ntohs(port));
        seeds[i] = names[i];
    }
    return &prepare(0, seeds, WIDE_NAMES)->options.config;
}

/* Dials begin with either of the two; those that end with the one that refuses say what they know.
 */
static void tell_of_who_is_silent(in_port_t port)
{
    prepare_names(kinds[HALF], port)->hello_timeout_us = 2000000;
    pair_open(&nodes[0]);
    check(are_given_up(HALF, 1), "it is told that one is silent");
    parley_close(nodes[0].p);
}

/* Each of the names is dialled once, and comes to the only address that answers. */
static void come_to_who_answers(void)
{
    in_port_t port = 0;
    int listener = listen_at(1, WIDE_NAMES, &port), silent[SILENT], fillers[SILENT][FILLERS];
    int came[WIDE_NAMES];
    for (int i = 0; i < SILENT; i++) {
        silent[i] = listen_at(2 + i, 0, &port);
        fill(silent[i], fillers[i]);
    }
    prepare_names(kinds[WIDE], port)->hello_timeout_us = WAIT_S * 1000000;
    pair_open(&nodes[0]);
    struct pollfd next = {.fd = listener, .events = POLLIN};
    uint64_t until_ns = uv_hrtime() + WAIT_S / 2 * NS;
    for (int i = 0; i < WIDE_NAMES; i++) {
        uint64_t now_ns = uv_hrtime(), left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
        check(poll(&next, 1, (int)(left_ns / 1000000)) == 1,
              "a dial goes on to an address that answers");
        came[i] = next.revents ? accept(listener, NULL, NULL) : -1;
    }
    parley_close(nodes[0].p);
    for (int i = 0; i < WIDE_NAMES; i++)
        close(came[i]);
    close(listener);
    tell_of_who_is_silent(port);
    for (int i = 0; i < SILENT; i++) {
        close(silent[i]);
        for (int j = 0; j < FILLERS; j++)
            close(fillers[i][j]);
    }
}

int main(void)
{
    uv_mutex_init(&lock);
    uv_cond_init(&changed);
    start_lost();
    /* So many dials that all places would be taken, if each had kept its own. */
    bool room = are_given_up(SLOW, ROUNDS * NAMES);
    check(room, "who is given up leaves no connection behind");
    check(count_of(&slow) == 1, "that a name takes long is told once");
    if (!room) answer(SLOW); /* else nobody would find room */
    start_second();
    check(are_given_up(NONE, 1), "nobody has that name, and it is told beside one that takes long");
    check(are_given_up(BUSY, 1), "so is that nobody can say now who has one");
    check(are_given_up(LATE, ROUNDS), "a dial does not wait for ever");
    check(atomic_load(&begun[LATE]) == 1, "a name is looked up once at a time");
    answer(LATE);
    pair_start();
    pair_join();
    check(nodes[0].result.agreed && nodes[1].result.agreed, "another one finds room");
    unsigned before = atomic_load(&begun[SLOW]);
    check(before < NAMES, "a few are looked up at a time");
    for (int i = 0; i < 2; i++)
        uv_thread_create(&nodes[i].thread, close_node, &nodes[i]);
    answer(SLOW);
    pair_join();
    check(atomic_load(&begun[SLOW]) == before, "what had not begun was taken back");
    check(atomic_load(&let_go) == 0, "each thread is joined");
    come_to_who_answers();
    close_without_an_answer();
    fork_and_exit();
    return failures ? 1 : 0;
}
