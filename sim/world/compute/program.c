/* program.c: what the nodes train is a program's own: options.begin and options.work. */
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "world/compute/task.h"

struct program {
    struct parley_sim_options options;
    bool started[]; /* [nodes] since its newest start */
};

static void program_start(void *pointer, uint32_t node, float *const *vectors)
{
    struct program *self = pointer;
    const struct parley_sim_options *options = &self->options;
    self->started[node] = false;
    for (uint32_t v = 0; v < options->vectors; v++)
        memset(vectors[v], 0, options->parameters * sizeof(float));
    if (options->begin) options->begin(vectors, node, options->arg);
}

static double program_work(struct program *self, uint32_t node, float *const *vectors,
                           struct parley_turn turn, const struct trainer_turn *given)
{
    turn.started = !self->started[node] && turn.work != PARLEY_WORK_APPLY;
    self->started[node] = self->started[node] || turn.started;
    turn.progress = given->progress;
    turn.live = given->live;
    turn.weight = given->weight > 0 ? given->weight : 1;
    turn.state_steps = given->steps;
    turn.averaged = given->averaged;
    return self->options.work(vectors, &turn, node, self->options.arg);
}

static double program_step(void *pointer, uint32_t node, uint32_t thread, const float *from,
                           float *const *vectors, const struct trainer_turn *turn)
{
    struct program *self = pointer;
    (void)thread;
    if (from != vectors[0]) memcpy(vectors[0], from, self->options.parameters * sizeof(float));
    return program_work(self, node, vectors, (struct parley_turn){.work = PARLEY_WORK_STEP}, turn);
}

static double program_gradient(void *pointer, uint32_t node, uint32_t thread, const float *x,
                               float *gradient, const struct trainer_turn *turn)
{
    (void)thread;
    return program_work(
        pointer, node, NULL,
        (struct parley_turn){.work = PARLEY_WORK_GRADIENT, .gradient = gradient, .at = x}, turn);
}

static void program_apply(void *pointer, uint32_t node, uint32_t thread, float *const *vectors,
                          const float *gradient, float factor, const struct trainer_turn *turn)
{
    (void)thread;
    program_work(pointer, node, vectors,
                 (struct parley_turn){
                     .work = PARLEY_WORK_APPLY, .gradient = (float *)gradient, .factor = factor},
                 turn);
}

int sim_program_init(struct sim_task *task, const struct parley_sim_options *options)
{
    struct program *self = calloc(1, sizeof *self + options->nodes * sizeof *self->started);
    if (!self) return PARLEY_ENOMEM;
    self->options = *options;
    *task = (struct sim_task){
        .self = self,
        .parameters = options->parameters,
        .vectors = options->vectors,
        .batch = options->samples,
        .model_digest = rng_mix(options->parameters),
        .start = program_start,
        .step = program_step,
        .gradient = program_gradient,
        .apply = program_apply,
    };
    return 0;
}
