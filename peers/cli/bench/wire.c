/* wire.c: an exchange of two real nodes beside one with nothing but sockets.
 *
 * Two processes on the loopback, each with a node and its threads: protocol, ledger, checksums,
 * finite checks, all as in a run. Only one of them starts exchanges, one after the other; local
 * steps are short waits (far shorter than a pass over the floats, and 50 us at least), so that a
 * boundary is always near. A figure is the time from one exchange to the next. The limit is the
 * plain exchange and average of the same size (plain.c), in calls of the size that did best,
 * made by the same two processes while the nodes pause. Rows of the lane are of nodes that exchange
 * through shared memory, those of TCP of nodes that may not.
 */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "cli/bench/bench.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/bench/plain.h"
#include "parley/parley.h"

enum { STEP_NS_MIN = 50000, FLOATS_PER_NS = 10, LIMIT_S = 60, WARM_UP = 2, ROUNDS = 5 };
enum { FLOATS_QUICK = 100000, FLOATS_REPEATED = 100000000 };
enum { REPEATS_MIN = 2, REPEATS_MAX = 150, REPEATS_QUICK = 5 };

/* Seen by both processes. */
struct shared {
    char listens[PARLEY_ADDRESS_SIZE]; /* where the child's node listens, once `ready` */
    atomic_int ready;                  /* 1, or PARLEY_E... */
    atomic_bool nodes;                 /* the nodes have their turn */
    atomic_bool over;
};

struct wire {
    struct bench *bench;
    struct shared *shared;
    struct plain plain;
    struct parley *node;
    float *x;
    size_t count;
    bool lane;
    uint32_t call_bytes;
    pid_t served, noded; /* children: of the plain exchange, with the other node */
};

static void doze(const struct wire *wire)
{
    long ns = (long)(wire->count / FLOATS_PER_NS);
    nanosleep(&(struct timespec){.tv_nsec = ns > STEP_NS_MIN ? ns : STEP_NS_MIN}, NULL);
}

static int open_node(struct wire *wire, const char *name, const char *seed)
{
    struct parley_options options;
    parley_options_defaults(&options);
    options.config.name = name;
    options.config.parameters = wire->count;
    options.config.min_peers = 1;
    options.config.mix_every = seed ? 1 : UINT32_MAX;
    options.config.seeds = &seed;
    options.config.seeds_count = seed ? 1 : 0;
    options.config.log_level = PARLEY_LOG_ERROR;
    options.vectors[0] = wire->x;
    options.no_lane = !wire->lane;
    return parley_open(&wire->node, &options, wire->bench->why, BENCH_WHY_BYTES);
}

/* One local step that changes nothing. Nodes whose turn is over rest in theirs. */
static bool step(struct wire *wire)
{
    const struct parley_step made = {.steps = 1, .samples = 1};
    struct parley_turn turn;
    if (parley_boundary(wire->node, &made, &turn) != PARLEY_GO) return false;
    doze(wire);
    return true;
}

/* ---- The other processes --------------------------------------------------------------------- */

static void be_node(struct wire *wire)
{
    struct shared *shared = wire->shared;
    prctl(PR_SET_TIMERSLACK, 1);
    plain_close(&wire->plain);
    int error = open_node(wire, "b", NULL);
    if (!error) snprintf(shared->listens, sizeof shared->listens, "%s", parley_listens(wire->node));
    atomic_store(&shared->ready, error ? error : 1);
    while (!error && !atomic_load(&shared->over) && step(wire))
        while (!atomic_load(&shared->nodes) && !atomic_load(&shared->over))
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    parley_close(wire->node);
    _exit(0);
}

static pid_t start(struct wire *wire, bool node)
{
    pid_t parent = getpid(), child = fork();
    if (child != 0) return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    if (node) be_node(wire);
    plain_serve(&wire->plain);
    _exit(0);
}

/* ---- Measuring ------------------------------------------------------------------------------- */

static int say(struct wire *wire, const char *what)
{
    snprintf(wire->bench->why, BENCH_WHY_BYTES, "bench wire: %s", what);
    return PARLEY_EFAIL;
}

/* Milliseconds of `count` exchanges. */
static int time_plain(struct wire *wire, double *ms, size_t count)
{
    for (size_t i = 0; i < count + WARM_UP; i++) {
        double from = bench_now();
        if (!plain_exchange(&wire->plain, wire->call_bytes))
            return say(wire, "the process with the plain exchange is gone");
        if (i >= WARM_UP) ms[i - WARM_UP] = (bench_now() - from) * 1e3;
    }
    return 0;
}

/* By the model's bytes that this node sent. Control frames are some hundred bytes an exchange. */
static int time_nodes(struct wire *wire, double *ms, size_t count)
{
    double last = 0, until = bench_now() + LIMIT_S;
    uint64_t bytes = wire->count * sizeof(float), before = 0;
    atomic_store(&wire->shared->nodes, true);
    for (size_t seen = 0; seen < count + WARM_UP;) {
        struct parley_stats stats;
        if (!step(wire)) return say(wire, "a node has ended early");
        if (bench_now() > until) return say(wire, "the nodes make no exchanges");
        parley_stats(wire->node, &stats);
        if (before == 0) before = stats.bytes_sent;
        if (stats.bytes_sent - before < (seen + 1) * bytes) continue;
        double now = bench_now();
        if (seen >= WARM_UP) ms[seen - WARM_UP] = (now - last) * 1e3;
        last = now;
        seen++;
    }
    atomic_store(&wire->shared->nodes, false);
    return 0;
}

