/* agreement.c: from the end of training to one model that all live nodes hold, bit for bit.
 *
 *   STOP      training ends, for one and so for all (stop.c)
 *   SETTLE    averaging only, until drift is within tolerance, or no one has come to settle for
 *             config.settle_timeout_us (settling.c)
 *   PROPOSED  a frozen copy, its digest and score (own distance to the mean) are announced
 *   HELD      all have proposed: the highest lock, else the least (score, digest) is fetched,
 *             hashed, written and read back (holding.c)
 *   LOCKED    all hold one digest
 *   DONE      all have locked it: the file gets its name; then serve until all are done, and for a
 *             while who has fallen silent meanwhile
 *
 * Each node speaks for itself, in its member record, ordered by its own clock; what all have said
 * decides, so merging has no state of its own. A conflict of digests, or a while in which nothing
 * moved, starts the next generation; locks survive it. A view that is no majority of whom it knows
 * must find every missing member refusing a dial, or silent for long, before it locks (quorum.c).
 *
 * Who gets a model of another digest than was announced, one that is not finite, or, where
 * config.robust, one far from its own, says in its record whom it does not trust for that. Of whom
 * most say so, proposals and locks count no more: the next least is picked. A node whose word is
 * not that of most goes along with them. Where config.robust, DONE is believed if half say it.
 *
 * Decision: a member that dies just leaves the view, without a new generation. A digest it had
 * proposed may by then be held by some and unknown to others; that is the conflict that starts one.
 * Decision: locks are not written to disk. A boot that restarts in the middle of an agreement is
 * LATE, and one that restarts later, among nodes that were cut off and train still, does not count
 * for a majority unless its driver knows that it never held a model (quorum.c): no vote is given
 * twice. What is given up is that most nodes restart then.
 */
#include "core/agreement/agreement.h"

#include <string.h>

#include "core/agreement/holding.h"
#include "core/agreement/late.h"
#include "core/agreement/quorum.h"
#include "core/agreement/said.h"
#include "core/agreement/settling.h"
#include "core/exchange/exchange.h"
#include "core/link/connection.h"
#include "core/membership/gossip.h"
#include "core/membership/membership.h"
#include "core/out.h"
#include "core/state.h"
#include "core/training/stop.h"
#include "core/transfer/fetch.h"

enum { LINGER_US = 15000000, RECHECK_US = 100000, WITNESS_US = 1000000, LEAST_US = 120000000 };

/* An operation works on its model: there is no going back before that is done. */
static bool is_busy(const struct agreement *a)
{
    return a->candidate == CANDIDATE_CHECKING || a->candidate == CANDIDATE_WRITING ||
           a->candidate == CANDIDATE_PUBLISHING;
}

/* However short settling may be, those who are missing are looked for twice (quorum.c). Whose disk
 * is so slow gives up before the others do, which then go on without it. */
uint64_t agreement_end_us(const struct parley_node *node)
{
    const struct agreement *a = &node->agreement;
    uint64_t times_us = SETTLE_TIMES * node->config.settle_timeout_us;
    uint64_t end_us = a->since_us + (times_us > LEAST_US ? times_us : LEAST_US);
    return is_busy(a) ? end_us - AGREEMENT_PATIENCE_US : end_us;
}

/* ---- Proposing ------------------------------------------------------------------------------- */

void agreement_propose(struct parley_node *node, uint32_t generation)
{
    struct agreement *a = &node->agreement;
    struct record *self = self_of(node);
    self->generation = generation;
    self->score = a->score;
    memcpy(self->digest, a->own, sizeof self->digest);
    a->progress_us = node->now_us;
    if (self->phase != PARLEY_PHASE_PROPOSED)
        node_phase(node, PARLEY_PHASE_PROPOSED);
    else
        membership_changed(node, true);
}

