/* agreement.h: from the end of training to one model that all live nodes hold.
 *
 *   agreement.c  its phases
 *   settling.c   the first of them: averaging only
 *   said.c       what the members' records, taken together, say about it
 *   quorum.c     who may decide
 *   holding.c    how a node gets hold of the model that was picked
 *   late.c       who is not with the others
 *
 * Thread rule: as the node's.
 */
#ifndef PARLEY_CORE_AGREEMENT_H
#define PARLEY_CORE_AGREEMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/out.h"
#include "parley/node.h"

enum {
    AGREEMENT_PATIENCE_US = 10000000, /* in which nothing may move */
    SETTLE_TIMES = 5                  /* config.settle_timeout_us, at most */
};

enum candidate_state {
    CANDIDATE_NONE,
    CANDIDATE_TAKING,
    CANDIDATE_HASHING,
    CANDIDATE_OWN,      /* proposed */
    CANDIDATE_FETCHING, /* the picked one comes in */
    CANDIDATE_CHECKING,
    CANDIDATE_WRITING,
    CANDIDATE_HELD,
    CANDIDATE_PUBLISHING,
    CANDIDATE_PUBLISHED
};

struct agreement {
    enum candidate_state candidate;
    uint32_t buffer, other;               /* the candidate's, and the one that a fetch fills */
    uint8_t own[PARLEY_DIGEST_BYTES];     /* what `buffer` holds */
    uint8_t pick[PARLEY_DIGEST_BYTES];    /* what is fetched, written or held */
    uint8_t written[PARLEY_DIGEST_BYTES]; /* all 0: nothing yet */
    bool failed_write;
    double score;
    uint64_t proposer; /* of the pick: its boot; 0: there is none, or others are DONE with it */
    uint64_t progress_us, patience_us, since_us;
    uint64_t from_us;     /* its training ended then; 0: not yet, or it came after it */
    uint32_t settlers;    /* while in SETTLE: those that train no more, this one among them, ... */
    uint64_t mixes_us;    /* ... and when they last became more */
    uint64_t sweeps_us;   /* their first sweep was under way then (pairing.h) */
    uint64_t fingerprint; /* of news, and of the own fetch, to see whether anything moved */
    uint64_t fetched, fetched_us; /* by all, and when it last changed */
    uint64_t alone_news; /* of the roster's, by which nobody was back whom the proposal lacks */
    uint64_t verify_since_us; /* a small view dials the missing since then; 0: not yet */
    uint32_t uncounted;       /* here, but not of a majority, when that was last told */
    double drift_before;
    uint32_t known, held; /* when it was published */
    uint64_t done_us;
    uint64_t heard_us;  /* that another is DONE with what this node holds; 0: not yet */
    bool follows;       /* while LATE: another LATE node went back to SETTLE */
    bool waits;         /* while LATE: for a majority, that was said */
    uint64_t rejoin_us; /* until then others are to follow this node, which has done so; 0: not */
};

void agreement_advance(struct parley_node *node);
/* Says that this node's copy is what it proposes, in that generation. */
void agreement_propose(struct parley_node *node, uint32_t generation);
void agreement_done(struct parley_node *node, const struct op *op,
                    const struct parley_event *event);
/* It has said that it holds what this node does, be it dead by then, and has not given up. */
bool agreement_holds(const struct parley_node *node, uint32_t member);
uint64_t agreement_deadline(const struct parley_node *node);
uint64_t agreement_end_us(const struct parley_node *node); /* it is given up then, unless a model
                                                              still comes in somewhere */
/* While LATE: gets hold of what was picked, for those who don't reach who proposed it. */
void agreement_pass_on(struct parley_node *node);
/* Says goodbye to everybody and ends; without an agreement, and why. */
void agreement_finish(struct parley_node *node, int error);
void agreement_give_up(struct parley_node *node);

#endif
