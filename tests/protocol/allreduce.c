/* allreduce.c: rounds of all nodes: what they compute, and that nothing that happens in one parts
 * the models or stops them. */
#include "ring.h"
#include "strike.h"

static void compare_to_means(uint32_t nodes, uint64_t parameters, bool narrow)
{
    struct ring_scene scene = {.strategy = PARLEY_STRATEGY_ALLREDUCE,
                               .nodes = nodes,
                               .seed = 1,
                               .latency_us = 100,
                               .steps = 12,
                               .narrow = narrow,
                               .vectors = {.parameters = parameters}};
    struct parley_sim *sim = begin(&scene);
    scene_until(sim, nodes, parley_sim_agreed, NULL, 30);
    double x[1001] = {0};
    for (uint32_t k = 0; k < 12; k++) {
        double sum[1001] = {0};
        for (uint32_t i = 0; i < nodes; i++) {
            struct rng rng = rng_init(i + 1, k);
            for (uint64_t j = 0; j < parameters; j++)
                sum[j] += x[j] / 10 + rng_normal(&rng);
        }
        for (uint64_t j = 0; j < parameters; j++)
            x[j] -= sum[j] / nodes;
    }
    for (uint64_t j = 0; j < parameters; j++)
        cr_assert_float_eq(parley_sim_agreed_vector(sim, 0)[j], x[j], 1e-5,
                           "%u nodes, %llu of %llu: %g for %g", nodes, (unsigned long long)j,
                           (unsigned long long)parameters, parley_sim_agreed_vector(sim, 0)[j],
                           x[j]);
    end(sim, &scene);
}

Test(allreduce, every_round_is_the_mean_of_all_gradients)
{
    /* Against the sum in float64, for numbers of nodes and parameters that don't divide, for more
     * nodes than parameters, and where one part has room at a time. */
    static const uint32_t nodes[] = {1, 2, 3, 5, 8, 11};
    static const uint64_t parameters[] = {1, 3, 64, 1001};
    for (int n = 0; n < 6; n++)
        for (int p = 0; p < 8; p++)
            compare_to_means(nodes[n], parameters[p / 2], p % 2);
}

Test(allreduce, who_lags_among_many_gets_what_all_have_sent_at_once_and_adds_it)
{
    /* Who sends a stage needs nothing from here for it: as many lie in wait as there are lanes. */
    struct ring_scene scene = {.strategy = PARLEY_STRATEGY_ALLREDUCE,
                               .nodes = NODES_MAX,
                               .seed = 1,
                               .latency_us = 100,
                               .steps = 3,
                               .vectors = {.parameters = NODES_MAX}};
    struct parley_sim *sim = begin(&scene);
    /* To look at all members after each event would be a third of the work. */
    while (!parley_sim_converged(sim, NULL) && parley_sim_now(sim) < 30 * SECOND)
        scene_run(sim, 100);
    cr_assert(parley_sim_converged(sim, NULL));
    parley_sim_pause(sim, 3);
    scene_run(sim, 11 * SECOND / 10);
    parley_sim_resume(sim, 3);
    end(sim, &scene);
}

Test(allreduce, a_sum_of_parts_takes_as_long_as_their_floats_do_however_many_nodes)
{
    /* Proves that the simulator charges a part of a vector for its own floats: 10 ms for all of
     * them, so that a round adds up less than twice that among 4 as among 16. */
    static const uint32_t nodes[] = {4, 16};
    for (int n = 0; n < 2; n++) {
        struct ring_scene scene = {.strategy = PARLEY_STRATEGY_ALLREDUCE,
                                   .nodes = nodes[n],
                                   .seed = 1,
                                   .latency_us = 10,
                                   .compute_us = 5000,
                                   .float_ps = 10000 * UINT64_C(1000000) / 1600,
                                   .vectors = {.parameters = 1600}};
        struct parley_sim *sim = begin(&scene);
        scene_train(sim, nodes[n]);
        scene_run(sim, SECOND);
        double ms = 2000.0 / (double)scene_steps_in(sim, nodes[n], 2 * SECOND);
        cr_assert(ms > 10 && ms < 30, "%u nodes: %g ms a round", nodes[n], ms);
        end(sim, &scene);
    }
}

/* Four rounds of four local steps, and some more that end before a fifth round does, against the
 * same in float64: x += a draw is a local step. */
