/* train_step.c: a step of the trainer is what float64 says, whole or in halves, and momenta follow
 * averaging. */
#include "trainer_bench.h"

static double relative_distance(const float *x, const double *reference, int n)
{
    double error = 0, norm = 0;
    for (int i = 0; i < n; i++) {
        error += ((double)x[i] - reference[i]) * ((double)x[i] - reference[i]);
        norm += reference[i] * reference[i];
    }
    return sqrt(error / norm);
}

/* Trains beside a float64 reference on full batches; the relative distance at the end. */
static double distance_from_reference(const char *optimizer, uint64_t seed)
{
    enum { N = (FEATURES + 1) * CLASSES };
    struct dataset set = clusters(130, 1, seed, seed);
    struct trainer_options options = defaults;
    struct bench bench;
    double x[N], m[N] = {0}, g[N];

    options.optimizer = optimizer;
    options.batch = strcmp(optimizer, "gd") == 0 ? 5 : set.count; /* gd: parts, a smaller last */
    options.seed = seed;
    bench_init(&bench, &options, &set, 7);
    cr_assert_eq(trainer_samples(bench.trainer, &bench.node), set.count);
    cr_assert_eq(trainer_parameters(bench.trainer), N);
    for (int i = 0; i < N; i++)
        x[i] = (double)bench.x[i];
    for (int s = 0; s < 100; s++) {
        double rate = 0.05 * (1 + cos(acos(-1) * s / 100)) / 2;
        double loss = step(&bench, s / 100.0);

        cr_expect_float_eq(loss, reference_gradient(&set, x, g), 1e-5);
        for (int i = 0; i < N; i++) {
            m[i] = strstr("gd sgd", optimizer) ? g[i] : 0.9 * m[i] + g[i];
            x[i] -= rate * (strcmp(optimizer, "nesterov") == 0 ? g[i] + 0.9 * m[i] : m[i]);
        }
    }
    double distance = relative_distance(bench.x, x, N);
    bench_close(&bench);
    dataset_close(&set);
    return distance;
}

Test(train_step, a_hundred_steps_follow_float64)
{
    /* Proves batch, loss, mean gradient, optimizer and schedule put together. */
    static const char *const optimizers[] = {"gd", "sgd", "momentum", "nesterov"};

    for (size_t o = 0; o < 4; o++) {
        for (uint64_t seed = 0; seed < 5; seed++) {
            double distance = distance_from_reference(optimizers[o], seed);

            cr_expect_leq(distance, 1e-6, "%s, seed %d: %g", optimizers[o], (int)seed, distance);
        }
    }
}

/* As above, with a delta on x every third step or two steps in a row, as averaging makes them. */
static double distance_when_averaged(const char *optimizer, uint64_t seed)
{
    enum { N = (FEATURES + 1) * CLASSES };
    struct dataset set = clusters(130, 1, seed, seed);
    struct trainer_options options = defaults;
    struct rng rng = rng_init(seed, 9);
    struct bench bench;
    double x[N], m[N] = {0}, g[N], density = 0;
    uint64_t averaged = 0;

    options.optimizer = optimizer;
    options.momentum_mode = TRAINER_MOMENTUM_QUASI_GLOBAL;
    options.batch = set.count;
    bench_init(&bench, &options, &set, 7);
    for (int i = 0; i < N; i++)
        x[i] = (double)bench.x[i];
    for (int s = 0; s < 100; s++) {
        double factor = (1 + cos(acos(-1) * s / 100)) / 2, rate = 0.05 * factor;
        bool changed = s % 3 == 1 || s % 7 < 2;
        struct trainer_turn turn = {.progress = s / 100.0, .live = 2};

        averaged += changed;
        turn.averaged = averaged;
        density += (changed - density) / 32;
        step_at(&bench, &turn);
        reference_gradient(&set, x, g);
        for (int i = 0; i < N; i++) {
            m[i] = 0.9 * m[i] + g[i];
            x[i] -= rate * (strcmp(optimizer, "nesterov") == 0 ? g[i] + 0.9 * m[i] : m[i]);
        }
        changed = (s + 1) % 3 == 1 || (s + 1) % 7 < 2; /* before the next step */
        for (int i = 0; changed && i < N; i++) {
            float delta = (float)(rate * rng_normal(&rng));

            bench.x[i] += delta;
            bench.state[0][i] += delta * trainer_follow(bench.trainer, &bench.node);
            x[i] += (double)delta;
            m[i] -= 0.5 * density * (double)delta / (factor < 0.01 ? 0.0005 : rate);
        }
    }
    double distance = relative_distance(bench.x, x, N);
    bench_close(&bench);
    dataset_close(&set);
    return distance;
}

