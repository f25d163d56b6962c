/* layers.h: the kinds of layers there are. Each is described at the head of its file. */
#ifndef PARLEY_TRAIN_LAYERS_LAYERS_H
#define PARLEY_TRAIN_LAYERS_LAYERS_H

#include "train/layer.h"

extern const struct layer_kind layer_dense, layer_conv, layer_max_pool, layer_mean_pool,
    layer_batch_norm;
extern const struct layer_kind layer_embed, layer_layer_norm, layer_attention, layer_gelu,
    layer_add;

/* The options of a dense layer. */
enum {
    DENSE_OUT, /* its width */
    DENSE_EACH /* 1: on each place's `width` values alone; 0: on a whole row */
};

/* Of an embedding. */
enum { EMBED_VOCABULARY, EMBED_WIDTH };

/* Of attention. */
enum { ATTENTION_HEADS };

/* The options of a convolution. */
enum {
    CONV_OUT,    /* channels */
    CONV_KERNEL, /* its height and width, 1 or more */
    CONV_STRIDE, /* 1 or more */
    CONV_PAD,    /* zeroes around the image */
    CONV_BARE    /* 1: no bias and no ReLU */
};

#endif
