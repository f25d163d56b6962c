/* servers.c: one of the nodes serves the model; it may die, and so may any other. */
#include "core/strategy/ps/server.h"
#include "scene.h"
#include "world/cluster.h"

enum { NODES = 4, FLOATS = 64 };

struct cast {
    enum parley_strategy strategy;
    uint32_t nodes, backups, staleness;
    uint64_t steps;         /* budget; 0: none */
    uint64_t step_us;       /* what one takes; 0: 4 ms */
    bool resumed;           /* all go on from files, n2 from the newest */
    bool narrow;            /* as few gradients as can be come in at a time */
    const uint64_t *starts; /* n0 begins alone, n1 comes with an old file, n2 with the newest */
    bool forgets;           /* but not if this is set when it starts */
};

static void configure(struct parley_config *config, uint32_t node, void *arg)
{
    const struct cast *cast = arg;
    config->strategy = cast->strategy;
    config->min_peers = cast->nodes - 1;
    config->backup_workers = cast->backups;
    config->staleness = cast->staleness;
    config->steps_budget = cast->steps;
    if (cast->narrow) config->lanes_bytes = 0;
    static const struct parley_resumed newest = {550, 17600, 440, 70400, 0},
                                       kept = {500, 16000, 400, 64000, 0},
                                       old = {1, 16000, 400, 1, 0};
    if (cast->resumed) config->resumed = node == 2 ? newest : kept;
    if (!cast->starts) return;
    config->min_peers = 0;
    if (node == 1) config->resumed = old;
    if (node == 2 && !cast->forgets) config->resumed = newest;
}

static struct parley_sim *play(struct cast *cast, uint64_t seed)
{
    return scene(&(struct parley_sim_options){.nodes = cast->nodes,
                                              .seed = seed,
                                              .seeds = cast->starts ? 1 : 2,
                                              .rate = 0.01,
                                              .step_us = cast->step_us ? cast->step_us : 4000,
                                              .latency_us = 300,
                                              .bandwidth_bytes = 2000000,
                                              .start_us = cast->starts,
                                              .configure = configure,
                                              .arg = cast});
}

static const struct record *said_by(struct parley_sim *sim, uint32_t node)
{
    return self_of(sim->hosts[node].node);
}

/* How many live nodes say that they serve; the last of them. */
static uint32_t servers(struct parley_sim *sim, uint32_t nodes, uint32_t *which)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < nodes; i++) {
        if (!parley_sim_live(sim, i) || said_by(sim, i)->follows != said_by(sim, i)->boot) continue;
        *which = i;
        count++;
    }
    return count;
}

static bool one_serves_all(struct parley_sim *sim, void *arg)
{
    const uint32_t *nodes = arg;
    uint32_t server = 0;
    if (servers(sim, *nodes, &server) != 1) return false;
    for (uint32_t i = 0; i < *nodes; i++)
        if (parley_sim_live(sim, i) && said_by(sim, i)->follows != said_by(sim, server)->boot)
            return false;
    return true;
}

static uint32_t server_of_all(struct parley_sim *sim, uint32_t nodes)
{
    uint32_t server = 0;
    scene_until(sim, nodes, one_serves_all, &nodes, 60);
    servers(sim, nodes, &server);
    return server;
}

/* All that live make steps: everybody's count of them grows. */
static void scene_steps(struct parley_sim *sim, uint32_t nodes, uint64_t least)
{
    struct parley_view before[32], after;
    for (uint32_t i = 0; i < nodes; i++)
        before[i] = scene_view(sim, i);
    scene_run(sim, 2 * SECOND);
    for (uint32_t i = 0; i < nodes; i++) {
        after = scene_view(sim, i);
        if (parley_sim_live(sim, i))
            cr_assert_geq(after.version, before[i].version + least, "n%u makes no steps", i);
    }
}

static const struct cast casts[] = {
    {.strategy = PARLEY_STRATEGY_PS_BSP, .nodes = NODES},
    {.strategy = PARLEY_STRATEGY_PS_BSP, .nodes = NODES, .backups = 1},
    {.strategy = PARLEY_STRATEGY_PS_ASP, .nodes = NODES},
    {.strategy = PARLEY_STRATEGY_PS_SSP, .nodes = NODES, .staleness = 2},
};
enum { CASTS = sizeof casts / sizeof *casts };

