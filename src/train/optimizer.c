/* optimizer.c: SGD, momentum and Nesterov's momentum. Failure mode: an unknown name. */
#include "train/optimizer.h"

#include <stdio.h>
#include <string.h>

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

struct optimizer_target optimizer_target(enum optimizer optimizer, float *x, float *const *state,
                                         float *gradient, float rate, float beta)
{
    switch (optimizer) {
    case OPTIMIZER_MOMENTUM:
        return (struct optimizer_target){state[0], 1, beta};
    case OPTIMIZER_NESTEROV:
        return (struct optimizer_target){gradient, 1, 0};
    case OPTIMIZER_SGD:
        break;
    }
    return (struct optimizer_target){x, -rate, 1};
}

static void momentum_finish(float *restrict x, const float *restrict m, size_t count, float rate)
{
    for (size_t i = 0; i < count; i++)
        x[i] -= rate * m[i];
}

static void nesterov_finish(float *restrict x, float *restrict m, const float *restrict g,
                            size_t count, float rate, float beta)
{
    for (size_t i = 0; i < count; i++) {
        m[i] = beta * m[i] + g[i];
        x[i] -= rate * (g[i] + beta * m[i]);
    }
}

void optimizer_finish(enum optimizer optimizer, float *x, float *const *state,
                      const float *gradient, size_t count, float rate, float beta)
{
    switch (optimizer) {
    case OPTIMIZER_MOMENTUM:
        momentum_finish(x, state[0], count, rate);
        break;
    case OPTIMIZER_NESTEROV:
        nesterov_finish(x, state[0], gradient, count, rate, beta);
        break;
    case OPTIMIZER_SGD: /* the gradient went straight into x */
        break;
    }
}
