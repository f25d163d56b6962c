/* verdict.c: see verdict.h. */
#include "run/verdict.h"

#include <math.h>
#include <string.h>

/* Whether a node lives and has agreed, and then what it holds. */
static bool holds(struct parley_sim *sim, uint32_t node, struct parley_view *view)
{
    if (!parley_sim_live(sim, node) || !parley_sim_agreed_vector(sim, node)) return false;
    parley_sim_view(sim, node, view);
    return true;
}

/* How many from this node on hold what it holds. */
static uint32_t alike_from(struct parley_sim *sim, uint32_t node, const struct parley_view *view)
{
    struct parley_view other;
    uint32_t alike = 1;
    for (uint32_t i = node + 1; i < sim->nodes; i++)
        alike +=
            holds(sim, i, &other) && memcmp(view->digest, other.digest, sizeof other.digest) == 0;
    return alike;
}

/* Nearly always the first group is the largest, and no other is looked for. */
static void judge_groups(struct parley_sim *sim, struct verdict *v)
{
    struct parley_view view;
    uint32_t left = v->holders;
    for (uint32_t i = 0; v->agreed < left; i++) {
        if (!holds(sim, i, &view)) continue;
        uint32_t alike = alike_from(sim, i, &view);
        if (alike > v->agreed) {
            v->agreed = alike;
            v->first = i;
        }
        left--;
    }
}

static void judge_models(struct parley_sim *sim, struct verdict *v)
{
    struct parley_view view, first;
    double accuracy, loss;
    if (!sim->task->evaluate || v->agreed == 0) return;
    sim->task->evaluate(sim->task->self, parley_sim_agreed_vector(sim, v->first), &v->accuracy,
                        &v->loss);
    v->worst = v->accuracy;
    parley_sim_view(sim, v->first, &first);
    for (uint32_t i = 0; v->agreed < v->holders && i < sim->nodes; i++) {
        if (!holds(sim, i, &view)) continue;
        if (memcmp(first.digest, view.digest, sizeof view.digest) == 0) continue;
        sim->task->evaluate(sim->task->self, parley_sim_agreed_vector(sim, i), &accuracy, &loss);
        v->worst = fmin(v->worst, accuracy);
    }
}

void verdict_judge(struct verdict *v, struct parley_sim *sim)
{
    struct parley_view view;
    *v = (struct verdict){.drift_before = NAN, .accuracy = NAN, .worst = NAN, .loss = NAN};
    for (uint32_t i = 0; i < sim->nodes; i++) {
        parley_sim_view(sim, i, &view);
        v->exchanges += view.ledger.committed;
        v->dropped += view.ledger.dropped;
        v->mass_dropped += view.ledger.mass_dropped;
        int error = 0;
        if (parley_sim_finished(sim, i, &error) && error && !v->error) v->error = error;
        v->live += parley_sim_live(sim, i);
        if (!holds(sim, i, &view)) continue;
        v->holders++;
        if (view.known > v->known) v->known = view.known;
        if (view.drift_before >= 0) v->drift_before = fmax(v->drift_before, view.drift_before);
    }
    judge_groups(sim, v);
    judge_models(sim, v);
}