static void next_generation(struct parley_node *node, uint32_t generation, const char *why)
{
    struct agreement *a = &node->agreement;
    out_log(node, PARLEY_LOG_INFO, "agreement generation %u: %s", generation, why);
    if (a->candidate == CANDIDATE_FETCHING) fetch_stop(node);
    if (a->candidate == CANDIDATE_FETCHING || a->candidate == CANDIDATE_HELD)
        a->candidate = CANDIDATE_OWN;
    agreement_propose(node, generation);
}

/* ---- The end --------------------------------------------------------------------------------- */

/* Another process has this one's name, and is not dead. */
static bool is_succeeded(const struct parley_node *node, const struct record *r)
{
    int other;
    for (uint32_t at = 0; (other = roster_named(node->roster, r->name, &at)) != NONE;)
        if (record_of(node, (uint32_t)other)->boot != r->boot &&
            record_of(node, (uint32_t)other)->state != PARLEY_MEMBER_DEAD)
            return true;
    return false;
}

/* And has not given up since. */
static bool has_held(const struct parley_node *node, const struct record *r)
{
    bool given_up = r->state == PARLEY_MEMBER_LEFT && r->phase != PARLEY_PHASE_DONE;
    return !given_up && said_holds(r, self_of(node)->digest);
}

/* A name that no process lives by holds it once: as who has left before who has died, and as the
 * newest of them. */
static bool holds_as_another(const struct parley_node *node, const struct record *r)
{
    int other;
    if (record_is_live(r)) return false;
    for (uint32_t at = 0; (other = roster_named(node->roster, r->name, &at)) != NONE;) {
        const struct record *o = record_of(node, (uint32_t)other);
        bool ahead = o->state == r->state ? o->boot > r->boot : o->state == PARLEY_MEMBER_LEFT;
        if (record_is_live(o) || (ahead && has_held(node, o))) return true;
    }
    return false;
}

bool agreement_holds(const struct parley_node *node, uint32_t member)
{
    const struct record *r = record_of(node, member);
    if (r == self_of(node) && node->agreement.candidate >= CANDIDATE_PUBLISHING) return true;
    return has_held(node, r) && !holds_as_another(node, r);
}

static uint32_t count_holders(const struct parley_node *node, bool dead_too)
{
    uint32_t held = 0;
    for (uint32_t i = 0; i < node->roster->count; i++) {
        bool counts = dead_too || record_of(node, i)->state != PARLEY_MEMBER_DEAD;
        held += counts && agreement_holds(node, i);
    }
    return held;
}

/* Counted as the record is made, which goes with it. */
static void publish(struct parley_node *node)
{
    struct agreement *a = &node->agreement;
    a->candidate = CANDIDATE_PUBLISHING;
    a->known = roster_known(node->roster);
    a->held = count_holders(node, true);
    out_vector(node, PARLEY_UPDATE_PUBLISH, OP_PUBLISH, NONE, a->buffer);
}

/* Another has finished with what this node holds. That all have locked it is news on its way, and
 * the record of the agreement is to say so: it is awaited, if not for long. */
static bool awaits_locks(struct parley_node *node, int member)
{
    struct agreement *a = &node->agreement;
    enum parley_phase phase = phase_of(node);
    bool holds =
        a->candidate == CANDIDATE_HELD && said_same(a->own, record_of(node, member)->digest);
    if (!holds || (phase != PARLEY_PHASE_HELD && phase != PARLEY_PHASE_LOCKED)) return false;
    if (a->heard_us == 0) a->heard_us = node->now_us;
    return node->now_us < a->heard_us + WITNESS_US;
}

/* For a model that is not the node's own. */
static bool has_room(struct parley_node *node)
{
    struct agreement *a = &node->agreement;
    if (a->candidate != CANDIDATE_NONE) return true;
    if (phase_of(node) < PARLEY_PHASE_SETTLE || node->drift.sketching ||
        node->exchange.slots[INITIATOR].state != SLOT_IDLE || node->fetch.state != FETCH_IDLE)
        return false;
    holding_reserve(node);
    a->candidate = CANDIDATE_OWN;
    return true;
}

