/* train_trainer.c: the trainer as its callers see it: options, shares, learning, evaluation. */
#include "data/sampler.h"
#include "trainer_bench.h"

/* Images of noise, with labels that tell their halves apart. */
static struct dataset images(uint32_t count)
{
    enum { SIDE = 6, PIXELS = SIDE * SIDE };
    struct dataset set = {.count = count,
                          .features = PIXELS,
                          .channels = 1,
                          .height = SIDE,
                          .width = SIDE,
                          .classes = 2};
    struct rng rng = rng_init(3, 6);

    set.bytes = malloc((size_t)count * PIXELS);
    set.labels = calloc(count, sizeof *set.labels);
    for (uint32_t i = 0; i < count; i++) {
        set.labels[i] = (uint16_t)rng_below(&rng, 2);
        for (uint32_t p = 0; p < PIXELS; p++)
            set.bytes[i * PIXELS + p] =
                (uint8_t)rng_below(&rng, p / (PIXELS / 2) == set.labels[i] ? 256 : 128);
    }
    cr_assert_eq(dataset_measure(&set), 0);
    return set;
}

/* The same as a table. */
static struct dataset floats_of(const struct dataset *images)
{
    struct dataset set = *images;
    size_t n = (size_t)set.count * set.features;

    set.channels = set.height = set.width = 0;
    set.bytes = NULL;
    set.values = malloc(n * sizeof *set.values);
    set.labels = malloc(set.count * sizeof *set.labels);
    set.shift = set.scale = NULL;
    memcpy(set.labels, images->labels, set.count * sizeof *set.labels);
    for (size_t i = 0; i < n; i++)
        set.values[i] = images->bytes[i];
    set.shift = malloc(set.features * sizeof *set.shift);
    set.scale = malloc(set.features * sizeof *set.scale);
    for (uint32_t f = 0; f < set.features; f++) {
        set.shift[f] = images->shift[0];
        set.scale[f] = images->scale[0];
    }
    return set;
}

Test(train_trainer, pixels_train_as_the_floats_that_they_mean)
{
    /* Proves that a model whose first layer takes bytes, and one that does not, learn from images
     * what they learn from the same numbers in a table. */
    static const char *const models[] = {"softmax", "mlp:17"};
    struct dataset set = images(150), table = floats_of(&set);

    for (int m = 0; m < 2; m++) {
        struct trainer_options options = defaults;
        struct bench of_pixels, of_floats;
        double accuracy[2], loss[2];

        options.model = models[m];
        bench_init(&of_pixels, &options, &set, 7);
        bench_init(&of_floats, &options, &table, 7);
        for (int s = 0; s < 60; s++)
            cr_assert_float_eq(step(&of_pixels, s / 60.0), step(&of_floats, s / 60.0), 1e-4);
        trainer_evaluate(of_pixels.trainer, of_pixels.x, &set, &accuracy[0], &loss[0]);
        trainer_evaluate(of_floats.trainer, of_floats.x, &table, &accuracy[1], &loss[1]);
        cr_assert_gt(accuracy[0], 0.9);
        cr_assert_eq(accuracy[0], accuracy[1]);
        cr_assert_float_eq(loss[0], loss[1], 1e-4);
        bench_close(&of_pixels);
        bench_close(&of_floats);
    }
    dataset_close(&set);
    dataset_close(&table);
}

