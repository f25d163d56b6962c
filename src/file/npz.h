/* npz.h: tensors as numpy.load() reads them: a zip archive of .npy members, none compressed.
 *
 * Zip by PKWARE's APPNOTE 6.3, sections 4.3.7, 4.3.12 and 4.3.16; NPY by numpy.org,
 * "numpy.lib.format", version 1.0. The bytes depend on nothing but the tensors: dates are zip's
 * first, 1980.
 * Thread rule: pure.
 */
#ifndef PARLEY_FILE_NPZ_H
#define PARLEY_FILE_NPZ_H

#include <stddef.h>
#include <stdint.h>

#include "parley/error.h"
#include "train/model.h"

#define NPZ_BYTES_MAX UINT32_MAX /* of an archive without zip's 64-bit fields */

/* A whole archive, a member NAME.npy a tensor; *bytes is to be freed. data: fp32, little-endian,
 * where each tensor lies at its offset. PARLEY_ELIMIT: more than NPZ_BYTES_MAX or 65535 tensors;
 * PARLEY_ENOMEM. */
PARLEY_CHECK int npz_write(const struct tensor *tensors, uint32_t tensor_count, const uint8_t *data,
                           uint8_t **bytes, size_t *size);

#endif
