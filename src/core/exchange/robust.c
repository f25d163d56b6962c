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
 * Settling models are soon far nearer than those that train, and by what was usual then a liar
 * would pull at each meeting: from the last LEAST before on, the distances are a median of their
 * own, and the smaller counts. (The newest few alone would be too near: a round of a sweep in which
 * most meet equals says nothing of one in which an honest outlier is met.)
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

void robust_settles(struct parley_node *node)
{
    struct robust *robust = &node->robust;
    robust->since = robust->count > LEAST ? robust->count - LEAST : 0;
}

static double median_of_newest(const struct robust *robust, uint32_t count)
{
    double sorted[ROBUST_SEEN];
    for (uint32_t i = 0; i < count; i++) {
        double seen = robust->seen[(robust->count - 1 - i) % ROBUST_SEEN];
        uint32_t at = i;
        for (; at > 0 && sorted[at - 1] > seen; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = seen;
    }
    return sorted[count / 2];
}

double robust_radius(const struct parley_node *node)
{
    const struct robust *robust = &node->robust;
    uint32_t count = robust->count < ROBUST_SEEN ? robust->count : ROBUST_SEEN;
    if (!node->config.robust || count < LEAST) return 0;
    double usual = median_of_newest(robust, count);
    if (robust->since > 0 && robust->count - robust->since < count)
        usual = fmin(usual, median_of_newest(robust, robust->count - robust->since));
    return sqrt(usual);
}

double robust_clip(double radius, double norm_sq)
{
    return norm_sq <= radius * radius ? 1 : radius / sqrt(norm_sq);
}