Test(train_trainer, every_model_and_optimizer_learns_separable_classes)
{
    /* Proves learning itself, on samples not trained on. */
    static const char *const models[] = {"softmax", "mlp:16,12,8"};
    static const struct {
        const char *name;
        double rate; /* for about the same push */
    } optimizers[] = {{"gd", 0.3},       {"sgd", 0.3},      {"momentum", 0.05}, {"nesterov", 0.05},
                      {"adagrad", 0.05}, {"rmsprop", 0.01}, {"adam", 0.01},     {"adamw", 0.01}};

    for (int t = 0; t < 16; t++) {
        for (uint64_t seed = 0; seed < 3; seed++) {
            struct dataset set = clusters(500, 0.2, seed, 2 * seed);
            struct dataset test = clusters(300, 0.2, seed, 2 * seed + 1);
            struct trainer_options options = defaults;
            struct bench bench;
            double before, after, loss;

            options.model = models[t / 8];
            options.optimizer = optimizers[t % 8].name;
            options.rate = optimizers[t % 8].rate;
            options.seed = seed;
            bench_init(&bench, &options, &set, seed);
            trainer_evaluate(bench.trainer, bench.x, &test, &before, &loss);
            for (int s = 0; s < 400; s++)
                step(&bench, s / 400.0);
            trainer_evaluate(bench.trainer, bench.x, &test, &after, &loss);
            cr_expect_lt(before, 0.8);
            cr_expect_gt(after, 0.95, "%s, %s, seed %d: %g", options.model, options.optimizer,
                         (int)seed, after);
            bench_close(&bench);
            dataset_close(&test);
            dataset_close(&set);
        }
    }
}

Test(train_trainer, the_linear_scaling_rule_multiplies_the_rate_by_the_samples_over_32)
{
    /* Proves what is counted: a node's batch, or that of all live nodes, up to 256 samples; and the
     * warm-up on top. */
    static const struct {
        enum trainer_scale scale;
        uint32_t live;
        double factor;
    } cases[] = {{TRAINER_SCALE_NONE, 3, 1},    {TRAINER_SCALE_BATCH, 3, 2},
                 {TRAINER_SCALE_CLUSTER, 3, 6}, {TRAINER_SCALE_CLUSTER, 4, 8},
                 {TRAINER_SCALE_CLUSTER, 5, 8}, {TRAINER_SCALE_CLUSTER, 64, 8}};

    for (size_t t = 0; t < sizeof cases / sizeof *cases; t++) {
        struct dataset set = clusters(100, 1, 1, 1);
        struct trainer_options options = defaults;
        struct bench scaled, plain;
        struct trainer_turn turn = {.progress = 0.25, .live = cases[t].live};

        options.optimizer = "sgd";
        options.schedule = "constant";
        options.batch = 64;
        options.warmup = 0.5;
        options.scale = cases[t].scale;
        bench_init(&scaled, &options, &set, 1);
        options.scale = TRAINER_SCALE_NONE;
        options.warmup = 0;
        options.rate *= cases[t].factor / 2;
        bench_init(&plain, &options, &set, 1);
        step_at(&scaled, &turn);
        step_at(&plain, &turn);
        for (size_t i = 0; i < trainer_parameters(plain.trainer); i++)
            cr_expect_float_eq(scaled.x[i], plain.x[i], 1e-7);
        bench_close(&plain);
        bench_close(&scaled);
        dataset_close(&set);
    }
}

Test(train_trainer, evaluation_matches_float64_whatever_the_count_and_leaves_training_alone)
{
    /* Proves the blocks (none, less than one, one, several and a rest), and that a run with
     * evaluations is to the bit one without. */
    static const uint32_t counts[] = {0, 1, 63, 64, 65, 200};
    struct dataset set = clusters(100, 1, 1, 1);
    struct bench with, without;

    bench_init(&with, &defaults, &set, 1);
    bench_init(&without, &defaults, &set, 1);
    for (size_t t = 0; t < sizeof counts / sizeof counts[0]; t++) {
        struct dataset test = clusters(counts[t], 1, 1, 2);
        double x[(FEATURES + 1) * CLASSES], g[(FEATURES + 1) * CLASSES], accuracy, loss;

        for (int i = 0; i < (FEATURES + 1) * CLASSES; i++)
            x[i] = (double)with.x[i];
        trainer_evaluate(with.trainer, with.x, &test, &accuracy, &loss);
        cr_expect(accuracy >= 0 && accuracy <= 1);
        cr_expect_float_eq(loss, counts[t] > 0 ? reference_gradient(&test, x, g) : 0, 1e-5);
        dataset_close(&test);
        for (int s = 0; s < 5; s++) {
            step(&with, 0.1);
            step(&without, 0.1);
        }
    }
    cr_expect_eq(memcmp(with.x, without.x, trainer_parameters(with.trainer) * sizeof(float)), 0);
    bench_close(&without);
    bench_close(&with);
    dataset_close(&set);
}

