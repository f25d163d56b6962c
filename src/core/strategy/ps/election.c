/* election.c: who serves, as each node sees it; server.h has the whole.
 *
 *   it is whoever says so; if nobody does, this node says that it follows nobody any more
 *   the one of the newest version takes over once all have said that: nothing newer lives then;
 *     but where the run has ended already, it takes the model of one that has a newer one
 *   who comes with a file of a newer version than the one that is served serves, too
 *
 * Failure modes: news that don't come (it takes over all the same, after CLAIM_US); two who serve
 * (the lesser steps back when it hears of the other).
 */
#include "core/strategy/ps/server.h"
#include "core/training/joining.h"

enum { CLAIM_US = 2000000 };

static bool may_serve(const struct record *r)
{
    return record_is_live(r) && r->phase == PARLEY_PHASE_TRAIN;
}

/* Who has ended training still has the last model to give. */
static bool serves(const struct record *r)
{
    return record_is_waited_for(r) && r->follows == r->boot;
}

/* Of two who serve; boots never tie. */
static bool outranks(const struct record *a, const struct record *b)
{
    return a->holds != b->holds ? a->holds > b->holds : a->boot > b->boot;
}

static int best_server(const struct parley_node *node)
{
    int best = NONE;
    for (uint32_t i = 0; i < node->roster->count; i++)
        if (serves(record_of(node, i)) &&
            (best == NONE || outranks(record_of(node, i), record_of(node, (uint32_t)best))))
            best = (int)i;
    return best;
}

/* Who has the newest model; among equals the first by name. At the start some may still join. */
static int furthest(const struct parley_node *node, bool joining)
{
    const struct parley_roster *roster = node->roster;
    int best = NONE;
    for (uint32_t i = 0; i < roster->count; i++) {
        const struct record *r = record_of(node, roster->line[i]);
        bool may =
            may_serve(r) || (joining && record_is_live(r) && r->phase == PARLEY_PHASE_JOINING);
        if (may && (best == NONE || r->holds > record_of(node, (uint32_t)best)->holds))
            best = (int)roster->line[i];
    }
    return best;
}

/* All follow nobody, and have said so: of who has but said hello nobody knows what it holds. */
static bool all_are_free(const struct parley_node *node)
{
    for (uint32_t i = 0; i < node->roster->count; i++) {
        const struct record *r = record_of(node, i);
        if (may_serve(r) && r->follows != 0) return false;
        if (record_is_stranger(r)) return false;
    }
    return true;
}

static void follow(struct parley_node *node, int leader)
{
    struct server *s = server_of(node);
    uint64_t boot = leader == NONE ? 0 : record_of(node, (uint32_t)leader)->boot;
    if (leader == NONE && s->leader != NONE) {
        s->former = s->leader;
        s->lost_us = node->now_us;
    }
    s->leader = leader;
    if (self_of(node)->follows == boot) return;
    self_of(node)->follows = boot;
    membership_changed(node, true);
}

static void step_back(struct parley_node *node, int other)
{
    const struct record *r = record_of(node, (uint32_t)other);
    out_log(node, self_of(node)->holds ? PARLEY_LOG_WARN : PARLEY_LOG_INFO,
            "%s serves, too, with %llu gradients in its model; this node's, of %llu, is given up",
            r->name, (unsigned long long)r->holds, (unsigned long long)self_of(node)->holds);
    server_shut(node);
    follow(node, other);
}

/* Those who train have begun with no file, or an older one; what this node had kept is not to be
 * overwritten with that. Of who is but started anew the server has merged what its file knows of,
 * however that counts. */
static bool brings_newer(const struct parley_node *node, int server)
{
    bool kept = node->training.before.steps > 0 && server_of(node)->from == 0;
    return kept && self_of(node)->holds > record_of(node, (uint32_t)server)->holds &&
           !joining_is_merged(node);
}

/* It is for this node to take over: nobody serves, and of those who train it is the furthest. */
static bool is_due(const struct parley_node *node)
{
    bool late = node->now_us >= server_of(node)->lost_us + CLAIM_US;
    return (late || all_are_free(node)) && furthest(node, !late) == node->self;
}

/* A server that leaves has given its model to all. */
static bool resigns(const struct parley_node *node)
{
    return node->leaving && server_of(node)->last;
}

void election_advance(struct parley_node *node)
{
    struct server *s = server_of(node);
    bool holds_on = s->leader != NONE && serves(record_of(node, (uint32_t)s->leader));
    if (holds_on && s->leader != node->self) return;
    if (resigns(node)) {
        follow(node, NONE);
        return;
    }
    int best = best_server(node);
    if (holds_on) {
        if (best != node->self) step_back(node, best);
        return;
    }
    bool newer = best != NONE && brings_newer(node, best);
    if (!newer) follow(node, best);
    if (!newer && (best != NONE || !is_due(node))) return;
    if (!may_serve(self_of(node)) || node->leaving || !server_is_idle(node)) return;
    if (s->ends && worker_takes(node)) return;
    if (self_of(node)->kept > 0 && s->from == 0) joining_goes_on(node);
    server_open(node);
    follow(node, node->self);
}

uint64_t election_deadline(const struct parley_node *node)
{
    const struct server *s = server_of(node);
    bool waits = s->leader == NONE && may_serve(self_of(node));
    if (waits && node->roster->shared) return node->now_us + ROSTER_LOOK_US;
    return waits && s->lost_us + CLAIM_US > node->now_us ? s->lost_us + CLAIM_US : NEVER;
}
