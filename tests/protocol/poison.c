/* poison.c: a model that is no longer finite: who has it gets rid of it, nobody else ever sees it.
 */
#include "scene.h"

enum { NODES = 4, PARAMETERS = 64, SICK = 2, MIX_EVERY = 8 };

/* Those that average models, and have a peer's to take. */
static const enum parley_strategy strategies[] = {PARLEY_STRATEGY_GOSSIP, PARLEY_STRATEGY_LOCAL_SGD,
                                                  PARLEY_STRATEGY_DILOCO};

static void configure(struct parley_config *config, uint32_t node, void *strategy)
{
    (void)node;
    config->min_peers = NODES - 1;
    config->mix_every = MIX_EVERY;
    config->strategy = *(const enum parley_strategy *)strategy;
}

static struct parley_sim *trained(int strategy, uint64_t seed)
{
    struct parley_sim *sim =
        scene(&(struct parley_sim_options){.nodes = NODES,
                                           .parameters = PARAMETERS,
                                           .seed = seed,
                                           .step_us = 5000,
                                           .latency_us = 300,
                                           .rate = 0.001,
                                           .configure = configure,
                                           .arg = (void *)&strategies[strategy]});
    scene_train(sim, NODES);
    scene_run(sim, SECOND / 2);
    return sim;
}

static bool is_amid_steps(struct parley_sim *sim, void *node)
{
    return scene_view(sim, *(const uint32_t *)node).version % MIX_EVERY == MIX_EVERY / 2;
}

/* While it makes local steps: a mean of all that comes later would make it well again. */
static void poison_training(struct parley_sim *sim, uint32_t node, float value)
{
    scene_until(sim, NODES, is_amid_steps, &node, 1);
    parley_sim_spoil(sim, node, value);
}

static bool is_finite(const struct parley_sim *sim, uint32_t node)
{
    for (int j = 0; j < PARAMETERS; j++)
        if (!isfinite(parley_sim_vector(sim, node)[j])) return false;
    return true;
}

/* In so much time nobody but the sick node gets to hold anything that is not finite. */
static void run_watched(struct parley_sim *sim, uint64_t us)
{
    for (uint64_t part = 0; part < us; part += 10000) {
        scene_run(sim, 10000);
        for (uint32_t i = 0; i < NODES; i++)
            cr_assert(i == SICK || is_finite(sim, i), "n%u", i);
    }
}

struct said {
    int taking, gone;
};

static void hear(const char *line, void *arg)
{
    struct said *said = arg;
    said->taking += strstr(line, "n2 log the model is no longer finite: taking a live") != NULL;
    said->gone += strstr(line, "n2 log the loss or the model is no longer finite after ") != NULL;
}

Test(poison, a_node_whose_model_is_not_finite_takes_a_live_peers)
{
    /* NaN or infinite, while training: it says so, has a finite one soon, and all agree. */
    const float values[] = {NAN, INFINITY, -INFINITY};
    for (int k = 0; k < 9; k++) {
        struct parley_sim *sim = trained(k / 3, 1 + (uint64_t)k);
        struct said said = {0};
        parley_sim_on_line(sim, PARLEY_LOG_WARN, hear, &said);
        poison_training(sim, SICK, values[k % 3]);
        run_watched(sim, SECOND);
        cr_assert(is_finite(sim, SICK));
        struct parley_view view = scene_view(sim, SICK);
        cr_assert_eq(view.ledger.joins, 1);
        cr_assert_eq(said.taking, 1);
        scene_agree(sim, NODES, 0);
        parley_sim_free(sim);
    }
}

Test(poison, who_falls_ill_for_the_fourth_time_ends_with_status_8)
{
    /* Three times it is helped; then it ends with a line that says what to try. The others agree.
     */
    for (int k = 0; k < 3; k++) {
        struct parley_sim *sim = trained(k, 5);
        struct said said = {0};
        int error = 0;
        parley_sim_on_line(sim, PARLEY_LOG_WARN, hear, &said);
        for (int time = 1; time <= 4; time++) {
            cr_assert_not(parley_sim_finished(sim, SICK, &error), "at time %d", time);
            poison_training(sim, SICK, NAN);
            run_watched(sim, SECOND);
        }
        cr_assert(parley_sim_finished(sim, SICK, &error));
        cr_assert_eq(parley_error_status(error), 8, "%s", parley_error_name(error));
        cr_assert_eq(said.taking, 3);
        cr_assert_eq(said.gone, 1);
        scene_agree(sim, NODES, 0);
        parley_sim_free(sim);
    }
}

Test(poison, who_falls_ill_when_training_has_ended_is_helped_too)
{
    /* By those, too, who have proposed already: they wait for it. */
    for (int k = 0; k < 3; k++) {
        struct parley_sim *sim = trained(k, 6);
        enum parley_phase settle = PARLEY_PHASE_SETTLE;
        parley_sim_stop(sim, 0, PARLEY_STOP_OPERATOR);
        scene_until(sim, NODES, parley_sim_in_phase, &settle, 10);
        parley_sim_spoil(sim, SICK, NAN);
        scene_until(sim, NODES, parley_sim_agreed, NULL, 90);
        scene_same(sim, NODES);
        struct parley_view view = scene_view(sim, SICK);
        cr_assert_eq(view.ledger.joins, 1);
        for (int j = 0; j < PARAMETERS; j++)
            cr_assert(isfinite(parley_sim_agreed_vector(sim, SICK)[j]));
        parley_sim_free(sim);
    }
}

/* Steps until SICK has come to a phase. */
static void until_phase(struct parley_sim *sim, enum parley_phase phase)
{
    struct parley_view view = {0};
    while (view.phase < phase && parley_sim_step(sim))
        view = scene_view(sim, SICK);
}