/* Others have finished: take what they agreed on. */
static void adopt(struct parley_node *node, int member)
{
    struct agreement *a = &node->agreement;
    const struct record *r = record_of(node, member);
    if (!has_room(node)) return;
    if (a->candidate == CANDIDATE_HELD && said_same(a->own, r->digest)) {
        publish(node);
        return;
    }
    if (a->candidate == CANDIDATE_HELD) a->candidate = CANDIDATE_OWN;
    a->proposer = 0;
    if (a->candidate != CANDIDATE_OWN || holding_obtain(node, r->digest)) return;
    if (self_of(node)->state != PARLEY_MEMBER_LEFT) /* it may take several steps to say goodbye */
        out_log(node, PARLEY_LOG_ERROR,
                "the others agreed on a model while this node was away, and "
                "nobody is left who could send it");
    agreement_finish(node, PARLEY_ENO_AGREEMENT);
}

void agreement_finish(struct parley_node *node, int error)
{
    if (self_of(node)->state != PARLEY_MEMBER_LEFT) membership_leave(node);
    for (uint32_t i = 0; i < node->open_count; i++) {
        struct conn *conn = connection_at(node, i);
        if (conn->state == CONN_LIVE && !out_room(node)) return; /* the rest in the next step */
        if (conn->state == CONN_LIVE) gossip_flush(node, conn);
        if (conn->state == CONN_LIVE) connection_goodbye(node, conn, MESSAGE_BYE_LEAVING);
    }
    out_finish(node, error);
}

/* Whoever fell silent in the agreement, or so shortly before it that this was found in it, and
 * whose address does not refuse a dial, may be cut off: back in time, it finds the model. */
static bool misses_somebody(struct parley_node *node)
{
    uint64_t from_us = node->agreement.from_us;
    bool misses = false;
    for (uint32_t i = 0; i < node->roster->count; i++) {
        const struct record *r = record_of(node, i);
        const struct member *m = member_of(node, (int)i);
        bool took_part = r->phase >= PARLEY_PHASE_STOP && r->phase <= PARLEY_PHASE_LOCKED;
        bool would_have = m && from_us > 0 && m->dead_since_us >= from_us;
        if ((took_part || would_have) && !is_succeeded(node, r) && membership_seek(node, (int)i))
            misses = true;
    }
    return misses;
}

/* Done: others may still fetch. */
static void linger(struct parley_node *node)
{
    const struct agreement *a = &node->agreement;
    bool all_done = said_all_done(node) && !misses_somebody(node);
    bool served = node->outflows_active == 0;
    uint64_t last_us = a->done_us > node->fetch.served_us ? a->done_us : node->fetch.served_us;
    if ((all_done && served) || node->now_us >= last_us + LINGER_US)
        agreement_finish(node, a->failed_write ? PARLEY_ENOT_WRITTEN : PARLEY_OK);
}

