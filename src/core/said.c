/* said.c: what the members' records, taken together, say about the agreement.
 *
 * Each node speaks for itself in its own record; here nothing is decided or changed, the table is
 * only read (who is fetched from is drawn).
 */
#include <string.h>

#include "core/said.h"

static const uint8_t no_digest[PARLEY_DIGEST_BYTES];

bool said_same(const uint8_t *a, const uint8_t *b)
{
    return memcmp(a, b, PARLEY_DIGEST_BYTES) == 0;
}

bool agreement_waits_for(const struct parley_node *node, int member)
{
    const struct record *r = &node->members[member].r;
    return membership_is_live(node, member) && r->phase >= PARLEY_PHASE_TRAIN &&
           r->phase <= PARLEY_PHASE_LOCKED;
}

/* A live member that joins may train already, by news on their way, or will soon say it is LATE. */
bool said_joining(const struct parley_node *node)
{
    for (uint32_t i = 1; i < node->members_count; i++)
        if (membership_is_live(node, (int)i) && node->members[i].r.phase == PARLEY_PHASE_JOINING)
            return true;
    return false;
}

uint32_t said_generation(const struct parley_node *node)
{
    uint32_t newest = 1;
    for (uint32_t i = 0; i < node->members_count; i++)
        if (agreement_waits_for(node, (int)i) && node->members[i].r.generation > newest)
            newest = node->members[i].r.generation;
    return newest;
}

static bool lock_is_higher(const struct parley_node *node, const struct record *a,
                           const struct record *b)
{
    if (node->config.quorum == PARLEY_QUORUM_LIVE && a->lock_voters != b->lock_voters)
        return a->lock_voters > b->lock_voters;
    if (a->lock_generation != b->lock_generation) return a->lock_generation > b->lock_generation;
    return memcmp(a->lock_digest, b->lock_digest, PARLEY_DIGEST_BYTES) < 0;
}

/* A live member that has the model of this digest; 0: this node itself. */
int said_holder(struct parley_node *node, const uint8_t *digest)
{
    uint32_t seen = 0;
    int found = NONE;
    if (said_same(node->agreement.own, digest)) return 0;
    for (uint32_t i = 1; i < node->members_count; i++) {
        const struct member *m = &node->members[i];
        if (!membership_is_live(node, (int)i) || m->r.phase < PARLEY_PHASE_PROPOSED ||
            m->r.phase > PARLEY_PHASE_DONE || !said_same(m->r.digest, digest))
            continue;
        if (rng_below(&node->rng, ++seen) == 0) found = (int)i;
    }
    return found;
}

static void pick(struct parley_node *node, struct said *said)
{
    const struct record *lock = NULL, *least = NULL;
    for (uint32_t i = 0; i < node->members_count; i++) {
        const struct record *r = &node->members[i].r;
        if (!agreement_waits_for(node, (int)i)) continue;
        if (r->lock_generation && (!lock || lock_is_higher(node, r, lock)) &&
            said_holder(node, r->lock_digest) != NONE)
            lock = r;
        if (!least || r->score < least->score ||
            (r->score <= least->score && memcmp(r->digest, least->digest, PARLEY_DIGEST_BYTES) < 0))
            least = r;
    }
    if (PLANTED(PICK_OWN)) least = &self_of(node)->r;
    said->pick = lock ? lock->lock_digest : least->digest;
    said->score = lock ? 0 : least->score;
}

struct said said_listen(struct parley_node *node)
{
    const struct record *self = &self_of(node)->r;
    struct said said = {.one_digest = true};
    for (uint32_t i = 0; i < node->members_count; i++) {
        const struct record *r = &node->members[i].r;
        if (!agreement_waits_for(node, (int)i)) continue;
        said.waited++;
        if (r->phase < PARLEY_PHASE_PROPOSED || r->generation != self->generation) continue;
        said.proposed++;
        said.held += r->phase >= PARLEY_PHASE_HELD;
        said.locked += r->phase >= PARLEY_PHASE_LOCKED - PLANTED(DONE_WITHOUT_LOCK);
        if (r->phase >= PARLEY_PHASE_HELD && !said_same(r->digest, self->digest))
            said.one_digest = false;
    }
    if (said.waited > 0 && said.proposed == said.waited) pick(node, &said);
    if (!said.pick && PLANTED(HOLD_EARLY)) said.pick = node->agreement.own;
    return said;
}

uint64_t said_fingerprint(const struct parley_node *node)
{
    uint64_t hash_of_all = node->fetch.progress_us;
    for (uint32_t i = 0; i < node->members_count; i++) {
        const struct record *r = &node->members[i].r;
        hash_of_all = rng_mix(
            hash_of_all ^ ((uint64_t)r->phase << 40 | (uint64_t)r->state << 32 | r->generation));
    }
    return hash_of_all;
}

/* A DONE member whose verdict counts here. Who joins or is late takes what the others decide,
 * however many they are. */
int said_done(const struct parley_node *node)
{
    uint32_t voices = 0;
    for (uint32_t i = 0; i < node->members_count; i++)
        voices +=
            agreement_waits_for(node, (int)i) ||
            (membership_is_live(node, (int)i) && node->members[i].r.phase == PARLEY_PHASE_DONE);
    for (uint32_t i = 1; i < node->members_count; i++) {
        const struct record *r = &node->members[i].r;
        if (r->phase == PARLEY_PHASE_DONE && r->state != PARLEY_MEMBER_DEAD &&
            2 * r->voters >= voices && !said_same(r->digest, no_digest))
            return (int)i;
    }
    return NONE;
}
