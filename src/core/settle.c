/* settle.c: in which order few nodes meet in SETTLE.
 *
 * Meeting at random, each halves its distance to the mean with every exchange or so. Where there
 * are 2^k nodes, pairs that differ in one bit of their place among the names, one bit after the
 * other, have the mean itself after k exchanges each (Barnett et al., "Interprocessor collective
 * communication library", 1994: recursive doubling). So the lower place of a pair asks, the other
 * waits for it, and whoever else asks is told BUSY.
 *
 * Nobody waits for long: who has waited a second, or sees somebody come or go, meets the others at
 * random from then on, and answers all of them.
 */
#include <string.h>

#include "core/exchange.h"

enum { SETTLE_MEMBERS_MAX = 64, PATIENCE_US = 1000000 };

void settle_begin(struct parley_node *node)
{
    node->exchange.settle = (struct settle){
        .since_us = node->now_us,
        .turnover = node->roster->turnover,
        .on = true,
    };
}

static int member_at(const struct parley_node *node, uint32_t place)
{
    const struct parley_roster *roster = node->roster;
    for (uint32_t i = 0; i < roster->count; i++)
        if (record_is_live(record_of(node, roster->line[i])) && place-- == 0)
            return (int)roster->line[i];
    return NONE;
}

static uint32_t own_place(const struct parley_node *node)
{
    const struct parley_roster *roster = node->roster;
    uint32_t place = 0;
    for (uint32_t i = 0; roster->line[i] != (uint32_t)node->self; i++)
        place += record_is_live(record_of(node, roster->line[i]));
    return place;
}

int settle_partner(struct parley_node *node)
{
    struct settle *settle = &node->exchange.settle;
    uint32_t n = live_of(node), bits = 0;
    if (phase_of(node) != PARLEY_PHASE_SETTLE || node->leaving || !settle->on) return NONE;
    while (1u << bits < n)
        bits++;
    settle->on = n >= 2 && n <= SETTLE_MEMBERS_MAX && 1u << bits == n &&
                 settle->turnover == node->roster->turnover &&
                 node->now_us <= settle->since_us + PATIENCE_US;
    if (!settle->on) return NONE;
    int partner = member_at(node, own_place(node) ^ 1u << settle->rounds % bits);
    /* Who has proposed answers, but gains nothing by it: the order is over. */
    settle->on = record_of(node, (uint32_t)partner)->phase <= PARLEY_PHASE_SETTLE;
    return settle->on ? partner : NONE;
}

bool settle_asks(struct parley_node *node, int partner)
{
    const struct record *r = record_of(node, (uint32_t)partner);
    return strcmp(self_of(node)->name, r->name) < 0 && r->phase == PARLEY_PHASE_SETTLE;
}

bool settle_answers(struct parley_node *node, int peer)
{
    int partner = settle_partner(node);
    if (partner == NONE) return true;
    return partner == peer && record_of(node, (uint32_t)peer)->phase == PARLEY_PHASE_SETTLE &&
           !slot_is_open(&node->exchange.slots[INITIATOR]);
}

void settle_met(struct parley_node *node, int peer)
{
    struct settle *settle = &node->exchange.settle;
    if (settle_partner(node) != peer) return;
    settle->rounds++;
    settle->since_us = node->now_us;
    node->exchange.retry_us = 0; /* it may have waited for this */
}