void agreement_done(struct parley_node *node, const struct op *op, const struct parley_event *event)
{
    struct agreement *a = &node->agreement;
    if (!event->done.ok && (op->kind == OP_CANDIDATE_HASH || op->kind == OP_FETCHED_HASH)) {
        out_log(node, PARLEY_LOG_ERROR, "no memory for the digest of the model");
        out_finish(node, PARLEY_ENOMEM); /* a digest made up would keep all from an end */
        return;
    }
    switch (op->kind) {
    case OP_CANDIDATE_TAKE:
        if (!event->done.finite) { /* it takes another's (training.c) */
            node->training.diverged++;
            a->candidate = CANDIDATE_NONE;
            exchange_release(node, INITIATOR);
            return;
        }
        a->candidate = CANDIDATE_HASHING;
        out_vector(node, PARLEY_UPDATE_HASH, OP_CANDIDATE_HASH, NONE, a->buffer);
        break;
    case OP_CANDIDATE_HASH:
        memcpy(a->own, event->done.digest, sizeof a->own);
        a->candidate = CANDIDATE_OWN;
        if (phase_of(node) == PARLEY_PHASE_SETTLE)
            agreement_propose(node, node->roster->generation);
        break;
    case OP_PUBLISH:
        if (!event->done.ok) {
            a->failed_write = true;
            out_log(node, PARLEY_LOG_ERROR, "the model file could not get its final name");
        }
        a->candidate = CANDIDATE_PUBLISHED;
        a->done_us = node->now_us;
        memcpy(self_of(node)->digest, a->own, PARLEY_DIGEST_BYTES);
        node_phase(node, PARLEY_PHASE_DONE);
        self_of(node)->voters = count_holders(node, false);
        if (misses_somebody(node))
            out_log(node, PARLEY_LOG_INFO,
                    "waits %d s at most for who fell silent in the agreement", LINGER_US / 1000000);
        break;
    default:
        holding_done(node, op, event);
    }
}

/* ---- The way through it ---------------------------------------------------------------------- */

void agreement_give_up(struct parley_node *node)
{
    uint32_t live = live_of(node), known = roster_known(node->roster);
    const struct record *last = said_last(node);
    char lacks[QUORUM_TEXT_BYTES];
    if (!quorum_is_here(node)) {
        quorum_lacks(node, lacks, sizeof lacks);
        out_log(node, PARLEY_LOG_ERROR, "no agreement: %s", lacks);
    } else if (is_busy(&node->agreement)) {
        out_log(node, PARLEY_LOG_ERROR,
                "no agreement: this node has not hashed and written the model in time");
    } else if (live < known) {
        out_log(node, PARLEY_LOG_ERROR, "no agreement: %u of %u known nodes are here", live, known);
    } else if (!last) {
        out_log(node, PARLEY_LOG_ERROR, "no agreement: nobody is here any more to agree with");
    } else {
        out_log(node, PARLEY_LOG_ERROR,
                "no agreement: all %u known nodes are here, but did not come to one model in time; "
                "the last of them, %s, is in phase %s",
                known, last->name, parley_phase_name((enum parley_phase)last->phase));
    }
    agreement_finish(node, PARLEY_ENO_AGREEMENT);
}

static void watch_progress(struct parley_node *node, bool verifying)
{
    struct agreement *a = &node->agreement;
    uint64_t now = node->roster->news ^ node->fetch.progress_us << 20;
    if (now != a->fingerprint || verifying) {
        a->fingerprint = now;
        a->progress_us = node->now_us;
    }
    if (node->roster->fetched != a->fetched) {
        a->fetched = node->roster->fetched;
        a->fetched_us = node->now_us;
    }
    /* Over a slow line a model may take longer than all else together. */
    if (node->now_us >= agreement_end_us(node) &&
        node->now_us >= a->fetched_us + AGREEMENT_PATIENCE_US) {
        agreement_give_up(node);
        return;
    }
    if (node->now_us < a->progress_us + a->patience_us || is_busy(a)) return;
    a->patience_us *= 2;
    a->patience_us += rng_below(&node->rng, AGREEMENT_PATIENCE_US / 10);
    if (node->config.robust && a->candidate != CANDIDATE_HELD && a->proposer)
        holding_distrust(node, a->proposer, "nobody gets its model");
    next_generation(node, self_of(node)->generation + 1, "nothing moved");
}

static void lock(struct parley_node *node)
{
    struct record *self = self_of(node);
    self->lock_voters = node->roster->counts[ROSTER_HELD];
    self->lock_generation = self->generation;
    memcpy(self->lock_digest, self->digest, sizeof self->lock_digest);
    node->agreement.verify_since_us = 0; /* over slow lines the missing are found late */
    node_phase(node, PARLEY_PHASE_LOCKED);
}

