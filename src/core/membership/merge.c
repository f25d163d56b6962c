/* merge.c: see merge.h. */
#include "core/membership/merge.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/agreement/late.h"
#include "core/exchange/pairing.h"
#include "core/link/connection.h"
#include "core/membership/place.h"
#include "core/out.h"
#include "core/plant.h"
#include "core/state.h"

/* Incarnations beyond those known that others may tell of; generations, too. */
enum { AHEAD_MAX = 1024 };

/* Words of a member, likewise: more than it says in half a year. */
static const uint64_t WORDS_AHEAD_MAX = 1ull << 40;

static bool is_far_ahead(uint32_t number, uint32_t known)
{
    return number > known && number - known > AHEAD_MAX;
}

/* Others think wrongly of this node: all, or one that was cut off and knows no better. */
static void refute(struct parley_node *node, const struct record *record, int from)
{
    struct record *self = self_of(node);
    if (self->state == PARLEY_MEMBER_LEFT) return;
    if (record->incarnation < self->incarnation) { /* already, when it was but suspected */
        if (record->state == PARLEY_MEMBER_DEAD) pairing_returned(node);
        return;
    }
    if (!is_far_ahead(record->incarnation, self->incarnation))
        self->incarnation = record->incarnation + !PLANTED(REFUTE_IN_VAIN);
    membership_changed(node, true);
    probe_unwell(node);
    if (record->state != PARLEY_MEMBER_DEAD) return;
    out_log(node, PARLEY_LOG_WARN, "this node was taken for dead, %s says; it is alive",
            from == NONE ? "a peer" : record_of(node, (uint32_t)from)->name);
    enum parley_phase phase = phase_of(node);
    if (phase >= PARLEY_PHASE_STOP && phase < PARLEY_PHASE_DONE) late_begin(node);
}

static bool is_newer(const struct record *record, const struct record *r, bool itself)
{
    return record->clock > r->clock && (itself || record->clock - r->clock <= WORDS_AHEAD_MAX);
}

/* Others tell of words of this node that it has not said: it speaks again, beyond them. */
static void speak_again(struct parley_node *node, const struct record *record)
{
    struct record *self = self_of(node);
    if (!is_newer(record, self, false)) return;
    self->clock = record->clock;
    membership_changed(node, true);
}

/* Who was cut off together with others takes all the rest for dead, and comes back with that. Of
 * whom this node hears itself it does not believe it: true if that member was told, to refute it.
 * It is told once in a while, so that nobody can have this node flood it. */
static bool deny(struct parley_node *node, int member, const struct record *record, int from)
{
    struct member *m = member_of(node, member);
    uint64_t next_us = m->denied_us + node->config.probe_interval_us;
    if (record->state != PARLEY_MEMBER_DEAD || from == member || !membership_hears(node, member))
        return false;
    if (m->denied_us && node->now_us < next_us) return true;
    if (!membership_tell(node, member, record)) return false;
    m->denied_us = node->now_us;
    return true;
}

/* Of two claims the greater one holds. */
static uint64_t claim(const struct record *record)
{
    return (uint64_t)record->incarnation << 2 | record->state;
}

static void merge_state(struct parley_node *node, int member, const struct record *record, int from)
{
    struct record *r = record_of(node, member);
    uint64_t theirs = claim(record), ours = claim(r);
    bool lied = from == member && is_far_ahead(r->incarnation, record->incarnation);
    if (theirs == ours && r->state == PARLEY_MEMBER_SUSPECT && from != NONE)
        membership_confirm(node, member, record_of(node, from)->boot);
    if (theirs <= ours && !lied) return;
    if (from != member && is_far_ahead(record->incarnation, r->incarnation)) return;
    if (deny(node, member, record, from)) return;
    r->incarnation = record->incarnation;
    if (record->state == r->state) {
        roster_changed(node->roster, member, true);
        return;
    }
    bool silent = r->state == PARLEY_MEMBER_SUSPECT &&
                  !membership_heard(node, member, member_of(node, member)->suspect_since_us);
    char reason[80];
    snprintf(reason, sizeof reason, "%s says so",
             from == NONE || from == member ? "it" : record_of(node, from)->name);
    membership_state(node, member, (enum parley_member_state)record->state, reason);
    /* As if it had found so itself: what waits for the link to end waits no longer. */
    if (record->state == PARLEY_MEMBER_DEAD && silent && out_room(node))
        connection_drop(node, member);
}

