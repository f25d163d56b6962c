/* repeatable.c: one seed, one run. */
#include "scene.h"

static uint64_t run(uint64_t seed, float *model)
{
    uint32_t peers = 5;
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 6,
                                                                .seed = seed,
                                                                .rate = 0.01,
                                                                .latency_us = 700,
                                                                .bandwidth_bytes = 10000000,
                                                                .operation_us = 50,
                                                                .configure = scene_wait_for,
                                                                .arg = &peers});
    scene_train(sim, 6);
    scene_run(sim, 1 * SECOND);
    parley_sim_disconnect(sim, 0, 1);
    parley_sim_pause(sim, 2);
    scene_run(sim, 3 * SECOND);
    parley_sim_resume(sim, 2);
    parley_sim_kill(sim, 4, false);
    parley_sim_slow(sim, 5, 4);
    scene_run(sim, 5 * SECOND);
    scene_agree(sim, 6, 0);
    memcpy(model, parley_sim_agreed_vector(sim, 0), 64 * sizeof *model);
    uint64_t hash = parley_sim_run_hash(sim);
    parley_sim_free(sim);
    return hash;
}

Test(repeatable, one_seed_makes_one_run)
{
    /* Twice the same options: the same event log and the same model, to the bit. */
    float first[64], second[64], other[64];
    uint64_t hash = run(1, first);
    cr_assert_eq(run(1, second), hash);
    cr_assert_eq(memcmp(first, second, sizeof first), 0);
    cr_assert_neq(run(2, other), hash);
}

Test(repeatable, pieces_of_any_size_carry_the_same_protocol)
{
    /* Bytes that come in pieces of 1, 7 or 100 give an agreement as whole frames do. */
    const uint32_t pieces[] = {1, 7, 100};
    for (int p = 0; p < 3; p++) {
        uint32_t peers = 2;
        struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 3,
                                                                    .seed = 1,
                                                                    .latency_us = 100,
                                                                    .step_us = 20000,
                                                                    .fragment_bytes = pieces[p],
                                                                    .configure = scene_wait_for,
                                                                    .arg = &peers});
        scene_train(sim, 3);
        scene_run(sim, 300000);
        scene_agree(sim, 3, 0);
        parley_sim_free(sim);
    }
}