Test(train_trainer, an_accuracy_is_reached_where_evaluation_finds_it)
{
    /* Just what is found is reached, and one hit more is not; whatever the count, and where many
     * are wrong from the first on. */
    static const uint32_t counts[] = {1, 63, 64, 65, 200};
    struct dataset set = clusters(100, 1, 1, 1);
    struct bench bench;

    bench_init(&bench, &defaults, &set, 1);
    for (int steps = 0; steps < 60; steps += 20) {
        for (size_t t = 0; t < sizeof counts / sizeof counts[0]; t++) {
            struct dataset test = clusters(counts[t], 1, 1, 2);
            double accuracy, loss, half = 0.5 / counts[t];

            trainer_evaluate(bench.trainer, bench.x, &test, &accuracy, &loss);
            cr_expect(trainer_reaches(bench.trainer, bench.x, &test, accuracy));
            cr_expect(trainer_reaches(bench.trainer, bench.x, &test, accuracy - half));
            cr_expect_not(trainer_reaches(bench.trainer, bench.x, &test, accuracy + half));
            dataset_close(&test);
        }
        for (int s = 0; s < 20; s++)
            step(&bench, 0.1);
    }
    bench_close(&bench);
    dataset_close(&set);
}

Test(train_trainer, a_run_away_rate_ends_in_a_loss_that_is_not_finite)
{
    /* Proves that divergence is reported and survived, in steps and in evaluation. */
    static const char *const models[] = {"softmax", "mlp:16,8"};

    for (int t = 0; t < 2; t++) {
        struct dataset set = clusters(100, 1, 1, 1);
        struct trainer_options options = defaults;
        struct bench bench;
        double loss = 0, accuracy;

        options.model = models[t];
        options.rate = 3e38;
        bench_init(&bench, &options, &set, 1);
        for (int s = 0; s < 50 && isfinite(loss); s++)
            loss = step(&bench, 0);
        cr_expect(!isfinite(loss));
        for (size_t i = 0; i < trainer_parameters(bench.trainer); i++)
            bench.x[i] = NAN;
        trainer_evaluate(bench.trainer, bench.x, &set, &accuracy, &loss);
        cr_expect_eq(accuracy, 0);
        cr_expect(!isfinite(loss));
        bench_close(&bench);
        dataset_close(&set);
    }
}

/* A first step, one from a model that is lost if `lost`, and one after an averaging. */
static void step_after_averaging(struct bench *bench, const char *optimizer, double clip_norm,
                                 const struct dataset *set, bool lost)
{
    struct trainer_options options = defaults;
    float kept;

    options.optimizer = optimizer;
    options.numbers.clip_norm = clip_norm;
    options.momentum_mode = TRAINER_MOMENTUM_RESET;
    options.batch = set->count; /* whatever is visited, it is the same */
    bench_init(bench, &options, set, 1);
    step(bench, 0);
    const struct trainer_turn averaged = {.live = 2, .steps = 1, .averaged = 1};
    if (lost) {
        float *before = malloc(trainer_parameters(bench->trainer) * sizeof *before);
        memcpy(before, bench->m, trainer_parameters(bench->trainer) * sizeof *before);
        kept = bench->x[0];
        bench->x[0] = NAN;
        cr_expect(!isfinite(step_at(bench, &averaged)));
        for (size_t i = 0; i < trainer_parameters(bench->trainer); i++)
            cr_assert_eq(bench->m[i], before[i], "%s: a momentum is lost", optimizer);
        bench->x[0] = kept;
        free(before);
    }
    step_at(bench, &averaged);
}

