/* step.c: a whole local step beside the matrix products in it, on one core.
 *
 * The step is the trainer's own: draw samples, gather and scale them, forward, loss, backward,
 * update by the default optimizer (momentum; rows with /sgd: without). The data are what one
 * node of eight has of MNIST. The limit are the bare sgemm calls of that step (product.h and conv.c
 * of train/layers; of layers with few outputs, too), on vectors of their own. A sample is many
 * steps, as it is in training: two things that take turns step by step push each other's vectors
 * out of the cache. step/lenet/mlp is how many steps of the MLP one of LeNet takes as long as; it
 * shall be 4 at most.
 */
#include "cli/bench/bench.h"

#include <cblas.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "core/rng.h"
#include "data/dataset.h"
#include "train/layers/layers.h"
#include "train/layers/product.h"
#include "train/model.h"
#include "train/trainer.h"

enum { SAMPLE_US = 10000, REPEATS = 150, REPEATS_QUICK = 5 };
enum { ROWS = BENCH_BATCH, SIDE = 28, CLASSES = 10, SAMPLES = 7500, SAMPLES_QUICK = 750 };

static const struct row {
    const char *name, *model, *optimizer;
} rows[] = {{"step/mlp", "mlp:256,128", "momentum"},
            {"step/mlp/sgd", "mlp:256,128", "sgd"},
            {"step/softmax", "softmax", "momentum"},
            {"step/softmax/sgd", "softmax", "sgd"},
            {"step/lenet", "lenet", "momentum"}};

enum { ROW_MLP = 0, ROW_LENET = 4, TIMES_MAX = 4 };

struct step {
    struct dataset set;
    struct trainer *trainer;
    struct trainer_node own;
    float *x, *state[2];
    /* The products': inputs and outputs of the layers, and what is computed. */
    float *parameters, *gradient, *activations, *deltas;
};

static int make_images(struct dataset *set, uint32_t count)
{
    struct rng rng = rng_init(1, 1);
    size_t bytes = (size_t)count * SIDE * SIDE;
    *set = (struct dataset){.count = count,
                            .features = SIDE * SIDE,
                            .channels = 1,
                            .height = SIDE,
                            .width = SIDE,
                            .classes = CLASSES,
                            .bytes = malloc(bytes),
                            .labels = malloc(count * sizeof *set->labels)};
    if (!set->bytes || !set->labels) return PARLEY_ENOMEM;
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
        uint64_t bits = rng_next(&rng);
        for (int b = 0; b < 8; b++)
            set->bytes[i + (size_t)b] = (uint8_t)(bits >> 8 * b);
    }
    for (uint32_t i = 0; i < count; i++)
        set->labels[i] = (uint16_t)rng_below(&rng, CLASSES);
    return dataset_measure(set);
}

static void close_step(struct step *step)
{
    trainer_free(step->trainer);
    sampler_close(&step->own.sampler);
    dataset_close(&step->set);
    free(step->x);
    free(step->parameters);
    free(step->gradient);
    free(step->activations);
    free(step->deltas);
}

/* The widest layer is the input. */
static int make_step(struct step *step, const struct row *row, struct bench *bench)
{
    int error = make_images(&step->set, bench->quick ? SAMPLES_QUICK : SAMPLES);
    if (!error)
        error = bench_trainer(bench, row->model, row->optimizer, 1e-6, &step->set, &step->trainer,
                              &step->own);
    if (error) return error;
    size_t parameters = trainer_parameters(step->trainer), wide = ROWS * SIDE * SIDE;
    step->x = trainer_vectors(step->trainer, step->state);
    step->parameters = bench_vector(parameters);
    step->gradient = bench_vector(parameters);
    step->activations = bench_vector(wide);
    step->deltas = bench_vector(wide);
    if (!step->x || !step->parameters || !step->gradient || !step->activations || !step->deltas)
        return PARLEY_ENOMEM;
    return 0;
}

static void whole_step(void *context)
{
    const struct trainer_turn turn = {.progress = 0.5, .live = 1};
    struct step *step = context;
    trainer_step(step->trainer, &step->own, step->x, step->x, step->state, &turn);
}

