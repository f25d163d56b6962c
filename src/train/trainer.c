/* trainer.c: batches through the model, gradients through the optimizer.
 *
 * Happy path of a step: draw sample numbers, gather them into the workspace, forward, loss,
 * backward into where the optimizer wants it, finish; a full batch comes in several such parts.
 * Failure modes: bad options (trainer_new), memory (trainer_new, trainer_share), a share that does
 * not fit the set (trainer_share), a loss that is not finite (trainer_step leaves x alone).
 */
#include "train/trainer.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/sampler.h"
#include "kernels/layers/flush.h"
#include "train/gradient.h"
#include "train/loss.h"
#include "train/model.h"
#include "train/schedule.h"

/* The batch that the rate is for under the linear scaling rule. */
#define SCALE_SAMPLES 32.0

/* Where the rule ends for a whole cluster, that is at 256 samples. Measured with 16 to 64 nodes: 12
 * times the rate is worse than 8 by up to 2 points, 16 by up to 7, and 32 ends in guesses; 4 is
 * better on MNIST by 0.7 and worse on the digits by up to 2.6. */
#define SCALE_MOST 8.0

/* How much of what averaging does enters the momentum, where each step is followed by one; over how
 * many steps that is measured. */
#define FOLLOW_PART 0.5
#define DENSITY_STEPS 32.0

/* Rates below this part of the full one count as it here: what averaging moves comes in part from
 * the larger rates before, or will meet larger ones after. */
#define FOLLOW_RATE_MIN 0.01

/* Evaluation takes at least so many rows (of text: places) at once: with few, the products are
 * slow. */
#define EVALUATE_ROWS_MIN 64u

enum { LINE = 16 }; /* floats in a cache line */

struct trainer {
    struct model *model;
    const struct dataset *set; /* borrowed */
    struct optimizer optimizer;
    struct schedule schedule;
    double rate;
    enum trainer_scale scale;
    enum trainer_momentum momentum_mode;
    double averaged_part;
    uint32_t batch;
    uint64_t seed;
    struct workspace workspace;
    uint32_t rows_max; /* of the workspace, index and labels */
    uint32_t *index;   /* [rows_max] */
    uint16_t *labels;  /* [rows_max][places] */
    float *targets;    /* [rows_max], where labels are numbers */
    float *gradient;   /* [parameters] if the optimizer wants it, else NULL */
    float *range;      /* [OPTIMIZER_RANGE], of trainer_apply */
};

static int check_numbers(const struct trainer_options *options, char *why, size_t why_size)
{
    if (!(options->rate >= 0) || isinf((float)options->rate))
        snprintf(why, why_size, "learning rate %g; valid: finite, at least 0", options->rate);
    else if (options->batch < 1 || options->batch > TRAINER_BATCH_MAX)
        snprintf(why, why_size, "batch %u; valid: 1 to %u", options->batch, TRAINER_BATCH_MAX);
    else
        return 0;
    return PARLEY_EUSAGE;
}

static int allocate(struct trainer *trainer)
{
    uint32_t places = model_places(trainer->model);
    uint32_t least = places < EVALUATE_ROWS_MIN ? EVALUATE_ROWS_MIN / places : 1;
    uint32_t rows = trainer->batch > least ? trainer->batch : least;
    int error = workspace_init(&trainer->workspace, trainer->model, rows);

    if (error != 0) return error;
    trainer->rows_max = rows;
    trainer->index = calloc(rows, sizeof *trainer->index);
    trainer->labels = calloc((size_t)rows * places, sizeof *trainer->labels);
    trainer->targets = calloc(rows, sizeof *trainer->targets);
    trainer->range = calloc(OPTIMIZER_RANGE, sizeof *trainer->range);
    if (trainer->index == NULL || trainer->labels == NULL || trainer->targets == NULL ||
        trainer->range == NULL)
        return PARLEY_ENOMEM;
    if (optimizer_wants_gradient(&trainer->optimizer)) {
        trainer->gradient = calloc(model_parameters(trainer->model), sizeof *trainer->gradient);
        if (trainer->gradient == NULL) return PARLEY_ENOMEM;
    }
    return 0;
}

