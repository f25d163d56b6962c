/* storm.h: deaths, pauses and returns at random times, and whether the others get on all the while.
 */
#ifndef PARLEY_TESTS_STORM_H
#define PARLEY_TESTS_STORM_H

#include "scene.h"

/* Six faults of nodes but the first, within up to a minute. */
static inline void storm(struct parley_sim *sim, uint32_t nodes, uint64_t seed)
{
    struct rng rng = rng_init(seed, 3);
    for (int fault = 0; fault < 6; fault++) {
        uint32_t node = 1 + rng_below(&rng, nodes - 1);
        scene_run(sim, rng_below(&rng, 500000));
        if (!parley_sim_live(sim, node)) continue;
        if (rng_below(&rng, 3) == 0) {
            parley_sim_pause(sim, node);
            scene_run(sim, rng_below(&rng, 15 * SECOND));
            parley_sim_resume(sim, node);
        } else {
            parley_sim_kill(sim, node, rng_below(&rng, 2));
            if (rng_below(&rng, 2)) continue;
            scene_run(sim, rng_below(&rng, 8 * SECOND));
            parley_sim_start(sim, node);
        }
    }
}

/* Once all is calm the first node trains and averages on, and all agree. */
static inline void storm_ends(struct parley_sim *sim, uint32_t nodes, uint64_t step_us)
{
    scene_run(sim, 15 * SECOND);
    struct parley_view before = scene_view(sim, 0);
    scene_run(sim, 100 * step_us);
    struct parley_view after = scene_view(sim, 0);
    cr_assert_gt(after.version, before.version + 20, "stands still at step %llu",
                 (unsigned long long)after.version);
    cr_assert(after.live == 1 || after.ledger.applied > before.ledger.applied,
              "averages no more at step %llu", (unsigned long long)after.version);
    scene_agree(sim, nodes, 0);
}

#endif