static void make_rounds(enum parley_strategy strategy, const double *outer, double rate,
                        double momentum, uint32_t more)
{
    struct ring_scene scene = {.strategy = strategy,
                               .nodes = 3,
                               .seed = 1,
                               .latency_us = 100,
                               .steps = 16 + more,
                               .outer = outer,
                               .vectors = {.parameters = 10}};
    struct parley_sim *sim = begin(&scene);
    scene_until(sim, 3, parley_sim_agreed, NULL, 30);
    double x[10] = {0}, velocity[10] = {0};
    for (int round = 0; round < 4; round++) {
        double moved[10] = {0};
        for (uint32_t i = 0; i < 12; i++) {
            struct rng rng = rng_init(i % 3 + 1, 4 * round + i / 3);
            for (int j = 0; j < 10; j++)
                moved[j] += rng_normal(&rng) / 3;
        }
        for (int j = 0; j < 10; j++) {
            velocity[j] = momentum * velocity[j] - moved[j];
            x[j] += rate * (moved[j] - momentum * velocity[j]);
        }
    }
    for (uint32_t i = 0; i < 3 * more; i++) {
        struct rng rng = rng_init(i % 3 + 1, 16 + i / 3);
        for (int j = 0; j < 10; j++)
            x[j] += rng_normal(&rng) / 3;
    }
    for (int j = 0; j < 10; j++)
        cr_assert_float_eq(parley_sim_agreed_vector(sim, 0)[j], x[j], 1e-5,
                           "%g, %g, %u more: %g for %g", rate, momentum, more,
                           parley_sim_agreed_vector(sim, 0)[j], x[j]);
    end(sim, &scene);
}

Test(allreduce, local_steps_and_outer_steps_are_what_they_say)
{
    static const double outer[] = {0.9, 0.8};
    make_rounds(PARLEY_STRATEGY_LOCAL_SGD, NULL, 1, 0, 0);
    make_rounds(PARLEY_STRATEGY_DILOCO, NULL, 0.7, 0.5, 0);
    make_rounds(PARLEY_STRATEGY_DILOCO, outer, 0.9, 0.8, 0);
}

Test(allreduce, a_round_that_the_budget_cuts_short_for_all_is_averaged_and_moves_nothing_else)
{
    static const double outer[] = {0.9, 0.8};
    for (uint32_t more = 1; more < 4; more++) {
        make_rounds(PARLEY_STRATEGY_LOCAL_SGD, NULL, 1, 0, more);
        make_rounds(PARLEY_STRATEGY_DILOCO, outer, 0.9, 0.8, more);
    }
}

/* ---- Four nodes are one with a batch four times as large ---------------------------------------
 */

enum { BATCH = 32, STEPS = 20 };

struct ordered {
    struct sim_training training;
    uint32_t nodes;
};

/* The whole set in one order, of which each step takes the next nodes * batch, dealt by node. */
static int share_in_order(void *pointer, uint32_t node, const struct job_members *members,
                          bool first, uint64_t done, char *why, size_t why_size)
{
    struct ordered *self = pointer;
    struct sampler *sampler = &self->training.own[node].sampler;
    struct rng rng = rng_init(9, 9);
    (void)done;
    (void)members;
    (void)why;
    (void)why_size;
    if (!first) return 0;
    uint32_t samples = self->training.job->data.train.count, mine = 4 * BATCH / self->nodes;
    int error = sampler_init(sampler, NULL, samples, 1);
    for (uint32_t at = 0; at < STEPS * 4 * BATCH && !error; at++) {
        uint32_t sample = rng_below(&rng, samples), step = at / (4 * BATCH);
        if (at % (4 * BATCH) / mine == node) sampler->order[step * mine + at % mine] = sample;
    }
    return error;
}

/* What is made of these flags; with the order above, if asked for. The trained model is left in x.
 */