Test(servers, all_follow_the_first_by_name_and_end_with_its_model)
{
    /* Of every kind: n0 serves, all make steps, and what it has last is what all agree on. */
    for (int c = 0; c < CASTS; c++) {
        struct cast cast = casts[c];
        struct parley_sim *sim = play(&cast, 1);
        scene_train(sim, NODES);
        cr_assert_eq(server_of_all(sim, NODES), 0);
        scene_steps(sim, NODES, 100);
        scene_agree(sim, NODES, 2);
        cr_assert_eq(memcmp(parley_sim_vector(sim, 0), parley_sim_agreed_vector(sim, 3),
                            FLOATS * sizeof(float)),
                     0);
        struct parley_view view = scene_view(sim, 1);
        cr_assert_eq(view.drift_before, 0, "cast %d settled %g", c, view.drift_before);
        parley_sim_free(sim);
    }
}

Test(servers, of_nodes_that_go_on_from_files_the_furthest_serves)
{
    /* It goes on with the optimizer's count of steps, too, and the budget is of both lives. */
    for (int c = 0; c < CASTS; c++) {
        struct cast cast = casts[c];
        cast.steps = 1500;
        cast.resumed = true;
        struct parley_sim *sim = play(&cast, 1);
        scene_train(sim, NODES);
        cr_assert_eq(server_of_all(sim, NODES), 2, "cast %d", c);
        scene_steps(sim, NODES, 100);
        cr_expect_gt(server_of(sim->hosts[2].node)->merged, 440, "cast %d", c);
        if (cast.strategy == PARLEY_STRATEGY_PS_BSP) /* whose steps are the server's */
            cr_expect_geq(said_by(sim, 0)->version + 20, said_by(sim, 2)->version, "cast %d", c);
        scene_until(sim, NODES, parley_sim_agreed, NULL, 60);
        for (uint32_t i = 0; i < NODES; i++)
            cr_expect_eq(said_by(sim, i)->version, 1500, "n%u of cast %d", i, c);
        parley_sim_free(sim);
    }
}

Test(servers, who_serves_in_place_of_another_begins_with_empty_optimizer_vectors)
{
    /* Those of its file are of a model that it has long left. */
    for (int c = 0; c < CASTS; c++) {
        struct cast cast = casts[c];
        cast.resumed = true;
        struct parley_sim *sim = play(&cast, 1);
        scene_train(sim, NODES);
        cr_assert_eq(server_of_all(sim, NODES), 2, "cast %d", c);
        scene_steps(sim, NODES, 100);
        for (uint32_t i = 0; i < NODES; i++) /* what a checkpoint tells of them */
            cr_expect_eq(server_of(sim->hosts[i].node)->merged == 0, i != 2, "n%u of %d", i, c);
        parley_sim_kill(sim, 2, false);
        uint32_t next = server_of_all(sim, NODES);
        cr_assert_neq(next, 2);
        cr_expect_lt(server_of(sim->hosts[next].node)->merged, 200, "cast %d", c);
        scene_agree(sim, NODES, next);
        parley_sim_free(sim);
    }
}

Test(servers, who_comes_later_with_a_newer_file_serves_and_with_an_older_one_does_not)
{
    /* The model that had been kept was overwritten with that of who had begun with none. */
    uint64_t starts[NODES] = {0, SECOND, 2 * SECOND, 3 * SECOND};
    for (int c = 0; c < CASTS; c++) {
        struct cast cast = casts[c];
        cast.starts = starts;
        struct parley_sim *sim = play(&cast, 1);
        uint32_t alone = 1, two = 2;
        scene_until(sim, 1, one_serves_all, &alone, 60);
        scene_run(sim, 3 * SECOND / 2);
        scene_until(sim, 2, one_serves_all, &two, 60);
        cr_expect_eq(said_by(sim, 0)->follows, said_by(sim, 0)->boot, "cast %d", c);
        cr_expect_eq(server_of(sim->hosts[1].node)->reign, 0, "n1 served in cast %d", c);
        scene_run(sim, 2 * SECOND);
        cr_assert_eq(server_of_all(sim, NODES), 2, "cast %d", c);
        cr_expect_gt(said_by(sim, 0)->holds, 2200, "cast %d", c);
        scene_steps(sim, NODES, 100);
        scene_agree(sim, NODES, 2);
        parley_sim_free(sim);
    }
}

