/* choco.c: choco: what its rounds conserve whatever a codec loses, how far they bring the models
 * together, what they send, and what deaths, joins and cuts do to the copies.
 */
#include "core/transfer/codec.h"
#include "storm.h"

enum { STEP_US = 20000 };

struct cluster {
    uint32_t nodes;
    const char *codec;
    enum parley_topology topology;
    uint32_t degree;
    uint32_t late; /* the last so many are not waited for */
    double step;   /* 0: by codec */
};

static void configure(struct parley_config *config, uint32_t node, void *arg)
{
    const struct cluster *cluster = arg;
    config->strategy = PARLEY_STRATEGY_CHOCO;
    config->topology = cluster->topology;
    config->topology_degree = cluster->degree;
    config->choco_step = cluster->step;
    config->min_peers =
        node < cluster->nodes - cluster->late ? cluster->nodes - cluster->late - 1 : 0;
    cr_assert_eq(codec_parse(cluster->codec, &config->codec, &config->codec_part), 0);
}

static struct parley_sim *begin(struct cluster *cluster, uint64_t parameters, uint64_t seed,
                                uint64_t latency_us, double rate)
{
    return scene(&(struct parley_sim_options){.nodes = cluster->nodes,
                                              .parameters = parameters,
                                              .seed = seed,
                                              .step_us = STEP_US,
                                              .latency_us = latency_us,
                                              .rate = rate,
                                              .configure = configure,
                                              .arg = cluster});
}

Test(choco, models_grow_equal_on_a_ring_whatever_the_codec)
{
    /* Proves consensus without a gradient, and that what a codec leaves out is made up for: rounds
     * go on bringing the models together, to far below what one q tells. And that what is too
     * little for x is not lost: many small terms would move the mean by ten times as much. */
    static const struct {
        const char *codec;
        uint32_t rounds;
        double left;
    } cases[] = {{"fp32", 60, 1e-4},      {"bf16", 60, 1e-4},     {"fp16", 60, 1e-4},
                 {"int8", 60, 1e-4},      {"topk:0.5", 60, 1e-4}, {"topk:0.1", 200, 1e-2},
                 {"topk:0.03", 600, 1e-2}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct cluster cluster = {8, cases[c].codec, PARLEY_TOPOLOGY_RING, 0, 0, 0};
        struct parley_sim *sim = begin(&cluster, 3000, 2, 0, 0);
        scene_train(sim, 8);
        double before = parley_sim_spread(sim);
        scene_run(sim, cases[c].rounds * STEP_US);
        cr_assert_lt(parley_sim_spread(sim), cases[c].left * before, "%s: %g of %g", cases[c].codec,
                     parley_sim_spread(sim), before);
        cr_assert_leq(parley_sim_mass_error(sim), 2e-8, "%s: %g", cases[c].codec,
                      parley_sim_mass_error(sim));
        parley_sim_free(sim);
    }
}

Test(choco, a_step_size_that_is_given_is_taken)
{
    /* Two nodes, half the weight each: a round leaves 1 - step of their distance. */
    struct cluster cluster = {.nodes = 2, .codec = "fp32", .step = 0.25};
    struct parley_sim *sim = begin(&cluster, 100, 1, 0, 0);
    scene_train(sim, 2);
    double before = parley_sim_spread(sim), rounds = 0;
    scene_run(sim, 10 * STEP_US);
    rounds = log(parley_sim_spread(sim) / before) / log(0.75);
    cr_assert_float_eq(rounds, round(rounds), 1e-3, "%g rounds", rounds);
    cr_assert(rounds > 5 && rounds < 15, "%g rounds", rounds);
    parley_sim_free(sim);
}

Test(choco, a_round_sends_what_the_codec_makes_and_a_link_begins_with_whole_models)
{
    /* Proves that differences are sent, and that topk:0.01 takes no more than 3 % of what fp32
     * does, by the bytes of all messages. */
    uint64_t bytes[2];
    for (int c = 0; c < 2; c++) {
        enum { ROUNDS = 20, NODES = 4, LINKS = 2 * NODES, PARAMETERS = 200000 };
        struct cluster cluster = {NODES, c ? "topk:0.01" : "fp32", PARLEY_TOPOLOGY_RING, 0, 0, 0};
        struct parley_sim *sim = begin(&cluster, PARAMETERS, 1, 0, 0);
        scene_train(sim, NODES);
        scene_run(sim, 5 * STEP_US / 2);
        uint64_t first = parley_sim_bytes_sent(sim);
        cr_assert_geq(first, LINKS * PARAMETERS * sizeof(float), "no link began with whole models");
        scene_run(sim, ROUNDS * STEP_US);
        bytes[c] = parley_sim_bytes_sent(sim) - first;
        double part = (double)bytes[c] / (ROUNDS * LINKS * PARAMETERS * sizeof(float));
        cr_assert(c ? part > 0.015 && part < 0.02 : part > 0.99 && part < 1.01, "%g", part);
        parley_sim_free(sim);
    }
    cr_assert_lt((double)bytes[1], 0.03 * (double)bytes[0]);
}

Test(choco, random_cuts_leave_the_mean_where_it_was_and_the_copies_equal)
{
    /* Proves that a q is added to both copies or asked for again, whatever breaks when: were they
     * to differ, the terms of a link would not cancel. */
    for (uint64_t seed = 1; seed <= 2; seed++) {
        struct cluster cluster = {8, "topk:0.1", PARLEY_TOPOLOGY_EXPONENTIAL, 0, 0, 0};
        struct parley_sim *sim = begin(&cluster, 64, seed, 300, 0);
        scene_cut(sim, 8, 150, seed);
        parley_sim_free(sim);
    }
}

