/* program.c: nodes train what the embedding program trains, by its own function. */
#include <math.h>
#include <string.h>

#include "scene.h"

enum { NODES = 6, FLOATS = 8, STEPS = 300 };

/* Each node is drawn to a target of its own, its number plus the place; vectors[1] counts steps. */
struct program {
    enum parley_strategy strategy;
    double part;      /* of the way to the target that a step goes */
    uint32_t lost_at; /* of n2: the loss of that step is not finite; 0: of none */
    struct told {
        uint32_t begun, started, steps, gradients, applied;
        double progress, weight; /* the furthest from 1 */
        uint64_t state_steps;
        uint32_t live;
    } told[NODES];
};

static float target(uint32_t node, int j)
{
    return (float)node + (float)j / FLOATS;
}

static void configure(struct parley_config *config, uint32_t node, void *arg)
{
    const struct program *program = arg;
    (void)node;
    config->strategy = program->strategy;
    config->min_peers = NODES - 1;
    config->steps_budget = STEPS;
}

static void begin(float *const *vectors, uint32_t node, void *arg)
{
    struct program *program = arg;
    program->told[node] = (struct told){.begun = program->told[node].begun + 1};
    for (int j = 0; j < FLOATS; j++) {
        cr_assert_eq(vectors[0][j], 0);
        cr_assert_eq(vectors[1][j], 0);
        vectors[0][j] = -1;
    }
}

static double work(float *const *vectors, const struct parley_turn *turn, uint32_t node, void *arg)
{
    struct program *program = arg;
    struct told *told = &program->told[node];
    double loss = 0;
    told->started += turn->started;
    told->steps += turn->work == PARLEY_WORK_STEP;
    told->gradients += turn->work == PARLEY_WORK_GRADIENT;
    told->applied += turn->work == PARLEY_WORK_APPLY;
    cr_assert(turn->progress >= 0 && turn->progress <= 1);
    told->progress = turn->progress;
    told->weight = fmax(told->weight, fabs(turn->weight - 1));
    told->live = turn->live;
    if (turn->work != PARLEY_WORK_GRADIENT) vectors[1][0]++;
    if (turn->work != PARLEY_WORK_GRADIENT) told->state_steps = turn->state_steps;
    for (int j = 0; j < FLOATS; j++) {
        if (turn->work == PARLEY_WORK_APPLY) {
            float rate = (float)(program->part / turn->weight);
            vectors[0][j] -= rate * turn->factor * turn->gradient[j];
            continue;
        }
        const float *x = turn->work == PARLEY_WORK_STEP ? vectors[0] : turn->at;
        float gap = x[j] - target(node, j);
        loss += (double)gap * (double)gap / 2;
        if (turn->work == PARLEY_WORK_STEP)
            vectors[0][j] -= (float)(program->part / turn->weight) * gap;
        else
            turn->gradient[j] = gap;
    }
    if (program->lost_at > 0 && node == 2 && told->steps == program->lost_at) return NAN;
    return loss;
}

static struct parley_sim *rehearse(struct program *program, uint32_t threads)
{
    return scene(&(struct parley_sim_options){.nodes = NODES,
                                              .parameters = FLOATS,
                                              .vectors = 2,
                                              .seed = 3,
                                              .step_us = 1000,
                                              .latency_us = 200,
                                              .threads = threads,
                                              .begin = begin,
                                              .work = work,
                                              .samples = 4,
                                              .configure = configure,
                                              .arg = program});
}

/* How far the agreed model is from the best one, the mean of all targets. */
static double error_of(const struct parley_sim *sim)
{
    const float *x = parley_sim_agreed_vector(sim, 0);
    double most = 0, best = (NODES - 1) / 2.0;
    for (int j = 0; j < FLOATS; j++)
        most = fmax(most, fabs((double)x[j] - best - (double)j / FLOATS));
    return most;
}

Test(program, steps_are_the_program_s_own_and_it_is_told_how_far_they_are)
{
    struct program program = {.strategy = PARLEY_STRATEGY_GOSSIP, .part = 0.02};
    struct parley_sim *sim = rehearse(&program, 1);
    scene_until(sim, NODES, parley_sim_agreed, NULL, 30);
    scene_same(sim, NODES);
    cr_expect_lt(error_of(sim), 0.7);
    for (uint32_t i = 0; i < NODES; i++) {
        const struct told *told = &program.told[i];
        struct parley_view view = scene_view(sim, i);
        cr_expect_eq(told->begun, 2, "as the simulation is made, and as the node starts");
        cr_expect_eq(told->started, 1);
        cr_expect_geq(told->steps, STEPS);
        cr_expect_eq(told->gradients + told->applied, 0);
        cr_expect_eq(told->state_steps, told->steps - 1);
        cr_expect_eq(told->live, NODES);
        cr_expect_gt(told->progress, 0.9);
        cr_expect_eq(view.samples_cluster, 4 * NODES * view.version);
    }
    parley_sim_free(sim);
}