Test(train_trainer, a_step_that_fails_after_an_averaging_changes_nothing)
{
    /* Proves that a momentum that is to begin anew stands until the loss is known, and that the
     * averaging counts for the next step then, in all three ways that a gradient takes. */
    static const char *const optimizers[] = {"momentum", "momentum", "nesterov"};
    struct dataset set = clusters(32, 1, 1, 1);
    for (int t = 0; t < 3; t++) {
        struct bench hit, sound;
        step_after_averaging(&hit, optimizers[t], t % 2, &set, true);
        step_after_averaging(&sound, optimizers[t], t % 2, &set, false);
        for (size_t i = 0; i < trainer_parameters(hit.trainer); i++) {
            cr_assert_float_eq(hit.m[i], sound.m[i], 1e-6, "%s", optimizers[t]);
            cr_assert_float_eq(hit.x[i], sound.x[i], 1e-6, "%s", optimizers[t]);
        }
        bench_close(&sound);
        bench_close(&hit);
    }
    dataset_close(&set);
}

Test(train_trainer, a_diverged_step_leaves_the_parameters_as_they_were)
{
    /* Proves that the last finite model survives, under every optimizer. */
    static const char *const optimizers[] = {"sgd",     "momentum", "nesterov", "gd",
                                             "adagrad", "rmsprop",  "adam",     "adamw"};

    for (int t = 0; t < 8; t++) {
        struct dataset set = clusters(100, 1, 1, 1);
        struct trainer_options options = defaults;
        struct bench bench;
        size_t n;

        options.optimizer = optimizers[t];
        bench_init(&bench, &options, &set, 1);
        n = trainer_parameters(bench.trainer);
        for (size_t i = 0; i < n; i++)
            bench.x[i] = i % 2 == 0 ? 3e38f : -3e38f; /* finite, but no logit is */
        memset(bench.m, 0, 2 * n * sizeof(float));
        cr_expect(!isfinite(step(&bench, 0)));
        for (size_t i = 0; i < n; i++) {
            cr_assert_eq(bench.x[i], i % 2 == 0 ? 3e38f : -3e38f);
            cr_assert(bench.m[i] == 0 && bench.m[n + i] == 0);
        }
        bench_close(&bench);
        dataset_close(&set);
    }
}

Test(train_trainer, a_full_batch_that_fails_in_its_last_part_changes_nothing)
{
    /* Proves that the running statistics, too, are as before: earlier parts have moved theirs. */
    struct dataset set = clusters(200, 1, 1, 1);
    struct trainer_options options = defaults;
    struct sampler sampler;
    uint32_t order[200];
    struct bench bench;

    set.channels = 1;
    set.height = 2;
    set.width = 3;
    options.model = "resnet:1";
    options.optimizer = "gd";
    bench_init(&bench, &options, &set, 1);
    cr_assert_eq(sampler_init(&sampler, NULL, set.count, 1), 0);
    sampler_next(&sampler, order, set.count);
    sampler_close(&sampler);
    size_t n = trainer_parameters(bench.trainer),
           trained = model_trained(trainer_model(bench.trainer));
    float *was = malloc(n * sizeof *was);
    memcpy(was, bench.x, n * sizeof *was);
    float *last = set.values + (size_t)order[set.count - 1] * FEATURES, value = *last;
    *last = NAN;
    cr_expect(!isfinite(step(&bench, 0)));
    cr_expect_eq(memcmp(bench.x, was, n * sizeof *was), 0);
    *last = value;
    cr_expect(isfinite(step(&bench, 0)));
    cr_expect_neq(bench.x[0], was[0]);
    cr_expect_neq(bench.x[trained], was[trained]);
    free(was);
    bench_close(&bench);
    dataset_close(&set);
}

Test(train_trainer, a_full_batch_is_the_whole_share_after_a_takeover_as_well)
{
    /* Proves that gradient descent goes by all of its samples at each step, however far the node
     * was whose samples it has taken over. */
    enum { MINE = 70, ALL = 100 };
    struct dataset set = clusters(ALL, 1, 1, 1);
    struct trainer_options options = defaults;
    uint32_t share[ALL];
    uint64_t due[ALL];
    struct bench bench;

    options.optimizer = "gd";
    options.rate = 0;
    for (uint32_t i = 0; i < ALL; i++)
        share[i] = i;
    for (uint64_t place = 0; place < 6 * SAMPLER_SLICES; place += SAMPLER_SLICES) {
        bench_init(&bench, &options, &set, 1);
        double whole = step(&bench, 0);
        cr_assert_eq(trainer_share(bench.trainer, &bench.node, share, MINE, NULL, 1), 0);
        for (int s = 0; s < 3; s++)
            step(&bench, 0);
        for (uint32_t i = 0; i < ALL; i++)
            due[i] = place;
        cr_assert_eq(trainer_share(bench.trainer, &bench.node, share, ALL, due, 1), 0);
        for (int s = 0; s < 5; s++)
            cr_expect_float_eq(step(&bench, 0), whole, 1e-6 * whole, "step %d after one at %llu", s,
                               (unsigned long long)place);
        cr_expect_eq(bench.node.sampler.taken, 1);
        bench_close(&bench);
    }
    dataset_close(&set);
}

