/* models.c: see models.h. */
#include "run/models.h"

#include <string.h>

bool models_counts(const struct parley_sim *sim, uint32_t node)
{
    struct parley_view view;
    if (!parley_sim_live(sim, node)) return false;
    parley_sim_view(sim, node, &view);
    return view.phase > PARLEY_PHASE_JOINING && view.phase != PARLEY_PHASE_LATE;
}

void models_mean(struct parley_sim *sim, float *mean)
{
    double *sum = sim->scratch;
    uint32_t count = 0;
    memset(sum, 0, sim->parameters * sizeof *sum);
    for (uint32_t i = 0; i < sim->nodes; i++) {
        if (!models_counts(sim, i)) continue;
        const float *x = parley_sim_vector(sim, i);
        for (uint64_t j = 0; j < sim->parameters; j++)
            sum[j] += x[j];
        count++;
    }
    for (uint64_t j = 0; j < sim->parameters; j++)
        mean[j] = (float)(sum[j] / (count ? count : 1));
}