static void train_job(enum parley_strategy strategy, uint32_t nodes, int count, char **argv,
                      bool in_order, float *x, size_t *n)
{
    char why[SETTINGS_WHY_BYTES];
    struct settings settings;
    struct job job;
    settings_init(&settings);
    cr_assert_eq(settings_flags(&settings, count, argv, why), 0, "%s", why);
    cr_assert_eq(settings_finish(&settings, why), 0, "%s", why);
    cr_assert_eq(job_init(&job, &settings, NULL, NULL, why, sizeof why), 0, "%s", why);
    struct ordered ordered = {.nodes = nodes};
    struct ring_scene scene = {
        .strategy = strategy, .nodes = nodes, .seed = 1, .steps = (uint32_t)settings.steps};
    cr_assert_eq(sim_training_init(&ordered.training, &scene.task, &job, nodes, 1), 0);
    if (in_order) scene.task.share = share_in_order;
    struct parley_sim *sim = begin_task(&scene);
    scene_until(sim, nodes, parley_sim_agreed, NULL, 30);
    *n = scene.task.parameters;
    memcpy(x, parley_sim_agreed_vector(sim, 0), *n * sizeof *x);
    parley_sim_free(sim);
    sim_training_close(&ordered.training);
    job_close(&job);
    settings_close(&settings);
}

static void train_in_order(enum parley_strategy strategy, uint32_t nodes, const char *optimizer,
                           float *x, size_t *n)
{
    const char *word = option_info(OPTION_ID_STRATEGY)->valid[strategy];
    char batch[12], count[12];
    snprintf(batch, sizeof batch, "%u", 4 * BATCH / nodes);
    snprintf(count, sizeof count, "%u", nodes);
    char *argv[] = {"parley",  "sim",        "--nodes",    count,         "--batch",
                    batch,     "--strategy", (char *)word, "--model",     "mlp:32",
                    "--steps", "20",         "--schedule", "constant",    "--lr",
                    "0.05",    "--lr-scale", "none",       "--optimizer", (char *)optimizer,
                    NULL};
    train_job(strategy, nodes, 20, argv, true, x, n);
}

/* ||a - b|| / ||b|| */
static double apart(const float *a, const float *b, size_t n)
{
    double gap = 0, norm = 0;
    for (size_t j = 0; j < n; j++) {
        gap += pow((double)a[j] - b[j], 2);
        norm += pow(b[j], 2);
    }
    return sqrt(gap / norm);
}

Test(allreduce, four_nodes_equal_one_with_a_batch_four_times_as_large)
{
    /* 20 steps on the same samples in the same order differ by rounding only. */
    static const char *const optimizers[] = {"sgd", "momentum", "adam"};
    static float four[40000], one[40000];
    static const enum parley_strategy strategies[] = {PARLEY_STRATEGY_ALLREDUCE,
                                                      PARLEY_STRATEGY_PS_BSP};
    for (int o = 0; o < 6; o++) {
        size_t n;
        if (o % 2 == 0) train_in_order(strategies[0], 1, optimizers[o / 2], one, &n);
        train_in_order(strategies[o % 2], 4, optimizers[o / 2], four, &n);
        double gap = apart(four, one, n);
        cr_assert_lt(gap, 1e-5, "%s: %g", optimizers[o / 2], gap);
        cr_assert(gap > 0, "two runs of one kind were compared");
    }
}

Test(allreduce, full_batches_are_of_the_whole_set_whoever_has_how_much_of_it)
{
    /* Shares of unlike size, and the whole set at each node, make the steps of one node alone. */
    static const char *const partitions[] = {"iid", "dirichlet:0.3", "all"};
    static float four[8000], one[8000];
    size_t n;
    char *argv[] = {"parley",      "sim",       "--nodes", "1",       "--partition", "all",
                    "--optimizer", "gd",        "--model", "softmax", "--steps",     "5",
                    "--schedule",  "constant",  "--lr",    "0.1",     "--lr-scale",  "none",
                    "--strategy",  "allreduce", NULL};
    train_job(PARLEY_STRATEGY_ALLREDUCE, 1, 20, argv, false, one, &n);
    argv[3] = "4";
    for (int p = 0; p < 3; p++) {
        argv[5] = (char *)partitions[p];
        train_job(PARLEY_STRATEGY_ALLREDUCE, 4, 20, argv, false, four, &n);
        double gap = apart(four, one, n);
        cr_assert_lt(gap, 1e-5, "%s: %g", partitions[p], gap);
        cr_assert(gap > 0, "two runs of one kind were compared");
    }
}

/* By how much each node moved its first parameter in each round. */
static float moves[4][64];
static uint32_t moves_count[4], steps_told;

static void noted_apply(void *pointer, uint32_t node, uint32_t thread, float *const *vectors,
                        const float *from, float factor, const struct trainer_turn *turn)
{
    if (moves_count[node] < 64) moves[node][moves_count[node]++] = factor * from[0];
    vectors_apply(pointer, node, thread, vectors, from, factor, turn);
}

