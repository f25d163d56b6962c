/* What nodes tell each other beside their models, in bytes: a bound for each, however many. */
#include "scene.h"

enum { NODES_MAX = 64, STEP_US = 20000 };

/* As src/core/membership/gossip.c and src/core/drift/drift.c have it. */
enum {
    MEMBERSHIP_BYTES = 1200,    /* a second, and ... */
    SPURT_BYTES = 3600,         /* ... once so many near the end of a budget */
    SKETCH_BYTES = 16000,       /* a second, and ... */
    SKETCH_ONCE_BYTES = 160000, /* ... so many before, and one sketch to each of 63 links */
    SKETCH_SIZE = 560
};

struct told {
    uint64_t membership[NODES_MAX], sketches[NODES_MAX];
};

static void count(struct parley_sim *sim, const struct parley_sim_frame *frame, void *arg)
{
    struct told *told = arg;
    (void)sim;
    if (frame->arriving) return;
    if (frame->type == WIRE_SKETCHES) told->sketches[frame->from] += frame->size;
    if (frame->type >= WIRE_PING && frame->type <= WIRE_MEMBERS)
        told->membership[frame->from] += frame->size;
}

struct cast {
    uint32_t nodes, links; /* 0: as many as is the default */
    uint64_t samples;
};

static void configure(struct parley_config *config, uint32_t node, void *arg)
{
    const struct cast *cast = arg;
    (void)node;
    config->min_peers = cast->nodes - 1;
    config->samples_budget = cast->samples;
    if (cast->links > 0) config->connections_max = cast->links;
}

static struct parley_sim *training(struct cast *cast, struct told *told)
{
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = cast->nodes,
                                                                .rate = 0.01,
                                                                .step_us = STEP_US,
                                                                .latency_us = 200,
                                                                .configure = configure,
                                                                .arg = cast});
    *told = (struct told){{0}, {0}};
    scene_train(sim, cast->nodes);
    scene_run(sim, 2 * SECOND); /* that all train is news to all */
    parley_sim_on_frame(sim, count, told);
    return sim;
}

static void training_is_bounded(uint32_t nodes, uint32_t links)
{
    static struct told told;
    struct cast cast = {.nodes = nodes, .links = links};
    struct parley_sim *sim = training(&cast, &told);
    struct scene_lines suspects = {.text = " suspect: "};
    parley_sim_on_line(sim, PARLEY_LOG_ERROR, scene_count, &suspects);
    scene_run(sim, 10 * SECOND);
    for (uint32_t i = 0; i < nodes; i++) {
        cr_assert_leq(told.membership[i], 10 * MEMBERSHIP_BYTES, "n%u: %llu", i,
                      (unsigned long long)told.membership[i]);
        cr_assert_gt(told.membership[i], MEMBERSHIP_BYTES, "n%u tells nothing", i);
        cr_assert_eq(told.sketches[i], 0);
    }
    cr_assert_eq(suspects.count, 0, "%u times one that lives was suspected", suspects.count);
    parley_sim_free(sim);
}

Test(traffic, progress_of_8_nodes_costs_1200_bytes_a_second_each)
{
    /* Proves that what is told of members while training has a bound, where all have links. */
    training_is_bounded(8, 0);
}

Test(traffic, progress_of_64_nodes_costs_1200_bytes_a_second_each)
{
    /* Proves that the bound is the same for many, also for the seed, with a link to everyone. */
    training_is_bounded(64, 0);
}

Test(traffic, progress_of_64_nodes_costs_no_more_where_links_come_and_go)
{
    /* Proves that a new link, of which there are many where each node has room for a few, costs
     * nothing but its HELLO, as its other end has heard of this one; and that who has no room to be
     * probed in is not taken for dead: it was 5 kilobytes, and 436 suspicions in these 10 s. */
    training_is_bounded(64, 16);
}

static bool stopped(struct parley_sim *sim, void *arg)
{
    struct parley_view view = scene_view(sim, 0);
    (void)arg;
    return view.phase > PARLEY_PHASE_TRAIN;
}

Test(traffic, a_budget_of_samples_is_met_closely_for_no_more)
{
    /* Proves that what is told near the end of a budget is paid for, and that it is in time: 8
     * nodes stop within a tenth of a second after the budget, of 20. */
    static struct told told;
    struct cast cast = {.nodes = 8, .samples = UINT64_C(8) * 20 * SECOND / STEP_US};
    struct parley_sim *sim = training(&cast, &told);
    uint64_t start_us = parley_sim_now(sim);
    scene_until(sim, 8, stopped, NULL, 30);
    double seconds = (double)(parley_sim_now(sim) - start_us) / SECOND;
    for (uint32_t i = 0; i < 8; i++)
        cr_assert_leq((double)told.membership[i], seconds * MEMBERSHIP_BYTES + SPURT_BYTES,
                      "n%u: %llu", i, (unsigned long long)told.membership[i]);
    uint64_t made = scene_made(sim, 8);
    cr_assert_geq(made, cast.samples);
    cr_assert_leq((double)made, 1.005 * (double)cast.samples, "%llu of %llu",
                  (unsigned long long)made, (unsigned long long)cast.samples);
    parley_sim_free(sim);
}

/* Of each node no more than its bound for so many seconds; returns what one sends on average. */
static double sketches_are_bounded(const struct told *told, uint32_t nodes, double seconds)
{
    double most = SKETCH_ONCE_BYTES + (nodes - 1) * SKETCH_SIZE + seconds * SKETCH_BYTES, all = 0;
    for (uint32_t i = 0; i < nodes; i++) {
        cr_assert_leq((double)told->sketches[i], most, "n%u: %llu in %.2f s", i,
                      (unsigned long long)told->sketches[i], seconds);
        all += (double)told->sketches[i];
    }
    return all / nodes;
}

