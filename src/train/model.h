/* model.h: a network's layers, and their tensors in one flat vector (see trainer.h for the way in).
 *
 * The vector has all parameters first, then what is no parameter but averaged with the rest: the
 * running statistics of layers (layer.h). Each layer's tensors have its name before their own.
 * Thread rule: a model never changes once made; read it from any thread.
 */
#ifndef PARLEY_TRAIN_MODEL_H
#define PARLEY_TRAIN_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "parley/error.h"

#define MODEL_HIDDEN_MAX 16u          /* hidden layers of an mlp */
#define MODEL_WIDTH_MAX 65536u        /* units of a hidden layer, and classes */
#define MODEL_FEATURES_MAX (1u << 24) /* inputs */
#define MODEL_PARAMETERS_MAX ((uint64_t)1 << (SIZE_MAX > UINT32_MAX ? 31 : 24)) /* floats */

/* One named tensor inside the flat vector. */
struct tensor {
    char name[32];
    uint32_t rank;     /* 1 to 4 */
    uint32_t shape[4]; /* outermost first */
    size_t offset;     /* in floats from the vector's start */
    size_t count;      /* product of the shape */
};

/* What a model is for: the shape of a data set. */
struct model_data {
    uint32_t features;                /* values a sample; of text: places of a window */
    uint32_t channels, height, width; /* of images, else 0 */
    uint32_t classes;
    bool text;    /* values are numbers below classes */
    bool numbers; /* labels are numbers to be met; classes is 1 */
};

struct layer; /* layer.h */
struct model; /* opaque */

/* spec: a name and its numbers, as in "mlp:256,128"; models/models.h has the list.
 * PARLEY_EUSAGE with one line in why[why_size], which names the value and what is valid;
 * PARLEY_ENOMEM. */
PARLEY_CHECK int model_new(struct model **model, const char *spec, const struct model_data *data,
                           char *why, size_t why_size);

/* Floats in the vector, and how many of them, from its start, are parameters. */
size_t model_parameters(const struct model *model);
size_t model_trained(const struct model *model);

/* Without gaps, in the vector's order. */
const struct tensor *model_tensors(const struct model *model, uint32_t *count);
const struct layer *model_layers(const struct model *model, uint32_t *count);
uint32_t model_first_trained(const struct model *model); /* the first layer with a parameter */
const char *model_spec(const struct model *model);       /* in its normal form */

/* Predictions for a sample, of `classes` logits each: 1, or one for each place of a text. */
uint32_t model_places(const struct model *model);

/* 64 bits over names, shapes and dtype: equal on all nodes of a cluster. */
uint64_t model_digest(const struct model *model);

/* The initial vector x[model_parameters()], to the bit the same for a seed on every machine. */
void model_start(const struct model *model, uint64_t seed, float *x);
void model_free(struct model *model);

#endif
