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

/* A live member that joins may train already, by news on their way, or will soon say it is LATE. */
bool said_joining(const struct parley_node *node)
{
    uint32_t self = phase_of(node) == PARLEY_PHASE_JOINING;
    return node->roster->counts[ROSTER_JOINING] > self;
}

uint32_t said_generation(const struct parley_node *node)
{
    uint32_t newest = 1;
    for (uint32_t i = 0; i < node->roster->count; i++)
        if (agreement_waits_for(node, (int)i) && record_of(node, i)->generation > newest)
            newest = record_of(node, i)->generation;
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

/* A live member that has the model of this digest, this node itself if it can be. */
int said_holder(struct parley_node *node, const uint8_t *digest)
{
    uint32_t seen = 0;
    int found = NONE;
    if (said_same(node->agreement.own, digest)) return node->self;
    for (uint32_t i = 0; i < node->roster->count; i++) {
        const struct record *r = record_of(node, i);
        if ((int)i == node->self || !record_is_live(r) || r->phase < PARLEY_PHASE_PROPOSED ||
            r->phase > PARLEY_PHASE_DONE || !said_same(r->digest, digest))
            continue;
        if (rng_below(&node->rng, ++seen) == 0) found = (int)i;
    }
    return found;
}

static void pick(struct parley_node *node, struct said *said)
{
    const struct record *lock = NULL, *least = NULL;
    for (uint32_t i = 0; i < node->roster->count; i++) {
        const struct record *r = record_of(node, i);
        if (!agreement_waits_for(node, (int)i)) continue;
        if (r->lock_generation && (!lock || lock_is_higher(node, r, lock)) &&
            said_holder(node, r->lock_digest) != NONE)
            lock = r;
        if (!least || r->score < least->score ||
            (r->score <= least->score && memcmp(r->digest, least->digest, PARLEY_DIGEST_BYTES) < 0))
            least = r;
    }
    said->pick = lock ? lock->lock_digest : least->digest;
    said->score = lock ? 0 : least->score;
}

struct said said_listen(struct parley_node *node)
{
    const struct record *self = self_of(node);
    struct said said = {.one_digest = true};
    for (uint32_t i = 0; i < node->roster->count; i++) {
        const struct record *r = record_of(node, i);
        if (!agreement_waits_for(node, (int)i)) continue;
        said.waited++;
        if (r->phase < PARLEY_PHASE_PROPOSED || r->generation != self->generation) continue;
        said.proposed++;
        said.held += r->phase >= PARLEY_PHASE_HELD;
        said.locked += r->phase >= PARLEY_PHASE_LOCKED;
        if (r->phase >= PARLEY_PHASE_HELD && !said_same(r->digest, self->digest))
            said.one_digest = false;
    }
    if (said.waited > 0 && said.proposed == said.waited) pick(node, &said);
    return said;
}

/* A DONE member whose verdict counts here. Who joins or is late takes what the others decide,
 * however many they are. */
int said_done(const struct parley_node *node)
{
    if (node->roster->counts[ROSTER_DONE] == 0) return NONE;
    uint32_t voices = node->roster->counts[ROSTER_WAITED];
    for (uint32_t i = 0; i < node->roster->count; i++)
        voices +=
            record_is_live(record_of(node, i)) && record_of(node, i)->phase == PARLEY_PHASE_DONE;
    for (uint32_t i = 0; i < node->roster->count; i++) {
        const struct record *r = record_of(node, i);
        if ((int)i != node->self && r->phase == PARLEY_PHASE_DONE &&
            r->state != PARLEY_MEMBER_DEAD && 2 * r->voters >= voices &&
            !said_same(r->digest, no_digest))
            return (int)i;
    }
    return NONE;
}
