/* states.c: a node is killed, stopped or cut off at each state of an exchange, in both roles, and
 * of the agreement; then another one, at each state again. The rest trains on, the watch sees no
 * breach (sim/swarm/watch.h), and all who end with a model have the same.
 *
 * In the suite: each state with each strike, and a part of the pairs, another one in each place of
 * the table. All pairs, with all strikes: PARLEY_STATES=all build/tests/protocol-states; one of
 * them, by the seed that a failure names, with what its nodes say: PARLEY_STATES=213
 */
#include <stdlib.h>

#include "../../sim/swarm/watch.h"
#include "scene.h"

enum { NODES = 5, EXCHANGE_STATES = 11 };

/* As tests/faults/soak.py calls them: the role and the state that is entered. */
static const struct state {
    const char *role, *state;
} states[] = {
    {"offer", "taking"},   {"offer", "offered"},  {"offer", "streaming"}, {"offer", "diffing"},
    {"offer", "ready"},    {"offer", "adding"},   {"answer", "taking"},   {"answer", "streaming"},
    {"answer", "diffing"}, {"answer", "ready"},   {"answer", "adding"},   {"phase", "stop"},
    {"phase", "settle"},   {"phase", "proposed"}, {"phase", "held"},      {"phase", "locked"},
    {"phase", "done"},
};
enum { STATES = sizeof states / sizeof *states, PAIRS_STRIDE = 9 };

/* PAUSE: suspected, and back before it is taken for dead. SLEEP: taken for dead. */
enum strike { KILL, PAUSE, CUT, SLEEP, STRIKES };
static const char *const strike_names[] = {"kill", "pause", "cut", "sleep"};
static const uint64_t asleep_us[] = {[PAUSE] = 3 * SECOND, [SLEEP] = 12 * SECOND};

struct blow {
    const struct state *state;
    enum strike strike;
    uint32_t node; /* whom it struck */
    uint64_t wakes_us;
};

struct life {
    struct parley_sim *sim;
    struct blow *waiting; /* NULL: none */
    uint32_t spared;      /* not this node */
    uint32_t entered;     /* who has just come to that state; NODES: nobody */
    bool told;            /* lines go to stderr */
};

static void configure(struct parley_config *config, uint32_t node, void *arg)
{
    (void)node;
    (void)arg;
    config->min_peers = NODES - 1;
    config->log_level = PARLEY_LOG_DEBUG;
}

/* "0.123s n3 log answer 7: streaming -> diffing", "0.123s n3 phase held" */
static void see(const char *line, void *arg)
{
    struct life *life = arg;
    unsigned node, sequence;
    char role[16], state[16];
    if (life->told) fprintf(stderr, "%s\n", line);
    if (!life->waiting || life->entered < NODES) return;
    const char *words = strstr(line, " n");
    if (!words) return;
    bool moved = sscanf(words, " n%u log %15[a-z] %u: %*[a-z] -> %15[a-z]", &node, role, &sequence,
                        state) == 4;
    bool phase = !moved && sscanf(words, " n%u %15[a-z] %15[a-z]", &node, role, state) == 3;
    if ((moved || phase) && node != life->spared && strcmp(role, life->waiting->state->role) == 0 &&
        strcmp(state, life->waiting->state->state) == 0)
        life->entered = node;
}

static void strike(struct life *life, struct blow *blow, uint32_t node)
{
    blow->node = node;
    blow->wakes_us = parley_sim_now(life->sim) + asleep_us[blow->strike % STRIKES];
    if (blow->strike == KILL) parley_sim_kill(life->sim, node, false);
    if (blow->strike == PAUSE || blow->strike == SLEEP) parley_sim_pause(life->sim, node);
    for (uint32_t i = 0; i < NODES && blow->strike == CUT; i++)
        if (i != node) parley_sim_disconnect(life->sim, node, i);
}

/* Steps until the blow has fallen, right after the event that brought that state. False: in 20 s
 * nobody came to it. */
static bool fall(struct life *life, struct blow *blow)
{
    uint64_t limit_us = parley_sim_now(life->sim) + 20 * SECOND;
    life->waiting = blow;
    life->entered = NODES;
    while (life->entered == NODES && parley_sim_now(life->sim) < limit_us)
        if (!parley_sim_step(life->sim)) break;
    life->waiting = NULL;
    if (life->entered == NODES) return false;
    strike(life, blow, life->entered);
    return true;
}

static void wake(struct life *life, const struct blow *blow)
{
    bool asleep = blow->strike == PAUSE || blow->strike == SLEEP;
    if (blow->node == NODES || !asleep) return;
    uint64_t now_us = parley_sim_now(life->sim);
    if (blow->wakes_us > now_us) scene_run(life->sim, blow->wakes_us - now_us);
    parley_sim_resume(life->sim, blow->node);
}

static bool all_ended(struct parley_sim *sim, void *arg)
{
    (void)arg;
    for (uint32_t i = 0; i < NODES; i++)
        if (parley_sim_live(sim, i) && !parley_sim_finished(sim, i, &(int){0})) return false;
    return true;
}

/* Who was not struck is DONE, all with one model; so is who was struck and came to DONE, even if it
 * died then. But who slept so long (or was suspected before, by another sleeper that woke) that the
 * others ended without it finds nobody, and may agree with itself: its record says so. */