static uint32_t short_now_and_then(void *pointer, uint32_t node)
{
    (void)pointer;
    return node == 1 && ++steps_told % 5 == 0 ? 16 : 32;
}

Test(allreduce, a_short_batch_at_one_node_moves_all_alike)
{
    /* Proves that what the sum is divided by does not hang on the samples of one node's step: the
     * last batch of a pass may be a short one. */
    struct ring_scene scene = {.strategy = PARLEY_STRATEGY_ALLREDUCE,
                               .nodes = 4,
                               .seed = 1,
                               .latency_us = 100,
                               .vectors = {.parameters = 64}};
    scene.task = task_of(&scene);
    scene.task.batch = 32;
    scene.task.samples = short_now_and_then;
    scene.task.apply = noted_apply;
    struct parley_sim *sim = begin_task(&scene);
    scene_train(sim, 4);
    scene_run(sim, SECOND);
    cr_assert_gt(steps_told, 10);
    for (uint32_t k = 5; k < 30; k++) /* from when all were there */
        for (uint32_t i = 1; i < 4; i++)
            cr_assert_eq(memcmp(&moves[i][k], &moves[0][k], sizeof(float)), 0,
                         "round %u: n%u moves by %g, n0 by %g", k, i, moves[i][k], moves[0][k]);
    end(sim, &scene);
}

/* Its loss tells nothing of it. */
static double overflowing_gradient(void *pointer, uint32_t node, uint32_t thread, const float *x,
                                   float *to, const struct trainer_turn *turn)
{
    struct vectors *self = pointer;
    double loss = vectors_gradient(pointer, node, thread, x, to, turn);
    if (node == 2 && self->made[node] == 20) to[self->parameters / 2] = INFINITY;
    return loss;
}

Test(allreduce, a_gradient_that_is_not_finite_goes_into_no_sum)
{
    /* Whose it is ends with status 8; the others, whose models it would have ended, go on. */
    struct ring_scene scene = {.strategy = PARLEY_STRATEGY_ALLREDUCE,
                               .nodes = 4,
                               .seed = 5,
                               .latency_us = 100,
                               .vectors = {.parameters = 64}};
    scene.task = task_of(&scene);
    scene.task.gradient = overflowing_gradient;
    struct parley_sim *sim = begin_task(&scene);
    int error;
    scene_train(sim, 4);
    scene_run(sim, SECOND);
    cr_assert(parley_sim_finished(sim, 2, &error) && error == PARLEY_EDIVERGED);
    cr_assert_gt(scene.vectors.made[0], 30);
    end(sim, &scene);
}

/* ---- What goes wrong --------------------------------------------------------------------------
 */

static void strike_all_over_a_round(enum parley_strategy strategy, uint32_t times, bool cut)
{
    static const uint8_t types[] = {WIRE_STRATEGY, WIRE_CHUNK};
    uint32_t nodes = 4;
    for (uint32_t k = 0; k < times; k++) {
        struct ring_scene scene = {.strategy = strategy,
                                   .nodes = nodes,
                                   .seed = k + 1,
                                   .latency_us = 150,
                                   .vectors = {.parameters = 64}};
        struct strike at = {
            .type = types[k % 2], .arriving = k / 2 % 2, .at_receiver = k / 4 % 2, .cut = cut};
        struct parley_sim *sim = begin(&scene);
        scene_train(sim, nodes);
        scene_run(sim, 30000);
        at.number = k + (at.arriving ? sim->arrivals : sim->frames)[at.type];
        parley_sim_on_frame(sim, strike, &at);
        scene_run(sim, 2 * SECOND);
        cr_assert(at.done);
        cr_assert_eq(parley_sim_live_count(sim), cut ? nodes : nodes - 1);
        uint32_t who = parley_sim_live(sim, 0) ? 0 : 1;
        struct parley_view before = scene_view(sim, who);
        scene_run(sim, 11 * SECOND / 10);
        struct parley_view after = scene_view(sim, who);
        cr_assert_gt(after.version, before.version, "nothing moves after strike %u", k);
        end(sim, &scene);
    }
}

Test(allreduce, a_death_anywhere_in_a_round_ends_in_one_model)
{
    /* Killed at frame after frame of a round, as sender and as receiver: the others go on, and all
     * have the same model to the bit, whoever had completed the round. */
    strike_all_over_a_round(PARLEY_STRATEGY_ALLREDUCE, 24, false);
}

