/* model.h: layers as named tensors in one flat vector (see trainer.h for the way in).
 *
 * Dense layers one after the other: ReLU after each but the last, whose outputs are the logits.
 * Weights are stored [in][out], for then the two large products of a step (forward, and the
 * gradient of the weights) run at OpenBLAS's best speed for small batches.
 * Thread rule: a model never changes once made; read it from any thread.
 */
#ifndef PARLEY_TRAIN_MODEL_H
#define PARLEY_TRAIN_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "parley/error.h"

#define MODEL_HIDDEN_MAX 16u                     /* hidden layers */
#define MODEL_WIDTH_MAX 65536u                   /* units of a hidden layer, and classes */
#define MODEL_FEATURES_MAX (1u << 24)            /* inputs */
#define MODEL_PARAMETERS_MAX ((uint64_t)1 << 31) /* floats: 8 GiB */

/* One named tensor inside the flat vector. */
struct tensor {
    char name[32];
    uint32_t rank;     /* 1 to 4 */
    uint32_t shape[4]; /* outermost first */
    size_t offset;     /* in floats from the vector's start */
    size_t count;      /* product of the shape */
};

/* One dense layer: y[out] = x[in] * weight[in][out] + bias[out]. */
struct layer {
    uint32_t in, out;
    size_t weight, bias; /* offsets, in floats from the vector's start */
};

struct model; /* opaque */

/* spec: "softmax", or "mlp:" and the widths of 1 to 16 hidden layers, as in "mlp:256,128".
 * features and classes come from the data. PARLEY_EUSAGE with one line in why[why_size], which
 * names the value and what is valid; PARLEY_ENOMEM. */
PARLEY_CHECK int model_new(struct model **model, const char *spec, uint32_t features,
                           uint32_t classes, char *why, size_t why_size);
size_t model_parameters(const struct model *model);

/* "layer0.weight", "layer0.bias", "layer1.weight", ...: without gaps, in the vector's order. */
const struct tensor *model_tensors(const struct model *model, uint32_t *count);
const struct layer *model_layers(const struct model *model, uint32_t *count);
const char *model_spec(const struct model *model); /* in its normal form */

/* 64 bits over names, shapes and dtype: equal on all nodes of a cluster. */
uint64_t model_digest(const struct model *model);

/* The initial parameters x[model_parameters()], to the bit the same for a seed on every machine. */
void model_start(const struct model *model, uint64_t seed, float *x);
void model_free(struct model *model);

#endif
