/* swarm.h: a random cluster and its random life, all drawn from one seed.
 *
 * Drawn are size, seeds, network, costs, settings, budget, who starts when, and two to ninety acts:
 * faults of every kind, starts, and an operator who stops one or more nodes at any moment, the very
 * first of training included. Who looks afterwards needs to know what excuses what: `excludes`
 * says that links were cut for longer than a death takes to be found out, so that two groups may
 * have finished apart; `lossy` that a node died, so that averaging may have lost its half.
 */
#ifndef PARLEY_TESTS_SWARM_H
#define PARLEY_TESTS_SWARM_H

#include "scene.h"

enum { SWARM_NODES_MAX = 9, SWARM_AGREED_MAX = 64 };

/* A cut this short is never taken for a death. */
#define SWARM_SHORT_US (SECOND + SECOND / 2)

struct swarm_agreed {
    uint32_t node;
    bool outsider; /* it was joining, stopped or not there when the first node was done */
    uint8_t digest[PARLEY_DIGEST_BYTES];
};

struct swarm {
    struct parley_sim *sim;
    struct rng rng;
    uint64_t seed;
    uint32_t nodes, seeds, min_peers, mix_every;
    enum parley_topology topology;
    enum parley_quorum quorum;
    double tolerance;
    uint64_t steps, samples, time_us; /* budgets */
    uint64_t start_us[SWARM_NODES_MAX];
    bool up[SWARM_NODES_MAX], joins[SWARM_NODES_MAX], outsider[SWARM_NODES_MAX];
    bool left[SWARM_NODES_MAX], full[SWARM_NODES_MAX];
    uint64_t resume_us[SWARM_NODES_MAX]; /* 0: awake */
    uint64_t heal_us;                    /* 0: no link is cut */
    uint32_t stop_at_train;              /* set of nodes that are stopped as soon as they train */
    uint32_t kinds;                      /* set of the acts that this seed allows */
    bool spares;                         /* seeds are neither killed nor paused, and do not leave */
    bool excludes, lossy, late, stopped;
    uint32_t killed, restarted;
    struct swarm_agreed agreed[SWARM_AGREED_MAX];
    uint32_t agreed_count;
    uint32_t just_done; /* set of nodes whose end is yet to be looked at */
    char why[200];
    bool trace;
};

enum swarm_act {
    SWARM_KILL,
    SWARM_RESTART,
    SWARM_PAUSE,
    SWARM_DISCONNECT,
    SWARM_PARTITION,
    SWARM_BLOCK,
    SWARM_LATENCY,
    SWARM_LOSS,
    SWARM_SLOW,
    SWARM_DISK,
    SWARM_LEAVE,
    SWARM_STOP,
    SWARM_ACTS
};

static inline uint64_t swarm_between(struct swarm *s, uint64_t low, uint64_t high)
{
    return low + (uint64_t)(rng_unit(&s->rng) * (double)(high - low));
}

static inline bool swarm_chance(struct swarm *s, uint32_t one_in)
{
    return rng_below(&s->rng, one_in) == 0;
}

static inline void swarm_configure(struct parley_config *config, uint32_t node, void *arg)
{
    const struct swarm *s = arg;
    (void)node;
    config->min_peers = s->min_peers;
    config->mix_every = s->mix_every;
    config->topology = s->topology;
    config->quorum = s->quorum;
    config->nodes = s->nodes;
    config->tolerance = s->tolerance;
    config->steps_budget = s->steps;
    config->samples_budget = s->samples;
    config->time_budget_us = s->time_us;
}

/* Where a seed is away while somebody joins, two clusters may form, and end before they meet. */
static inline void swarm_joins(struct swarm *s)
{
    for (uint32_t i = 0; i < s->seeds; i++) {
        bool late = parley_sim_now(s->sim) <= s->start_us[i];
        s->excludes = s->excludes || s->left[i] || (!s->up[i] && !late) || s->resume_us[i] ||
                      s->start_us[i] == PARLEY_SIM_NEVER;
    }
}

