/* robust.c: what a peer's model may do to this node's, where config.robust.
 *
 *   d <- d min(1, tau / ||d||)      self-centred clipping
 *
 * of the difference d of the two snapshots of an exchange (He, Karimireddy, Jaggi,
 * arXiv:2202.01545, section 4; Karimireddy, He, Jaggi, ICML 2021). Both ends clip by the smaller of
 * their two radii tau, told in OFFER and ACCEPT, and ||d|| is the same to the bit at both: so they
 * add the same delta with opposite signs, and the mean of honest nodes holds. A peer that lies of
 * its radius can only have less of itself mixed in.
 *
 * tau is the median of ||d|| over the newest exchanges with peers that this node itself drew, to
 * begin one: whoever offers often does not get more of a say in it. Where the peer's offer was
 * sooner, or crossed its own, that exchange counts in its stead, and so do all of who has one
 * neighbour: of two nodes it may be the same that begins each time. While fewer than half of a
 * node's neighbours lie it lies among the distances of honest ones. Before there are LEAST of them
 * nothing is added: the first that comes may be a lie.
 *
 * Decision: each end computes the factor by itself; READY and COMMIT do not carry it. Sums of
 * squares are fp64 in one order on all machines (kernels/mix.h); were they not, the two factors
 * would differ by the last bit of an fp32, which is what adding rounds by.
 */
#include "core/exchange/robust.h"

#include <math.h>
#include <string.h>

#include "core/state.h"

enum { LEAST = 3 };

void robust_seen(struct parley_node *node, double norm_sq)
{
    struct robust *robust = &node->robust;
    robust->seen[robust->count++ % ROBUST_SEEN] = norm_sq;
}

double robust_radius(const struct parley_node *node)
{
    const struct robust *robust = &node->robust;
    double sorted[ROBUST_SEEN];
    uint32_t count = robust->count < ROBUST_SEEN ? robust->count : ROBUST_SEEN;
    if (!node->config.robust || count < LEAST) return 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = i;
        for (; at > 0 && sorted[at - 1] > robust->seen[i]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = robust->seen[i];
    }
    return sqrt(sorted[count / 2]);
}

double robust_clip(double radius, double norm_sq)
{
    return norm_sq <= radius * radius ? 1 : radius / sqrt(norm_sq);
}
