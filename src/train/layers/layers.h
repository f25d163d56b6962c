/* layers.h: the kinds of layers there are. Each is described at the head of its file. */
#ifndef PARLEY_TRAIN_LAYERS_LAYERS_H
#define PARLEY_TRAIN_LAYERS_LAYERS_H

#include "train/layer.h"

extern const struct layer_kind layer_dense;

/* The options of a dense layer. */
enum {
    DENSE_OUT, /* its width */
    DENSE_EACH /* 1: on each place's `width` values alone; 0: on a whole row */
};

#endif
