/* quorum.c: who may decide.
 *
 * By default those who are here do. But a view that is no majority of whom it knows may be a part
 * that was cut off, or one node that slept, while the others agree on another model: it dials each
 * missing member first, and decides once all have refused, or been silent for long. Who is here and
 * late, as it was taken for dead, is missing, too: it comes back to settle with the others.
 * With --quorum majority those who are here must be most of the fixed number of nodes, or wait; of
 * more where more have come, or two parts of them would each be most of that number; but not of
 * those who came after training, and so have no say. Who was
 * started anew and may have locked a model before, of which it knows nothing, does not count: what
 * those others decided who counted it then is not to be decided again with it.
 */
#include "core/agreement/quorum.h"

#include <stdio.h>

#include "core/agreement/agreement.h"
#include "core/agreement/late.h"
#include "core/agreement/said.h"
#include "core/membership/membership.h"
#include "core/out.h"
#include "core/plant.h"
#include "core/state.h"
#include "core/training/stop.h"

enum { VERIFY_US = 30000000 };

/* It, or an earlier start of it. Who left has said to the last what it had locked. */
static bool may_have_locked(const struct record *r)
{
    return r->state != PARLEY_MEMBER_LEFT || r->phase == PARLEY_PHASE_DONE ||
           r->lock_generation > 0 || r->earlier == PARLEY_EARLIER_HELD;
}

void quorum_forget(struct parley_node *node, const struct record *record)
{
    int other;
    if (!may_have_locked(record)) return;
    for (uint32_t at = 0; (other = roster_named(node->roster, record->name, &at)) != NONE;) {
        struct record *r = record_of(node, (uint32_t)other);
        if (r->earlier == PARLEY_EARLIER_UNKNOWN) r->earlier = PARLEY_EARLIER_HELD;
    }
}

bool quorum_has_forgotten(const struct parley_node *node, int member)
{
    const struct record *r = record_of(node, (uint32_t)member);
    int earlier;
    if (r->earlier == PARLEY_EARLIER_NEVER_HELD || PLANTED(COUNT_FORGETFUL)) return false;
    if (r->earlier == PARLEY_EARLIER_HELD) return true;
    for (uint32_t at = 0; (earlier = roster_named(node->roster, r->name, &at)) != NONE;)
        if (earlier != member && may_have_locked(record_of(node, (uint32_t)earlier))) return true;
    return false;
}

static uint32_t forgetful(const struct parley_node *node)
{
    uint32_t count = 0;
    if (node->config.quorum != PARLEY_QUORUM_MAJORITY) return 0;
    for (uint32_t i = 0; i < node->roster->count; i++)
        if (roster_in(node->roster, i, ROSTER_WAITED) || roster_in(node->roster, i, ROSTER_DONE))
            count += quorum_has_forgotten(node, (int)i);
    return count;
}

/* Who was taken for dead by those who are here. */
static uint32_t late(const struct parley_node *node)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < node->roster->count; i++)
        count += late_comes_back(node, i, true);
    return count;
}

/* How many take part. */
static uint32_t here(const struct parley_node *node)
{
    const uint32_t *counts = node->roster->counts;
    return counts[ROSTER_WAITED] + counts[ROSTER_DONE] - forgetful(node);
}

/* It came while the others agreed already, and never has a vote: as if it had not come. */
static bool came_after(const struct parley_node *node, uint32_t member)
{
    const struct record *r = record_of(node, member);
    int other;
    if (r->phase != PARLEY_PHASE_LATE || r->state == PARLEY_MEMBER_LEFT || stop_has_trained(r))
        return false;
    for (uint32_t at = 0; (other = roster_named(node->roster, r->name, &at)) != NONE;)
        if ((uint32_t)other != member) return false;
    return true;
}

/* Of how many --quorum majority wants most. */
static uint32_t all(const struct parley_node *node)
{
    uint32_t known = roster_known(node->roster);
    for (uint32_t i = 0; i < node->roster->count; i++)
        known -= came_after(node, i);
    return known > node->config.nodes ? known : node->config.nodes;
}

