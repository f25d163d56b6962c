/* life.c: what befalls a cluster, until it has ended. */
#include <inttypes.h>
#include <math.h>

#include "run/talk.h"
#include "swarm/state.h"

/* A message that was lost comes again after at most so long (sim_again_us()). */
#define LOST_US (52 * SECOND)

/* A dial that came twice has come and gone after so long. */
#define TWICE_US (3 * SECOND)

/* Whoever was silent before is heard again, or has been found dead, after so long. */
#define MEET_US (5 * SECOND)

/* None of the first so many goes on. */
static bool ended(const struct swarm *s, uint32_t nodes)
{
    for (uint32_t i = 0; i < nodes; i++)
        if (swarm_goes_on(s, i)) return false;
    return true;
}

/* ---- Time ------------------------------------------------------------------------------------ */

/* Ends of pauses and cuts that are due. */
static void recover(struct swarm *s, bool all)
{
    uint64_t now_us = parley_sim_now(s->sim);
    for (uint32_t i = 0; i < s->nodes; i++) {
        if (!s->resume_us[i] || (!all && s->resume_us[i] > now_us)) continue;
        parley_sim_resume(s->sim, i);
        s->resume_us[i] = 0;
        s->whole_us = now_us;
    }
    if (s->heal_us && (all || s->heal_us <= now_us)) {
        parley_sim_heal(s->sim);
        s->heal_us = 0;
        s->whole_us = now_us;
    }
}

bool swarm_run(struct swarm *s, uint64_t us)
{
    uint64_t end_us = parley_sim_now(s->sim) + us, look_us = 0;
    while (parley_sim_now(s->sim) < end_us) {
        if (parley_sim_now(s->sim) >= look_us) {
            recover(s, false);
            sim_watch_stuck(s->watch);
            if (s->apart && parley_sim_now(s->sim) >= s->whole_us + MEET_US) swarm_meet(s);
            look_us = parley_sim_now(s->sim) + 50000;
        }
        if (!parley_sim_step(s->sim)) break;
        for (uint32_t i = 0; s->just_done && i < s->nodes; i++)
            if (s->just_done & 1u << i) swarm_done(s, i);
        s->just_done = 0;
    }
    return !parley_sim_error(s->sim, NULL);
}

/* ---- Acts ------------------------------------------------------------------------------------ */

void swarm_excludes(struct swarm *s)
{
    s->excludes = s->apart = true;
    sim_watch_apart(s->watch);
}

static void start(struct swarm *s, uint32_t node)
{
    if (s->up[node]) return;
    /* Or nobody is there who could let it in. */
    bool outside = s->agreed_count > 0 || ended(s, s->seeds);
    parley_sim_start(s->sim, node);
    s->up[node] = s->joins[node] = s->anew[node] = s->restarted = true;
    s->outsider[node] = outside;
    s->left[node] = false;
    sim_watch_apart(s->watch);
    s->resume_us[node] = 0;
}

static void kill(struct swarm *s, uint32_t node)
{
    if (!swarm_goes_on(s, node)) return;
    if (s->start_us[node] != PARLEY_SIM_NEVER && parley_sim_now(s->sim) <= s->start_us[node])
        return;
    parley_sim_kill(s->sim, node, swarm_chance(&s->rng, 2));
    s->up[node] = false;
    s->lossy = true;
    sim_watch_apart(s->watch);
    s->killed++;
}

/* Of a live one, or of one that was killed, or left, or was never there. */
static void restart(struct swarm *s, uint32_t node)
{
    if (s->agreed_count > 0 || (s->up[node] && parley_sim_finished(s->sim, node, NULL))) return;
    kill(s, node);
    if (swarm_chance(&s->rng, 2)) swarm_run(s, swarm_between(&s->rng, 0, 3 * SECOND));
    start(s, node);
}

