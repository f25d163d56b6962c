/* pair.h: two nodes with a model each, for tests of what carries floats between them.
 *
 * In one process: pair_node() sets a node up, the test alters its options, pair_open() starts it;
 * pair_agree() trains both to their end. Or one of them in a process of its own, to be killed:
 * pair_fork() and pair_kill(). Plain main()s use it, under ThreadSanitizer too.
 */
#ifndef PARLEY_TESTS_PAIR_H
#define PARLEY_TESTS_PAIR_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <uv.h>

#include "check.h"
#include "parley/parley.h"

enum { FLOATS = 300000, STEPS = 40 }; /* a model is several chunks */

struct node {
    struct parley_options options;
    struct parley *p;
    const char *seed; /* NULL: the node that is joined */
    float x[FLOATS];
    void (*each_step)(void); /* or NULL */
    uint64_t averaged_max;   /* after so many deltas the peer is killed; 0: never */
    pid_t peer;
    struct parley_result result;
    uv_thread_t thread;
};

static struct node nodes[2];

/* A death makes who sees it end the run. */
static void stop_at_death(void *context, struct parley *p, const struct parley_update *update)
{
    (void)context;
    if (update->type == PARLEY_UPDATE_MEMBER && update->member.state == PARLEY_MEMBER_DEAD)
        parley_stop(p, PARLEY_STOP_OPERATOR);
}

static struct node *pair_node(int i, const char *seed, uint64_t budget)
{
    static const char *const names[] = {"a", "b"};
    struct node *node = &nodes[i];
    memset(node, 0, sizeof *node);
    for (int j = 0; j < FLOATS; j++)
        node->x[j] = (float)(i + j % 7);
    node->seed = seed;
    parley_options_defaults(&node->options);
    node->options.config.name = names[i];
    node->options.config.parameters = FLOATS;
    node->options.config.min_peers = 1;
    node->options.config.mix_every = 1;
    node->options.config.steps_budget = budget;
    node->options.config.seeds = &node->seed;
    node->options.config.seeds_count = seed ? 1 : 0;
    node->options.vectors[0] = node->x;
    node->options.on_update = stop_at_death;
    return node;
}

/* A key of that digit in a file, whose name ends with XXXXXX. */
static inline void pair_key(char *path, char digit)
{
    char text[65];
    int fd = mkstemp(path);
    memset(text, digit, 64);
    text[64] = '\n';
    if (fd < 0 || write(fd, text, sizeof text) != (ssize_t)sizeof text) exit(1);
    close(fd);
}

static void pair_open(struct node *node)
{
    char why[256];
    if (!parley_open(&node->p, &node->options, why, sizeof why)) return;
    fprintf(stderr, "%s\n", why);
    exit(1);
}

static void train(void *argument)
{
    struct node *node = argument;
    struct parley_turn turn;
    struct parley_step step = {0};
    while (parley_boundary(node->p, &step, &turn) == PARLEY_GO) {
        step = (struct parley_step){.steps = 1, .samples = 1};
        if (node->each_step) node->each_step();
        if (node->averaged_max == 0 || turn.averaged < node->averaged_max) continue;
        kill(node->peer, SIGKILL);
        node->averaged_max = 0;
    }
    parley_result(node->p, &node->result);
}

static void pair_start(void)
{
    for (int i = 0; i < 2; i++)
        uv_thread_create(&nodes[i].thread, train, &nodes[i]);
}

static void pair_join(void)
{
    for (int i = 0; i < 2; i++)
        uv_thread_join(&nodes[i].thread);
}

static void pair_end(void)
{
    pair_join();
    for (int i = 0; i < 2; i++)
        parley_close(nodes[i].p);
}

/* Both of this process, which train, to their agreement. */
static void pair_agreed(void)
{
    pair_end();
    check(nodes[0].result.agreed && nodes[1].result.agreed, "both end in agreement");
    check(memcmp(nodes[0].x, nodes[1].x, sizeof nodes[0].x) == 0, "on one model");
    check(nodes[0].result.view.ledger.applied > 0, "they have averaged");
}

static inline void pair_agree(void)
{
    pair_start();
    pair_agreed();
}

/* ---- A peer to be killed --------------------------------------------------------------------- */

struct peer {
    pid_t pid;
    int in; /* it tells where it listens */
};

/* To be forked before there is any thread: `open` opens its node; then it trains until it is
 * killed. */
static inline struct peer pair_fork(struct node *(*open)(void), uid_t user)
{
    int ends[2];
    if (pipe(ends)) exit(1);
    pid_t parent = getpid(), child = fork();
    if (child < 0) exit(1);
    if (child > 0) return (struct peer){child, ends[0]};
    if (setuid(user)) _exit(1);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    struct node *node = open();
    char address[PARLEY_ADDRESS_SIZE] = {0};
    snprintf(address, sizeof address, "%s", parley_listens(node->p));
    if (write(ends[1], address, sizeof address) != (ssize_t)sizeof address) _exit(1);
    train(node);
    _exit(0);
}

static inline void pair_address(struct peer peer, char address[static PARLEY_ADDRESS_SIZE])
{
    if (read(peer.in, address, PARLEY_ADDRESS_SIZE) != PARLEY_ADDRESS_SIZE) exit(1);
}

/* The node is open and has joined it. */
static inline void pair_kill(struct node *node, struct peer peer)
{
    int status;
    node->peer = peer.pid;
    node->averaged_max = 5;
    train(node);
    parley_close(node->p);
    waitpid(peer.pid, &status, 0);
    check(WIFSIGNALED(status), "the peer was killed");
    check(node->result.agreed, "who is left ends by itself");
    check(node->result.view.ledger.applied >= 5, "the two had averaged");
}

#endif
