/* The end of training over long lines, counted in the time that a message takes one way. */
#include "scene.h"

enum { NODES = 8, WAY_US = 300000 };

/* Rounds of averaging in which all meet, and that many until drift is low in two more tables. */
enum { SWEEP = 3, TABLES = 3, ROUNDS_A_TABLE = 2, ROUNDS = SWEEP + TABLES * ROUNDS_A_TABLE };

/* An offer with the snapshot, the answer, the decision; a sketch and the distance from it; a
 * proposal, the model asked for and sent, held, locked, done. */
enum { WAYS_A_ROUND = 3, WAYS_MEASURE = 2, WAYS_AGREE = 6 };

/* Nodes that train apart, 300 ms from each other, are all told to stop. How many ways it takes. */
static double agreement_ways(uint64_t seed)
{
    uint32_t peers = NODES - 1;
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = NODES,
                                                                .rate = 0.01,
                                                                .step_us = 2000,
                                                                .seed = seed,
                                                                .configure = scene_wait_for,
                                                                .arg = &peers});
    scene_train(sim, NODES);
    scene_run(sim, 2 * SECOND);
    for (uint32_t i = 0; i < NODES; i++)
        parley_sim_latency(sim, i, WAY_US / 2); /* at both ends of each way */
    scene_run(sim, 20 * SECOND);
    uint64_t start_us = parley_sim_now(sim);
    for (uint32_t i = 0; i < NODES; i++)
        parley_sim_stop(sim, i, PARLEY_STOP_OPERATOR);
    scene_until(sim, NODES, parley_sim_agreed, NULL, 200);
    scene_same(sim, NODES);
    struct parley_view view;
    parley_sim_view(sim, 0, &view);
    cr_assert_leq(view.drift_before, 1e-4);
    double ways = (double)(parley_sim_now(sim) - start_us) / WAY_US;
    parley_sim_free(sim);
    return ways;
}

Test(latency, eight_nodes_agree_within_nine_rounds_of_averaging)
{
    /* Proves that settling takes as many averagings in a row as it must, each of three ways, and
     * that nothing in the agreement waits for a timer. Pairs drawn at random took 145 ways. */
    for (uint64_t seed = 1; seed <= 8; seed++) {
        double ways = agreement_ways(seed);
        cr_assert_leq(ways, ROUNDS * WAYS_A_ROUND + WAYS_MEASURE + WAYS_AGREE, "seed %llu: %.1f",
                      (unsigned long long)seed, ways);
    }
}