/* For how long links are to be cut from now; false: not at all. */
static bool cut_lasts(struct swarm *s, struct rng *rng)
{
    uint64_t us = swarm_chance(rng, 2) ? swarm_between(rng, 10000, SWARM_SHORT_US)
                                       : swarm_between(rng, SWARM_SHORT_US, 40 * SECOND);
    if (!(s->kinds & 1u << SWARM_ACTS)) {
        if (s->heal_us) return false;
        if (us > SWARM_SHORT_US) us = SWARM_SHORT_US;
    }
    /* Cuts that follow each other may add up to a long one. */
    if (us > SWARM_SHORT_US || s->heal_us) swarm_excludes(s);
    uint64_t until_us = parley_sim_now(s->sim) + us;
    if (until_us > s->heal_us) s->heal_us = until_us;
    return true;
}

static void cut(struct swarm *s, bool partition)
{
    if (!cut_lasts(s, &s->rng)) return;
    uint32_t group[SWARM_NODES_MAX];
    for (uint32_t i = 0; i < s->nodes; i++)
        group[i] = rng_below(&s->rng, 2);
    s->hushed = ~0u;
    if (partition) {
        parley_sim_partition(s->sim, group);
        return;
    }
    uint32_t to = rng_below(&s->rng, s->nodes), from = rng_below(&s->rng, s->nodes);
    parley_sim_block(s->sim, from, to);
}

/* Nothing comes to it or goes from it, and nothing breaks. */
static void clog_node(struct swarm *s, uint32_t node)
{
    uint32_t group[SWARM_NODES_MAX] = {0};
    if (!cut_lasts(s, &s->links)) return;
    group[node] = 1;
    s->hushed |= 1u << node;
    parley_sim_partition(s->sim, group);
}

static void say_act(const struct swarm *s, uint32_t node, const char *fault)
{
    double now_s = (double)parley_sim_now(s->sim) / 1e6;
    sim_say(PARLEY_LOG_DEBUG, "%.3fs n%" PRIu32 " fault %s", now_s, node, fault);
}

static void act_on_links(struct swarm *s)
{
    static const char *const names[] = {"cut", "duplicate", "clog"};
    uint32_t kind = rng_below(&s->links, 3), node = rng_below(&s->links, s->nodes);
    say_act(s, node, names[kind]);
    if (kind == 0) parley_sim_cut(s->sim, node, 0.02 * rng_unit(&s->links));
    if (kind == 1) parley_sim_duplicate(s->sim, node, rng_unit(&s->links));
    if (kind == 2) clog_node(s, node);
}

static void act_rarely(struct swarm *s)
{
    static const char *const names[SWARM_RARE_ACTS] = {"reorder", "bandwidth", "torn disk",
                                                       "slow disk", "spoil"};
    struct rng *rng = &s->rares;
    uint32_t kind = rng_below(rng, SWARM_RARE_ACTS), node = rng_below(rng, s->nodes);
    if (!(s->rare.acts & 1u << kind)) return;
    say_act(s, node, names[kind]);
    switch ((enum swarm_rare_act)kind) {
    case SWARM_REORDER:
        parley_sim_reorder(s->sim, node, swarm_between(rng, 0, 500000));
        break;
    case SWARM_BANDWIDTH:
        parley_sim_bandwidth(s->sim, node, swarm_between(rng, 5000, 1000000));
        break;
    case SWARM_TORN:
        parley_sim_disk_torn(s->sim, node, true);
        s->full[node] = true;
        break;
    case SWARM_SLOW_DISK:
        parley_sim_disk_slow(s->sim, node, swarm_between(rng, 0, 5 * SECOND));
        break;
    case SWARM_SPOIL:
        parley_sim_spoil(s->sim, node, swarm_chance(rng, 2) ? NAN : -INFINITY);
        s->spoilt[node]++;
        s->lossy = true;
        break;
    case SWARM_RARE_ACTS:
        break;
    }
}