Test(poison, who_falls_ill_at_any_event_of_settling_is_helped)
{
    /* Also between the sketch that told it that all are near and the snapshot that it proposes. */
    for (uint64_t events = 0, proposed = 1; events < proposed; events++) {
        struct parley_sim *sim = trained(0, 9);
        int error = PARLEY_OK;
        parley_sim_stop(sim, 0, PARLEY_STOP_OPERATOR);
        until_phase(sim, PARLEY_PHASE_SETTLE);
        uint64_t settles = parley_sim_events(sim);
        if (events == 0) {
            until_phase(sim, PARLEY_PHASE_PROPOSED);
            proposed = parley_sim_events(sim) - settles;
            cr_assert_gt(proposed, 10);
        }
        while (parley_sim_events(sim) < settles + events)
            cr_assert(parley_sim_step(sim));
        parley_sim_spoil(sim, SICK, NAN);
        scene_until(sim, NODES, parley_sim_agreed, NULL, 90);
        cr_assert(!parley_sim_finished(sim, SICK, &error) || error == PARLEY_OK, "event %llu: %s",
                  (unsigned long long)events, parley_error_name(error));
        scene_same(sim, NODES);
        parley_sim_free(sim);
    }
}

static void majority(struct parley_config *config, uint32_t node, void *strategy)
{
    configure(config, node, strategy);
    config->quorum = PARLEY_QUORUM_MAJORITY;
    config->nodes = NODES;
}

Test(poison, who_could_not_be_helped_in_time_is_when_others_are_back)
{
    /* Two that are ill wait for each other, parted from the rest; all are late when that is over,
     * and settle anew when the time to be helped would be up. */
    const uint32_t parted[] = {0, 1, 1, 2};
    enum parley_phase settle = PARLEY_PHASE_SETTLE;
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = NODES,
                                                                .parameters = PARAMETERS,
                                                                .seed = 11,
                                                                .latency_us = 300,
                                                                .configure = majority,
                                                                .arg = (void *)&strategies[0]});
    scene_train(sim, NODES);
    for (uint32_t i = 0; i < NODES; i++)
        parley_sim_stop(sim, i, PARLEY_STOP_OPERATOR);
    scene_until(sim, NODES, parley_sim_in_phase, &settle, 10);
    parley_sim_spoil(sim, 1, NAN);
    parley_sim_spoil(sim, SICK, NAN);
    parley_sim_partition(sim, parted);
    scene_run(sim, 28 * SECOND);
    parley_sim_heal(sim);
    scene_until(sim, NODES, parley_sim_agreed, NULL, 90);
    scene_same(sim, NODES);
    cr_assert_eq(parley_sim_live_count(sim), NODES);
    parley_sim_free(sim);
}

static bool all_ended(struct parley_sim *sim, void *error)
{
    for (uint32_t i = 0; i < NODES; i++)
        if (!parley_sim_finished(sim, i, error) || *(int *)error != PARLEY_EDIVERGED) return false;
    return true;
}

Test(poison, where_all_are_ill_all_end_with_status_8)
{
    /* Nobody can help; nobody waits for that. */
    for (int k = 0; k < 3; k++) {
        struct parley_sim *sim = trained(k, 7);
        int error = 0;
        poison_training(sim, 0, NAN);
        for (uint32_t i = 1; i < NODES; i++)
            parley_sim_spoil(sim, i, NAN);
        scene_until(sim, NODES, all_ended, &error, 60);
        parley_sim_free(sim);
    }
}

static bool has_ended(struct parley_sim *sim, void *error)
{
    return parley_sim_finished(sim, 0, error);
}

Test(poison, a_node_alone_ends_with_status_8)
{
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 1, .seed = 8});
    int error = 0;
    scene_train(sim, 1);
    parley_sim_spoil(sim, 0, NAN);
    parley_sim_stop(sim, 0, PARLEY_STOP_OPERATOR);
    scene_until(sim, 1, has_ended, &error, 60);
    cr_assert_eq(error, PARLEY_EDIVERGED);
    parley_sim_free(sim);
}

static void joins_late(struct parley_config *config, uint32_t node, void *arg)
{
    (void)arg;
    config->min_peers = node < 2;
}

static void count_two(const char *line, void *lines)
{
    scene_count(line, lines);
    scene_count(line, (struct scene_lines *)lines + 1);
}

Test(poison, who_joins_takes_no_model_that_is_not_finite)
{
    /* n1 gives what is none to whoever asks; n2 to n7 come, and take n0's or another's. */
    uint64_t start_us[8] = {0, 0};
    for (uint64_t i = 2; i < 8; i++)
        start_us[i] = (5 + i) * SECOND;
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 8,
                                                                .parameters = PARAMETERS,
                                                                .seed = 4,
                                                                .latency_us = 300,
                                                                .rate = 0.001,
                                                                .start_us = start_us,
                                                                .configure = joins_late});
    struct scene_lines lines[] = {{.text = "the model that n1 gives is not finite"},
                                  {.text = "is no longer finite"}};
    parley_sim_on_line(sim, PARLEY_LOG_WARN, count_two, lines);
    parley_sim_byzantine(sim, 1, PARLEY_SIM_NAN);
    scene_run(sim, 20 * SECOND);
    cr_assert_gt(lines[0].count, 0, "nobody asked it");
    cr_assert_eq(lines[1].count, 0, "somebody has taken it");
    for (uint32_t i = 0; i < 8; i++)
        cr_assert_eq(scene_phase(sim, i), PARLEY_PHASE_TRAIN, "n%u", i);
    parley_sim_free(sim);
}
