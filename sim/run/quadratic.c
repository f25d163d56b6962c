/* quadratic.c: a model of D numbers that costs next to nothing: see quadratic.h. */
#include "run/quadratic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "train/schedule.h"

static const char prefix[] = "quadratic:";

struct quadratic {
    uint64_t parameters, seed;
    bool common, apart;
    struct schedule schedule;
    double rate;
};

bool sim_quadratic_is(const char *model)
{
    return strncmp(model, prefix, sizeof prefix - 1) == 0;
}

/* In [0, 1), by its place alone: any thread may ask for any. */
static float draw(uint64_t stream, uint64_t j)
{
    return (float)(rng_mix(stream + j) >> 40) * 0x1p-24f;
}

/* A node's loss is the mean of a (x - o)^2 / 2, with a and o of these streams of draws. */
struct bowl {
    uint64_t slopes, optimum;
};

static struct bowl bowl_of(const struct quadratic *self, uint32_t node)
{
    uint64_t slopes = rng_mix(self->seed);
    return (struct bowl){slopes, rng_mix(slopes + 1 + (self->common ? 0 : node))};
}

static float slope_of(struct bowl bowl, uint64_t j)
{
    return 0.5f + draw(bowl.slopes, j) / 2;
}

static float optimum_of(struct bowl bowl, uint64_t j)
{
    return 2 * draw(bowl.optimum, j) - 1;
}

static void start(void *pointer, uint32_t node, float *const *vectors)
{
    const struct quadratic *self = pointer;
    uint64_t place = rng_mix(rng_mix(self->seed + 1) + node);
    for (uint64_t j = 0; j < self->parameters; j++)
        vectors[0][j] = self->apart ? 2 * draw(place, j) - 1 : 0;
}

static double gradient(void *pointer, uint32_t node, uint32_t thread, const float *x, float *to,
                       const struct trainer_turn *turn)
{
    const struct quadratic *self = pointer;
    const struct bowl bowl = bowl_of(self, node);
    double loss = 0;
    (void)thread;
    (void)turn;
    for (uint64_t j = 0; j < self->parameters; j++) {
        float a = slope_of(bowl, j), gap = x[j] - optimum_of(bowl, j);
        loss += a * gap * gap / 2;
        to[j] = a * gap;
    }
    return loss / (double)self->parameters;
}

static float rate_of(const struct quadratic *self, const struct trainer_turn *turn)
{
    double rate = self->rate * schedule_factor(&self->schedule, turn->progress);
    return (float)(turn->weight > 0 ? rate / turn->weight : rate);
}

static void apply(void *pointer, uint32_t node, uint32_t thread, float *const *vectors,
                  const float *from, float factor, const struct trainer_turn *turn)
{
    const struct quadratic *self = pointer;
    float rate = rate_of(self, turn);
    (void)node;
    (void)thread;
    for (uint64_t j = 0; j < self->parameters; j++)
        vectors[0][j] -= rate * (factor * from[j]);
}

static double step(void *pointer, uint32_t node, uint32_t thread, const float *from,
                   float *const *vectors, const struct trainer_turn *turn)
{
    const struct quadratic *self = pointer;
    const struct bowl bowl = bowl_of(self, node);
    float rate = rate_of(self, turn);
    float *x = vectors[0];
    double loss = 0;
    (void)thread;
    for (uint64_t j = 0; j < self->parameters; j++) {
        float a = slope_of(bowl, j), gap = from[j] - optimum_of(bowl, j);
        loss += a * gap * gap / 2;
        x[j] = from[j] - rate * a * gap;
    }
    return loss / (double)self->parameters;
}

static int parse(struct quadratic *self, const char *model, char *why, size_t size)
{
    char *end;
    const char *number = model + sizeof prefix - 1;
    unsigned long long parameters = strtoull(number, &end, 10);
    self->common = strcmp(end, ",common") == 0;
    self->apart = strcmp(end, ",apart") == 0;
    self->parameters = parameters;
    if (*number >= '0' && *number <= '9' && (*end == 0 || self->common || self->apart) &&
        parameters > 0 && parameters <= MODEL_PARAMETERS_MAX)
        return 0;
    snprintf(
        why, size,
        "--model: \"%s\"; valid: quadratic:D, quadratic:D,common or quadratic:D,apart, D from 1 "
        "to %llu",
        model, (unsigned long long)MODEL_PARAMETERS_MAX);
    return PARLEY_EUSAGE;
}

int sim_quadratic_init(struct sim_task *task, const struct settings *settings, char *why,
                       size_t size)
{
    struct quadratic *self = calloc(1, sizeof *self);
    if (!self) return PARLEY_ENOMEM;
    *task = (struct sim_task){.self = self};
    self->seed = settings->seed;
    self->rate = settings->rate;
    int error = parse(self, settings->model, why, size);
    if (!error)
        error = schedule_init(&self->schedule, settings->schedule, settings->warmup, why, size);
    if (error) return error;
    task->parameters = self->parameters;
    task->vectors = 1;
    task->batch = (uint32_t)settings->batch;
    task->alike = !self->apart;
    task->model_digest = rng_mix(self->parameters);
    task->start = start;
    task->step = step;
    task->gradient = gradient;
    task->apply = apply;
    return 0;
}