bool quorum_is_most(const struct parley_node *node)
{
    bool fixed = node->config.quorum == PARLEY_QUORUM_MAJORITY;
    return 2 * here(node) > (fixed ? all(node) : roster_known(node->roster));
}

bool quorum_is_here(const struct parley_node *node)
{
    return node->config.quorum != PARLEY_QUORUM_MAJORITY || quorum_is_most(node);
}

void quorum_lacks(const struct parley_node *node, char *text, size_t size)
{
    uint32_t anew = forgetful(node), back = late(node);
    char others[QUORUM_TEXT_BYTES] = "";
    int length = 0;
    if (anew > 0)
        length = snprintf(others, sizeof others, "%u started anew, which may have agreed before%s",
                          anew, back > 0 ? "; " : "");
    if (back > 0)
        snprintf(others + length, sizeof others - (size_t)length,
                 "%u taken for dead and coming back", back);
    snprintf(text, size, "only %u of %u nodes are here, and a majority is %u%s%s%s", here(node),
             all(node), all(node) / 2 + 1, *others ? " (not counted: " : "", others,
             *others ? ")" : "");
}

/* Who is gone may come back, until time is up. Where those come who do not count, that is told:
 * all are here then, and nothing else says why they wait. */
static bool has_majority(struct parley_node *node)
{
    struct agreement *a = &node->agreement;
    char lacks[QUORUM_TEXT_BYTES];
    if (quorum_is_here(node)) {
        a->verify_since_us = 0;
        return true;
    }
    uint32_t others = forgetful(node) + late(node);
    if (others < a->uncounted) a->uncounted = others;
    if (a->verify_since_us == 0 || others > a->uncounted) {
        if (a->verify_since_us == 0) a->verify_since_us = node->now_us;
        a->uncounted = others;
        quorum_lacks(node, lacks, sizeof lacks);
        out_log(node, PARLEY_LOG_WARN, "%s: waiting for others, %.0f s at most", lacks,
                (double)(agreement_end_us(node) - node->now_us) / 1e6);
    }
    return false;
}

/* Before this node decides without those who are missing: whether they have done so without it. */
static void warn_of_missing(struct parley_node *node)
{
    uint32_t apart = 0;
    char done[80] = "";
    for (uint32_t i = 0; i < node->roster->count; i++) {
        const struct record *r = record_of(node, i);
        bool holds = r->phase >= PARLEY_PHASE_HELD && r->phase <= PARLEY_PHASE_DONE;
        apart += holds && !said_same(r->digest, self_of(node)->digest);
    }
    if (apart > 0)
        snprintf(done, sizeof done, "; %u of them hold another model", apart);
    else if (has_slept(node))
        snprintf(done, sizeof done,
                 "; they may have agreed while this one stood still, %.0f s in all",
                 (double)node->skew_us / 1e6);
    out_log(node, PARLEY_LOG_WARN, "only %u of %u known nodes are here: dialling the missing %s%s",
            here(node), roster_known(node->roster),
            phase_of(node) < PARLEY_PHASE_LOCKED ? "before deciding without them"
                                                 : "once more before it is done",
            done);
}

bool quorum_may_decide(struct parley_node *node)
{
    struct agreement *a = &node->agreement;
    if (node->config.quorum == PARLEY_QUORUM_MAJORITY) return has_majority(node);
    if (quorum_is_most(node)) {
        a->verify_since_us = 0; /* who is alone again later dials again */
        return true;
    }
    if (a->verify_since_us == 0) {
        a->verify_since_us = node->now_us;
        for (uint32_t i = 0; i < node->roster->count; i++)
            if (record_of(node, i)->state == PARLEY_MEMBER_DEAD) membership_forgive(node, (int)i);
        warn_of_missing(node);
    }
    bool all_gone = !said_joining(node) && late(node) == 0;
    for (uint32_t i = 0; i < node->roster->count; i++)
        if (membership_seek(node, (int)i)) all_gone = false;
    return all_gone || node->now_us >= a->verify_since_us + VERIFY_US;
}
