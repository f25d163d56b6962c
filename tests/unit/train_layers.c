/* Each kind of layers, and whole networks of them, against float64, which is written here apart and
 * plainly; running statistics; what can't be put together. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "train/gradient.h"
#include "train/layers/layers.h"
#include "train/loss.h"

#define ROWS 4
#define LAYERS_MAX 64

/* ---- The reference: the same network in float64 ---------------------------------------------- */

struct reference {
    const struct layer *layers;
    uint32_t count;
    double *out[LAYERS_MAX]; /* [ROWS][out] of each layer */
    double *inputs;          /* [ROWS][in] */
};

static double *channel(const struct shape *shape, double *all, size_t row, size_t c)
{
    return all + (row * shape->channels + c) * shape->height * shape->width;
}

static void dense(const struct layer *layer, const double *x, double *in, double *out)
{
    const uint32_t *sizes = layer->tensors[0].shape;

    for (size_t row = 0; row < (size_t)ROWS * layer->out.height; row++)
        for (uint32_t j = 0; j < sizes[1]; j++) {
            double sum = x[layer->at[1] + j];
            for (uint32_t i = 0; i < sizes[0]; i++)
                sum += in[row * sizes[0] + i] * x[layer->at[0] + (size_t)i * sizes[1] + j];
            out[row * sizes[1] + j] = sum;
        }
}

static double conv_at(const struct layer *layer, const double *w, double *in, size_t row, int y,
                      int x)
{
    int k = (int)layer->option[CONV_KERNEL], stride = (int)layer->option[CONV_STRIDE];
    int pad = (int)layer->option[CONV_PAD], height = (int)layer->in.height;
    int width = (int)layer->in.width;
    double sum = 0;

    for (uint32_t c = 0; c < layer->in.channels; c++) {
        const double *from = channel(&layer->in, in, row, c);
        for (int u = 0; u < k; u++)
            for (int v = 0; v < k; v++) {
                int i = y * stride + u - pad, j = x * stride + v - pad;
                if (i >= 0 && i < height && j >= 0 && j < width)
                    sum += w[(c * (size_t)k + (size_t)u) * (size_t)k + (size_t)v] *
                           from[i * width + j];
            }
    }
    return sum;
}

static void conv(const struct layer *layer, const double *x, double *in, double *out)
{
    size_t patch =
        (size_t)layer->in.channels * layer->option[CONV_KERNEL] * layer->option[CONV_KERNEL];

    for (size_t row = 0; row < ROWS; row++)
        for (uint32_t o = 0; o < layer->out.channels; o++)
            for (uint32_t i = 0; i < layer->out.height; i++)
                for (uint32_t j = 0; j < layer->out.width; j++)
                    channel(&layer->out, out, row, o)[i * layer->out.width + j] =
                        conv_at(layer, x + layer->at[0] + o * patch, in, row, (int)i, (int)j) +
                        (layer->option[CONV_BARE] ? 0 : x[layer->at[1] + o]);
}

static void pool(const struct layer *layer, double *in, double *out, bool mean)
{
    struct shape to = layer->out, from = layer->in;
    size_t places = (size_t)from.height * from.width;

    for (size_t p = 0; p < (size_t)ROWS * to.channels; p++, in += places)
        for (size_t i = 0; i < to.height; i++)
            for (size_t j = 0; j < to.width; j++, out++) {
                *out = mean ? 0 : -INFINITY;
                for (size_t k = 0; mean && k < places; k++)
                    *out += in[k] / (double)places;
                for (size_t k = 0; !mean && k < 4; k++)
                    *out = fmax(*out, in[(2 * i + k / 2) * from.width + 2 * j + k % 2]);
            }
}