Test(servers, who_was_started_without_its_newer_file_first_serves_once_it_brings_it)
{
    /* What the others count of it by then is little of what its file tells of. */
    uint64_t starts[NODES] = {0};
    for (int c = 0; c < CASTS; c++) {
        struct cast cast = casts[c];
        cast.starts = starts;
        cast.forgets = true;
        struct parley_sim *sim = play(&cast, 1);
        scene_train(sim, NODES);
        scene_run(sim, 2 * SECOND);
        cr_assert_lt(said_by(sim, 0)->holds, 2200, "cast %d", c);
        parley_sim_kill(sim, 2, false);
        scene_run(sim, SECOND / 10);
        cast.forgets = false;
        parley_sim_start(sim, 2);
        scene_run(sim, SECOND);
        cr_expect_eq(server_of_all(sim, NODES), 2, "cast %d", c);
        scene_agree(sim, NODES, 2);
        parley_sim_free(sim);
    }
}

static bool third_serves(struct parley_sim *sim, void *arg)
{
    (void)arg;
    return parley_sim_live(sim, 2) && said_by(sim, 2)->follows == said_by(sim, 2)->boot;
}

Test(servers, who_dies_before_anyone_has_the_model_that_it_brings_brings_it_again)
{
    uint64_t starts[NODES] = {0, 0, SECOND, 0};
    for (int c = 0; c < CASTS; c++) {
        struct cast cast = casts[c];
        cast.starts = starts;
        struct parley_sim *sim = play(&cast, 1);
        scene_until(sim, NODES, third_serves, NULL, 2);
        scene_run(sim, 600);
        parley_sim_kill(sim, 2, false);
        scene_run(sim, 3 * SECOND);
        uint32_t others = 3;
        scene_until(sim, NODES, one_serves_all, &others, 10);
        cr_assert_lt(said_by(sim, 0)->holds, 2200, "cast %d: it was early enough", c);
        parley_sim_start(sim, 2);
        scene_run(sim, SECOND);
        cr_expect_eq(server_of_all(sim, NODES), 2, "cast %d", c);
        scene_agree(sim, NODES, 2);
        parley_sim_free(sim);
    }
}

Test(servers, a_step_of_ps_bsp_is_one_of_the_mean_gradient)
{
    /* 20 steps of four nodes against the same in float64: x -= rate * mean of (x - target). */
    struct cast cast = {.strategy = PARLEY_STRATEGY_PS_BSP, .nodes = NODES, .steps = 20};
    struct parley_sim *sim = play(&cast, 2);
    double x[FLOATS], target[FLOATS] = {0}, gap = 0, norm = 0;
    for (int j = 0; j < FLOATS; j++)
        x[j] = parley_sim_vector(sim, 0) ? (double)parley_sim_vector(sim, 0)[j] : 0;
    float gradient[FLOATS], zero[FLOATS] = {0};
    parley_sim_step(sim);
    for (int j = 0; j < FLOATS; j++)
        x[j] = (double)parley_sim_vector(sim, 0)[j];
    for (uint32_t i = 0; i < NODES; i++) {
        sim->task->gradient(sim->task->self, i, 0, zero, gradient, &(struct trainer_turn){0});
        for (int j = 0; j < FLOATS; j++)
            target[j] -= (double)gradient[j] / NODES;
    }
    scene_until(sim, NODES, parley_sim_agreed, NULL, 60);
    for (int j = 0; j < FLOATS; j++) {
        for (int step = 0; step < 20; step++)
            x[j] -= 0.01 * (x[j] - target[j]);
        gap += pow(x[j] - (double)parley_sim_agreed_vector(sim, 1)[j], 2);
        norm += x[j] * x[j];
    }
    cr_assert_leq(sqrt(gap / norm), 1e-6);
    parley_sim_free(sim);
}

/* ---- Deaths ---------------------------------------------------------------------------------- */

struct strike {
    uint64_t number; /* of the frame or chunk */
    uint8_t type;
    bool arriving, server, done;
};

static void strike(struct parley_sim *sim, const struct parley_sim_frame *frame, void *arg)
{
    struct strike *at = arg;
    if (at->done || frame->type != at->type || frame->arriving != at->arriving ||
        frame->number < at->number)
        return;
    uint32_t server = 0;
    if (servers(sim, NODES, &server) != 1) return;
    uint32_t other = frame->from == server ? frame->to : frame->from;
    at->done = true;
    parley_sim_kill(sim, at->server ? server : other, at->number % 2);
}

