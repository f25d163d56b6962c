/* watch_agreement.c: what a node says on its way to the end, against what the others truly are. */
#include <math.h>
#include <string.h>

#include "core/agreement/said.h"
#include "swarm/watch_state.h"

/* A sketch of MESSAGE_BUCKETS is some per cent off, its square twice that. */
static const double NEAR = 2;

/* The host on which this boot runs; NULL: nowhere any more. */
static struct sim_host *host_of(struct sim_watch *watch, uint64_t boot)
{
    for (uint32_t i = 0; i < watch->sim->nodes; i++) {
        struct sim_host *host = &watch->sim->hosts[i];
        if (host->node && self_of(host->node)->boot == boot) return host;
    }
    return NULL;
}

/* ---- Settled? -------------------------------------------------------------------------------- */

/* The largest distance to the mean over those whom `node` settled with, relative to the mean.
 * Negative: one of them is gone. */
static double true_distance(struct sim_watch *watch, const struct parley_node *node)
{
    struct parley_sim *sim = watch->sim;
    double *mean = sim->scratch, largest_sq = 0, norm_sq = 0;
    uint32_t count = 0;
    memset(mean, 0, sim->parameters * sizeof *mean);
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t m = 0; m < node->roster->count; m++) {
            const struct record *r = record_of(node, m);
            if (m > 0 && (!record_is_waited_for(r) || !r->measured)) continue;
            const struct sim_host *host = host_of(watch, r->boot);
            if (!host || self_of(host->node)->phase < PARLEY_PHASE_SETTLE) return -1;
            const float *x = parley_sim_vector(sim, host->index);
            double distance_sq = 0;
            for (uint64_t j = 0; j < sim->parameters; j++) {
                double d = x[j] - mean[j];
                if (pass == 0) mean[j] += x[j];
                distance_sq += d * d;
            }
            if (pass == 0) count++;
            if (pass == 1 && distance_sq > largest_sq) largest_sq = distance_sq;
        }
        for (uint64_t j = 0; j < sim->parameters && pass == 0; j++) {
            mean[j] /= count;
            norm_sq += mean[j] * mean[j];
        }
    }
    return norm_sq > 1e-24 ? sqrt(largest_sq / norm_sq) : sqrt(largest_sq);
}

static void proposes(struct sim_watch *watch, struct sim_host *host)
{
    struct parley_node *node = host->node;
    uint32_t others = 0;
    for (uint32_t m = 1; m < node->roster->count; m++)
        others += record_is_waited_for(record_of(node, m));
    if (others == 0 || said_locked(node)) return; /* what is locked will be picked */
    if (node->drift.passed >= 2) {
        if (!watch->apart && true_distance(watch, node) > NEAR * node->config.tolerance + 1e-6)
            sim_watch_fail(watch->sim, host->index, "it proposes, and is far from the others");
        return;
    }
    uint64_t since_us = watch->hosts[host->index].phase_us;
    /* Who clips what it is told keeps apart from who is far from most. */
    if (!node->config.robust && since_us >= watch->calm_us &&
        watch->sim->queue.now_us >= since_us + node->config.settle_timeout_us)
        sim_watch_fail(watch->sim, host->index, "mixing brings nobody nearer in the calm");
}

/* ---- The way through it ---------------------------------------------------------------------- */

/* It takes its pick of what was proposed; who may adopt what others have agreed on needs nobody. */
static void picks(struct sim_watch *watch, struct sim_host *host)
{
    const struct parley_node *node = host->node;
    if (watch->done_any) return;
    for (uint32_t m = 1; m < node->roster->count; m++) {
        const struct record *r = record_of(node, m);
        if (!record_is_waited_for(r)) continue;
        const struct watch_book *book = watch_book_of(watch, r->boot);
        if (!book || !book->proposed)
            sim_watch_fail(watch->sim, host->index, "it picks a model, and not all have proposed");
    }
}

void watch_candidate(struct sim_watch *watch, struct sim_host *host)
{
    struct watch_host *h = &watch->hosts[host->index];
    enum candidate_state was = h->candidate, is = host->node->agreement.candidate;
    h->candidate = is;
    bool open = was == CANDIDATE_HASHING || was == CANDIDATE_OWN;
    bool picked = is == CANDIDATE_FETCHING || is == CANDIDATE_WRITING || is == CANDIDATE_HELD;
    if (open && picked) picks(watch, host);
}

void watch_publish(struct sim_watch *watch, struct sim_host *host)
{
    const struct parley_node *node = host->node;
    const uint8_t *digest = node->agreement.own;
    for (uint32_t b = 0; b < watch->books_count; b++) /* it adopts what others are done with */
        if (watch->books[b].done &&
            memcmp(watch->books[b].agreed, digest, PARLEY_DIGEST_BYTES) == 0)
            return;
    for (uint32_t m = 0; m < node->roster->count; m++) {
        const struct record *r = record_of(node, m);
        if (!record_is_waited_for(r)) continue;
        const struct watch_book *book = watch_book_of(watch, r->boot);
        if (!book || !book->locked || memcmp(book->lock, digest, sizeof book->lock) != 0)
            sim_watch_fail(watch->sim, host->index, "it decides, and not all have locked");
    }
}

static void trains(struct sim_watch *watch, struct sim_host *host)
{
    const struct parley_node *node = host->node;
    if (node->ledger.joins > 0 || node->strategy->catches_up) return;
    for (uint32_t m = 1; m < node->roster->count; m++) {
        const struct record *r = record_of(node, m);
        if (record_is_live(r) && r->phase == PARLEY_PHASE_TRAIN &&
            (r->version > node->config.behind_steps_max ||
             r->holds > node->config.behind_steps_max))
            sim_watch_fail(watch->sim, host->index, "it joins a further cluster as it is");
    }
}

void watch_phase(struct sim_watch *watch, struct sim_host *host, enum parley_phase phase)
{
    struct watch_host *h = &watch->hosts[host->index];
    struct watch_book *book = &watch->books[h->book];
    const struct record *self = self_of(host->node);
    if (phase == PARLEY_PHASE_TRAIN) trains(watch, host);
    if (phase == PARLEY_PHASE_PROPOSED) {
        if (h->phase == PARLEY_PHASE_SETTLE) proposes(watch, host);
        book->proposed = true;
    }
    if (phase == PARLEY_PHASE_LOCKED) {
        book->locked = true;
        memcpy(book->lock, self->lock_digest, sizeof book->lock);
    }
    if (phase == PARLEY_PHASE_DONE) {
        watch->done_any = book->done = true;
        memcpy(book->agreed, self->digest, sizeof book->agreed);
    }
    h->phase = phase;
    h->phase_us = watch->sim->queue.now_us;
}
