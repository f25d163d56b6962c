/* said.h: what the members' records, taken together, say about the agreement (agreement.c, said.c).
 *
 * Thread rule: as the node's.
 */
#ifndef PARLEY_CORE_SAID_H
#define PARLEY_CORE_SAID_H

#include <stdbool.h>
#include <stdint.h>

#include "core/membership/roster.h"
#include "parley/node.h"

/* What is to be held. */
struct pick {
    const uint8_t *digest; /* NULL: not all have proposed, or nobody whose word counts */
    uint64_t proposer;     /* the boot whose word made it that */
    double score;
    bool held_by_most; /* of those waited for; looked at where config.robust */
};

bool said_same(const uint8_t *a, const uint8_t *b); /* digests */
bool said_none(const uint8_t *digest);              /* all 0: there is no model */

/* It has said that it holds the model of that digest. */
bool said_holds(const struct record *r, const uint8_t *digest);

/* All who are waited for are in this class, in the generation of this node if that is, too. */
bool said_all(const struct parley_node *node, enum roster_class phase);
bool said_one_digest(const struct parley_node *node); /* all who hold, hold the same */
/* Of those waited for, one who has come least far. NULL: there are none. */
const struct record *said_last(const struct parley_node *node);
struct pick said_pick(struct parley_node *node);
/* A live member that has the model of this digest: this node itself if it can be, then one that is
 * not known to be out of its reach; NONE: nobody. */
int said_holder(struct parley_node *node, const uint8_t *digest);
/* Somebody waited for has locked a model that can still be had: that one will be picked. */
bool said_locked(struct parley_node *node);
/* This node's own word. */
bool said_is_distrusted(const struct parley_node *node, uint64_t boot);
/* Every live member is DONE. */
bool said_all_done(const struct parley_node *node);
/* A DONE member whose verdict counts here; NONE if there is none. */
int said_done(const struct parley_node *node);
/* A live member joins: it may train already, by news on their way, or will soon say it is LATE. */
bool said_joining(const struct parley_node *node);

#endif
