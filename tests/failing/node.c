/* node.c: no memory for the n-th allocation of two real nodes, over loopback, with threads and
 * files.
 *
 * Opening fails with a line, or the run goes on: a connection that found no memory is dropped and
 * dialled again, a model that can't be written is held in memory. Nobody crashes or hangs, nothing
 * is kept, and who says that it agreed has the model that the other has.
 *
 * node [TRIES]: so many n, spread over the allocations of a run (25). How many there are differs
 * from run to run, as do the threads' turns.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <uv.h>

#include "lack.h"
#include "parley/parley.h"

enum { FLOATS = 500, NODES = 2 };

static struct node {
    struct parley *p, *other;
    float x[FLOATS];
    char name[8], out[64];
    int code;
    struct parley_result result;
    uv_thread_t thread;
} nodes[NODES];

static void train(void *argument)
{
    struct node *node = argument;
    struct parley_step step = {.samples = 1};
    struct parley_turn turn;
    while ((node->code = parley_boundary(node->p, step.steps ? &step : NULL, &turn)) == PARLEY_GO)
        step.steps = 1;
    parley_result(node->p, &node->result);
    /* It would wait for this one. */
    if (!node->result.agreed) parley_leave(node->other);
}

static int open_node(int i, const char *folder, char *address, char *why, size_t size)
{
    struct node *node = &nodes[i];
    struct parley_options options;
    const char *seed = address;
    memset(node, 0, sizeof *node);
    parley_options_defaults(&options);
    snprintf(node->name, sizeof node->name, "n%d", i);
    snprintf(node->out, sizeof node->out, "%s/m%d", folder, i);
    options.config.name = node->name;
    options.config.parameters = FLOATS;
    options.config.min_peers = 1;
    options.config.steps_budget = 5;
    options.config.seeds = &seed;
    options.config.seeds_count = (uint32_t)i;
    options.config.redial_min_us = 20000;
    options.vectors[0] = node->x;
    options.out = node->out;
    int error = parley_open(&node->p, &options, why, size);
    if (!error && i == 0) snprintf(address, PARLEY_ADDRESS_SIZE, "%s", parley_listens(node->p));
    return error;
}

static void clear(const char *folder)
{
    char path[128];
    for (int i = 0; i < NODES; i++) {
        unlink(nodes[i].out);
        snprintf(path, sizeof path, "%s.agreement.json", nodes[i].out);
        unlink(path);
    }
    if (rmdir(folder)) fprintf(stderr, "something is left in %s\n", folder);
}

/* NULL, or what is broken. */
static const char *run(uint64_t n, int *error)
{
    char folder[] = "/tmp/parley-memory-XXXXXX", address[PARLEY_ADDRESS_SIZE] = "", why[256] = "";
    const char *broken = NULL;
    if (!mkdtemp(folder)) exit(1);
    int64_t kept = lack_kept();
    lack_start(n);
    *error = open_node(0, folder, address, why, sizeof why);
    if (!*error) *error = open_node(1, folder, address, why, sizeof why);
    if (*error) {
        if (!why[0] || !lack_failed()) broken = "an error in opening without a line, or a cause";
        if (*error != PARLEY_ENOMEM && *error != PARLEY_EFAIL) broken = "another error";
    } else {
        nodes[0].other = nodes[1].p;
        nodes[1].other = nodes[0].p;
        for (int i = 0; i < NODES; i++)
            if (uv_thread_create(&nodes[i].thread, train, &nodes[i])) exit(1);
        for (int i = 0; i < NODES; i++)
            uv_thread_join(&nodes[i].thread);
        *error = nodes[0].code ? nodes[0].code : nodes[1].code;
        bool agreed = nodes[0].result.agreed && nodes[1].result.agreed;
        if (!lack_failed() && (!agreed || *error)) broken = "no agreement where nothing failed";
        if (agreed && memcmp(nodes[0].x, nodes[1].x, sizeof nodes[0].x) != 0)
            broken = "two models that were agreed on";
    }
    for (int i = 0; i < NODES; i++) {
        parley_close(nodes[i].p);
        nodes[i].p = NULL;
    }
    if (lack_kept() != kept) broken = "blocks are kept";
    clear(folder);
    return broken;
}

int main(int argc, char **argv)
{
    uint64_t tries = argc > 1 ? strtoull(argv[1], NULL, 10) : 25, ends = 0;
    int broken = 0, error;
    lack_init();
    for (uint64_t i = 0, all = 0; i <= tries + 1; i++) {
        /* Twice without a failure: what libraries fetch but once, and how many there are. */
        uint64_t n = i < 2 ? 0 : 1 + (i - 2) * all / tries;
        const char *what = run(n, &error);
        if (i == 1) {
            all = lack_made();
            printf("%llu allocations in a run\n", (unsigned long long)all);
        }
        ends += error != 0;
        if (!what || i == 0) continue;
        fprintf(stderr, "allocation %llu: %s (%s)\n", (unsigned long long)n, what,
                parley_error_name(error));
        broken++;
    }
    printf("%llu failed: %llu times an error, else went on\n", (unsigned long long)tries,
           (unsigned long long)ends);
    return broken > 0;
}