/* ---- What happens, as it happens ------------------------------------------------------------- */

static inline void swarm_line(const char *line, void *arg)
{
    struct swarm *s = arg;
    double at;
    unsigned node;
    char phase[16];
    if (s->trace) fprintf(stderr, "%s\n", line);
    if (strstr(line, ": this node") || strstr(line, " phase train")) swarm_joins(s);
    if (sscanf(line, "%lfs n%u phase %15s", &at, &node, phase) != 3) return;
    s->joins[node] = false;
    if (strcmp(phase, "late") == 0) s->late = true;
    if (strcmp(phase, "done") == 0) s->just_done |= 1u << node;
    if (strcmp(phase, "train") == 0 && s->stop_at_train & 1u << node) {
        s->stop_at_train &= ~(1u << node);
        parley_sim_stop(s->sim, node, PARLEY_STOP_OPERATOR);
    }
}

static inline void swarm_fail(struct swarm *s, const char *text, uint32_t node)
{
    if (!s->why[0])
        snprintf(s->why, sizeof s->why, "at %.3f s n%u: %s", (double)parley_sim_now(s->sim) / 1e6,
                 node, text);
}

/* Looks at a node that has just said DONE. */
static inline void swarm_done(struct swarm *s, uint32_t node)
{
    struct parley_view mine, other;
    uint32_t done = 0, holders = 0;
    parley_sim_view(s->sim, node, &mine);
    for (uint32_t i = 0; i < s->nodes; i++) {
        parley_sim_view(s->sim, i, &other);
        if (s->agreed_count == 0) s->outsider[i] = !s->up[i] || s->joins[i] || s->resume_us[i];
        if (memcmp(mine.digest, other.digest, sizeof mine.digest) != 0) continue;
        done += s->up[i] && other.phase == PARLEY_PHASE_DONE && !parley_sim_finished(s->sim, i, 0);
        holders += other.phase >= PARLEY_PHASE_HELD; /* or it has left since */
    }
    if (mine.held > mine.known) swarm_fail(s, "more hold it than are known", node);
    if (mine.held > holders && s->restarted == 0)
        swarm_fail(s, "it counts holders that are none", node);
    if (mine.held < done && !s->excludes && !s->late)
        swarm_fail(s, "it counts fewer holders than are done", node);
    if (s->agreed_count == SWARM_AGREED_MAX) return;
    struct swarm_agreed *agreed = &s->agreed[s->agreed_count++];
    agreed->node = node;
    agreed->outsider = s->outsider[node];
    memcpy(agreed->digest, mine.digest, sizeof agreed->digest);
}

/* Ends of pauses and cuts that are due. */
static inline void swarm_recover(struct swarm *s, bool all)
{
    uint64_t now_us = parley_sim_now(s->sim);
    for (uint32_t i = 0; i < s->nodes; i++) {
        if (!s->resume_us[i] || (!all && s->resume_us[i] > now_us)) continue;
        parley_sim_resume(s->sim, i);
        s->resume_us[i] = 0;
    }
    if (s->heal_us && (all || s->heal_us <= now_us)) {
        parley_sim_heal(s->sim);
        s->heal_us = 0;
    }
}

/* Lets `us` of virtual time pass, or less: until everything has ended. False if all is over. */
static inline bool swarm_run(struct swarm *s, uint64_t us)
{
    uint64_t end_us = parley_sim_now(s->sim) + us, look_us = 0;
    while (parley_sim_now(s->sim) < end_us && !s->why[0]) {
        if (parley_sim_now(s->sim) >= look_us) {
            swarm_recover(s, false);
            look_us = parley_sim_now(s->sim) + 50000;
        }
        if (!parley_sim_step(s->sim)) break;
        for (uint32_t i = 0; s->just_done && i < s->nodes; i++)
            if (s->just_done & 1u << i) swarm_done(s, i);
        s->just_done = 0;
    }
    const char *why;
    if (parley_sim_error(s->sim, &why)) swarm_fail(s, why, 0);
    return !s->why[0];
}

