/* checkers.c: the truth that no node can see: all models, all ledgers, all digests at once.
 *
 * Averaging moves the sum of the models by what its ADDs really added, rounding and all; training,
 * starts, deaths and models taken from peers are not its doing. So `moved`, the sum of those moves,
 * is all the truth that must be kept: it is rounding alone, unless deltas were added on one side
 * only (yet). It is kept in units of 2^-40, in integers, whose sum does not depend on the order of
 * adding: each thread has its own, and no number of threads shows in the result. A single move
 * beyond 2,048 counts as 2,048. Of models with more than 4,096 parameters a sample stands for all,
 * blocks spread evenly over the vector: each pass over it costs as much as an exchange.
 */
#include <math.h>
#include <string.h>

#include "kernels/path.h"
#include "world/cluster.h"

#define MOVED_UNITS 0x1p40
#define MOVED_MAX 0x1p11
#define MOVED_SAMPLE 4096

/* ---- Looking --------------------------------------------------------------------------------- */

bool parley_sim_live(const struct parley_sim *sim, uint32_t node)
{
    return sim->hosts[node].counted && !sim->hosts[node].paused;
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
    if (error) *error = sim->hosts[node].life.error;
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

/* Of who was started anew there may be a record of each of its processes. */
bool parley_sim_member(const struct parley_sim *sim, uint32_t node, uint32_t peer,
                       struct parley_member *member)
{
    const struct parley_node *core = sim->hosts[node].node;
    bool found = false, newest = false;
    for (uint32_t i = 0; core && !newest && i < parley_node_members(core); i++) {
        struct parley_member record;
        parley_node_member(core, i, &record);
        if (strcmp(record.name, sim->names[peer]) != 0) continue;
        *member = record;
        found = true;
        newest = record.boot == sim->hosts[peer].boot;
    }
    return found;
}

void sim_settle(const struct parley_sim *sim, uint32_t node)
{
    sim_workers_drain(sim->workers, &sim->hosts[node].lane);
}

const float *parley_sim_vector(const struct parley_sim *sim, uint32_t node)
{
    sim_settle(sim, node);
    return sim->hosts[node].vectors[0];
}

const float *parley_sim_agreed_vector(const struct parley_sim *sim, uint32_t node)
{
    const struct sim_host *host = &sim->hosts[node];
    struct parley_view view;
    parley_sim_view(sim, node, &view);
    if (view.phase != PARLEY_PHASE_DONE || view.candidate >= host->buffers_count) return NULL;
    sim_settle(sim, node);
    const struct sim_block *block = host->buffers[view.candidate].block;
    return block ? block->x : NULL;
}

const uint8_t *parley_sim_file(const struct parley_sim *sim, uint32_t node)
{
    return sim->hosts[node].life.published ? sim->hosts[node].file : NULL;
}

/* ---- The truth ------------------------------------------------------------------------------- */

/* A double from 2^52 to 2^53 holds an integer in its lowest bits. */
KERNEL_BODY int64_t moved_by(float before, float after)
{
    const double base = 0x1.8p52;
    int64_t from, to;
    double move = (double)after - before;
    move = move < MOVED_MAX ? move : MOVED_MAX; /* NaN too */
    move = move > -MOVED_MAX ? move : -MOVED_MAX;
    move = move * MOVED_UNITS + base;
    memcpy(&from, &base, sizeof from);
    memcpy(&to, &move, sizeof to);
    return to - from;
}

KERNEL_BODY void add_moves(int64_t *restrict moved, const float *restrict before,
                           const float *restrict after, uint64_t n)
{
    for (uint64_t j = 0; j < n; j++)
        moved[j] += moved_by(before[j], after[j]);
}

static void add_moves_base(int64_t *moved, const float *before, const float *after, uint64_t n)
{
    add_moves(moved, before, after, n);
}

KERNEL_AVX2 static void add_moves_avx2(int64_t *moved, const float *before, const float *after,
                                       uint64_t n)
{
    add_moves(moved, before, after, n);
}

KERNEL_AVX512 static void add_moves_avx512(int64_t *moved, const float *before, const float *after,
                                           uint64_t n)
{
    add_moves(moved, before, after, n);
}

static void (*const add_moves_by[KERNEL_PATHS])(int64_t *, const float *, const float *,
                                                uint64_t) = {
    [KERNEL_PATH_BASE] = add_moves_base,
    [KERNEL_PATH_AVX2] = add_moves_avx2,
    [KERNEL_PATH_AVX512] = add_moves_avx512,
};

/* Of so many blocks one is looked at. */
static uint64_t sampled_every(const struct parley_sim *sim)
{
    return (sim->parameters + MOVED_SAMPLE - 1) / MOVED_SAMPLE;
}

bool sim_truth_samples(const struct parley_sim *sim, uint64_t at)
{
    return at / SIM_TRUTH_BLOCK % sampled_every(sim) == 0;
}

void sim_truth_moved(struct parley_sim *sim, uint32_t thread, uint64_t at, const float *before,
                     const float *after, uint64_t n)
{
    add_moves_by[kernel_path_best()](sim->moved[thread] + at, before, after, n);
}

/* All that averaging has moved parameter j by, if that is looked at. */
static double moved_of(const struct parley_sim *sim, uint64_t j)
{
    int64_t sum = 0;
    for (uint32_t t = 0; t < sim->options.base.threads; t++)
        sum += sim->moved[t][j];
    return (double)sum / MOVED_UNITS;
}

static bool is_counted(const struct parley_sim *sim, uint32_t node)
{
    return sim->hosts[node].counted;
}

uint32_t sim_sum(const struct parley_sim *sim, sim_counts *counts, double *sum)
{
    uint32_t count = 0;
    memset(sum, 0, sim->parameters * sizeof *sum);
    for (uint32_t i = 0; i < sim->nodes; i++) {
        if (!counts(sim, i)) continue;
        const float *x = parley_sim_vector(sim, i);
        for (uint64_t j = 0; j < sim->parameters; j++)
            sum[j] += x[j];
        count++;
    }
    return count;
}

static uint32_t mean_of(const struct parley_sim *sim, sim_counts *counts, double *mean)
{
    uint32_t count = sim_sum(sim, counts, mean);
    for (uint64_t j = 0; count > 0 && j < sim->parameters; j++)
        mean[j] /= count;
    return count;
}

static double spread_of(const struct parley_sim *sim, sim_counts *counts)
{
    double *mean = sim->scratch, squares = 0;
    uint32_t count = mean_of(sim, counts, mean);
    for (uint32_t i = 0; i < sim->nodes; i++) {
        if (!counts(sim, i)) continue;
        const float *x = parley_sim_vector(sim, i);
        for (uint64_t j = 0; j < sim->parameters; j++) {
            double d = x[j] - mean[j];
            squares += d * d;
        }
    }
    return count > 0 ? sqrt(squares / count) : 0;
}

double sim_drift(const struct parley_sim *sim, sim_counts *counts)
{
    double spread = spread_of(sim, counts), norm_sq = 0;
    for (uint64_t j = 0; j < sim->parameters; j++)
        norm_sq += sim->scratch[j] * sim->scratch[j];
    return spread == 0 || sqrt(norm_sq) < 1e-12 ? spread : spread / sqrt(norm_sq);
}

void parley_sim_mean(const struct parley_sim *sim, double *mean)
{
    mean_of(sim, is_counted, mean);
}

double parley_sim_spread(const struct parley_sim *sim)
{
    return spread_of(sim, is_counted);
}

double parley_sim_drift(const struct parley_sim *sim)
{
    return sim_drift(sim, is_counted);
}

double parley_sim_mass_error(const struct parley_sim *sim)
{
    uint32_t count = sim_sum(sim, is_counted, sim->scratch);
    uint64_t sampled = 0;
    double squares = 0, expected_sq = 0;
    for (uint32_t i = 0; i < sim->nodes; i++)
        sim_settle(sim, i); /* also those that count no more */
    if (count == 0) return 0;
    for (uint64_t j = 0; j < sim->parameters; j++) {
        double d = moved_of(sim, j), expected = sim->scratch[j] - d;
        squares += d * d;
        expected_sq += expected * expected;
        sampled += sim_truth_samples(sim, j);
    }
    squares *= (double)sim->parameters / (double)sampled;
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

bool sim_sees(const struct parley_sim *sim, uint32_t node, uint32_t count)
{
    const struct parley_node *core = sim->hosts[node].node;
    uint32_t alive = 0;
    for (uint32_t m = 0; m < parley_node_members(core); m++) {
        struct parley_member member;
        parley_node_member(core, m, &member);
        if (member.state == PARLEY_MEMBER_SUSPECT) return false;
        alive += member.state == PARLEY_MEMBER_ALIVE;
    }
    return alive == count;
}

bool parley_sim_converged(struct parley_sim *sim, void *arg)
{
    uint32_t live = parley_sim_live_count(sim);
    (void)arg;
    for (uint32_t i = 0; i < sim->nodes; i++) {
        const struct sim_host *host = &sim->hosts[i];
        if (host->boots < host->boots_due) return false;
        if (parley_sim_live(sim, i) && !sim_sees(sim, i, live)) return false;
    }
    return live > 0;
}

bool parley_sim_quiet(struct parley_sim *sim, void *arg)
{
    uint64_t committed = sim->ledger_gone.committed, applied = sim->ledger_gone.applied;
    (void)arg;
    for (uint32_t i = 0; i < sim->nodes; i++) {
        struct parley_view view;
        parley_sim_view(sim, i, &view);
        if (view.ledger.in_doubt > 0 && parley_sim_live(sim, i)) return false;
        committed += view.ledger.committed;
        applied += view.ledger.applied;
    }
    return applied == 2 * committed;
}

/* ---- What must always hold ------------------------------------------------------------------- */

void sim_check(struct parley_sim *sim)
{
    uint64_t committed = sim->ledger_gone.committed, applied = sim->ledger_gone.applied;
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
    if (applied > 2 * committed)
        sim_fail(sim, PARLEY_EINVARIANT, "more deltas were applied than were decided");
}
