/* pairing.c: with whom a settling node averages, so that few averagings in a row do.
 *
 * Those that are waited for stand in line by name. Who averages with whom in round r, and by what
 * share, is that of the Base-2 Graph (topology/base.c): after one sweep of its rounds, 2 log2 n + 1
 * at most, all models are equal, for any n; with n = 2^k, log2 n do (recursive doubling). Pairs
 * that are drawn at random need many more, and leave half of the nodes asking somebody who is busy,
 * which over long lines costs the way there and back each time.
 *
 * Of a pair the one with the lesser place asks, and the other waits to be asked; who is not as far
 * as the offer, or sees another line, is busy. Rounds are each node's own count, from when it saw
 * last that somebody came or went; an offer names the round and the line, so that both ends count
 * the same ones, and who is behind the other is answered. Who has waited for a partner in vain (it
 * is paused, or sees others than this node does) goes by chance from then on and says so in its
 * offers; whom it asks does likewise. So a schedule that some can't keep costs that long, and no
 * more. For a partner that is known to be reached by others alone nobody waits.
 *
 * Limit: where only some took a node for dead before it was back, these begin anew and the others
 * do not, over one line; they come apart, and go by chance.
 */
#include "core/exchange/pairing.h"

#include "core/exchange/exchange.h"
#include "core/exchange/slot.h"
#include "core/membership/membership.h"
#include "core/out.h"
#include "core/state.h"
#include "core/topology/topology.h"

enum {
    NUDGE_US = 2000000, /* longer than an exchange takes over all but the worst lines */
    NUDGE_PAUSE_US = 100000
};

static uint32_t waited(const struct parley_node *node)
{
    return node->roster->counts[ROSTER_WAITED];
}

static uint32_t sweep_rounds(const struct parley_node *node)
{
    return topology_base_rounds(waited(node), 1);
}

/* Where a place of the line stands in that sweep, or back again. The first goes by names; the
 * others by a draw that all nodes make alike, for those that clip (robust.c): each is to ask, and
 * to meet others than before. (Turned or multiplied, a line of 2^k would keep apart for good what
 * only one round of a sweep brings together.) A Feistel network of the places' upper and lower
 * bits, walked until it ends within the line. */
static uint32_t shuffled(const struct parley_node *node, uint32_t sweep, uint32_t place, bool back)
{
    enum { TURNS = 4 };
    uint32_t n = waited(node), half = 1;
    if (sweep == 0) return place;
    while (n > 1u << 2 * half)
        half++;
    do {
        uint32_t upper = place >> half, lower = place & ((1u << half) - 1);
        for (uint32_t i = 0; i < TURNS; i++) {
            uint64_t turn = (uint64_t)sweep * TURNS + (back ? TURNS - 1 - i : i);
            uint64_t drawn = rng_mix(rng_mix(node->config.run + turn) + lower);
            uint32_t next = upper ^ (uint32_t)(drawn >> (64 - half));
            upper = lower;
            lower = next;
        }
        place = lower << half | upper;
    } while (place >= n);
    return place;
}

/* Whom a place meets in that round, counted on through all sweeps; its own place: nobody. */
static uint32_t partner_of(const struct parley_node *node, uint32_t round, uint32_t place,
                           double *share, bool *asks)
{
    uint32_t rounds = sweep_rounds(node), sweep = round / rounds;
    uint32_t own = shuffled(node, sweep, place, false);
    struct topology_meeting m = topology_base_meeting(waited(node), 1, round % rounds, own);
    uint32_t other = m.count == 0 ? own : m.first != own ? m.first : m.first + m.stride;
    *share = m.weight;
    *asks = own < other;
    return shuffled(node, sweep, other, true);
}

/* The partner of this round, and whether this node asks it. Who meets nobody in a round skips it.
 */
static void find_partner(struct parley_node *node)
{
    struct pairing *p = &node->exchange.pairing;
    p->partner = NONE;
    if (p->waits != node->roster->waits) { /* all begin anew as soon as they know */
        p->waits = node->roster->waits;
        p->among = node->roster->among;
        p->round = p->swept = p->mixed = 0;
        p->since_us = node->now_us;
    }
    if (waited(node) < 2) return;
    const uint32_t *line = roster_waited(node->roster);
    uint32_t place = node->roster->places[node->self].waited, other;
    double share;
    p->rounds = 1;
    for (; (other = partner_of(node, p->round, place, &share, &p->asks)) == place; p->round++)
        p->rounds++;
    p->partner = (int)line[other];
}

/* Somebody may have come or gone since, and be back: then the line is what it was. */
static void keep_up(struct parley_node *node)
{
    if (node->exchange.pairing.waits != node->roster->waits) find_partner(node);
}

void pairing_returned(struct parley_node *node)
{
    node->exchange.pairing.waits = 0; /* this node itself is one who came */
}

static void next_round(struct parley_node *node)
{
    struct pairing *p = &node->exchange.pairing;
    p->round++;
    p->since_us = node->now_us;
    find_partner(node);
}

/* The partner may be at an exchange that is about to be given up. Where they take long so may that.
 */
static uint64_t patience_us(const struct parley_node *node)
{
    uint64_t least = node->config.progress_timeout_us;
    uint64_t longest = 3 * node->exchange.pairing.longest_us;
    return (longest > least ? longest : least) * node->exchange.pairing.rounds;
}

