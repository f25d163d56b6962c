/* optimizer.c: SGD, momentum and Nesterov's momentum. Failure mode: an unknown name. */
#include "train/optimizer.h"

#include <stdio.h>
#include <string.h>

#include "kernels/mix.h"

int optimizer_parse(enum optimizer *optimizer, const char *name, char *why, size_t why_size)
{
    static const char *const names[] = {"sgd", "momentum", "nesterov"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0) {
            *optimizer = (enum optimizer)i;
            return 0;
        }
    }
    snprintf(why, why_size, "optimizer '%.64s' is unknown; valid: sgd, momentum, nesterov", name);
    return PARLEY_EUSAGE;
}

uint32_t optimizer_vectors(enum optimizer optimizer)
{
    return optimizer == OPTIMIZER_SGD ? 0 : 1;
}

bool optimizer_wants_gradient(enum optimizer optimizer)
{
    return optimizer == OPTIMIZER_NESTEROV;
}

static void finish_momentum(void *context, size_t offset, size_t count)
{
    const struct optimizer_step *step = context;

    mix_add(step->x + offset, step->state[0] + offset, -step->rate, count);
}

static void finish_nesterov(void *context, size_t offset, size_t count)
{
    const struct optimizer_step *step = context;
    float *restrict x = step->x + offset;
    float *restrict m = step->state[0] + offset;
    const float *restrict g = step->gradient + offset;
    float rate = step->rate, beta = step->beta;

    for (size_t i = 0; i < count; i++) {
        m[i] = beta * m[i] + g[i];
        x[i] -= rate * (g[i] + beta * m[i]);
    }
}

struct gradient_sink optimizer_sink(struct optimizer_step *step)
{
    float factor = step->gradient_factor;

    switch (step->optimizer) {
    case OPTIMIZER_MOMENTUM:
        return (struct gradient_sink){step->state[0], factor, step->beta, finish_momentum, step};
    case OPTIMIZER_NESTEROV:
        return (struct gradient_sink){step->gradient, factor, 0, finish_nesterov, step};
    case OPTIMIZER_SGD:
        break;
    }
    return (struct gradient_sink){step->x, -step->rate * factor, 1, NULL, NULL};
}
