/* npy.h: arrays in NumPy's format, versions 1.0 to 3.0 (numpy.org, "numpy.lib.format").
 *
 * Read are f4, f8, u1, i4 and i8, little-endian, in C order.
 * Thread rule: pure; call from any thread.
 */
#ifndef PARLEY_DATA_NPY_H
#define PARLEY_DATA_NPY_H

#include "data/dataset.h"
#include "data/formats/bytes.h"

/* As `classes`: labels are numbers to be met (dataset.h, targets). */
#define NPY_NUMBERS UINT32_MAX

/* What a header may claim, beside BYTES_MAX. */
#define NPY_FEATURES_MAX (UINT32_C(1) << 24)

/* Makes `set` (which need not be initialised) from samples x, [n][...] of rank 2 to 4, and labels
 * y, [n] or [n][1]: whole numbers from 0. u1 of rank 3 ([n][height][width]) and 4
 * ([n][channels][height][width]) are images, and refused where the channels seem to be last; all
 * else is a table of floats.
 * classes: 0 for a training set, whose classes are then its largest label + 1; for a test set those
 * of its training set. y.data NULL: all labels are 0. The scaling is not measured yet.
 * PARLEY_EDATA with a message in why[why_size] that says file and byte or sample, what is there and
 * what should be; PARLEY_ENOMEM; then `set` is zeroed. */
PARLEY_CHECK int npy_load(struct dataset *set, struct bytes x, struct bytes y, uint32_t classes,
                          char *why, size_t why_size);

#endif