/* Who should have asked may be rounds ahead. To ask it too soon only makes two offers cross. */
static bool is_late(const struct parley_node *node)
{
    const struct pairing *p = &node->exchange.pairing;
    return node->now_us >= p->since_us + (NUDGE_US + 3 * p->longest_us) * p->rounds &&
           node->now_us >= p->nudged_us + NUDGE_PAUSE_US;
}

void pairing_start(struct parley_node *node)
{
    node->exchange.pairing = (struct pairing){.since_us = node->now_us};
    find_partner(node);
}

bool pairing_is_kept(const struct parley_node *node)
{
    return phase_of(node) == PARLEY_PHASE_SETTLE && !node->exchange.pairing.broken &&
           !node->leaving && waited(node) > 1;
}

int pairing_partner(const struct parley_node *node)
{
    return pairing_is_kept(node) ? node->exchange.pairing.partner : NONE;
}

static enum message_settles pairing_way(const struct parley_node *node)
{
    if (phase_of(node) != PARLEY_PHASE_SETTLE || node->leaving) return MESSAGE_TRAINS;
    return pairing_is_kept(node) ? MESSAGE_BY_SCHEDULE : MESSAGE_BY_CHANCE;
}

void pairing_say(const struct parley_node *node, struct message_exchange *offer)
{
    offer->settles = pairing_way(node);
    if (offer->settles != MESSAGE_BY_SCHEDULE) return;
    offer->round = node->exchange.pairing.round + 1;
    offer->line = (uint32_t)node->exchange.pairing.among;
}

bool pairing_peer(struct parley_node *node, int *peer)
{
    struct pairing *p = &node->exchange.pairing;
    *peer = NONE;
    if (!pairing_is_kept(node)) return false;
    keep_up(node);
    if (p->partner == NONE || slot_is_open(&node->exchange.slots[RESPONDER])) return true;
    uint32_t phase = record_of(node, (uint32_t)p->partner)->phase;
    if (phase < PARLEY_PHASE_SETTLE) { /* its last exchange of training is still open */
        p->since_us = node->now_us;
    } else if (phase > PARLEY_PHASE_PROPOSED) { /* it averages no more */
        next_round(node);
    } else if (membership_is_unreached(node, p->partner) ||
               node->now_us >= p->since_us + patience_us(node)) {
        p->broken = true;
        out_log(node, PARLEY_LOG_DEBUG, "round %u of settling: waited in vain for %s", p->round,
                record_of(node, (uint32_t)p->partner)->name);
        return false;
    } else if (p->asks || phase == PARLEY_PHASE_PROPOSED) { /* who has proposed asks nobody */
        *peer = p->partner;
    } else if (is_late(node)) {
        p->nudged_us = node->now_us;
        *peer = p->partner;
    }
    return true;
}

/* Who has been busy for long is not asked again soon, for the offer may carry a model. */
uint64_t pairing_pause_us(const struct parley_node *node)
{
    return pairing_is_kept(node) ? (node->now_us - node->exchange.pairing.since_us) / 16 : 0;
}

bool pairing_refuses(struct parley_node *node, const struct message_exchange *offer)
{
    struct pairing *p = &node->exchange.pairing;
    /* Its record may come later than what it offers. */
    if (!pairing_is_kept(node) || offer->settles == MESSAGE_TRAINS) return false;
    keep_up(node);
    if (offer->settles == MESSAGE_BY_CHANCE) p->broken = true;
    /* Who is behind, as it has counted from later on, is helped on. */
    return !p->broken && (offer->line != (uint32_t)p->among || offer->round > p->round + 1);
}

double pairing_share(const struct parley_node *node, int peer, const struct message_exchange *offer)
{
    const struct pairing *p = &node->exchange.pairing;
    if (!pairing_is_kept(node) || offer->round == 0 || offer->line != (uint32_t)p->among)
        return SHARE_ALONE;
    const uint32_t *line = roster_waited(node->roster);
    uint32_t place = node->roster->places[node->self].waited;
    double share;
    bool asks;
    uint32_t other = partner_of(node, offer->round - 1, place, &share, &asks);
    return other != place && (int)line[other] == peer ? share : SHARE_ALONE;
}

void pairing_mixed(struct parley_node *node, int peer, uint32_t round, uint32_t line)
{
    struct pairing *p = &node->exchange.pairing;
    p->mixed++;
    if (!pairing_is_kept(node) || peer != p->partner || round != p->round + 1 ||
        line != (uint32_t)p->among)
        return;
    uint64_t took_us = node->now_us - p->since_us;
    if (took_us > p->longest_us) p->longest_us = took_us;
    next_round(node);
}

/* ---- Sweeps ---------------------------------------------------------------------------------- */

void pairing_sweep(struct parley_node *node)
{
    struct pairing *p = &node->exchange.pairing;
    p->swept = p->round;
    p->mixed = 0;
    p->since_us = node->now_us;
}

bool pairing_is_swept(struct parley_node *node)
{
    struct pairing *p = &node->exchange.pairing;
    uint32_t rounds = sweep_rounds(node);
    if (!pairing_is_kept(node)) return p->mixed >= rounds;
    keep_up(node);
    /* Who comes back finds all of one mind, skips them, and is waited for in a moment. */
    return p->mixed > 0 && p->round / rounds > p->swept / rounds;
}

bool pairing_is_first(const struct parley_node *node)
{
    return pairing_is_kept(node) && node->exchange.pairing.round < sweep_rounds(node);
}
