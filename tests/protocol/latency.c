/* The end of training over long lines, counted in the time that a message takes one way. */
#include "scene.h"

enum { WAY_US = 300000 };

/* Somebody's news that it settles, and what it had under way; an offer with the snapshot, the
 * answer, the decision; sketches that go to all at once, twice; a proposal, the model asked for and
 * sent, held, locked, done. */
enum { WAYS_STOP = 2, WAYS_A_ROUND = 3, WAYS_TABLES = 2, WAYS_AGREE = 6 };

/* Nodes that train apart, 300 ms from each other, are all told to stop. How many ways it takes. */
static double agreement_ways(uint32_t nodes, uint64_t seed)
{
    struct parley_sim *sim =
        scene_together(&(struct parley_sim_options){.nodes = nodes, .rate = 0.01, .seed = seed});
    scene_train(sim, nodes);
    scene_run(sim, 2 * SECOND);
    for (uint32_t i = 0; i < nodes; i++)
        parley_sim_latency(sim, i, WAY_US / 2); /* at both ends of each way */
    scene_run(sim, 20 * SECOND);
    uint64_t start_us = parley_sim_now(sim);
    for (uint32_t i = 0; i < nodes; i++)
        parley_sim_stop(sim, i, PARLEY_STOP_OPERATOR);
    scene_until(sim, nodes, parley_sim_agreed, NULL, 200);
    scene_same(sim, nodes);
    cr_assert_leq(scene_view(sim, 0).drift_before, 1e-4);
    double ways = (double)(parley_sim_now(sim) - start_us) / WAY_US;
    parley_sim_free(sim);
    return ways;
}

/* In that many rounds of averaging all models become equal: base.c. */
static void agree_in_rounds(uint32_t nodes, uint32_t rounds)
{
    uint32_t limit = WAYS_STOP + rounds * WAYS_A_ROUND + WAYS_TABLES + WAYS_AGREE;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        double ways = agreement_ways(nodes, seed);
        cr_assert_leq(ways, limit + 0.5, "seed %llu: %.1f", (unsigned long long)seed, ways);
    }
}

Test(latency, eight_nodes_agree_after_one_sweep_and_two_tables)
{
    /* Proves that settling takes as many averagings in a row as it must, each of three ways, and
     * that nothing in the agreement waits for a timer. Pairs drawn at random took 145 ways. */
    agree_in_rounds(8, 3);
}

Test(latency, so_do_seven_of_which_not_all_meet_in_each_round)
{
    /* Proves the same where halves that meet in pairs leave one over. Those took 75 ways. */
    agree_in_rounds(7, 5);
}