int trainer_new(struct trainer **trainer, const struct trainer_options *options,
                const struct dataset *set, char *why, size_t why_size)
{
    const struct model_data data = {.features = set->features,
                                    .channels = set->channels,
                                    .height = set->height,
                                    .width = set->width,
                                    .classes = set->classes,
                                    .text = set->text,
                                    .numbers = set->targets != NULL};
    struct trainer *made = calloc(1, sizeof *made);
    int error = made == NULL ? PARLEY_ENOMEM : check_numbers(options, why, why_size);

    *trainer = NULL;
    if (error != 0) goto out;
    made->set = set;
    made->rate = options->rate;
    made->scale = options->scale;
    made->momentum_mode = options->momentum_mode;
    made->averaged_part = options->averaged_part > 0 ? options->averaged_part : 1;
    made->batch = options->batch;
    made->seed = options->seed;
    error = optimizer_init(&made->optimizer, options->optimizer, &options->numbers, why, why_size);
    if (error != 0) goto out;
    error = schedule_init(&made->schedule, options->schedule, options->warmup, why, why_size);
    if (error != 0) goto out;
    error = model_new(&made->model, options->model, &data, why, why_size);
    if (error != 0) goto out;
    error = allocate(made);
    if (error != 0) goto out;
    *trainer = made;
    made = NULL;
out:
    trainer_free(made);
    return error;
}

const struct model *trainer_model(const struct trainer *trainer)
{
    return trainer->model;
}

const struct optimizer_numbers *trainer_numbers(const struct trainer *trainer)
{
    return &trainer->optimizer.numbers;
}

bool trainer_keeps_gradient(const struct trainer *trainer)
{
    return trainer->gradient != NULL;
}

size_t trainer_parameters(const struct trainer *trainer)
{
    return model_parameters(trainer->model);
}

uint32_t trainer_state_vectors(const struct trainer *trainer)
{
    return optimizer_vectors(&trainer->optimizer);
}

void trainer_start(const struct trainer *trainer, float *x, float *const *state)
{
    model_start(trainer->model, trainer->seed, x);
    for (uint32_t v = 0; v < optimizer_vectors(&trainer->optimizer); v++)
        memset(state[v], 0, model_parameters(trainer->model) * sizeof *x);
}

float *trainer_vectors(const struct trainer *trainer, float **state)
{
    size_t n = model_parameters(trainer->model), stride = (n + LINE - 1) / LINE * LINE;
    uint32_t states = optimizer_vectors(&trainer->optimizer);
    float *x = aligned_alloc(LINE * sizeof *x, (1 + states) * stride * sizeof *x);
    if (x == NULL) return NULL;
    for (uint32_t v = 0; v < states; v++)
        state[v] = x + (1 + v) * stride;
    trainer_start(trainer, x, state);
    return x;
}

int trainer_share(const struct trainer *trainer, struct trainer_node *node, const uint32_t *share,
                  uint32_t count, const uint64_t *due, uint64_t sampler_seed)
{
    struct sampler *sampler = &node->sampler;

    for (uint32_t i = 0; i < count; i++)
        if (share[i] >= trainer->set->count) return PARLEY_EDATA;
    if (sampler->order != NULL) return sampler_share(sampler, share, count, due);
    return sampler_init(sampler, share, count, sampler_seed);
}

bool trainer_is_full_batch(const struct trainer *trainer)
{
    return optimizer_is_full_batch(&trainer->optimizer);
}

uint32_t trainer_samples(const struct trainer *trainer, const struct trainer_node *node)
{
    if (!trainer_is_full_batch(trainer)) return trainer->batch;
    return node != NULL && node->sampler.order != NULL ? node->sampler.count : trainer->set->count;
}

double trainer_scaling(enum trainer_scale scale, uint32_t batch, uint32_t live)
{
    double factor = batch / SCALE_SAMPLES;
    if (scale == TRAINER_SCALE_CLUSTER) factor = fmin(factor * live, SCALE_MOST);
    return scale == TRAINER_SCALE_NONE ? 1 : factor;
}

static double learning_rate(const struct trainer *trainer, const struct trainer_turn *turn)
{
    double rate = trainer->rate * schedule_factor(&trainer->schedule, turn->progress) *
                  trainer_scaling(trainer->scale, trainer->batch, turn->live);
    return turn->weight > 0 ? rate / turn->weight : rate;
}

/* labels: [rows], of what follows each window; made into [rows][places], of what follows each
 * place. */
static void spread_labels(struct trainer *trainer, uint32_t rows)
{
    uint32_t places = model_places(trainer->model);

    if (places == 1) return;
    for (uint32_t row = rows; row-- > 0;) {
        const float *tokens = trainer->workspace.inputs + (size_t)row * places;
        uint16_t *labels = trainer->labels + (size_t)row * places;
        uint16_t last = trainer->labels[row];

        for (uint32_t t = 0; t + 1 < places; t++)
            labels[t] = (uint16_t)tokens[t + 1];
        labels[places - 1] = last;
    }
}

/* `rows` samples of `set`, by trainer->index, into the workspace, and their labels. */
static void gather(struct trainer *trainer, const struct dataset *set, uint32_t rows)
{
    struct workspace *workspace = &trainer->workspace;

    if (set->bytes != NULL && gradient_takes_pixels(trainer->model)) {
        workspace->pixels = dataset_gather_pixels(set, trainer->index, rows,
                                                  (uint8_t *)workspace->inputs, trainer->labels);
        return;
    }
    workspace->pixels = (struct pixels){0};
    dataset_gather(set, trainer->index, rows, workspace->inputs, trainer->labels);
}