/* All gradients are at one model, so it goes the same way as one node that has all the data. */
static void goes_as_one(enum parley_strategy strategy)
{
    struct program program = {.strategy = strategy, .part = 0.02};
    struct parley_sim *sim = rehearse(&program, 1);
    scene_until(sim, NODES, parley_sim_agreed, NULL, 30);
    uint64_t steps = program.told[0].applied;
    double first = (NODES - 1) / 2.0 + 1 + (FLOATS - 1.0) / FLOATS; /* -1 is so far off at most */
    cr_assert_geq(steps, STEPS);
    cr_expect_float_eq(error_of(sim), first * pow(1 - program.part, (double)steps), 1e-3);
    for (uint32_t i = 0; i < NODES; i++) {
        cr_expect_eq(program.told[i].steps, 0);
        cr_expect_eq(program.told[i].started, 1);
        cr_expect_geq(program.told[i].gradients, STEPS);
    }
    parley_sim_free(sim);
}

Test(program, a_strategy_of_gradients_asks_for_the_two_halves_of_a_step)
{
    goes_as_one(PARLEY_STRATEGY_ALLREDUCE);
    goes_as_one(PARLEY_STRATEGY_PS_BSP);
}

Test(program, a_push_tells_the_weight_that_the_rate_is_to_be_divided_by)
{
    struct program program = {.strategy = PARLEY_STRATEGY_PUSH_SUM, .part = 0.02};
    struct parley_sim *sim = rehearse(&program, 1);
    scene_until(sim, NODES, parley_sim_agreed, NULL, 30);
    for (uint32_t i = 0; i < NODES; i++)
        cr_expect_gt(program.told[i].weight, 0.05);
    parley_sim_free(sim);
}

Test(program, no_number_of_threads_changes_what_comes_of_it)
{
    float x[2][FLOATS];
    uint64_t hash[2];
    for (int i = 0; i < 2; i++) {
        struct program program = {.strategy = PARLEY_STRATEGY_GOSSIP, .part = 0.02};
        struct parley_sim *sim = rehearse(&program, i ? 4 : 1);
        scene_until(sim, NODES, parley_sim_agreed, NULL, 30);
        hash[i] = parley_sim_run_hash(sim);
        memcpy(x[i], parley_sim_agreed_vector(sim, 0), sizeof x[i]);
        parley_sim_free(sim);
    }
    cr_expect_eq(hash[0], hash[1]);
    cr_expect_arr_eq(x[0], x[1], sizeof x[0]);
}

Test(program, who_is_started_anew_begins_anew_and_takes_the_model_of_the_others)
{
    struct program program = {.strategy = PARLEY_STRATEGY_GOSSIP, .part = 0.02};
    struct parley_sim *sim = rehearse(&program, 1);
    scene_train(sim, NODES);
    scene_run(sim, STEPS / 2 * 1000);
    parley_sim_kill(sim, 2, false);
    scene_run(sim, 1000);
    parley_sim_start(sim, 2);
    cr_expect_eq(parley_sim_error(sim, NULL), 0);
    scene_run(sim, 50000);
    cr_assert_not_null(parley_sim_vector(sim, 2)); /* all its steps so far are made then */
    struct told *told = &program.told[2];
    cr_expect_eq(told->begun, 3);
    cr_expect_eq(told->started, 1);
    cr_expect_gt(told->state_steps, STEPS / 3, "its optimizer goes on from where a peer's was");
    scene_until(sim, NODES, parley_sim_agreed, NULL, 30);
    scene_same(sim, NODES);
    parley_sim_free(sim);
}

Test(program, one_loss_that_is_not_finite_among_others_that_are_costs_the_model)
{
    struct program program = {
        .strategy = PARLEY_STRATEGY_GOSSIP, .part = 0.02, .lost_at = STEPS / 2};
    struct parley_sim *sim = rehearse(&program, 1);
    scene_expect(sim, "log", 30,
                 "n2 log the model is no longer finite: taking a live peer's\n"
                 "n2 log took model and optimizer state of ...\n");
    scene_until(sim, NODES, parley_sim_agreed, NULL, 30);
    parley_sim_free(sim);
}

Test(program, two_kinds_of_training_at_once_or_half_of_one_are_refused)
{
    struct parley_sim *sim;
    struct parley_sim_options options = {.work = work, .rate = 0.1};
    char why[100];
    cr_expect_eq(parley_sim_new(&sim, &options), PARLEY_EUSAGE);
    cr_expect_null(sim);
    cr_expect_eq(parley_sim_check(&options, why, sizeof why), PARLEY_EUSAGE);
    cr_expect_str_eq(why, "rate: 0.1 beside work, which trains by itself");
    options = (struct parley_sim_options){.begin = begin};
    cr_expect_eq(parley_sim_new(&sim, &options), PARLEY_EUSAGE);
    cr_expect_eq(parley_sim_check(&options, why, sizeof why), PARLEY_EUSAGE);
    cr_expect(strstr(why, "begin: ") == why, "%s", why);
}

Test(program, steps_of_the_fixture_s_own_count_as_many_samples_as_they_are_told_to_take)
{
    struct parley_sim *sim = scene(&(struct parley_sim_options){.samples = 5});
    struct parley_view view;
    scene_run(sim, 1 * SECOND);
    parley_sim_view(sim, 0, &view);
    cr_expect_gt(view.version, 0);
    cr_expect_eq(view.samples_cluster, 5 * view.version);
    parley_sim_free(sim);
}
