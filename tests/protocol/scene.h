/* scene.h: what the protocol tests share: a simulation that tells its state where a wait fails. */
#ifndef PARLEY_TESTS_SCENE_H
#define PARLEY_TESTS_SCENE_H

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/rng.h"
#include "core/wire/wire.h"
#include "parley/sim.h"
#include "world/cluster.h"

#define SECOND UINT64_C(1000000)

/* What a local step takes where a scene does not say. Most are of who knows whom and agrees on
 * what, for many seconds: a step of 1 ms, as parley_sim_new() has it, makes them twenty times as
 * many events of training. */
#define SCENE_STEP_US (SECOND / 50)

static inline struct parley_sim *scene(const struct parley_sim_options *options)
{
    struct parley_sim *sim;
    struct parley_sim_options own = *options;
    if (own.step_us == 0) own.step_us = SCENE_STEP_US;
    int error = parley_sim_new(&sim, &own);
    cr_assert_eq(error, 0, "%s", parley_error_name(error));
    return sim;
}

/* For `configure`, the number itself being `arg`: all wait for so many others before they train. */
static inline void scene_wait_for(struct parley_config *config, uint32_t node, void *peers)
{
    (void)node;
    config->min_peers = (uint32_t)(uintptr_t)peers;
}

/* Nobody trains before all have met. */
static inline struct parley_sim *scene_together(const struct parley_sim_options *options)
{
    struct parley_sim_options together = *options;
    together.configure = scene_wait_for;
    together.arg = (void *)(uintptr_t)(options->nodes - 1);
    return scene(&together);
}

static inline struct parley_view scene_view(const struct parley_sim *sim, uint32_t node)
{
    struct parley_view view;
    parley_sim_view(sim, node, &view);
    return view;
}

static inline enum parley_phase scene_phase(const struct parley_sim *sim, uint32_t node)
{
    return scene_view(sim, node).phase;
}

static inline void scene_dump(const struct parley_sim *sim, uint32_t nodes)
{
    const char *why;
    parley_sim_error(sim, &why);
    fprintf(stderr, "at %.3f s, %u live %s\n", (double)parley_sim_now(sim) / 1e6,
            parley_sim_live_count(sim), why);
    for (uint32_t i = 0; i < nodes; i++) {
        struct parley_view v = scene_view(sim, i);
        fprintf(
            stderr,
            "  n%u%s %s version %llu live %u known %u drift %.2e generation %u held %u | started "
            "%llu committed %llu applied %llu aborted %llu doubt %llu dropped %llu busy %llu\n",
            i, parley_sim_live(sim, i) ? "" : " (not live)", parley_phase_name(v.phase),
            (unsigned long long)v.version, v.live, v.known, v.drift, v.generation, v.held,
            (unsigned long long)v.ledger.started, (unsigned long long)v.ledger.committed,
            (unsigned long long)v.ledger.applied, (unsigned long long)v.ledger.aborted,
            (unsigned long long)v.ledger.in_doubt, (unsigned long long)v.ledger.dropped,
            (unsigned long long)v.ledger.busy);
    }
}

/* Waits for a predicate, or fails and shows what `nodes` nodes were doing. */
#define scene_until(sim, nodes, predicate, arg, seconds)                                           \
    do {                                                                                           \
        int scene_error = parley_sim_step_until(sim, predicate, arg, (seconds)*SECOND);            \
        if (scene_error) scene_dump(sim, nodes);                                                   \
        cr_assert_eq(scene_error, 0, #predicate " did not come: %s",                               \
                     parley_error_name(scene_error));                                              \
    } while (0)

#define scene_run(sim, us)                                                                         \
    do {                                                                                           \
        int scene_error = parley_sim_run_for(sim, us);                                             \
        const char *scene_why;                                                                     \
        parley_sim_error(sim, &scene_why);                                                         \
        cr_assert_eq(scene_error, 0, "%s", scene_why);                                             \
    } while (0)

/* For scene_until(), the flag being `arg`. */
static inline bool scene_is_set(struct parley_sim *sim, void *flag)
{
    (void)sim;
    return *(bool *)flag;
}

/* For scene_until(): all have ended. `error`: the last one's, or NULL. */
static inline bool scene_all_ended(struct parley_sim *sim, void *error)
{
    for (uint32_t i = 0; i < sim->nodes; i++)
        if (!parley_sim_finished(sim, i, error)) return false;
    return true;
}

/* For scene_until(): n0, n1 and n2 are. */
static inline bool scene_three_are_done(struct parley_sim *sim, void *arg)
{
    (void)arg;
    return scene_phase(sim, 0) == PARLEY_PHASE_DONE && scene_phase(sim, 1) == PARLEY_PHASE_DONE &&
           scene_phase(sim, 2) == PARLEY_PHASE_DONE;
}