static void settling_is_cheap(uint32_t nodes, double bytes, double limit_s)
{
    static struct told told;
    struct cast cast = {.nodes = nodes};
    struct parley_sim *sim = training(&cast, &told);
    uint64_t start_us = parley_sim_now(sim);
    parley_sim_stop(sim, 0, PARLEY_STOP_OPERATOR);
    scene_until(sim, nodes, parley_sim_agreed, NULL, 90);
    scene_same(sim, nodes);
    double seconds = (double)(parley_sim_now(sim) - start_us) / SECOND;
    double sent = sketches_are_bounded(&told, nodes, seconds);
    cr_assert_leq(sent, bytes, "%.0f", sent);
    cr_assert_leq(seconds, limit_s, "%.3f s", seconds);
    cr_assert_gt(sent, 0);
    parley_sim_free(sim);
}

Test(traffic, eight_nodes_agree_by_24_kilobytes_of_sketches_each)
{
    /* Proves that a sketch goes over each link once, and that hardly one is taken in vain: six
     * tables, of 540 bytes to each of seven; and that nobody waits until they are paid for: with
     * relays to all it was 260 kilobytes and 0.1 s. */
    settling_is_cheap(8, 24000, 0.1);
}

Test(traffic, sixty_four_nodes_agree_by_64_kilobytes_of_sketches_each)
{
    /* Proves the same of many, of which a sample is sketched. It was 1,800, and 0.36 s. */
    settling_is_cheap(64, 64000, 0.36);
}

Test(traffic, settling_in_vain_costs_16_kilobytes_a_second_each)
{
    /* Proves that sketches are paid for: among eight nodes of which one sends another model each
     * time, nobody's table is of use for long. */
    static struct told told;
    struct cast cast = {.nodes = 8};
    struct parley_sim *sim = training(&cast, &told);
    parley_sim_byzantine(sim, 3, PARLEY_SIM_RANDOM);
    parley_sim_stop(sim, 0, PARLEY_STOP_OPERATOR);
    scene_run(sim, 30 * SECOND);
    double sent = sketches_are_bounded(&told, 8, 30);
    cr_assert_gt(sent, 10 * SKETCH_BYTES);
    parley_sim_free(sim);
}

Test(traffic, an_agreement_of_64_nodes_loads_no_node_much_more_than_the_others)
{
    /* Proves that what is told of the agreement does not go through those by whom all have joined:
     * the seed told twelve times what a node tells on average. */
    static struct told told;
    struct cast cast = {.nodes = 64};
    struct parley_sim *sim = training(&cast, &told);
    parley_sim_stop(sim, 0, PARLEY_STOP_OPERATOR);
    scene_until(sim, 64, parley_sim_agreed, NULL, 90);
    uint64_t most = 0, all = 0;
    for (uint32_t i = 0; i < 64; i++) {
        all += told.membership[i];
        if (told.membership[i] > most) most = told.membership[i];
    }
    cr_assert_leq(most, 4 * all / 64, "%llu of %llu", (unsigned long long)most,
                  (unsigned long long)all);
    parley_sim_free(sim);
}

/* ---- Where there is no room for links to all --------------------------------------------------
 */

enum { CROWD = 24 };

static void configure_crowd(struct parley_config *config, uint32_t node, void *links)
{
    (void)node;
    config->min_peers = CROWD - 1;
    config->connections_max = *(uint32_t *)links;
}

static struct parley_sim *crowd(uint32_t *links, uint64_t seed)
{
    return scene(&(struct parley_sim_options){.nodes = CROWD,
                                              .rate = 0.01,
                                              .step_us = STEP_US,
                                              .latency_us = 100,
                                              .seed = seed,
                                              .configure = configure_crowd,
                                              .arg = links});
}

static void count_hello(struct parley_sim *sim, const struct parley_sim_frame *frame, void *arg)
{
    (void)sim;
    *(uint32_t *)arg += frame->type == WIRE_HELLO && !frame->arriving;
}

Test(traffic, who_has_no_room_for_a_link_is_not_dialled_again_and_again)
{
    /* Proves that settling, in which each is to meet many, does not turn to dialling: that was ten
     * thousand times, and took ten seconds and more. */
    for (uint64_t seed = 1; seed <= 4; seed++) {
        uint32_t hellos = 0, links = 20;
        struct parley_sim *sim = crowd(&links, seed);
        scene_train(sim, CROWD);
        parley_sim_on_frame(sim, count_hello, &hellos);
        scene_agree(sim, CROWD, 0);
        cr_assert_leq(hellos, 20 * CROWD, "seed %llu: %u", (unsigned long long)seed, hellos);
        parley_sim_free(sim);
    }
}

Test(traffic, the_fewest_links_that_may_be_are_enough_for_news_to_reach_all)
{
    /* Proves that who asks few for news, because it has few links, still hears of all: nodes that
     * asked one each knew no more than their asker, settled for a minute and agreed unsettled. */
    for (uint64_t seed = 1; seed <= 4; seed++) {
        uint32_t links = PARLEY_CONNECTIONS_MIN;
        struct parley_sim *sim = crowd(&links, seed);
        scene_train(sim, CROWD);
        uint64_t from_us = parley_sim_now(sim);
        scene_agree(sim, CROWD, 0);
        cr_assert_lt(parley_sim_now(sim), from_us + 10 * SECOND, "seed %llu: %llu us",
                     (unsigned long long)seed, (unsigned long long)(parley_sim_now(sim) - from_us));
        parley_sim_free(sim);
    }
}