/* Whoever dies in whatever moment of a step: the others make steps, by one server, and agree. */
static void kill_in_a_step(bool server)
{
    for (int c = 0; c < CASTS; c++)
        for (uint64_t k = 0; k < 6; k++) {
            struct cast cast = casts[c];
            struct parley_sim *sim = play(&cast, 10 + k);
            scene_train(sim, NODES);
            server_of_all(sim, NODES);
            scene_run(sim, 100000);
            struct strike at = {
                .type = k & 1 ? WIRE_STRATEGY : WIRE_CHUNK, .arriving = k & 2, .server = server};
            at.number = parley_sim_frames(sim, at.type) + 1 + 3 * k;
            parley_sim_on_frame(sim, strike, &at);
            scene_until(sim, NODES, scene_is_set, &at.done, 10);
            scene_run(sim, 12 * SECOND);
            server_of_all(sim, NODES);
            scene_steps(sim, NODES, 100);
            uint32_t who = parley_sim_live(sim, 1) ? 1 : 2;
            scene_agree(sim, NODES, who);
            parley_sim_free(sim);
        }
}

Test(servers, another_takes_over_when_the_server_dies_in_a_step)
{
    /* See above. */
    kill_in_a_step(true);
}

Test(servers, a_step_goes_on_with_who_is_left_when_a_worker_dies)
{
    /* See above. */
    kill_in_a_step(false);
}

Test(servers, a_takeover_loses_at_most_what_came_after_the_newest_copy)
{
    /* ps-bsp: every live worker has all rounds but the last one; so has who takes over. */
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct cast cast = {.strategy = PARLEY_STRATEGY_PS_BSP, .nodes = NODES};
        struct parley_sim *sim = play(&cast, seed);
        scene_train(sim, NODES);
        uint32_t server = server_of_all(sim, NODES);
        scene_run(sim, 500000 + 700 * seed);
        uint64_t held = said_by(sim, server)->holds;
        parley_sim_kill(sim, server, false);
        uint32_t next = server_of_all(sim, NODES);
        cr_assert_geq(said_by(sim, next)->holds + NODES, held);
        parley_sim_free(sim);
    }
}

/* ---- What each strategy promises ------------------------------------------------------------- */

static uint64_t version_of(struct parley_sim *sim, uint32_t node)
{
    return scene_view(sim, node).version;
}