Test(train_step, a_momentum_that_follows_averaging_does_so_as_in_float64)
{
    /* Half of a delta, over the rate, times the averagings a step lately. */
    for (uint64_t seed = 0; seed < 5; seed++) {
        cr_expect_leq(distance_when_averaged("momentum", seed), 1e-6);
        cr_expect_leq(distance_when_averaged("nesterov", seed), 1e-6);
    }
}

Test(train_step, only_a_momentum_in_quasi_global_mode_follows_and_never_by_more_than_its_bound)
{
    /* Also where the schedule has come to rate 0. */
    static const char *const optimizers[] = {"gd", "sgd", "adagrad", "rmsprop", "adam", "momentum"};
    struct dataset set = clusters(64, 1, 1, 1);

    for (int o = 0; o < 6; o++) {
        struct trainer_options options = defaults;
        struct bench bench;
        bool local = o == 5;

        options.optimizer = optimizers[o];
        options.momentum_mode = local ? TRAINER_MOMENTUM_LOCAL : TRAINER_MOMENTUM_QUASI_GLOBAL;
        bench_init(&bench, &options, &set, 1);
        for (uint64_t s = 1; s <= 40; s++)
            step_at(&bench, &(struct trainer_turn){.live = 2, .averaged = s});
        cr_expect_eq(trainer_follow(bench.trainer, &bench.node), 0, "%s", optimizers[o]);
        bench_close(&bench);
    }
    struct trainer_options options = defaults;
    struct bench bench;
    options.momentum_mode = TRAINER_MOMENTUM_QUASI_GLOBAL;
    bench_init(&bench, &options, &set, 1);
    cr_expect_eq(trainer_follow(bench.trainer, &bench.node), 0, "before the first step");
    for (uint64_t s = 1; s <= 400; s++)
        step_at(&bench, &(struct trainer_turn){.progress = 1, .live = 2, .averaged = s});
    cr_expect_lt(trainer_follow(bench.trainer, &bench.node), -900);
    cr_expect_geq(trainer_follow(bench.trainer, &bench.node), -1000);
    bench_close(&bench);
    dataset_close(&set);
}

Test(train_step, a_momentum_that_begins_anew_after_each_step_is_plain_sgd)
{
    /* And one that no averaging touches is a momentum. */
    struct dataset set = clusters(64, 1, 1, 1);
    struct trainer_options options = defaults;
    struct bench reset, plain, untouched, momentum;

    options.momentum_mode = TRAINER_MOMENTUM_RESET;
    bench_init(&reset, &options, &set, 3);
    bench_init(&untouched, &options, &set, 3);
    options.momentum_mode = TRAINER_MOMENTUM_LOCAL;
    bench_init(&momentum, &options, &set, 3);
    options.optimizer = "sgd";
    bench_init(&plain, &options, &set, 3);
    for (uint64_t s = 1; s <= 30; s++) {
        step_at(&reset, &(struct trainer_turn){.live = 2, .averaged = s});
        step_at(&plain, &(struct trainer_turn){.live = 2});
        step_at(&untouched, &(struct trainer_turn){.live = 2});
        step_at(&momentum, &(struct trainer_turn){.live = 2});
    }
    for (int i = 0; i < (FEATURES + 1) * CLASSES; i++) {
        cr_assert_float_eq(reset.x[i], plain.x[i], 1e-5f);
        cr_assert_eq(untouched.x[i], momentum.x[i]);
    }
    bench_close(&reset);
    bench_close(&plain);
    bench_close(&untouched);
    bench_close(&momentum);
    dataset_close(&set);
}

