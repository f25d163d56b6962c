/* base.c: rounds after which every node holds the exact mean, for any number of nodes.
 *
 * The Base-(k+1) Graph (Takezawa, Sato, Bao, Niwa, Yamada, "Beyond Exponential Graph", NeurIPS
 * 2023, section 4). n = p q, where q has no prime factor up to k + 1: there are p copies of q
 * places. Each copy makes the rounds of the Simple Base-(k+1) Graph, then those that have the same
 * place in all copies average; where that takes longer, p = 1. With base k + 1, q = s_0 + s_1 + ...
 * where s_i is a digit times a power, falling; each is the size of a group. Rounds of a copy:
 *
 *   1. each group averages within itself, by cliques of at most k + 1 (a hyper-hypercube)
 *   2. one after the other, each group meets all later ones, node by node, with weight
 *      s_i / (s_i + s_i+1 + ...), which makes the mean of the group that of all
 *   3. each, as soon as it has met them, averages within itself again
 *
 * With k = 1 and a power of two that is the hypercube.
 */
#include <assert.h>

#include "core/topology/topology.h"

enum { GROUPS_MAX = 16, FACTORS_MAX = 16 };

/* The cliques' sizes round by round; 0 if the size has another prime factor, or is 1. */
static uint32_t find_factors(uint32_t size, uint32_t k, uint32_t factors[FACTORS_MAX])
{
    uint32_t count = 0;
    while (size > 1) {
        uint32_t factor = size < k + 1 ? size : k + 1;
        while (factor > 1 && size % factor != 0)
            factor--;
        if (factor <= 1) return 0;
        assert(count < FACTORS_MAX);
        factors[count++] = factor;
        size /= factor;
    }
    return count;
}

/* A round of a hyper-hypercube of `size` places. */
static struct topology_meeting within(uint32_t size, uint32_t k, uint32_t round, uint32_t place)
{
    uint32_t factors[FACTORS_MAX], stride = 1;
    if (round >= find_factors(size, k, factors)) return (struct topology_meeting){.count = 0};
    for (uint32_t r = 0; r < round; r++)
        stride *= factors[r];
    uint32_t factor = factors[round];
    return (struct topology_meeting){.first = place - place / stride % factor * stride,
                                     .stride = stride,
                                     .count = factor,
                                     .weight = 1.0 / factor};
}

static struct topology_meeting moved(struct topology_meeting meeting, uint32_t by)
{
    meeting.first += by;
    return meeting;
}

/* ---- One copy -------------------------------------------------------------------------------- */

struct group {
    uint32_t start, size, part, rest; /* rest: places in this group and all later ones */
};

static uint32_t split(uint32_t q, uint32_t k, struct group groups[GROUPS_MAX])
{
    uint32_t count = 0, power = 1, rest = q;
    while (power <= q / (k + 1))
        power *= k + 1;
    do {
        assert(count < GROUPS_MAX);
        groups[count++] = (struct group){q - rest, rest / power * power, power, rest};
        rest %= power;
        while (power > rest)
            power /= k + 1;
    } while (rest > 0);
    return count;
}

/* How many of its rounds each group averages within itself before all meet. */
static uint32_t rounds_before(const struct group *groups, uint32_t k)
{
    uint32_t factors[FACTORS_MAX];
    return find_factors(groups[0].size, k, factors);
}

static uint32_t copy_rounds(uint32_t q, uint32_t k)
{
    struct group groups[GROUPS_MAX];
    uint32_t count = split(q, k, groups), factors[FACTORS_MAX];
    uint32_t before = rounds_before(groups, k), all = before;
    for (uint32_t g = 0; g + 1 < count; g++) {
        uint32_t end = before + g + 1 + find_factors(groups[g].part, k, factors);
        if (end > all) all = end;
    }
    return all;
}

static struct topology_meeting copy_meeting(uint32_t q, uint32_t k, uint32_t round, uint32_t place)
{
    struct group groups[GROUPS_MAX];
    uint32_t count = split(q, k, groups), before = rounds_before(groups, k), own = 0;
    while (place >= groups[own].start + groups[own].size)
        own++;
    const struct group *g = &groups[own];
    uint32_t at = place - g->start, later = g->rest - g->size;
    if (round < before) return moved(within(g->size, k, round, at), g->start);
    uint32_t meets = round - before; /* the group that meets the later ones */
    if (meets < own) {
        g = &groups[meets];
        return (struct topology_meeting){place - g->size, g->part, g->size / g->part,
                                         (double)g->part / g->rest};
    }
    if (meets == own && at % g->part < later)
        return (struct topology_meeting){g->start + g->size + at % g->part, 1, 1,
                                         (double)g->part / g->rest};
    if (meets == own || own + 1 == count) return (struct topology_meeting){.count = 0};
    return moved(within(g->part, k, meets - own - 1, at % g->part), place - at % g->part);
}

/* ---- All copies ------------------------------------------------------------------------------ */

static uint32_t rounds_of(uint32_t p, uint32_t q, uint32_t k)
{
    uint32_t factors[FACTORS_MAX];
    return copy_rounds(q, k) + find_factors(p, k, factors);
}

static uint32_t copies(uint32_t n, uint32_t k)
{
    uint32_t p = 1, q = n;
    for (uint32_t factor = 2; factor <= k + 1; factor++)
        for (; q % factor == 0; q /= factor)
            p *= factor;
    return rounds_of(p, q, k) <= rounds_of(1, n, k) ? p : 1;
}

uint32_t topology_base_rounds(uint32_t n, uint32_t k)
{
    uint32_t p = copies(n, k), rounds = rounds_of(p, n / p, k);
    return rounds > 0 ? rounds : 1;
}

struct topology_meeting topology_base_meeting(uint32_t n, uint32_t k, uint32_t round,
                                              uint32_t place)
{
    uint32_t p = copies(n, k), q = n / p, rounds = copy_rounds(q, k), at = place % q;
    if (round < rounds) return moved(copy_meeting(q, k, round, at), place - at);
    struct topology_meeting among = within(p, k, round - rounds, place / q);
    among.first = among.first * q + at;
    among.stride *= q;
    return among;
}

double topology_base_weight(uint32_t n, uint32_t k, uint32_t round, uint32_t a, uint32_t b)
{
    struct topology_meeting m = topology_base_meeting(n, k, round, a);
    bool meets = m.count > 0 && b >= m.first && (b - m.first) % m.stride == 0 &&
                 (b - m.first) / m.stride < m.count;
    return meets ? m.weight : 0;
}