/* ---- Acts ------------------------------------------------------------------------------------ */

static inline void swarm_start(struct swarm *s, uint32_t node)
{
    if (s->up[node]) return;
    parley_sim_start(s->sim, node);
    s->up[node] = s->joins[node] = true;
    s->outsider[node] = s->agreed_count > 0;
    s->left[node] = false;
    s->resume_us[node] = 0;
}

static inline void swarm_kill(struct swarm *s, uint32_t node)
{
    if (!s->up[node] || parley_sim_finished(s->sim, node, NULL)) return;
    if (s->start_us[node] != PARLEY_SIM_NEVER && parley_sim_now(s->sim) <= s->start_us[node])
        return;
    parley_sim_kill(s->sim, node, swarm_chance(s, 2));
    s->up[node] = false;
    s->lossy = true;
    s->killed++;
}

static inline void swarm_cut(struct swarm *s, bool partition)
{
    uint64_t us = swarm_chance(s, 2) ? swarm_between(s, 10000, SWARM_SHORT_US)
                                     : swarm_between(s, SWARM_SHORT_US, 40 * SECOND);
    if (!(s->kinds & 1u << SWARM_ACTS)) {
        if (s->heal_us) return;
        if (us > SWARM_SHORT_US) us = SWARM_SHORT_US;
    }
    /* Cuts that follow each other may add up to a long one. */
    s->excludes = s->excludes || us > SWARM_SHORT_US || s->heal_us;
    uint64_t until_us = parley_sim_now(s->sim) + us;
    if (until_us > s->heal_us) s->heal_us = until_us;
    uint32_t group[SWARM_NODES_MAX];
    for (uint32_t i = 0; i < s->nodes; i++)
        group[i] = rng_below(&s->rng, 2);
    if (partition)
        parley_sim_partition(s->sim, group);
    else
        parley_sim_block(s->sim, rng_below(&s->rng, s->nodes), rng_below(&s->rng, s->nodes));
}

static inline void swarm_act(struct swarm *s)
{
    uint32_t a = rng_below(&s->rng, s->nodes), b = rng_below(&s->rng, s->nodes);
    uint32_t act = rng_below(&s->rng, SWARM_ACTS);
    bool ends = act <= SWARM_PAUSE || act == SWARM_LEAVE;
    if (ends && s->spares && a < s->seeds) return;
    if (!(s->kinds & 1u << act)) return;
    if (s->trace)
        fprintf(stderr, "%.3fs act %u on n%u\n", (double)parley_sim_now(s->sim) / 1e6, act, a);
    switch ((enum swarm_act)act) {
    case SWARM_KILL:
        if (2 * s->killed < s->nodes) swarm_kill(s, a);
        break;
    case SWARM_RESTART: /* of a live one, or of one that was killed, or left, or never there */
        if (s->agreed_count > 0 || (s->up[a] && parley_sim_finished(s->sim, a, NULL))) break;
        swarm_kill(s, a);
        if (swarm_chance(s, 2)) swarm_run(s, swarm_between(s, 0, 3 * SECOND));
        swarm_start(s, a);
        s->restarted++;
        break;
    case SWARM_PAUSE:
        parley_sim_pause(s->sim, a);
        if (!s->resume_us[a])
            s->resume_us[a] = parley_sim_now(s->sim) + swarm_between(s, 100000, 20 * SECOND);
        break;
    case SWARM_DISCONNECT:
        parley_sim_disconnect(s->sim, a, b);
        break;
    case SWARM_PARTITION:
    case SWARM_BLOCK:
        swarm_cut(s, act == SWARM_PARTITION);
        break;
    case SWARM_LATENCY:
        parley_sim_latency(s->sim, a, rng_below(&s->rng, 300000));
        break;
    case SWARM_LOSS:
        parley_sim_loss(s->sim, a, 0.2 * rng_unit(&s->rng));
        break;
    case SWARM_SLOW:
        parley_sim_slow(s->sim, a, 0.2 + 10 * rng_unit(&s->rng));
        break;
    case SWARM_DISK:
        s->full[a] = true;
        parley_sim_disk_full(s->sim, a, swarm_chance(s, 2));
        break;
    case SWARM_LEAVE:
        if (!s->up[a]) break;
        s->left[a] = true;
        parley_sim_leave(s->sim, a);
        break;
    case SWARM_STOP:
        if (!swarm_chance(s, 4)) break;
        for (uint32_t i = 0; i < s->nodes; i++)
            if (i == a || swarm_chance(s, 4)) parley_sim_stop(s->sim, i, PARLEY_STOP_OPERATOR);
        break;
    case SWARM_ACTS:
        break;
    }
}

