/* verdict.c: what must hold of a life.
 *
 *   - in the calm all come to see who is there, and who is not, and train and average on;
 *   - every node has ended, in bounded time, and for a reason that its life gives;
 *   - one agreed digest, unless groups have excluded each other, never two where a majority
 *     decides; the model is what the digest says, and the file is that model;
 *   - holders counted are holders;
 *   - who can have another's model in place of its own, which is not finite, does not end for that;
 *   - each decision was applied by both sides or given up and counted; averaging has not moved the
 *     mean, where nobody died and nothing was given up; what is pushed one way is somewhere;
 *   - what was agreed is what mixing had come to, within the tolerance, where nobody was late, or
 *     taken for dead by who locked it, nor anybody clips what it is told;
 *   - no connection, message or operation is left over.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/state.h"
#include "core/training/training.h"
#include "kernels/digest.h"
#include "swarm/state.h"

enum { RESTING_US = 200000 };  /* a step, where time is to pass and not to cost */
enum { MEETING_US = 2000000 }; /* in which who finds no seed at once dials it again, and again */

static void fail(struct swarm *s, const char *invariant, uint32_t node)
{
    sim_watch_fail(s->sim, node, invariant);
}

/* ---- One that is done ------------------------------------------------------------------------ */

/* `node` takes `other` for alive, and in that phase or a later one. */
static bool sees(const struct swarm *s, uint32_t node, uint32_t other, enum parley_phase phase)
{
    struct parley_member member;
    return parley_sim_member(s->sim, node, other, &member) && member.phase >= phase &&
           (member.state == PARLEY_MEMBER_ALIVE || member.state == PARLEY_MEMBER_SUSPECT);
}

void swarm_locked(struct swarm *s, uint32_t node)
{
    for (uint32_t i = 0; i < s->nodes; i++)
        if (s->up[i] && !sees(s, node, i, PARLEY_PHASE_TRAIN)) s->overlooked = true;
}

void swarm_proposed(struct swarm *s, uint32_t node)
{
    struct parley_view view;
    parley_sim_view(s->sim, node, &view);
    bool near = view.drift_before >= 0 && view.drift_before <= s->tolerance;
    s->distrusts = s->distrusts || (s->rare.robust && !near);
}

void swarm_held(struct swarm *s, uint32_t node)
{
    struct parley_view view;
    parley_sim_view(s->sim, node, &view);
    memcpy(s->held[node], view.digest, sizeof view.digest);
}

static void check_model_of(struct swarm *s, uint32_t node, const struct parley_view *view)
{
    uint8_t digest[PARLEY_DIGEST_BYTES];
    const struct sim_task *task = s->sim->task;
    const float *x = parley_sim_agreed_vector(s->sim, node);
    const uint8_t *file = parley_sim_file(s->sim, node);
    if (!x || digest_model(x, s->sim->parameters, task->tensors, task->tensors_count, s->sim->run,
                           digest) != 0)
        fail(s, "it is done and has no model", node);
    else if (memcmp(digest, view->digest, sizeof digest) != 0)
        fail(s, "its model is not what was agreed", node);
    if (file ? memcmp(file, view->digest, sizeof digest) != 0 : !s->full[node])
        fail(s, "its file is not what was agreed", node);
}

/* `node` is done without it. Who was silent for a fault's sake may have been taken for dead. */
static bool is_outsider(const struct swarm *s, uint32_t node, uint32_t other)
{
    bool hushed = s->hushed & 1u << other;
    return !s->up[other] || s->joins[other] || s->resume_us[other] ||
           (hushed && !sees(s, node, other, PARLEY_PHASE_JOINING));
}