/* This node's own word is not heeded where most hold the model all the same. */
static bool obtain(struct parley_node *node)
{
    struct agreement *a = &node->agreement;
    struct pick pick = said_pick(node);
    a->proposer = pick.proposer; /* while nothing is picked nobody is to blame for that */
    if (!pick.digest || (said_is_distrusted(node, pick.proposer) && !pick.held_by_most))
        return false;
    a->score = pick.score;
    holding_obtain(node, pick.digest);
    return true;
}

void agreement_pass_on(struct parley_node *node)
{
    struct agreement *a = &node->agreement;
    struct pick pick = said_pick(node);
    if (!pick.digest || said_same(a->own, pick.digest) || !has_room(node)) return;
    if (a->candidate == CANDIDATE_HELD) a->candidate = CANDIDATE_OWN;
    if (a->candidate == CANDIDATE_OWN) obtain(node);
}

static void decide(struct parley_node *node)
{
    struct agreement *a = &node->agreement;
    const struct record *self = self_of(node);
    if (node->roster->generation > self->generation && !is_busy(a))
        next_generation(node, node->roster->generation, "another node asks for it");
    bool verifying = false;
    bool obtains = a->candidate == CANDIDATE_OWN && obtain(node);
    if (!obtains && a->candidate == CANDIDATE_HELD && said_all(node, ROSTER_HELD)) {
        if (!said_one_digest(node)) {
            next_generation(node, self->generation + 1, "two digests are held");
        } else if (self->phase == PARLEY_PHASE_HELD) {
            verifying = node->now_us < a->rejoin_us || !quorum_may_decide(node);
            if (!verifying) lock(node);
        }
    }
    if (self->phase == PARLEY_PHASE_LOCKED && a->candidate == CANDIDATE_HELD) {
        /* Who locked may be gone since, and the others not know of it, or still be looking. */
        verifying = !quorum_may_decide(node);
        if (!verifying && said_all(node, ROSTER_LOCKED)) {
            publish(node);
            return;
        }
    }
    watch_progress(node, verifying);
}

void agreement_advance(struct parley_node *node)
{
    struct agreement *a = &node->agreement;
    if (node->leaving) return;
    enum parley_phase phase = phase_of(node);
    if (phase == PARLEY_PHASE_DONE) {
        linger(node);
        return;
    }
    int done = phase >= PARLEY_PHASE_TRAIN && phase <= PARLEY_PHASE_LATE ? said_done(node) : NONE;
    if (phase == PARLEY_PHASE_TRAIN) stop_obey(node);
    if (phase_of(node) == PARLEY_PHASE_STOP && node->exchange.slots[INITIATOR].state == SLOT_IDLE) {
        a->since_us = a->from_us = node->now_us;
        settling_begin(node);
    }
    phase = phase_of(node);
    /* Who had finished may be gone before it could be adopted. */
    bool keeps = phase != PARLEY_PHASE_SETTLE || a->candidate != CANDIDATE_OWN || done != NONE;
    if (!keeps && !holding_let_go(node)) return;
    if (done != NONE && !awaits_locks(node, done))
        adopt(node, done);
    else if (phase == PARLEY_PHASE_LATE)
        late_advance(node);
    else if (phase == PARLEY_PHASE_SETTLE && a->candidate == CANDIDATE_NONE)
        settling_advance(node);
    else if (phase >= PARLEY_PHASE_PROPOSED && late_is_somebody_back(node))
        late_rejoin(node);
    else if (phase >= PARLEY_PHASE_PROPOSED && phase <= PARLEY_PHASE_LOCKED)
        decide(node);
}

uint64_t agreement_deadline(const struct parley_node *node)
{
    enum parley_phase phase = phase_of(node);
    bool ends = phase >= PARLEY_PHASE_SETTLE && phase <= PARLEY_PHASE_LATE;
    return ends ? node->now_us + RECHECK_US : NEVER;
}
