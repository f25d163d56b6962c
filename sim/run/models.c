/* models.c: see models.h. */
#include "run/models.h"

#include <math.h>

bool models_counts(const struct parley_sim *sim, uint32_t node)
{
    struct parley_view view;
    if (!parley_sim_live(sim, node)) return false;
    parley_sim_view(sim, node, &view);
    return view.phase > PARLEY_PHASE_JOINING && view.phase != PARLEY_PHASE_LATE;
}

void models_mean(struct parley_sim *sim, float *mean)
{
    uint32_t count = sim_sum(sim, models_counts, sim->scratch);
    for (uint64_t j = 0; j < sim->parameters; j++)
        mean[j] = (float)(sim->scratch[j] / (count ? count : 1));
}

double models_drift(struct parley_sim *sim)
{
    for (uint32_t i = 0; i < sim->nodes; i++)
        if (models_counts(sim, i)) return sim_drift(sim, models_counts);
    return NAN;
}

/* ---- Each node's own ------------------------------------------------------------------------- */

struct judgement {
    struct sim_job job; /* the first member */
    struct sim_host *host;
    double accuracy, loss;
};

static void judge(struct sim_job *job, uint32_t thread)
{
    struct judgement *j = (struct judgement *)job;
    const struct sim_task *task = j->host->sim->task;
    task->evaluate(task->self, thread, j->host->vectors[0], &j->accuracy, &j->loss);
}

/* The place, among `count` nodes, of the one that stands for the part-th of `parts`. */
static uint32_t draw(uint32_t count, uint32_t part, uint32_t parts, uint64_t seed)
{
    uint64_t from = (uint64_t)count * part / parts, to = (uint64_t)count * (part + 1) / parts;
    return (uint32_t)(from + rng_mix(seed ^ rng_mix(part)) % (to - from));
}

/* Gives those that are drawn to be judged; returns how many. */
static uint32_t begin(struct judgement *list, struct parley_sim *sim, uint64_t seed)
{
    uint32_t count = 0, begun = 0, place = 0;
    for (uint32_t i = 0; i < sim->nodes; i++)
        count += models_counts(sim, i);
    uint32_t parts = count < MODELS_OWN_MAX ? count : MODELS_OWN_MAX;
    for (uint32_t i = 0; i < sim->nodes && begun < parts; i++) {
        if (!models_counts(sim, i) || place++ != draw(count, begun, parts, seed)) continue;
        struct judgement *j = &list[begun++];
        *j = (struct judgement){.job = {.make = judge}, .host = &sim->hosts[i]};
        sim_workers_give(sim->workers, &j->host->lane, &j->job);
    }
    return begun;
}

void models_own(struct models_own *own, struct parley_sim *sim, uint64_t seed)
{
    struct judgement list[MODELS_OWN_MAX];
    double sum = 0, squares = 0;
    *own = (struct models_own){.mean = NAN, .worst = NAN, .deviation = NAN};
    if (!sim->task->reaches) return;
    own->judged = begin(list, sim, seed);
    for (uint32_t i = 0; i < own->judged; i++) {
        sim_workers_wait(sim->workers, &list[i].host->lane, &list[i].job);
        sum += list[i].accuracy;
        own->worst = fmin(own->worst, list[i].accuracy);
    }
    if (own->judged > 0) own->mean = sum / own->judged;
    for (uint32_t i = 0; i < own->judged; i++)
        squares += (list[i].accuracy - own->mean) * (list[i].accuracy - own->mean);
    if (own->judged > 1) own->deviation = sqrt(squares / (own->judged - 1));
}
