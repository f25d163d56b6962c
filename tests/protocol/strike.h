/* strike.h: a node dies, or a connection breaks, at the k-th frame of one type. */
#ifndef PARLEY_TESTS_STRIKE_H
#define PARLEY_TESTS_STRIKE_H

#include "scene.h"

/* Strikes once. */
struct strike {
    uint8_t type;
    uint64_t number;
    bool arriving;    /* when it is about to be received, else before it leaves */
    bool at_receiver; /* who is struck */
    bool cut;         /* the connection, not a node */
    bool done;
    uint32_t from, to;
};

/* For parley_sim_on_frame(); arg: the strike. */
static inline void strike(struct parley_sim *sim, const struct parley_sim_frame *frame, void *arg)
{
    struct strike *strike = arg;
    if (strike->done || frame->type != strike->type || frame->arriving != strike->arriving ||
        frame->number < strike->number)
        return;
    strike->done = true;
    strike->from = frame->from;
    strike->to = frame->to;
    if (strike->cut)
        parley_sim_disconnect(sim, frame->from, frame->to);
    else
        parley_sim_kill(sim, strike->at_receiver ? frame->to : frame->from, false);
}

#endif
