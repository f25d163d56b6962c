/* narrow.c: see narrow.h.
 *
 *   forward   turns the weights into [out][in], so that both factors of a dot product lie in order;
 *             dot products of a few rows with a few outputs, whose sums stay in registers
 *   weights   sums of neighbouring weight rows in one vector, which so is full whatever `out` is;
 *             turns them back
 */
#include "kernels/layers/narrow.h"

#include <string.h>

#include "kernels/layers/lanes.h"

enum { PAIR = 2, FEW = 5, ROWS_MAX = 4, QUAD = 4 };
enum { SUMS = ROWS_MAX * FEW };
/* Weight rows between two turns: some KiB. AROUND: a vector pair that begins before the first. */
enum { BLOCK = 64, AROUND = PAIR * LANES_COUNT, STEP = AROUND + BLOCK };

typedef float quad __attribute__((vector_size(16), aligned(4), may_alias));

static inline size_t whole_quads(size_t n)
{
    return (n + QUAD - 1) / QUAD * QUAD;
}

size_t narrow_turned(size_t in, size_t out)
{
    return whole_quads(out) * lanes_whole(in);
}

/* lanes_fold of one sum. */
KERNEL_BODY float fold(const float *lane)
{
    const quad *q = (const quad *)lane;
    quad sum = (q[0] + q[2]) + (q[1] + q[3]);

    return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

/* How many of `rest` outputs to take next: at most FEW, and no odd little rest at the end. */
static inline size_t few_of(size_t rest)
{
    size_t times = (rest + FEW - 1) / FEW;

    return (rest + times - 1) / times;
}

/* Where in the inputs a row begins. */
static inline size_t row_at(const struct narrow *n, size_t row)
{
    return n->at != NULL ? n->at[row] : row * n->in;
}

static inline float input_at(const struct narrow *n, size_t at)
{
    return n->pixels.bytes != NULL ? (float)n->pixels.bytes[at] : n->x[at];
}

static inline float scale_of(const struct narrow *n)
{
    return n->pixels.bytes != NULL ? n->pixels.scale : 1;
}

/* What the sums of each output begin with: they add products of pixels that are not shifted. */
static inline void begin_sums(float *begin, const struct narrow *n, const float *delta)
{
    memset(begin, 0, n->out * sizeof *begin);
    if (n->pixels.bytes == NULL) return;
    for (size_t row = 0; row < n->rows; row++)
        for (size_t j = 0; j < n->out; j++)
            begin[j] += delta[row * n->out + j];
    for (size_t j = 0; j < n->out; j++)
        begin[j] *= -n->pixels.shift;
}

/* last: [rows][LANES_COUNT], what is behind the first `whole` of each row, and zeroes. */
static inline void take_rest(float *last, const struct narrow *n, const size_t *at, int rows,
                             size_t whole)
{
    for (int i = 0; i < rows; i++, last += LANES_COUNT)
        for (size_t k = 0; k < LANES_COUNT; k++)
            last[k] = whole + k < n->in ? input_at(n, at[i] + whole + k) : 0;
}

/* Of two vectors, each with one square of 4 x 4 or two side by side, what turning puts together. */
#define FIRSTS_4 0, 4, 1, 5
#define FIRSTS_8 0, 8, 1, 9, 4, 12, 5, 13
#define SECONDS_4 2, 6, 3, 7
#define SECONDS_8 2, 10, 3, 11, 6, 14, 7, 15

#define PATH_LOOPS "kernels/layers/narrow_path.h"
#include "kernels/paths.h"

#define ROW(path) forward_##path, weights_##path, add_dots_##path, across_##path

const struct narrow_kernels narrow_kernels[KERNEL_PATHS] = KERNEL_TABLE(ROW);
