/* digits.h: the built-in data set: ten classes of drawn digits, small grey images.
 *
 * Made for a first run without files: hard enough that a linear model stays clearly behind a small
 * MLP, quick enough to draw at every start. Each sample is a pure function of (seed, its number),
 * by arithmetic that IEEE 754 fixes (no libm but sqrt), so all nodes draw the same set.
 * Thread rule: pure; call from any thread.
 */
#ifndef PARLEY_DATA_DIGITS_H
#define PARLEY_DATA_DIGITS_H

#include "data/dataset.h"

#define DIGITS_SIDE 20 /* images are 20 by 20 */
#define DIGITS_TRAIN 12000
#define DIGITS_TEST 2000

/* Makes the training set, or the test set, of `seed`; `set` need not be initialised, and is not
 * scaled. PARLEY_ENOMEM; then it is zeroed. */
PARLEY_CHECK int digits_make(struct dataset *set, bool test, uint64_t seed);

#endif
