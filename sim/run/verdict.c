/* verdict.c: see verdict.h. */
#include "run/verdict.h"

#include <math.h>
#include <string.h>

#include "report/group.h"

/* Whether a node lives and has agreed, and then what it holds. */
static bool holds(struct parley_sim *sim, uint32_t node, struct parley_view *view)
{
    if (!parley_sim_live(sim, node) || !parley_sim_agreed_vector(sim, node)) return false;
    parley_sim_view(sim, node, view);
    return true;
}

static bool alike(void *context, uint32_t a, uint32_t b)
{
    struct parley_view one, other;
    return holds(context, a, &one) && holds(context, b, &other) &&
           memcmp(one.digest, other.digest, sizeof one.digest) == 0;
}

static void judge_models(struct parley_sim *sim, struct verdict *v)
{
    struct parley_view view, first;
    double accuracy, loss;
    if (!sim->task->evaluate || v->agreed == 0) return;
    sim->task->evaluate(sim->task->self, 0, parley_sim_agreed_vector(sim, v->first), &v->accuracy,
                        &v->loss);
    v->worst = v->accuracy;
    parley_sim_view(sim, v->first, &first);
    for (uint32_t i = 0; v->agreed < v->holders && i < sim->nodes; i++) {
        if (!holds(sim, i, &view)) continue;
        if (memcmp(first.digest, view.digest, sizeof view.digest) == 0) continue;
        sim->task->evaluate(sim->task->self, 0, parley_sim_agreed_vector(sim, i), &accuracy, &loss);
        v->worst = fmin(v->worst, accuracy);
    }
}

uint64_t verdict_exchanges(struct parley_sim *sim)
{
    uint64_t exchanges = sim->ledger_gone.committed;
    for (uint32_t i = 0; i < sim->nodes; i++) {
        struct parley_view view;
        parley_sim_view(sim, i, &view);
        exchanges += view.ledger.committed;
    }
    return exchanges;
}

void verdict_judge(struct verdict *v, struct parley_sim *sim)
{
    struct parley_view view;
    *v = (struct verdict){.exchanges = verdict_exchanges(sim),
                          .dropped = sim->ledger_gone.dropped,
                          .mass_dropped = sim->ledger_gone.mass_dropped,
                          .drift_before = NAN,
                          .accuracy = NAN,
                          .worst = NAN,
                          .loss = NAN};
    for (uint32_t i = 0; i < sim->nodes; i++) {
        parley_sim_view(sim, i, &view);
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
    v->agreed = group_largest(sim->nodes, alike, sim, &v->first);
    judge_models(sim, v);
}