static void norm(const struct layer *layer, const double *x, double *in, double *out)
{
    size_t places = (size_t)layer->in.height * layer->in.width;

    for (uint32_t c = 0; c < layer->in.channels; c++) {
        double mean = 0, variance = 0, count = (double)(ROWS * places);
        for (size_t i = 0; i < ROWS * places; i++)
            mean += channel(&layer->in, in, i / places, c)[i % places] / count;
        for (size_t i = 0; i < ROWS * places; i++)
            variance += pow(channel(&layer->in, in, i / places, c)[i % places] - mean, 2) / count;
        for (size_t i = 0; i < ROWS * places; i++)
            channel(&layer->in, out, i / places, c)[i % places] =
                (channel(&layer->in, in, i / places, c)[i % places] - mean) /
                    sqrt(variance + 1e-5) * x[layer->at[0] + c] +
                x[layer->at[1] + c];
    }
}

static void add(const struct layer *layer, double *in, double *skip, double *out)
{
    struct shape from = layer->skip_in, to = layer->in;
    size_t s = from.channels < to.channels ? 2 : 1; /* as the convolutions beside it */

    memcpy(out, in, ROWS * shape_size(to) * sizeof *out);
    for (size_t row = 0; row < ROWS; row++)
        for (uint32_t c = 0; c < from.channels; c++)
            for (size_t i = 0; i < to.height; i++)
                for (size_t j = 0; j < to.width; j++)
                    channel(&to, out, row, c)[i * to.width + j] +=
                        channel(&from, skip, row, c)[i * s * from.width + j * s];
}

/* The summed cross-entropy; the layers before `first` stay as they came out last. */
static double reference_loss(struct reference *r, const double *x, const uint16_t *labels,
                             uint32_t first)
{
    double *in = first > 0 ? r->out[first - 1] : r->inputs, loss = 0;

    for (uint32_t l = first; l < r->count; in = r->out[l], l++) {
        const struct layer *layer = &r->layers[l];
        size_t floats = ROWS * shape_size(layer->out);

        if (layer->kind == &layer_dense) dense(layer, x, in, r->out[l]);
        if (layer->kind == &layer_conv) conv(layer, x, in, r->out[l]);
        if (layer->kind == &layer_max_pool) pool(layer, in, r->out[l], false);
        if (layer->kind == &layer_mean_pool) pool(layer, in, r->out[l], true);
        if (layer->kind == &layer_batch_norm) norm(layer, x, in, r->out[l]);
        if (layer->kind == &layer_add) add(layer, in, r->out[layer->skip], r->out[l]);
        for (size_t i = 0; layer->relu && i < floats; i++)
            r->out[l][i] = fmax(r->out[l][i], 0);
    }
    size_t classes = r->layers[r->count - 1].out.width;
    for (size_t row = 0; row < ROWS * (size_t)r->layers[r->count - 1].out.height; row++) {
        double sum = 0, *z = in + row * classes;
        for (size_t c = 0; c < classes; c++)
            sum += exp(z[c] - z[labels[row]]);
        loss += log(sum);
    }
    return loss;
}

/* ---- A network, its data and both gradients -------------------------------------------------- */

struct problem {
    struct model *model;
    struct workspace workspace;
    struct reference reference;
    size_t count;
    float *x, *gradient;
    uint16_t labels[ROWS * 8];
    double loss;
};