Test(allreduce, a_link_cut_anywhere_in_a_round_costs_nothing)
{
    /* Parts that were lost are sent again over the next link. */
    strike_all_over_a_round(PARLEY_STRATEGY_ALLREDUCE, 12, true);
}

Test(allreduce, deaths_and_cuts_stop_no_round_of_models)
{
    /* The same for strategies that average models now and then. */
    strike_all_over_a_round(PARLEY_STRATEGY_LOCAL_SGD, 8, false);
    strike_all_over_a_round(PARLEY_STRATEGY_DILOCO, 8, false);
    strike_all_over_a_round(PARLEY_STRATEGY_DILOCO, 4, true);
}

/* With k from 0 on of each strategy on the ring in turn. */
static struct ring_scene four_of_each(uint32_t k)
{
    static const enum parley_strategy strategies[] = {
        PARLEY_STRATEGY_ALLREDUCE, PARLEY_STRATEGY_LOCAL_SGD, PARLEY_STRATEGY_DILOCO};
    return (struct ring_scene){.strategy = strategies[k % 3],
                               .nodes = 4,
                               .seed = k + 1,
                               .latency_us = 200,
                               .vectors = {.parameters = 64}};
}

Test(allreduce, who_joins_late_is_in_the_sums)
{
    /* A newcomer takes the state of its left and enters at a round: one model still. */
    for (uint32_t k = 0; k < 9; k++) {
        struct ring_scene scene = four_of_each(k);
        struct parley_sim *sim = begin(&scene);
        scene_train(sim, 4);
        scene_run(sim, 40000 + 1300 * k);
        parley_sim_kill(sim, k % 4, false);
        scene_run(sim, 2 * SECOND);
        parley_sim_start(sim, k % 4);
        scene_run(sim, 2 * SECOND);
        struct parley_view view = scene_view(sim, k % 4);
        cr_assert_gt(view.version, 50, "%llu steps", (unsigned long long)view.version);
        cr_assert_eq(view.ledger.joins, 1);
        if (scene.strategy == PARLEY_STRATEGY_ALLREDUCE) /* whose steps all make in common */
            cr_expect_leq(scene_view(sim, (k + 1) % 4).steps, view.steps + 1, "%u", k);
        end(sim, &scene);
    }
}

Test(allreduce, who_comes_back_with_its_file_takes_the_state_of_those_who_have_gone_on)
{
    /* Proves that nobody takes up an old file instead: a file counts steps, and where a round is
     * some of them its node stood far ahead of all, round by round around the ring. */
    for (uint32_t k = 0; k < 9; k++) {
        struct ring_scene scene = four_of_each(k);
        uint32_t back = k % 4;
        scene.compute_us = 5000;
        struct parley_sim *sim = begin(&scene);
        scene_train(sim, 4);
        scene_run(sim, 2 * SECOND);
        uint64_t steps = scene_view(sim, back).version;
        cr_assert_gt(steps, 200);
        scene.resumed = (struct parley_resumed){steps, steps, steps, 4 * steps, 2 * SECOND};
        parley_sim_kill(sim, back, false);
        scene_run(sim, SECOND);
        parley_sim_start(sim, back);
        scene_run(sim, 2 * SECOND);
        for (uint32_t i = 0; i < 4; i++)
            cr_assert_eq(scene_view(sim, i).ledger.joins, i == back, "n%u", i);
        end(sim, &scene);
    }
}

static void came_late(struct parley_config *config, uint32_t node, void *arg)
{
    static const struct parley_resumed files[] = {{700, 700, 12000, 20000, 0},
                                                  {8000, 8000, 8000, 16000, 0}};
    const enum parley_strategy *strategy = arg;
    config->strategy = *strategy;
    config->mix_every = 4;
    config->min_peers = 1;
    config->resumed = files[node];
}

Test(allreduce, of_files_that_of_the_model_with_most_steps_is_followed_whoever_made_them)
{
    /* Proves that a node which had come late, and so has made few steps itself, does not lose the
     * model of all to an older file of one that was there from the beginning. */
    enum parley_strategy strategies[] = {PARLEY_STRATEGY_LOCAL_SGD, PARLEY_STRATEGY_DILOCO};
    for (uint32_t k = 0; k < 2; k++) {
        struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 2,
                                                                    .seed = k + 1,
                                                                    .step_us = 5000,
                                                                    .latency_us = 200,
                                                                    .configure = came_late,
                                                                    .arg = &strategies[k]});
        scene_train(sim, 2);
        scene_run(sim, 2 * SECOND);
        cr_assert_eq(scene_view(sim, 0).ledger.joins, 0);
        cr_assert_eq(scene_view(sim, 1).ledger.joins, 1);
        scene_agree(sim, 2, 0);
        parley_sim_free(sim);
    }
}