Test(choco, a_newcomer_takes_whole_models_once_and_is_drawn_in)
{
    /* Proves that copies begin anew with who joins late, and only those: the others' rounds go on
     * in short form, and all grow equal with it among them. */
    struct cluster cluster = {4, "topk:0.05", PARLEY_TOPOLOGY_COMPLETE, 0, 1, 0};
    uint64_t starts[] = {0, 0, 0, PARLEY_SIM_NEVER};
    enum { PARAMETERS = 20000, BYTES = PARAMETERS * sizeof(float) };
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 4,
                                                                .parameters = PARAMETERS,
                                                                .step_us = STEP_US,
                                                                .start_us = starts,
                                                                .configure = configure,
                                                                .arg = &cluster});
    scene_train(sim, 3);
    scene_run(sim, 20 * STEP_US);
    double before = parley_sim_spread(sim);
    uint64_t sent = parley_sim_bytes_sent(sim);
    parley_sim_start(sim, 3);
    scene_run(sim, 100 * STEP_US);
    scene_train(sim, 4);
    /* The state it takes, three links with a model each way, and about 100 rounds of 12 q. */
    sent = parley_sim_bytes_sent(sim) - sent;
    cr_assert(sent > 7 * BYTES && sent < 7 * BYTES + 120 * 12 * 0.08 * BYTES, "%g models",
              (double)sent / BYTES);
    scene_run(sim, 300 * STEP_US);
    struct parley_view view = scene_view(sim, 3);
    cr_assert_gt(view.ledger.applied, 100, "n3 stands apart");
    cr_assert_lt(parley_sim_spread(sim), 1e-3 * before, "%g of %g after %llu",
                 parley_sim_spread(sim), before, (unsigned long long)view.version);
    scene_agree(sim, 4, 0);
    parley_sim_free(sim);
}

Test(choco, a_death_in_the_middle_moves_the_mean_of_the_living_no_more)
{
    /* Proves that the dead node's copies are out of the rounds at all its neighbours: the mean of
     * the living stays where it is from then on, and they agree. */
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct cluster cluster = {6, "topk:0.1", PARLEY_TOPOLOGY_RING, 0, 0, 0};
        struct parley_sim *sim = begin(&cluster, 640, seed, 700, 0);
        static double before[640], after[640];
        scene_train(sim, 6);
        scene_run(sim, 7 * STEP_US + seed * 400);
        double spread = parley_sim_spread(sim);
        parley_sim_kill(sim, 2, seed == 3);
        scene_run(sim, 15 * SECOND);
        parley_sim_mean(sim, before);
        scene_run(sim, 500 * STEP_US);
        parley_sim_mean(sim, after);
        for (int j = 0; j < 640; j++)
            cr_assert_lt(fabs(after[j] - before[j]), 1e-5 * spread);
        cr_assert_lt(parley_sim_spread(sim), 1e-3 * spread, "the ring of five does not mix");
        scene_agree(sim, 6, 0);
        parley_sim_free(sim);
    }
}

Test(choco, who_missed_rounds_begins_anew_with_its_neighbours)
{
    /* Proves that a copy that is behind is not added to: were it, its terms would not cancel, and
     * the mean would move for ever. */
    struct cluster cluster = {6, "topk:0.1", PARLEY_TOPOLOGY_RING, 0, 0, 0};
    struct parley_sim *sim = begin(&cluster, 640, 5, 300, 0);
    static double before[640], after[640];
    scene_train(sim, 6);
    scene_run(sim, 7 * STEP_US);
    double spread = parley_sim_spread(sim);
    parley_sim_pause(sim, 4);
    scene_run(sim, 15 * SECOND);
    parley_sim_resume(sim, 4);
    scene_run(sim, 2 * SECOND);
    parley_sim_mean(sim, before);
    scene_run(sim, 500 * STEP_US);
    parley_sim_mean(sim, after);
    for (int j = 0; j < 640; j++)
        cr_assert_lt(fabs(after[j] - before[j]), 1e-5 * spread);
    cr_assert_lt(parley_sim_spread(sim), 1e-3 * spread);
    scene_agree(sim, 6, 0);
    parley_sim_free(sim);
}

Test(choco, who_has_more_neighbours_than_have_room_says_so_once)
{
    /* Proves that it is told where members come that nobody had counted: each node says it, of the
     * rounds in which it leaves somebody out, the first. */
    for (uint32_t nodes = 17; nodes <= 18; nodes++) {
        struct cluster cluster = {.nodes = nodes, .codec = "fp32"};
        struct scene_lines said = {.text = "more neighbours than the 16 that a round has room for"};
        struct parley_sim *sim = begin(&cluster, 64, 3, 200, 0);
        parley_sim_on_line(sim, PARLEY_LOG_WARN, scene_count, &said);
        scene_train(sim, nodes);
        scene_run(sim, 2 * SECOND);
        cr_assert_eq(said.count, nodes > 17 ? nodes : 0, "%u of %u", said.count, nodes);
        parley_sim_free(sim);
    }
}

Test(choco, nobody_waits_for_the_dead)
{
    /* Proves that deaths, pauses and returns at random times hold nobody up for longer than it
     * takes to notice them, and that the live agree. */
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct cluster cluster = {
            8, "topk:0.1", seed % 2 ? PARLEY_TOPOLOGY_RING : PARLEY_TOPOLOGY_REGULAR, 3, 0, 0};
        struct parley_sim *sim = begin(&cluster, 64, seed, seed % 3 * 200, 0.1);
        scene_train(sim, 8);
        storm(sim, 8, seed);
        storm_ends(sim, 8, STEP_US);
        parley_sim_free(sim);
    }
}
