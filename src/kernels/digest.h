/* digest.h: SHA-256 of a model, the name by which nodes agree on it.
 *
 * Hashed are, all little-endian: the 16 bytes "parley-model-1" padded with zeros; the run id (u64);
 * the number of tensors (u32); for each the length of its name (u32), the name, the rank (u32) and
 * the shape (u32 each); then the fp32 vector's bytes. Without tensors the vector counts as one
 * tensor named "vector" of shape [n].
 * Thread rule: a struct digest belongs to one thread; the rest is pure.
 */
#ifndef PARLEY_KERNELS_DIGEST_H
#define PARLEY_KERNELS_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#include "parley/error.h"
#include "train/model.h"

#define DIGEST_BYTES 32
#define DIGEST_TEXT_BYTES 72 /* "sha256:", 64 hexadecimal digits and the 0 */

/* A hash under way, for vectors and files that come in pieces. */
struct digest {
    void *context; /* owned */
};

/* PARLEY_ENOMEM. digest_close must follow also after an error of the other two. */
PARLEY_CHECK int digest_init(struct digest *digest);
PARLEY_CHECK int digest_add(struct digest *digest, const void *bytes, size_t size);
/* What goes before the bytes of a model's n floats. tensors may be NULL when tensor_count is 0. */
PARLEY_CHECK int digest_add_shape(struct digest *digest, size_t n, const struct tensor *tensors,
                                  uint32_t tensor_count, uint64_t run);
PARLEY_CHECK int digest_end(struct digest *digest, uint8_t out[DIGEST_BYTES]);
void digest_close(struct digest *digest);

/* The digest of a whole model x: [n] in memory. PARLEY_ENOMEM. */
PARLEY_CHECK int digest_model(const float *x, size_t n, const struct tensor *tensors,
                              uint32_t tensor_count, uint64_t run, uint8_t out[DIGEST_BYTES]);

/* Plain SHA-256, for files. PARLEY_ENOMEM. */
PARLEY_CHECK int digest_bytes(const void *bytes, size_t size, uint8_t out[DIGEST_BYTES]);

/* "sha256:9f2c..." in lower case. */
void digest_text(const uint8_t digest[DIGEST_BYTES], char text[DIGEST_TEXT_BYTES]);

/* The reverse; only exactly that form. PARLEY_EMALFORMED. */
PARLEY_CHECK int digest_parse(const char *text, uint8_t digest[DIGEST_BYTES]);

#endif
