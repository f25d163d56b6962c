/* image.c: plain loops, compiled for each path.
 *
 * Rows of small images are shorter than a vector or two, so whole vectors are written: what is too
 * much of one row is overwritten with the next.
 */
#include "kernels/layers/image.h"

#include <string.h>

enum { MOVED_FLOATS = 512 };

/* Compilers take plain loops of so many steps apart before they see vectors in them; so these are
 * said to be vectors, of LANES floats as the path's registers: GCC compares and shuffles wider ones
 * float by float. */
#define LANED(lanes) __attribute__((vector_size((lanes)*4), aligned(4), may_alias))

/* Which lanes a shuffle takes, of vectors of 4, 8 and 16: of two every other; of one each lane of
 * its lower or upper half twice; of each pair the first, or the second, in both places. */
#define EVENS_4 0, 2, 4, 6
#define EVENS_8 EVENS_4, 8, 10, 12, 14
#define EVENS_16 EVENS_8, 16, 18, 20, 22, 24, 26, 28, 30
#define ODDS_4 1, 3, 5, 7
#define ODDS_8 ODDS_4, 9, 11, 13, 15
#define ODDS_16 ODDS_8, 17, 19, 21, 23, 25, 27, 29, 31
#define LOWS_4 0, 0, 1, 1
#define LOWS_8 LOWS_4, 2, 2, 3, 3
#define LOWS_16 LOWS_8, 4, 4, 5, 5, 6, 6, 7, 7
#define HIGHS_4 2, 2, 3, 3
#define HIGHS_8 4, 4, 5, 5, 6, 6, 7, 7
#define HIGHS_16 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15
#define FIRSTS_4 0, 0, 2, 2
#define FIRSTS_8 FIRSTS_4, 4, 4, 6, 6
#define FIRSTS_16 FIRSTS_8, 8, 8, 10, 10, 12, 12, 14, 14
#define SECONDS_4 1, 1, 3, 3
#define SECONDS_8 SECONDS_4, 5, 5, 7, 7
#define SECONDS_16 SECONDS_8, 9, 9, 11, 11, 13, 13, 15, 15
#define NUMBERS_4 0, 1, 2, 3
#define NUMBERS_8 NUMBERS_4, 4, 5, 6, 7
#define NUMBERS_16 NUMBERS_8, 8, 9, 10, 11, 12, 13, 14, 15

/* Sums are taken in as many parts on each path, so that they are the same. */
enum { PARTS = 16 };

#define PATH_LOOPS "kernels/layers/image_path.h"
#include "kernels/paths.h"

#define ROW(path)                                                                                  \
    take_##path, give_##path, add_bias_##path, pool_##path, unpool_##path, sum_##path,             \
        scale_##path, blend_##path

const struct image_kernels image_kernels[KERNEL_PATHS] = KERNEL_TABLE(ROW);