/* What comes, line by line: parley_sim_expect(). */
#define scene_expect(sim, kinds, seconds, transcript)                                              \
    do {                                                                                           \
        char scene_why[600];                                                                       \
        int scene_error = parley_sim_expect(sim, kinds, transcript, (seconds)*SECOND, scene_why,   \
                                            sizeof scene_why);                                     \
        cr_assert_eq(scene_error, 0, "the transcript breaks off\n%s", scene_why);                  \
    } while (0)

/* Node `who` is told to stop; all live nodes must agree within 90 virtual seconds. */
#define scene_agree(sim, nodes, who)                                                               \
    do {                                                                                           \
        parley_sim_stop(sim, who, PARLEY_STOP_OPERATOR);                                           \
        scene_until(sim, nodes, parley_sim_agreed, NULL, 90);                                      \
        scene_same(sim, nodes);                                                                    \
    } while (0)

/* The agreed models of all live nodes are equal to the bit, and so are their files. */
static inline void scene_same(const struct parley_sim *sim, uint32_t nodes)
{
    const float *first = NULL;
    const uint8_t *file = NULL;
    for (uint32_t i = 0; i < nodes; i++) {
        if (!parley_sim_live(sim, i)) continue;
        const float *x = parley_sim_agreed_vector(sim, i);
        const uint8_t *f = parley_sim_file(sim, i);
        cr_assert_not_null(x, "n%u has no agreed model", i);
        cr_assert_not_null(f, "n%u has no file", i);
        if (first) {
            cr_assert_eq(memcmp(first, x, sim->parameters * sizeof *x), 0, "n%u has another model",
                         i);
            cr_assert_eq(memcmp(file, f, PARLEY_DIGEST_BYTES), 0, "n%u has another file", i);
        }
        first = x;
        file = f;
    }
    cr_assert_not_null(first);
}

/* Exchanges that the nodes took part in, both sides of each. */
static inline uint64_t scene_applied(const struct parley_sim *sim, uint32_t nodes)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < nodes; i++)
        sum += scene_view(sim, i).ledger.applied;
    return sum;
}

/* Local steps that the nodes have made, the dead among them. */
static inline uint64_t scene_made(const struct parley_sim *sim, uint32_t nodes)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < nodes; i++)
        sum += scene_view(sim, i).version;
    return sum;
}

/* Steps that a node makes in that time, on average. */
static inline uint64_t scene_steps_in(struct parley_sim *sim, uint32_t nodes, uint64_t time_us)
{
    uint64_t before = scene_made(sim, nodes);
    scene_run(sim, time_us);
    return (scene_made(sim, nodes) - before) / nodes;
}

/* For parley_sim_on_line(): in how many lines that text stands. */
struct scene_lines {
    const char *text;
    uint32_t count;
};

static inline void scene_count(const char *line, void *lines)
{
    struct scene_lines *l = lines;
    l->count += strstr(line, l->text) != NULL;
}

/* The two don't reach each other, until parley_sim_heal(). */
static inline void scene_part(struct parley_sim *sim, uint32_t a, uint32_t b)
{
    parley_sim_block(sim, a, b);
    parley_sim_block(sim, b, a);
}

/* All live nodes are in training. */
static inline void scene_train(struct parley_sim *sim, uint32_t nodes)
{
    enum parley_phase train = PARLEY_PHASE_TRAIN;
    scene_until(sim, nodes, parley_sim_in_phase, &train, 30);
}

/* Links of training nodes break, `cuts` times, anywhere and at any moment. */
static inline void scene_break(struct parley_sim *sim, uint32_t nodes, int cuts, uint64_t seed)
{
    struct rng rng = rng_init(seed, 7);
    scene_train(sim, nodes);
    for (int cut = 0; cut < cuts; cut++) {
        uint32_t a = rng_below(&rng, nodes), b = (a + 1 + rng_below(&rng, nodes - 1)) % nodes;
        parley_sim_disconnect(sim, a, b);
        scene_run(sim, 5000 + rng_below(&rng, 20000));
    }
}

/* Then all agree, have averaged, and the mean is where it was. */
static inline void scene_cut(struct parley_sim *sim, uint32_t nodes, int cuts, uint64_t seed)
{
    scene_break(sim, nodes, cuts, seed);
    scene_agree(sim, nodes, 0);
    struct parley_view view = scene_view(sim, 0);
    cr_assert_gt(view.ledger.applied, 50, "they have stood still");
    double mass = parley_sim_mass_error(sim);
    cr_assert_leq(mass, 1e-6, "seed %llu: %g", (unsigned long long)seed, mass);
}

#endif
