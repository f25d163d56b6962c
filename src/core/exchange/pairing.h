/* pairing.h: with whom a node averages while it settles.
 *
 * Thread rule: as the node's.
 */
#ifndef PARLEY_CORE_PAIRING_H
#define PARLEY_CORE_PAIRING_H

#include <stdbool.h>
#include <stdint.h>

#include "core/wire/message.h"
#include "parley/node.h"

struct pairing {
    uint32_t round;
    uint32_t swept;  /* round when the sweep under way began, ... */
    uint32_t mixed;  /* ... and exchanges that have ended since */
    uint32_t rounds; /* that it waits for: 1, and those in which it meets nobody */
    int partner;     /* of this round, or NONE */
    bool asks;       /* this node asks it */
    bool broken;     /* somebody does not keep to it: by chance from here on */
    uint64_t among;  /* the roster's: who stands in line, as the rounds are counted, */
    uint64_t waits;  /* ... and how often that had changed */
    uint64_t since_us, longest_us; /* when this round began; how long one has taken at most */
    uint64_t nudged_us;            /* when it last asked a partner that should have asked */
};

void pairing_start(struct parley_node *node); /* SETTLE begins */
/* Others took this node for dead, and begin anew as it is back: so does it. */
void pairing_returned(struct parley_node *node);
int pairing_partner(const struct parley_node *node); /* of this round; NONE: there is none */
/* Whom to ask, NONE: nobody now. False where that is left to chance. */
bool pairing_peer(struct parley_node *node, int *peer);
/* After it has been busy: how much longer than usual it is not asked again. */
uint64_t pairing_pause_us(const struct parley_node *node);
/* Puts into an offer how this node chooses now. */
void pairing_say(const struct parley_node *node, struct message_exchange *offer);
/* Who made this offer is to ask again once it is its turn. */
bool pairing_refuses(struct parley_node *node, const struct message_exchange *offer);
/* Of d, what each side of such an exchange with `peer` adds. */
double pairing_share(const struct parley_node *node, int peer,
                     const struct message_exchange *offer);
/* An exchange is in x that was begun to settle, with the round and the line of its offer. */
void pairing_mixed(struct parley_node *node, int peer, uint32_t round, uint32_t line);

/* A sweep begins: the rounds after which all models are equal, or by chance as many exchanges as
 * that takes at least. */
void pairing_sweep(struct parley_node *node);
bool pairing_is_swept(struct parley_node *node);
/* The first sweep of those who stand in line now is not over, and goes by the schedule. */
bool pairing_is_first(const struct parley_node *node);
bool pairing_is_kept(const struct parley_node *node); /* it goes by the schedule */

#endif
