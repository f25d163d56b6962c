/* The parts of a language model, forward and back, against float64 that is written here plainly. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "data/formats/chars.h"
#include "kernels/layers/causal.h"
#include "kernels/layers/gelu.h"
#include "kernels/layers/norm.h"
#include "train/generate.h"
#include "train/gradient.h"
#include "train/layers/layers.h"
#include "train/loss.h"
#include "train/trainer.h"

#define SEEDS 5
#define MOST 4096

enum { ROWS = 2, PLACES = 7, HEADS = 3, SIZE = 5, VOCABULARY = 6 };

/* A kind of layers as a function of input, skip and tensors, in one vector, to its outputs. */
struct part {
    const struct layer_kind *kind;
    struct shape in;
    uint32_t option[4];
    bool skip;    /* of the input's shape */
    float spread; /* of the inputs; 0: they are numbers of characters */
    void (*reference)(const struct layer *layer, const double *x, double *y);
};

struct problem {
    struct layer layer;
    size_t in, out, tensors, inputs; /* floats; inputs: input, skip, tensors */
    float *x, *y, *cache, *scratch, *weight, *delta, *slopes;
};

static float *draw(size_t count, uint64_t seed, uint64_t stream, float spread)
{
    struct rng rng = rng_init(seed, stream);
    float *made = malloc(count * sizeof *made);
    for (size_t i = 0; i < count; i++)
        made[i] = spread * (float)rng_normal(&rng);
    return made;
}

/* What was there must not be read. */
static float *nothing(size_t count)
{
    float *made = malloc((count + 1) * sizeof *made);
    memset(made, 0xff, (count + 1) * sizeof *made);
    return made;
}

static void problem_init(struct problem *p, const struct part *part, uint64_t seed)
{
    struct rng rng = rng_init(seed, 3);
    struct layer *layer = &p->layer;
    size_t skip;

    *p = (struct problem){.layer = {.kind = part->kind, .in = part->in}};
    memcpy(layer->option, part->option, sizeof layer->option);
    if (part->skip) layer->skip_in = part->in;
    cr_assert_null(part->kind->plan(layer));
    p->in = ROWS * shape_size(layer->in);
    p->out = ROWS * shape_size(layer->out);
    skip = part->skip ? p->in : 0;
    for (uint32_t t = 0; t < layer->tensor_count; t++) {
        size_t count = 1;
        for (uint32_t r = 0; r < layer->tensors[t].rank; r++)
            count *= layer->tensors[t].shape[r];
        layer->at[t] = p->tensors;
        p->tensors += count;
    }
    p->inputs = p->in + skip + p->tensors;
    cr_assert(p->inputs <= MOST && p->out <= MOST);
    p->x = draw(p->inputs, seed, 1, part->spread > 0 ? part->spread : 1);
    for (size_t i = 0; part->spread == 0 && i < p->in; i++)
        p->x[i] = (float)rng_below(&rng, VOCABULARY);
    p->weight = draw(p->out, seed, 2, 1);
    p->delta = malloc(p->out * sizeof *p->delta);
    memcpy(p->delta, p->weight, p->out * sizeof *p->delta);
    p->y = nothing(p->out);
    p->slopes = nothing(p->inputs);
    p->cache = nothing(ROWS * layer->cache);
    p->scratch = nothing(layer->scratch);
}

