/* mlp.c: linear and softmax regression, and a multi-layer perceptron: dense layers one after the
 * other, ReLU after each but the last, whose outputs are the logits, or the number. */
#include "train/models/models.h"

static void add_dense(struct network *network, uint32_t width, bool relu)
{
    network_add(network, &(struct network_layer){
                             .kind = &layer_dense, .option = {[DENSE_OUT] = width}, .relu = relu});
}

static void build(struct network *network, const uint32_t *numbers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        add_dense(network, numbers[i], true);
    add_dense(network, network->data.classes, false);
}

const struct model_family model_linear = {.name = "linear",
                                          .form = "linear",
                                          .takes = TAKES_TABLES | TAKES_IMAGES | TAKES_NUMBERS,
                                          .build = build};

const struct model_family model_softmax = {.name = "softmax",
                                           .form = "softmax",
                                           .takes = TAKES_TABLES | TAKES_IMAGES | TAKES_CLASSES,
                                           .build = build};

const struct model_family model_mlp = {.name = "mlp",
                                       .form = "mlp:WIDTH[,WIDTH...] (1 to 16 widths from 1 to "
                                               "65536, as in mlp:256,128)",
                                       .numbers_min = 1,
                                       .numbers_max = MODEL_HIDDEN_MAX,
                                       .number_max = MODEL_WIDTH_MAX,
                                       .takes = TAKES_TABLES | TAKES_IMAGES | TAKES_CLASSES |
                                                TAKES_NUMBERS,
                                       .build = build};
