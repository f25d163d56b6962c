/* pairing.c: with whom a settling node averages, so that few averagings in a row do.
 *
 * Those that are waited for stand in line by name. In round r each averages with whoever's place
 * differs in bit r mod ceil(log2 n): where all take part, n = 2^k models are equal after k rounds
 * (recursive doubling), and for other n, where some have nobody in a round and the line is turned
 * from one sweep to the next, drift falls as it does by random matchings of all. Pairs that are
 * drawn at random instead leave half of the nodes asking somebody who is busy, which over long
 * lines costs the way there and back each time.
 *
 * Of a pair the one with the lesser place asks, and the other waits to be asked; who is not as far
 * as the offer, or sees another line, is busy. Rounds are each node's own count, from when it saw
 * last that somebody came or went; an offer names the round and the line, so that both ends count
 * the same ones, and who is behind the other is answered. Who has waited for a partner in vain (it
 * is paused, or sees others than this node does) goes by chance from then on and says so in its
 * offers; whom it asks does likewise. So a schedule that some can't keep costs that long, and no
 * more.
 */
#include "core/pairing.h"

#include "core/out.h"
#include "core/slot.h"
#include "core/state.h"

enum { NUDGE_US = 2000000 }; /* longer than an exchange takes over all but the worst lines */

/* A place in the line of `count` once that is turned, by a draw that all nodes make alike. */
static uint32_t turned(const struct parley_node *node, uint32_t place, uint32_t count, uint32_t by)
{
    uint32_t turn = (uint32_t)(rng_mix(node->config.run + by) % count);
    return (place + turn) % count;
}

static uint32_t bits_of(uint32_t count)
{
    uint32_t bits = 1;
    while (count > UINT32_C(1) << bits)
        bits++;
    return bits;
}

/* The partner of this round, and whether this node asks it. */
static void find_partner(struct parley_node *node)
{
    struct pairing *p = &node->exchange.pairing;
    uint32_t count = node->roster->counts[ROSTER_WAITED];
    p->partner = NONE;
    if (p->among != node->roster->among) { /* all begin anew as soon as they know */
        p->among = node->roster->among;
        p->round = 0;
        p->since_us = node->now_us;
    }
    if (count < 2) return;
    const uint32_t *line = roster_waited(node->roster);
    uint32_t place = node->roster->places[node->self].waited, bits = bits_of(count);
    /* Nobody in this round: that of the next one. */
    for (uint32_t tries = 0; tries < 2 * bits; tries++, p->round++) {
        uint32_t sweep = p->round / bits, own = turned(node, place, count, sweep);
        uint32_t other = own ^ UINT32_C(1) << p->round % bits;
        if (other >= count) continue;
        uint32_t turn = turned(node, 0, count, sweep);
        p->partner = (int)line[(other + count - turn) % count];
        p->asks = own < other;
        return;
    }
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
    return longest > least ? longest : least;
}

/* Who should have asked may be rounds ahead. To ask it too soon only makes two offers cross. */
static bool is_late(const struct parley_node *node)
{
    const struct pairing *p = &node->exchange.pairing;
    return node->now_us >= p->since_us + NUDGE_US + 3 * p->longest_us;
}

void pairing_start(struct parley_node *node)
{
    node->exchange.pairing = (struct pairing){.since_us = node->now_us};
    find_partner(node);
}

static bool is_kept(const struct parley_node *node)
{
    return phase_of(node) == PARLEY_PHASE_SETTLE && !node->exchange.pairing.broken &&
           node->roster->counts[ROSTER_WAITED] > 1;
}

int pairing_partner(const struct parley_node *node)
{
    return is_kept(node) ? node->exchange.pairing.partner : NONE;
}

static enum message_settles pairing_way(const struct parley_node *node)
{
    if (phase_of(node) != PARLEY_PHASE_SETTLE) return MESSAGE_TRAINS;
    return is_kept(node) ? MESSAGE_BY_SCHEDULE : MESSAGE_BY_CHANCE;
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
    if (!is_kept(node)) return false;
    if (p->among != node->roster->among) find_partner(node);
    if (p->partner == NONE || slot_is_open(&node->exchange.slots[RESPONDER])) return true;
    uint32_t phase = record_of(node, (uint32_t)p->partner)->phase;
    if (phase < PARLEY_PHASE_SETTLE) { /* its last exchange of training is still open */
        p->since_us = node->now_us;
    } else if (phase > PARLEY_PHASE_PROPOSED) { /* it averages no more */
        next_round(node);
    } else if (node->now_us >= p->since_us + patience_us(node)) {
        p->broken = true;
        out_log(node, PARLEY_LOG_DEBUG, "round %u of settling: waited in vain for %s", p->round,
                record_of(node, (uint32_t)p->partner)->name);
        return false;
    } else if (p->asks || phase == PARLEY_PHASE_PROPOSED || is_late(node)) {
        /* Who has proposed asks nobody. */
        *peer = p->partner;
    }
    return true;
}

bool pairing_refuses(struct parley_node *node, const struct message_exchange *offer)
{
    struct pairing *p = &node->exchange.pairing;
    /* Its record may come later than what it offers. */
    if (!is_kept(node) || offer->settles == MESSAGE_TRAINS) return false;
    if (p->among != node->roster->among) find_partner(node);
    if (offer->settles == MESSAGE_BY_CHANCE) p->broken = true;
    /* Who is behind, as it has counted from later on, is helped on. */
    return !p->broken && (offer->line != (uint32_t)p->among || offer->round > p->round + 1);
}

void pairing_mixed(struct parley_node *node, uint32_t round, uint32_t line)
{
    struct pairing *p = &node->exchange.pairing;
    if (!is_kept(node) || round != p->round + 1 || line != (uint32_t)p->among) return;
    uint64_t took_us = node->now_us - p->since_us;
    if (took_us > p->longest_us) p->longest_us = took_us;
    next_round(node);
}

uint32_t pairing_sweep(const struct parley_node *node)
{
    return bits_of(node->roster->counts[ROSTER_WAITED]);
}
