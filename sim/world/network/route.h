/* route.h: the way of a message from one machine to another: lines that it shares with others,
 * latency, loss.
 *
 *   the sender's line -> the line between two sites, if there is one -> latency -> the receiver's
 * line
 *
 * A message's first byte goes on while its last is still on the line before, so that only the
 * slowest line of the way costs its time. A line takes messages in the order in which their last
 * bytes come; one that came bit by bit has used the time that others left since its first byte
 * came.
 */
#ifndef PARLEY_SIM_ROUTE_H
#define PARLEY_SIM_ROUTE_H

#include "world/cluster.h"

enum { SIM_PACKET_BYTES = 1448 }; /* what a packet on Ethernet holds */

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

/* The rate of the narrowest line between two machines; 0: none has a limit. */
uint64_t sim_narrowest_bytes(const struct sim_host *from, const struct sim_host *to);

/* An older kernel's pauses, each twice the last, and who gives up soon: of all handshakes, and of
 * whoever is to have a hard life. */
extern const struct parley_sim_again sim_again_hard;

/* A message's time on its way, the resending of what is lost of its `size` bytes included. *broken:
 * the same was lost so often that its connection is given up. */
uint64_t sim_message_us(struct parley_sim *sim, const struct sim_host *from,
                        const struct sim_host *to, size_t size, bool *broken);

/* The same of a part of a handshake, or of a reset. */
uint64_t sim_handshake_us(struct parley_sim *sim, const struct sim_host *from,
                          const struct sim_host *to);

/* From one sending of the same to the next, after `losses` that went before, over a line that takes
 * way_us there. */
uint64_t sim_again_us(const struct parley_sim_again *again, uint64_t way_us, uint32_t losses);

void sim_site_links_free(struct parley_sim *sim);

#endif
