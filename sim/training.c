/* training.c: see training.h. Node 0's trainer also stands for all where they are alike. */
#include "training.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"

static void start(void *pointer, uint32_t node, uint32_t boot, float *const *vectors)
{
    struct sim_training *self = pointer;
    (void)node;
    (void)boot;
    trainer_start(self->trainers[0], vectors[0], vectors + 1);
}

static int begin(void *pointer, uint32_t node, const char *const *names, uint32_t count)
{
    struct sim_training *self = pointer;
    const struct dataset *train = self->train;
    struct partition_task task = {
        .spec = self->partition,
        .labels = train->labels,
        .count = train->count,
        .classes = train->classes,
        .names = names,
        .members = count,
        .seed = self->options.seed,
    };
    char name[16];
    snprintf(name, sizeof name, "n%u", node);
    uint32_t *share = NULL, size;
    int error = partition_share(&task, name, 0, &share, &size, self->why, sizeof self->why);
    if (!error && !self->trainers[node])
        error =
            trainer_new(&self->trainers[node], &self->options, train, self->why, sizeof self->why);
    if (!error)
        error = trainer_share(self->trainers[node], share, size,
                              rng_mix(self->options.seed ^ rng_mix(node + 1)));
    free(share);
    return error;
}

static double step(void *pointer, uint32_t node, float *const *vectors, double progress)
{
    struct sim_training *self = pointer;
    return trainer_step(self->trainers[node], vectors[0], vectors + 1, progress);
}

int sim_training_init(struct sim_training *training, struct sim_task *task,
                      const struct trainer_options *options, const char *partition,
                      const struct dataset *train, uint32_t nodes)
{
    *training = (struct sim_training){.options = *options, .train = train, .nodes = nodes};
    int error =
        partition_parse(&training->partition, partition, training->why, sizeof training->why);
    if (error) return error;
    training->trainers = calloc(nodes, sizeof *training->trainers);
    if (!training->trainers) return PARLEY_ENOMEM;
    error =
        trainer_new(&training->trainers[0], options, train, training->why, sizeof training->why);
    if (error) return error;
    struct trainer *first = training->trainers[0];
    *task = (struct sim_task){
        .self = training,
        .parameters = trainer_parameters(first),
        .vectors = 1 + trainer_state_vectors(first),
        .batch = options->batch,
        .model_digest = model_digest(trainer_model(first)),
        .start = start,
        .begin = begin,
        .step = step,
    };
    task->tensors = model_tensors(trainer_model(first), &task->tensors_count);
    return 0;
}

void sim_training_close(struct sim_training *training)
{
    for (uint32_t i = 0; training->trainers && i < training->nodes; i++)
        trainer_free(training->trainers[i]);
    free(training->trainers);
    training->trainers = NULL;
}

void sim_training_evaluate(struct sim_training *training, const float *x,
                           const struct dataset *test, double *accuracy, double *loss)
{
    trainer_evaluate(training->trainers[0], x, test, accuracy, loss);
}