static void problem_close(struct problem *p)
{
    float *const all[] = {p->x, p->y, p->cache, p->scratch, p->weight, p->delta, p->slopes};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

/* Forward and back: y, and the slopes of sum(weight * y) by all inputs. */
static void problem_run(struct problem *p, const struct part *part)
{
    size_t skip = part->skip ? p->in : 0;
    const struct layer_pass pass = {
        .x = p->x + p->in + skip,
        .rows = ROWS,
        .training = true,
        .input = p->x,
        .skip = part->skip ? p->x + p->in : NULL,
        .output = p->y,
        .cache = p->cache,
        .scratch = p->scratch,
        .delta = p->delta,
        .below = part->spread > 0 ? p->slopes : NULL,
        .skip_delta = part->skip ? p->slopes + p->in : NULL,
    };
    const struct gradient_sink sink = {.into = p->slopes + p->in + skip, .scale = 1};
    part->kind->forward(&p->layer, &pass);
    part->kind->backward(&p->layer, &pass, &sink);
}

/* Sum of weight * y. */
static double loss_at(const struct problem *p, const struct part *part, const double *x)
{
    static double y[MOST];
    double sum = 0;
    part->reference(&p->layer, x, y);
    for (size_t i = 0; i < p->out; i++)
        sum += (double)p->weight[i] * y[i];
    return sum;
}

static void check_seed(const struct part *part, uint64_t seed)
{
    static double wide[MOST], wanted[MOST];
    const double h = 1e-5;
    double error = 0, norm = 0;
    struct problem p;

    problem_init(&p, part, seed);
    problem_run(&p, part);
    for (size_t i = 0; i < p.inputs; i++)
        wide[i] = (double)p.x[i];
    part->reference(&p.layer, wide, wanted);
    for (size_t i = 0; i < p.out; i++)
        cr_expect_float_eq((double)p.y[i], wanted[i], 2e-6 * (1 + fabs(wanted[i])), "%s: %g for %g",
                           part->kind->name, (double)p.y[i], wanted[i]);
    for (size_t i = part->spread > 0 ? 0 : p.in; i < p.inputs; i++) {
        double middle = wide[i], above, below, slope;
        wide[i] = middle + h;
        above = loss_at(&p, part, wide);
        wide[i] = middle - h;
        below = loss_at(&p, part, wide);
        wide[i] = middle;
        slope = (above - below) / (2 * h);
        error += ((double)p.slopes[i] - slope) * ((double)p.slopes[i] - slope);
        norm += slope * slope;
    }
    cr_expect_leq(sqrt(error / norm), 1e-4, "%s, seed %d: %g", part->kind->name, (int)seed,
                  sqrt(error / norm));
    problem_close(&p);
}

static void check(const struct part *part)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++)
        check_seed(part, seed);
}

/* x: input[ROWS][PLACES][width], gain[width], bias[width]. */
static void norm_reference(const struct layer *layer, const double *x, double *y)
{
    size_t n = layer->in.width, rows = (size_t)ROWS * layer->in.height;
    const double *gain = x + rows * n, *bias = gain + n;
    for (size_t row = 0; row < rows; row++, x += n, y += n) {
        double mean = 0, variance = 0;
        for (size_t j = 0; j < n; j++)
            mean += x[j] / (double)n;
        for (size_t j = 0; j < n; j++)
            variance += (x[j] - mean) * (x[j] - mean) / (double)n;
        for (size_t j = 0; j < n; j++)
            y[j] = (x[j] - mean) / sqrt(variance + 1e-5) * gain[j] + bias[j];
    }
}

Test(train_language, layer_norm_matches_float64_and_central_differences)
{
    /* Proves rows of whole lanes, of a rest, and shorter than the lanes. */
    static const uint32_t widths[] = {32, 37, 5};
    for (int i = 0; i < 3; i++)
        check(&(struct part){
            &layer_layer_norm, {1, PLACES, widths[i]}, {0}, false, 1, norm_reference});
}

static void gelu_reference(const struct layer *layer, const double *x, double *y)
{
    for (size_t i = 0; i < ROWS * shape_size(layer->in); i++)
        y[i] = x[i] / 2 * (1 + tanh(sqrt(2 / acos(-1.0)) * (x[i] + 0.044715 * x[i] * x[i] * x[i])));
}

