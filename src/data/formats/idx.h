/* idx.h: image sets in the IDX format of MNIST (big-endian header, then bytes), plain or gzip.
 *
 * Thread rule: pure; call from any thread.
 */
#ifndef PARLEY_DATA_IDX_H
#define PARLEY_DATA_IDX_H

#include "data/dataset.h"
#include "data/formats/bytes.h"

/* What a header may claim, beside BYTES_MAX. */
#define IDX_FEATURES_MAX (UINT32_C(1) << 24)

/* Makes `set` (which need not be initialised) from a file of images (magic 0x00000803) and one of
 * labels (0x00000801). classes: 0 for a training set, whose classes are then its largest label + 1;
 * for a test set those of its training set. labels.data NULL: all labels are 0. The scaling is not
 * measured yet.
 * PARLEY_EDATA with a message in why[why_size], PARLEY_ENOMEM; then `set` is zeroed. */
PARLEY_CHECK int idx_load(struct dataset *set, struct bytes images, struct bytes labels,
                          uint32_t classes, char *why, size_t why_size);

#endif