Test(train_step, a_step_in_two_halves_is_the_whole_step)
{
    /* Gradient, then apply with factor 1, gives what trainer_step gives, to rounding, for every
     * rule with decay and both ways of clipping; the gradient stays as it was. */
    static const char *const optimizers[] = {"gd",      "sgd",     "momentum", "nesterov",
                                             "adagrad", "rmsprop", "adam",     "adamw"};
    struct dataset set = clusters(64, 0.5, 1, 2);
    for (size_t o = 0; o < 4 * sizeof optimizers / sizeof *optimizers; o++) {
        struct trainer_options options = defaults;
        struct bench whole, halves;
        float gradient[64], kept[64];
        options.optimizer = optimizers[o / 4];
        options.rate = 0.01;
        options.numbers.weight_decay = 0.1;
        options.numbers.clip_norm = o % 4 == 1 || o % 4 == 3 ? 0.3 : 0;
        options.numbers.clip_value = o % 4 >= 2 ? 0.05 : 0;
        bench_init(&whole, &options, &set, 1);
        bench_init(&halves, &options, &set, 1);
        size_t n = trainer_parameters(whole.trainer);
        cr_assert_leq(n, 64);
        for (int s = 0; s < 20; s++) {
            struct trainer_turn turn = {.live = 1, .steps = halves.steps++};
            double loss = step(&whole, 0);
            double same = trainer_gradient(halves.trainer, &halves.node, halves.x, gradient);
            memcpy(kept, gradient, sizeof kept);
            trainer_apply(halves.trainer, &halves.node, halves.x, halves.state, gradient, 1, &turn);
            cr_assert_eq(memcmp(kept, gradient, n * sizeof *kept), 0);
            cr_assert_float_eq(loss, same, 1e-5);
        }
        for (size_t i = 0; i < n; i++)
            cr_assert_float_eq(whole.x[i], halves.x[i], 2e-5, "%s, clipping %zu: %g is %g",
                               options.optimizer, o % 4, halves.x[i], whole.x[i]);
        bench_close(&whole);
        bench_close(&halves);
    }
    free(set.values);
    free(set.labels);
    free(set.shift);
    free(set.scale);
}

/* Whether the caller's own numbers may be subnormal, as averaging wants them. */
static bool keeps_subnormals(void)
{
    volatile float least = 1e-40f;

    return least * 0.5f != 0;
}