/* Of a start that agreed on another model, where that node has been started anew since. */
static bool knew_earlier(const struct swarm *s, const struct swarm_agreed *agreed)
{
    const struct sim_host *hosts = s->sim->hosts;
    const struct parley_roster *roster = hosts[agreed->node].node->roster;
    for (const struct swarm_agreed *a = s->agreed; a < agreed; a++)
        if (memcmp(a->digest, agreed->digest, sizeof a->digest) != 0 &&
            hosts[a->node].boot != a->boot && roster_find(roster, a->boot) != NONE)
            return true;
    return false;
}

void swarm_done(struct swarm *s, uint32_t node)
{
    struct parley_view mine, other;
    uint32_t done = 0, holders = 0;
    parley_sim_view(s->sim, node, &mine);
    for (uint32_t i = 0; i < s->nodes; i++) {
        parley_sim_view(s->sim, i, &other);
        if (s->agreed_count == 0) s->outsider[i] = is_outsider(s, node, i);
        if (memcmp(mine.digest, other.digest, sizeof mine.digest) != 0) continue;
        done += swarm_goes_on(s, i) && other.phase == PARLEY_PHASE_DONE &&
                sees(s, node, i, PARLEY_PHASE_JOINING);
        /* Or it has left since, or proposes anew what it held. */
        holders += other.phase >= PARLEY_PHASE_HELD ||
                   memcmp(s->held[i], mine.digest, sizeof mine.digest) == 0;
    }
    check_model_of(s, node, &mine);
    if (mine.held > mine.known) fail(s, "more hold it than are known", node);
    if (mine.held > holders && !s->restarted) fail(s, "it counts holders that are none", node);
    if (mine.held < done && !s->excludes && !s->late)
        fail(s, "it counts fewer holders than are done, and alive to it", node);
    if (s->agreed_count == SWARM_AGREED_MAX) return;
    struct swarm_agreed *agreed = &s->agreed[s->agreed_count++];
    agreed->node = node;
    agreed->boot = s->sim->hosts[node].boot;
    agreed->us = parley_sim_now(s->sim);
    agreed->outsider = s->outsider[node];
    memcpy(agreed->digest, mine.digest, sizeof agreed->digest);
    agreed->knew_earlier = knew_earlier(s, agreed);
}

/* No cut is between the two. */
static bool reaches(const struct swarm *s, uint32_t a, uint32_t b)
{
    const bool *blocked = s->sim->blocked;
    size_t n = s->nodes;
    return !blocked || (!blocked[a * n + b] && !blocked[b * n + a]);
}

/* It may have a model for `node`, and no reason to refuse it. */
static bool helps(const struct swarm *s, uint32_t other, uint32_t node)
{
    struct parley_view view;
    parley_sim_view(s->sim, other, &view);
    return other != node && s->up[other] && s->spoilt[other] == 0 && !s->left[other] &&
           !s->resume_us[other] && view.phase <= PARLEY_PHASE_PROPOSED &&
           sees(s, node, other, PARLEY_PHASE_TRAIN) && reaches(s, node, other);
}

void swarm_diverged(struct swarm *s, uint32_t node)
{
    enum { TAKEN_MAX = 3 };
    bool helped = false;
    for (uint32_t i = 0; i < s->nodes; i++)
        helped = helped || helps(s, i, node);
    if (parley_strategy_splits(s->strategy)) helped = false; /* all have the same */
    if (s->spoilt[node] > TAKEN_MAX || (s->spoilt[node] > 0 && !helped)) s->helpless |= 1u << node;
}

/* A seed is gone or paused, or came so late that who was told to stop before had given up, or was
 * about to. */
void swarm_seedless(struct swarm *s, uint32_t node)
{
    for (uint32_t i = 0; i < s->seeds; i++)
        if (!s->up[i] || s->helpless & 1u << i || s->left[i] || s->resume_us[i] ||
            s->start_us[i] > SWARM_LATE_US)
            s->seedless |= 1u << node;
}

/* ---- Views ----------------------------------------------------------------------------------- */

/* It is there for the others: it has joined, and neither left nor ended. */
static bool is_there(const struct swarm *s, uint32_t node)
{
    return swarm_goes_on(s, node) && !s->left[node] && !s->joins[node];
}

