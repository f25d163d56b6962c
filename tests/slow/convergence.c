/* convergence.c: how fast averaging alone brings 16 and 64 models together, against the theory. */
#include "../protocol/convergence.h"

Test(convergence, of_16_nodes_the_squared_distance_decays_as_the_theory_says)
{
    /* 1 - 1/15 an exchange, to 5 % of the rate, over 20 seeds. */
    expect_rate(factor_of(PARLEY_TOPOLOGY_COMPLETE, 16, 1, 200, distance_left), 1 - 1.0 / 15);
}

Test(convergence, on_an_exponential_graph_the_slowest_waves_decay_by_its_spectral_gap)
{
    /* Nodes 1, 2, 4, 8 places apart exchange. */
    enum parley_topology exponential = PARLEY_TOPOLOGY_EXPONENTIAL;
    /* Of seven neighbours two stand at odd places: so the wave of period 2 has (5 - 2)/7. */
    cr_assert_float_eq(wave_slowest(exponential, 16), 3.0 / 7, 1e-12);
    expect_rate(factor_of(exponential, 16, 8, 200, wave_left), wave_theory(exponential, 16));
}

Test(convergence, of_64_nodes_the_squared_distance_decays_as_the_theory_says)
{
    /* 1 - 1/63 an exchange, to 5 % of the rate, over 20 seeds. */
    expect_rate(factor_of(PARLEY_TOPOLOGY_COMPLETE, 64, 1, 50, distance_left), 1 - 1.0 / 63);
}

static void seldom(struct parley_config *config, uint32_t node, void *arg)
{
    (void)node;
    (void)arg;
    config->min_peers = 63;
    config->mix_every = 16;
}

Test(convergence, of_64_nodes_a_millionth_is_left_after_less_than_32_rounds_of_pairs)
{
    /* A round is 32 exchanges, as many as a matching has pairs. Random matchings would need 20 of
     * them, pairs that are drawn one by one 27 (Boyd et al. 2006: 62/126 a round, 62/63 a pair).
     * Nobody makes nodes wait for a matching here: they come near to the second. (Where all have
     * two exchanges open all the time, at --mix-every 1, it is 37: a third of the difference is
     * added then, not half.) */
    double sum = 0;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct parley_sim *sim = scene(&(struct parley_sim_options){
            .nodes = 64, .seed = seed, .unchecked = true, .configure = seldom});
        scene_train(sim, 64);
        double first = parley_sim_spread(sim);
        uint64_t before = parley_sim_frames(sim, WIRE_COMMIT);
        while (parley_sim_spread(sim) > 1e-3 * first) {
            scene_run(sim, 1000);
            cr_assert_lt(parley_sim_now(sim), 100 * SECOND);
        }
        sum += (double)(parley_sim_frames(sim, WIRE_COMMIT) - before) / 32;
        parley_sim_free(sim);
    }
    fprintf(stderr, "# %.1f rounds of 32 exchanges for a millionth\n", sum / 5);
    cr_assert(sum / 5 > 20 && sum / 5 < 32, "%.1f rounds", sum / 5);
}