Test(servers, ps_ssp_keeps_each_within_its_bound_of_the_slowest)
{
    /* A node five times slower: the others get as far ahead as they may, and no further. */
    for (uint32_t staleness = 0; staleness <= 6; staleness += 3) {
        struct cast cast = {
            .strategy = PARLEY_STRATEGY_PS_SSP, .nodes = NODES, .staleness = staleness};
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

Test(servers, what_a_worker_of_ps_ssp_reads_has_all_that_its_bound_asks_for)
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

Test(servers, gradients_of_as_many_workers_as_there_can_be_wait_for_one_step)
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

Test(servers, of_more_than_can_be_served_that_come_at_once_the_rest_is_told_and_ends)
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

Test(servers, ps_asp_waits_for_nobody)
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

Test(servers, a_mean_scales_the_gradient_and_staleness_the_rate)
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

Test(servers, backup_workers_are_not_waited_for)
{
    /* With one a hundred times slower, ps-bsp makes its steps; but with a backup worker hardly
     * fewer than without any slow one. */
    uint64_t made[2];
    for (uint32_t backups = 0; backups < 2; backups++) {
        struct cast cast = {.strategy = PARLEY_STRATEGY_PS_BSP, .nodes = NODES, .backups = backups};
        struct parley_sim *sim = play(&cast, 4);
        scene_train(sim, NODES);
        scene_run(sim, 1 * SECOND);
        uint64_t before = said_by(sim, 0)->version;
        parley_sim_slow(sim, 3, 100);
        scene_run(sim, 5 * SECOND);
        made[backups] = said_by(sim, 0)->version - before;
        scene_agree(sim, NODES, 1);
        parley_sim_free(sim);
    }
    cr_assert_lt(made[0], 20);
    cr_assert_gt(made[1], 700);
}

/* ---- Other troubles -------------------------------------------------------------------------- */

Test(servers, of_two_servers_one_goes_on_when_a_partition_heals)
{
    /* Each side has its own for a while; then all follow the one with more in its model. */
    for (int c = 0; c < CASTS; c++) {
        struct cast cast = casts[c];
        struct parley_sim *sim = play(&cast, 5);
        const uint32_t sides[] = {0, 1, 1, 0};
        scene_train(sim, NODES);
        server_of_all(sim, NODES);
        parley_sim_partition(sim, sides);
        scene_run(sim, 40 * SECOND);
        uint32_t server = 0;
        cr_assert_eq(servers(sim, NODES, &server), 2);
        parley_sim_heal(sim);
        scene_run(sim, 5 * SECOND);
        server = server_of_all(sim, NODES);
        for (uint32_t i = 0; i < NODES; i++)
            cr_assert(i == server || server_of(sim->hosts[i].node)->count == 0,
                      "n%u keeps the workers that it had", i);
        scene_steps(sim, NODES, 100);
        scene_agree(sim, NODES, 3);
        parley_sim_free(sim);
    }
}

Test(servers, who_can_not_be_heard_is_not_waited_for)
{
    /* What n3 sends does not reach n0, who serves; others say that it lives. */
    for (int c = 0; c < CASTS; c++) {
        struct cast cast = casts[c];
        struct parley_sim *sim = play(&cast, 6);
        scene_train(sim, NODES);
        cr_assert_eq(server_of_all(sim, NODES), 0);
        parley_sim_block(sim, 3, 0);
        scene_run(sim, 15 * SECOND);
        uint64_t before = version_of(sim, 1);
        scene_run(sim, 2 * SECOND);
        cr_assert_gt(version_of(sim, 1), before + 100, "cast %d", c);
        parley_sim_heal(sim);
        scene_run(sim, 20 * SECOND);
        scene_steps(sim, NODES, 100);
        scene_agree(sim, NODES, 3);
        parley_sim_free(sim);
    }
}

static double apart(const float *a, const float *b)
{
    double sum = 0;
    for (int j = 0; j < FLOATS; j++)
        sum += pow((double)a[j] - (double)b[j], 2);
    return sqrt(sum);
}

static bool has_ended(struct parley_sim *sim, void *node)
{
    return scene_view(sim, *(uint32_t *)node).phase > PARLEY_PHASE_STOP;
}

Test(servers, who_never_reached_the_server_does_not_end_with_an_untrained_model)
{
    /* n1 and n2 can never link to n0, who serves; n3 has links to all, and the last model. Nor does
     * it where n0 dies once n3 has that: then none of them serves one that is older. */
    for (int c = 0; c < 2 * CASTS; c++) {
        struct cast cast = casts[c / 2];
        float trained[FLOATS], untrained[FLOATS];
        uint32_t linked = 3;
        struct parley_sim *sim = play(&cast, 3);
        for (uint32_t i = 1; i <= 2; i++) {
            parley_sim_block(sim, 0, i);
            parley_sim_block(sim, i, 0);
        }
        scene_train(sim, NODES);
        cr_assert_eq(server_of_all(sim, NODES), 0);
        scene_run(sim, 40 * SECOND);
        memcpy(trained, parley_sim_vector(sim, linked), sizeof trained);
        memcpy(untrained, parley_sim_vector(sim, 1), sizeof untrained);
        parley_sim_stop(sim, linked, PARLEY_STOP_OPERATOR);
        if (c % 2) {
            scene_until(sim, NODES, has_ended, &linked, 10);
            parley_sim_kill(sim, 0, false);
        }
        scene_until(sim, NODES, parley_sim_agreed, NULL, 90);
        scene_same(sim, NODES);
        double moved = apart(parley_sim_agreed_vector(sim, linked), trained);
        cr_assert_lt(moved, 0.1 * apart(untrained, trained), "cast %d: %g of %g", c, moved,
                     apart(untrained, trained));
        parley_sim_free(sim);
    }
}

/* Three ways of not being heard for a minute: n3 sleeps; all but n0 do; two are cut off, and make
 * more steps each than the others, though fewer in all. */
static void part(struct parley_sim *sim, uint32_t nodes, int way)
{
    const uint32_t sides[] = {0, 1, 1, 0, 0, 0};
    if (way == 2) parley_sim_partition(sim, sides);
    for (uint32_t i = 0; i < nodes; i++) {
        if (way == 2)
            parley_sim_slow(sim, i, sides[i] ? 1 : 1.5);
        else if (i == 3 || (way == 1 && i > 0))
            parley_sim_pause(sim, i);
    }
    scene_run(sim, 60 * SECOND);
    parley_sim_heal(sim);
    for (uint32_t i = 0; i < nodes; i++) {
        parley_sim_resume(sim, i);
        parley_sim_slow(sim, i, 1);
    }
}

Test(servers, who_comes_back_after_a_minute_holds_nobody_up)
{
    /* Proves that nobody waits until the steps of that minute have been made up for. */
    for (int c = 0; c < CASTS; c++) {
        for (int way = 0; way < 3; way++) {
            struct cast cast = casts[c];
            cast.step_us = 12000;
            if (way == 2) cast.nodes = 6;
            struct parley_sim *sim = play(&cast, 8);
            scene_train(sim, cast.nodes);
            server_of_all(sim, cast.nodes);
            part(sim, cast.nodes, way);
            server_of_all(sim, cast.nodes);
            scene_run(sim, 3 * SECOND);
            scene_steps(sim, cast.nodes, 50);
            scene_agree(sim, cast.nodes, 3);
            parley_sim_free(sim);
        }
    }
}

Test(servers, who_has_served_alone_comes_back_as_from_another_server)
{
    /* Proves that what a node computes while it serves names its own reign, and not that of whom it
     * followed before: who serves then would take a gradient of another model, and let it wait for
     * the others to make all the steps that it has made meanwhile. */
    struct cast cast = {.strategy = PARLEY_STRATEGY_PS_SSP, .nodes = NODES, .staleness = 2};
    const uint32_t sides[NODES] = {0, 1, 0, 0};
    struct parley_sim *sim = play(&cast, 9);
    scene_train(sim, NODES);
    cr_assert_eq(server_of_all(sim, NODES), 0);
    scene_run(sim, SECOND); /* n1 has had models of n0 */
    parley_sim_partition(sim, sides);
    for (uint32_t i = 0; i < NODES; i++)
        parley_sim_slow(sim, i, sides[i] ? 1 : 1.5);
    scene_run(sim, 60 * SECOND);
    cr_assert_gt(said_by(sim, 1)->version, said_by(sim, 2)->version + 1000);
    parley_sim_heal(sim);
    cr_assert_eq(server_of_all(sim, NODES), 0);
    scene_steps(sim, NODES, 100);
    parley_sim_free(sim);
}

/* They train, and the one that serves is told to leave. */
static struct parley_sim *server_leaves(struct cast *cast, uint64_t seed, uint32_t *server)
{
    struct parley_sim *sim = play(cast, seed);
    scene_train(sim, NODES);
    *server = server_of_all(sim, NODES);
    scene_run(sim, 500000);
    parley_sim_leave(sim, *server);
    return sim;
}

Test(servers, a_server_that_leaves_hands_its_model_over)
{
    /* Who takes over has every gradient that the one who left had. */
    for (int c = 0; c < CASTS; c++) {
        struct cast cast = casts[c];
        uint32_t server;
        struct parley_sim *sim = server_leaves(&cast, 7, &server);
        int error;
        while (!parley_sim_finished(sim, server, &error))
            cr_assert(parley_sim_step(sim));
        uint64_t held = said_by(sim, server)->holds;
        uint32_t next = server_of_all(sim, NODES);
        cr_assert_geq(said_by(sim, next)->holds, held, "cast %d", c);
        scene_steps(sim, NODES, 100);
        scene_agree(sim, NODES, 3);
        parley_sim_free(sim);
    }
}

Test(servers, a_server_that_leaves_with_a_model_that_is_not_finite_is_gone_soon)
{
    /* Nobody gets that model, however often it is asked for, and the others train on. */
    for (int c = 0; c < CASTS; c++) {
        struct cast cast = casts[c];
        uint32_t server;
        struct parley_sim *sim = server_leaves(&cast, 8, &server);
        parley_sim_spoil(sim, server, NAN);
        scene_run(sim, 10 * SECOND);
        int error;
        cr_assert(parley_sim_finished(sim, server, &error), "cast %d", c);
        scene_steps(sim, NODES, 100);
        scene_agree(sim, NODES, 3);
        parley_sim_free(sim);
    }
}

/* From when n3, a worker, is told to leave until it has ended. */
static uint64_t leave_us(struct parley_sim *sim)
{
    int error;
    uint64_t since_us = parley_sim_now(sim);
    cr_assert_neq(said_by(sim, 3)->follows, said_by(sim, 3)->boot, "n3 serves");
    parley_sim_leave(sim, 3);
    while (!parley_sim_finished(sim, 3, &error))
        cr_assert(parley_sim_step(sim));
    return parley_sim_now(sim) - since_us;
}

Test(servers, a_worker_that_leaves_is_gone_once_its_gradient_is_taken)
{
    /* In any moment of a step that is at most a step later; nobody stops for it, and where each
     * gradient is a step of its own, the last model has all that were made, its own too. */
    for (int c = 0; c < CASTS; c++)
        for (uint64_t moment = 0; moment < 12; moment++) {
            struct cast cast = casts[c];
            struct parley_sim *sim = play(&cast, 20 + moment);
            scene_train(sim, NODES);
            server_of_all(sim, NODES);
            scene_run(sim, 500000 + 500 * moment);
            uint64_t made = version_of(sim, 3), us = leave_us(sim);
            cr_assert_lt(us, 20000, "cast %d, moment %d: %d us", c, (int)moment, (int)us);
            cr_assert_leq(version_of(sim, 3), made + 1);
            if (moment == 0) scene_steps(sim, NODES, 100);
            scene_agree(sim, NODES, 1);
            made = scene_made(sim, NODES);
            if (cast.strategy != PARLEY_STRATEGY_PS_BSP)
                cr_assert_eq(said_by(sim, 0)->holds, made, "cast %d, moment %d", c, (int)moment);
            parley_sim_free(sim);
        }
}

Test(servers, a_worker_that_has_made_its_steps_leaves_at_once)
{
    /* It asks for the last model only, which comes when n2, far slower, has made its steps, too. */
    for (int c = 2; c < CASTS; c++) {
        struct cast cast = casts[c];
        cast.steps = 50;
        cast.staleness = 50;
        struct parley_sim *sim = play(&cast, 21);
        scene_train(sim, NODES);
        server_of_all(sim, NODES);
        parley_sim_slow(sim, 2, 100);
        scene_run(sim, 2 * SECOND);
        cr_assert_eq(version_of(sim, 3), 50);
        uint64_t us = leave_us(sim);
        cr_assert_lt(us, 2000, "cast %d: %d us", c, (int)us);
        parley_sim_free(sim);
    }
}

Test(servers, a_late_node_takes_the_model_and_works_along)
{
    /* It starts where the slowest is, and nobody stops for it. */
    for (int c = 0; c < CASTS; c++) {
        struct cast cast = casts[c];
        struct parley_sim *sim = play(&cast, 8);
        scene_train(sim, NODES);
        server_of_all(sim, NODES);
        parley_sim_kill(sim, 2, false);
        scene_run(sim, 3 * SECOND);
        parley_sim_start(sim, 2);
        scene_train(sim, NODES);
        server_of_all(sim, NODES);
        scene_steps(sim, NODES, 100);
        scene_agree(sim, NODES, 2);
        parley_sim_free(sim);
    }
}

Test(servers, many_workers_take_no_longer_over_long_lines)
{
    /* Proves that small gradients of any number of workers come in side by side: those of more than
     * eight, one after the other, took 6 ways in place of 2. */
    for (int c = 0; c < CASTS; c++) {
        struct cast cast = casts[c];
        cast.nodes = 20;
        struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 20,
                                                                    .seed = 10,
                                                                    .seeds = 2,
                                                                    .step_us = 1000,
                                                                    .latency_us = 30000,
                                                                    .configure = configure,
                                                                    .arg = &cast});
        scene_train(sim, 20);
        server_of_all(sim, 20);
        uint64_t steps = scene_steps_in(sim, 20, 6 * SECOND);
        cr_assert_gt(steps, 6 * SECOND / (3 * 30000), "%llu", (unsigned long long)steps);
        parley_sim_free(sim);
    }
}