/* The products of a convolution, sample by sample: layers/conv.c. */
static void convolve(struct step *step, const struct layer *layer, bool forward, bool below)
{
    blasint out = (blasint)layer->out.channels, patch = (blasint)layer->in.channels;
    blasint places = (blasint)(layer->out.height * layer->out.width);
    const float *weight = step->parameters + layer->at[0];
    patch *= (blasint)(layer->option[CONV_KERNEL] * layer->option[CONV_KERNEL]);
    for (int row = 0; row < ROWS && forward; row++)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, out, places, patch, 1, weight, patch,
                    step->activations, places, 0, step->deltas, places);
    for (int row = 0; row < ROWS && !forward; row++) {
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, patch, out, places, 1,
                    step->activations, places, step->deltas, out, 1, step->gradient, out);
        if (below)
            cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, patch, places, out, 1, weight,
                        patch, step->deltas, places, 0, step->activations, places);
    }
}

static void dense_back(struct step *step, const struct layer *layer, bool below)
{
    struct product p = dense_product(layer);
    uint32_t tile = product_tile(&p, ROWS);
    float *into = step->gradient + layer->at[0];
    if (below)
        product_back(&p, ROWS, step->deltas, step->parameters + layer->at[0], step->activations);
    for (uint32_t i = 0; i < p.in; i += tile)
        product_weights(&p, ROWS, i, p.in - i < tile ? p.in - i : tile, step->activations,
                        step->deltas, 1, 0, into + (size_t)i * p.out);
}

/* Forward for each layer, the gradient of its weights, and that of its input but for the first. */
static void products(void *context)
{
    struct step *step = context;
    uint32_t count;
    const struct layer *layers = model_layers(trainer_model(step->trainer), &count);
    for (uint32_t l = 0; l < count; l++) {
        if (layers[l].kind == &layer_conv) convolve(step, &layers[l], true, false);
        if (layers[l].kind != &layer_dense) continue;
        struct product p = dense_product(&layers[l]);
        product_forward(&p, ROWS, step->activations, step->parameters + layers[l].at[0],
                        step->deltas);
    }
    for (uint32_t l = count; l-- > 0;) {
        if (layers[l].kind == &layer_conv) convolve(step, &layers[l], false, l > 0);
        if (layers[l].kind == &layer_dense) dense_back(step, &layers[l], l > 0);
    }
}

/* Of a step, in the mean of as many as fill a sample. */
static double seconds(struct step *step)
{
    double start = bench_now(), end = start;
    uint32_t steps = 0;
    for (; end - start < SAMPLE_US / 1e6; steps++, end = bench_now())
        whole_step(step);
    return (end - start) / steps;
}

/* How many steps of the MLP one of LeNet takes as long as: in turns. */
static int bench_times(struct bench *bench)
{
    double values[REPEATS], limits[REPEATS];
    size_t repeats = bench->quick ? REPEATS_QUICK : REPEATS;
    struct step lenet = {0}, mlp = {0};
    int error = make_step(&lenet, &rows[ROW_LENET], bench);
    if (!error) error = make_step(&mlp, &rows[ROW_MLP], bench);
    bench_round("step/lenet/mlp", 0, 0);
    for (size_t i = 0; !error && i < repeats; i++) {
        values[i] = seconds(&lenet);
        values[i] /= seconds(&mlp);
        limits[i] = TIMES_MAX;
    }
    if (!error)
        bench_row(bench, "step/lenet/mlp", "times", FIGURE_LESS_IS_BETTER, values, limits, repeats);
    close_step(&lenet);
    close_step(&mlp);
    return error;
}

int bench_step(struct bench *bench)
{
    int error = environment_claim(1, bench->why, BENCH_WHY_BYTES);
    for (size_t i = 0; !error && i < sizeof rows / sizeof *rows; i++) {
        struct step step = {0};
        struct bench_pair pair = {whole_step, products, &step, SAMPLE_US, 1e6};
        error = make_step(&step, &rows[i], bench);
        if (!error)
            bench_pair(bench, rows[i].name, "us", FIGURE_LESS_IS_BETTER, &pair,
                       bench->quick ? REPEATS_QUICK : REPEATS);
        close_step(&step);
    }
    return error ? error : bench_times(bench);
}
