/* layer_norm.c: layer normalisation of each place's `width` values (kernels/layers/norm.h). */
#include <assert.h>

#include "kernels/layers/norm.h"
#include "train/layers/layers.h"

enum { GAIN, BIAS };

static const char *plan(struct layer *layer)
{
    uint32_t width = layer->in.width;

    layer->out = layer->in;
    layer->cache = 2 * shape_size(layer->in) / width;
    layer->scratch = 2 * (size_t)width;
    layer->tensor_count = 2;
    layer->tensors[GAIN] =
        (struct tensor_plan){.name = "gain", .rank = 1, .shape = {width}, .value = 1};
    layer->tensors[BIAS] = (struct tensor_plan){.name = "bias", .rank = 1, .shape = {width}};
    return NULL;
}

static size_t vectors(const struct layer *layer, const struct layer_pass *pass)
{
    return pass->rows * shape_size(layer->in) / layer->in.width;
}

static void forward(const struct layer *layer, const struct layer_pass *pass)
{
    norm_kernels_best()->forward(pass->output, pass->cache, pass->input, pass->x + layer->at[GAIN],
                                 pass->x + layer->at[BIAS], vectors(layer, pass), layer->in.width);
}

static void backward(const struct layer *layer, const struct layer_pass *pass,
                     const struct gradient_sink *sink)
{
    size_t width = layer->in.width;
    float *gain = pass->scratch, *bias = gain + width;

    assert(pass->below != NULL); /* no model begins with one */
    norm_kernels_best()->back(pass->below, gain, bias, pass->delta, pass->input, pass->cache,
                              pass->x + layer->at[GAIN], vectors(layer, pass), width);
    sink_add(sink, layer->at[GAIN], gain, width);
    sink_add(sink, layer->at[BIAS], bias, width);
}

const struct layer_kind layer_layer_norm = {"layer-norm", plan, forward, backward};