static void problem_init(struct problem *p, struct model *model, uint64_t seed)
{
    struct rng rng = rng_init(seed, 1);
    uint32_t count;
    const struct layer *layers = model_layers(model, &count);

    memset(p, 0, sizeof *p);
    p->model = model;
    p->count = model_parameters(model);
    p->x = malloc(p->count * sizeof(float));
    p->gradient = malloc(p->count * sizeof(float));
    cr_assert_eq(workspace_init(&p->workspace, model, ROWS), 0);
    model_start(model, seed, p->x);
    for (size_t i = 0; i < model_trained(model); i++)
        p->x[i] += (float)(0.05 * rng_normal(&rng));
    for (size_t i = 0; i < ROWS * shape_size(layers[0].in); i++)
        p->workspace.inputs[i] = (float)rng_normal(&rng);
    for (uint32_t row = 0; row < ROWS * model_places(model); row++)
        p->labels[row] = (uint16_t)rng_below(&rng, layers[count - 1].out.width);
    p->reference = (struct reference){.layers = layers, .count = count};
    size_t inputs = ROWS * shape_size(layers[0].in);
    p->reference.inputs = malloc(inputs * sizeof(double));
    for (size_t i = 0; i < inputs; i++)
        p->reference.inputs[i] = (double)p->workspace.inputs[i];
    for (uint32_t l = 0; l < count; l++)
        p->reference.out[l] = malloc(ROWS * shape_size(layers[l].out) * sizeof(double));
}

static void problem_close(struct problem *p)
{
    for (uint32_t l = 0; l < p->reference.count; l++)
        free(p->reference.out[l]);
    free(p->reference.inputs);
    workspace_close(&p->workspace);
    free(p->gradient);
    free(p->x);
    model_free(p->model);
}

static void run(struct problem *p, float *statistics)
{
    struct gradient_sink sink = {.into = p->gradient, .scale = 1, .statistics = statistics};
    uint32_t classes = p->reference.layers[p->reference.count - 1].out.width;
    float *logits;

    memset(p->gradient, 0xff, p->count * sizeof(float)); /* NaN: must not be read */
    logits = gradient_forward(p->model, &p->workspace, p->x, ROWS, true);
    p->loss = loss_gradient(logits, p->labels, ROWS * model_places(p->model), classes);
    gradient_backward(p->model, &p->workspace, p->x, ROWS, &sink);
}

/* The layer that a tensor is of. */
static uint32_t layer_of(const struct reference *r, const struct tensor *tensor)
{
    for (uint32_t l = 0; l < r->count; l++)
        for (uint32_t t = 0; t < r->layers[l].tensor_count; t++)
            if (r->layers[l].at[t] == tensor->offset) return l;
    cr_assert_fail("%s is of no layer", tensor->name);
    return 0;
}

/* Of every `stride`-th parameter of one tensor: || gradient - differences || / || differences ||.
 */
static double tensor_error(struct problem *p, const struct tensor *tensor, double *x, size_t stride)
{
    const double h = 1e-6;
    double error = 0, norm = 0;
    uint32_t layer = layer_of(&p->reference, tensor);

    for (size_t i = tensor->offset; i < tensor->offset + tensor->count; i += stride) {
        double middle = x[i], slope;

        x[i] = middle + h;
        slope = reference_loss(&p->reference, x, p->labels, layer);
        x[i] = middle - h;
        slope = (slope - reference_loss(&p->reference, x, p->labels, layer)) / (2 * h);
        x[i] = middle;
        error += pow((double)p->gradient[i] - slope, 2);
        norm += slope * slope;
    }
    (void)reference_loss(&p->reference, x, p->labels, layer); /* as it was, for the next */
    return norm > 0 ? sqrt(error / norm) : error;
}

/* Looks at about `samples` parameters of each tensor. */
static void check_gradient(struct model *model, uint64_t seed, size_t samples)
{
    struct problem p;
    uint32_t tensors;
    double *x, wanted;

    problem_init(&p, model, seed);
    const struct tensor *tensor = model_tensors(model, &tensors);
    x = malloc(p.count * sizeof *x);
    for (size_t i = 0; i < p.count; i++)
        x[i] = (double)p.x[i];
    run(&p, NULL);
    wanted = reference_loss(&p.reference, x, p.labels, 0);
    cr_expect_lt(fabs(p.loss - wanted), 1e-5 * wanted, "loss %g, not %g", p.loss, wanted);
    for (uint32_t t = 0; t < tensors && tensor[t].offset < model_trained(model); t++) {
        double error = tensor_error(&p, &tensor[t], x, 1 + tensor[t].count / samples);
        cr_expect_leq(error, 1e-4, "%s of %s, seed %d: %g", tensor[t].name, model_spec(model),
                      (int)seed, error);
    }
    free(x);
    problem_close(&p);
}