static void configure_ring(struct parley_config *config, uint32_t node, void *arg)
{
    const uint32_t *nodes = arg;
    (void)node;
    config->strategy = PARLEY_STRATEGY_ALLREDUCE;
    config->min_peers = *nodes - 1;
}

Test(allreduce, a_step_takes_the_time_that_the_lines_need)
{
    /* Of each node's line 2 (n-1)/n times the model. What else crosses it, and what is waited for
     * between the stages, is less than a hundredth. */
    static const uint32_t sizes[] = {3, 8, 13};
    for (int k = 0; k < 3; k++) {
        uint32_t n = sizes[k];
        const struct parley_sim_options options = {.nodes = n,
                                                   .parameters = 50000,
                                                   .seed = 1,
                                                   .rate = 0.01,
                                                   .step_us = 10000,
                                                   .bandwidth_bytes = 2500000,
                                                   .configure = configure_ring,
                                                   .arg = &n};
        struct parley_sim *sim = scene(&options);
        scene_train(sim, n);
        scene_run(sim, SECOND);
        double step_s = 20.0 / (double)scene_steps_in(sim, n, 20 * SECOND);
        double wanted_s = 0.01 + 2 * (n - 1.0) / n * 50000 * sizeof(float) / 2500000;
        cr_assert_geq(step_s, 0.99 * wanted_s, "%u nodes: %g s for %g", n, step_s, wanted_s);
        cr_assert_leq(step_s, 1.01 * wanted_s, "%u nodes: %g s for %g", n, step_s, wanted_s);
        parley_sim_free(sim);
    }
}

/* What a step of n nodes takes, in ways of a long line. */
static double ways_of(uint32_t nodes, bool narrow)
{
    enum { WAY_US = 30000 };
    struct ring_scene scene = {.strategy = PARLEY_STRATEGY_ALLREDUCE,
                               .nodes = nodes,
                               .seed = 1,
                               .latency_us = WAY_US,
                               .compute_us = 5000,
                               .narrow = narrow,
                               .vectors = {.parameters = 256}};
    struct parley_sim *sim = begin(&scene);
    scene_train(sim, nodes);
    scene_run(sim, 2 * SECOND);
    double step_us = 30.0 * SECOND / (double)scene_steps_in(sim, nodes, 30 * SECOND);
    parley_sim_free(sim);
    return (step_us - (double)scene.compute_us) / WAY_US;
}

Test(allreduce, a_step_takes_two_ways_for_each_doubling_of_the_nodes_and_one_more)
{
    /* The one: nobody sends what is not asked for. Where one part has room at a time, each but the
     * first of the sum is asked for once the one before it is added, and what is done, once. */
    static const uint32_t nodes[] = {2, 3, 5, 8, 16, 33};
    static const double stages[] = {1, 2, 3, 3, 4, 6};
    for (int n = 0; n < 6; n++) {
        double ways = ways_of(nodes[n], false), narrow = ways_of(nodes[n], true);
        cr_expect_float_eq(ways, 2 * stages[n] + 1, 0.1, "%u nodes: %g ways", nodes[n], ways);
        cr_expect_float_eq(narrow, 3 * stages[n] + 1, 0.1, "%u nodes: %g ways", nodes[n], narrow);
    }
}

Test(allreduce, the_first_rounds_of_many_wait_for_no_news_of_each_other)
{
    /* That all train is heard of within seconds. Until then they stay members, and who counts them
     * otherwise still gives the others what they lack of a round that is over. */
    static const uint32_t sizes[] = {16, 80};
    for (int n = 0; n < 2; n++) {
        struct ring_scene scene = {.strategy = PARLEY_STRATEGY_ALLREDUCE,
                                   .nodes = sizes[n],
                                   .seed = 1,
                                   .latency_us = 10,
                                   .steps = 100000,
                                   .vectors = {.parameters = 256}};
        struct parley_sim *sim = begin(&scene);
        struct parley_view view;
        uint64_t end_us = UINT64_MAX;
        do {
            scene_run(sim, 1000);
            view = scene_view(sim, 0);
            if (end_us == UINT64_MAX && view.version > 0) end_us = parley_sim_now(sim) + SECOND / 2;
        } while (view.version <= 300 && parley_sim_now(sim) < end_us);
        cr_expect_gt(view.version, 300, "%u nodes: %llu steps", sizes[n],
                     (unsigned long long)view.version);
        parley_sim_free(sim);
    }
}

