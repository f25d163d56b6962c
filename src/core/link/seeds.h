/* seeds.h: the addresses a node starts from.
 *
 * A seed is named by its place in node->seeds. Thread rule: as the node's.
 */
#ifndef PARLEY_CORE_SEEDS_H
#define PARLEY_CORE_SEEDS_H

#include <stdbool.h>
#include <stdint.h>

#include "parley/node.h"

struct seed_dial {
    char address[PARLEY_ADDRESS_SIZE];
    uint64_t next_us, backoff_us;
    uint64_t said_us; /* how long the wait was that was told last */
    uint64_t boot;    /* who was let in there last; 0: nobody yet */
    bool self;        /* this node itself has answered there last */
    bool tried;       /* a dial has failed */
    bool refused;     /* who is there wants nothing of this node, and that will not change */
    bool dialing;     /* or connected by it */
    bool off;         /* no longer listed: not dialled again */
};

/* Places for those listed, and for those no longer listed to which there is a connection. */
uint32_t seeds_room(const struct parley_config *config);
/* The list is this one now: PARLEY_SEEDS_MAX at most. */
void seeds_set(struct parley_node *node, const char *const *seeds, uint32_t count);
/* All are dialled now, whatever their back-off. */
void seeds_hurry(struct parley_node *node);
bool seeds_only_self(const struct parley_node *node); /* each is this node, or there is none */
bool seeds_met(const struct parley_node *node);       /* each, or tried in vain */
bool seeds_refuse(const struct parley_node *node);    /* each but this node itself */
bool seeds_in_vain(const struct parley_node *node);   /* each refuses, or can't be reached */
bool seeds_met_nobody(
    const struct parley_node *node); /* it joins, and knows of nobody that lives */
/* Who answered there last; NONE: nobody yet. */
int seeds_member(const struct parley_node *node, int seed);

/* Of the connection that it was dialled by: HELLO is done; it is this node's own; it has ended. */
void seeds_answered(struct parley_node *node, int seed, uint64_t boot);
void seeds_is_self(struct parley_node *node, int seed);
void seeds_ended(struct parley_node *node, int seed, bool was_live);
/* What came of a dial, and when the next is: where the wait is as long as before, only to whom
 * debugs.
 */
void seeds_log(struct parley_node *node, int seed, const char *what);
/* Who is there has another cluster key. A node that has met nobody, and finds that at all of its
 * seeds, ends with PARLEY_EKEY. */
void seeds_barred(struct parley_node *node, int seed, const char *why);

void seeds_timers(struct parley_node *node);
/* Ends the node if it has met nobody for config.join_timeout_us. */
void seeds_give_up(struct parley_node *node);
uint64_t seeds_deadline(const struct parley_node *node);

#endif
