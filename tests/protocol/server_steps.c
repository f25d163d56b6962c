/* server_steps.c: what each strategy with a server promises of whom a step waits for. */
#include "servers.h"

Test(server_steps, ps_ssp_keeps_each_within_its_bound_of_the_slowest)
{
    /* A node five times slower: the others get as far ahead as they may, and no further. */
    for (uint32_t staleness = 0; staleness <= 6; staleness += 3) {
        struct cast cast = {.strategy = PARLEY_STRATEGY_PS_SSP,
                            .step_us = 4000,
                            .nodes = NODES,
                            .staleness = staleness};
        struct parley_sim *sim = play(&cast, 3);
        scene_train(sim, NODES);
        parley_sim_slow(sim, 2, 5);
        uint64_t ahead = 0;
        while (parley_sim_now(sim) < 3 * SECOND && parley_sim_step(sim)) {
            uint64_t least = UINT64_MAX, most = 0;
            for (uint32_t i = 0; i < NODES; i++) {
                uint64_t version = version_of(sim, i);
                if (version < least) least = version;
                if (version > most) most = version;
            }
            if (most - least > ahead) ahead = most - least;
        }
        /* Made, that is begun at most `staleness` ahead. */
        cr_assert_eq(ahead, staleness + 1, "staleness %u: %llu", staleness,
                     (unsigned long long)ahead);
        cr_assert_gt(version_of(sim, 2), 100);
        parley_sim_free(sim);
    }
}

Test(server_steps, what_a_worker_of_ps_ssp_reads_has_all_that_its_bound_asks_for)
{
    /* Steps of varying length: at clock c a model has all gradients before clock c - S in it (Ho et
     * al., section 3), and is not one that was made for another before the slowest came so far. */
    enum { VERSIONS = 4000 };
    static uint64_t slowest[VERSIONS]; /* as a version was the newest */
    for (uint32_t staleness = 1; staleness <= 2; staleness++) {
        struct cast cast = {
            .strategy = PARLEY_STRATEGY_PS_SSP, .nodes = NODES, .staleness = staleness};
        struct parley_sim *sim = play(&cast, 3);
        struct rng rng = rng_init(staleness, 1);
        uint32_t read = 0;
        scene_train(sim, NODES);
        scene_run(sim, 200000);
        uint32_t served = server_of_all(sim, NODES);
        struct parley_node *server = sim->hosts[served].node;
        memset(slowest, 0xff, sizeof slowest); /* what there was before */
        for (uint64_t at = server_of(server)->version; at < VERSIONS - 1;) {
            cr_assert(parley_sim_step(sim));
            parley_sim_slow(sim, rng_below(&rng, NODES), 0.2 + 2 * rng_unit(&rng));
            at = server_of(server)->version;
            slowest[at] = crew_slowest(server);
            for (uint32_t i = 0; i < NODES; i++) {
                const struct server *w = server_of(sim->hosts[i].node);
                if (i == served || w->state != WORKER_COMPUTING) continue;
                if (slowest[w->base] == UINT64_MAX) continue;
                read++;
                cr_assert_leq(w->clock, slowest[w->base] + staleness, "n%u at %llu", i,
                              (unsigned long long)w->base);
            }
        }
        cr_assert_gt(read, 10000);
        parley_sim_free(sim);
    }
}

Test(server_steps, gradients_of_as_many_workers_as_there_can_be_wait_for_one_step)
{
    /* The server's own gradient takes long; what all others send meanwhile waits for it, and is
     * more than a driver had room for once (a simulation ends where it is more than that). */
    struct cast cast = {.strategy = PARLEY_STRATEGY_PS_ASP, .nodes = PARLEY_SERVED_MAX};
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = PARLEY_SERVED_MAX,
                                                                .parameters = 4,
                                                                .seed = 1,
                                                                .seeds = 2,
                                                                .rate = 0.01,
                                                                .step_us = 100000,
                                                                .latency_us = 300,
                                                                .configure = configure,
                                                                .arg = &cast});
    uint32_t most = 0;
    scene_train(sim, PARLEY_SERVED_MAX);
    uint32_t server = server_of_all(sim, PARLEY_SERVED_MAX);
    parley_sim_slow(sim, server, 20);
    uint64_t end_us = parley_sim_now(sim) + 10 * SECOND;
    while (parley_sim_now(sim) < end_us) {
        cr_assert(parley_sim_step(sim));
        if (sim->hosts[server].operations_count > most) most = sim->hosts[server].operations_count;
    }
    cr_assert_gt(most, PARLEY_SERVED_MAX - 4, "%u", most);
    parley_sim_free(sim);
}

static void serve_twenty_steps(struct parley_config *config, uint32_t node, void *arg)
{
    (void)node;
    (void)arg;
    config->strategy = PARLEY_STRATEGY_PS_ASP;
    config->min_peers = 10;
    config->steps_budget = 20;
    config->join_timeout_us = 20 * SECOND;
}