/* What may change without being urgent: progress. All else is news. */
static bool is_news(const struct parley_node *node, const struct record *old,
                    const struct record *new)
{
    uint64_t budget = node->config.steps_budget; /* all wait for the last to make it */
    bool made = old->version < budget && new->version >= budget;
    return made || old->phase != new->phase || old->stop != new->stop ||
           old->follows != new->follows || old->aside != new->aside ||
           old->generation != new->generation || old->fetched != new->fetched ||
           old->measured != new->measured || old->near != new->near ||
           memcmp(old->digest, new->digest, sizeof old->digest) != 0 ||
           memcmp(old->distrusts, new->distrusts, sizeof old->distrusts) != 0 ||
           old->lock_generation != new->lock_generation;
}

static bool is_sane(const struct record *r)
{
    return r->boot != 0 && *r->name && *r->address && r->state <= PARLEY_MEMBER_LEFT &&
           r->phase <= PARLEY_PHASE_LEFT && r->stop <= PARLEY_STOP_OPERATOR &&
           r->earlier <= PARLEY_EARLIER_HELD && r->aside <= 1 && r->distance_sq >= 0 &&
           r->mean_sq >= 0 && isfinite(r->distance_sq) && isfinite(r->mean_sq) &&
           isfinite(r->score) && r->incarnation < UINT32_MAX / 2 &&
           r->generation < UINT32_MAX / 2 && r->lock_generation < UINT32_MAX / 2;
}

static void merge_own_words(struct parley_node *node, int member, const struct record *record)
{
    struct record *r = record_of(node, member), old = *r;
    *r = *record;
    memcpy(r->name, old.name, sizeof old.name);
    r->incarnation = old.incarnation;
    r->state = old.state;
    if (r->earlier == PARLEY_EARLIER_UNKNOWN) r->earlier = old.earlier; /* place.c */
    /* All follow the newest: nobody is led to the last number at a bound. Who joins takes it as it
     * is: the others may have come far. */
    uint32_t most = node->roster->generation + AHEAD_MAX;
    bool bounded = phase_of(node) > PARLEY_PHASE_JOINING;
    if (bounded && r->generation > most) r->generation = most;
    if (bounded && r->lock_generation > most) r->lock_generation = 0;
    member_of(node, member)->heard = self_of(node)->samples;
    bool settles = record->phase >= PARLEY_PHASE_SETTLE && record->phase <= PARLEY_PHASE_PROPOSED;
    if (old.phase == PARLEY_PHASE_LATE && settles) node->agreement.follows = true;
    roster_changed(node->roster, member, is_news(node, &old, record));
}

/* Who has news of a member that this node takes for silent or gone, more than that one does, is
 * told so: where nobody asks this node for news the member would not hear of it, nor refute. */
static void tell_back(struct parley_node *node, int member, const struct record *record, int from)
{
    const struct record *r = record_of(node, member);
    bool missed = r->state == PARLEY_MEMBER_SUSPECT || r->state == PARLEY_MEMBER_DEAD;
    if (missed && claim(r) > claim(record) && from != NONE && from != member)
        membership_tell(node, from, r);
}

int merge_record(struct parley_node *node, const struct record *record, int from)
{
    if (!is_sane(record)) return NONE;
    if (record->boot == self_of(node)->boot) {
        if (record->state != PARLEY_MEMBER_ALIVE) refute(node, record, from);
        speak_again(node, record);
        return node->self;
    }
    int member = roster_find(node->roster, record->boot);
    bool added = member == NONE;
    if (node->roster->shared) return member; /* what it says stands there already */
    if (added) {
        member = place_new(node, record);
        if (member == NONE) return NONE;
        record_of(node, member)->incarnation = record->incarnation;
        const char *reason = from == NONE ? "it connected" : "a peer told of it";
        /* Who was gone before it was heard of is no news: former lives of a name, mostly. */
        membership_state(node, member, (enum parley_member_state)record->state,
                         record_is_live(record) ? reason : NULL);
    }
    const struct record *r = record_of(node, member);
    bool news = is_newer(record, r, from == member);
    if (news) merge_own_words(node, member, record);
    if (!added) merge_state(node, member, record, from);
    if (news) tell_back(node, member, record, from);
    /* It may not have said what is known of it. Mostly it has, and that came another way sooner. */
    if (from == member && record->clock < r->clock) membership_tell(node, member, r);
    return member;
}

void merge_members(struct parley_node *node, struct conn *conn,
                   const struct message_members *message)
{
    for (uint32_t i = 0; i < message->count; i++)
        merge_record(node, &message->records[i], conn->member);
    if (message->complete) node->met_all = true;
    if (message->ask == MESSAGE_ASKS && !conn->asks) {
        conn->asks = node->gossip.due = true;
        conn->synced = false;
        conn->sent[ROSTER_ANY] = 0;
    }
    if (message->ask == MESSAGE_ASKS_NO_MORE) conn->asks = false;
}