static struct model *make(const char *spec, const struct model_data *data)
{
    struct model *model;
    char why[256] = "";

    cr_assert_eq(model_new(&model, spec, data, why, sizeof why), 0, "%s", why);
    return model;
}

Test(train_layers, softmax_regression_and_networks_of_dense_layers_match_central_differences)
{
    /* Proves the loss and the way back through ReLU and weights, at any depth; and that cutting the
     * product into tiles leaves nothing out (an odd last tile included). */
    static const char *const specs[] = {"softmax", "mlp:9", "mlp:9,6", "mlp:9,6,8"};
    const struct model_data few = {.features = 7, .classes = 5};
    const struct model_data many = {.features = 131, .classes = 5};

    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
        check_gradient(make(specs[i], &few), 0, 1000);
    check_gradient(make("mlp:301", &many), 0, 128);
}

Test(train_layers, lenet_matches_central_differences)
{
    /* Proves convolution with and without border, pooling, and the way to dense layers. */
    const struct model_data grey = {
        .features = 784, .channels = 1, .height = 28, .width = 28, .classes = 10};
    const struct model_data colour = {
        .features = 3072, .channels = 3, .height = 32, .width = 32, .classes = 4};

    check_gradient(make("lenet", &grey), 0, 8);
    check_gradient(make("lenet", &colour), 0, 4);
}

Test(train_layers, a_residual_network_matches_central_differences)
{
    /* Proves batch norm (statistics of the batch are part of what is differentiated), strides,
     * both kinds of shortcuts, mean pooling; odd sizes, too. */
    const struct model_data small = {
        .features = 2 * 6 * 6, .channels = 2, .height = 6, .width = 6, .classes = 5};
    const struct model_data odd = {
        .features = 5 * 7, .channels = 1, .height = 5, .width = 7, .classes = 3};

    check_gradient(make("resnet:1", &small), 0, 3);
    check_gradient(make("resnet:2", &odd), 1, 2);
}

Test(train_layers, a_residual_network_on_narrow_images_matches_central_differences)
{
    /* Proves that each side is thinned out by its own step and that shapes of one size, as
     * 16 x 1 x 28 and 32 x 1 x 14, are not taken for one shape. */
    static const uint32_t sides[][2] = {{1, 28}, {28, 1}, {1, 27}, {2, 28}, {2, 27}, {3, 1}};

    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
        const struct model_data data = {.features = sides[i][0] * sides[i][1],
                                        .channels = 1,
                                        .height = sides[i][0],
                                        .width = sides[i][1],
                                        .classes = 3};
        check_gradient(make("resnet:1", &data), 1, 1);
    }
}

/* ---- Running statistics ---------------------------------------------------------------------- */

static const struct model_data tiny = {
    .features = 2 * 4 * 4, .channels = 2, .height = 4, .width = 4, .classes = 3};

/* The tensor that ends with `name`, of the first normalisation. */
static const float *find(const struct problem *p, const char *name, uint32_t *count)
{
    uint32_t tensors;
    const struct tensor *tensor = model_tensors(p->model, &tensors);

    for (uint32_t t = 0; t < tensors; t++)
        if (strcmp(tensor[t].name, name) == 0) {
            *count = (uint32_t)tensor[t].count;
            return p->x + tensor[t].offset;
        }
    cr_assert_fail("no tensor %s", name);
    return NULL;
}