Test(train_language, gelu_matches_float64_and_central_differences_far_out_too)
{
    /* Proves both signs, and that nothing overflows where tanh is flat. */
    static const float spreads[] = {0.1f, 1, 10, 1000};
    for (int i = 0; i < 4; i++)
        check(&(struct part){&layer_gelu, {1, PLACES, 37}, {0}, false, spreads[i], gelu_reference});
}

static void add_reference(const struct layer *layer, const double *x, double *y)
{
    size_t count = ROWS * shape_size(layer->in);
    for (size_t i = 0; i < count; i++)
        y[i] = x[i] + x[count + i];
}

Test(train_language, a_sum_with_an_earlier_layer_has_both_their_gradients)
{
    /* Proves that what comes back goes both ways. */
    check(&(struct part){&layer_add, {1, PLACES, 5}, {0}, true, 1, add_reference});
}

static double at(const double *qkv, int row, int t, int which, int head, int j)
{
    return qkv[(((row * PLACES + t) * 3 + which) * HEADS + head) * SIZE + j];
}

/* x: [ROWS][PLACES][3][HEADS][SIZE]. */
static void attention_reference(const struct layer *layer, const double *x, double *y)
{
    for (int row = 0; row < ROWS; row++) {
        for (int head = 0; head < HEADS; head++) {
            for (int t = 0; t < PLACES; t++) {
                double share[PLACES] = {0}, sum = 0;
                for (int s = 0; s <= t; s++) {
                    for (int j = 0; j < SIZE; j++)
                        share[s] += at(x, row, t, 0, head, j) * at(x, row, s, 1, head, j);
                    share[s] = exp(share[s] / sqrt(SIZE));
                    sum += share[s];
                }
                for (int j = 0; j < SIZE; j++) {
                    double *to = &y[((row * PLACES + t) * HEADS + head) * SIZE + j];
                    *to = 0;
                    for (int s = 0; s <= t; s++)
                        *to += share[s] / sum * at(x, row, s, 2, head, j);
                }
            }
        }
    }
}

static const struct part attention = {
    &layer_attention,   {1, PLACES, 3 * HEADS *SIZE}, {[ATTENTION_HEADS] = HEADS}, false, 1,
    attention_reference};

Test(train_language, attention_matches_float64_and_central_differences)
{
    /* Proves that heads and texts stay apart, the scale, and that no place sees the next. */
    check(&attention);
}

Test(train_language, attention_shares_do_not_overflow)
{
    /* Proves that each row's greatest score is taken off before the exponential. */
    static const float offsets[] = {1000, -1000};
    for (int o = 0; o < 2; o++) {
        float *near = draw(PLACES * PLACES, 1, 4, 1), far[PLACES * PLACES];
        for (int i = 0; i < PLACES * PLACES; i++)
            far[i] = near[i] + offsets[o];
        causal_kernels_best()->forward(near, PLACES);
        causal_kernels_best()->forward(far, PLACES);
        for (int i = 0; i < PLACES * PLACES; i++)
            cr_expect_float_eq((double)far[i], (double)near[i], 1e-3);
        free(near);
    }
}

Test(train_language, attention_does_not_hide_a_number_that_is_not_finite)
{
    /* Proves that divergence passes through, so that the loss shows it. */
    static const float bad[] = {NAN, INFINITY};
    for (int b = 0; b < 2; b++) {
        for (size_t i = 0; i < 3 * HEADS * SIZE; i++) {
            struct problem p;
            double sum = 0;
            problem_init(&p, &attention, 1);
            p.x[i] = bad[b];
            problem_run(&p, &attention);
            for (size_t o = 0; o < p.out; o++)
                sum += (double)p.y[o];
            cr_expect(!isfinite(sum), "%g at %zu", (double)bad[b], i);
            problem_close(&p);
        }
    }
}

/* x: numbers[ROWS][PLACES], token[VOCABULARY][width], position[PLACES][width]. */
static void embed_reference(const struct layer *layer, const double *x, double *y)
{
    size_t n = layer->out.width;
    const double *token = x + (size_t)ROWS * PLACES, *position = token + VOCABULARY * n;
    for (size_t i = 0; i < (size_t)ROWS * PLACES; i++)
        for (size_t j = 0; j < n; j++)
            y[i * n + j] = token[(size_t)x[i] * n + j] + position[i % PLACES * n + j];
}

