/* hand.h: a handoff on a loop, and the two vectors and few buffers that it is of, in static memory.
 *
 * Before it is included: FLOATS of a vector, STRIDE from one buffer to the next, BUFFERS, CHUNKS of
 * a buffer, and AVERAGED of the vectors.
 */
#ifndef PARLEY_TESTS_HAND_H
#define PARLEY_TESTS_HAND_H

#include "check.h"
#include "compute/handoff.h"

static float x[FLOATS], m[FLOATS], block[BUFFERS * STRIDE];
static struct mix_part parts[BUFFERS];
static uint64_t sums[BUFFERS * CHUNKS];
static double norms_sq[BUFFERS];
static bool known[BUFFERS];
static struct vectors vectors = {.count = FLOATS,
                                 .trained = {x, m},
                                 .block = block,
                                 .stride = STRIDE,
                                 .buffers = BUFFERS,
                                 .averaged = AVERAGED,
                                 .parts = parts,
                                 .sums = sums,
                                 .chunks = CHUNKS,
                                 .norms_sq = norms_sq,
                                 .known = known};
static struct wake wake;
static struct mailbox answers;
static struct handoff handoff;

static bool hand_open(uv_loop_t *loop)
{
    return !uv_loop_init(loop) && !wake_init(&wake, loop) && !mailbox_init(&answers, &wake) &&
           !handoff_init(&handoff, &vectors, &answers);
}

static void hand_close(uv_loop_t *loop)
{
    handoff_close(&handoff);
    mailbox_close(&answers);
    wake_close(&wake);
    uv_run(loop, UV_RUN_DEFAULT);
    check(uv_loop_close(loop) == 0, "nothing is left open");
    wake_free(&wake);
}

#endif
