/* said.c: what the members' records, taken together, say about the agreement.
 *
 * Each node speaks for itself in its own record; here nothing is decided or changed, the table is
 * only read (who is fetched from is drawn).
 */
#include "core/agreement/said.h"

#include <string.h>

#include "core/membership/membership.h"
#include "core/plant.h"
#include "core/state.h"

static bool distrusts(const struct record *r, uint64_t boot)
{
    for (int i = 0; i < MESSAGE_DISTRUSTS_MAX; i++)
        if (r->distrusts[i] == boot) return true;
    return false;
}

/* What most of those waited for say. */
static bool is_distrusted(const struct parley_node *node, uint64_t boot)
{
    uint32_t voices = 0;
    if (node->roster->counts[ROSTER_DISTRUSTS] == 0) return false;
    for (uint32_t i = 0; i < node->roster->count; i++)
        voices += record_is_waited_for(record_of(node, i)) && distrusts(record_of(node, i), boot);
    return 2 * voices > node->roster->counts[ROSTER_WAITED];
}

bool said_same(const uint8_t *a, const uint8_t *b)
{
    return memcmp(a, b, PARLEY_DIGEST_BYTES) == 0;
}

bool said_none(const uint8_t *digest)
{
    static const uint8_t none[PARLEY_DIGEST_BYTES];
    return said_same(digest, none);
}

bool said_holds(const struct record *r, const uint8_t *digest)
{
    return r->phase >= PARLEY_PHASE_HELD && r->phase <= PARLEY_PHASE_DONE &&
           said_same(r->digest, digest);
}

bool said_joining(const struct parley_node *node)
{
    uint32_t self = phase_of(node) == PARLEY_PHASE_JOINING;
    return node->roster->counts[ROSTER_JOINING] > self;
}

bool said_is_distrusted(const struct parley_node *node, uint64_t boot)
{
    return distrusts(self_of(node), boot);
}

static bool lock_is_higher(const struct parley_node *node, const struct record *a,
                           const struct record *b)
{
    if (node->config.quorum == PARLEY_QUORUM_LIVE && a->lock_voters != b->lock_voters)
        return a->lock_voters > b->lock_voters;
    if (a->lock_generation != b->lock_generation) return a->lock_generation > b->lock_generation;
    return memcmp(a->lock_digest, b->lock_digest, PARLEY_DIGEST_BYTES) < 0;
}

static int draw_holder(struct parley_node *node, const uint8_t *digest, bool unreached)
{
    uint32_t seen = 0;
    int found = NONE;
    for (uint32_t i = 0; i < node->roster->count; i++) {
        const struct record *r = record_of(node, i);
        if ((int)i == node->self || !record_is_live(r) || r->phase < PARLEY_PHASE_PROPOSED ||
            r->phase > PARLEY_PHASE_LATE || !said_same(r->digest, digest) ||
            said_is_distrusted(node, r->boot) || membership_is_unreached(node, (int)i) != unreached)
            continue;
        if (rng_below(&node->rng, ++seen) == 0) found = (int)i;
    }
    return found;
}

int said_holder(struct parley_node *node, const uint8_t *digest)
{
    if (said_same(node->agreement.own, digest)) return node->self;
    int found = draw_holder(node, digest, false);
    return found != NONE ? found : draw_holder(node, digest, true);
}

/* A lock that somebody can serve; the highest of them, or NULL. */
static const struct record *highest_lock(struct parley_node *node)
{
    const struct record *lock = NULL;
    if (node->roster->counts[ROSTER_HAS_LOCK] == 0) return NULL;
    for (uint32_t i = 0; i < node->roster->count; i++) {
        const struct record *r = record_of(node, i);
        if (roster_in(node->roster, i, ROSTER_HAS_LOCK) && !is_distrusted(node, r->boot) &&
            (!lock || lock_is_higher(node, r, lock)) && said_holder(node, r->lock_digest) != NONE)
            lock = r;
    }
    return lock;
}

static bool is_less(const struct record *a, const struct record *b)
{
    if (a->score < b->score) return true;
    return a->score <= b->score && memcmp(a->digest, b->digest, PARLEY_DIGEST_BYTES) < 0;
}

bool said_all(const struct parley_node *node, enum roster_class phase)
{
    const struct parley_roster *roster = node->roster;
    const struct record *self = self_of(node);
    if (PLANTED(DONE_WITHOUT_LOCK) && phase == ROSTER_LOCKED) phase = ROSTER_HELD;
    return (!record_is_waited_for(self) || self->generation == roster->generation) &&
           roster->counts[phase] == roster->counts[ROSTER_WAITED];
}

