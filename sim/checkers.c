/* checkers.c: the truth that no node can see: all models, all ledgers, all digests at once.
 *
 * `expected` is the sum of the counted models if averaging moved nothing: starts, deaths, local
 * steps and models taken from peers are added to it as they happen. What the true sum differs by is
 * averaging's doing: rounding, and deltas that one side only has added (yet).
 */
#include <math.h>
#include <string.h>

#include "cluster.h"

/* ---- Looking --------------------------------------------------------------------------------- */

bool parley_sim_live(const struct parley_sim *sim, uint32_t node)
{
    const struct sim_host *host = &sim->hosts[node];
    return host->state != SIM_HOST_OFF && host->counted && !host->paused;
}

uint32_t parley_sim_live_count(const struct parley_sim *sim)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < sim->nodes; i++)
        count += parley_sim_live(sim, i);
    return count;
}

bool parley_sim_finished(const struct parley_sim *sim, uint32_t node, int *error)
{
    if (sim->hosts[node].state != SIM_HOST_ENDED) return false;
    if (error) *error = sim->hosts[node].error;
    return true;
}

void parley_sim_view(const struct parley_sim *sim, uint32_t node, struct parley_view *view)
{
    const struct sim_host *host = &sim->hosts[node];
    if (host->node)
        parley_node_view(host->node, view);
    else
        *view = host->last;
}

bool parley_sim_member(const struct parley_sim *sim, uint32_t node, uint32_t peer,
                       struct parley_member *member)
{
    const struct parley_node *core = sim->hosts[node].node;
    if (!core) return false;
    for (uint32_t i = 0; i < parley_node_members(core); i++) {
        parley_node_member(core, i, member);
        if (strcmp(member->name, sim->names[peer]) == 0) return true;
    }
    return false;
}

const float *parley_sim_vector(const struct parley_sim *sim, uint32_t node)
{
    return sim->hosts[node].vectors[0];
}

const float *parley_sim_agreed_vector(const struct parley_sim *sim, uint32_t node)
{
    const struct sim_host *host = &sim->hosts[node];
    struct parley_view view;
    parley_sim_view(sim, node, &view);
    if (view.phase != PARLEY_PHASE_DONE || view.candidate >= host->buffers_count) return NULL;
    return host->buffers[view.candidate];
}

const uint8_t *parley_sim_file(const struct parley_sim *sim, uint32_t node)
{
    return sim->hosts[node].published ? sim->hosts[node].file : NULL;
}

/* ---- The truth ------------------------------------------------------------------------------- */

void sim_truth_add(struct parley_sim *sim, const float *x, double factor)
{
    for (uint64_t j = 0; j < sim->parameters; j++)
        sim->expected[j] += factor * x[j];
}

static uint32_t sum_into(const struct parley_sim *sim, double *sum)
{
    uint32_t count = 0;
    memset(sum, 0, sim->parameters * sizeof *sum);
    for (uint32_t i = 0; i < sim->nodes; i++) {
        if (!sim->hosts[i].counted) continue;
        const float *x = sim->hosts[i].vectors[0];
        for (uint64_t j = 0; j < sim->parameters; j++)
            sum[j] += x[j];
        count++;
    }
    return count;
}

void parley_sim_mean(const struct parley_sim *sim, double *mean)
{
    uint32_t count = sum_into(sim, mean);
    for (uint64_t j = 0; count > 0 && j < sim->parameters; j++)
        mean[j] /= count;
}

double parley_sim_spread(const struct parley_sim *sim)
{
    double *mean = sim->scratch, squares = 0;
    uint32_t count = 0;
    parley_sim_mean(sim, mean);
    for (uint32_t i = 0; i < sim->nodes; i++) {
        if (!sim->hosts[i].counted) continue;
        const float *x = sim->hosts[i].vectors[0];
        for (uint64_t j = 0; j < sim->parameters; j++) {
            double d = x[j] - mean[j];
            squares += d * d;
        }
        count++;
    }
    return count > 0 ? sqrt(squares / count) : 0;
}