/* Whether each has either agreed or ended without a place; how many agreed. */
static bool have_all_ended(struct parley_sim *sim, void *agreed)
{
    uint32_t *done = agreed;
    *done = 0;
    for (uint32_t i = 0; i < PARLEY_SERVED_MAX + 4; i++) {
        int error;
        if (!parley_sim_finished(sim, i, &error)) {
            if (scene_view(sim, i).phase != PARLEY_PHASE_DONE) return false;
            *done += 1;
        } else {
            bool told = error == PARLEY_ELIMIT || error == PARLEY_ENO_SEED; /* let in, or not */
            cr_assert(error == PARLEY_OK || told, "n%u: %d", i, error);
            *done += error == PARLEY_OK;
        }
    }
    return true;
}

Test(server_steps, of_more_than_can_be_served_that_come_at_once_the_rest_is_told_and_ends)
{
    /* Each of five seeds lets in as many as it knows a place for: together more than there are. */
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = PARLEY_SERVED_MAX + 4,
                                                                .seed = 1,
                                                                .seeds = 5,
                                                                .parameters = 50,
                                                                .rate = 0.01,
                                                                .latency_us = 300,
                                                                .configure = serve_twenty_steps});
    uint32_t agreed;
    scene_until(sim, PARLEY_SERVED_MAX + 4, have_all_ended, &agreed, 60);
    cr_assert_eq(agreed, PARLEY_SERVED_MAX);
    parley_sim_free(sim);
}

Test(server_steps, ps_asp_waits_for_nobody)
{
    /* The same with ps-asp: the others make five times as many steps. */
    struct cast cast = {.strategy = PARLEY_STRATEGY_PS_ASP, .nodes = NODES};
    struct parley_sim *sim = play(&cast, 3);
    scene_train(sim, NODES);
    parley_sim_slow(sim, 2, 10);
    scene_run(sim, 5 * SECOND);
    cr_assert_gt(version_of(sim, 3), 4 * version_of(sim, 2));
    parley_sim_free(sim);
}

static struct applied {
    double least, most; /* weights */
    float factor;       /* the last one */
    void (*apply)(void *, uint32_t, uint32_t, float *const *, const float *, float,
                  const struct trainer_turn *);
} applied;

static void noted_apply(void *self, uint32_t node, uint32_t thread, float *const *vectors,
                        const float *gradient, float factor, const struct trainer_turn *turn)
{
    applied.least = fmin(applied.least, turn->weight);
    applied.most = fmax(applied.most, turn->weight);
    applied.factor = factor;
    applied.apply(self, node, thread, vectors, gradient, factor, turn);
}

Test(server_steps, a_mean_scales_the_gradient_and_staleness_the_rate)
{
    /* Proves that a gradient that is applied alone comes to the optimizer whole, for its weight
     * decay and its clipping, with its staleness, n at least, for the rate; and a mean as one. */
    for (int c = 0; c < CASTS; c++) {
        struct cast cast = casts[c];
        bool sums = cast.strategy == PARLEY_STRATEGY_PS_BSP;
        struct parley_sim *sim = play(&cast, 6);
        scene_train(sim, NODES);
        parley_sim_slow(sim, 2, 5);
        scene_run(sim, SECOND / 2); /* all are there */
        applied = (struct applied){1e9, 0, 0, sim->own_task.apply};
        sim->own_task.apply = noted_apply;
        scene_run(sim, SECOND);
        cr_assert_eq(applied.least, sums ? 1 : NODES, "cast %d: %g", c, applied.least);
        cr_assert(!sums || applied.most == 1, "cast %d: %g", c, applied.most);
        if (cast.strategy == PARLEY_STRATEGY_PS_ASP) /* as one is slow; in ps-ssp all wait for it */
            cr_assert_gt(applied.most, NODES);
        cr_assert_eq(applied.factor, sums ? 1.0f / (float)(NODES - cast.backups) : 1);
        parley_sim_free(sim);
    }
}

Test(server_steps, backup_workers_are_not_waited_for)
{
    /* With one a hundred times slower, ps-bsp makes its steps; but with a backup worker hardly
     * fewer than without any slow one, unless that is the server: its gradient is in each of them.
     */
    static const struct {
        uint32_t backups, slow;
        uint64_t least, most;
    } cases[] = {{0, 3, 1, 20}, {1, 3, 700, UINT64_MAX}, {1, 0, 1, 20}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cast cast = {.strategy = PARLEY_STRATEGY_PS_BSP,
                            .step_us = 4000,
                            .nodes = NODES,
                            .backups = cases[i].backups};
        struct parley_sim *sim = play(&cast, 4);
        scene_train(sim, NODES);
        scene_run(sim, 1 * SECOND);
        cr_assert_eq(server_of_all(sim, NODES), 0);
        struct parley_node *node = sim->hosts[0].node;
        struct server *s = server_of(node);
        const struct server_worker *own = crew_find(s, self_of(node)->boot);
        uint64_t before = self_of(node)->version, rounds = s->rounds - own->clock;
        parley_sim_slow(sim, cases[i].slow, 100);
        scene_run(sim, 5 * SECOND);
        uint64_t made = self_of(node)->version - before;
        cr_assert(made >= cases[i].least && made <= cases[i].most, "case %zu: %llu", i,
                  (unsigned long long)made);
        cr_assert_eq(s->rounds - own->clock, rounds, "case %zu: %llu of %llu", i,
                     (unsigned long long)own->clock, (unsigned long long)s->rounds);
        scene_agree(sim, NODES, 1);
        parley_sim_free(sim);
    }
}