Test(train_language, embedding_matches_float64_and_central_differences)
{
    /* Proves that a character met again, or never, gets the sum of its slopes. */
    check(&(struct part){&layer_embed,
                         {1, 1, PLACES},
                         {[EMBED_VOCABULARY] = VOCABULARY, [EMBED_WIDTH] = 19},
                         false,
                         0,
                         embed_reference});
}

/* ---- The whole model ------------------------------------------------------------------------- */

/* x: input[ROWS][PLACES][in], weight[in][out], bias[out]. */
static void dense_reference(const struct layer *layer, const double *x, double *y)
{
    size_t in = layer->in.width, out = layer->out.width, rows = (size_t)ROWS * PLACES;
    const double *weight = x + rows * in, *bias = weight + in * out;
    for (size_t row = 0; row < rows; row++) {
        for (size_t j = 0; j < out; j++) {
            double *to = &y[row * out + j];
            *to = bias[j];
            for (size_t i = 0; i < in; i++)
                *to += x[row * in + i] * weight[i * out + j];
        }
    }
}

static void reference(const struct layer *layer, const double *x, double *y)
{
    static const struct {
        const struct layer_kind *kind;
        void (*reference)(const struct layer *layer, const double *x, double *y);
    } all[] = {{&layer_dense, dense_reference}, {&layer_layer_norm, norm_reference},
               {&layer_gelu, gelu_reference},   {&layer_add, add_reference},
               {&layer_embed, embed_reference}, {&layer_attention, attention_reference}};
    size_t k = 0;
    while (all[k].kind != layer->kind)
        k++;
    all[k].reference(layer, x, y);
}

#define LAYERS 32

/* The summed loss in float64, of inputs[ROWS][PLACES] and labels[ROWS][PLACES]. */
static double model_loss(const struct model *model, const double *parameters, const float *inputs,
                         const uint16_t *labels)
{
    static double y[LAYERS][MOST], x[MOST];
    double loss = 0;
    uint32_t count;
    const struct layer *layers = model_layers(model, &count);

    for (uint32_t l = 0; l < count; l++) {
        const struct layer *layer = &layers[l];
        size_t in = ROWS * shape_size(layer->in);
        double *to = x;
        for (size_t i = 0; i < in; i++)
            *to++ = l > 0 ? y[l - 1][i] : (double)inputs[i];
        for (size_t i = 0; layer->skip != LAYER_NONE && i < in; i++)
            *to++ = y[layer->skip][i];
        for (uint32_t t = 0; t < layer->tensor_count; t++) {
            size_t floats = layer->tensors[t].shape[0];
            if (layer->tensors[t].rank > 1) floats *= layer->tensors[t].shape[1];
            memcpy(to, parameters + layer->at[t], floats * sizeof *to);
            to += floats;
        }
        reference(layer, x, y[l]);
    }
    for (size_t row = 0; row < (size_t)ROWS * PLACES; row++) {
        const double *z = &y[count - 1][row * VOCABULARY];
        double sum = 0;
        for (int c = 0; c < VOCABULARY; c++)
            sum += exp(z[c]);
        loss += log(sum) - z[labels[row]];
    }
    return loss;
}

