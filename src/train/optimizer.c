/* optimizer.c: a table with a row an optimizer.
 *
 * Happy path: optimizer_sink fills in the step's factors and says where the gradient goes; `pass`
 * treats one range (decay, then the rule's loop) as soon as nothing more is waited for.
 * Failure modes: an unknown name, a number out of its range. A gradient that is not finite just
 * passes through, and the next loss shows it.
 */
#include "train/optimizer.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/mix.h"

/* Where the gradient is added up if nothing else is wanted of it. */
enum target { TO_GRADIENT, TO_X, TO_MOMENTUM };

typedef void rule_loop(const struct optimizer_factors *f, float *restrict x, float *restrict g,
                       float *restrict a, float *restrict b, size_t count);

struct optimizer_rule {
    const char *name;
    uint32_t vectors;
    enum target target;
    bool full_batch;
    bool momentum;       /* state[0] is one, in units of the gradient */
    bool decays_apart;   /* weight decay goes past the gradient */
    bool corrects;       /* both means for their start at 0 */
    double beta2, decay; /* where not given */
    rule_loop *loop;     /* g: the gradient; a, b: the state or NULL */
};

/* ---- The rules ------------------------------------------------------------------------------- */

static void loop_plain(const struct optimizer_factors *f, float *restrict x, float *restrict g,
                       float *restrict a, float *restrict b, size_t count)
{
    float rate = f->rate;
    for (size_t i = 0; i < count; i++)
        x[i] -= rate * g[i];
}

static void loop_momentum(const struct optimizer_factors *f, float *restrict x, float *restrict g,
                          float *restrict m, float *restrict b, size_t count)
{
    float rate = f->rate, keep = f->keep;
    for (size_t i = 0; i < count; i++) {
        m[i] = (keep > 0 ? keep * m[i] : 0) + g[i];
        x[i] -= rate * m[i];
    }
}

static void loop_nesterov(const struct optimizer_factors *f, float *restrict x, float *restrict g,
                          float *restrict m, float *restrict b, size_t count)
{
    float rate = f->rate, beta = f->beta, keep = f->keep;
    for (size_t i = 0; i < count; i++) {
        m[i] = (keep > 0 ? keep * m[i] : 0) + g[i];
        x[i] -= rate * (g[i] + beta * m[i]);
    }
}

static void loop_adagrad(const struct optimizer_factors *f, float *restrict x, float *restrict g,
                         float *restrict v, float *restrict b, size_t count)
{
    float rate = f->rate, epsilon = f->epsilon;
    for (size_t i = 0; i < count; i++) {
        v[i] += g[i] * g[i];
        x[i] -= rate * g[i] / (sqrtf(v[i]) + epsilon);
    }
}

/* Means move by (1 - beta) of the difference: rounding that costs a little memory, rounding beta
 * itself would scale the mean. */
static void loop_rmsprop(const struct optimizer_factors *f, float *restrict x, float *restrict g,
                         float *restrict v, float *restrict b, size_t count)
{
    float rate = f->rate, epsilon = f->epsilon, rest = f->beta2_rest;
    for (size_t i = 0; i < count; i++) {
        v[i] += rest * (g[i] * g[i] - v[i]);
        x[i] -= rate * g[i] / (sqrtf(v[i]) + epsilon);
    }
}

/* rate: divided by 1 - beta^t; root: 1 / sqrt(1 - beta2^t). */
static void loop_adam(const struct optimizer_factors *f, float *restrict x, float *restrict g,
                      float *restrict m, float *restrict v, size_t count)
{
    float rate = f->rate, epsilon = f->epsilon, root = f->root;
    float rest = f->beta_rest, rest2 = f->beta2_rest;
    for (size_t i = 0; i < count; i++) {
        m[i] += rest * (g[i] - m[i]);
        v[i] += rest2 * (g[i] * g[i] - v[i]);
        x[i] -= rate * m[i] / (sqrtf(v[i]) * root + epsilon);
    }
}

static const struct optimizer_rule rules[] = {
    {.name = "gd", .full_batch = true, .loop = loop_plain},
    {.name = "sgd", .target = TO_X, .loop = loop_plain},
    {.name = "momentum",
     .vectors = 1,
     .momentum = true,
     .target = TO_MOMENTUM,
     .loop = loop_momentum},
    {.name = "nesterov", .vectors = 1, .momentum = true, .loop = loop_nesterov},
    {.name = "adagrad", .vectors = 1, .loop = loop_adagrad},
    {.name = "rmsprop", .vectors = 1, .beta2 = 0.99, .loop = loop_rmsprop},
    {.name = "adam", .vectors = 2, .corrects = true, .beta2 = 0.999, .loop = loop_adam},
    {.name = "adamw",
     .vectors = 2,
     .corrects = true,
     .decays_apart = true,
     .beta2 = 0.999,
     .decay = 0.01,
     .loop = loop_adam},
};

/* ---- Making one ------------------------------------------------------------------------------ */