Test(train_layers, running_moments_move_a_tenth_towards_those_of_each_batch)
{
    /* Proves the two statistics, and that only backward with a place for them changes any. */
    for (uint64_t seed = 0; seed < 3; seed++) {
        struct problem p;
        uint32_t channels;
        size_t bytes, places = 16;

        problem_init(&p, make("resnet:1", &tiny), seed);
        bytes = p.count * sizeof(float);
        float *before = malloc(bytes);
        memcpy(before, p.x, bytes);
        run(&p, NULL);
        cr_expect_eq(memcmp(before, p.x, bytes), 0);
        run(&p, p.x);
        cr_expect_eq(memcmp(before, p.x, model_trained(p.model) * sizeof(float)), 0);
        const float *mean = find(&p, "conv.norm.mean", &channels);
        const float *square = find(&p, "conv.norm.square", &channels);
        const float *in = p.workspace.layers[0].output;

        for (uint32_t c = 0; c < channels; c++) {
            double sums[2] = {0, 0};
            for (size_t i = 0; i < ROWS * places; i++) {
                double v = (double)in[(i / places * channels + c) * places + i % places];
                sums[0] += v / (double)(ROWS * places);
                sums[1] += v * v / (double)(ROWS * places);
            }
            cr_expect_float_eq((double)mean[c], 0.1 * sums[0], 1e-6);
            cr_expect_float_eq((double)square[c], 0.9 + 0.1 * sums[1], 1e-5);
        }
        free(before);
        problem_close(&p);
    }
}

Test(train_layers, evaluation_goes_by_running_moments_and_so_by_each_sample_alone)
{
    /* Proves that a sample's logits don't depend on what else is in the batch, and do depend on
     * the running moments; in training it is the other way round. */
    struct problem p;
    uint32_t count;
    size_t features = shape_size((struct shape){2, 4, 4});

    problem_init(&p, make("resnet:1", &tiny), 1);
    for (int training = 0; training < 2; training++) {
        float alone[3], *logits = gradient_forward(p.model, &p.workspace, p.x, 1, training);
        memcpy(alone, logits, sizeof alone);
        logits = gradient_forward(p.model, &p.workspace, p.x, ROWS, training);
        cr_expect_eq(memcmp(alone, logits, sizeof alone) == 0, training == 0);
        for (size_t t = 0; t < 2; t++) {
            float *statistic = (float *)find(&p, t ? "conv.norm.square" : "conv.norm.mean", &count);
            statistic[0] += 3;
            logits = gradient_forward(p.model, &p.workspace, p.x, 1, training);
            cr_expect_eq(memcmp(alone, logits, sizeof alone) == 0, training == 1);
            statistic[0] -= 3;
        }
    }
    cr_expect_eq(features, 32);
    problem_close(&p);
}

Test(train_layers, moments_of_two_halves_averaged_are_those_of_the_whole)
{
    /* Proves what the statistics are kept as E[x] and E[x^2] for: averaging of nodes. */
    struct problem p;
    uint32_t channels;
    size_t n = ROWS * shape_size((struct shape){2, 4, 4});
    float halves[2][16], *mean, *square;

    problem_init(&p, make("resnet:1", &tiny), 1);
    mean = (float *)find(&p, "conv.norm.mean", &channels);
    square = (float *)find(&p, "conv.norm.square", &channels);
    float *first = malloc(n * sizeof(float)), *x = malloc(p.count * sizeof(float));
    memcpy(first, p.workspace.inputs, n * sizeof(float));
    memcpy(x, p.x, p.count * sizeof(float));
    for (int h = 0; h < 3; h++) { /* the halves, twice their samples each; then both */
        memcpy(p.x, x, p.count * sizeof(float));
        for (size_t i = 0; i < n; i++) {
            size_t row = i / (n / ROWS), from = h == 2 ? row : row % 2 + 2 * (size_t)h;
            p.workspace.inputs[i] = first[from * (n / ROWS) + i % (n / ROWS)] + (from > 1 ? 5 : 0);
        }
        run(&p, p.x);
        for (uint32_t c = 0; h < 2 && c < channels; c++) {
            halves[0][c] = (h ? halves[0][c] : 0) + mean[c] / 2;
            halves[1][c] = (h ? halves[1][c] : 0) + square[c] / 2;
        }
    }
    for (uint32_t c = 0; c < channels; c++) {
        cr_expect_float_eq(halves[0][c], mean[c], 1e-5);
        cr_expect_float_eq(halves[1][c], square[c], 1e-4 * square[c]);
    }
    free(first);
    free(x);
    problem_close(&p);
}

