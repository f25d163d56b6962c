/* live.c: who lives and who is gone, as other threads see it (peers/live.c).
 *
 *   - of several processes under one name that have died one is told of, with the furthest place
 *   - nobody is gone whose name a live process has; nor is the node itself, once it has ended
 *   - a trainer that is a step behind its node finds it among the living, once it has left, too
 *   - who lives is known as soon as parley_open() returns
 *
 * The members are those of a simulation. Plain main(), so that it runs under ThreadSanitizer.
 */
#include "live.h"

#include <string.h>

#include "check.h"
#include "loop.h"
#include "world/cluster.h"

enum { NODES = 3, FLOATS = 10 };
#define SECOND UINT64_C(1000000)

static uint64_t places[NODES];

static uint64_t place_of(void *self, uint32_t node)
{
    (void)self;
    return places[node];
}

static void configure(struct parley_config *config, uint32_t node, void *arg)
{
    (void)arg;
    (void)node;
    config->min_peers = NODES - 1;
}

/* It gets so far, as the others hear, and dies. */
static void live_and_die(struct parley_sim *sim, uint32_t node, uint64_t place)
{
    places[node] = place;
    check(parley_sim_run_for(sim, 10 * SECOND) == 0, "they train");
    parley_sim_kill(sim, node, false);
    check(parley_sim_run_for(sim, 10 * SECOND) == 0, "it is found dead");
}

static void look(struct loop *loop, struct parley_sim *sim)
{
    loop->node = sim->hosts[0].node;
    live_refresh(loop);
}

static void expect_gone(struct loop *loop, const char *name, uint64_t place, const char *what)
{
    struct parley_gone gone;
    check(live_gone(loop, &gone, 1) == 1 && strcmp(gone.name, name) == 0 && gone.place == place,
          what);
}

static bool lives(struct loop *loop, const char *name)
{
    char names[NODES][PARLEY_NAME_SIZE];
    uint32_t count = live_copy(loop, names, NODES);
    bool found = false;
    for (uint32_t i = 0; i < count && i < NODES; i++)
        found |= strcmp(names[i], name) == 0;
    return found;
}

static void tell_each_name_once(void)
{
    struct parley_sim *sim;
    struct loop loop = {0};
    if (parley_sim_new(&sim, &(struct parley_sim_options){.nodes = NODES,
                                                          .seeds = NODES,
                                                          .rate = 0.1,
                                                          .step_us = 10000,
                                                          .configure = configure}) ||
        live_init(&loop, 64, "n0")) {
        check(false, "there is memory");
        return;
    }
    sim->own_task.place = place_of;
    places[0] = 5;
    live_and_die(sim, 2, 700);
    look(&loop, sim);
    expect_gone(&loop, "n2", 700, "who died is gone");
    uint64_t turnover = loop.live_turnover;
    check(turnover > 0, "who died is missed");
    live_refresh(&loop);
    check(loop.live_turnover == turnover, "where nobody came or went, nobody is told so");
    parley_sim_start(sim, 2);
    parley_sim_kill(sim, 1, false);
    check(parley_sim_run_for(sim, 10 * SECOND) == 0, "one comes back, and one dies");
    look(&loop, sim);
    check(live_copy(&loop, NULL, 0) == NODES - 1 && loop.live_turnover > turnover,
          "as many live, but they are others");
    parley_sim_start(sim, 1);
    check(parley_sim_run_for(sim, 10 * SECOND) == 0, "it comes back");
    look(&loop, sim);
    check(live_copy(&loop, NULL, 0) == NODES, "all live");
    check(live_gone(&loop, NULL, 0) == 0, "whose name is back is not gone");
    live_and_die(sim, 2, 300);
    look(&loop, sim);
    expect_gone(&loop, "n2", 700, "who died twice is told of once");
    parley_sim_stop(sim, 0, PARLEY_STOP_OPERATOR);
    check(parley_sim_step_until(sim, parley_sim_agreed, NULL, 60 * SECOND) == 0, "they agree");
    parley_sim_kill(sim, 1, false);
    check(parley_sim_run_for(sim, 10 * SECOND) == 0, "all end");
    look(&loop, sim);
    check(lives(&loop, "n0"), "who has left finds itself among those it lived with");
    expect_gone(&loop, "n2", 700, "at the end the node is not gone itself");
    live_close(&loop);
    parley_sim_free(sim);
}

/* ---- Right after the start ------------------------------------------------------------------- */

static uv_sem_t looked;

/* The loop gets no further than its first word until the test has looked. */
static void on_update(void *context, struct parley *p, const struct parley_update *update)
{
    bool *told = context;
    (void)p;
    if (*told || update->type == PARLEY_UPDATE_LOG) return;
    *told = true;
    uv_sem_wait(&looked);
}

static void know_it_at_once(void)
{
    static float x[FLOATS];
    char why[256], name[PARLEY_NAME_SIZE] = "";
    bool told = false;
    struct parley *p;
    struct parley_options options;
    parley_options_defaults(&options);
    options.config.name = "n0";
    options.config.parameters = FLOATS;
    options.vectors[0] = x;
    options.on_update = on_update;
    options.context = &told;
    uv_sem_init(&looked, 0);
    if (parley_open(&p, &options, why, sizeof why)) {
        check(false, why);
        return;
    }
    check(parley_live(p, &name, 1) == 1 && strcmp(name, "n0") == 0, "this node lives");
    check(parley_gone(p, NULL, 0) == 0, "and nobody is gone");
    uv_sem_post(&looked);
    parley_close(p);
    uv_sem_destroy(&looked);
}

int main(void)
{
    tell_each_name_once();
    know_it_at_once();
    return failures ? 1 : 0;
}