static void act_on(struct swarm *s, enum swarm_act act, uint32_t a, uint32_t b)
{
    struct rng *rng = &s->rng;
    switch (act) {
    case SWARM_KILL:
        if (2 * s->killed < s->nodes) kill(s, a);
        break;
    case SWARM_RESTART:
        restart(s, a);
        break;
    case SWARM_PAUSE:
        parley_sim_pause(s->sim, a);
        if (!s->resume_us[a])
            s->resume_us[a] = parley_sim_now(s->sim) + swarm_between(rng, 100000, 20 * SECOND);
        s->hushed |= 1u << a;
        s->silent = true;
        break;
    case SWARM_DISCONNECT:
        parley_sim_disconnect(s->sim, a, b);
        break;
    case SWARM_PARTITION:
    case SWARM_BLOCK:
        cut(s, act == SWARM_PARTITION);
        break;
    case SWARM_LATENCY:
        parley_sim_latency(s->sim, a, rng_below(rng, 300000));
        break;
    case SWARM_LOSS:
        parley_sim_loss(s->sim, a, 0.2 * rng_unit(rng));
        s->hushed |= 1u << a;
        s->silent = true;
        break;
    case SWARM_SLOW:
        parley_sim_slow(s->sim, a, 0.2 + 10 * rng_unit(rng));
        break;
    case SWARM_DISK:
        s->full[a] = true;
        parley_sim_disk_full(s->sim, a, swarm_chance(rng, 2));
        break;
    case SWARM_LEAVE:
        if (!s->up[a]) break;
        s->left[a] = true;
        sim_watch_apart(s->watch);
        parley_sim_leave(s->sim, a);
        break;
    case SWARM_STOP:
        if (!swarm_chance(rng, 4)) break;
        for (uint32_t i = 0; i < s->nodes; i++)
            if (i == a || swarm_chance(rng, 4)) parley_sim_stop(s->sim, i, PARLEY_STOP_OPERATOR);
        break;
    case SWARM_ACTS:
        break;
    }
}

static void act(struct swarm *s)
{
    static const char *const names[SWARM_ACTS] = {"kill",      "restart", "pause",   "disconnect",
                                                  "partition", "block",   "latency", "loss",
                                                  "slow",      "disk",    "leave",   "stop"};
    uint32_t a = rng_below(&s->rng, s->nodes), b = rng_below(&s->rng, s->nodes);
    uint32_t kind = rng_below(&s->rng, SWARM_ACTS);
    bool ends = kind <= SWARM_PAUSE || kind == SWARM_LEAVE;
    if (ends && s->spares && a < s->seeds) return;
    if (!(s->kinds & 1u << kind)) return;
    say_act(s, a, names[kind]);
    act_on(s, (enum swarm_act)kind, a, b);
}

void swarm_fire(struct swarm *s)
{
    uint32_t acts = 2 + rng_below(&s->rng, 88);
    uint64_t pause_us = swarm_between(&s->rng, 1000, 1000000);
    for (uint32_t i = 0; i < acts && !parley_sim_error(s->sim, NULL); i++) {
        act(s);
        if (s->links_fail && swarm_chance(&s->links, 8)) act_on_links(s);
        if (s->rare.is_drawn && swarm_chance(&s->rares, 6)) act_rarely(s);
        swarm_run(s, swarm_between(&s->rng, 0, pause_us));
    }
}

/* ---- Two votes ------------------------------------------------------------------------------- */

static void stop_group(struct swarm *s, const uint32_t *group, uint32_t which)
{
    for (uint32_t i = 0; i < s->nodes; i++)
        if (s->up[i] && group[i] == which) parley_sim_stop(s->sim, i, PARLEY_STOP_OPERATOR);
}

static void part(struct swarm *s, const uint32_t *group)
{
    enum { APART_S = 600 };
    recover(s, true);
    swarm_excludes(s);
    s->hushed = ~0u;
    s->heal_us = parley_sim_now(s->sim) + APART_S * SECOND;
    parley_sim_partition(s->sim, group);
}