static int unknown_name(const char *name, char *why, size_t why_size)
{
    int at = snprintf(why, why_size, "optimizer '%.64s' is unknown; valid:", name);
    for (size_t i = 0; i < sizeof rules / sizeof rules[0] && (size_t)at < why_size; i++)
        at += snprintf(why + at, why_size - (size_t)at, "%s%s", i ? ", " : " ", rules[i].name);
    return PARLEY_EUSAGE;
}

static bool is_float(double value)
{
    return value >= 0 && isfinite((float)value);
}

static int check_numbers(const struct optimizer_numbers *n, char *why, size_t why_size)
{
    const struct {
        const char *name;
        double value;
        bool fits;
        const char *valid;
    } checks[] = {
        {"momentum", n->momentum, n->momentum >= 0 && (float)n->momentum < 1,
         "at least 0 and below 1"},
        {"beta2", n->beta2, n->beta2 >= 0 && (float)n->beta2 < 1, "above 0 and below 1"},
        {"epsilon", n->epsilon, is_float(n->epsilon) && (n->epsilon == 0 || (float)n->epsilon > 0),
         "finite, above 0"},
        {"weight decay", n->weight_decay, is_float(n->weight_decay), "finite, at least 0"},
        {"clip norm", n->clip_norm, is_float(n->clip_norm), "finite, above 0"},
        {"clip value", n->clip_value, is_float(n->clip_value), "finite, above 0"},
    };
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        if (checks[i].fits) continue;
        snprintf(why, why_size, "%s %g; valid: %s", checks[i].name, checks[i].value,
                 checks[i].valid);
        return PARLEY_EUSAGE;
    }
    return 0;
}

int optimizer_init(struct optimizer *optimizer, const char *name,
                   const struct optimizer_numbers *numbers, char *why, size_t why_size)
{
    *optimizer = (struct optimizer){.numbers = *numbers};
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (strcmp(name, rules[i].name) == 0) optimizer->rule = &rules[i];
    if (!optimizer->rule) return unknown_name(name, why, why_size);
    struct optimizer_numbers *n = &optimizer->numbers;
    if (isnan(n->weight_decay)) n->weight_decay = optimizer->rule->decay;
    if (n->beta2 == 0) n->beta2 = optimizer->rule->beta2;
    if (n->epsilon == 0) n->epsilon = 1e-8;
    return check_numbers(n, why, why_size);
}

uint32_t optimizer_vectors(const struct optimizer *optimizer)
{
    return optimizer->rule->vectors;
}

bool optimizer_has_momentum(const struct optimizer *optimizer)
{
    return optimizer->rule->momentum;
}

bool optimizer_is_full_batch(const struct optimizer *optimizer)
{
    return optimizer->rule->full_batch;
}

bool optimizer_wants_gradient(const struct optimizer *optimizer)
{
    const struct optimizer_numbers *n = &optimizer->numbers;
    if (n->clip_norm > 0 || n->clip_value > 0) return true;
    /* SGD could shrink x as it adds to it, but the factor's rounding would add up over steps. */
    return optimizer->rule->target == TO_GRADIENT ||
           (optimizer->rule->target == TO_X && n->weight_decay > 0);
}

/* ---- A step ---------------------------------------------------------------------------------- */

/* Nothing is done to x before the whole gradient is there. */
static bool waits(const struct optimizer *optimizer)
{
    return optimizer->rule->full_batch || optimizer->numbers.clip_norm > 0;
}

static void fill_factors(struct optimizer_step *step)
{
    const struct optimizer_rule *rule = step->optimizer->rule;
    const struct optimizer_numbers *n = &step->optimizer->numbers;
    double t = (double)step->steps + 1, rate = step->rate, root = 1;
    if (rule->corrects) {
        rate /= 1 - pow(n->momentum, t);
        root = 1 / sqrt(1 - pow(n->beta2, t));
    }
    step->factors = (struct optimizer_factors){
        .rate = (float)rate,
        .beta = (float)n->momentum,
        .keep = step->anew ? 0 : (float)n->momentum,
        .beta_rest = (float)(1 - n->momentum),
        .beta2_rest = (float)(1 - n->beta2),
        .root = (float)root,
        .epsilon = (float)n->epsilon,
        .decay = (float)(rule->decays_apart ? step->rate * n->weight_decay : n->weight_decay),
        .clip = 1,
    };
}

/* to[i] += factor * x[i]. */
static void add(float *restrict to, const float *restrict x, float factor, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] += factor * x[i];
}

static void scale(float *x, float factor, size_t count)
{
    for (size_t i = 0; i < count; i++)
        x[i] *= factor;
}

static void shrink(float *x, float decay, size_t count)
{
    for (size_t i = 0; i < count; i++)
        x[i] -= decay * x[i];
}

static void clamp(float *g, float limit, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float low = g[i] < -limit ? -limit : g[i]; /* this way round NaN stays NaN */
        g[i] = low > limit ? limit : low;
    }
}

