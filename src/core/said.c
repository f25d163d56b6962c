/* said.c: what the members' records, taken together, say about the agreement.
 *
 * Each node speaks for itself in its own record; here nothing is decided or changed, the table is
 * only read (who is fetched from is drawn).
 */
#include "core/said.h"

#include <string.h>

#include "core/plant.h"
#include "core/state.h"

static const uint8_t no_digest[PARLEY_DIGEST_BYTES];

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

/* A live member that joins may train already, by news on their way, or will soon say it is LATE. */
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

/* A live member that has the model of this digest, this node itself if it can be. */
int said_holder(struct parley_node *node, const uint8_t *digest)
{
    uint32_t seen = 0;
    int found = NONE;
    if (said_same(node->agreement.own, digest)) return node->self;
    for (uint32_t i = 0; i < node->roster->count; i++) {
        const struct record *r = record_of(node, i);
        if ((int)i == node->self || !record_is_live(r) || r->phase < PARLEY_PHASE_PROPOSED ||
            r->phase > PARLEY_PHASE_DONE || !said_same(r->digest, digest) ||
            said_is_distrusted(node, r->boot))
            continue;
        if (rng_below(&node->rng, ++seen) == 0) found = (int)i;
    }
    return found;
}

/* A lock that somebody can serve; the highest of them, or NULL. */
static const struct record *highest_lock(struct parley_node *node)
{
    const struct record *lock = NULL;
    for (uint32_t i = 0; i < node->roster->count; i++) {
        const struct record *r = record_of(node, i);
        if (record_is_waited_for(r) && r->lock_generation && !is_distrusted(node, r->boot) &&
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

/* One look at all records, good until the next news. */
static const struct roster_said *listen(const struct parley_node *node)
{
    const struct parley_roster *roster = node->roster;
    struct roster_said *said = &node->roster->said;
    uint32_t generation = self_of(node)->generation;
    if (said->news == roster->news && said->generation == generation) return said;
    *said = (struct roster_said){.news = roster->news,
                                 .generation = generation,
                                 .newest = 1,
                                 .least = NONE,
                                 .one_digest = true};
    const struct record *least = NULL, *holder = NULL;
    for (uint32_t i = 0; i < roster->count; i++) {
        const struct record *r = &roster->records[i];
        said->done += record_is_live(r) && r->phase == PARLEY_PHASE_DONE;
        if (!record_is_waited_for(r)) continue;
        if (r->generation > said->newest) said->newest = r->generation;
        said->locks += r->lock_generation > 0;
        if (!is_distrusted(node, r->boot) && (!least || is_less(r, least))) {
            least = r;
            said->least = (int)i;
        }
        if (r->phase < PARLEY_PHASE_PROPOSED || r->generation != generation) continue;
        said->proposed++;
        said->held += r->phase >= PARLEY_PHASE_HELD;
        said->locked += r->phase >= PARLEY_PHASE_LOCKED - PLANTED(DONE_WITHOUT_LOCK);
        if (r->phase < PARLEY_PHASE_HELD) continue;
        if (holder && !said_same(r->digest, holder->digest)) said->one_digest = false;
        holder = r;
    }
    return said;
}

bool said_locked(struct parley_node *node)
{
    return listen(node)->locks > 0 && highest_lock(node);
}

struct said said_listen(struct parley_node *node)
{
    const struct roster_said *all = listen(node);
    struct said said = {.newest = all->newest,
                        .waited = node->roster->counts[ROSTER_WAITED],
                        .proposed = all->proposed,
                        .held = all->held,
                        .locked = all->locked,
                        .one_digest = all->one_digest};
    if (PLANTED(HOLD_EARLY)) {
        said.pick = node->agreement.own;
        said.proposer = self_of(node)->boot;
    }
    if (said.waited == 0 || said.proposed < said.waited) return said;
    const struct record *lock = all->locks > 0 ? highest_lock(node) : NULL;
    const struct record *least = all->least == NONE ? NULL : record_of(node, (uint32_t)all->least);
    if (PLANTED(PICK_OWN)) least = self_of(node);
    if (!lock && !least) return said;
    said.pick = lock ? lock->lock_digest : least->digest;
    said.proposer = lock ? lock->boot : least->boot;
    said.score = lock ? 0 : least->score;
    for (uint32_t i = 0; node->config.robust && i < node->roster->count; i++) {
        const struct record *r = record_of(node, i);
        said.picked_held += record_is_waited_for(r) && r->phase >= PARLEY_PHASE_HELD &&
                            r->generation == all->generation && said_same(r->digest, said.pick);
    }
    return said;
}

/* Where some may lie, one voice is not enough. */
static bool is_said_by_most(const struct parley_node *node, const uint8_t *digest, uint32_t voices)
{
    uint32_t same = 0;
    for (uint32_t i = 0; i < node->roster->count; i++) {
        const struct record *r = record_of(node, i);
        same += r->phase == PARLEY_PHASE_DONE && r->state != PARLEY_MEMBER_DEAD &&
                said_same(r->digest, digest);
    }
    return 2 * same > voices;
}

/* A DONE member whose verdict counts here. Who joins or is late takes what the others decide,
 * however many they are. */
int said_done(const struct parley_node *node)
{
    if (node->roster->counts[ROSTER_DONE] == 0) return NONE;
    uint32_t voices = node->roster->counts[ROSTER_WAITED] + listen(node)->done;
    for (uint32_t i = 0; i < node->roster->count; i++) {
        const struct record *r = record_of(node, i);
        if ((int)i != node->self && r->phase == PARLEY_PHASE_DONE &&
            r->state != PARLEY_MEMBER_DEAD && 2 * r->voters >= voices &&
            !said_same(r->digest, no_digest) &&
            (!node->config.robust || is_said_by_most(node, r->digest, voices)))
            return (int)i;
    }
    return NONE;
}

bool said_all_done(const struct parley_node *node)
{
    return node->roster->counts[ROSTER_DONE] >= live_of(node) &&
           listen(node)->done == live_of(node);
}
