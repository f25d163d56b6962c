/* gradient.c: dense layers, forward and back.
 *
 * Loop names are dimension names: row of the batch, j of a layer's output. BLAS does the matrix
 * products (product.c) and nothing else. The gradient by the model's input is never computed:
 * nobody wants it. Failure modes: memory, in workspace_init. Numbers that are not finite just pass
 * through.
 */
#include "train/gradient.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/layer.h"
#include "train/product.h"

static size_t round_up(size_t floats)
{
    return (floats + 15) / 16 * 16; /* parts start on cache lines */
}

/* The next part of the block; with block NULL only counts. */
static float *cut(float *block, size_t *used, size_t floats)
{
    float *part = block != NULL ? block + *used : NULL;

    *used += round_up(floats);
    return part;
}

/* Sets the pointers into the block and returns its size in floats. */
static size_t lay_out(struct workspace *w, const struct model *model, size_t rows_max)
{
    uint32_t count;
    const struct layer *layers = model_layers(model, &count);
    size_t widest_hidden = 0, used = 0;

    w->inputs = cut(w->block, &used, rows_max * layers[0].in);
    for (uint32_t l = 0; l < count; l++) {
        w->outputs[l] = cut(w->block, &used, rows_max * layers[l].out);
        if (l + 1 < count && layers[l].out > widest_hidden) widest_hidden = layers[l].out;
    }
    w->deltas[0] = cut(w->block, &used, rows_max * widest_hidden);
    w->deltas[1] = cut(w->block, &used, rows_max * widest_hidden);
    w->sums = cut(w->block, &used,
                  widest_hidden > layers[count - 1].out ? widest_hidden : layers[count - 1].out);
    return used;
}

int workspace_init(struct workspace *workspace, const struct model *model, uint32_t rows_max)
{
    size_t floats;

    memset(workspace, 0, sizeof *workspace);
    floats = lay_out(workspace, model, rows_max);
    if (floats > SIZE_MAX / sizeof(float)) return PARLEY_ENOMEM;
    workspace->block = aligned_alloc(64, floats * sizeof(float));
    if (workspace->block == NULL) return PARLEY_ENOMEM;
    lay_out(workspace, model, rows_max);
    return 0;
}

void workspace_close(struct workspace *workspace)
{
    free(workspace->block);
    memset(workspace, 0, sizeof *workspace);
}

/* into[out] = keep * into + scale * (sum of delta[rows][out] over the rows). */
static void bias_gradient(float *restrict into, const float *restrict delta, float *restrict sums,
                          uint32_t rows, uint32_t out, float scale, float keep)
{
    layer_kernels_best()->sum(sums, delta, rows, out);
    if (keep == 0) memset(into, 0, out * sizeof *into); /* 0 * NaN would keep the NaN */
    for (uint32_t j = 0; j < out; j++)
        into[j] = keep * into[j] + scale * sums[j];
}

float *gradient_forward(const struct model *model, struct workspace *workspace, const float *x,
                        uint32_t rows)
{
    uint32_t count;
    const struct layer *layers = model_layers(model, &count);
    const float *input = workspace->inputs;

    for (uint32_t l = 0; l < count; l++) {
        float *output = workspace->outputs[l];

        product_forward(&layers[l], rows, input, x + layers[l].weight, output);
        layer_kernels_best()->bias(output, x + layers[l].bias, rows, layers[l].out, l + 1 < count);
        input = output;
    }
    return workspace->outputs[count - 1];
}

/* weight[in][out] of the sink, in tiles of rows that stay in the cache until they are finished. */
static void weight_gradient(const struct gradient_sink *sink, const struct layer *layer,
                            const float *input, const float *delta, uint32_t rows)
{
    uint32_t in = layer->in, tile_rows = product_tile(layer);

    for (uint32_t i = 0; i < in; i += tile_rows) {
        uint32_t tile = in - i < tile_rows ? in - i : tile_rows;
        size_t offset = layer->weight + (size_t)i * layer->out;

        product_weights(layer, rows, i, tile, input, delta, sink->scale, sink->keep,
                        sink->into + offset);
        if (sink->finish != NULL) sink->finish(sink->context, offset, (size_t)tile * layer->out);
    }
}

void gradient_backward(const struct model *model, struct workspace *workspace, const float *x,
                       uint32_t rows, const struct gradient_sink *sink)
{
    uint32_t count;
    const struct layer *layers = model_layers(model, &count);
    float *delta = workspace->outputs[count - 1];

    for (uint32_t l = count; l-- > 0;) {
        const float *input = l > 0 ? workspace->outputs[l - 1] : workspace->inputs;
        float *below = workspace->deltas[l % 2];

        if (l > 0) { /* first, because the sink may change the weights */
            product_back(&layers[l], rows, delta, x + layers[l].weight, below);
            layer_kernels_best()->mask(below, input, (size_t)rows * layers[l].in);
        }
        weight_gradient(sink, &layers[l], input, delta, rows);
        bias_gradient(sink->into + layers[l].bias, delta, workspace->sums, rows, layers[l].out,
                      sink->scale, sink->keep);
        if (sink->finish != NULL) sink->finish(sink->context, layers[l].bias, layers[l].out);
        delta = below;
    }
}