/* One range of x, whose gradient stands in g: [count]. */
static void move(const struct optimizer_step *step, float *g, size_t offset, size_t count)
{
    const struct optimizer_rule *rule = step->optimizer->rule;
    const struct optimizer_factors *f = &step->factors;
    float *x = step->x + offset;
    if (f->clip < 1) scale(g, f->clip, count);
    if (f->decay > 0 && rule->decays_apart)
        shrink(x, f->decay, count);
    else if (f->decay > 0)
        add(g, x, f->decay, count);
    rule->loop(f, x, g, rule->vectors > 0 ? step->state[0] + offset : NULL,
               rule->vectors > 1 ? step->state[1] + offset : NULL, count);
}

/* Floats of the range that begins there: all vectors of one lie in an L2 cache. */
static size_t range_at(const struct optimizer_step *step, size_t at)
{
    return step->count - at < OPTIMIZER_RANGE ? step->count - at : OPTIMIZER_RANGE;
}

/* x as it was, where it is somewhere else: range by range it is still in the cache. */
static void bring(const struct optimizer_step *step, size_t offset, size_t count)
{
    if (step->from != step->x)
        memcpy(step->x + offset, step->from + offset, count * sizeof *step->x);
}

/* One range whose gradient stands in `gradient`. */
static void pass(void *context, size_t offset, size_t count)
{
    const struct optimizer_step *step = context;
    float *g = step->gradient + offset, limit = (float)step->optimizer->numbers.clip_value;
    if (limit > 0 && !waits(step->optimizer)) clamp(g, limit, count);
    bring(step, offset, count);
    move(step, g, offset, count);
}

/* One range of a momentum to which the gradient has been added. */
static void pass_momentum(void *context, size_t offset, size_t count)
{
    const struct optimizer_step *step = context;
    const struct optimizer_factors *f = &step->factors;
    const float *from = step->from + offset;
    float *m = step->state[0] + offset;
    if (f->decay > 0) add(m, from, f->decay, count);
    mix_add_to(step->x + offset, from, m, -f->rate, count);
}

struct gradient_sink optimizer_sink(struct optimizer_step *step)
{
    const struct optimizer *optimizer = step->optimizer;
    float factor = (float)step->gradient_factor;
    fill_factors(step);
    const struct optimizer_factors *f = &step->factors;
    if (!optimizer_wants_gradient(optimizer) && optimizer->rule->target == TO_X)
        return (struct gradient_sink){.into = step->x,
                                      .scale = -f->rate * factor,
                                      .keep = 1,
                                      .statistics = step->x,
                                      .from = step->from};
    if (!optimizer_wants_gradient(optimizer))
        return (struct gradient_sink){.into = step->state[0],
                                      .scale = factor,
                                      .keep = f->keep,
                                      .finish = pass_momentum,
                                      .context = step,
                                      .statistics = step->x};
    return (struct gradient_sink){.into = step->gradient,
                                  .scale = factor,
                                  .finish = waits(optimizer) ? NULL : pass,
                                  .context = step,
                                  .statistics = step->x};
}

static double square(const float *g, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (double)g[i] * (double)g[i];
    return sum;
}

static void clip_to(struct optimizer_step *step, double norm)
{
    double most = step->optimizer->numbers.clip_norm;
    if (norm > most) step->factors.clip = (float)(most / norm);
}

void optimizer_end(struct optimizer_step *step)
{
    const struct optimizer_numbers *n = &step->optimizer->numbers;
    if (!waits(step->optimizer)) return;
    if (n->clip_value > 0) clamp(step->gradient, (float)n->clip_value, step->count);
    if (n->clip_norm > 0) clip_to(step, sqrt(square(step->gradient, step->count)));
    for (size_t at = 0; at < step->count; at += OPTIMIZER_RANGE)
        pass(step, at, range_at(step, at));
}

/* A range of the gradient into the scratch memory, clipped by value. */
static void load(const struct optimizer_step *step, const float *gradient, size_t count)
{
    float factor = (float)step->gradient_factor;
    float limit = (float)step->optimizer->numbers.clip_value;
    for (size_t i = 0; i < count; i++)
        step->gradient[i] = factor * gradient[i];
    if (limit > 0) clamp(step->gradient, limit, count);
}

/* What kernels/layers/flush.h is for, by arithmetic: who applies the same gradient shall end with
 * the same bits, on whatever machine. */
static void flush(float *state, size_t count)
{
    for (size_t i = 0; i < count; i++)
        state[i] = fabsf(state[i]) < FLT_MIN ? 0 : state[i];
}

void optimizer_apply(struct optimizer_step *step, const float *gradient)
{
    double sum = 0;
    fill_factors(step);
    if (step->optimizer->numbers.clip_norm > 0) {
        for (size_t at = 0; at < step->count; at += OPTIMIZER_RANGE) {
            load(step, gradient + at, range_at(step, at));
            sum += square(step->gradient, range_at(step, at));
        }
        clip_to(step, sqrt(sum));
    }
    for (size_t at = 0; at < step->count; at += OPTIMIZER_RANGE) {
        load(step, gradient + at, range_at(step, at));
        move(step, step->gradient, at, range_at(step, at));
        for (uint32_t v = 0; v < step->optimizer->rule->vectors; v++)
            flush(step->state[v] + at, range_at(step, at));
    }
}
