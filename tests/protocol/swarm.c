/* swarm.c: random faults on random clusters: first safety under fire, then a calm in which all must
 * come to one model. */
#include "scene.h"

struct swarm {
    struct parley_sim *sim;
    struct rng rng;
    uint32_t nodes;
    uint32_t killed;
};

/* One random act. Nodes 0 and 1 are the seeds and are not killed. */
static void act(struct swarm *s)
{
    uint32_t a = rng_below(&s->rng, s->nodes);
    uint32_t b = (a + 1 + rng_below(&s->rng, s->nodes - 1)) % s->nodes;
    switch (rng_below(&s->rng, 9)) {
    case 0:
        if (a < 2 || 2 * s->killed >= s->nodes - 2 || !parley_sim_live(s->sim, a)) break;
        parley_sim_kill(s->sim, a, rng_below(&s->rng, 2));
        s->killed++;
        break;
    case 1:
        parley_sim_pause(s->sim, a);
        break;
    case 2:
        parley_sim_resume(s->sim, a);
        break;
    case 3:
        parley_sim_block(s->sim, a, b);
        break;
    case 4:
        parley_sim_heal(s->sim);
        break;
    case 5:
        parley_sim_latency(s->sim, a, rng_below(&s->rng, 300000));
        break;
    case 6:
        parley_sim_slow(s->sim, a, 0.5 + 10 * rng_unit(&s->rng));
        break;
    default:
        parley_sim_disconnect(s->sim, a, b);
    }
}

static void calm(struct swarm *s)
{
    parley_sim_heal(s->sim);
    for (uint32_t i = 0; i < s->nodes; i++) {
        parley_sim_resume(s->sim, i);
        parley_sim_latency(s->sim, i, 0);
        parley_sim_slow(s->sim, i, 1);
    }
}

static void swarm(uint64_t seed)
{
    struct swarm s = {.rng = rng_init(seed, 5)};
    s.nodes = 3 + rng_below(&s.rng, 6);
    uint32_t peers = s.nodes - 1;
    s.sim = scene(&(struct parley_sim_options){.nodes = s.nodes,
                                               .seed = seed,
                                               .seeds = 2,
                                               .rate = seed % 2 ? 0.001 : 0,
                                               .step_us = 1000 + rng_below(&s.rng, 20000),
                                               .latency_us = 1 + rng_below(&s.rng, 5000),
                                               .configure = scene_wait_for,
                                               .arg = &peers});
    scene_train(s.sim, s.nodes);
    for (int i = 0; i < 60; i++) {
        act(&s);
        scene_run(s.sim, rng_below(&s.rng, 500000));
    }
    calm(&s);
    int error = parley_sim_step_until(s.sim, parley_sim_converged, NULL, 120 * SECOND);
    if (error) scene_dump(s.sim, s.nodes);
    cr_assert_eq(error, 0, "seed %llu: no common view", (unsigned long long)seed);
    parley_sim_stop(s.sim, 0, PARLEY_STOP_OPERATOR);
    error = parley_sim_step_until(s.sim, parley_sim_agreed, NULL, 180 * SECOND);
    if (error) scene_dump(s.sim, s.nodes);
    cr_assert_eq(error, 0, "seed %llu: no agreement", (unsigned long long)seed);
    scene_same(s.sim, s.nodes);
    if (s.killed == 0)
        cr_assert_leq(parley_sim_mass_error(s.sim), 1e-6, "seed %llu", (unsigned long long)seed);
    parley_sim_free(s.sim);
}

Test(swarm, random_faults_end_in_one_model)
{
    /* Forty clusters, each with sixty random acts. */
    for (uint64_t seed = 1; seed <= 40; seed++)
        swarm(seed);
}