Test(train_trainer, bad_options_are_refused_with_a_line_that_names_the_value)
{
    /* Proves that every option is checked before anything is made. */
    struct dataset set = clusters(10, 1, 1, 1);
    struct {
        struct trainer_options options;
        const char *named;
    } bad[] = {
        {defaults, "mlp:256,,3"},   {defaults, "adamm"},      {defaults, "cosinus"},
        {defaults, "rate -1"},      {defaults, "rate nan"},   {defaults, "rate inf"},
        {defaults, "rate 1e+39"},   {defaults, "momentum 1"}, {defaults, "momentum -0.1"},
        {defaults, "momentum nan"}, {defaults, "batch 0"},    {defaults, "batch 4294967295"}};

    bad[0].options.model = "mlp:256,,3";
    bad[1].options.optimizer = "adamm";
    bad[2].options.schedule = "cosinus";
    bad[3].options.rate = -1;
    bad[4].options.rate = (double)NAN;
    bad[5].options.rate = (double)INFINITY;
    bad[6].options.rate = 1e39;
    bad[7].options.numbers.momentum = 1;
    bad[8].options.numbers.momentum = -0.1;
    bad[9].options.numbers.momentum = (double)NAN;
    bad[10].options.batch = 0;
    bad[11].options.batch = UINT32_MAX;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct trainer *trainer;
        char why[256] = "";

        cr_expect_eq(trainer_new(&trainer, &bad[i].options, &set, why, sizeof why), PARLEY_EUSAGE);
        cr_expect_null(trainer);
        cr_expect_not_null(strstr(why, bad[i].named), "%s: %s", bad[i].named, why);
        cr_expect_not_null(strstr(why, "valid"), "%s", why);
    }
    dataset_close(&set);
}

Test(train_trainer, a_bad_share_is_refused_and_the_old_one_stays)
{
    /* Proves that sample numbers from outside can't reach past the data. */
    struct dataset set = clusters(10, 1, 1, 1);
    struct bench bench;

    bench_init(&bench, &defaults, &set, 1);
    cr_expect_eq(trainer_share(bench.trainer, &bench.node, NULL, 0, NULL, 1), PARLEY_EDATA);
    cr_expect_eq(trainer_share(bench.trainer, &bench.node, (const uint32_t[]){0, 10}, 2, NULL, 1),
                 PARLEY_EDATA);
    cr_expect(isfinite(step(&bench, 0)));
    cr_expect_eq(trainer_share(bench.trainer, &bench.node, (const uint32_t[]){0, 9}, 2, NULL, 1),
                 0);
    cr_expect(isfinite(step(&bench, 0)));
    bench_close(&bench);
    dataset_close(&set);
}