Test(train_language, a_whole_language_model_matches_central_differences)
{
    /* Proves how the layers are put together: residual connections, two blocks, and the loss at
     * every place. */
    const struct model_data data = {.features = PLACES, .classes = VOCABULARY, .text = true};
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct rng rng = rng_init(seed, 4);
        struct workspace workspace;
        struct gradient_sink sink = {.scale = 1};
        struct model *model;
        uint16_t labels[ROWS * PLACES];
        double error = 0, norm = 0, loss, wanted;
        const double h = 1e-5;
        char why[256];

        cr_assert_eq(model_new(&model, "gpt:2,15,3", &data, why, sizeof why), 0, "%s", why);
        cr_assert_eq(workspace_init(&workspace, model, ROWS), 0);
        size_t n = model_parameters(model);
        float *x = draw(n, seed, 5, 0.3f), *gradient = nothing(n);
        double *wide = malloc(n * sizeof *wide);
        for (size_t i = 0; i < n; i++)
            wide[i] = (double)x[i];
        for (int i = 0; i < ROWS * PLACES; i++) {
            workspace.inputs[i] = (float)rng_below(&rng, VOCABULARY);
            labels[i] = (uint16_t)rng_below(&rng, VOCABULARY);
        }
        wanted = model_loss(model, wide, workspace.inputs, labels);
        float *logits = gradient_forward(model, &workspace, x, ROWS, true);
        loss = loss_gradient(logits, labels, ROWS * PLACES, VOCABULARY);
        cr_expect_float_eq(loss, wanted, 1e-5 * wanted, "%g for %g", loss, wanted);
        sink.into = gradient;
        gradient_backward(model, &workspace, x, ROWS, &sink);
        for (size_t i = (size_t)seed; i < n; i += 11) {
            double middle = wide[i], above, slope;
            wide[i] = middle + h;
            above = model_loss(model, wide, workspace.inputs, labels);
            wide[i] = middle - h;
            slope = (above - model_loss(model, wide, workspace.inputs, labels)) / (2 * h);
            wide[i] = middle;
            error += ((double)gradient[i] - slope) * ((double)gradient[i] - slope);
            norm += slope * slope;
        }
        cr_expect_leq(sqrt(error / norm), 1e-4, "seed %d: %g", (int)seed, sqrt(error / norm));
        free(wide);
        free(gradient);
        free(x);
        workspace_close(&workspace);
        model_free(model);
    }
}

Test(train_language, loss_and_gradient_are_means_over_all_places)
{
    /* Proves that each place's label is the character after it, and what losses and rates mean:
     * a small step of gradient descent lowers the loss by the rate times the gradient's square. */
    static const char text[] = "abcdefbaacfdebe";
    struct trainer_options options = {
        .model = "gpt:1,15,3", .optimizer = "gd", .schedule = "constant", .batch = 1, .seed = 1};
    const struct trainer_turn turn = {.live = 1};
    const uint32_t share[ROWS] = {0, 1};
    struct names vocabulary = {0};
    struct dataset set;
    struct trainer *trainer;
    struct trainer_node node = {0};
    char why[256];
    double accuracy, before, after, stepped, wanted, moved = 0;
    float inputs[ROWS * PLACES];
    uint16_t labels[ROWS * PLACES];

    struct bytes file = {(const uint8_t *)text, strlen(text), "text"};
    cr_assert_eq(chars_load(&set, &vocabulary, file, PLACES, false, why, sizeof why), 0, "%s", why);
    cr_assert(set.count == ROWS && set.text && set.classes == VOCABULARY);
    cr_assert_eq(dataset_measure(&set), 0);
    options.rate = 0.01;
    cr_assert_eq(trainer_new(&trainer, &options, &set, why, sizeof why), 0, "%s", why);
    size_t n = trainer_parameters(trainer);
    float *x = draw(n, 1, 5, 0.3f), *old = malloc(n * sizeof *old);
    double *wide = malloc(n * sizeof *wide);
    memcpy(old, x, n * sizeof *x);
    for (size_t i = 0; i < n; i++)
        wide[i] = (double)x[i];
    for (int i = 0; i < ROWS * PLACES; i++) {
        inputs[i] = (float)(text[i] - 'a');
        labels[i] = (uint16_t)(text[i + 1] - 'a');
    }
    wanted = model_loss(trainer_model(trainer), wide, inputs, labels) / (ROWS * PLACES);
    trainer_evaluate(trainer, x, &set, &accuracy, &before);
    cr_expect_float_eq(before, wanted, 1e-5 * wanted, "%g for %g", before, wanted);
    cr_assert_eq(trainer_share(trainer, &node, share, ROWS, NULL, 1), 0);
    stepped = trainer_step(trainer, &node, x, x, NULL, &turn);
    cr_expect_float_eq(stepped, wanted, 1e-5 * wanted, "%g for %g", stepped, wanted);
    trainer_evaluate(trainer, x, &set, &accuracy, &after);
    for (size_t i = 0; i < n; i++)
        moved += ((double)x[i] - (double)old[i]) * ((double)x[i] - (double)old[i]);
    moved /= options.rate;
    cr_expect_float_eq(before - after, moved, 0.1 * moved, "%g for %g", before - after, moved);
    free(wide);
    free(old);
    free(x);
    sampler_close(&node.sampler);
    trainer_free(trainer);
    dataset_close(&set);
    names_close(&vocabulary);
}

