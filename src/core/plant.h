/* plant.h: the bugs that a test-only build of the core can have, one at a time: proof that the
 * simulator's checkers see (tests/swarm/planted.c). In the product PLANTED() is 0.
 *
 * Each is one line where it stands: P(NAME, what it does).
 */
#ifndef PARLEY_CORE_PLANT_H
#define PARLEY_CORE_PLANT_H

#define PLANTS(P)                                                                                  \
    P(APPLY_BEFORE_DECISION, "the responder applies at READY")                                     \
    P(FORGET_DOUBT, "the responder forgets what is in doubt")                                      \
    P(APPLY_AGAIN, "an answer heard twice is applied twice")                                       \
    P(WAIT_FOR_BUSY, "an offer to a busy node waits for an answer")                                \
    P(HOLD_EARLY, "a node picks before all have proposed")                                         \
    P(DONE_WITHOUT_LOCK, "all HELD is enough for who has LOCKED")                                  \
    P(ACK_UNAPPLIED, "the responder acknowledges and has added nothing")                           \
    P(DROP_UNCOUNTED, "what is given up is not counted")                                           \
    P(OTHER_SHARE, "the initiator does not heed the responder's share")                            \
    P(OLD_SNAPSHOT, "a snapshot is named that lacks a delta decided before")                       \
    P(OTHER_SNAPSHOT, "the delta is taken from another snapshot than the one named")               \
    P(EARLY_RELEASE, "a slot is free while chunks of its buffers are under way")                   \
    P(LEDGER_TWICE, "the ledger counts a delta of the responder twice")                            \
    P(REFUTE_IN_VAIN, "refuting does not raise the incarnation")                                   \
    P(SUSPECT_FOR_EVER, "a suspicion does not expire")                                             \
    P(STOP_UNHEARD, "a stop that others say is not obeyed")                                        \
    P(PICK_OWN, "each node picks its own proposal")                                                \
    P(STALE_SKETCH, "sketches are of an old model")                                                \
    P(SETTLE_UNMIXED, "settling ends at the first measure, whatever it is")                        \
    P(JOIN_UNTRAINED, "a late joiner does not adopt")                                              \
    P(FETCH_UNUSED, "the digest of the fetched model is announced, the own model kept")            \
    P(COUNT_FORGETFUL, "who was started anew counts for a majority, whatever it may have locked")  \
    P(SEND_ON, "more is sent where a chunk has failed")

enum plant {
    PLANT_NONE,
#define P(name, what) PLANT_##name,
    PLANTS(P)
#undef P
        PLANT_COUNT
};

#ifdef PARLEY_PLANTS
extern enum plant parley_planted; /* the test's */
#define PLANTED(name) (parley_planted == PLANT_##name)
#else
#define PLANTED(name) 0
#endif

#endif
