/* safetensors.h: named fp32 tensors as bytes, in the safetensors format.
 *
 *   u64 header length | JSON header, padded with spaces to 8 | data
 *
 * The header is written apart from the data, so that a driver can send header and vectors to a file
 * without a copy, and it depends on nothing but its arguments: equal models make equal files.
 * The reader trusts nothing: only F32, ranks 1 to 4, names of 1 to 31 printable characters, data
 * that the tensors cover exactly, in order and without a gap; sizes within the limits below. Thread
 * rule: pure; an open file may be read from any thread.
 */
#ifndef PARLEY_FILE_SAFETENSORS_H
#define PARLEY_FILE_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "parley/error.h"
#include "train/model.h"

/* Room for 65,536 classes or columns with names of 200 bytes. Hostile JSON takes 50 times its size
 * in memory, which is why it is not the 100 MB that other readers of the format allow. */
#define SAFETENSORS_HEADER_BYTES_MAX (32 * 1024 * 1024)
#define SAFETENSORS_TENSORS_MAX 4096

struct safetensors_pair {
    const char *key, *value;
};

/* Makes the bytes that stand before the data, length field included; *header is to be freed.
 * tensors: their offsets follow one another from 0, their names are what the reader takes. Keys and
 * names must differ; pairs must be UTF-8. PARLEY_EUSAGE when these are broken, PARLEY_ELIMIT,
 * PARLEY_ENOMEM. */
PARLEY_CHECK int safetensors_header(const struct tensor *tensors, uint32_t tensor_count,
                                    const struct safetensors_pair *pairs, uint32_t pair_count,
                                    uint8_t **header, size_t *header_size);

struct safetensors {
    struct tensor *tensors; /* [tensor_count] by offset; owned */
    uint32_t tensor_count;
    size_t floats;       /* in all tensors */
    const uint8_t *data; /* [4 * floats], inside the bytes given to open; need not be aligned */
    void *header;        /* the JSON value; owned */
};

/* Reads bytes[size], which must outlive *file. PARLEY_EDATA with the reason in why[why_size],
 * PARLEY_ENOMEM; nothing to close then. */
PARLEY_CHECK int safetensors_open(struct safetensors *file, const uint8_t *bytes, size_t size,
                                  char *why, size_t why_size);

/* NULL if there is none. Borrowed until close. */
const char *safetensors_metadata(const struct safetensors *file, const char *key);
const struct tensor *safetensors_tensor(const struct safetensors *file, const char *name);

void safetensors_close(struct safetensors *file);

#endif