Test(train_language, a_model_has_the_layers_of_gpt_2)
{
    /* Proves the order of layers, and what each residual connection takes. */
    static const char wanted[] =
        "embed layer-norm dense attention dense add0 layer-norm dense gelu dense add5 "
        "layer-norm dense attention dense add10 layer-norm dense gelu dense add15 "
        "layer-norm dense ";
    const struct model_data data = {.features = PLACES, .classes = VOCABULARY, .text = true};
    struct model *model;
    char why[256], list[512] = "";
    uint32_t count;
    cr_assert_eq(model_new(&model, "gpt:2,15,3", &data, why, sizeof why), 0);
    const struct layer *layers = model_layers(model, &count);
    for (uint32_t l = 0; l < count; l++) {
        char *end = list + strlen(list);
        if (layers[l].skip == LAYER_NONE)
            sprintf(end, "%s ", layers[l].kind->name);
        else
            sprintf(end, "%s%u ", layers[l].kind->name, layers[l].skip);
    }
    cr_expect_str_eq(list, wanted);
    model_free(model);
}

/* What comes after the whole line, which is longer than the window, is how it begins. */
static void expect_text(const struct model *model, const float *x, const struct names *vocabulary,
                        const char *line)
{
    struct generate generate;
    char text[9] = "";
    cr_assert_eq(generate_init(&generate, model, x, 0, 1), 0);
    for (const char *c = line; *c; c++)
        generate_put(&generate, names_find(vocabulary, c, 1));
    for (int i = 0; i < 8; i++) {
        uint32_t number;
        cr_assert_eq(generate_next(&generate, &number), 0);
        generate_put(&generate, number);
        text[i] = names_text(vocabulary, number)[0];
    }
    cr_expect_eq(strncmp(text, line, 8), 0, "\"%s\"", text);
    generate_close(&generate);
}

/* Draws come as often as the softmax of the logits over the temperature says. */
static void expect_odds(const struct model *model, const float *x, uint32_t classes)
{
    static const double temperatures[] = {1, 2};
    for (int t = 0; t < 2; t++) {
        enum { DRAWS = 2000 };
        struct generate generate;
        double sum = 0;
        int drawn[64] = {0};
        cr_assert_eq(generate_init(&generate, model, x, temperatures[t], 7), 0);
        generate_put(&generate, 0);
        for (int i = 0; i < DRAWS; i++) {
            uint32_t number;
            cr_assert_eq(generate_next(&generate, &number), 0);
            drawn[number]++;
        }
        const float *z = gradient_forward(model, &generate.workspace, x, 1, false);
        for (uint32_t c = 0; c < classes; c++)
            sum += exp((double)z[c] / temperatures[t]);
        for (uint32_t c = 0; c < classes; c++) {
            double share = exp((double)z[c] / temperatures[t]) / sum;
            double deviation = sqrt(share * (1 - share) / DRAWS);
            cr_expect_float_eq((double)drawn[c] / DRAWS, share, 4 * deviation + 1e-3);
        }
        generate_close(&generate);
    }
}