Test(train_trainer, linear_regression_finds_the_plane_and_reports_squared_error)
{
    /* Proves the loss and its gradient (against float64, step by step), and that there is no
     * accuracy. */
    for (uint64_t seed = 0; seed < 3; seed++) {
        struct dataset set = clusters(60, 1, seed, seed);
        struct trainer_options options = defaults;
        struct bench bench;
        double w[FEATURES + 1], accuracy, loss;

        set.classes = 1;
        set.targets = calloc(set.count, sizeof *set.targets);
        for (uint32_t i = 0; i < set.count; i++) {
            set.labels[i] = 0;
            set.targets[i] = 3 * set.values[i * FEATURES] - set.values[i * FEATURES + 1] + 7;
        }
        options.model = "linear";
        options.optimizer = "sgd";
        options.schedule = "constant";
        options.batch = set.count;
        bench_init(&bench, &options, &set, seed);
        for (int i = 0; i <= FEATURES; i++)
            w[i] = (double)bench.x[i];
        for (int s = 0; s < 100; s++) {
            double g[FEATURES + 1] = {0}, wanted = 0, got = step(&bench, 0);

            for (uint32_t i = 0; i < set.count; i++) {
                double d = w[FEATURES] - (double)set.targets[i];
                for (int f = 0; f < FEATURES; f++)
                    d += w[f] * (double)set.values[i * FEATURES + (uint32_t)f];
                for (int f = 0; f < FEATURES; f++)
                    g[f] += 2 * d * (double)set.values[i * FEATURES + (uint32_t)f] / set.count;
                g[FEATURES] += 2 * d / set.count;
                wanted += d * d / set.count;
            }
            cr_expect_float_eq(got, wanted, 1e-4 * (1 + wanted));
            for (int i = 0; i <= FEATURES; i++)
                w[i] -= 0.05 * g[i];
        }
        for (int i = 0; i <= FEATURES; i++)
            cr_expect_float_eq((double)bench.x[i], w[i], 1e-4);
        for (int s = 0; s < 2000; s++)
            step(&bench, 0);
        trainer_evaluate(bench.trainer, bench.x, &set, &accuracy, &loss);
        cr_expect(isnan(accuracy));
        cr_expect_lt(loss, 1e-4);
        bench_close(&bench);
        dataset_close(&set);
    }
}

Test(train_trainer, a_network_learns_numbers_whatever_their_unit)
{
    /* Proves that it comes to the same weights, to the bit, and that the loss is in the square of
     * that unit; and that it learns what no plane is. */
    struct dataset set = clusters(400, 1, 1, 1);
    struct trainer_options options = defaults;
    struct bench bench[2];
    double accuracy, loss[2], spread;
    size_t bytes;

    set.classes = 1;
    memset(set.labels, 0, set.count * sizeof *set.labels);
    set.targets = calloc(set.count, sizeof *set.targets);
    options.model = "mlp:32";
    for (int b = 0; b < 2; b++) {
        for (uint32_t i = 0; i < set.count; i++)
            set.targets[i] = fabsf(set.values[i * FEATURES]) * (b == 0 ? 1 : 65536);
        cr_assert_eq(dataset_measure(&set), 0);
        bench_init(&bench[b], &options, &set, 1);
        for (int s = 0; s < 500; s++)
            step(&bench[b], s / 500.0);
        trainer_evaluate(bench[b].trainer, bench[b].x, &set, &accuracy, &loss[b]);
    }
    bytes = trainer_parameters(bench[0].trainer) * sizeof(float);
    cr_expect_eq(memcmp(bench[0].x, bench[1].x, bytes), 0);
    cr_expect_float_eq(loss[1] / loss[0], 65536.0 * 65536, 1);
    spread = dataset_label_unit(&set);
    cr_expect_lt(loss[1], 0.05 * spread);
    for (int b = 0; b < 2; b++)
        bench_close(&bench[b]);
    dataset_close(&set);
}

Test(train_trainer, labels_that_are_numbers_or_classes_are_refused_where_they_do_not_fit)
{
    /* Proves both ways round. */
    struct dataset set = clusters(20, 1, 1, 1);
    struct trainer_options options = defaults;
    struct trainer *trainer;
    char why[256];

    options.model = "linear";
    cr_expect_eq(trainer_new(&trainer, &options, &set, why, sizeof why), PARLEY_EUSAGE);
    cr_expect_str_eq(why, "model 'linear' takes numbers as labels, not classes: write \",numbers\" "
                          "behind --data csv:, libsvm: or npy:");
    set.targets = calloc(set.count, sizeof *set.targets);
    set.classes = 1;
    options.model = "softmax";
    cr_expect_eq(trainer_new(&trainer, &options, &set, why, sizeof why), PARLEY_EUSAGE);
    cr_expect_str_eq(why, "model 'softmax' takes classes as labels, not numbers; linear and "
                          "mlp:256,128 take these");
    dataset_close(&set);
}
