/* resnet.c: the small residual network of He et al. 2016, section 4.2: 6 N + 2 layers for
 * "resnet:N", with shortcuts of kind A.
 *
 * [C][H][W] -> conv 3x3 [16][H][W] -> N blocks -> N blocks [32][H/2][W/2] -> N blocks
 * [64][H/4][W/4]
 * -> mean of all places [64] -> classes. A block is conv 3x3, norm, ReLU, conv 3x3, norm, and its
 * own input added, ReLU; the first of a stage of half the size has stride 2.
 */
#include <stdio.h>

#include "train/models/models.h"

enum { WIDTH = 16, STAGES = 3 };

/* A 3 x 3 convolution with its batch norm. */
static uint32_t add_conv(struct network *network, const char *name, uint32_t out, uint32_t stride,
                         bool relu)
{
    char norm[20];

    snprintf(norm, sizeof norm, "%.14s.norm", name);
    network_add(network, &(struct network_layer){.kind = &layer_conv,
                                                 .name = name,
                                                 .option = {[CONV_OUT] = out,
                                                            [CONV_KERNEL] = 3,
                                                            [CONV_STRIDE] = stride,
                                                            [CONV_PAD] = 1,
                                                            [CONV_BARE] = 1}});
    return network_add(
        network, &(struct network_layer){.kind = &layer_batch_norm, .name = norm, .relu = relu});
}

/* Returns the number of its last layer; `from`: that of its input's. */
static uint32_t add_block(struct network *network, uint32_t number, uint32_t out, uint32_t stride,
                          uint32_t from)
{
    char name[20];

    snprintf(name, sizeof name, "block%u.conv1", number);
    add_conv(network, name, out, stride, true);
    snprintf(name, sizeof name, "block%u.conv2", number);
    add_conv(network, name, out, 1, false);
    return network_add(
        network,
        &(struct network_layer){.kind = &layer_add, .residual = true, .skip = from, .relu = true});
}

static void build(struct network *network, const uint32_t *numbers, uint32_t count)
{
    uint32_t number = 0;
    uint32_t last = add_conv(network, "conv", WIDTH, 1, true);

    for (uint32_t s = 0; s < STAGES; s++)
        for (uint32_t b = 0; b < numbers[0]; b++)
            last = add_block(network, number++, WIDTH << s, s > 0 && b == 0 ? 2 : 1, last);
    network_add(network, &(struct network_layer){.kind = &layer_mean_pool});
    network_add(network, &(struct network_layer){.kind = &layer_dense,
                                                 .name = "dense",
                                                 .option = {[DENSE_OUT] = network->data.classes}});
}

const struct model_family model_resnet = {.name = "resnet",
                                          .form = "resnet:N (6 N + 2 layers, N from 1 to 18)",
                                          .numbers_min = 1,
                                          .numbers_max = 1,
                                          .number_max = 18,
                                          .takes = TAKES_IMAGES | TAKES_CLASSES | TAKES_NUMBERS,
                                          .build = build};