Test(servers, who_serves_makes_no_step_without_those_who_are_about_to_train)
{
    /* Proves that over long lines the first steps are of all: that of ps-bsp is the mean of as many
     * gradients as there are nodes. The server made 29 alone, and 29 steps fewer were made by each
     * of the others. */
    enum { STEPS = 20 };
    struct cast cast = {.strategy = PARLEY_STRATEGY_PS_BSP, .nodes = 8, .steps = STEPS};
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 8,
                                                                .seed = 12,
                                                                .seeds = 2,
                                                                .step_us = 1000,
                                                                .latency_us = 30000,
                                                                .configure = configure,
                                                                .arg = &cast});
    scene_train(sim, 8);
    scene_until(sim, 8, parley_sim_agreed, NULL, 60);
    for (uint32_t i = 0; i < 8; i++) {
        struct parley_view view = scene_view(sim, i);
        cr_assert_eq(view.version, STEPS, "n%u made %llu", i, (unsigned long long)view.version);
    }
    parley_sim_free(sim);
}

static struct parley_sim *play_narrow(struct cast *cast)
{
    /* A model takes 80 ms of the server's line. */
    return scene(&(struct parley_sim_options){.nodes = cast->nodes,
                                              .seed = 11,
                                              .seeds = 2,
                                              .parameters = 25000,
                                              .step_us = 1000,
                                              .latency_us = 1000,
                                              .bandwidth_bytes = 1250000,
                                              .configure = configure,
                                              .arg = cast});
}

