/* route.h: the way of a message from one machine to another: lines that it shares with others,
 * latency, loss.
 *
 *   the sender's line -> the line between two sites, if there is one -> latency -> the receiver's
 * line
 *
 * A line takes what comes in the order it comes. A message's first byte goes on while its last is
 * still on the line before, so that only the slowest line of the way costs its time.
 */
#ifndef PARLEY_SIM_ROUTE_H
#define PARLEY_SIM_ROUTE_H

#include "world/cluster.h"

enum {
    SIM_LOST_AGAIN_US = 200000, /* what was lost is sent again: after this, then twice that, ... */
    SIM_LOSSES_MAX = 5,         /* lost so often in a row: the connection is given up */
    SIM_LOST_US = SIM_LOST_AGAIN_US * ((1 << SIM_LOSSES_MAX) - 1)
};

/* A link between groups of nodes (sites). */
struct sim_site_link {
    uint32_t *group; /* [nodes], UINT32_MAX: in none; owned */
    uint32_t groups;
    bool has_latency;
    uint64_t latency_us;    /* in place of the network's */
    struct sim_line *lines; /* [from * groups + to]; owned */
};

/* When a message of `size` bytes is through the line, on which it may go on from now on. *span_us:
 * how long its bytes took to come, 0 if they are all here; then how long they take to go on. */
uint64_t sim_line_us(struct sim_line *line, uint64_t now_us, size_t size, uint64_t *span_us);

/* The same for the line between the two machines' sites; now_us if there is none. */
uint64_t sim_site_line_us(struct parley_sim *sim, const struct sim_host *from,
                          const struct sim_host *to, size_t size, uint64_t *span_us);

/* One message's time on its way, the resending of what is lost included. *broken, unless NULL: it
 * was lost so often that its connection is given up. */
uint64_t sim_latency_us(struct parley_sim *sim, const struct sim_host *from,
                        const struct sim_host *to, bool *broken);

void sim_site_links_free(struct parley_sim *sim);

#endif
