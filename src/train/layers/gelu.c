/* gelu.c: GELU of each value (kernels/layers/gelu.h). No tensors. */
#include "kernels/layers/gelu.h"
#include "train/layers/layers.h"

static const char *plan(struct layer *layer)
{
    layer->out = layer->in;
    return NULL;
}

static void forward(const struct layer *layer, const struct layer_pass *pass)
{
    gelu_kernels_best()->forward(pass->output, pass->input, pass->rows * shape_size(layer->in));
}

static void backward(const struct layer *layer, const struct layer_pass *pass,
                     const struct gradient_sink *sink)
{
    if (pass->below != NULL)
        gelu_kernels_best()->back(pass->below, pass->delta, pass->input,
                                  pass->rows * shape_size(layer->in));
}

const struct layer_kind layer_gelu = {"gelu", plan, forward, backward};