/* Everybody sees just those who are there. */
static bool views_agree(const struct swarm *s)
{
    uint32_t there = 0;
    for (uint32_t i = 0; i < s->nodes; i++)
        there += is_there(s, i);
    for (uint32_t i = 0; i < s->nodes; i++)
        if (is_there(s, i) && !sim_sees(s->sim, i, there)) return false;
    return true;
}

/* Whether all who are up train, so that there is something to see. */
static bool all_train(const struct swarm *s)
{
    for (uint32_t i = 0; i < s->nodes; i++) {
        struct parley_view view;
        parley_sim_view(s->sim, i, &view);
        bool gone = !s->up[i] || (s->left[i] && parley_sim_finished(s->sim, i, NULL));
        if (!gone && (s->left[i] || view.phase != PARLEY_PHASE_TRAIN)) return false;
    }
    return s->agreed_count == 0;
}

/* Trainers rest a little, or minutes would cost as much as the whole life; some of them more. */
static void rest(struct swarm *s)
{
    for (uint32_t i = 0; i < s->nodes; i++) {
        uint64_t step_us = RESTING_US * (1 + i % (1 + s->rare.slower));
        parley_sim_slow(s->sim, i, (double)step_us / (double)s->step_us);
    }
}

/* At a hub the others take turns by chance, and it may be slow: one of them may get none. */
static bool averages_in_pairs(const struct swarm *s)
{
    if (s->topology == PARLEY_TOPOLOGY_STAR) return false;
    return s->strategy == PARLEY_STRATEGY_GOSSIP || s->strategy == PARLEY_STRATEGY_PUSH_SUM ||
           s->strategy == PARLEY_STRATEGY_NOLOCO;
}

/* Long enough for what went wrong to be found out, and for many periods. */
static void check_progress(struct swarm *s)
{
    struct parley_view before[SWARM_NODES_MAX], after;
    bool was_there[SWARM_NODES_MAX];
    uint32_t there = 0;
    uint32_t period = s->rare.later.steps > s->mix_every ? s->rare.later.steps : s->mix_every;
    uint64_t period_us = period * RESTING_US * (1 + s->rare.slower);
    uint64_t seconds = 60 + 40 * period_us / SECOND;
    for (uint32_t i = 0; i < s->nodes; i++) {
        parley_sim_view(s->sim, i, &before[i]);
        was_there[i] = is_there(s, i);
        there += was_there[i];
    }
    for (uint64_t i = 0; i < seconds; i++)
        if (!all_train(s) || !swarm_run(s, SECOND)) return;
    for (uint32_t i = 0; i < s->nodes && all_train(s); i++) {
        if (!was_there[i] || !is_there(s, i)) continue;
        parley_sim_view(s->sim, i, &after);
        const struct parley_node *core = s->sim->hosts[i].node;
        bool wants = training_wants(core) && !self_of(core)->aside; /* its budget has steps left */
        if (wants && after.version == before[i].version)
            fail(s, "in the calm it does not train on", i);
        if (averages_in_pairs(s) && there > 1 && after.ledger.applied == before[i].ledger.applied)
            fail(s, "in the calm it averages no more", i);
    }
}

void swarm_views(struct swarm *s)
{
    uint32_t seconds = 0;
    rest(s);
    while (seconds < 150 && all_train(s) && !views_agree(s) && swarm_run(s, SECOND))
        seconds++;
    if (all_train(s) && !views_agree(s)) fail(s, "after minutes of calm views still differ", 0);
    if (all_train(s)) check_progress(s);
    for (uint32_t i = 0; i < s->nodes; i++)
        parley_sim_slow(s->sim, i, 1);
}

void swarm_meet(struct swarm *s)
{
    if (s->heal_us || s->agreed_count > 0) return;
    for (uint32_t i = 0; i < s->nodes; i++)
        if (s->resume_us[i]) return;
    if (views_agree(s)) s->apart = false;
}

