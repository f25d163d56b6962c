/* byzantine.c: a node that lies of its model. Its own is what it is, what it tells the others is
 * not; frames, checksums and digests are as they should be.
 *
 * In an exchange the chunks lie, so that it knows its own part of the delta as an honest node does.
 * In the agreement its candidate is the lie, before its digest is taken, with the score of the
 * truth. ALIE (Baruch et al., NeurIPS 2019) and IPM (Xie et al., UAI 2019) know the models of all
 * honest nodes; as in the experiments of He, Karimireddy, Jaggi (arXiv:2202.01545) they tell of
 * mean - z deviations and of -epsilon mean. There z depends on n, and is -0.08 for 1 of 16; here it
 * is 1.5, as in most experiments with it. What is a lie at training (labels) is the task's affair.
 */
#include <math.h>

#include "world/cluster.h"

enum { TIMES = 100 };

static const double DEVIATIONS = 1.5, EPSILON = 0.1;

bool sim_lies(const struct sim_host *host)
{
    struct parley_view view;
    if (host->lie == PARLEY_SIM_HONEST) return false;
    parley_node_view(host->node, &view);
    return view.phase < PARLEY_PHASE_PROPOSED;
}

static bool is_honest(const struct sim_host *host)
{
    return host->state == SIM_HOST_UP && host->lie == PARLEY_SIM_HONEST && host->blocks[0];
}

/* x becomes mean_part of the honest nodes' mean less `deviations` of their deviations. */
static void collude(struct sim_host *host, float *x, uint64_t at, size_t count, double mean_part,
                    double deviations)
{
    struct parley_sim *sim = host->sim;
    uint32_t honest = 0;
    for (uint32_t i = 0; i < sim->nodes; i++) {
        if (!is_honest(&sim->hosts[i])) continue;
        sim_settle(sim, i);
        honest++;
    }
    if (honest == 0) return;
    for (size_t j = 0; j < count; j++) {
        double sum = 0, squares = 0;
        for (uint32_t i = 0; i < sim->nodes; i++)
            if (is_honest(&sim->hosts[i])) sum += (double)sim->hosts[i].vectors[0][at + j];
        double mean = sum / honest;
        for (uint32_t i = 0; i < sim->nodes; i++) {
            if (!is_honest(&sim->hosts[i])) continue;
            double gap = (double)sim->hosts[i].vectors[0][at + j] - mean;
            squares += gap * gap;
        }
        x[j] = (float)(mean_part * mean - deviations * sqrt(squares / honest));
    }
}

void sim_byzantine(struct sim_host *host, float *x, uint64_t at, size_t count)
{
    switch (host->lie) {
    case PARLEY_SIM_HONEST:
    case PARLEY_SIM_LABELS:
        break;
    case PARLEY_SIM_SIGN:
        for (size_t j = 0; j < count; j++)
            x[j] = -x[j];
        break;
    case PARLEY_SIM_SCALE:
        for (size_t j = 0; j < count; j++)
            x[j] *= TIMES;
        break;
    case PARLEY_SIM_RANDOM:
        for (size_t j = 0; j < count; j++)
            x[j] = (float)rng_normal(&host->draws);
        break;
    case PARLEY_SIM_NAN: /* one is enough, and harder to see */
        x[rng_below(&host->draws, (uint32_t)count)] = NAN;
        break;
    case PARLEY_SIM_ALIE:
        collude(host, x, at, count, 1, DEVIATIONS);
        break;
    case PARLEY_SIM_IPM:
        collude(host, x, at, count, -EPSILON, 0);
        break;
    }
}
