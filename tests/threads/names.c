/* names.c: seeds whose names take long to be looked up (peers/dial.c).
 *
 *   - a dial that is given up before its name was looked up leaves no connection behind
 *   - so others find room, and the two agree
 *   - what had not begun by then is never looked up, and closing waits for no more than what had
 *
 * The resolver is this test's: it answers once the test lets it.
 * Plain main(), so that it runs under ThreadSanitizer.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uv.h>

#include "check.h"
#include "parley/parley.h"

/* The core has places for all seeds and a few others, but not for two rounds of dials. */
enum { NAMES = 16, ROUNDS = 3, LINKS = NAMES + 4, NEWCOMERS = 4, WAIT_S = 20 };
enum { FLOATS = 100, STEPS = 20 };
#define NS UINT64_C(1000000000)

static struct node {
    struct parley_options options;
    struct parley *p;
    float x[FLOATS];
    struct parley_result result;
    uv_thread_t thread;
} nodes[2];

static uv_mutex_t lock; /* guards the next two */
static bool answers;
static unsigned given_up;
static uv_cond_t changed;
static atomic_uint begun;

/* Takes the place of the system's, for libuv too. */
int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
                struct addrinfo **found)
{
    if (!host || !strstr(host, ".slow")) {
        int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
        *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
        return real(host, port, hints, found);
    }
    atomic_fetch_add(&begun, 1);
    uv_mutex_lock(&lock);
    while (!answers)
        uv_cond_wait(&changed, &lock);
    uv_mutex_unlock(&lock);
    return EAI_AGAIN;
}

static void answer(void)
{
    uv_mutex_lock(&lock);
    answers = true;
    uv_cond_broadcast(&changed);
    uv_mutex_unlock(&lock);
}

static void on_update(void *context, struct parley *p, const struct parley_update *update)
{
    (void)context;
    (void)p;
    if (update->type != PARLEY_UPDATE_LOG || !strstr(update->log.text, ".slow") ||
        !strstr(update->log.text, "no answer"))
        return;
    uv_mutex_lock(&lock);
    given_up++;
    uv_cond_broadcast(&changed);
    uv_mutex_unlock(&lock);
}

static struct node *prepare(int i, const char *const *seeds, uint32_t count)
{
    static const char *const names[] = {"a", "b"};
    struct node *node = &nodes[i];
    parley_options_defaults(&node->options);
    node->options.config.name = names[i];
    node->options.config.parameters = FLOATS;
    node->options.config.min_peers = 1;
    node->options.config.steps_budget = STEPS;
    node->options.config.seeds = seeds;
    node->options.config.seeds_count = count;
    node->options.vectors[0] = node->x;
    node->options.on_update = on_update;
    return node;
}

static void start(struct node *node)
{
    char why[256];
    if (!parley_open(&node->p, &node->options, why, sizeof why)) return;
    fprintf(stderr, "%s\n", why);
    exit(1);
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
    config->log_level = PARLEY_LOG_DEBUG; /* each dial is told, not the first of each seed alone */
    config->hello_timeout_us = 200000;
    config->redial_min_us = config->redial_max_us = 100000;
    start(&nodes[0]);
}

static void train(void *argument)
{
    struct node *node = argument;
    struct parley_turn turn;
    struct parley_step step = {0};
    while (parley_boundary(node->p, &step, &turn) == PARLEY_GO)
        step = (struct parley_step){.steps = 1, .samples = 1};
    parley_result(node->p, &node->result);
}

/* True once there were so many dials that all places would be taken, if each had kept its own. */
static bool are_given_up(void)
{
    uint64_t until_ns = uv_hrtime() + WAIT_S * NS, now_ns;
    uv_mutex_lock(&lock);
    while (given_up < ROUNDS * NAMES && (now_ns = uv_hrtime()) < until_ns)
        uv_cond_timedwait(&changed, &lock, until_ns - now_ns);
    bool enough = given_up >= ROUNDS * NAMES;
    uv_mutex_unlock(&lock);
    return enough;
}

int main(void)
{
    uv_mutex_init(&lock);
    uv_cond_init(&changed);
    start_lost();
    bool room = are_given_up();
    check(room, "who is given up leaves no connection behind");
    if (!room) answer(); /* else nobody would find room */
    const char *a = parley_listens(nodes[0].p);
    start(prepare(1, &a, 1));
    for (int i = 0; i < 2; i++)
        uv_thread_create(&nodes[i].thread, train, &nodes[i]);
    for (int i = 0; i < 2; i++)
        uv_thread_join(&nodes[i].thread);
    check(nodes[0].result.agreed && nodes[1].result.agreed, "another one finds room");
    unsigned before = atomic_load(&begun);
    answer();
    for (int i = 0; i < 2; i++)
        parley_close(nodes[i].p);
    check(atomic_load(&begun) == before, "what had not begun was taken back");
    uv_cond_destroy(&changed);
    uv_mutex_destroy(&lock);
    return failures ? 1 : 0;
}