bool said_one_digest(const struct parley_node *node)
{
    struct parley_roster *roster = node->roster;
    const struct record *holder = NULL;
    if (roster->one_holds == roster->holds) return roster->one_digest;
    roster->one_holds = roster->holds;
    roster->one_digest = true;
    for (uint32_t i = 0; i < roster->count; i++) {
        const struct record *r = &roster->records[i];
        if (!roster_in(roster, i, ROSTER_HELD)) continue;
        if (holder && !said_same(r->digest, holder->digest)) roster->one_digest = false;
        holder = r;
    }
    return roster->one_digest;
}

bool said_locked(struct parley_node *node)
{
    return highest_lock(node) != NULL;
}

static const struct record *least_of(const struct parley_node *node)
{
    const struct record *least = NULL;
    if (PLANTED(PICK_OWN)) return self_of(node);
    for (uint32_t i = 0; i < node->roster->count; i++) {
        const struct record *r = record_of(node, i);
        if (roster_in(node->roster, i, ROSTER_WAITED) && (!least || is_less(r, least)) &&
            !is_distrusted(node, r->boot))
            least = r;
    }
    return least;
}

const struct record *said_last(const struct parley_node *node)
{
    const struct record *last = NULL;
    for (uint32_t i = 0; i < node->roster->count; i++) {
        const struct record *r = record_of(node, i);
        if (!roster_in(node->roster, i, ROSTER_WAITED)) continue;
        if (!last || r->generation < last->generation ||
            (r->generation == last->generation && r->phase < last->phase))
            last = r;
    }
    return last;
}

static bool is_held_by_most(const struct parley_node *node, const uint8_t *digest)
{
    uint32_t held = 0;
    for (uint32_t i = 0; i < node->roster->count; i++)
        held += roster_in(node->roster, i, ROSTER_HELD) &&
                said_same(record_of(node, i)->digest, digest);
    return 2 * held > node->roster->counts[ROSTER_WAITED];
}

struct pick said_pick(struct parley_node *node)
{
    if (PLANTED(HOLD_EARLY) && !said_all(node, ROSTER_PROPOSED))
        return (struct pick){.digest = node->agreement.own, .proposer = self_of(node)->boot};
    if (!said_all(node, ROSTER_PROPOSED)) return (struct pick){0};
    const struct record *lock = highest_lock(node), *least = lock ? NULL : least_of(node);
    if (!lock && !least) return (struct pick){0};
    struct pick pick = {lock ? lock->lock_digest : least->digest, lock ? lock->boot : least->boot,
                        lock ? 0 : least->score, false};
    if (node->config.robust) pick.held_by_most = is_held_by_most(node, pick.digest);
    return pick;
}

static uint32_t done_with(const struct parley_node *node, const uint8_t *digest)
{
    uint32_t same = 0;
    for (uint32_t i = 0; i < node->roster->count; i++) {
        const struct record *r = record_of(node, i);
        same += r->phase == PARLEY_PHASE_DONE && r->state != PARLEY_MEMBER_DEAD &&
                said_same(r->digest, digest);
    }
    return same;
}

/* As many held it when r was done, or are done with it since: who joins or is late takes what the
 * others decide, however many they are. Where some may lie, what one says it counted is nothing;
 * but liars are fewer than half, so of a half an honest one says it. */
static bool is_said_by_enough(const struct parley_node *node, const struct record *r)
{
    uint32_t voices = node->roster->counts[ROSTER_WAITED] + node->roster->counts[ROSTER_SERVES];
    bool counted = !node->config.robust && 2 * r->voters >= voices;
    return counted || 2 * done_with(node, r->digest) >= voices;
}

int said_done(const struct parley_node *node)
{
    if (node->roster->counts[ROSTER_DONE] == 0) return NONE;
    for (uint32_t i = 0; i < node->roster->count; i++) {
        const struct record *r = record_of(node, i);
        if ((int)i != node->self && r->phase == PARLEY_PHASE_DONE &&
            r->state != PARLEY_MEMBER_DEAD && !said_none(r->digest) && is_said_by_enough(node, r))
            return (int)i;
    }
    return NONE;
}

bool said_all_done(const struct parley_node *node)
{
    return node->roster->counts[ROSTER_SERVES] == live_of(node);
}
