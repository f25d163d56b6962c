/* membership.h: who is there: the members' records, and what this node alone knows of each.
 *
 * Thread rule: as the node's.
 */
#ifndef PARLEY_CORE_MEMBERSHIP_H
#define PARLEY_CORE_MEMBERSHIP_H

#include <stdbool.h>
#include <stdint.h>

#include "parley/node.h"

struct conn;
struct record;

enum { CONFIRMERS_MAX = 3 }; /* from so many on a suspicion has its shortest time */

/* What this node alone knows of a member. */
struct member {
    uint64_t suspect_since_us, suspect_until_us; /* while SUSPECT */
    uint64_t confirmers[CONFIRMERS_MAX];
    uint32_t confirmations;
    uint64_t dead_since_us;
    uint64_t redial_us;     /* a dead member's address is tried again then */
    uint64_t busy_us;       /* it said BUSY, or can't be reached: not before then */
    uint64_t unanswered_us; /* so long it has left offers unanswered, since it answered one, ... */
    uint64_t asked_us;      /* ... the last of then */
    uint64_t patience_us;   /* an offer to it is given up after so long; 0: as to anybody */
    uint64_t spoilt_us;     /* what it sent was not finite: nothing of it is mixed before then */
    uint64_t denied_us;     /* others took it for dead, and it was told so then; 0: never */
    uint64_t alive_us;      /* a frame of it came then, the last over links that ended with BYE */
    bool doubted;           /* suspected, and alive until then */
    bool counted;           /* this node's proposal has settled with it */
    bool refused; /* since it was last alive its address refused a dial, or is another's */
    uint64_t
        unreached_us; /* it lives and no dial comes through, since then; NEVER: that was said */
    uint64_t applied;
    double mass, mass_abs;
    uint64_t heard; /* own samples when its were heard of: training_reckoned() */
};

bool membership_is_live(const struct parley_node *node, int member);
/* No link to it can be had, and that was said. */
bool membership_is_unreached(struct parley_node *node, int member);
/* A random peer, ALIVE and not just suspect, for which fits() holds; NONE if there is none. */
int membership_pick(struct parley_node *node, bool (*fits)(struct parley_node *, int));

/* Own record changed: urgent changes go to everybody at once, lazy ones now and then. */
void membership_changed(struct parley_node *node, bool urgent);
void membership_start(struct parley_node *node);
void membership_leave(struct parley_node *node);

/* Every move between states goes through here. reason NULL: it is not told. */
void membership_state(struct parley_node *node, int member, enum parley_member_state state,
                      const char *reason);
/* The member gets that record at once, over its own link; false: it has none, or there is no room.
 * Lifeguard, section IV-C: so hears who is taken for silent or gone, and refutes; what others relay
 * may have to come a long way, and late. */
bool membership_tell(struct parley_node *node, int member, const struct record *record);
/* A further one, `by`, suspects it. */
void membership_confirm(struct parley_node *node, int member, uint64_t by);
/* That process is gone for good, and with it what it had decided. */
void membership_gone(struct parley_node *node, uint64_t boot);

/* It seems silent or gone. */
void membership_suspect(struct parley_node *node, int member, const char *reason);
/* What links tell of members. */
void membership_contact(struct parley_node *node, struct conn *conn); /* HELLO is done */
void membership_lost(struct parley_node *node, int member);           /* its connection broke */
void membership_refused(struct parley_node *node, int member);        /* its address did, a dial */
/* It took a dial, and was gone before HELLO. */
void membership_hung_up(struct parley_node *node, int member);
/* A dial came to nothing. */
void membership_unreached(struct parley_node *node, int member, const char *why);
void membership_replaced(struct parley_node *node, int member); /* another boot has its place */

/* Whether anything came of it since then, also over a link that has ended: who has no room for one
 * says so, and that is an answer, too. */
bool membership_heard(struct parley_node *node, int member, uint64_t since_us);
/* ... within the last probe interval. */
bool membership_hears(struct parley_node *node, int member);
/* It may be dialled again. */
void membership_forgive(struct parley_node *node, int member);
/* Whether it is dead and its address has not refused a dial since: it may be cut off, and is
 * dialled. */
bool membership_seek(struct parley_node *node, int member);

void membership_timers(struct parley_node *node);
uint64_t membership_deadline(const struct parley_node *node);

#endif
