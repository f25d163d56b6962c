/* topology_base.c: rounds after which every node holds the exact mean, for any number of nodes.
 *
 * The Simple Base-(k+1) Graph (Takezawa, Sato, Bao, Niwa, Yamada, "Beyond Exponential Graph",
 * NeurIPS 2023, section 4). With base k + 1, n = s_0 + s_1 + ... where s_i is a digit times a
 * power, falling; each is the size of a group. Rounds:
 *
 *   1. each group averages within itself, by cliques of at most k + 1 (a hyper-hypercube)
 *   2. one after the other, each group meets all later ones, node by node, with weight
 *      s_i / (s_i + s_i+1 + ...), which makes the mean of the group that of all
 *   3. each, as soon as it has met them, averages within itself again
 *
 * A number of nodes whose prime factors are at most k + 1 is one group. With k = 1 and a power of
 * two that is the hypercube.
 */
#include <assert.h>

#include "core/topology.h"

enum { GROUPS_MAX = 16, FACTORS_MAX = 16 };

/* The cliques' sizes round by round; 0 if the size has another prime factor. */
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

struct group {
    uint32_t size, part;
};

static uint32_t split(uint32_t n, uint32_t k, struct group groups[GROUPS_MAX])
{
    uint32_t factors[FACTORS_MAX], count = 0, power = 1;
    if (n == 1 || find_factors(n, k, factors) > 0) {
        groups[0] = (struct group){n, n};
        return 1;
    }
    while (power <= n / (k + 1))
        power *= k + 1;
    for (; power > 0; power /= k + 1) {
        if (n / power > 0) groups[count++] = (struct group){n / power * power, power};
        n %= power;
    }
    return count;
}

/* 1/clique where a and b, places in the group, meet in that round of it. */
static double within(uint32_t size, uint32_t k, uint32_t round, uint32_t a, uint32_t b)
{
    uint32_t factors[FACTORS_MAX], stride = 1;
    if (round >= find_factors(size, k, factors)) return 0;
    for (uint32_t r = 0; r < round; r++)
        stride *= factors[r];
    uint32_t next = stride * factors[round];
    return a % stride == b % stride && a / next == b / next ? 1.0 / factors[round] : 0;
}

uint32_t topology_base_rounds(uint32_t n, uint32_t k)
{
    struct group groups[GROUPS_MAX];
    uint32_t count = split(n, k, groups), factors[FACTORS_MAX];
    uint32_t first = find_factors(groups[0].size, k, factors), all = first;
    for (uint32_t g = 0; g + 1 < count; g++) {
        uint32_t end = first + g + 1 + find_factors(groups[g].part, k, factors);
        if (end > all) all = end;
    }
    return all > 0 ? all : 1;
}

double topology_base_weight(uint32_t n, uint32_t k, uint32_t round, uint32_t a, uint32_t b)
{
    struct group groups[GROUPS_MAX];
    uint32_t count = split(n, k, groups), factors[FACTORS_MAX], g = 0;
    uint32_t first = find_factors(groups[0].size, k, factors);
    if (a > b) {
        uint32_t swap = a;
        a = b;
        b = swap;
    }
    for (; a >= groups[g].size; g++) {
        a -= groups[g].size;
        b -= groups[g].size;
        n -= groups[g].size;
    }
    uint32_t size = groups[g].size, part = groups[g].part, meeting = round - first;
    bool together = b < size;
    if (round < first) return together ? within(size, k, round, a, b) : 0;
    if (!together) return meeting == g && b - size == a % part ? (double)part / n : 0;
    bool met = meeting > g && g + 1 < count && a / part == b / part;
    return met ? within(part, k, meeting - g - 1, a % part, b % part) : 0;
}
