/* convergence.c: how fast averaging alone brings models together, against the theory, to 5 % of the
 * rate and over 20 seeds; more nodes are in tests/slow. */
#include "convergence.h"

Test(convergence, on_the_complete_graph_the_squared_distance_decays_as_the_theory_says)
{
    /* 1 - 1/(n-1) an exchange. A dozen clusters a seed, as 4 nodes are equal after few. */
    expect_rate(factor_of(PARLEY_TOPOLOGY_COMPLETE, 4, 12, 60, distance_left), 1 - 1.0 / 3);
}

Test(convergence, on_a_ring_the_slowest_wave_decays_by_its_spectral_gap)
{
    /* Neighbours alone exchange. */
    enum parley_topology ring = PARLEY_TOPOLOGY_RING;
    cr_assert_float_eq(wave_slowest(ring, 8), cos(acos(-1) / 4), 1e-12);
    expect_rate(factor_of(ring, 8, 1, 200, wave_left), wave_theory(ring, 8));
}
