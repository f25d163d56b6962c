/* trainer.c: batches through the model, gradients through the optimizer.
 *
 * Happy path of a step: draw sample numbers, gather them into the workspace, forward, loss,
 * backward into where the optimizer wants it, finish.
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
#include "train/gradient.h"
#include "train/loss.h"
#include "train/model.h"
#include "train/optimizer.h"
#include "train/schedule.h"

/* Evaluation takes at least so many rows at once: with few, the products are slow. */
#define EVALUATE_ROWS_MIN 64u

struct trainer {
    struct model *model;
    const struct dataset *set; /* borrowed */
    enum optimizer optimizer;
    enum schedule schedule;
    double rate, momentum;
    uint32_t batch;
    uint64_t seed;
    struct sampler sampler; /* order is NULL until there is a share */
    struct workspace workspace;
    uint32_t rows_max; /* of the workspace, index and labels */
    uint32_t *index;   /* [rows_max] */
    uint16_t *labels;  /* [rows_max] */
    float *gradient;   /* [parameters] if the optimizer wants it, else NULL */
};

static int check_numbers(const struct trainer_options *options, char *why, size_t why_size)
{
    if (!(options->rate >= 0) || isinf((float)options->rate))
        snprintf(why, why_size, "learning rate %g; valid: finite, at least 0", options->rate);
    else if (!(options->momentum >= 0 && (float)options->momentum < 1))
        snprintf(why, why_size, "momentum %g; valid: at least 0 and below 1", options->momentum);
    else if (options->batch < 1 || options->batch > TRAINER_BATCH_MAX)
        snprintf(why, why_size, "batch %u; valid: 1 to %u", options->batch, TRAINER_BATCH_MAX);
    else
        return 0;
    return PARLEY_EUSAGE;
}

static int allocate(struct trainer *trainer)
{
    uint32_t rows = trainer->batch > EVALUATE_ROWS_MIN ? trainer->batch : EVALUATE_ROWS_MIN;
    int error = workspace_init(&trainer->workspace, trainer->model, rows);

    if (error != 0) return error;
    trainer->rows_max = rows;
    trainer->index = calloc(rows, sizeof *trainer->index);
    trainer->labels = calloc(rows, sizeof *trainer->labels);
    if (trainer->index == NULL || trainer->labels == NULL) return PARLEY_ENOMEM;
    if (optimizer_wants_gradient(trainer->optimizer)) {
        trainer->gradient = calloc(model_parameters(trainer->model), sizeof *trainer->gradient);
        if (trainer->gradient == NULL) return PARLEY_ENOMEM;
    }
    return 0;
}

int trainer_new(struct trainer **trainer, const struct trainer_options *options,
                const struct dataset *set, char *why, size_t why_size)
{
    struct trainer *made = calloc(1, sizeof *made);
    int error = made == NULL ? PARLEY_ENOMEM : check_numbers(options, why, why_size);

    *trainer = NULL;
    if (error != 0) goto out;
    made->set = set;
    made->rate = options->rate;
    made->momentum = options->momentum;
    made->batch = options->batch;
    made->seed = options->seed;
    error = optimizer_parse(&made->optimizer, options->optimizer, why, why_size);
    if (error != 0) goto out;
    error = schedule_parse(&made->schedule, options->schedule, why, why_size);
    if (error != 0) goto out;
    error = model_new(&made->model, options->model, set->features, set->classes, why, why_size);
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

size_t trainer_parameters(const struct trainer *trainer)
{
    return model_parameters(trainer->model);
}

uint32_t trainer_state_vectors(const struct trainer *trainer)
{
    return optimizer_vectors(trainer->optimizer);
}

void trainer_start(const struct trainer *trainer, float *x, float *const *state)
{
    model_start(trainer->model, trainer->seed, x);
    for (uint32_t v = 0; v < optimizer_vectors(trainer->optimizer); v++)
        memset(state[v], 0, model_parameters(trainer->model) * sizeof *x);
}

int trainer_share(struct trainer *trainer, const uint32_t *share, uint32_t count,
                  uint64_t sampler_seed)
{
    struct sampler sampler;
    int error;

    for (uint32_t i = 0; i < count; i++)
        if (share[i] >= trainer->set->count) return PARLEY_EDATA;
    error = sampler_init(&sampler, share, count, sampler_seed);
    if (error != 0) return error;
    sampler_close(&trainer->sampler);
    trainer->sampler = sampler;
    return 0;
}

double trainer_step(struct trainer *trainer, float *x, float *const *state, double progress)
{
    return trainer_step_of(trainer, &trainer->sampler, x, state, progress);
}

double trainer_step_of(struct trainer *trainer, struct sampler *sampler, float *x,
                       float *const *state, double progress)
{
    uint32_t rows = trainer->batch;
    double factor = schedule_factor(trainer->schedule, progress);
    struct optimizer_step step = {
        .optimizer = trainer->optimizer,
        .x = x,
        .state = state,
        .gradient = trainer->gradient,
        .rate = (float)(trainer->rate * factor),
        .beta = (float)trainer->momentum,
        .gradient_factor = 1 / (float)rows,
    };
    struct gradient_sink sink = optimizer_sink(&step);
    float *logits;
    double loss;

    assert(sampler->order != NULL);
    sampler_next(sampler, trainer->index, rows);
    dataset_gather(trainer->set, trainer->index, rows, trainer->workspace.inputs, trainer->labels);
    logits = gradient_forward(trainer->model, &trainer->workspace, x, rows);
    loss = loss_gradient(logits, trainer->labels, rows, trainer->set->classes) / rows;
    if (isfinite(loss)) gradient_backward(trainer->model, &trainer->workspace, x, rows, &sink);
    return loss;
}

void trainer_evaluate(struct trainer *trainer, const float *x, const struct dataset *set,
                      double *accuracy, double *loss)
{
    uint32_t classes = trainer->set->classes;
    uint64_t hits = 0;
    double sum = 0;

    assert(set->features == trainer->set->features && set->classes <= classes);
    for (uint32_t done = 0, rows; done < set->count; done += rows) {
        float *logits;

        rows = set->count - done < trainer->rows_max ? set->count - done : trainer->rows_max;
        for (uint32_t i = 0; i < rows; i++)
            trainer->index[i] = done + i;
        dataset_gather(set, trainer->index, rows, trainer->workspace.inputs, trainer->labels);
        logits = gradient_forward(trainer->model, &trainer->workspace, x, rows);
        hits += loss_hits(logits, trainer->labels, rows, classes);
        sum += loss_gradient(logits, trainer->labels, rows, classes);
    }
    *accuracy = set->count > 0 ? (double)hits / set->count : 0;
    *loss = set->count > 0 ? sum / set->count : 0;
}

void trainer_free(struct trainer *trainer)
{
    if (trainer == NULL) return;
    free(trainer->gradient);
    free(trainer->labels);
    free(trainer->index);
    workspace_close(&trainer->workspace);
    sampler_close(&trainer->sampler);
    model_free(trainer->model);
    free(trainer);
}