/* `rows` samples of `set`, by trainer->index, through the model. Returns the logits,
 * [rows * places][classes]; their labels are in place. */
static float *run_forward(struct trainer *trainer, const struct dataset *set, const float *x,
                          uint32_t rows, bool training)
{
    gather(trainer, set, rows);
    spread_labels(trainer, rows);
    for (uint32_t i = 0; set->targets != NULL && i < rows; i++)
        trainer->targets[i] = dataset_target(set, trainer->index[i]);
    return gradient_forward(trainer->model, &trainer->workspace, x, rows, training);
}

/* Of what run_forward gave, which becomes the gradient by it. With targets the gradient is that of
 * the scaled ones, and the loss in their own unit. */
static double run_loss(struct trainer *trainer, float *logits, uint32_t rows)
{
    uint32_t predictions = rows * model_places(trainer->model);

    if (trainer->set->targets != NULL)
        return loss_square(logits, trainer->targets, rows) * dataset_label_unit(trainer->set);
    return loss_gradient(logits, trainer->labels, predictions, trainer->set->classes);
}

/* The next `rows` samples through the model and their gradient into the sink. Returns their summed
 * loss; if that is not finite, the sink got nothing. */
static double run_rows(struct trainer *trainer, struct sampler *sampler, const float *x,
                       uint32_t rows, const struct gradient_sink *sink)
{
    float *logits;
    double loss;

    sampler_next(sampler, trainer->index, rows);
    logits = run_forward(trainer, trainer->set, x, rows, true);
    loss = run_loss(trainer, logits, rows);
    if (isfinite(loss)) gradient_backward(trainer->model, &trainer->workspace, x, rows, sink);
    return loss;
}

/* What a step's loss is the mean of: a text has a prediction at each place. */
static double predictions_of(const struct trainer *trainer, const struct trainer_node *node)
{
    return (double)trainer_samples(trainer, node) * model_places(trainer->model);
}

/* The next batch, or the whole share. Returns the mean loss. */
static double run_batch(struct trainer *trainer, struct trainer_node *node, const float *x,
                        struct gradient_sink *sink)
{
    uint32_t samples = trainer_samples(trainer, node);
    double loss = 0;

    assert(node->sampler.order != NULL);
    if (trainer_is_full_batch(trainer)) sampler_whole(&node->sampler);
    for (uint32_t done = 0, rows; done < samples && isfinite(loss); done += rows) {
        rows = samples - done < trainer->rows_max ? samples - done : trainer->rows_max;
        loss += run_rows(trainer, &node->sampler, x, rows, sink);
        sink->keep = 1; /* a further part of a full batch is added to the first */
        sink->from = NULL;
    }
    return loss / predictions_of(trainer, node);
}

static void note_averaging(struct trainer_node *node, uint64_t averaged)
{
    double now = averaged != node->averaged;

    node->averaged = averaged;
    node->density += (now - node->density) / DENSITY_STEPS;
}

/* Of x what no optimizer moves; all of it, where the step has moved nothing. */
static void bring(const struct trainer *trainer, const float *from, float *x, bool all)
{
    size_t first = all ? 0 : model_trained(trainer->model);

    if (from != x)
        memcpy(x + first, from + first, (model_parameters(trainer->model) - first) * sizeof *x);
}

double trainer_step(struct trainer *trainer, struct trainer_node *node, const float *from, float *x,
                    float *const *state, const struct trainer_turn *turn)
{
    struct optimizer_step step = {
        .optimizer = &trainer->optimizer,
        .from = from,
        .x = x,
        .count = model_trained(trainer->model),
        .state = state,
        .gradient = trainer->gradient,
        .rate = learning_rate(trainer, turn),
        .gradient_factor = 1.0 / predictions_of(trainer, node),
        .steps = turn->steps,
        .anew =
            trainer->momentum_mode == TRAINER_MOMENTUM_RESET && turn->averaged != node->averaged,
    };
    struct gradient_sink sink = optimizer_sink(&step);
    bool full = trainer_is_full_batch(trainer);
    uint64_t before = flush_begin();

    bring(trainer, from, x, false);
    if (full) { /* of which a later part may show that nothing may move */
        bring(trainer, from, trainer->gradient, false);
        sink.statistics = trainer->gradient;
    }
    double loss = run_batch(trainer, node, from, &sink);
    if (isfinite(loss)) {
        optimizer_end(&step);
        if (full) bring(trainer, trainer->gradient, x, false);
        node->rate = step.rate;
        note_averaging(node, turn->averaged);
    } else {
        bring(trainer, from, x, true);
    }
    flush_end(before);
    return loss;
}