Test(allreduce, a_pool_of_the_least_size_has_room_for_the_links_of_a_sum)
{
    /* With less, each would hold links for stages whose senders find no room for theirs. */
    static const uint32_t sizes[] = {8, 16, 32}, links[] = {12, 16, 20};
    for (int n = 0; n < 3; n++) {
        struct ring_scene scene = {.strategy = PARLEY_STRATEGY_ALLREDUCE,
                                   .nodes = sizes[n],
                                   .seed = 1,
                                   .latency_us = 1000,
                                   .compute_us = 5000,
                                   .links = links[n],
                                   .vectors = {.parameters = 256}};
        struct parley_sim *sim = begin(&scene);
        scene_train(sim, sizes[n]);
        uint64_t steps = scene_steps_in(sim, sizes[n], 4 * SECOND);
        cr_expect_gt(steps, 200, "%u nodes: %llu steps", sizes[n], (unsigned long long)steps);
        parley_sim_free(sim);
    }
}

Test(allreduce, all_wait_for_a_paused_node_and_go_on_without_a_dead_one)
{
    /* What it is: a node that stops is waited for until it is called dead; back, it follows. */
    struct ring_scene scene = {.strategy = PARLEY_STRATEGY_ALLREDUCE,
                               .nodes = 4,
                               .seed = 3,
                               .latency_us = 200,
                               .vectors = {.parameters = 64}};
    struct parley_sim *sim = begin(&scene);
    scene_train(sim, 4);
    scene_run(sim, 100000);
    parley_sim_pause(sim, 2);
    scene_run(sim, 10000);
    struct parley_view view = scene_view(sim, 0);
    scene_run(sim, 200000);
    struct parley_view later = scene_view(sim, 0);
    cr_assert_leq(later.version, view.version + 1);
    scene_run(sim, 30 * SECOND);
    later = scene_view(sim, 0);
    cr_assert_gt(later.version, view.version + 100);
    parley_sim_resume(sim, 2);
    scene_run(sim, 10 * SECOND);
    end(sim, &scene);
}

Test(allreduce, a_partition_that_heals_ends_in_one_history)
{
    /* Each half goes on by itself; afterwards those behind take the state of those ahead. */
    struct ring_scene scene = {.strategy = PARLEY_STRATEGY_ALLREDUCE,
                               .nodes = 5,
                               .seed = 4,
                               .latency_us = 200,
                               .vectors = {.parameters = 64}};
    struct parley_sim *sim = begin(&scene);
    scene_train(sim, 5);
    scene_run(sim, 50000);
    parley_sim_partition(sim, (uint32_t[]){0, 0, 1, 1, 1});
    scene_run(sim, 20 * SECOND);
    parley_sim_heal(sim);
    scene_run(sim, 20 * SECOND);
    end(sim, &scene);
}

Test(allreduce, who_slept_as_its_steps_were_made_is_not_waited_for_without_end)
{
    /* Proves that who has made its budget in the middle of a round, and has not heard that others
     * wait for its part, gives up that round as they are rounds ahead. */
    struct ring_scene scene = {.strategy = PARLEY_STRATEGY_LOCAL_SGD,
                               .nodes = 3,
                               .seed = 1,
                               .latency_us = 100,
                               .steps = 15002,
                               .late_us = 12 * SECOND,
                               .vectors = {.parameters = 10}};
    struct parley_sim *sim = begin(&scene);
    while (scene_view(sim, 0).version < scene.steps)
        scene_run(sim, 100);
    parley_sim_pause(sim, 0);
    parley_sim_disconnect(sim, 0, 1);
    parley_sim_disconnect(sim, 0, 2);
    scene_run(sim, 10 * SECOND);
    cr_assert_lt(scene_view(sim, 2).version, scene.steps);
    parley_sim_resume(sim, 0);
    end(sim, &scene);
}
