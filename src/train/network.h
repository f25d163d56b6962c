/* network.h: putting a network together, layer after layer.
 *
 * Happy path: a model's build function calls network_add() for each layer; network_end() lays the
 * tensors out. The first fault is kept and makes the calls after it do nothing, so that a build
 * function need not look.
 * Thread rule: one thread.
 */
#ifndef PARLEY_TRAIN_NETWORK_H
#define PARLEY_TRAIN_NETWORK_H

#include "train/layer.h"
#include "train/model.h"

struct network {
    struct model_data data;
    struct shape out; /* of the newest layer; before the first: of the data */
    uint32_t layer_count, room;
    struct layer *layers; /* [layer_count]; owned */
    uint32_t tensor_count;
    struct tensor *tensors; /* [tensor_count]; owned; network_end makes them */
    size_t parameters, trained;
    uint32_t first_trained; /* the first layer with a parameter */
    const char *fault;      /* or NULL: the model "has more than 2^31 parameters" */
    int error;              /* PARLEY_EUSAGE with a fault, PARLEY_ENOMEM */
};

struct network_layer {
    const struct layer_kind *kind;
    const char
        *name; /* at most 19 characters, of all layers another; NULL: "layer" and its number */
    uint32_t option[LAYER_OPTIONS_MAX];
    double variance; /* of the first tensor's initial values; 0: as its kind has it */
    bool relu;
    bool residual; /* it takes the output of layer `skip`, too; each layer's is so taken once */
    uint32_t skip;
};

/* Returns the layer's number: the first is 0. */
uint32_t network_add(struct network *network, const struct network_layer *wanted);

/* For a build function that can't go on: fault is as in struct network. */
void network_refuse(struct network *network, const char *fault);

/* 0, or network->error. */
PARLEY_CHECK int network_end(struct network *network);
void network_close(struct network *network);

#endif
