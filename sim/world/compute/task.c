/* task.c: the fixture's training: vectors pulled to targets, each draw a function of its place. */
#include "world/compute/task.h"

#include <stdlib.h>

#include "core/rng.h"

struct vectors {
    uint64_t parameters, seed;
    uint32_t count;
    double rate;
    double targets[]; /* [nodes][parameters]; to draw them in each step costs ten times the step */
};

enum { STREAM_MODEL = 0x6d, STREAM_TARGET = 0x74 };

static struct rng stream(const struct vectors *self, uint32_t node, uint32_t what)
{
    return rng_init(self->seed, (uint64_t)node << 16 | what);
}

static void vectors_start(void *pointer, uint32_t node, float *const *vectors)
{
    const struct vectors *self = pointer;
    struct rng rng = stream(self, node, STREAM_MODEL);
    for (uint32_t v = 0; v < self->count; v++)
        for (uint64_t j = 0; j < self->parameters; j++)
            vectors[v][j] = (float)rng_normal(&rng);
}

static double vectors_gradient(void *pointer, uint32_t node, uint32_t thread, const float *x,
                               float *gradient, const struct trainer_turn *turn)
{
    const struct vectors *self = pointer;
    (void)thread;
    (void)turn;
    const double *targets = self->targets + node * self->parameters;
    double loss = 0;
    for (uint64_t j = 0; j < self->parameters; j++) {
        double gap = targets[j] - x[j];
        loss += gap * gap / 2;
        gradient[j] = (float)-gap;
    }
    return loss / (double)self->parameters;
}

static void vectors_apply(void *pointer, uint32_t node, uint32_t thread, float *const *vectors,
                          const float *gradient, float factor, const struct trainer_turn *turn)
{
    const struct vectors *self = pointer;
    float rate = (float)(turn->weight > 0 ? self->rate / turn->weight : self->rate);
    (void)node;
    (void)thread;
    for (uint64_t j = 0; j < self->parameters; j++)
        vectors[0][j] -= rate * (factor * gradient[j]);
}

static double vectors_step(void *pointer, uint32_t node, uint32_t thread, const float *from,
                           float *const *vectors, const struct trainer_turn *turn)
{
    const struct vectors *self = pointer;
    (void)thread;
    (void)turn;
    const double *targets = self->targets + node * self->parameters;
    double loss = 0;
    for (uint64_t j = 0; j < self->parameters; j++) {
        double gap = targets[j] - from[j];
        loss += gap * gap / 2;
        vectors[0][j] = from[j] + (float)(self->rate * gap);
    }
    return loss / (double)self->parameters;
}

static void draw_targets(struct vectors *self, uint32_t nodes)
{
    for (uint32_t i = 0; i < nodes; i++) {
        struct rng rng = stream(self, i, STREAM_TARGET);
        for (uint64_t j = 0; j < self->parameters; j++)
            self->targets[i * self->parameters + j] = rng_normal(&rng);
    }
}

int sim_vectors_init(struct sim_task *task, const struct parley_sim_options *options)
{
    uint64_t targets = options->nodes * options->parameters;
    struct vectors *self = malloc(sizeof *self + targets * sizeof *self->targets);
    if (!self) return PARLEY_ENOMEM;
    *self = (struct vectors){options->parameters, options->seed, options->vectors, options->rate};
    draw_targets(self, options->nodes);
    *task = (struct sim_task){
        .self = self,
        .parameters = options->parameters,
        .vectors = options->vectors,
        .batch = options->samples,
        .model_digest = rng_mix(options->parameters),
        .start = vectors_start,
        .step = options->rate > 0 ? vectors_step : NULL,
        .gradient = vectors_gradient,
        .apply = vectors_apply,
    };
    return 0;
}

void sim_task_close(struct sim_task *task)
{
    free(task->self);
    *task = (struct sim_task){0};
}
