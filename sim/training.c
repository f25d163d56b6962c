/* training.c: see training.h. */
#include "training.h"

#include <stdio.h>
#include <stdlib.h>

#include "train/model.h"

static void start(void *pointer, uint32_t node, uint32_t boot, float *const *vectors)
{
    struct sim_training *self = pointer;
    (void)node;
    (void)boot;
    trainer_start(self->job->trainer, vectors[0], vectors + 1);
}

static int begin(void *pointer, uint32_t node, const char *const *names, uint32_t count)
{
    struct sim_training *self = pointer;
    struct trainer **trainer = &self->trainers[node];
    char name[16];
    uint32_t samples;
    int error = *trainer ? 0 : job_trainer(self->job, trainer, self->why, sizeof self->why);
    snprintf(name, sizeof name, "n%u", node);
    if (error) return error;
    return job_share(self->job, *trainer, name, names, count, &samples, self->why,
                     sizeof self->why);
}

static double step(void *pointer, uint32_t node, float *const *vectors,
                   const struct trainer_turn *turn)
{
    struct sim_training *self = pointer;
    return trainer_step(self->trainers[node], vectors[0], vectors + 1, turn);
}

static uint32_t samples(void *pointer, uint32_t node)
{
    const struct sim_training *self = pointer;
    return trainer_samples(self->trainers[node]);
}

int sim_training_init(struct sim_training *training, struct sim_task *task, const struct job *job,
                      uint32_t nodes)
{
    *training = (struct sim_training){.job = job, .nodes = nodes};
    training->trainers = calloc(nodes, sizeof *training->trainers);
    if (!training->trainers) return PARLEY_ENOMEM;
    *task = (struct sim_task){
        .self = training,
        .parameters = trainer_parameters(job->trainer),
        .vectors = 1 + trainer_state_vectors(job->trainer),
        .batch = trainer_samples(job->trainer),
        .model_digest = model_digest(job->model),
        .start = start,
        .begin = begin,
        .step = step,
        .samples = samples,
    };
    task->tensors = model_tensors(job->model, &task->tensors_count);
    return 0;
}

void sim_training_close(struct sim_training *training)
{
    for (uint32_t i = 0; training->trainers && i < training->nodes; i++)
        trainer_free(training->trainers[i]);
    free(training->trainers);
    training->trainers = NULL;
}
