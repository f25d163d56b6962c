/* floats.h: two vectors and a few buffers, as a node has them, in static memory.
 *
 * Before it is included: FLOATS of a vector, STRIDE from one buffer to the next, BUFFERS, CHUNKS of
 * a buffer, and AVERAGED of the vectors.
 */
#ifndef PARLEY_TESTS_FLOATS_H
#define PARLEY_TESTS_FLOATS_H

#include "compute/vectors.h"

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

#endif