/* ---- What does not fit ----------------------------------------------------------------------- */

Test(train_layers, a_model_is_refused_by_name_on_data_that_it_does_not_take)
{
    /* Proves that the line says what is wanted and what is there. */
    static const struct {
        const char *spec;
        struct model_data data;
        const char *why;
    } bad[] = {
        {"lenet", {.features = 784, .classes = 10}, "model 'lenet' takes images, not tables"},
        {"lenet",
         {.features = 256, .channels = 1, .height = 16, .width = 16, .classes = 10},
         "model 'lenet' takes images of 28 x 28 or 32 x 32 values; the data's images are 16 x 16 "
         "in 1 channels"},
        {"lenet",
         {.features = 28 * 32, .channels = 1, .height = 28, .width = 32, .classes = 10},
         "model 'lenet' takes images of 28 x 28 or 32 x 32 values; the data's images are 28 x 32 "
         "in 1 channels"},
        {"resnet:2", {.features = 5, .classes = 2}, "model 'resnet:2' takes images, not tables"},
        {"resnet:2",
         {.features = 64, .classes = 40, .text = true},
         "model 'resnet:2' takes images, not text; gpt takes these"},
        {"mlp:3",
         {.features = 64, .classes = 40, .text = true},
         "model 'mlp:3' takes tables and images, not text; gpt takes these"},
        {"resnet:0",
         {.features = 784, .channels = 1, .height = 28, .width = 28, .classes = 10},
         "model 'resnet:0' has a missing or bad number; valid: "},
        {"resnet:1,2",
         {.features = 784, .channels = 1, .height = 28, .width = 28, .classes = 10},
         "model 'resnet:1,2' has too many numbers; valid: "},
    };

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct model *model;
        char why[400] = "";

        cr_expect_eq(model_new(&model, bad[i].spec, &bad[i].data, why, sizeof why), PARLEY_EUSAGE);
        cr_expect_eq(strncmp(why, bad[i].why, strlen(bad[i].why)), 0, "%s", why);
    }
}

Test(train_layers, tensors_are_named_by_layer_and_statistics_stand_behind_all_parameters)
{
    /* Proves the order that optimizers rest on, and names that are told apart. */
    static const char *const specs[] = {"lenet", "resnet:1", "resnet:3"};
    const struct model_data mnist = {
        .features = 784, .channels = 1, .height = 28, .width = 28, .classes = 10};
    static const size_t parameters[] = {61706, 75002, 269434}, statistics[] = {0, 480, 1376};

    for (size_t s = 0; s < 3; s++) {
        struct model *model = make(specs[s], &mnist);
        uint32_t count;
        const struct tensor *tensor = model_tensors(model, &count);
        size_t offset = 0;

        for (uint32_t t = 0; t < count; t++) {
            bool is_moment = strstr(tensor[t].name, ".mean") || strstr(tensor[t].name, ".square");
            cr_expect_eq(tensor[t].offset, offset);
            offset += tensor[t].count;
            cr_expect_eq(is_moment, offset > model_trained(model), "%s", tensor[t].name);
            for (uint32_t k = 0; k < t; k++)
                cr_expect_str_neq(tensor[k].name, tensor[t].name);
        }
        cr_expect_eq(offset, model_parameters(model));
        cr_expect_eq(model_trained(model), parameters[s], "%zu", model_trained(model));
        cr_expect_eq(offset - model_trained(model), statistics[s]);
        model_free(model);
    }
}