Test(train_language, a_small_model_learns_a_short_text)
{
    /* Proves windows, labels at every place, the optimizer and the way the loss is counted: in nats
     * a character, with the share of right next characters as accuracy; and that what it learned
     * comes out again. */
    static const char line[] = "she sells sea shells by the sea shore; ";
    const struct trainer_options options = {.model = "gpt:1,16,2",
                                            .optimizer = "adam",
                                            .schedule = "constant",
                                            .rate = 0.01,
                                            .numbers = {.momentum = 0.9, .weight_decay = NAN},
                                            .batch = 8,
                                            .seed = 1};
    struct names vocabulary = {0};
    struct dataset set;
    struct trainer *trainer;
    struct trainer_node node = {0};
    char text[20 * sizeof line] = "", why[256];
    double first, accuracy, loss;

    for (int i = 0; i < 20; i++)
        strcat(text, line);
    struct bytes file = {(const uint8_t *)text, strlen(text), "text"};
    cr_assert_eq(chars_load(&set, &vocabulary, file, 17, false, why, sizeof why), 0, "%s", why);
    cr_assert_eq(dataset_measure(&set), 0);
    cr_assert_eq(trainer_new(&trainer, &options, &set, why, sizeof why), 0, "%s", why);
    size_t n = trainer_parameters(trainer);
    float *x = malloc(n * sizeof *x), *state[] = {malloc(n * sizeof *x), malloc(n * sizeof *x)};
    uint32_t *share = malloc(set.count * sizeof *share);
    for (uint32_t i = 0; i < set.count; i++)
        share[i] = i;
    trainer_start(trainer, x, state);
    cr_assert_eq(trainer_share(trainer, &node, share, set.count, NULL, 1), 0);
    trainer_evaluate(trainer, x, &set, &accuracy, &first);
    cr_expect_float_eq(first, log(set.classes), 0.02, "%g", first);
    for (uint64_t step = 0; step < 200; step++) {
        struct trainer_turn turn = {.steps = step, .live = 1};
        cr_assert(isfinite(trainer_step(trainer, &node, x, x, state, &turn)));
    }
    trainer_evaluate(trainer, x, &set, &accuracy, &loss);
    cr_expect(loss < 0.5 && accuracy > 0.8, "loss %g, accuracy %g", loss, accuracy);
    expect_text(trainer_model(trainer), x, &vocabulary, line);
    expect_odds(trainer_model(trainer), x, set.classes);
    x[0] = NAN;
    struct generate broken;
    uint32_t number;
    cr_assert_eq(generate_init(&broken, trainer_model(trainer), x, 1, 1), 0);
    generate_put(&broken, 0);
    cr_expect_eq(generate_next(&broken, &number), PARLEY_EDIVERGED);
    generate_close(&broken);
    free(share);
    for (int i = 0; i < 2; i++)
        free(state[i]);
    free(x);
    sampler_close(&node.sampler);
    trainer_free(trainer);
    dataset_close(&set);
    names_close(&vocabulary);
}