Test(train_step, a_momentum_that_nothing_feeds_ends_at_0_and_is_never_subnormal)
{
    /* Proves that such numbers, which make a step three times as long on some processors, are not
     * kept by a step, in one or in halves, and that the mode ends with each call. */
    static const char *const models[] = {"softmax", "mlp:40"};
    struct dataset set = clusters(200, 1, 1, 1);

#if !defined(__x86_64__) && !defined(__aarch64__)
    cr_skip("this processor's mode is not known");
#endif
    for (uint32_t i = 0; i < set.count; i++)
        set.values[i * FEATURES] = 0; /* nothing comes in by the first row of weights */
    for (int m = 0; m < 2; m++)
        for (int halves = 0; halves < 2; halves++) {
            struct trainer_options options = defaults;
            const struct trainer_turn turn = {.live = 1};
            struct bench bench;
            double accuracy, loss;
            float *gradient;
            uint32_t rows;

            options.model = models[m];
            bench_init(&bench, &options, &set, 1);
            gradient = calloc(trainer_parameters(bench.trainer), sizeof *gradient);
            for (int i = 0; i < CLASSES; i++)
                bench.m[i] = i % 2 == 0 ? 1e-40f : -1e-45f;
            if (halves) {
                trainer_gradient(bench.trainer, &bench.node, bench.x, gradient);
                cr_expect(keeps_subnormals());
                trainer_apply(bench.trainer, &bench.node, bench.x, bench.state, gradient, 1, &turn);
            } else {
                step(&bench, 0);
            }
            cr_expect(keeps_subnormals());
            for (int i = 0; i < CLASSES; i++)
                cr_expect_eq(bench.m[i], 0, "%s: %g", models[m], (double)bench.m[i]);
            cr_expect_neq(bench.m[trainer_parameters(bench.trainer) - 1], 0);
            trainer_evaluate(bench.trainer, bench.x, &set, &accuracy, &loss);
            cr_expect(keeps_subnormals());
            for (size_t i = 0; i < trainer_parameters(bench.trainer); i++)
                bench.x[i] = 1e-39f;
            cr_expect_eq(trainer_outputs(bench.trainer, bench.x, &set, 0, &rows)[0], 0);
            cr_expect(keeps_subnormals());
            free(gradient);
            bench_close(&bench);
        }
    dataset_close(&set);
}

/* Steps to and fro between two places, beside steps of the same samples in one. */
static void step_apart(const struct trainer_options *options, const struct dataset *set)
{
    struct bench in_place, apart;
    bench_init(&in_place, options, set, 1);
    bench_init(&apart, options, set, 1);
    size_t bytes = trainer_parameters(apart.trainer) * sizeof(float);
    float *from = malloc(bytes), *kept = malloc(bytes);
    for (uint64_t s = 0; s < 6; s++) {
        const struct trainer_turn turn = {.live = 1, .steps = s};
        if (s == 4) /* finite, but no logit is: nothing is changed */
            for (size_t i = 0; i < bytes / sizeof *from; i++)
                in_place.x[i] = apart.x[i] = i % 2 == 0 ? 3e38f : -3e38f;
        float *swap = from;
        from = apart.x;
        apart.x = swap;
        memcpy(kept, from, bytes);
        memset(apart.x, 0xff, bytes); /* NaN: must not be read */
        step_at(&in_place, &turn);
        trainer_step(apart.trainer, &apart.node, from, apart.x, apart.state, &turn);
        cr_assert_eq(memcmp(kept, from, bytes), 0);
        cr_assert_eq(memcmp(in_place.x, apart.x, bytes), 0, "%s of %s, step %d", options->optimizer,
                     options->model, (int)s);
    }
    free(kept);
    free(from);
    bench_close(&in_place);
    bench_close(&apart);
}

Test(train_step, a_step_from_elsewhere_is_that_in_place_to_the_bit)
{
    /* Proves that x before a step may stand somewhere else and stays as it is, for every rule, with
     * decay and clipping and without, of networks with running statistics and without, and where
     * the loss is not finite. */
    static const char *const optimizers[] = {"gd",      "sgd",     "momentum", "nesterov",
                                             "adagrad", "rmsprop", "adam",     "adamw"};
    static const char *const models[] = {"mlp:5", "resnet:1"};
    struct dataset set = clusters(40, 1, 1, 1);
    set.channels = 1;
    set.height = 2;
    set.width = 3;
    for (size_t o = 0; o < 4 * sizeof optimizers / sizeof *optimizers; o++) {
        struct trainer_options options = defaults;
        options.optimizer = optimizers[o / 4];
        options.model = models[o % 2];
        options.rate = 0.01;
        options.batch = 8;
        options.numbers.weight_decay = o % 4 < 2 ? 0 : 0.1;
        options.numbers.clip_norm = o % 4 < 2 ? 0 : 0.3;
        step_apart(&options, &set);
    }
    dataset_close(&set);
}