Test(servers, models_leave_one_after_the_other_over_a_narrow_line)
{
    /* Proves that of a step of ps-bsp all but one gradient come while models leave: 8 nodes take
     * 8 models' time. Where models left side by side all came at once, and it took 11. */
    struct cast cast = {.strategy = PARLEY_STRATEGY_PS_BSP, .nodes = 8};
    struct parley_sim *sim = play_narrow(&cast);
    scene_train(sim, 8);
    server_of_all(sim, 8);
    scene_run(sim, 3 * SECOND);
    uint64_t steps = scene_steps_in(sim, 8, 40 * SECOND);
    cr_assert_gt(steps, 40 * SECOND / (9 * 80000), "%llu", (unsigned long long)steps);
    parley_sim_free(sim);
}

Test(servers, those_with_narrow_lines_take_their_models_together)
{
    /* Proves that what takes ten times as long over a worker's own line is not waited for: with
     * five such workers a step took 2.2 s where each of them was sent its model after the other. */
    struct cast cast = {.strategy = PARLEY_STRATEGY_PS_BSP, .nodes = 8};
    struct parley_sim *sim = play_narrow(&cast);
    for (uint32_t i = 3; i < 8; i++)
        parley_sim_bandwidth(sim, i, 125000);
    scene_train(sim, 8);
    server_of_all(sim, 8);
    scene_run(sim, 30 * SECOND);
    uint64_t steps = scene_steps_in(sim, 8, 120 * SECOND);
    cr_assert_gt(steps, 60, "%llu", (unsigned long long)steps);
    parley_sim_free(sim);
}

