/* Who may average with whom. */
#include <criterion/criterion.h>

#include "core/state.h"

static const enum parley_topology all[] = {PARLEY_TOPOLOGY_COMPLETE, PARLEY_TOPOLOGY_RING,
                                           PARLEY_TOPOLOGY_TORUS, PARLEY_TOPOLOGY_EXPONENTIAL};

static uint32_t degree(enum parley_topology topology, uint32_t n, uint32_t a)
{
    uint32_t count = 0;
    for (uint32_t b = 0; b < n; b++)
        count += b != a && topology_linked(topology, n, a, b);
    return count;
}

Test(topology, links_go_both_ways)
{
    /* Proves symmetry for every size to 70: an exchange needs the consent of both. */
    for (int t = 0; t < 4; t++)
        for (uint32_t n = 2; n <= 70; n++)
            for (uint32_t a = 0; a < n; a++)
                for (uint32_t b = 0; b < a; b++)
                    cr_assert_eq(topology_linked(all[t], n, a, b), topology_linked(all[t], n, b, a),
                                 "%d: %u, %u of %u", t, a, b, n);
}

Test(topology, every_graph_is_connected)
{
    /* Proves that from node 0 all others are reached, whatever the size. */
    for (int t = 0; t < 4; t++)
        for (uint32_t n = 2; n <= 70; n++) {
            bool reached[70] = {true};
            for (bool grew = true; grew;) {
                grew = false;
                for (uint32_t a = 0; a < n; a++)
                    for (uint32_t b = 0; b < n && reached[a]; b++)
                        if (b != a && !reached[b] && topology_linked(all[t], n, a, b)) {
                            reached[b] = true;
                            grew = true;
                        }
            }
            for (uint32_t a = 0; a < n; a++)
                cr_assert(reached[a], "%d: %u of %u", t, a, n);
        }
}

Test(topology, degrees_are_those_of_the_graph)
{
    /* Proves the degree of each graph at sizes where it is known: n - 1, 2, 4, 2 log2(n) - 1. */
    for (uint32_t a = 0; a < 16; a++) {
        cr_assert_eq(degree(PARLEY_TOPOLOGY_COMPLETE, 16, a), 15);
        cr_assert_eq(degree(PARLEY_TOPOLOGY_RING, 16, a), 2);
        cr_assert_eq(degree(PARLEY_TOPOLOGY_TORUS, 16, a), 4);
        cr_assert_eq(degree(PARLEY_TOPOLOGY_EXPONENTIAL, 16, a), 7);
        if (a < 13) cr_assert_eq(degree(PARLEY_TOPOLOGY_TORUS, 13, a), 2, "no grid: a ring");
        if (a < 12) cr_assert_eq(degree(PARLEY_TOPOLOGY_TORUS, 12, a), 4);
        if (a < 6) cr_assert_eq(degree(PARLEY_TOPOLOGY_TORUS, 6, a), 3, "two rows");
    }
}
