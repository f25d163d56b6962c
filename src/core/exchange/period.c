/* period.c: how many local steps lie between the exchanges that a node starts.
 *
 * A constant, a schedule over the progress of the budget, or steered by drift: the consensus
 * distance is held at so many times the size of a step's update. What may be allowed shrinks with
 * the learning rate and grows with the gradient (Kong, Lin, Koloskova, Jaggi, Stich, "Consensus
 * control for decentralized deep learning", ICML 2021: the critical consensus distance);
 * an update is just that product. Each exchange measures ||x_i - x_j||^2, whose mean over random
 * pairs is 2n/(n-1) of the consensus distance's square, right before the two are averaged: so the
 * distance grows with the period, and a period that is divided by a part of their ratio finds it.
 */
#include <math.h>

#include "core/exchange/exchange.h"
#include "core/state.h"
#include "core/training/training.h"

/* In sizes of an update. By measure: at 1.5 few exchanges are saved, at 6 accuracy is lost. */
#define DISTANCE_UPDATES 3.0
/* How much of the ratio an exchange corrects, and what a single one may do at most. */
#define GAIN 0.125
#define RATIO_MAX 16.0
#define PERIOD_MAX 256.0
/* What a period's time is taken for at least and at most. */
#define PERIOD_US_MIN 1e3
#define PERIOD_US_MAX 3600e6

void period_start(struct parley_node *node)
{
    node->exchange.period = node->config.mix_every;
    node->exchange.begun_us = node->now_us;
}

/* Of all its steps: news of two of them may come one right after the other, and a mean of so few as
 * training.rate is of would be that of the shortest. Who is resumed and has none to make goes by
 * those of before; 0: not known. */
static double step_us(const struct parley_node *node)
{
    const struct training *t = &node->training;
    if (t->version > 0)
        return (double)(t->stepped_us - node->exchange.begun_us) / (double)t->version;
    const struct parley_resumed *file = &node->config.resumed;
    return file->steps > 0 ? (double)file->trained_us / (double)file->steps : 0;
}

uint64_t period_steps(const struct parley_node *node)
{
    const struct parley_config *c = &node->config;
    uint64_t steps = c->mix_every;
    if (c->mix_steered) return (uint64_t)llround(node->exchange.period);
    for (uint32_t i = 0; i < c->mix_later_count; i++)
        if (training_progress(node) >= c->mix_later[i].from) steps = c->mix_later[i].steps;
    return steps;
}

void period_begin(struct parley_node *node)
{
    struct exchange *e = &node->exchange;
    uint64_t steps = period_steps(node);
    double period_us = (double)steps * step_us(node);
    e->next_version = node->training.version + steps;
    e->next_us = node->now_us + (uint64_t)fmax(PERIOD_US_MIN, fmin(PERIOD_US_MAX, period_us));
}

void period_again(struct parley_node *node)
{
    struct exchange *e = &node->exchange;
    if (e->next_us > node->now_us)
        e->next_us = node->now_us + rng_below(&node->rng, (uint32_t)(e->next_us - node->now_us));
}

bool period_goes_on(const struct parley_node *node)
{
    return !node->strategy->due && phase_of(node) == PARLEY_PHASE_TRAIN &&
           training_made_all(node, self_of(node));
}

void period_pair(struct parley_node *node, double norm_sq)
{
    double n = live_of(node) > 1 ? live_of(node) : 2, moved_sq = node->training.moved_sq;
    if (!node->config.mix_steered || phase_of(node) != PARLEY_PHASE_TRAIN) return;
    if (!(moved_sq > 0) || !(norm_sq > 0)) return;
    double ratio = sqrt(norm_sq * (n - 1) / (2 * n) / moved_sq) / DISTANCE_UPDATES;
    ratio = fmax(1 / RATIO_MAX, fmin(RATIO_MAX, ratio));
    double period = node->exchange.period * pow(ratio, -GAIN);
    node->exchange.period = fmax(1, fmin(PERIOD_MAX, period));
}