double trainer_gradient(struct trainer *trainer, struct trainer_node *node, const float *x,
                        float *gradient)
{
    struct gradient_sink sink = {
        .into = gradient,
        .scale = (float)(1.0 / predictions_of(trainer, node)),
        .statistics = gradient,
    };
    size_t trained = model_trained(trainer->model), count = model_parameters(trainer->model);
    uint64_t before = flush_begin();
    double loss;

    /* Behind the gradient: by how much the batch moves the running statistics. */
    memcpy(gradient + trained, x + trained, (count - trained) * sizeof *gradient);
    loss = run_batch(trainer, node, x, &sink);
    for (size_t i = trained; i < count; i++)
        gradient[i] -= x[i];
    flush_end(before);
    return loss;
}

void trainer_apply(struct trainer *trainer, struct trainer_node *node, float *x,
                   float *const *state, const float *gradient, float factor,
                   const struct trainer_turn *turn)
{
    struct optimizer_step step = {
        .optimizer = &trainer->optimizer,
        .from = x,
        .x = x,
        .count = model_trained(trainer->model),
        .state = state,
        .gradient = trainer->range,
        .rate = learning_rate(trainer, turn),
        .gradient_factor = factor,
        .steps = turn->steps,
    };

    /* Of statistics, too, what is stale would overshoot. */
    double moves = turn->weight > 0 ? (double)factor / turn->weight : (double)factor;

    optimizer_apply(&step, gradient);
    for (size_t i = step.count; i < model_parameters(trainer->model); i++)
        x[i] += (float)moves * gradient[i];
    node->rate = step.rate;
    note_averaging(node, turn->averaged);
}

float trainer_follow(const struct trainer *trainer, const struct trainer_node *node)
{
    bool follows = trainer->momentum_mode == TRAINER_MOMENTUM_QUASI_GLOBAL &&
                   optimizer_has_momentum(&trainer->optimizer);
    double least = FOLLOW_RATE_MIN * trainer->rate;
    double rate = node->rate > least ? node->rate : least;
    double density = node->density * trainer->averaged_part;

    return follows && rate > 0 ? (float)(-FOLLOW_PART * density / rate) : 0;
}

float *trainer_outputs(struct trainer *trainer, const float *x, const struct dataset *set,
                       uint32_t first, uint32_t *rows)
{
    uint64_t before = flush_begin();
    float *logits;

    assert(set->features == trainer->set->features && set->classes <= trainer->set->classes);
    assert((set->targets != NULL) == (trainer->set->targets != NULL));
    *rows = set->count - first < trainer->rows_max ? set->count - first : trainer->rows_max;
    for (uint32_t i = 0; i < *rows; i++)
        trainer->index[i] = first + i;
    logits = run_forward(trainer, set, x, *rows, false);
    flush_end(before);
    return logits;
}

void trainer_evaluate(struct trainer *trainer, const float *x, const struct dataset *set,
                      double *accuracy, double *loss)
{
    uint32_t classes = trainer->set->classes, places = model_places(trainer->model);
    double predictions = (double)set->count * places, sum = 0;
    uint64_t hits = 0, before = flush_begin();

    for (uint32_t done = 0, rows; done < set->count; done += rows) {
        float *logits = trainer_outputs(trainer, x, set, done, &rows);

        hits += loss_hits(logits, trainer->labels, rows * places, classes);
        sum += run_loss(trainer, logits, rows);
    }
    flush_end(before);
    *accuracy = set->count > 0 ? (double)hits / predictions : 0;
    if (set->targets != NULL) *accuracy = (double)NAN;
    *loss = set->count > 0 ? sum / predictions : 0;
}

bool trainer_reaches(struct trainer *trainer, const float *x, const struct dataset *set,
                     double accuracy)
{
    uint32_t classes = trainer->set->classes, places = model_places(trainer->model);
    double predictions = (double)set->count * places;
    uint64_t hits = 0, left = (uint64_t)set->count * places;

    for (uint32_t done = 0, rows; done < set->count; done += rows) {
        float *logits = trainer_outputs(trainer, x, set, done, &rows);

        hits += loss_hits(logits, trainer->labels, rows * places, classes);
        left -= (uint64_t)rows * places;
        if ((double)(hits + left) / predictions < accuracy) return false;
    }
    return set->count > 0;
}

void trainer_free(struct trainer *trainer)
{
    if (trainer == NULL) return;
    free(trainer->range);
    free(trainer->gradient);
    free(trainer->targets);
    free(trainer->labels);
    free(trainer->index);
    workspace_close(&trainer->workspace);
    model_free(trainer->model);
    free(trainer);
}
