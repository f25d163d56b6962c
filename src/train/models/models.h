/* models.h: the models there are.
 *
 * A model is a name, how many numbers may follow it, and a function that puts its layers together.
 * How one is added: a file here with a constant `struct model_family`, a line below and in the
 * table of model.c, the word in settings/options.def.
 *
 *   linear     linear regression: one dense layer to one number
 *   softmax    one dense layer
 *   mlp:A,B    dense layers of A, B units with ReLU, and one to the classes
 *   lenet      LeNet-5: two convolutions, three dense layers
 *   resnet:N   a residual network with batch normalisation of 6 N + 2 layers
 *   gpt:B,W,H  a language model of B blocks, W wide, with H heads
 */
#ifndef PARLEY_TRAIN_MODELS_MODELS_H
#define PARLEY_TRAIN_MODELS_MODELS_H

#include "train/layers/layers.h"
#include "train/network.h"

/* What inputs and what labels a model takes. */
enum { TAKES_TABLES = 1, TAKES_IMAGES = 2, TAKES_TEXT = 4, TAKES_CLASSES = 8, TAKES_NUMBERS = 16 };

struct model_family {
    const char *name;
    const char *form;                  /* of its spec, for a message: "mlp:WIDTH[,WIDTH...]" */
    uint32_t numbers_min, numbers_max; /* that follow the name; at most MODEL_HIDDEN_MAX */
    uint32_t number_max;               /* each is 1 to this */
    uint32_t preset[3];                /* instead of numbers that are not given; 0: none */
    unsigned takes;
    /* numbers: [count], as in the spec. Its last layer gives `classes` logits (for text: for each
     * place; where labels are numbers: one, which is to meet it) and has no ReLU. */
    void (*build)(struct network *network, const uint32_t *numbers, uint32_t count);
};

extern const struct model_family model_linear, model_softmax, model_mlp, model_lenet, model_resnet,
    model_gpt;

#endif
