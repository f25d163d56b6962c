/* gpt.c: a language model in the form of GPT-2 (Radford et al. 2019), of characters.
 *
 *   embed, then for each block: x += project(attention(qkv(norm(x)))), x += narrow(gelu(widen(
 *   norm(x)))); norm, and a head of logits at each place
 *
 * Initial deviation 0.02, and of what is added to x 0.02 / sqrt(2 * blocks): then x keeps its size
 * however many blocks there are (section 2.3).
 */
#include <stdio.h>

#include "train/models/models.h"

enum { BLOCKS, WIDTH, HEADS, NUMBERS };

#define BLOCKS_MAX 64u
#define VARIANCE (0.02 * 0.02)
#define WIDER 4 /* the middle of a block's perceptron, in widths */

static uint32_t add(struct network *network, struct network_layer layer, const char *block,
                    const char *part)
{
    char name[sizeof((struct layer *)0)->name];

    snprintf(name, sizeof name, "%.9s%.10s", block, part);
    layer.name = name;
    return network_add(network, &layer);
}

static struct network_layer dense(uint32_t width, double variance)
{
    return (struct network_layer){.kind = &layer_dense,
                                  .option = {[DENSE_OUT] = width, [DENSE_EACH] = 1},
                                  .variance = variance};
}

static struct network_layer plus(uint32_t skip)
{
    return (struct network_layer){.kind = &layer_add, .residual = true, .skip = skip};
}

/* x: the number of the layer whose output goes in. Returns that of what comes out. */
static uint32_t add_block(struct network *network, const uint32_t *numbers, uint32_t block,
                          uint32_t x)
{
    const struct network_layer norm = {.kind = &layer_layer_norm}, gelu = {.kind = &layer_gelu};
    const struct network_layer attention = {.kind = &layer_attention,
                                            .option = {[ATTENTION_HEADS] = numbers[HEADS]}};
    double variance = VARIANCE / (2 * numbers[BLOCKS]);
    uint32_t width = numbers[WIDTH];
    char name[20];

    snprintf(name, sizeof name, "block%u.", block);
    add(network, norm, name, "norm1");
    add(network, dense(3 * width, VARIANCE), name, "qkv");
    add(network, attention, name, "attention");
    add(network, dense(width, variance), name, "project");
    x = add(network, plus(x), name, "add1");
    add(network, norm, name, "norm2");
    add(network, dense(WIDER * width, VARIANCE), name, "widen");
    add(network, gelu, name, "gelu");
    add(network, dense(width, variance), name, "narrow");
    return add(network, plus(x), name, "add2");
}

static void build(struct network *network, const uint32_t *numbers, uint32_t count)
{
    const struct network_layer embed = {
        .kind = &layer_embed,
        .option = {[EMBED_VOCABULARY] = network->data.classes, [EMBED_WIDTH] = numbers[WIDTH]}};
    uint32_t x = add(network, embed, "", "embed");

    if (numbers[BLOCKS] > BLOCKS_MAX) network_refuse(network, "has more than 64 blocks");
    for (uint32_t block = 0; block < numbers[BLOCKS] && !network->error; block++)
        x = add_block(network, numbers, block, x);
    add(network, (struct network_layer){.kind = &layer_layer_norm}, "", "norm");
    add(network, dense(network->data.classes, VARIANCE), "", "head");
}

const struct model_family model_gpt = {.name = "gpt",
                                       .form =
                                           "gpt or gpt:BLOCKS,WIDTH,HEADS (gpt:4,128,4; WIDTH a "
                                           "multiple of HEADS)",
                                       .numbers_max = NUMBERS,
                                       .number_max = 4096,
                                       .preset = {4, 128, 4},
                                       .takes = TAKES_TEXT | TAKES_CLASSES,
                                       .build = build};
