/* codecs.c: exchanges of models that lose something on the way: what still holds. */
#include "core/transfer/codec.h"
#include "scene.h"

struct coded {
    const char *codec;
    uint32_t peers, odd; /* node `odd` has the codec fp32 instead */
};

static const char *const codecs[] = {"bf16", "fp16", "int8", "subset:0.1"};
enum { CODECS = sizeof codecs / sizeof *codecs, PARAMETERS = 3000 };

static void configure(struct parley_config *config, uint32_t node, void *arg)
{
    const struct coded *coded = arg;
    config->min_peers = coded->peers;
    if (node == coded->odd) return;
    cr_assert_eq(codec_parse(coded->codec, &config->codec, &config->codec_part), 0);
}

static struct parley_sim *coded_scene(struct coded *coded, uint32_t nodes, uint64_t parameters,
                                      uint64_t latency_us)
{
    *coded = (struct coded){coded->codec, nodes - 1, UINT32_MAX};
    return scene(&(struct parley_sim_options){.nodes = nodes,
                                              .parameters = parameters,
                                              .seed = 2,
                                              .step_us = 5000,
                                              .latency_us = latency_us,
                                              .configure = configure,
                                              .arg = coded});
}

Test(codecs, the_mean_holds_and_the_end_agrees_to_the_bit_whatever_is_lost_and_cut)
{
    /* Both ends apply the same decoded vectors, so cuts and codecs together move nothing. */
    for (int c = 0; c < CODECS; c++) {
        struct coded coded = {.codec = codecs[c]};
        struct parley_sim *sim = coded_scene(&coded, 8, 64, 300);
        scene_cut(sim, 8, 100, (uint64_t)c);
        parley_sim_free(sim);
    }
}

Test(codecs, models_grow_equal_down_to_what_the_codec_can_tell_apart)
{
    /* Without a gradient. A subset is exact: it is only slower. */
    static const double left[CODECS] = {0.02, 2e-3, 0.03, 0.02};
    for (int c = 0; c < CODECS; c++) {
        struct coded coded = {.codec = codecs[c]};
        struct parley_sim *sim = coded_scene(&coded, 8, PARAMETERS, 100);
        scene_train(sim, 8);
        double before = parley_sim_spread(sim);
        scene_run(sim, 2 * SECOND);
        cr_assert_lt(parley_sim_spread(sim), left[c] * before, "%s: %g of %g", codecs[c],
                     parley_sim_spread(sim), before);
        parley_sim_free(sim);
    }
}

Test(codecs, an_exchange_sends_the_bytes_of_its_codec_and_hardly_more)
{
    for (int c = 0; c < CODECS; c++) {
        struct coded coded = {.codec = codecs[c]};
        struct parley_sim *sim = coded_scene(&coded, 2, 30000, 100);
        enum parley_codec codec;
        double part;
        scene_train(sim, 2);
        scene_run(sim, 1 * SECOND);
        cr_assert_eq(codec_parse(codecs[c], &codec, &part), 0);
        uint64_t commits = parley_sim_frames(sim, WIRE_COMMIT);
        double each = (double)parley_sim_bytes_sent(sim) / (double)commits;
        double wanted = 2 * (double)codec_bytes(codec, part, 30000);
        cr_assert(commits > 20 && each > wanted && each < wanted + 3000, "%s: %g, not %g",
                  codecs[c], each, wanted);
        parley_sim_free(sim);
    }
}

/* The sum over nodes of vector 1, and its spread. */
static void second_vector(const struct parley_sim *sim, double *sum, double *spread_sq)
{
    *spread_sq = 0;
    for (uint64_t j = 0; j < sim->parameters; j++) {
        sum[j] = 0;
        for (uint32_t i = 0; i < sim->nodes; i++)
            sum[j] += (double)sim->hosts[i].vectors[1][j];
        for (uint32_t i = 0; i < sim->nodes; i++)
            *spread_sq += pow((double)sim->hosts[i].vectors[1][j] - sum[j] / sim->nodes, 2);
    }
}

Test(codecs, further_vectors_are_averaged_with_the_model)
{
    /* Both means hold through cuts, both spreads fall, and twice the bytes cross the network. */
    static const char *const some[] = {"fp32", "int8", "subset:0.3"};
    for (int c = 0; c < 3; c++) {
        struct coded coded = {some[c], 7, UINT32_MAX};
        static double before[PARAMETERS], after[PARAMETERS];
        double spread_sq, left_sq;
        struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 8,
                                                                    .parameters = PARAMETERS,
                                                                    .vectors = 2,
                                                                    .averaged = 2,
                                                                    .latency_us = 1000,
                                                                    .configure = configure,
                                                                    .arg = &coded});
        scene_train(sim, 8);
        second_vector(sim, before, &spread_sq);
        scene_break(sim, 8, 200, (uint64_t)c);
        scene_agree(sim, 8, 0);
        second_vector(sim, after, &left_sq);
        cr_assert_lt(left_sq, 0.01 * spread_sq, "%s: %g of %g", some[c], left_sq, spread_sq);
        for (int j = 0; j < PARAMETERS; j++)
            cr_assert_lt(fabs(after[j] - before[j]), 2e-5, "%s: %g", some[c], after[j] - before[j]);
        cr_assert_leq(parley_sim_mass_error(sim), 1e-6);
        parley_sim_free(sim);
    }
}

static void find(const char *line, void *found)
{
    if (strstr(line, "codec is int8 at n") || strstr(line, "codec is fp32 at n"))
        *(int *)found += 1;
}

Test(codecs, a_node_with_another_codec_is_refused_by_name)
{
    struct coded coded = {.codec = "int8"};
    struct parley_sim *sim = coded_scene(&coded, 2, 64, 100);
    int error = 0, found = 0;
    coded.odd = 1;
    parley_sim_free(sim);
    sim = scene(&(struct parley_sim_options){.nodes = 2, .configure = configure, .arg = &coded});
    parley_sim_on_line(sim, PARLEY_LOG_ERROR, find, &found);
    scene_run(sim, 2 * SECOND);
    cr_assert(parley_sim_finished(sim, 1, &error));
    cr_assert_eq(error, PARLEY_EMISMATCH);
    cr_assert_gt(found, 0);
    parley_sim_free(sim);
}