/* ---- The draw -------------------------------------------------------------------------------- */

static inline void swarm_draw_starts(struct swarm *s)
{
    uint32_t kind = rng_below(&s->rng, 3);
    for (uint32_t i = 0; i < s->nodes; i++) {
        if (kind > 0) s->start_us[i] = swarm_between(s, 0, kind == 1 ? 50000 : 10 * SECOND);
        s->up[i] = s->joins[i] = true;
        if (i < s->seeds || !swarm_chance(s, 12)) continue;
        s->start_us[i] = PARLEY_SIM_NEVER;
        s->up[i] = s->joins[i] = false;
    }
}

static inline void swarm_draw(struct swarm *s, uint64_t seed)
{
    *s = (struct swarm){.seed = seed, .rng = rng_init(seed, 0x5377)};
    s->nodes = 1 + rng_below(&s->rng, SWARM_NODES_MAX);
    uint32_t peers = s->nodes - 1;
    s->min_peers = swarm_chance(s, 3) ? 0 : swarm_chance(s, 3) ? peers / 2 : peers;
    s->mix_every = swarm_chance(s, 2) ? 1 : 1 + rng_below(&s->rng, 50);
    s->topology =
        swarm_chance(s, 2) ? PARLEY_TOPOLOGY_COMPLETE : (enum parley_topology)rng_below(&s->rng, 4);
    s->quorum = swarm_chance(s, 5) ? PARLEY_QUORUM_MAJORITY : PARLEY_QUORUM_LIVE;
    s->tolerance = pow(10, -2 - 4 * rng_unit(&s->rng));
    uint32_t budget = rng_below(&s->rng, 5);
    if (budget == 0) s->steps = swarm_between(s, 10, 2000);
    if (budget == 1) s->samples = swarm_between(s, 10, 10000);
    if (budget == 2) s->time_us = swarm_between(s, 1000, 30 * SECOND);
    if (swarm_chance(s, 3)) s->stop_at_train = rng_below(&s->rng, 1u << s->nodes);
    /* Every kind in half of the seeds, so that most of them are not mere chaos. */
    s->kinds = rng_below(&s->rng, 1u << (SWARM_ACTS + 1)); /* the last: cuts may be long */
    if (s->quorum == PARLEY_QUORUM_MAJORITY) s->kinds &= ~(1u << SWARM_RESTART);
    s->seeds = 1 + rng_below(&s->rng, s->nodes < 4 ? s->nodes : 4);
    s->spares = !swarm_chance(s, 4);
    swarm_draw_starts(s);
    struct parley_sim_options options = {
        .nodes = s->nodes,
        .seed = seed,
        .seeds = s->seeds,
        .start_us = s->start_us,
        .rate = swarm_chance(s, 2) ? 0.001 : 0,
        .step_us = swarm_between(s, 500, 30000),
        .operation_us = swarm_chance(s, 4) ? swarm_between(s, 1000, 500000) : 0,
        .latency_us =
            swarm_chance(s, 4) ? swarm_between(s, 5000, 100000) : swarm_between(s, 1, 2000),
        .bandwidth_bytes = swarm_chance(s, 3) ? swarm_between(s, 1000000, 20000000) : 0,
        .configure = swarm_configure,
        .arg = s};
    s->sim = scene(&options);
}

#endif