/* ---- The end --------------------------------------------------------------------------------- */

static bool somebody_left(const struct swarm *s)
{
    for (uint32_t i = 0; i < s->nodes; i++)
        if (s->left[i]) return true;
    return false;
}

static bool excused(const struct swarm *s, uint32_t node, const struct parley_view *view, int error)
{
    bool done = view->phase == PARLEY_PHASE_DONE;
    /* All who had trained are gone. */
    bool untrained = view->phase == PARLEY_PHASE_LATE && view->version == 0 &&
                     (s->killed > 0 || s->helpless || somebody_left(s));
    bool majority_gone = s->quorum == PARLEY_QUORUM_MAJORITY;
    switch (error) {
    case PARLEY_OK:
        return done || s->left[node];
    case PARLEY_ENOT_WRITTEN:
        return s->full[node] && done;
    case PARLEY_ENO_AGREEMENT:
        return s->agreed_count > 0 || majority_gone || untrained || s->distrusts;
    case PARLEY_EDIVERGED:
        return s->helpless & 1u << node;
    case PARLEY_ENO_SEED:
        return s->outsider[node] || s->excludes || s->seedless & 1u << node;
    default:
        return false;
    }
}

static void check_ends(struct swarm *s)
{
    for (uint32_t i = 0; i < s->nodes; i++) {
        int error;
        struct parley_view view;
        char text[80];
        if (!s->up[i]) continue;
        parley_sim_view(s->sim, i, &view);
        if (!parley_sim_finished(s->sim, i, &error)) {
            snprintf(text, sizeof text, "it has not ended, but is in phase %s",
                     parley_phase_name(view.phase));
            fail(s, text, i);
        } else if (!excused(s, i, &view, error)) {
            snprintf(text, sizeof text, "it ended in phase %s: %s", parley_phase_name(view.phase),
                     parley_error_name(error));
            fail(s, text, i);
        }
    }
}

/* It has heard of the other as that is now, and not only of an earlier process. */
static bool has_met(const struct swarm *s, uint32_t node, uint32_t other)
{
    const struct parley_node *core = s->sim->hosts[node].node, *its = s->sim->hosts[other].node;
    return core && its && roster_find(core->roster, self_of(its)->boot) != NONE;
}

/* One has heard of the other, or both were there from the start, long enough to dial again where
 * a first dial failed, and a seed is left that could have brought them together. */
static bool within_reach(const struct swarm *s, const struct swarm_agreed *a,
                         const struct swarm_agreed *b)
{
    uint64_t both_us = s->start_us[a->node], one_us = a->us < b->us ? a->us : b->us;
    if (both_us < s->start_us[b->node]) both_us = s->start_us[b->node];
    if (has_met(s, a->node, b->node) || has_met(s, b->node, a->node)) return true;
    if (s->anew[a->node] || s->anew[b->node] || one_us < both_us + MEETING_US) return false;
    for (uint32_t i = 0; i < s->seeds; i++)
        if (s->up[i] && !s->left[i]) return true;
    return false;
}

static void check_digests(struct swarm *s)
{
    const struct swarm_agreed *first = NULL;
    for (uint32_t i = 0; i < s->agreed_count; i++) {
        const struct swarm_agreed *a = &s->agreed[i];
        bool majority = s->quorum == PARLEY_QUORUM_MAJORITY;
        if (!majority && (a->outsider || s->apart)) continue;
        if (!first) first = a;
        bool same = memcmp(a->digest, first->digest, sizeof a->digest) == 0;
        /* Who starts anew and has kept nothing can be told so only by who knew it before. */
        bool within = s->votes_again ? s->remembers || a->knew_earlier : within_reach(s, a, first);
        if (!same && within) fail(s, "it agreed on another model", a->node);
    }
}