Test(train_language, a_model_that_can_t_be_is_refused_by_name)
{
    /* Proves that each limit is known before anything is trained, and the normal form. */
    static const struct {
        const char *spec, *why;
    } bad[] = {
        {"gpt:2,15,4", "model 'gpt:2,15,4' has a width that is not a multiple of its heads"},
        {"gpt:65", "model 'gpt:65' has more than 64 blocks"},
        {"gpt:1,4096,4097", "model 'gpt:1,4096,4097' has a missing or bad number; valid:"},
        {"gpt:1,8,2,3", "model 'gpt:1,8,2,3' has too many numbers; valid:"},
        {"softmax", "model 'softmax' takes tables and images, not text; gpt takes these"},
    };
    const struct model_data data = {.features = PLACES, .classes = VOCABULARY, .text = true};
    const struct model_data table = {.features = PLACES, .classes = VOCABULARY};
    struct model *model;
    char why[512];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_expect_eq(model_new(&model, bad[i].spec, &data, why, sizeof why), PARLEY_EUSAGE);
        cr_expect_eq(strncmp(why, bad[i].why, strlen(bad[i].why)), 0, "%s", why);
    }
    cr_expect_eq(model_new(&model, "gpt", &table, why, sizeof why), PARLEY_EUSAGE);
    cr_expect_str_eq(why, "model 'gpt' takes text, not tables; mlp:256,128 takes these");
    cr_assert_eq(model_new(&model, "gpt:2", &data, why, sizeof why), 0);
    cr_expect_str_eq(model_spec(model), "gpt:2,128,4");
    model_free(model);
}

/* ---- Paths ----------------------------------------------------------------------------------- */

enum { LENGTH = 23, WIDTH = 53, COUNT = 5 * WIDTH };

struct results {
    float y[COUNT], stats[2 * 5], below[COUNT], gain[WIDTH], bias[WIDTH], gelu[COUNT], slope[COUNT],
        shares[LENGTH * LENGTH], scores[LENGTH * LENGTH];
};

static void run_path(struct results *r, enum kernel_path path)
{
    float *x = draw(COUNT, 1, 5, 2), *delta = draw(COUNT, 1, 6, 1), *gain = draw(WIDTH, 1, 7, 1);
    float *scores = draw(LENGTH * LENGTH, 1, 8, 3), *by = draw(LENGTH * LENGTH, 1, 9, 1);
    memset(r, 0, sizeof *r);
    norm_kernels[path].forward(r->y, r->stats, x, gain, gain, 5, WIDTH);
    norm_kernels[path].back(r->below, r->gain, r->bias, delta, x, r->stats, gain, 5, WIDTH);
    gelu_kernels[path].forward(r->gelu, x, COUNT);
    gelu_kernels[path].back(r->slope, delta, x, COUNT);
    memcpy(r->shares, scores, sizeof r->shares);
    causal_kernels[path].forward(r->shares, LENGTH);
    memcpy(r->scores, by, sizeof r->scores);
    causal_kernels[path].back(r->scores, r->shares, LENGTH);
    free(by);
    free(scores);
    free(gain);
    free(delta);
    free(x);
}

Test(train_language, a_workspace_beyond_32_bits_is_not_cut_short)
{
    /* Proves it where size_t has 32 bits: the shares of such a window are 2^34 floats also where
     * size_t has 32 bits, and so many images 2^32: neither is taken for none. */
    const struct {
        const char *spec;
        struct model_data data;
        uint32_t rows;
    } large[] = {{"gpt:1,4,4", {.features = 65536, .classes = VOCABULARY, .text = true}, 1},
                 {"softmax", {.features = 1u << 20, .classes = 2}, 4096}};
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        struct workspace workspace;
        struct model *model;
        char why[256];
        cr_assert_eq(model_new(&model, large[i].spec, &large[i].data, why, sizeof why), 0, "%s",
                     why);
        if (SIZE_MAX == UINT32_MAX) /* else memory may have room for it */
            cr_expect_eq(workspace_init(&workspace, model, large[i].rows), PARLEY_ENOMEM);
        model_free(model);
    }
}

Test(train_language, all_paths_give_the_same_bits)
{
    /* Proves that unlike machines train alike, as far as it is up to these loops. */
    static struct results base, other;
    run_path(&base, KERNEL_PATH_BASE);
    for (int path = KERNEL_PATH_AVX2; path < KERNEL_PATHS; path++) {
        if (!kernel_path_supported((enum kernel_path)path)) continue;
        run_path(&other, (enum kernel_path)path);
        cr_expect_eq(memcmp(&base, &other, sizeof base), 0, "path %d", path);
    }
}