Test(train_step, a_stale_gradient_is_applied_whole_at_a_smaller_rate)
{
    /* Proves that a weight of 4 is a quarter of the rate and nothing else: not of the decay beside
     * the gradient, nor of what clipping goes by; and adam, which sees no scale, is slowed too. */
    static const char *const optimizers[] = {"sgd", "momentum", "nesterov", "adam", "adamw"};
    struct dataset set = clusters(64, 0.5, 1, 2);
    for (size_t o = 0; o < sizeof optimizers / sizeof *optimizers; o++) {
        struct trainer_options options = defaults;
        struct bench stale, slow;
        float gradient[64];

        options.optimizer = optimizers[o];
        options.numbers.weight_decay = 0.1;
        options.numbers.clip_norm = 0.3;
        bench_init(&stale, &options, &set, 1);
        options.rate /= 4;
        bench_init(&slow, &options, &set, 1);
        for (int s = 0; s < 5; s++) {
            struct trainer_turn turn = {.live = 1, .steps = (uint64_t)s};
            trainer_gradient(slow.trainer, &slow.node, slow.x, gradient);
            trainer_apply(slow.trainer, &slow.node, slow.x, slow.state, gradient, 1, &turn);
            turn.weight = 4;
            trainer_apply(stale.trainer, &stale.node, stale.x, stale.state, gradient, 1, &turn);
        }
        for (size_t i = 0; i < trainer_parameters(slow.trainer); i++)
            cr_assert_float_eq(stale.x[i], slow.x[i], 1e-7, "%s: %g for %g", options.optimizer,
                               (double)stale.x[i], (double)slow.x[i]);
        bench_close(&slow);
        bench_close(&stale);
    }
    dataset_close(&set);
}

Test(train_step, gradients_that_are_averaged_bring_running_statistics_along)
{
    /* Proves that a step by gradient and apply is to rounding a step, of a network whose vector has
     * a part that no optimizer moves; and that the mean of two nodes' moves is taken. */
    struct dataset set = clusters(40, 1, 1, 1);
    struct trainer_options options = defaults;
    struct bench whole, apart;
    const struct trainer_turn turn = {.live = 1};

    set.channels = 1;
    set.height = 2;
    set.width = 3;
    options.model = "resnet:1";
    options.batch = 8;
    bench_init(&whole, &options, &set, 1);
    bench_init(&apart, &options, &set, 1);
    size_t n = trainer_parameters(whole.trainer),
           trained = model_trained(trainer_model(whole.trainer));
    float *gradient = malloc(n * sizeof *gradient);
    cr_assert_lt(trained, n);
    for (int s = 0; s < 5; s++) {
        memset(gradient, 0xff, n * sizeof *gradient); /* NaN: must not be read */
        step_at(&whole, &turn);
        trainer_gradient(apart.trainer, &apart.node, apart.x, gradient);
        for (size_t i = 0; i < n; i++)
            gradient[i] *= 2; /* as if another node had found the same */
        trainer_apply(apart.trainer, &apart.node, apart.x, apart.state, gradient, 0.5f, &turn);
    }
    for (size_t i = 0; i < n; i++)
        cr_assert_float_eq(whole.x[i], apart.x[i], 1e-4, "at %zu: %g, %g", i, (double)whole.x[i],
                           (double)apart.x[i]);
    cr_expect_neq(whole.x[trained], 0);
    const float was = apart.x[trained];
    const struct trainer_turn stale = {.live = 1, .weight = 4};
    gradient[trained] = 8;
    trainer_apply(apart.trainer, &apart.node, apart.x, apart.state, gradient, 0.5f, &stale);
    cr_expect_float_eq(apart.x[trained], was + 1, 1e-6);
    free(gradient);
    bench_close(&apart);
    bench_close(&whole);
    dataset_close(&set);
}