/* Of some nodes most agree, and the others train, cut off. */
void swarm_vote_again(struct swarm *s)
{
    uint32_t group[SWARM_NODES_MAX], first = rng_below(&s->votes, s->nodes), again;
    for (uint32_t i = 0; i < s->nodes; i++)
        group[(first + i) % s->nodes] = 2 * i > s->nodes;
    part(s, group);
    stop_group(s, group, 0);
    for (int i = 0; i < 100 && s->agreed_count == 0 && swarm_run(s, SECOND); i++)
        ;
    if (s->agreed_count == 0) return;
    again = s->agreed[0].node;
    parley_sim_kill(s->sim, again, false);
    s->up[again] = false;
    group[again] = 1;
    part(s, group);
    start(s, again);
    swarm_run(s, swarm_between(&s->votes, 0, 10 * SECOND));
    stop_group(s, group, 1);
    swarm_run(s, 30 * SECOND);
}

/* ---- The end --------------------------------------------------------------------------------- */

/* While links have just healed, and views still differ. */
static void stop_all(struct swarm *s)
{
    for (uint32_t i = 0; i < s->nodes; i++)
        parley_sim_stop(s->sim, i, PARLEY_STOP_OPERATOR);
}

/* Two that don't reach each other for good, as behind two NATs. Who is between them has trained,
 * too: it can give one's model to the other. */
static void wall_off(struct swarm *s)
{
    uint32_t train[SWARM_NODES_MAX], count = 0;
    for (uint32_t i = 0; i < s->nodes; i++) {
        struct parley_view view;
        parley_sim_view(s->sim, i, &view);
        if (swarm_goes_on(s, i) && !s->left[i] && view.phase == PARLEY_PHASE_TRAIN)
            train[count++] = i;
    }
    if (count < 3 || s->topology != PARLEY_TOPOLOGY_COMPLETE) return;
    uint32_t at = rng_below(&s->walls, count), step = 1 + rng_below(&s->walls, count - 1);
    uint32_t a = train[at], b = train[(at + step) % count];
    say_act(s, a, "wall");
    say_act(s, b, "wall");
    parley_sim_block(s->sim, a, b);
    parley_sim_block(s->sim, b, a);
    s->hushed |= 1u << a | 1u << b;
    s->silent = true;
}

void swarm_calm(struct swarm *s)
{
    uint64_t after_us = s->kinds & 1u << SWARM_LOSS ? LOST_US : s->links_fail ? TWICE_US : SECOND;
    sim_watch_calm(s->watch, parley_sim_now(s->sim) + after_us);
    sim_say(PARLEY_LOG_DEBUG, "%.3fs calm", (double)parley_sim_now(s->sim) / 1e6);
    recover(s, true);
    for (uint32_t i = 0; i < s->nodes; i++) {
        parley_sim_latency(s->sim, i, 0);
        parley_sim_loss(s->sim, i, 0);
        parley_sim_cut(s->sim, i, 0);
        parley_sim_duplicate(s->sim, i, 0);
        parley_sim_slow(s->sim, i, 1);
        parley_sim_reorder(s->sim, i, 0);
        parley_sim_bandwidth(s->sim, i, s->sim->options.base.bandwidth_bytes);
        parley_sim_disk_slow(s->sim, i, 0);
        if (!s->up[i] && s->agreed_count == 0 && swarm_chance(&s->rng, 2)) start(s, i);
    }
    if (s->walled) wall_off(s);
    if (swarm_chance(&s->asides, 3)) swarm_views(s);
    if (swarm_chance(&s->asides, 8)) stop_all(s);
    swarm_run(s, swarm_between(&s->rng, 0, 20 * SECOND));
}

/* An operator stops one node, and after a minute also those who have not joined anybody. */
void swarm_stop(struct swarm *s)
{
    for (uint32_t minute = 0; minute < 16 && !ended(s, s->nodes); minute++) {
        uint32_t a = rng_below(&s->rng, s->nodes);
        while (!swarm_goes_on(s, a))
            a = (a + 1) % s->nodes;
        for (uint32_t i = 0; i < s->nodes; i++)
            if (i == a || (minute > 0 && s->joins[i]))
                parley_sim_stop(s->sim, i, PARLEY_STOP_OPERATOR);
        for (int i = 0; i < 60 && !ended(s, s->nodes); i++)
            if (!swarm_run(s, SECOND)) return;
    }
    parley_sim_heal(s->sim);
}
