/* gossip.h: which member records go out on which links, and when.
 *
 * Thread rule: as the node's.
 */
#ifndef PARLEY_CORE_GOSSIP_H
#define PARLEY_CORE_GOSSIP_H

#include <stdbool.h>
#include <stdint.h>

#include "parley/node.h"

struct conn;

struct gossip {
    bool due;           /* something wants to go out at once */
    uint64_t news_us;   /* not before then: news of others */
    uint64_t paid_us;   /* what has been told of progress is paid for by then */
    uint64_t spurt_us;  /* not before then: own progress, to all at once */
    uint64_t want_us;   /* another link is dialled then */
    uint64_t next_us;   /* the first of those that matters */
    uint64_t news_sent; /* the roster's news that have gone to all */
    uint32_t choose_at; /* of so many links relays are chosen anew */
    uint64_t own_news;  /* the own record's clock at its newest news */
    uint64_t told;      /* own samples that all have been told of */
    uint64_t turn;      /* counts turns of links: whose it is to be told of progress */
};

/* Sends what is due on all links. */
void gossip_pump(struct parley_node *node);
/* The other end has the own record as it was at this clock. */
void gossip_heard(struct parley_node *node, struct conn *conn, uint64_t clock);
/* Sends all that this one lacks, as far as there is room. */
void gossip_flush(struct parley_node *node, struct conn *conn);

#endif
