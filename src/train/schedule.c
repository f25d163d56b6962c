/* schedule.c: a table with a row a schedule. Failure modes: an unknown name, a bad warm-up. */
#include "train/schedule.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct schedule_shape {
    const char *name;
    double (*factor)(double q, double warmup); /* q: part of what the warm-up leaves, in [0, 1] */
};

static double constant(double q, double warmup)
{
    return 1;
}

/* A step at the very half finds a progress that was added up: it may be a rounding short of it. */
static double step(double q, double warmup)
{
    q += 1e-9;
    return q < 0.5 ? 1 : q < 0.75 ? 0.1 : 0.01;
}

static double exponential(double q, double warmup)
{
    return exp(q * -4.605170185988091); /* ln 0.01 */
}

static double cosine(double q, double warmup)
{
    return q < 1 ? (1 + cos(3.141592653589793 * q)) / 2 : 0;
}

static double linear(double q, double warmup)
{
    return 1 - q;
}

static double inverse_sqrt(double q, double warmup)
{
    double w = warmup > 0 ? warmup : 0.01;
    return sqrt(w / (w + q * (1 - warmup)));
}

static const struct schedule_shape shapes[] = {
    {"constant", constant}, {"step", step},     {"exponential", exponential},
    {"cosine", cosine},     {"linear", linear}, {"inverse-sqrt", inverse_sqrt},
};

int schedule_init(struct schedule *schedule, const char *name, double warmup, char *why,
                  size_t why_size)
{
    const size_t count = sizeof shapes / sizeof shapes[0];
    *schedule = (struct schedule){.warmup = warmup};
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, shapes[i].name) == 0) schedule->shape = &shapes[i];
    if (!schedule->shape) {
        int at = snprintf(why, why_size, "schedule '%.64s' is unknown; valid:", name);
        for (size_t i = 0; i < count && (size_t)at < why_size; i++)
            at += snprintf(why + at, why_size - (size_t)at, "%s%s", i ? ", " : " ", shapes[i].name);
        return PARLEY_EUSAGE;
    }
    if (warmup >= 0 && warmup < 1) return 0;
    snprintf(why, why_size, "warm-up %g; valid: a part of the budget, at least 0 and below 1",
             warmup);
    return PARLEY_EUSAGE;
}

double schedule_factor(const struct schedule *schedule, double progress)
{
    double p = progress > 0 ? (progress < 1 ? progress : 1) : 0; /* NaN gives 0 */
    double w = schedule->warmup;
    return p < w ? p / w : schedule->shape->factor((p - w) / (1 - w), w);
}
