/* repeatable.c: one seed, one run. */
#include "scene.h"

static uint64_t run(uint64_t seed, float *model)
{
    struct parley_sim *sim =
        scene_together(&(struct parley_sim_options){.nodes = 6,
                                                    .seed = seed,
                                                    .rate = 0.01,
                                                    .latency_us = 700,
                                                    .bandwidth_bytes = 10000000,
                                                    .operation_us = 50});
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
        struct parley_sim *sim =
            scene_together(&(struct parley_sim_options){.nodes = 3,
                                                        .seed = 1,
                                                        .latency_us = 100,
                                                        .step_us = 20000,
                                                        .fragment_bytes = pieces[p]});
        scene_train(sim, 3);
        scene_run(sim, 300000);
        scene_agree(sim, 3, 0);
        parley_sim_free(sim);
    }
}

enum { LATENCY_US = 700, FRAMES = 4096 };

/* What node 0 has sent to node 2 and has not come there yet. */
struct order {
    uint64_t since_us, sent, arrived;
    size_t size[FRAMES];
    uint8_t type[FRAMES];
    bool wrong;
};

static void follow(struct parley_sim *sim, const struct parley_sim_frame *frame, void *arg)
{
    struct order *order = arg;
    if (frame->from != 0 || frame->to != 2) return;
    if (!frame->arriving) {
        order->size[order->sent % FRAMES] = frame->size;
        order->type[order->sent++ % FRAMES] = frame->type;
    } else if (parley_sim_now(sim) >= order->since_us + LATENCY_US) {
        uint64_t at = order->arrived++ % FRAMES;
        if (order->type[at] != frame->type || order->size[at] != frame->size) order->wrong = true;
    }
}

Test(repeatable, frames_of_a_connection_come_in_the_order_in_which_they_were_sent)
{
    /* Also while its receiver's line gets a limit and loses it again. */
    struct order order = {0};
    struct parley_sim *sim = scene_together(&(struct parley_sim_options){
        .nodes = 3, .seed = 1, .step_us = 1000, .latency_us = LATENCY_US});
    scene_train(sim, 3);
    scene_run(sim, 1 * SECOND);
    order.since_us = parley_sim_now(sim);
    parley_sim_on_frame(sim, follow, &order);
    for (int round = 0; round < 200; round++) {
        parley_sim_bandwidth(sim, 2, round % 2 ? 200000 : 0);
        scene_run(sim, 10000);
    }
    cr_assert(!order.wrong);
    cr_assert_geq(order.arrived, 1000);
    parley_sim_free(sim);
}
