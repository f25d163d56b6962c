/* swarm.c: one life. */
#include "swarm/swarm.h"

#include <stdio.h>

#include "run/talk.h"
#include "swarm/state.h"

/* Where a seed is away or a link is cut while somebody joins, two clusters may form, and end before
 * they meet. */
static void joins(struct swarm *s)
{
    bool apart = s->heal_us > 0;
    for (uint32_t i = 0; i < s->seeds; i++) {
        bool late = parley_sim_now(s->sim) <= s->start_us[i];
        apart = apart || s->left[i] || (!s->up[i] && !late) || s->resume_us[i] ||
                s->start_us[i] == PARLEY_SIM_NEVER;
    }
    if (apart) swarm_excludes(s);
}

/* A seed that comes back remembers nobody; not met yet, it is a cluster of its own. */
static bool begins_alone(const struct swarm *s, uint32_t node)
{
    struct parley_view view;
    uint32_t up = 0;
    for (uint32_t i = 0; i < s->nodes; i++)
        up += s->up[i];
    parley_sim_view(s->sim, node, &view);
    return s->restarted && node < s->seeds && view.known == 1 && up > 1;
}

static void on_phase(struct swarm *s, uint32_t node, enum parley_phase phase)
{
    bool stops = phase == PARLEY_PHASE_TRAIN && s->stop_at_train & 1u << node;
    s->joins[node] = false;
    if (phase == PARLEY_PHASE_TRAIN) joins(s);
    if (phase == PARLEY_PHASE_TRAIN && begins_alone(s, node)) swarm_excludes(s);
    if (phase == PARLEY_PHASE_LATE) {
        s->late = true;
        sim_watch_apart(s->watch);
    }
    if (phase == PARLEY_PHASE_PROPOSED) swarm_proposed(s, node);
    if (phase == PARLEY_PHASE_HELD) swarm_held(s, node);
    if (phase == PARLEY_PHASE_LOCKED) swarm_locked(s, node);
    if (phase == PARLEY_PHASE_DONE) s->just_done |= 1u << node;
    if (!stops) return;
    s->stop_at_train &= ~(1u << node);
    parley_sim_stop(s->sim, node, PARLEY_STOP_OPERATOR);
}

static void on_update(struct parley_sim *sim, uint32_t node, const struct parley_update *update,
                      void *arg)
{
    struct swarm *s = arg;
    switch (update->type) {
    case PARLEY_UPDATE_PHASE:
        on_phase(s, node, update->phase.phase);
        break;
    case PARLEY_UPDATE_MEMBER:
        if (update->member.state == PARLEY_MEMBER_ALIVE &&
            update->member.boot == sim->hosts[node].boot)
            joins(s); /* it begins */
        if (update->member.state != PARLEY_MEMBER_DEAD) break;
        s->silent = true;
        sim_watch_apart(s->watch); /* it may be back, and be far */
        break;
    case PARLEY_UPDATE_FINISHED:
        if (update->finished.error == PARLEY_EDIVERGED) swarm_diverged(s, node);
        if (update->finished.error == PARLEY_ENO_SEED) swarm_seedless(s, node);
        break;
    default:
        break;
    }
}

static void on_line(const char *line, void *arg)
{
    (void)arg;
    sim_say(PARLEY_LOG_DEBUG, "%s", line);
}

static void tell(const struct swarm *s, struct swarm_result *result)
{
    const char *why;
    result->well = parley_sim_error(s->sim, &why) == 0;
    if (!result->well) snprintf(result->why, sizeof result->why, "%s", why);
    result->nodes = s->nodes;
    result->agreed = s->agreed_count;
    result->virtual_us = parley_sim_now(s->sim);
    result->events = parley_sim_events(s->sim);
    for (uint32_t i = 0; i < s->nodes; i++) {
        struct parley_view view;
        parley_sim_view(s->sim, i, &view);
        result->exchanges += view.ledger.committed;
    }
}

void swarm_live(uint64_t seed, int strategy, struct swarm_result *result)
{
    struct swarm s;
    *result = (struct swarm_result){.seed = seed};
    int error = swarm_draw(&s, seed, strategy);
    if (error) {
        snprintf(result->why, sizeof result->why, "%s", parley_error_text(error));
    } else {
        s.sim->on_update = on_update;
        s.sim->on_update_arg = &s;
        if (sim_talks(PARLEY_LOG_DEBUG)) parley_sim_on_line(s.sim, PARLEY_LOG_INFO, on_line, NULL);
        swarm_fire(&s);
        if (s.votes_again && !parley_sim_error(s.sim, NULL)) swarm_vote_again(&s);
        if (!parley_sim_error(s.sim, NULL)) swarm_calm(&s);
        if (!parley_sim_error(s.sim, NULL)) swarm_stop(&s);
        if (!parley_sim_error(s.sim, NULL)) swarm_judge(&s);
        tell(&s, result);
    }
    parley_sim_free(s.sim);
    sim_watch_free(s.watch);
}