static void judge(const struct parley_sim *sim, const struct blow *blows, const char *what)
{
    struct parley_view first = {.phase = PARLEY_PHASE_JOINING}, view;
    for (int struck = 0; struck < 2; struck++)
        for (uint32_t i = 0; i < NODES; i++) {
            int error = 0;
            const struct blow *blow = i == blows[0].node ? &blows[0] : &blows[1];
            if ((i == blow->node) != struck) continue;
            view = scene_view(sim, i);
            bool done = view.phase == PARLEY_PHASE_DONE;
            cr_assert(struck || (parley_sim_finished(sim, i, &error) && !error && done),
                      "%s: n%u ends in %s with %s", what, i, parley_phase_name(view.phase),
                      parley_error_name(error));
            bool slept = struck && (blow->strike == PAUSE || blow->strike == SLEEP);
            bool apart = slept && view.held <= 2 && view.known == NODES;
            if (!done || apart) continue;
            if (first.phase != PARLEY_PHASE_DONE) first = view;
            cr_assert_eq(memcmp(first.digest, view.digest, sizeof view.digest), 0,
                         "%s: n%u has another model", what, i);
        }
}

static void told_if(const struct parley_sim *sim, bool bad, const char *what)
{
    const char *why;
    int error = parley_sim_error(sim, &why);
    if (error || bad) scene_dump(sim, NODES);
    cr_assert(!error && !bad, "%s: %s", what, why);
}

/* blows[1].state NULL: only one. Says whether both have fallen. */
static bool live(struct blow blows[2], uint64_t seed, bool told)
{
    struct life life = {.spared = NODES, .entered = NODES, .told = told};
    struct sim_watch *watch;
    char what[120];
    snprintf(what, sizeof what, "%s at %s %s, %s at %s %s, seed %d", strike_names[blows[0].strike],
             blows[0].state->role, blows[0].state->state, strike_names[blows[1].strike],
             blows[1].state ? blows[1].state->role : "-",
             blows[1].state ? blows[1].state->state : "-", (int)seed);
    blows[0].node = blows[1].node = NODES;
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = NODES,
                                                                .parameters = 16,
                                                                .seed = seed,
                                                                .seeds = 2,
                                                                .latency_us = 300,
                                                                .operation_us = 200,
                                                                .configure = configure});
    life.sim = sim;
    cr_assert_eq(sim_watch_new(&watch, sim), 0);
    scene_train(sim, NODES);
    scene_run(sim, 100000);
    parley_sim_on_line(sim, PARLEY_LOG_DEBUG, see, &life);
    bool late = blows[0].state >= states + EXCHANGE_STATES;
    if (late) parley_sim_stop(sim, 1, PARLEY_STOP_OPERATOR);
    bool fell = fall(&life, &blows[0]);
    told_if(sim, !fell, what);
    life.spared = blows[0].node;
    if (blows[1].state && !late && blows[1].state >= states + EXCHANGE_STATES)
        parley_sim_stop(sim, (blows[0].node + 1) % NODES, PARLEY_STOP_OPERATOR);
    fell = !blows[1].state || fall(&life, &blows[1]);
    told_if(sim, false, what);
    wake(&life, &blows[0]);
    wake(&life, &blows[1]);
    for (uint32_t i = 0; i < NODES; i++)
        parley_sim_stop(sim, i, PARLEY_STOP_OPERATOR);
    int error = parley_sim_step_until(sim, all_ended, NULL, 400 * SECOND);
    told_if(sim, error != 0, what);
    judge(sim, blows, what);
    sim_watch_end(watch);
    told_if(sim, false, what);
    sim_watch_free(watch);
    parley_sim_free(sim);
    return fell;
}

Test(states, a_node_may_be_struck_at_each_state)
{
    /* Killed, stopped for 3 s or 12 s, or cut off, right after it came to the state. */
    for (int s = 0; s < STATES; s++)
        for (int k = 0; k < STRIKES; k++)
            live((struct blow[2]){{.state = &states[s], .strike = (enum strike)k}, {0}},
                 1 + (uint64_t)(s * STRIKES + k), false);
}

static bool is_asked_for(const char *asked, uint64_t place)
{
    if (asked) return strcmp(asked, "all") == 0 || strtoull(asked, NULL, 10) == place;
    return rng_mix(place) % (PAIRS_STRIDE * STRIKES * STRIKES) == 0;
}

static void pairs(int first, int last)
{
    const char *asked = getenv("PARLEY_STATES");
    bool one = asked && strcmp(asked, "all") != 0;
    int lived = 0, fell = 0;
    for (int a = first; a < last; a++)
        for (int b = 0; b < STATES; b++)
            for (int k = 0; k < STRIKES * STRIKES; k++) {
                uint64_t place = (uint64_t)((a * STATES + b) * STRIKES * STRIKES + k);
                if (!is_asked_for(asked, place)) continue;
                lived++;
                fell += live((struct blow[2]){{&states[a], (enum strike)(k / STRIKES), 0, 0},
                                              {&states[b], (enum strike)(k % STRIKES), 0, 0}},
                             place, one);
            }
    if (asked) printf("# %d lives, both blows fell in %d\n", lived, fell);
    cr_assert(one || 3 * fell > lived, "%d of %d", fell, lived);
}

Test(states, two_nodes_may_be_struck_at_any_two_states_of_an_exchange)
{
    /* The second one at the state it comes to after the first was struck at its own. */
    pairs(0, EXCHANGE_STATES);
}

Test(states, two_nodes_may_be_struck_at_any_two_states_of_the_agreement)
{
    /* The same, the first of them in the agreement. */
    pairs(EXCHANGE_STATES, STATES);
}