static int choose_calls(struct wire *wire, size_t count)
{
    static const uint32_t sizes[] = {16 << 10, 64 << 10, 256 << 10, 1 << 20};
    double ms[FIGURE_REPEATS_MAX], best = 0;
    uint32_t chosen = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct figure figure;
        wire->call_bytes = sizes[i];
        int error = time_plain(wire, ms, count);
        if (error) return error;
        figure_of(&figure, "", "", FIGURE_LESS_IS_BETTER, ms, NULL, count);
        if (i > 0 && figure.value >= best) continue;
        best = figure.value;
        chosen = sizes[i];
    }
    wire->call_bytes = chosen;
    return 0;
}

static int measure(struct wire *wire, const char *name, size_t count)
{
    double values[FIGURE_REPEATS_MAX], limits[FIGURE_REPEATS_MAX];
    size_t rounds = wire->bench->quick ? 1 : ROUNDS;
    bench_round(name, 0, rounds);
    int error = choose_calls(wire, count);
    for (size_t r = 0; !error && r < rounds; r++) {
        bench_round(name, r, rounds);
        error = time_nodes(wire, values + r * count, count);
        if (!error) error = time_plain(wire, limits + r * count, count);
    }
    if (!error)
        bench_row(wire->bench, name, "ms", FIGURE_LESS_IS_BETTER, values, limits, rounds * count);
    return error;
}

static int join(struct wire *wire)
{
    double until = bench_now() + LIMIT_S;
    int state;
    while ((state = atomic_load(&wire->shared->ready)) == 0) {
        if (bench_now() > until || waitpid(wire->noded, NULL, WNOHANG) != 0)
            return say(wire, "the second node did not start");
        doze(wire);
    }
    if (state < 0) return say(wire, "the second node could not start");
    return open_node(wire, "a", wire->shared->listens);
}

static int run(struct bench *bench, const char *name, bool lane, size_t count, size_t repeats)
{
    struct wire wire = {.bench = bench, .lane = lane, .count = count, .served = -1, .noded = -1};
    int code = plain_open(&wire.plain, count), error = code ? PARLEY_EFAIL : 0;
    if (code) snprintf(bench->why, BENCH_WHY_BYTES, "bench wire: %s", strerror(code));
    wire.x = calloc(count, sizeof *wire.x);
    wire.shared =
        mmap(NULL, sizeof *wire.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!wire.x || wire.shared == MAP_FAILED) error = PARLEY_ENOMEM;
    if (!error) wire.served = start(&wire, false);
    if (!error) wire.noded = start(&wire, true);
    if (!error && (wire.served < 0 || wire.noded < 0)) error = say(&wire, strerror(errno));
    if (!error) error = join(&wire);
    if (!error) error = measure(&wire, name, repeats);
    if (wire.shared != MAP_FAILED) atomic_store(&wire.shared->over, true);
    parley_close(wire.node);
    plain_close(&wire.plain);
    if (wire.served > 0) waitpid(wire.served, NULL, 0);
    if (error && wire.noded > 0) kill(wire.noded, SIGKILL); /* it may wait for this one for ever */
    if (wire.noded > 0) waitpid(wire.noded, NULL, 0);
    if (wire.shared != MAP_FAILED) munmap(wire.shared, sizeof *wire.shared);
    free(wire.x);
    return error;
}

/* As many as pass in the same time, whatever the size. */
static size_t repeats_of(const struct bench *bench, size_t count)
{
    size_t repeats = FLOATS_REPEATED / count;
    if (bench->quick) return REPEATS_QUICK;
    return repeats < REPEATS_MIN ? REPEATS_MIN : repeats > REPEATS_MAX ? REPEATS_MAX : repeats;
}

/* "wire/tcp/1e6", "wire/tcp/235146" */
static int run_row(struct bench *bench, bool lane, size_t count)
{
    char name[32];
    const char *way = lane ? "lane" : "tcp";
    unsigned zeroes = 0;
    size_t rest = count;
    for (; rest % 10 == 0; rest /= 10)
        zeroes++;
    if (rest == 1)
        snprintf(name, sizeof name, "wire/%s/1e%u", way, zeroes);
    else
        snprintf(name, sizeof name, "wire/%s/%zu", way, count);
    return run(bench, name, lane, count, repeats_of(bench, count));
}

int bench_wire(struct bench *bench)
{
    static const struct row {
        bool lane;
        size_t count;
    } rows[] = {{false, 235146}, {false, 1000000}, {false, 10000000}, {false, 100000000},
                {true, 235146},  {true, 1000000},  {true, 10000000}};
    size_t one = bench->floats > 0 ? bench->floats : bench->quick ? FLOATS_QUICK : 0;
    prctl(PR_SET_TIMERSLACK, 1);
    if (one > 0) {
        int error = run_row(bench, false, one);
        return error ? error : run_row(bench, true, one);
    }
    int error = 0;
    for (size_t i = 0; !error && i < sizeof rows / sizeof *rows; i++)
        error = run_row(bench, rows[i].lane, rows[i].count);
    return error;
}
