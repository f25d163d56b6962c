/* model_file.h: a parley model as a safetensors file: tensors, how inputs are scaled, where it is
 * from.
 *
 * The file is header | x | shift | scale | label. The model's own tensors come first, then
 * input.shift and input.scale (shape [1] for images, [features] for tables), and where labels are
 * numbers, label.shift and label.scale (shape [1]). All of it is a function of the agreed model and
 * the cluster's settings: no node name and no time, so the file is identical on all nodes.
 *
 * The digest, which the nodes agree on, is of the parameters alone. All else that a model's answers
 * hang on, the texts and the scaling, is under the seal: metadata "seal", SHA-256 over
 *
 *   key 0 value 0      of each text that is there, in the order of model_file.c's table
 *   u64 count, floats  of input.shift, input.scale, label.shift, label.scale; count 0: not there
 *
 * Decision: a file without a seal is refused.
 * Why: were it taken, a seal whose key was damaged would pass for none.
 * Given up: files of before there were seals, which can't be told from damaged ones.
 *
 * Thread rule: pure; an open file may be read from any thread.
 */
#ifndef PARLEY_FILE_MODEL_FILE_H
#define PARLEY_FILE_MODEL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "file/piece.h"
#include "file/safetensors.h"
#include "kernels/digest.h"
#include "parley/error.h"
#include "train/model.h"

#define MODEL_FILE_TEXT_BYTES 256
#define MODEL_FILE_VOCABULARY_BYTES 1025 /* 256 characters, and a zero */

/* Enough to rebuild the model and its inputs. */
struct model_meta {
    char model[MODEL_FILE_TEXT_BYTES]; /* "mlp:256,128" in its normal form; "" for a bare vector */
    char data[MODEL_FILE_TEXT_BYTES];  /* "digits"; in a form that is equal on all nodes */
    char vocabulary[MODEL_FILE_VOCABULARY_BYTES]; /* of text, in the order of its classes; or "" */
    const char *class_names; /* of a table, one a line, in their order; or NULL; borrowed */
    const char *columns;     /* likewise, of its values: one for each of `features` */
    uint32_t features, classes;
    uint32_t channels, height, width; /* 0 for tables */
    uint32_t scaling;                 /* floats in shift and in scale: 0, 1 or features */
    const void *shift, *scale;        /* [scaling] floats each; borrowed, and need not be aligned */
    bool numbers;                     /* its labels are numbers, */
    float label[2];                   /* whose shift and scale these are */
    uint64_t run;
    uint8_t digest[DIGEST_BYTES]; /* as digest_model makes it */
};

/* Whether a label may be scaled by this shift and this scale, which is to be above 0. */
bool model_file_scales_label(const float scaling[2]);

/* Whether inputs may be scaled by these, [count] floats each, not aligned. A scale may be 0, that
 * of a column that counts for nothing. */
bool model_file_scales_inputs(const void *shift, const void *scale, size_t count);

enum { MODEL_FILE_PIECES = 5 };

/* The file of x[n], piece after piece: of the first, its header, the bytes are to be freed (NULL
 * after an error), the others stay x's and what `meta` borrows. tensors as for digest_model (none:
 * one named "vector" of shape [n]). PARLEY_EUSAGE for texts that are not printable, for a
 * vocabulary or names that are not UTF-8 or not of as many characters or lines as there must be,
 * for tensors that do not cover [n] in order or have the scaling's names, PARLEY_ELIMIT for more
 * tensors or longer names than a header holds, PARLEY_ENOMEM. */
PARLEY_CHECK int model_file_pieces(const struct model_meta *meta, const float *x, size_t n,
                                   const struct tensor *tensors, uint32_t tensor_count,
                                   struct piece pieces[MODEL_FILE_PIECES]);

struct model_file {
    struct model_meta meta;       /* its names and scaling are `file`'s */
    const struct tensor *tensors; /* [tensor_count], the model's only */
    uint32_t tensor_count;
    size_t n;                /* floats in x */
    const uint8_t *x;        /* [4 * n], not aligned: memcpy from here */
    struct safetensors file; /* owned */
};

/* Reads bytes[size], which must outlive *file. The seal is checked; the digest is not recomputed
 * here, as that takes a while.
 * PARLEY_EDATA with the reason in why[why_size], PARLEY_ENOMEM; nothing to close then. */
PARLEY_CHECK int model_file_open(struct model_file *file, const uint8_t *bytes, size_t size,
                                 char *why, size_t why_size);

/* Recomputes the digest of x and compares it with the stated one: PARLEY_EDATA if they differ. */
PARLEY_CHECK int model_file_verify(const struct model_file *file, char *why, size_t why_size);

void model_file_close(struct model_file *file);

#endif