double parley_sim_drift(const struct parley_sim *sim)
{
    double spread = parley_sim_spread(sim), norm_sq = 0;
    for (uint64_t j = 0; j < sim->parameters; j++)
        norm_sq += sim->scratch[j] * sim->scratch[j];
    return spread == 0 || sqrt(norm_sq) < 1e-12 ? spread : spread / sqrt(norm_sq);
}

double parley_sim_mass_error(const struct parley_sim *sim)
{
    uint32_t count = sum_into(sim, sim->scratch);
    double squares = 0, expected_sq = 0;
    if (count == 0) return 0;
    for (uint64_t j = 0; j < sim->parameters; j++) {
        double d = sim->scratch[j] - sim->expected[j];
        squares += d * d;
        expected_sq += sim->expected[j] * sim->expected[j];
    }
    /* Nodes that all start alike have no spread to compare with: take the mean's own size. */
    double scale = sim->start_spread > 0 ? sim->start_spread : sqrt(expected_sq) / count;
    return squares == 0 ? 0 : sqrt(squares) / count / (scale > 0 ? scale : 1);
}

/* ---- Predicates ------------------------------------------------------------------------------ */

bool parley_sim_in_phase(struct parley_sim *sim, void *phase)
{
    for (uint32_t i = 0; i < sim->nodes; i++) {
        struct parley_view view;
        if (!parley_sim_live(sim, i)) continue;
        parley_sim_view(sim, i, &view);
        if (view.phase != *(const enum parley_phase *)phase) return false;
    }
    return parley_sim_live_count(sim) > 0;
}

bool parley_sim_agreed(struct parley_sim *sim, void *arg)
{
    struct parley_view first, view;
    bool any = false;
    (void)arg;
    for (uint32_t i = 0; i < sim->nodes; i++) {
        if (!parley_sim_live(sim, i)) continue;
        parley_sim_view(sim, i, &view);
        if (view.phase != PARLEY_PHASE_DONE) return false;
        if (any && memcmp(view.digest, first.digest, sizeof view.digest) != 0) return false;
        first = view;
        any = true;
    }
    return any;
}

bool parley_sim_converged(struct parley_sim *sim, void *arg)
{
    uint32_t live = parley_sim_live_count(sim);
    (void)arg;
    for (uint32_t i = 0; i < sim->nodes; i++) {
        const struct parley_node *core = sim->hosts[i].node;
        if (!parley_sim_live(sim, i)) continue;
        uint32_t alive = 0;
        for (uint32_t m = 0; m < parley_node_members(core); m++) {
            struct parley_member member;
            parley_node_member(core, m, &member);
            if (member.state == PARLEY_MEMBER_SUSPECT) return false;
            alive += member.state == PARLEY_MEMBER_ALIVE;
        }
        if (alive != live) return false;
    }
    return live > 0;
}

bool parley_sim_quiet(struct parley_sim *sim, void *arg)
{
    uint64_t committed = 0, settled = 0;
    (void)arg;
    for (uint32_t i = 0; i < sim->nodes; i++) {
        struct parley_view view;
        parley_sim_view(sim, i, &view);
        if (view.ledger.in_doubt > 0 && parley_sim_live(sim, i)) return false;
        committed += 2 * view.ledger.committed;
        settled += view.ledger.applied;
    }
    return committed == settled;
}

/* ---- What must always hold ------------------------------------------------------------------- */

void sim_check(struct parley_sim *sim)
{
    uint64_t committed = 0, applied = 0;
    for (uint32_t i = 0; i < sim->nodes; i++) {
        struct parley_view view;
        parley_sim_view(sim, i, &view);
        committed += view.ledger.committed;
        applied += view.ledger.applied;
        const uint8_t *file = parley_sim_file(sim, i);
        if (view.phase == PARLEY_PHASE_DONE && file &&
            memcmp(file, view.digest, sizeof view.digest) != 0)
            sim_fail(sim, PARLEY_EINVARIANT, "a model file is not the agreed one");
    }
    /* Restarts begin a new ledger, so the sums bind only where nobody was restarted. */
    for (uint32_t i = 0; i < sim->nodes; i++)
        if (sim->hosts[i].boots > 1) return;
    if (applied > 2 * committed)
        sim_fail(sim, PARLEY_EINVARIANT, "more deltas were applied than were decided");
}