/* What has been pushed is somewhere, and the samples that went along. */
static void check_weights(struct swarm *s, bool all_applied)
{
    double weight = 0, nodes = 0, part = 0, samples = 0;
    for (uint32_t i = 0; i < s->nodes; i++) {
        if (!s->up[i]) continue;
        const struct training *t = &s->sim->hosts[i].node->training;
        weight += t->weight;
        nodes++;
        part += t->part;
        samples += (double)(t->samples + t->before.samples);
    }
    if (!all_applied) return;
    if (fabs(weight - nodes) > 1e-9 * nodes) fail(s, "a pushed weight is lost", 0);
    if (fabs(part - samples) > 1e-9 * samples) fail(s, "the part that was pushed is lost", 0);
}

static void check_mean(struct swarm *s)
{
    uint64_t dropped = 0, committed = 0, applied = 0;
    for (uint32_t i = 0; i < s->nodes; i++) {
        struct parley_view view;
        parley_sim_view(s->sim, i, &view);
        dropped += view.ledger.dropped + view.ledger.in_doubt;
        committed += view.ledger.committed;
        applied += view.ledger.applied;
        if (s->left[i]) return;
    }
    if (s->lossy || s->restarted || dropped || s->excludes || s->late) return;
    if (s->strategy == PARLEY_STRATEGY_NOLOCO) return; /* its outer momentum moves it */
    if (s->strategy == PARLEY_STRATEGY_PUSH_SUM) check_weights(s, applied == 2 * committed);
    if (sim_watch_lonely(s->watch) > 0) {
        if (!s->silent) fail(s, "a term of a round was added at one end alone", 0);
        return;
    }
    /* Rounding, of each addition by half an ulp at most, and in thousands of them often the same
     * way; and a delta that comes after a proposal, let go, is within the tolerance. */
    double most = 1e-4 + (double)applied / s->nodes * FLT_EPSILON / 2;
    if (applied != 2 * committed) most += s->tolerance;
    if (parley_sim_mass_error(s->sim) > most) fail(s, "averaging moved the mean", 0);
}

/* The agreed model is the mean of what was mixed, as far as the tolerance demands. */
static void check_model(struct swarm *s)
{
    double mean[SWARM_PARAMETERS], far_sq = 0, norm_sq = 0;
    if (s->excludes || s->late || s->lossy || s->restarted || s->agreed_count < s->nodes) return;
    if (s->overlooked || s->rare.robust) return; /* who is far from most is as one that lies */
    for (uint32_t i = 0; i < s->nodes; i++)
        if (s->outsider[i] || s->left[i]) return;
    parley_sim_mean(s->sim, mean);
    const float *x = parley_sim_agreed_vector(s->sim, 0);
    for (uint32_t j = 0; x && j < SWARM_PARAMETERS; j++) {
        far_sq += (x[j] - mean[j]) * (x[j] - mean[j]);
        norm_sq += mean[j] * mean[j];
    }
    if (x && sqrt(far_sq) > (3 * s->tolerance + 1e-6) * sqrt(norm_sq)) {
        char text[80];
        snprintf(text, sizeof text, "the agreed model is %.2e from the mean, tolerance %.2e",
                 sqrt(far_sq / norm_sq), s->tolerance);
        fail(s, text, 0);
    }
}

/* What is still under way comes to its end, and then nothing is left. */
static void check_left_over(struct swarm *s)
{
    while (parley_sim_step(s->sim))
        ;
    if (s->sim->links || s->sim->held_count > 0) fail(s, "a connection is left over", 0);
    for (uint32_t i = 0; i < s->nodes; i++) {
        const struct sim_host *host = &s->sim->hosts[i];
        if (host->links_count > 0 || host->operations_count > 0 || host->waiting_count > 0)
            fail(s, "a connection or an operation is left over", i);
    }
}

void swarm_judge(struct swarm *s)
{
    check_ends(s);
    check_digests(s);
    check_mean(s);
    check_model(s);
    sim_watch_end(s->watch);
    check_left_over(s);
}