Test(servers, those_who_are_behind_get_their_model_first)
{
    /* Proves that where a narrow line is what all wait for, workers make as many steps each: who
     * was first by name got its model first, time and again. */
    struct cast cast = {.strategy = PARLEY_STRATEGY_PS_ASP, .nodes = 12};
    struct parley_sim *sim = play_narrow(&cast);
    scene_train(sim, 12);
    uint32_t server = server_of_all(sim, 12);
    uint64_t least = UINT64_MAX, most = 0;
    scene_run(sim, 60 * SECOND);
    for (uint32_t i = 0; i < 12; i++) {
        struct parley_view view = scene_view(sim, i);
        if (i == server) continue;
        if (view.version < least) least = view.version;
        if (view.version > most) most = view.version;
    }
    cr_assert_geq(least + 3, most, "%llu and %llu steps", (unsigned long long)least,
                  (unsigned long long)most);
    parley_sim_free(sim);
}

Test(servers, more_workers_than_buffers_take_turns)
{
    /* Fourteen workers, eight places for gradients: all make steps alike. */
    for (int c = 0; c < CASTS; c++) {
        struct cast cast = casts[c];
        cast.nodes = 15;
        cast.narrow = true;
        struct parley_sim *sim = play(&cast, 9);
        scene_train(sim, 15);
        server_of_all(sim, 15);
        scene_steps(sim, 15, 100);
        scene_agree(sim, 15, 3);
        parley_sim_free(sim);
    }
}
