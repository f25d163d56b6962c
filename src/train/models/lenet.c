/* lenet.c: LeNet-5 (LeCun et al. 1998, section II.B) with ReLU and max pooling instead of the
 * original's tanh and trained averages, and softmax at its end.
 *
 * [C][28][28] (with a border of 2) or [C][32][32] -> conv 5x5 [6][28][28] -> pool [6][14][14]
 * -> conv 5x5 [16][10][10] -> pool [16][5][5] -> 120 -> 84 -> classes.
 */
#include "train/models/models.h"

static void add_conv(struct network *network, const char *name, uint32_t out, uint32_t pad)
{
    network_add(
        network,
        &(struct network_layer){
            .kind = &layer_conv,
            .name = name,
            .option = {[CONV_OUT] = out, [CONV_KERNEL] = 5, [CONV_STRIDE] = 1, [CONV_PAD] = pad},
            .relu = true});
    network_add(network, &(struct network_layer){.kind = &layer_max_pool});
}

static void add_dense(struct network *network, const char *name, uint32_t width, bool relu)
{
    network_add(network, &(struct network_layer){.kind = &layer_dense,
                                                 .name = name,
                                                 .option = {[DENSE_OUT] = width},
                                                 .relu = relu});
}

static void build(struct network *network, const uint32_t *numbers, uint32_t count)
{
    uint32_t side = network->data.height;

    if ((side != 28 && side != 32) || network->data.width != side) {
        network_refuse(network, "takes images of 28 x 28 or 32 x 32 values");
        return;
    }
    add_conv(network, "conv1", 6, side == 28 ? 2 : 0);
    add_conv(network, "conv2", 16, 0);
    add_dense(network, "dense1", 120, true);
    add_dense(network, "dense2", 84, true);
    add_dense(network, "dense3", network->data.classes, false);
}

const struct model_family model_lenet = {.name = "lenet",
                                         .form = "lenet",
                                         .takes = TAKES_IMAGES | TAKES_CLASSES | TAKES_NUMBERS,
                                         .build = build};
